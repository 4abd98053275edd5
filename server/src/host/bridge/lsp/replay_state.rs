//! The state that a new host needs to continue for a killed one: the client's `initialize`, its
//! settings, its workspace folder changes, and its current documents. The state is collected from
//! the client's messages while the bridge forwards them. Other messages are not recorded.

use ropey::Rope;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::framing::json::from_client;
use crate::text::document::{Edit, opened_by};
use crate::text::position::{Position, PositionEncoding};

/// The limit of all recorded documents together, in bytes of UTF-8. Above the limit, the state is
/// given up.
const LIMIT: usize = 256 << 20;
/// The maximum number of recorded workspace folder changes. Above the limit, the state is given up.
const FOLDERS: usize = 1000;

/// The recorded messages and documents of one client. `None` means that no such message has come.
#[derive(Debug, Default)]
pub(super) struct ReplayState {
    initialize: Option<Vec<u8>>,
    /// True if `initialize` has been answered with a result.
    answered: bool,
    initialized: Option<Vec<u8>>,
    settings: Option<Vec<u8>>,
    folders: Vec<Vec<u8>>,
    encoding: PositionEncoding,
    documents: Vec<Open>,
    /// The length of all documents' texts in UTF-8.
    bytes: usize,
    /// True if the state was given up: a message could not be interpreted, or a limit was exceeded.
    lost: bool,
}

#[derive(Debug)]
struct Open {
    uri: String,
    language: String,
    version: i64,
    text: Rope,
}

#[derive(Deserialize)]
struct Message {
    params: Params,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    text_document: TextDocument,
    #[serde(default)]
    content_changes: Vec<Change>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TextDocument {
    uri: String,
    #[serde(default)]
    language_id: String,
    #[serde(default)]
    version: i64,
    #[serde(default)]
    text: Option<String>,
}

#[derive(Deserialize)]
struct Change {
    #[serde(default)]
    range: Option<Range>,
    text: String,
}

#[derive(Deserialize)]
struct Range {
    start: Place,
    end: Place,
}

#[derive(Deserialize)]
struct Place {
    line: u32,
    character: u32,
}

impl From<Change> for Edit {
    fn from(change: Change) -> Edit {
        Edit { range: change.range.map(|Range { start, end }| (start.into(), end.into())), text: change.text }
    }
}

impl From<Place> for Position {
    fn from(place: Place) -> Position {
        Position { line: place.line, column: place.character }
    }
}

impl ReplayState {
    /// Records a message of the client if it is part of the state. `method` is the method of the
    /// message.
    pub(super) fn note(&mut self, method: &str, message: &[u8]) {
        match method {
            "initialize" => self.initialize = Some(message.to_vec()),
            "initialized" => self.initialized = Some(message.to_vec()),
            "workspace/didChangeConfiguration" => self.settings = Some(message.to_vec()),
            "workspace/didChangeWorkspaceFolders" if self.folders.len() < FOLDERS => {
                self.folders.push(message.to_vec());
            }
            "workspace/didChangeWorkspaceFolders" => self.lost = true,
            "textDocument/didOpen" | "textDocument/didChange" | "textDocument/didClose" if !self.lost => {
                match from_client::<Message>(message) {
                    Ok(message) => self.document(method, message.params),
                    // The host reports the error. The state that it keeps is not known here.
                    Err(_) => self.lost = true,
                }
            }
            _ => {}
        }
    }

    fn document(&mut self, method: &str, params: Params) {
        let TextDocument { uri, language_id, version, text } = params.text_document;
        let at = self.documents.iter().position(|open| open.uri == uri);
        match (method, at) {
            ("textDocument/didChange", Some(at)) => {
                let open = &mut self.documents[at];
                self.bytes -= open.text.len_bytes();
                let mut edits = params.content_changes.into_iter().map(Edit::from);
                let applied = edits.all(|edit| edit.apply_to(&mut open.text, self.encoding));
                open.version = version;
                self.bytes += open.text.len_bytes();
                if !applied {
                    self.give_up();
                }
            }
            // The host opens an unknown document if the change contains a whole text.
            ("textDocument/didChange", None) => {
                let edits = params.content_changes.into_iter().map(Edit::from).collect();
                let Some((text, rest)) = opened_by(edits) else { return self.give_up() };
                let mut text = Rope::from_str(&text);
                if !rest.iter().all(|edit| edit.apply_to(&mut text, self.encoding)) {
                    return self.give_up();
                }
                self.bytes += text.len_bytes();
                self.documents.push(Open { uri, language: language_id, version, text });
            }
            (_, at) => {
                if let Some(at) = at {
                    self.bytes -= self.documents.remove(at).text.len_bytes();
                }
                if method == "textDocument/didOpen" {
                    let Some(text) = text else { return self.give_up() };
                    self.bytes += text.len();
                    self.documents.push(Open { uri, language: language_id, version, text: Rope::from_str(&text) });
                }
            }
        }
        if self.bytes > LIMIT {
            self.give_up();
        }
    }

    /// Gives the state up, because a message could not be interpreted or a limit was exceeded.
    /// Another host then cannot continue the session.
    pub(super) fn give_up(&mut self) {
        self.lost = true;
        self.documents = Vec::new();
    }

    /// Records the host's answer to `initialize`, with the negotiated position encoding.
    pub(super) fn agreed(&mut self, answer: &[u8]) {
        let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
        self.answered = answer["result"].is_object();
        self.encoding = match answer["result"]["capabilities"]["positionEncoding"].as_str() {
            Some("utf-8") => PositionEncoding::Utf8,
            Some("utf-32") => PositionEncoding::Utf32,
            _ => PositionEncoding::Utf16,
        };
    }

    /// Returns the `initialize` message to repeat. `None` means that no host has answered it with a
    /// result, or that the state was given up.
    pub(super) fn opening(&self) -> Option<&[u8]> {
        if self.answered && !self.lost { self.initialize.as_deref() } else { None }
    }

    /// Returns the `initialize` message if no host has answered it with a result, for the next host
    /// to answer. `None` means that it was so answered or never came, or that the state was given
    /// up.
    pub(super) fn unanswered(&self) -> Option<&[u8]> {
        if self.answered || self.lost { None } else { self.initialize.as_deref() }
    }

    /// Returns the messages to send after the answer to `initialize`.
    pub(super) fn replay(&self) -> Vec<Vec<u8>> {
        let mut messages: Vec<Vec<u8>> =
            self.initialized.iter().chain(&self.folders).chain(&self.settings).cloned().collect();
        messages.extend(self.documents.iter().map(|open| {
            let document = json!({"uri": open.uri, "languageId": open.language, "version": open.version, "text": open.text.to_string()});
            let params = json!({"textDocument": document});
            json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": params}).to_string().into_bytes()
        }));
        messages
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn note(replay_state: &mut ReplayState, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        replay_state.note(method, message.to_string().as_bytes());
    }

    fn open(replay_state: &mut ReplayState, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "commonlisp", "version": 1, "text": text});
        note(replay_state, "textDocument/didOpen", json!({"textDocument": document}));
    }

    fn replayed(replay_state: &ReplayState) -> Vec<Value> {
        replay_state.replay().iter().map(|message| serde_json::from_slice(message).unwrap()).collect()
    }

    #[test]
    fn a_new_host_is_told_the_documents_as_they_are_now() {
        let mut replay_state = ReplayState::default();
        note(&mut replay_state, "initialize", json!({"capabilities": {}}));
        assert!(replay_state.opening().is_none(), "not before it was answered");
        replay_state.agreed(br#"{"id": 1, "result": {"capabilities": {"positionEncoding": "utf-16"}}}"#);
        note(&mut replay_state, "initialized", json!({}));
        note(&mut replay_state, "workspace/didChangeConfiguration", json!({"settings": 1}));
        note(&mut replay_state, "workspace/didChangeConfiguration", json!({"settings": 2}));
        open(&mut replay_state, "file:///a.lisp", "(a \u{1D11E} b)\n");
        open(&mut replay_state, "file:///b.lisp", "(b)");
        let range = json!({"start": {"line": 0, "character": 6}, "end": {"line": 0, "character": 7}});
        let changes = json!([{"range": range, "text": "changed"}]);
        let document = json!({"uri": "file:///a.lisp", "version": 7});
        note(&mut replay_state, "textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
        note(&mut replay_state, "textDocument/didClose", json!({"textDocument": {"uri": "file:///b.lisp"}}));
        assert!(replay_state.opening().is_some());
        let told = replayed(&replay_state);
        let methods: Vec<_> = told.iter().map(|message| message["method"].as_str().unwrap()).collect();
        assert_eq!(methods, ["initialized", "workspace/didChangeConfiguration", "textDocument/didOpen"]);
        assert_eq!(told[1]["params"]["settings"], 2);
        let document = &told[2]["params"]["textDocument"];
        assert_eq!(
            (document["text"].as_str(), document["version"].as_i64()),
            (Some("(a \u{1D11E} changed)\n"), Some(7))
        );
    }

    #[test]
    fn what_is_not_unicode_is_remembered_as_the_host_reads_it() {
        let mut replay_state = ReplayState::default();
        let message = br#"{"params": {"textDocument": {"uri": "file:///a.lisp", "text": "(a \ud83d ~)"}}}"#;
        let message: Vec<u8> = message.iter().map(|byte| if *byte == b'~' { 0xff } else { *byte }).collect();
        replay_state.note("textDocument/didOpen", &message);
        assert_eq!(replayed(&replay_state)[0]["params"]["textDocument"]["text"], "(a \u{fffd} \u{fffd})");
    }

    #[test]
    fn what_cannot_be_followed_is_not_taken_up_again() {
        let mut replay_state = ReplayState::default();
        note(&mut replay_state, "initialize", json!({}));
        replay_state.agreed(br#"{"id": 1, "result": {"capabilities": {}}}"#);
        assert!(replay_state.opening().is_some());
        note(&mut replay_state, "textDocument/didOpen", json!({"textDocument": 3}));
        assert!(replay_state.opening().is_none());

        let mut replay_state = ReplayState::default();
        note(&mut replay_state, "initialize", json!({}));
        replay_state.agreed(br#"{"id": 1, "result": {"capabilities": {}}}"#);
        open(&mut replay_state, "file:///a.lisp", "(a)\n(b)\n");
        let range = json!({"start": {"line": 1, "character": 0}, "end": {"line": 0, "character": 0}});
        let changes = json!([{"range": range, "text": "x"}]);
        let document = json!({"uri": "file:///a.lisp", "version": 2});
        note(&mut replay_state, "textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
        assert!(replay_state.opening().is_none(), "the editor's text is not known");
    }

    #[test]
    fn a_document_that_was_opened_without_a_text_is_known_by_a_whole_one_only() {
        let document = json!({"uri": "file:///a.lisp", "version": 2});
        let whole = json!([{"text": "(a)"}]);
        let part =
            json!([{"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "text": "b"}]);
        let changed = |changes: &Value| {
            let mut replay_state = ReplayState::default();
            note(&mut replay_state, "initialize", json!({}));
            replay_state.agreed(br#"{"result": {"capabilities": {}}}"#);
            note(
                &mut replay_state,
                "textDocument/didChange",
                json!({"textDocument": document, "contentChanges": changes}),
            );
            replay_state
        };
        let told = replayed(&changed(&whole));
        assert_eq!(told[0]["params"]["textDocument"]["text"], "(a)");
        let mut replay_state = changed(&whole);
        assert!(replay_state.opening().is_some());
        note(&mut replay_state, "textDocument/didOpen", json!({"textDocument": document}));
        assert!(replay_state.opening().is_none(), "the editor's text is not known");
        assert!(changed(&part).opening().is_none(), "the editor's text is not known");
    }
}
