//! An installation of Consort for one test: temporary home, runtime directory and workspace, with a
//! host and an image; and the check that nothing of it is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::debugger::Debugger;
use crate::environment::clear_environment;
use crate::framing::Framing;
use crate::patience::PATIENCE;
use crate::place::cache_home;
use crate::registry::source_registry;
use crate::wire::Rpc;

/// The environment variable by which a test's processes are found, also after they have lost their
/// parent.
const MARK: &str = "CONSORT_TEST_INSTALLATION";

/// Directories and processes of one test. Call [`Installation::finish`] at its end.
pub struct Installation {
    dir: TempDir,
    mark: String,
}

impl Installation {
    /// Creates an empty workspace, with a home and a runtime directory of its own.
    pub fn new() -> Installation {
        let dir = tempfile::Builder::new().prefix("c-").tempdir().expect("a temporary directory");
        // The host does not use a longer path, and would be in the person's own directory.
        let longest = dir.path().join("run/consort/0123456789abcdef/work/0123456789abcdef/s");
        let is_short = longest.as_os_str().len() <= 100 || cfg!(target_os = "macos");
        assert!(is_short, "{} is too long for sockets: set TMPDIR to a shorter directory", dir.path().display());
        for name in ["home", "run", "work", "config/consort", "tmp"] {
            fs::create_dir_all(dir.path().join(name)).expect("a directory in the test's own");
        }
        fs::write(dir.path().join("work/consort.toml"), "").expect("a file in the test's own directory");
        let mark = dir.path().file_name().expect("it has a name").to_string_lossy().into_owned();
        Installation { dir, mark }
    }

    /// The workspace.
    pub fn workspace(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// A file of the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    /// The `file:` URI of a file of the workspace.
    pub fn uri(&self, name: &str) -> String {
        format!("file://{}", self.path(name).display())
    }

    /// Writes a file of the workspace.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it has a directory")).expect("a directory");
        fs::write(&path, text).expect("a file");
        path
    }

    /// Writes the person's own configuration.
    pub fn configure(&self, toml: &str) {
        fs::write(self.dir.path().join("config/consort/config.toml"), toml).expect("a file");
    }

    /// Returns the command `consort ARGS` in the workspace, with this installation's directories.
    pub fn consort(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).current_dir(self.workspace());
        self.env(&mut command);
        command
    }

    fn env(&self, command: &mut Command) {
        let at = |name: &str| self.dir.path().join(name);
        clear_environment(command);
        command
            .env("HOME", at("home"))
            .env("XDG_RUNTIME_DIR", at("run"))
            .env("XDG_CONFIG_HOME", at("config"))
            .env("XDG_STATE_HOME", at("home/state"))
            .env("XDG_DATA_HOME", at("home/data"))
            .env("TMPDIR", at("tmp"))
            .env("XDG_CACHE_HOME", cache_home())
            .env("CL_SOURCE_REGISTRY", source_registry())
            .env(MARK, &self.mark);
    }

    /// Runs `consort ARGS` to its end.
    pub fn run(&self, args: &[&str]) -> Output {
        self.consort(args).output().expect("consort runs")
    }

    /// Starts a client of the LSP front end, initialized.
    pub fn lsp(&self) -> Rpc {
        let mut rpc = Rpc::start(self.consort(&["lsp"]), Framing::Headers);
        rpc.request(
            "initialize",
            json!({
                "processId": std::process::id(),
                "rootUri": format!("file://{}", self.workspace().display()),
                "capabilities": {
                    "workspace": {"configuration": false},
                    "window": {"workDoneProgress": true},
                    "textDocument": {"publishDiagnostics": {"versionSupport": true, "relatedInformation": true}},
                },
            }),
        );
        rpc.notify("initialized", json!({}));
        rpc
    }

    /// Starts a client of the MCP front end, initialized.
    pub fn mcp(&self) -> Rpc {
        let mut rpc = Rpc::start(self.consort(&["mcp"]), Framing::Lines);
        rpc.request(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        rpc.notify("notifications/initialized", json!({}));
        rpc
    }

    /// Starts a debugger, attached.
    pub fn dap(&self) -> Debugger {
        Debugger::start(self.consort(&["dap"]))
    }

    /// Returns the answer of `consort status --json`.
    pub fn status(&self) -> Value {
        let output = self.run(&["status", "--json"]);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("status is not JSON ({error}): {output:?}"))
    }

    /// Ends the host, and fails if a process or a file of this installation is left.
    pub fn finish(self) {
        let output = self.run(&["stop"]);
        assert!(output.status.success(), "consort stop: {output:?}");
        let left = self.wait_until_gone();
        assert!(left.is_empty(), "left running: {left:?}");
        let files: Vec<PathBuf> = [self.dir.path().join("run"), self.dir.path().join("tmp")]
            .iter()
            .flat_map(|dir| files_below(dir))
            .filter(|path| !path.ends_with("lock"))
            .collect();
        assert!(files.is_empty(), "left behind: {files:?}");
    }

    fn wait_until_gone(&self) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() > deadline {
                return left;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns every process that carries this installation's mark, as `pid command line`.
    pub fn processes(&self) -> Vec<String> {
        let wanted = format!("{MARK}={}", self.mark);
        let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .filter(|&pid| pid != std::process::id())
            .filter(|pid| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|&byte| byte == 0).any(|entry| entry == wanted.as_bytes())
            })
            .map(|pid| {
                let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " "))
            })
            .collect()
    }
}

impl Default for Installation {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        // A failed test must not leave its host either. A bridge that outlives its host for a
        // moment starts another one, so processes are killed until none is left. A process shows no
        // environment while it is being started, so the list must be empty several times.
        let deadline = Instant::now() + PATIENCE;
        let mut empty = 0;
        while empty < 5 && Instant::now() < deadline {
            let left = self.processes();
            empty = if left.is_empty() { empty + 1 } else { 0 };
            for line in left {
                if let Some(pid) =
                    line.split(' ').next().and_then(|pid| pid.parse().ok()).and_then(rustix::process::Pid::from_raw)
                {
                    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn files_below(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    entries
        .flatten()
        .flat_map(|entry| {
            let path = entry.path();
            if path.is_dir() { files_below(&path) } else { vec![path] }
        })
        .collect()
}

/// The binary under test: `CONSORT_BIN`, or else the one beside the test's own.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("CONSORT_BIN") {
        return path.into();
    }
    let test = std::env::current_exe().expect("the test knows where it is");
    let path = test.parent().and_then(Path::parent).expect("target/PROFILE/deps/TEST").join("consort");
    assert!(path.exists(), "{} is not there: run `cargo build` first (make test does)", path.display());
    path
}
