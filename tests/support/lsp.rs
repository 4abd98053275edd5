//! A small LSP client, written by hand, so that the server's own code is not used to test it.

use consort::session::Session;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::framing::{Framing, first_body, framed};
use crate::jitter::jitter;
use crate::patience::{PATIENCE, alone, soon};
use crate::unread::Unread;

/// An editor connected to a session.
pub struct Editor {
    read: ReadHalf<DuplexStream>,
    write: WriteHalf<DuplexStream>,
    buffer: Vec<u8>,
    next: i64,
    /// Messages from the server that the test has not read.
    unread: Unread,
    /// The section `consort` of the editor's settings.
    pub settings: Value,
    /// The front end.
    pub server: JoinHandle<consort::lsp::Ended>,
}

impl Editor {
    /// Connects, and sends nothing yet.
    pub fn connect(session: &Session) -> Editor {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let server = tokio::spawn(consort::lsp::serve(session.clone(), read, write));
        let (read, write) = tokio::io::split(ours);
        let (buffer, unread) = (Vec::new(), Unread::new());
        Editor { read, write, buffer, next: 1, unread, settings: Value::Null, server }
    }

    /// Connects and initializes, with these capabilities.
    pub async fn start(session: &Session, capabilities: Value) -> Editor {
        let mut editor = Editor::connect(session);
        editor.initialize(json!({"capabilities": capabilities})).await;
        editor
    }

    /// Sends `initialize` and `initialized`; returns the answer to the first.
    pub async fn initialize(&mut self, mut params: Value) -> Value {
        params["clientInfo"] = json!({"name": "a test", "version": "1"});
        let answer = self.request("initialize", params).await.expect("initialize");
        self.notify("initialized", json!({})).await;
        answer
    }

    /// Sends a request; returns its id.
    pub async fn ask(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// Returns the answer to a request: its result, or its error.
    pub async fn answer(&mut self, id: i64) -> Result<Value, Value> {
        let what = format!("the answer to request {id}");
        let mut answer = self.wait(&what, |message| message.get("method").is_none() && message["id"] == id).await;
        match answer.get_mut("error") {
            Some(error) => Err(error.take()),
            None => Ok(answer["result"].take()),
        }
    }

    /// Sends a request and waits for its answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.ask(method, params).await;
        self.answer(id).await
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Sends `workspace/executeCommand`; returns its id.
    pub async fn ask_command(&mut self, command: &str, argument: Value) -> i64 {
        self.ask("workspace/executeCommand", json!({"command": command, "arguments": [argument]})).await
    }

    /// Executes `workspace/executeCommand`.
    pub async fn command(&mut self, command: &str, argument: Value) -> Result<Value, Value> {
        let id = self.ask_command(command, argument).await;
        self.answer(id).await
    }

    /// Returns the values of `consort.eval`.
    pub async fn eval(&mut self, code: &str) -> Vec<String> {
        let result = self.command("consort.eval", json!({"code": code})).await.expect("an outcome");
        assert_eq!(result["status"], "ok", "{code}: {result}");
        serde_json::from_value(result["values"].clone()).expect("strings")
    }

    /// Sends `didOpen`, version 1.
    pub async fn open(&mut self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "lisp", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document})).await;
    }

    /// Sends `didChange` of one range, `[line, character, line, character]`.
    pub async fn change(
        &mut self,
        uri: &str,
        version: i32,
        [line, character, to_line, to_character]: [u32; 4],
        text: &str,
    ) {
        let range = json!({"start": {"line": line, "character": character}, "end": {"line": to_line, "character": to_character}});
        let changes = json!([{"range": range, "text": text}]);
        self.notify(
            "textDocument/didChange",
            json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": changes}),
        )
        .await;
    }

    /// Returns the next diagnostics published for a document that satisfy `wanted`, as
    /// `line:character-line:character code`. Those before are dropped.
    pub async fn diagnostics(&mut self, uri: &str, wanted: impl Fn(i64, &[String]) -> bool) -> (i64, Vec<String>) {
        let until = Instant::now() + PATIENCE;
        let mut before = Vec::new();
        loop {
            let what = format!("other diagnostics of {uri} than {before:?}");
            let is_of = |message: &Value| {
                message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri
            };
            let published = self.wait_until(until, &what, is_of).await["params"].take();
            let (version, lines) = (published["version"].as_i64().unwrap_or(-1), lines(&published["diagnostics"]));
            if wanted(version, &lines) {
                return (version, lines);
            }
            before.push((version, lines));
        }
    }

    /// Returns the parameters of the next notification of a kind that satisfies `wanted`. Others
    /// stay unread.
    pub async fn wait_for(&mut self, method: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut message = self.wait(method, |message| message["method"] == method && wanted(&message["params"])).await;
        message["params"].take()
    }

    /// Returns the next message that is wanted; others stay unread. A failure names `what`.
    async fn wait(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.wait_until(Instant::now() + PATIENCE, what, wanted).await
    }

    async fn wait_until(&mut self, until: Instant, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(message) = self.unread.take(&wanted) {
            return message;
        }
        loop {
            let message = tokio::time::timeout_at(until, self.receive()).await;
            let Ok(Some(message)) = message else {
                let why = if message.is_ok() { "the stream ended".to_owned() } else { format!("not in {PATIENCE:?}") };
                panic!(
                    "waited in vain for {what}: {why}. Messages that came and are unread:\n{}\n{}",
                    self.unread.list(),
                    alone()
                );
            };
            if wanted(&message) {
                return message;
            }
            self.unread.push(message);
        }
    }

    /// Returns the next question whether an agent may do something (either request), which the test
    /// answers with [`Editor::reply`].
    pub async fn question(&mut self) -> Value {
        let asks = |method: &str| matches!(method, "window/showMessageRequest" | "consort/approve");
        self.wait("a question", |message| message["method"].as_str().is_some_and(asks)).await
    }

    /// Returns the next request for a line of input, which the test answers with [`Editor::reply`].
    pub async fn input_wanted(&mut self) -> Value {
        self.wait("consort/input", |message| message["method"] == "consort/input").await
    }

    /// Waits until a question is withdrawn: the request is cancelled, and a message gives the
    /// reason.
    pub async fn withdrawn(&mut self, question: &Value) {
        self.wait_for("$/cancelRequest", |params| params["id"] == question["id"]).await;
        let is_over = |params: &Value| params["message"].as_str().is_some_and(|text| text.starts_with("No answer is"));
        self.wait_for("window/showMessage", is_over).await;
    }

    /// Returns true if such a question has come. The server's messages before its answer to a
    /// request have been received then.
    pub async fn was_asked(&mut self) -> bool {
        self.command("consort.status", json!({})).await.expect("a status");
        self.unread
            .has(|message| matches!(message["method"].as_str(), Some("window/showMessageRequest" | "consort/approve")))
    }

    /// Returns true if a notification of a kind that satisfies `wanted` has come and is unread.
    pub fn has(&self, method: &str, wanted: impl Fn(&Value) -> bool) -> bool {
        self.unread.has(|message| message["method"] == method && wanted(&message["params"]))
    }

    /// Answers a request of the server.
    pub async fn reply(&mut self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// Presses a button of the next question; returns the question.
    pub async fn press(&mut self, title: &str) -> Value {
        let question = self.question().await;
        self.reply(&question, json!({"title": title})).await;
        question
    }

    /// Returns the next message; `None` at end of file. Requests, except questions and requests for
    /// input, are answered as an editor would.
    async fn receive(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.parse() {
                if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str())
                    && !matches!(method, "window/showMessageRequest" | "consort/approve" | "consort/input")
                {
                    let result = match method {
                        "workspace/configuration" => json!([self.settings]),
                        "workspace/applyEdit" => json!({"applied": true}),
                        _ => Value::Null,
                    };
                    self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
                }
                return Some(message);
            }
            if self.read.read_buf(&mut self.buffer).await.ok()? == 0 {
                return None;
            }
        }
    }

    fn parse(&mut self) -> Option<Value> {
        let body = first_body(&self.buffer, Framing::Headers)?;
        let message = serde_json::from_slice(&self.buffer[body.clone()]).expect("the server sends JSON");
        self.buffer.drain(..body.end);
        Some(message)
    }

    /// Ignores messages of these kinds, which the test does not check; others have to be read.
    pub fn ignore(&mut self, methods: &[&'static str]) {
        self.unread.ignore(methods);
    }

    /// Sends a message as it is.
    pub async fn send(&mut self, message: &Value) {
        jitter().await;
        self.unread.sent(message);
        self.send_body(message.to_string().as_bytes()).await;
    }

    /// Sends the body of a message as it is, also one that is not JSON.
    pub async fn send_body(&mut self, body: &[u8]) {
        self.write.write_all(&framed(body, Framing::Headers)).await.expect("the server reads");
    }

    /// Disconnects without a message.
    pub async fn vanish(self) {
        let Editor { server, read, write, .. } = self;
        drop((read, write));
        let ended = soon(server).await;
        assert_eq!(ended.expect("no panic"), consort::lsp::Ended::Disconnected);
    }

    /// Ends the connection as the protocol says.
    pub async fn leave(mut self) {
        self.request("shutdown", Value::Null).await.expect("shutdown");
        self.notify("exit", Value::Null).await;
        assert_eq!(soon(self.server).await.expect("no panic"), consort::lsp::Ended::Exit { clean: true });
    }
}

/// Returns diagnostics as `line:character-line:character code`.
pub fn lines(diagnostics: &Value) -> Vec<String> {
    let line = |d: &Value| {
        let (start, end) = (&d["range"]["start"], &d["range"]["end"]);
        let code = d["code"].as_str().unwrap_or_default();
        format!("{}:{}-{}:{} {code}", start["line"], start["character"], end["line"], end["character"])
    };
    diagnostics.as_array().map(|all| all.iter().map(line).collect()).unwrap_or_default()
}
