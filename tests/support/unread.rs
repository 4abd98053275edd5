//! Messages of a server that a client in a test received and the test has not read. A message that
//! is unread when the client is dropped fails the test, unless the test ignores messages of that
//! kind.

use std::collections::VecDeque;
use std::time::Instant;

use serde_json::Value;

/// Kinds that every test ignores: requests that the client answers by itself, log messages, and
/// messages that come or not depending on time: diagnostics, progress, states of the image,
/// beginnings of evaluations, and the end of requests to which nobody needs an answer any more.
const ALWAYS_IGNORED: [&str; 16] = [
    "$/cancelRequest",
    "$/progress",
    "client/registerCapability",
    "consort/begun",
    "consort/imageState",
    "notifications/cancelled",
    "notifications/message",
    "notifications/progress",
    "notifications/resources/updated",
    "textDocument/publishDiagnostics",
    "window/logMessage",
    "window/workDoneProgress/create",
    "workspace/codeLens/refresh",
    "workspace/configuration",
    "workspace/inlayHint/refresh",
    "workspace/semanticTokens/refresh",
];
/// The limit of a message's text in a failure, in characters.
const MAX_TEXT_CHARS: usize = 600;

/// The messages that a test has not read.
pub struct Unread {
    connected: Instant,
    /// The last request or notification that the client sent.
    sent: String,
    messages: VecDeque<Message>,
    ignored: Vec<&'static str>,
}

struct Message {
    body: Value,
    /// The time and the event after which the message came.
    when: String,
}

impl Unread {
    /// Begins for a client that has just connected.
    pub fn new() -> Unread {
        Unread { connected: Instant::now(), sent: String::new(), messages: VecDeque::new(), ignored: Vec::new() }
    }

    /// Records that the client sent a message.
    pub fn sent(&mut self, message: &Value) {
        let (id, method) = (&message["id"], message["method"].as_str().unwrap_or("an answer"));
        self.sent = if id.is_null() { method.to_owned() } else { format!("{method} (id {id})") };
    }

    /// Adds a message of the server.
    pub fn push(&mut self, body: Value) {
        let after = if self.sent.is_empty() { "before anything was sent" } else { &self.sent };
        let when = format!("{:.3} s after the connection, after {after}", self.connected.elapsed().as_secs_f64());
        self.messages.push_back(Message { body, when });
    }

    /// Takes out the first message that is wanted.
    pub fn take(&mut self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let at = self.messages.iter().position(|message| wanted(&message.body))?;
        self.messages.remove(at).map(|message| message.body)
    }

    /// True if a message that is wanted is among them; it stays.
    pub fn has(&self, wanted: impl Fn(&Value) -> bool) -> bool {
        self.messages.iter().any(|message| wanted(&message.body))
    }

    /// Ignores messages of these kinds, which the test does not check.
    pub fn ignore(&mut self, methods: &[&'static str]) {
        self.ignored.extend(methods);
    }

    /// The messages, each in a line, with the time when it came.
    pub fn list(&self) -> String {
        self.messages.iter().map(Message::line).collect::<Vec<_>>().join("\n")
    }

    fn counted(&self) -> Vec<String> {
        let ignored = |method: &str| ALWAYS_IGNORED.contains(&method) || self.ignored.contains(&method);
        let method = |message: &Message| message.body["method"].as_str().map(str::to_owned);
        // Answers are not counted: a request may be one that the test drops.
        let counted = |message: &&Message| method(message).is_some_and(|method| !ignored(&method));
        self.messages.iter().filter(counted).map(Message::line).collect()
    }
}

impl Message {
    fn line(&self) -> String {
        let text: String = self.body.to_string().chars().take(MAX_TEXT_CHARS).collect();
        format!("- {}: {text}", self.when)
    }
}

impl Default for Unread {
    fn default() -> Unread {
        Unread::new()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let left = self.counted();
        if !left.is_empty() && !std::thread::panicking() {
            panic!(
                "{} message(s) of the server are unread at the end of the test. Read them, or name their kinds in \
                 `ignore(&[...])`:\n{}",
                left.len(),
                left.join("\n")
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(method: &str) -> Unread {
        let mut unread = Unread::new();
        unread.sent(&json!({"id": 7, "method": "textDocument/hover"}));
        unread.push(json!({"method": method, "params": {"text": "hello"}}));
        unread
    }

    #[test]
    #[should_panic(expected = "after textDocument/hover (id 7): {\"method\":\"window/showMessage\"")]
    fn an_unread_message_fails_the_test() {
        drop(with("window/showMessage"));
    }

    #[test]
    fn a_message_that_is_read_or_ignored_does_not() {
        let mut read = with("window/showMessage");
        assert!(read.has(|message| message["method"] == "window/showMessage"));
        assert!(read.take(|message| message["params"]["text"] == "hello").is_some());
        let mut ignored = with("window/showMessage");
        ignored.ignore(&["window/showMessage"]);
        drop((read, ignored, with("$/progress")));
    }
}
