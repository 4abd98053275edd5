//! A plain JSON-RPC client over a child's standard streams, for both front ends. It knows the
//! framing and nothing else of the protocols.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io::{BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use serde_json::{Value, json};

use crate::framing::{Framing, framed, read_message};
use crate::jitter::blocking_jitter;
use crate::patience::{PATIENCE, alone};

/// The number of last messages that a failure shows.
const MAX_SHOWN_MESSAGES: usize = 20;

/// A running server on stdio.
pub struct Rpc {
    child: Child,
    stdin: Option<ChildStdin>,
    incoming: Receiver<Value>,
    framing: Framing,
    next_id: u64,
    answers: HashMap<u64, Value>,
    /// Requests that are not answered.
    open: HashSet<u64>,
    /// Ids of answers to no request, or to one that was answered before.
    pub surplus: Vec<u64>,
    /// The last messages, clipped, for the message of a failure.
    last: VecDeque<String>,
    /// Requests of the server (`workspace/configuration`, `elicitation/create`) that have not been
    /// answered yet.
    pub requests: Vec<Value>,
    /// Notifications, in order.
    pub notifications: Vec<Value>,
}

impl Rpc {
    /// Starts `command` and reads its output.
    pub fn start(mut command: Command, framing: Framing) -> Rpc {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let (send, incoming) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read_message(&mut stdout, framing) {
                if send.send(message).is_err() {
                    break;
                }
            }
        });
        Rpc {
            child,
            stdin,
            incoming,
            framing,
            next_id: 0,
            answers: HashMap::new(),
            open: HashSet::new(),
            surplus: Vec::new(),
            last: VecDeque::new(),
            requests: Vec::new(),
            notifications: Vec::new(),
        }
    }

    /// The child's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes as they are, for tests of malformed input.
    pub fn send_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        // If the server has ended, the wait for its answer fails with a better message.
        let _ = stdin.write_all(bytes).and_then(|()| stdin.flush());
    }

    fn send(&mut self, message: &Value) {
        blocking_jitter();
        let bytes = framed(message.to_string(), self.framing);
        self.send_raw(&bytes);
    }

    /// Sends a request and returns its id without waiting.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let id = self.next_id;
        self.open.insert(id);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers a request of the server.
    pub fn answer(&mut self, id: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// Waits for the whole answer (`result` or `error`) to the request with this id.
    pub fn wait(&mut self, id: u64) -> Value {
        self.until(&format!("the answer to request {id}"), |rpc| rpc.answers.remove(&id))
    }

    /// Sends a request and returns its whole answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.wait(id)
    }

    /// Sends a request and returns its result; an error answer fails the test.
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Waits until `find` finds something, and receives messages meanwhile.
    pub fn until<T>(&mut self, what: &str, mut find: impl FnMut(&mut Rpc) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = find(self) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.incoming.recv_timeout(left) {
                Ok(message) => self.sort(message),
                Err(why) => {
                    let why = match why {
                        RecvTimeoutError::Timeout => format!("not in {PATIENCE:?}"),
                        RecvTimeoutError::Disconnected => "the server closed its output".into(),
                    };
                    panic!("waited in vain for {what}: {why}. The last messages were:\n{:#?}\n{}", self.last, alone())
                }
            }
        }
    }

    fn sort(&mut self, message: Value) {
        if self.last.len() == MAX_SHOWN_MESSAGES {
            self.last.pop_front();
        }
        self.last.push_back(format!("{:.1000}", message.to_string()));
        let is_call = message.get("method").is_some();
        match (is_call, message.get("id").and_then(Value::as_u64)) {
            (true, _) if message.get("id").is_some() => self.requests.push(message),
            (true, _) => self.notifications.push(message),
            (false, Some(id)) => {
                if !self.open.remove(&id) {
                    self.surplus.push(id);
                }
                self.answers.insert(id, message);
            }
            (false, None) => self.notifications.push(message),
        }
    }

    /// Waits for a notification of this method that `accept`s; takes it out.
    pub fn notification(&mut self, method: &str, accept: impl Fn(&Value) -> bool) -> Value {
        self.until(&format!("a notification {method}"), |rpc| {
            let at = rpc.notifications.iter().position(|n| n["method"] == method && accept(&n["params"]))?;
            Some(rpc.notifications.remove(at)["params"].clone())
        })
    }

    /// Closes the server's input and waits for its end.
    pub fn close(mut self) -> ExitStatus {
        self.stdin = None;
        self.child.wait().expect("the child can be waited for")
    }

    /// Kills the child, without ending the protocol.
    pub fn vanish(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Rpc {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
