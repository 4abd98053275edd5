//! A JSON-RPC client over a child's standard input and output, for programs that are no tests: the demo and the benchmark.
//!
//! Blocking, one thread to read; it waits for answers with a limit, so that a server that hangs is an error and not a hang.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// How messages are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// LSP: `Content-Length` headers.
    Headers,
    /// MCP over stdio: one message a line.
    Lines,
}

/// A connection to a server that was started for it.
#[derive(Debug)]
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    framing: Framing,
    incoming: Receiver<Value>,
    notifications: VecDeque<Value>,
    last_id: u64,
    /// How long an answer may take.
    pub limit: Duration,
}

impl Client {
    /// Start `command` and speak to it. Its standard error stays ours.
    pub fn spawn(command: &mut Command, framing: Framing) -> Result<Client> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().context("a child without standard output")?);
        let (sender, incoming) = channel();
        std::thread::spawn(move || {
            // The end of the stream and a message that cannot be read end the thread; the client sees a closed channel.
            while let Ok(Some(message)) = read_message(&mut stdout, framing) {
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Ok(Client {
            child,
            stdin,
            framing,
            incoming,
            notifications: VecDeque::new(),
            last_id: 0,
            limit: Duration::from_secs(60),
        })
    }

    /// Send a notification.
    pub fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        self.send(&message(method, params))
    }

    /// Send a request and return its `result`; an answered `error` is an error here.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let mut request = message(method, params);
        request["id"] = json!(id);
        self.send(&request)?;
        let deadline = Instant::now() + self.limit;
        loop {
            let mut message = self.receive(deadline).with_context(|| format!("waiting for the answer to {method}"))?;
            if message.get("method").is_some() {
                self.notifications.push_back(message);
            } else if message["id"] == json!(id) {
                if let Some(error) = message.get("error") {
                    bail!("{method} was answered with an error: {error}");
                }
                return Ok(message["result"].take());
            }
        }
    }

    /// Wait for a notification called `method` whose parameters satisfy `wanted`; earlier ones of that method are dropped.
    pub fn wait_for(&mut self, method: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let deadline = Instant::now() + self.limit;
        loop {
            let mut message = match self.notifications.pop_front() {
                Some(message) => message,
                None => self.receive(deadline).with_context(|| format!("waiting for {method}"))?,
            };
            if message["method"] == method && wanted(&message["params"]) {
                return Ok(message["params"].take());
            }
        }
    }

    /// Close our end, and wait until the server has left.
    pub fn close(mut self) -> Result<ExitStatus> {
        drop(self.stdin.take());
        let deadline = Instant::now() + self.limit;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            // Its output is read on, so that a server which still has something to say does not wait for us.
            match self.incoming.recv_timeout(Duration::from_millis(20)) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(self.child.wait()?),
                Err(RecvTimeoutError::Timeout) => bail!("the server did not leave when its input was closed"),
            }
        }
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next message; requests from the server are answered with `null` on the way, as a client without the capability may.
    fn receive(&mut self, deadline: Instant) -> Result<Value> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = match self.incoming.recv_timeout(left) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => bail!("no answer in {} s", self.limit.as_secs()),
                Err(RecvTimeoutError::Disconnected) => bail!("the server closed the connection"),
            };
            if message.get("method").is_some() && message.get("id").is_some() {
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": Value::Null});
                self.send(&answer)?;
                continue;
            }
            return Ok(message);
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the connection is closed")?;
        let body = serde_json::to_string(message)?;
        match self.framing {
            Framing::Headers => write!(stdin, "Content-Length: {}\r\n\r\n{body}", body.len())?,
            Framing::Lines => writeln!(stdin, "{body}")?,
        }
        stdin.flush()?;
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Only on the way out of an error: `close` leaves a child that has ended, for which both calls do nothing.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// `null` parameters are left out: methods without parameters take none.
fn message(method: &str, params: Value) -> Value {
    let mut message = json!({"jsonrpc": "2.0", "method": method});
    if !params.is_null() {
        message["params"] = params;
    }
    message
}

fn read_message(from: &mut impl BufRead, framing: Framing) -> Result<Option<Value>> {
    let mut line = String::new();
    if framing == Framing::Lines {
        return Ok(if from.read_line(&mut line)? == 0 { None } else { Some(serde_json::from_str(&line)?) });
    }
    let mut length = None;
    loop {
        line.clear();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse::<usize>()?);
        }
    }
    let mut body = vec![0; length.context("a message without Content-Length")?];
    from.read_exact(&mut body)?;
    Ok(Some(serde_json::from_slice(&body)?))
}
