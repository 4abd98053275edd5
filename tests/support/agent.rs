//! A small MCP client in this process, written by hand, so that it can also send messages that no
//! well-behaved client sends.

use consort::session::Session;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::jitter::jitter;
use crate::patience::{PATIENCE, alone, soon};
use crate::unread::Unread;

/// An agent connected to a session.
pub struct Agent {
    lines: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
    next: i64,
    /// Messages from the server that the test has not read.
    unread: Unread,
    /// `_meta` of every request, for the revision that has no handshake.
    meta: Option<Value>,
    server: JoinHandle<()>,
}

impl Agent {
    /// Connects, and sends nothing yet.
    pub fn connect(session: &Session) -> Agent {
        let (ours, theirs) = UnixStream::pair().expect("a pair of sockets");
        let server = tokio::spawn(consort::mcp::serve_socket(session.clone(), theirs));
        let (read, write) = ours.into_split();
        let lines = BufReader::new(read).lines();
        Agent { lines, write, next: 1, unread: Unread::new(), meta: None, server }
    }

    /// Connects with the handshake of 2025-06-18, under a name and with these capabilities.
    pub async fn named(session: &Session, name: &str, capabilities: Value) -> Agent {
        Agent::of_revision(session, "2025-06-18", name, capabilities).await
    }

    /// Connects with the handshake of a revision that has one.
    pub async fn of_revision(session: &Session, revision: &str, name: &str, capabilities: Value) -> Agent {
        let mut agent = Agent::connect(session);
        let params = json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": {"name": name, "version": "1"}});
        let greeting = agent.request("initialize", params).await;
        assert!(greeting.get("error").is_none(), "{greeting}");
        agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        agent
    }

    /// Connects as a client of the revision 2026-07-28, whose requests each carry the version, the
    /// name and the capabilities.
    pub fn modern(session: &Session, name: &str, capabilities: Value) -> Agent {
        let mut agent = Agent::connect(session);
        agent.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
        agent
    }

    /// Ignores messages of these kinds, which the test does not check; others have to be read.
    pub fn ignore(&mut self, methods: &[&'static str]) {
        self.unread.ignore(methods);
    }

    /// Sends a message as it is.
    pub async fn send(&mut self, message: &Value) {
        jitter().await;
        self.unread.sent(message);
        self.write.write_all(format!("{message}\n").as_bytes()).await.expect("the server reads");
    }

    /// Sends a line as it is.
    pub async fn send_text(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.expect("the server reads");
    }

    /// Sends a request; returns its id.
    pub async fn ask(&mut self, method: &str, mut params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// Returns the whole answer to a request.
    pub async fn answer(&mut self, id: i64) -> Value {
        let what = format!("the answer to request {id}");
        self.next(&what, |message| message.get("method").is_none() && message["id"] == id).await
    }

    /// Sends a request and waits for its whole answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool; returns the request's id.
    pub async fn begin(&mut self, tool: &str, arguments: Value) -> i64 {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Calls a tool; returns its result.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.begin(tool, arguments).await;
        self.result(id).await
    }

    /// Returns the result of a call that is no error of the protocol.
    pub async fn result(&mut self, id: i64) -> Value {
        let mut answer = self.answer(id).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Returns the next request or notification of a method that the test has not read.
    pub async fn wait_for(&mut self, method: &str) -> Value {
        self.next(method, |message| message["method"] == method).await
    }

    /// Returns the next message that is wanted; others stay unread. A failure names `what`.
    pub async fn next(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(message) = self.unread.take(&wanted) {
            return message;
        }
        let until = Instant::now() + PATIENCE;
        loop {
            let line = tokio::time::timeout_at(until, self.lines.next_line()).await;
            let Ok(Ok(Some(line))) = line else {
                let why =
                    line.map_or_else(|_| format!("not in {PATIENCE:?}"), |end| format!("the stream ended: {end:?}"));
                panic!(
                    "waited in vain for {what}: {why}. Messages that came and are unread:\n{}\n{}",
                    self.unread.list(),
                    alone()
                );
            };
            let message: Value = serde_json::from_str(&line).expect("the server sends JSON");
            if wanted(&message) {
                return message;
            }
            self.unread.push(message);
        }
    }

    /// Answers a request of the server.
    pub async fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// Disconnects without a message, and waits until the server has closed the connection.
    pub async fn vanish(self) {
        let Agent { server, lines, write, .. } = self;
        drop((lines, write));
        soon(server).await.expect("no panic");
    }
}

/// The one text block of a tool's result.
pub fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}
