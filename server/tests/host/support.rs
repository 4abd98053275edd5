//! A workspace and a runtime directory of a test's own, and the processes in it. Dropping it ends
//! the host and looks for what is left.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use consort::host::hello::{Ack, Hello, line};
use consort::host::runtime_dir::RuntimeDir;
use serde_json::{Value, json};

#[path = "../../../tests/support/environment.rs"]
#[allow(unreachable_pub)]
mod environment;
#[path = "../../../tests/support/patience.rs"]
#[allow(unreachable_pub)]
mod patience;

pub(crate) use patience::until as wait_until;
use patience::{PATIENCE, alone};

/// The number of last messages that a failure shows.
const MAX_SHOWN_MESSAGES: usize = 20;

pub(crate) struct Fixture {
    runtime: tempfile::TempDir,
    workspace: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        // Short: a socket's path has at most 100 bytes, and a system's own temporary directory may
        // have half of them.
        let place = std::env::var_os("CONSORT_TEST_PLACE").map_or_else(|| "/tmp".into(), |_| std::env::temp_dir());
        let temporary = |prefix| tempfile::Builder::new().prefix(prefix).tempdir_in(&place).unwrap();
        let fixture = Fixture { runtime: temporary("cr"), workspace: temporary("cw") };
        fixture.file("consort.toml", "[host]\nlinger_s = 60\n");
        fixture
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
        environment::clear_environment(&mut command);
        command.args(args).current_dir(self.workspace());
        for name in ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"] {
            command.env(name, self.runtime.path());
        }
        command.env("XDG_STATE_HOME", self.runtime.path().join("state")).env("XDG_CACHE_HOME", cache_home());
        command
    }

    /// Consort's own state directory.
    pub(crate) fn state(&self) -> PathBuf {
        self.runtime.path().join("state/consort")
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    /// [`Fixture::run`] with a pipe as standard input.
    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Output {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
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

impl Drop for Fixture {
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

/// Removes a directory of a living host, and not piece by piece: the host makes again what is
/// missing.
pub(crate) fn remove_at_once(directory: &Path) {
    let removed = directory.with_extension("removed");
    std::fs::rename(directory, &removed).expect("renamed");
    std::fs::remove_dir_all(removed).expect("removed");
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

/// `XDG_CACHE_HOME`, which all tests share so that they build one core: the one that
/// `scripts/isolated` names, or one below `target/`.
fn cache_home() -> PathBuf {
    match (std::env::var_os("CONSORT_TEST_PLACE"), std::env::var_os("XDG_CACHE_HOME")) {
        (Some(_), Some(cache)) => cache.into(),
        _ => Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/test-cache"),
    }
}

pub(crate) fn kill(pid: u64) {
    signal(pid.try_into().unwrap(), rustix::process::Signal::KILL);
}

pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_raw(pid).unwrap(), signal).unwrap();
}

/// Stops a process, and waits until each of its threads has stopped: until then one may still
/// answer.
pub(crate) fn suspend(pid: i32) {
    signal(pid, rustix::process::Signal::STOP);
    #[cfg(target_os = "linux")]
    wait_until("all threads have stopped", || {
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the threads");
        threads.flatten().all(|thread| {
            // A thread that has ended meanwhile answers nothing.
            std::fs::read_to_string(thread.path().join("stat"))
                .map_or(true, |stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')))
        })
    });
}

pub(crate) fn agent_params(capabilities: Value) -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}})
}

pub(crate) fn file_uri(path: &Path) -> String {
    lsp_types::Url::from_file_path(path).unwrap().into()
}

/// A bridge, spoken to over its standard input and output: lines, or frames after
/// [`Process::framed`].
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    incoming: Option<Receiver<Value>>,
    /// Messages that came and were not wanted yet, in order.
    unseen: VecDeque<Value>,
    /// The last messages, clipped, for what a failure says.
    last: VecDeque<String>,
    framed: bool,
    ids: u64,
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Process {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (unseen, last) = (VecDeque::new(), VecDeque::new());
        Process { child, stdin, stdout, incoming: None, unseen, last, framed: false, ids: 0 }
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

    /// The next message that nobody has looked at; `None` at the end.
    pub(crate) fn receive(&mut self) -> Option<Value> {
        self.unseen.pop_front().or_else(|| self.arrives("any message"))
    }

    /// The next message from the program; `None` at the end.
    fn arrives(&mut self, what: &str) -> Option<Value> {
        let incoming = self.incoming.get_or_insert_with(|| {
            let (send, incoming) = channel();
            let (mut stdout, framed) = (BufReader::new(self.stdout.take().unwrap()), self.framed);
            std::thread::spawn(move || {
                while let Some(message) = read_message(&mut stdout, framed) {
                    if send.send(message).is_err() {
                        break;
                    }
                }
            });
            incoming
        });
        match incoming.recv_timeout(PATIENCE) {
            Ok(message) => {
                self.last.drain(..(self.last.len() + 1).saturating_sub(MAX_SHOWN_MESSAGES));
                self.last.push_back(format!("{:.1000}", message.to_string()));
                Some(message)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("waited {PATIENCE:?} in vain for {what}; the last messages were {:#?}\n{}", self.last, alone())
            }
        }
    }

    /// The next message that is wanted; others stay.
    pub(crate) fn next(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.unseen.iter().position(&wanted) {
            return self.unseen.remove(at).unwrap();
        }
        loop {
            let Some(message) = self.arrives(what) else {
                let said = self.said();
                panic!(
                    "the stream ended instead of {what}; the last messages were {:#?}; on standard error: {said}\n{}",
                    self.last,
                    alone()
                );
            };
            if wanted(&message) {
                return message;
            }
            self.unseen.push_back(message);
        }
    }

    /// Standard error, to its end.
    fn said(&mut self) -> String {
        let mut said = String::new();
        let read = self.child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut said));
        match read {
            Some(Err(error)) => format!("{said} (and then it could not be read: {error})"),
            _ => said,
        }
    }

    /// The next notification or request of a method.
    pub(crate) fn told(&mut self, method: &str) -> Value {
        self.next(method, |message| message["method"] == method)
    }

    /// Send a request; its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.ids += 1;
        self.send(&json!({"id": self.ids, "method": method, "params": params}));
        self.ids
    }

    /// The answer to a request; what comes before it stays.
    pub(crate) fn answer(&mut self, id: u64) -> Value {
        let what = format!("the answer to request {id}");
        self.next(&what, |message| message["id"] == id && message.get("method").is_none())
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

    /// The first text of `evaluate-lisp`'s result from the next host. The bridge may notice the end
    /// of the old host only at a first call.
    pub(crate) fn eval_in_the_next(&mut self, code: &str) -> String {
        let answer = self.eval(code);
        if answer.starts_with("The Consort host ended") { self.eval(code) } else { answer }
    }

    /// Close standard input and wait; the exit code and what came on standard error.
    pub(crate) fn finish(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        let said = self.said();
        (self.child.wait().unwrap().code(), said)
    }
}

/// The next message: a line, or a frame. `None` at the end.
fn read_message(stdout: &mut impl BufRead, framed: bool) -> Option<Value> {
    let mut line = String::new();
    if !framed {
        return (stdout.read_line(&mut line).unwrap() > 0).then(|| serde_json::from_str(&line).unwrap());
    }
    let mut length = None;
    while line != "\r\n" {
        line.clear();
        if stdout.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        if let Some(value) = line.strip_prefix("Content-Length:") {
            length = value.trim().parse().ok();
        }
    }
    let mut body = vec![0; length.unwrap()];
    stdout.read_exact(&mut body).unwrap();
    Some(serde_json::from_slice(&body).unwrap())
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already gone after `finish`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
