//! A JSON-RPC client over a child's standard input and output, for programs that are no tests: the
//! demo and the benchmark.
//!
//! The client blocks, with a time limit for answers, so that a server that hangs gives an error. No
//! thread of its own reads, so that the time of an answer is the server's.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use crate::framing::{Framing, first_body, framed};
use crate::patience::PATIENCE;

/// A connection to a server that was started for it.
#[derive(Debug)]
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    framing: Framing,
    /// Bytes of messages that are incomplete or not taken.
    buffer: Vec<u8>,
    notifications: VecDeque<Value>,
    last_id: u64,
    /// When the last message had arrived whole, before it was read as JSON.
    arrived: Instant,
    /// The time limit of an answer.
    pub limit: Duration,
}

impl Client {
    /// Starts `command` as the server. Standard error is inherited.
    pub fn spawn(command: &mut Command, framing: Framing) -> Result<Client> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {:?}", command.get_program()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("a child without standard output")?;
        Ok(Client {
            child,
            stdin,
            stdout,
            framing,
            buffer: Vec::new(),
            notifications: VecDeque::new(),
            last_id: 0,
            arrived: Instant::now(),
            limit: PATIENCE,
        })
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: Value) -> Result<()> {
        self.send(&message(method, params))
    }

    /// Sends a request and returns its `result`; an answered `error` is an error here.
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

    /// Does the same as [`Client::request`], and returns the time until the whole answer had
    /// arrived.
    pub fn timed_request(&mut self, method: &str, params: Value) -> Result<(Value, Duration)> {
        let begun = Instant::now();
        let answer = self.request(method, params)?;
        Ok((answer, self.arrived.saturating_duration_since(begun)))
    }

    /// Waits for a notification called `method` whose parameters satisfy `wanted`; earlier ones of
    /// that method are dropped.
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

    /// Closes the server's input, and waits until the server has exited.
    pub fn close(mut self) -> Result<ExitStatus> {
        drop(self.stdin.take());
        let deadline = Instant::now() + self.limit;
        // Output is read on, so that a server that still writes does not wait for this client.
        let mut piece = [0; 1 << 12];
        loop {
            if !self.readable_by(deadline)? {
                bail!("the server did not leave when its input was closed");
            }
            if self.stdout.read(&mut piece)? == 0 {
                return Ok(self.child.wait()?);
            }
        }
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next message; requests from the server are answered with `null`, as a client
    /// without the capability may.
    fn receive(&mut self, deadline: Instant) -> Result<Value> {
        loop {
            let message: Value = serde_json::from_slice(&self.read(deadline)?)?;
            if message.get("method").is_some() && message.get("id").is_some() {
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": Value::Null});
                self.send(&answer)?;
                continue;
            }
            return Ok(message);
        }
    }

    /// Returns the bytes of the next message.
    fn read(&mut self, deadline: Instant) -> Result<Vec<u8>> {
        let mut piece = [0; 1 << 16];
        loop {
            if let Some(body) = first_body(&self.buffer, self.framing) {
                let rest = self.buffer.split_off(body.end);
                let mut message = std::mem::replace(&mut self.buffer, rest);
                message.drain(..body.start);
                return Ok(message);
            }
            if !self.readable_by(deadline)? {
                bail!("nothing came in {} s; before it came {:?}", self.limit.as_secs(), self.notifications);
            }
            match self.stdout.read(&mut piece)? {
                0 => bail!("the server closed the connection"),
                read => self.buffer.extend_from_slice(&piece[..read]),
            }
            self.arrived = Instant::now();
        }
    }

    /// Waits until there is something to read, or end of file.
    fn readable_by(&self, deadline: Instant) -> Result<bool> {
        loop {
            let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now()))?;
            match poll(&mut [PollFd::from_borrowed_fd(self.stdout.as_fd(), PollFlags::IN)], Some(&left)) {
                Ok(ready) => return Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let stdin = self.stdin.as_mut().context("the connection is closed")?;
        // In one piece: a server that is woken for each piece would be measured as slower than it
        // is.
        stdin.write_all(&framed(&serde_json::to_string(message)?, self.framing))?;
        Ok(())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Only after an error: `close` leaves a child that has ended, for which both calls do
        // nothing.
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
