//! A workspace with a runtime directory of its own, which neither uses nor ends a host of the
//! person who runs the program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::patience::PATIENCE;

/// Returns `XDG_CACHE_HOME` for all processes that tests start, so that they build one core for
/// each compiler between them, and compile the systems that they load once. The cores depend on
/// sbcl and lisp/ alone. `scripts/isolated` names the directory; otherwise it is below `target/`.
pub fn cache_home() -> PathBuf {
    match (std::env::var_os("CONSORT_TEST_PLACE"), std::env::var_os("XDG_CACHE_HOME")) {
        (Some(_), Some(cache)) => cache.into(),
        _ => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-cache"),
    }
}

/// Returns the directory of the cores in it.
pub fn cores() -> PathBuf {
    cache_home().join("consort")
}

/// A place in which `consort` runs: all processes that it starts are gone after [`Place::clear`].
#[derive(Debug)]
pub struct Place {
    consort: PathBuf,
    workspace: PathBuf,
    runtime: tempfile::TempDir,
}

impl Place {
    /// Creates a place for the workspace `workspace`, with the binary that `CONSORT_BIN` names, or
    /// else the one beside this program.
    pub fn new(workspace: PathBuf) -> Result<Place> {
        let consort = match std::env::var_os("CONSORT_BIN") {
            Some(path) => path.into(),
            None => std::env::current_exe()?.with_file_name("consort"),
        };
        ensure!(consort.exists(), "{} is missing: build it first, or name another in CONSORT_BIN", consort.display());
        // Short, and in /tmp: a Unix socket's path has at most 107 bytes, 103 on macOS.
        let runtime = tempfile::Builder::new()
            .prefix("consort-place")
            .tempdir_in(std::env::var_os("TMPDIR").unwrap_or("/tmp".into()))?;
        Ok(Place { consort, workspace, runtime })
    }

    /// The workspace's directory.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// Returns the command `consort ARGS` in the workspace.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.consort);
        command.args(args).current_dir(&self.workspace);
        for variable in ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "TMPDIR"] {
            command.env(variable, self.runtime.path());
        }
        command
    }

    /// The answer of `consort status --json`; `None` when no host runs.
    pub fn status(&self) -> Result<Option<Value>> {
        let output = self.command(&["status", "--json"]).output().context("cannot run consort")?;
        if !output.status.success() {
            return Ok(None);
        }
        Ok(Some(serde_json::from_slice(&output.stdout).context("consort status --json printed something else")?))
    }

    /// Stops the host, and checks that it and its image have gone.
    pub fn clear(&self) -> Result<()> {
        let pids: Vec<i32> = match self.status()? {
            None => return Ok(()),
            Some(status) => [&status["host_pid"], &status["image"]["pid"]]
                .iter()
                .filter_map(|pid| i32::try_from(pid.as_i64()?).ok())
                .collect(),
        };
        let stopped = self.command(&["stop"]).output()?;
        ensure!(stopped.status.success(), "consort stop failed: {}", String::from_utf8_lossy(&stopped.stderr));
        let deadline = Instant::now() + PATIENCE;
        for pid in pids {
            let pid = rustix::process::Pid::from_raw(pid).context("a process id of 0")?;
            while rustix::process::test_kill_process(pid).is_ok() {
                ensure!(
                    Instant::now() < deadline,
                    "process {} is still there after `consort stop`",
                    pid.as_raw_nonzero()
                );
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
        Ok(())
    }
}
