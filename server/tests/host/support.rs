//! A workspace and a runtime directory of a test's own, and the processes in it. Dropping it ends the host and looks for what is left.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use consort::host::hello::{Ack, Hello, line};
use consort::host::runtime_dir::RuntimeDir;
use serde_json::{Value, json};

/// Longer than anything here takes, on a slow machine that builds the core first.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Services {
    runtime: tempfile::TempDir,
    workspace: tempfile::TempDir,
}

impl Services {
    pub(crate) fn new() -> Services {
        // Short: a socket's path has at most 100 bytes.
        let temporary = |prefix| tempfile::Builder::new().prefix(prefix).tempdir_in("/tmp").unwrap();
        let house = Services { runtime: temporary("cr"), workspace: temporary("cw") };
        house.file("consort.toml", "[host]\nlinger_s = 60\n");
        house
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.workspace.path().canonicalize().unwrap()
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.workspace().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn place(&self) -> RuntimeDir {
        RuntimeDir::within(self.runtime.path().join("consort"), &self.workspace()).unwrap()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
        command.args(args).current_dir(self.workspace()).env("XDG_RUNTIME_DIR", self.runtime.path());
        command.env("XDG_CONFIG_HOME", self.runtime.path()).env("XDG_STATE_HOME", self.runtime.path().join("state"));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    pub(crate) fn status(&self) -> Option<Value> {
        let output = self.run(&["status", "--json"]);
        output.status.success().then(|| serde_json::from_slice(&output.stdout).unwrap())
    }

    pub(crate) fn host_pid(&self) -> u64 {
        self.status().unwrap()["host_pid"].as_u64().unwrap()
    }

    /// A host with nothing but the socket's client library.
    pub(crate) fn hello(&self, hello: &Hello) -> (Ack, BufReader<UnixStream>) {
        let mut stream = UnixStream::connect(self.place().socket()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&line(hello).unwrap()).unwrap();
        let mut read = BufReader::new(stream);
        let mut ack = String::new();
        read.read_line(&mut ack).unwrap();
        (serde_json::from_str(&ack).unwrap(), read)
    }

    pub(crate) fn agent(&self) -> Process {
        let mut agent = Process::start(self.command(&["mcp"]));
        let answer = agent.request("initialize", agent_params(json!({})));
        assert_eq!(answer["result"]["serverInfo"]["name"], "consort");
        agent.send(&json!({"method": "notifications/initialized"}));
        agent
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        let pids: Vec<u64> = self.status().iter().flat_map(pids).collect();
        let stopped = self.run(&["stop"]);
        if std::thread::panicking() {
            return;
        }
        assert!(stopped.status.success(), "{stopped:?}");
        pids.into_iter().for_each(wait_until_gone);
        let left: Vec<_> =
            std::fs::read_dir(self.runtime.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name == "state"), "left behind: {left:?}");
    }
}

pub(crate) fn pids(status: &Value) -> Vec<u64> {
    [&status["host_pid"], &status["image"]["pid"]].into_iter().filter_map(Value::as_u64).collect()
}

/// A process that has ended, if only its entry in the table is left until its parent has looked.
pub(crate) fn is_gone(pid: u64) -> bool {
    let pid = rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap();
    if rustix::process::test_kill_process(pid).is_err() {
        return true;
    }
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

pub(crate) fn wait_until_gone(pid: u64) {
    wait_until(&format!("process {pid} ends"), || is_gone(pid));
}

/// For what no descriptor tells of: the end of a process that is not a child.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn kill(pid: u64) {
    signal(pid.try_into().unwrap(), rustix::process::Signal::KILL);
}

pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

pub(crate) fn agent_params(capabilities: Value) -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}})
}

pub(crate) fn file_uri(path: &Path) -> String {
    lsp_types::Url::from_file_path(path).unwrap().into()
}

/// A bridge, spoken to over its standard input and output: lines, or frames after [`Process::framed`].
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    framed: bool,
    ids: u64,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Process {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Process { child, stdin, stdout, framed: false, ids: 0 }
    }

    pub(crate) fn framed(mut self) -> Process {
        self.framed = true;
        self
    }

    pub(crate) fn send(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        let text = message.to_string();
        let text =
            if self.framed { format!("Content-Length: {}\r\n\r\n{text}", text.len()) } else { format!("{text}\n") };
        self.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// The next message; `None` at the end.
    pub(crate) fn receive(&mut self) -> Option<Value> {
        let mut line = String::new();
        if !self.framed {
            return (self.stdout.read_line(&mut line).unwrap() > 0).then(|| serde_json::from_str(&line).unwrap());
        }
        let mut length = None;
        loop {
            line.clear();
            if self.stdout.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(value) = line.strip_prefix("Content-Length:") {
                length = value.trim().parse().ok();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length.unwrap()];
        self.stdout.read_exact(&mut body).unwrap();
        Some(serde_json::from_slice(&body).unwrap())
    }

    /// Send a request; its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.ids += 1;
        self.send(&json!({"id": self.ids, "method": method, "params": params}));
        self.ids
    }

    /// The answer to a request; what comes before it is dropped.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive().expect("the end of the stream instead of an answer");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    pub(crate) fn ask_eval(&mut self, code: &str) -> u64 {
        self.ask("tools/call", json!({"name": "evaluate-lisp", "arguments": {"code": code}}))
    }

    /// The first text of `evaluate-lisp`'s result.
    pub(crate) fn eval(&mut self, code: &str) -> String {
        let id = self.ask_eval(code);
        self.answer(id)["result"]["content"][0]["text"].as_str().unwrap().trim().into()
    }

    /// Close standard input and wait; the exit code and what came on standard error.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already gone after `finish`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
