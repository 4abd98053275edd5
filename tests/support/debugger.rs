//! A client of `consort dap`, a process of its own.

use std::collections::{HashMap, VecDeque};
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use serde_json::{Value, json};

use crate::framing::{Framing, framed, read_message};
use crate::jitter::blocking_jitter;
use crate::patience::{PATIENCE, alone};

/// The number of last messages that a failure shows.
const SHOWN: usize = 30;

/// A debugger that is attached.
pub struct Debugger {
    child: Child,
    stdin: Option<ChildStdin>,
    incoming: Receiver<Value>,
    seq: u64,
    answers: HashMap<u64, Value>,
    /// Events that nothing has taken, in order.
    pub events: Vec<Value>,
    last: VecDeque<String>,
}

impl Debugger {
    /// Starts `consort dap`, and attaches.
    pub fn start(mut command: Command) -> Debugger {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stdin = child.stdin.take();
        let mut stdout = std::io::BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (send, incoming) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read_message(&mut stdout, Framing::Headers) {
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        let (answers, events, last) = (HashMap::new(), Vec::new(), VecDeque::new());
        let mut debugger = Debugger { child, stdin, incoming, seq: 0, answers, events, last };
        debugger.ask("initialize", json!({"adapterID": "consort", "linesStartAt1": true}));
        debugger.event("initialized", |_| true);
        debugger.ask("attach", json!({}));
        debugger.ask("configurationDone", Value::Null);
        debugger
    }

    /// Sends a request; returns its number.
    pub fn begin(&mut self, command: &str, arguments: Value) -> u64 {
        blocking_jitter();
        self.seq += 1;
        let body = json!({"seq": self.seq, "type": "request", "command": command, "arguments": arguments}).to_string();
        if let Some(stdin) = &mut self.stdin {
            // If the adapter has ended, the wait for its answer fails with a better message.
            let _ = stdin.write_all(&framed(&body, Framing::Headers)).and_then(|()| stdin.flush());
        }
        self.seq
    }

    /// Waits for the answer to a request: its body, or the message of a refusal.
    pub fn wait(&mut self, request: u64) -> Result<Value, String> {
        let mut answer = self.until(&format!("the answer to request {request}"), |all| all.answers.remove(&request));
        if answer["success"] == true {
            return Ok(answer["body"].take());
        }
        Err(answer["message"].as_str().unwrap_or_default().to_owned())
    }

    /// Sends a request and waits for its answer.
    pub fn try_ask(&mut self, command: &str, arguments: Value) -> Result<Value, String> {
        let request = self.begin(command, arguments);
        self.wait(request)
    }

    /// The answer to a request that must work.
    pub fn ask(&mut self, command: &str, arguments: Value) -> Value {
        self.try_ask(command, arguments).unwrap_or_else(|why| panic!("{command}: {why}"))
    }

    /// Waits for an event of this name that `accept`s; takes it out.
    pub fn event(&mut self, name: &str, accept: impl Fn(&Value) -> bool) -> Value {
        self.until(&format!("an event {name}"), |all| {
            let at = all.events.iter().position(|event| event["event"] == name && accept(&event["body"]))?;
            Some(all.events.remove(at)["body"].take())
        })
    }

    /// Returns true once a request is answered, without taking the answer.
    pub fn is_answered(&self, request: u64) -> bool {
        self.answers.contains_key(&request)
    }

    /// Waits until `find` finds something, and receives messages meanwhile.
    pub fn until<T>(&mut self, what: &str, mut find: impl FnMut(&mut Debugger) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = find(self) {
                return found;
            }
            match self.incoming.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(message) => self.sort(message),
                Err(why) => {
                    let why = match why {
                        RecvTimeoutError::Timeout => format!("not in {PATIENCE:?}"),
                        RecvTimeoutError::Disconnected => "the adapter closed its output".into(),
                    };
                    panic!("waited in vain for {what}: {why}. The last messages were:\n{:#?}\n{}", self.last, alone())
                }
            }
        }
    }

    fn sort(&mut self, message: Value) {
        if self.last.len() == SHOWN {
            self.last.pop_front();
        }
        self.last.push_back(format!("{:.1000}", message.to_string()));
        match message["request_seq"].as_u64() {
            Some(request) => drop(self.answers.insert(request, message)),
            None => self.events.push(message),
        }
    }

    /// Disconnects, and waits for the end of the adapter.
    pub fn leave(mut self) {
        self.ask("disconnect", json!({}));
        self.stdin = None;
        let _ = self.child.wait();
    }
}

/// Kills the adapter, without ending the protocol.
impl Drop for Debugger {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
