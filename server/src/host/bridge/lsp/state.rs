//! The state of the conversation, shared by both directions. Messages are passed on unchanged,
//! except that the requests of a host that replaced a killed one get other ids, because the client
//! may still answer the requests of the killed host.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::replay_state::ReplayState;
use crate::host::bridge::pending::{Peek, Pending};

/// The state of the conversation.
#[derive(Debug, Default)]
pub(super) struct BridgeState {
    pub(super) pending: Pending,
    pub(super) replay_state: ReplayState,
    pub(super) shutdown: bool,
    /// True once the client has sent `exit` or closed its end.
    pub(super) over: bool,
    /// The number of the host, counted from 0.
    pub(super) host: u64,
    /// The process id of the current host.
    pub(super) pid: u32,
    /// The time of the last message in either direction.
    last_activity: Option<Instant>,
    /// The id of the repeated `initialize`, whose answer is not passed on to the client.
    repeated_initialize: Option<Value>,
    /// The id of the request that follows the remembered documents. Its answer means that the host
    /// has received them.
    reopened: Option<Value>,
    /// The progress that has begun and not ended, by token.
    progress: HashMap<String, Value>,
    /// The capabilities that a host registered, as ids and methods.
    registered: Vec<(Value, Value)>,
}

/// The handling of a host's message.
pub(super) enum Passed {
    /// The message is passed on unchanged.
    AsItIs,
    /// This message is passed on instead.
    Instead(Value),
    /// The message answers the request after the remembered documents. Nothing is passed on.
    Reopened,
    /// The message answers the repeated `initialize`. Nothing is passed on, and the remembered
    /// state is sent. True if `initialize` succeeded.
    Greeted(bool),
}

impl BridgeState {
    /// Records the time of a message.
    pub(super) fn note_activity(&mut self) {
        self.last_activity = Some(Instant::now());
    }

    /// Returns true when an answer is due and no message has passed for `long`.
    pub(super) fn is_waiting_for(&self, long: Duration) -> bool {
        !self.pending.is_empty() && self.last_activity.is_some_and(|at| at.elapsed() >= long)
    }

    /// Records a message of the client before it is passed on. Returns the replacement of the
    /// message, if any. An empty one means that nothing is passed on.
    pub(super) fn outgoing(&mut self, peek: &Peek<'_>, message: &[u8]) -> Option<Vec<u8>> {
        self.note_activity();
        if let Some((id, method)) = peek.request() {
            self.shutdown |= method == "shutdown";
            self.pending.insert(id, method);
        } else if peek.method.as_deref() == Some("exit") {
            self.over = true;
        } else if let Some(id) = peek.answer()
            && self.host > 0
        {
            let own =
                id.as_str().and_then(|id| id.strip_prefix(&self.prefix())).and_then(|id| serde_json::from_str(id).ok());
            let answer = own.and_then(|id: Value| {
                let mut answer: Value = serde_json::from_slice(message).ok()?;
                answer["id"] = id;
                Some(answer.to_string().into_bytes())
            });
            // The answer to a replaced host, or to the bridge itself, is not passed on.
            return Some(answer.unwrap_or_default());
        }
        None
    }

    /// Records a message of the host, and returns its handling.
    pub(super) fn incoming(&mut self, peek: &Peek<'_>, message: &[u8]) -> Passed {
        if let Some(id) = peek.answer() {
            if self.repeated_initialize.as_ref() == Some(id) {
                self.repeated_initialize = None;
                let answer: Value = serde_json::from_slice(message).unwrap_or_default();
                return Passed::Greeted(answer["result"].is_object());
            }
            if self.reopened.as_ref() == Some(id) {
                self.reopened = None;
                return Passed::Reopened;
            }
            if self.pending.remove(id).as_deref() == Some("initialize") {
                self.replay_state.agreed(message);
            }
            return Passed::AsItIs;
        }
        match peek.method.as_deref() {
            Some("$/progress") => self.note_progress(message),
            Some(method @ ("client/registerCapability" | "client/unregisterCapability")) => {
                self.note_registration(method, message);
            }
            _ => {}
        }
        match peek.request() {
            Some((id, _)) if self.host > 0 => {
                let Ok(mut request) = serde_json::from_slice::<Value>(message) else { return Passed::AsItIs };
                request["id"] = format!("{}{id}", self.prefix()).into();
                Passed::Instead(request)
            }
            _ => Passed::AsItIs,
        }
    }

    /// Returns a request whose answer means that the host has received all messages before it.
    pub(super) fn after_documents(&mut self) -> Value {
        let id = Value::from(format!("{}reopened", self.prefix()));
        self.reopened = Some(id.clone());
        let params = json!({"command": "consort.status", "arguments": []});
        json!({"jsonrpc": "2.0", "id": id, "method": "workspace/executeCommand", "params": params})
    }

    fn prefix(&self) -> String {
        format!("consort-{}:", self.host)
    }

    fn note_progress(&mut self, message: &[u8]) {
        let message: Value = serde_json::from_slice(message).unwrap_or_default();
        let token = &message["params"]["token"];
        match message["params"]["value"]["kind"].as_str() {
            Some("begin") => drop(self.progress.insert(token.to_string(), token.clone())),
            Some("end") => drop(self.progress.remove(&token.to_string())),
            _ => {}
        }
    }

    fn note_registration(&mut self, method: &str, message: &[u8]) {
        let message: Value = serde_json::from_slice(message).unwrap_or_default();
        // "unregisterations" is the specification's own spelling.
        let list = if method == "client/registerCapability" { "registrations" } else { "unregisterations" };
        for item in message["params"][list].as_array().into_iter().flatten() {
            self.registered.retain(|(id, _)| *id != item["id"]);
            if method == "client/registerCapability" {
                self.registered.push((item["id"].clone(), item["method"].clone()));
            }
        }
    }

    /// Returns the messages that the client needs after the end of a host, so that it waits for
    /// nothing. The pending requests are answered with `why`.
    pub(super) fn settle(&mut self, why: &str) -> Vec<Value> {
        let mut told: Vec<Value> = self.pending.take().map(|(id, _)| super::error_answer(&id, -32603, why)).collect();
        told.extend(self.progress.drain().map(|(_, token)| {
            json!({"jsonrpc": "2.0", "method": "$/progress", "params": {"token": token, "value": {"kind": "end"}}})
        }));
        told
    }

    /// Prepares for the next host, so that the answer to its `initialize` is not passed on. Returns
    /// the request that cancels the registrations of the last host, because the next host registers
    /// anew.
    pub(super) fn next_host(&mut self, initialize: &[u8]) -> Option<Value> {
        self.host += 1;
        self.repeated_initialize = Peek::of(initialize).and_then(|peek| peek.id);
        let registered = std::mem::take(&mut self.registered);
        (!registered.is_empty()).then(|| {
            let items: Vec<Value> = registered.iter().map(|(id, method)| json!({"id": id, "method": method})).collect();
            let id = format!("consort-unregister-{}", self.host);
            json!({"jsonrpc": "2.0", "id": id, "method": "client/unregisterCapability", "params": {"unregisterations": items}})
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn incoming(state: &mut BridgeState, message: &Value) -> Passed {
        let text = message.to_string();
        state.incoming(&Peek::of(text.as_bytes()).unwrap(), text.as_bytes())
    }

    fn outgoing(state: &mut BridgeState, message: &Value) -> Option<String> {
        let text = message.to_string();
        let passed = state.outgoing(&Peek::of(text.as_bytes()).unwrap(), text.as_bytes());
        passed.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn each_host_is_answered_what_it_asked_itself() {
        let mut state = BridgeState::default();
        let request = json!({"id": 0, "method": "client/registerCapability",
                             "params": {"registrations": [{"id": "r", "method": "m"}]}});
        assert!(matches!(incoming(&mut state, &request), Passed::AsItIs));
        let unregister = state.next_host(br#"{"id": 1, "method": "initialize"}"#).unwrap();
        assert_eq!(unregister["params"]["unregisterations"], json!([{"id": "r", "method": "m"}]));
        assert!(matches!(incoming(&mut state, &json!({"id": 1, "result": {}})), Passed::Greeted(true)));
        let Passed::Instead(renamed) = incoming(&mut state, &request) else {
            panic!("the old id would be taken for the old request")
        };
        assert_ne!(renamed["id"], 0);
        assert_eq!(outgoing(&mut state, &json!({"id": 0, "result": "old"})), Some(String::new()));
        assert_eq!(outgoing(&mut state, &json!({"id": unregister["id"], "result": null})), Some(String::new()));
        let answer = outgoing(&mut state, &json!({"id": renamed["id"], "result": "new"})).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), json!({"id": 0, "result": "new"}));
    }

    #[test]
    fn nothing_is_left_waiting_for_a_host_that_is_gone() {
        let mut state = BridgeState::default();
        assert_eq!(outgoing(&mut state, &json!({"id": 5, "method": "textDocument/hover"})), None);
        for (token, kind) in [("a", "begin"), ("b", "begin"), ("a", "end")] {
            incoming(&mut state, &json!({"method": "$/progress", "params": {"token": token, "value": {"kind": kind}}}));
        }
        let told = state.settle("lost");
        assert_eq!(told[0]["id"], 5);
        assert_eq!((&told[1]["params"]["token"], &told[1]["params"]["value"]["kind"]), (&json!("b"), &json!("end")));
        assert!(state.settle("lost").is_empty());
    }
}
