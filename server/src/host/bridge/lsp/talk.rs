//! What both directions know of the conversation, and the one place where a message is changed as it passes: the ids of requests of a host
//! that took over from a killed one, which the client may still be answering.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::memory::Memory;
use crate::host::bridge::pending::{Peek, Pending};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Talk {
    pub(super) pending: Pending,
    pub(super) memory: Memory,
    pub(super) shutdown: bool,
    /// The client said `exit` or closed its end.
    pub(super) over: bool,
    /// Counts the hosts, from 0.
    pub(super) host: u64,
    /// The process of the host that there is.
    pub(super) pid: u32,
    /// When something passed, either way.
    stirred: Option<Instant>,
    /// The answer that is not the client's: to an `initialize` that was repeated.
    swallow: Option<Value>,
    /// Progress that has begun and not ended, by its token.
    progress: HashMap<String, Value>,
    /// Capabilities that a host registered: id and method.
    registered: Vec<(Value, Value)>,
}

/// What becomes of a message of the host's.
pub(super) enum Passed {
    /// It goes on as it is.
    AsItIs,
    /// This goes on.
    Instead(Value),
    /// It was the answer to the repeated `initialize`: nothing goes on, and the rest can be told.
    Greeted(bool),
}

impl Talk {
    /// Something passes.
    pub(super) fn stir(&mut self) {
        self.stirred = Some(Instant::now());
    }

    /// Whether an answer is due and nothing has passed for so long.
    pub(super) fn is_waiting_for(&self, long: Duration) -> bool {
        !self.pending.is_empty() && self.stirred.is_some_and(|at| at.elapsed() >= long)
    }

    /// A message of the client's is about to be passed on; `Some` when something else is to be, an empty one for nothing.
    pub(super) fn outgoing(&mut self, peek: &Peek<'_>, message: &[u8]) -> Option<Vec<u8>> {
        self.stir();
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
            // An answer to a host that is gone, or to us, is nobody's.
            return Some(answer.unwrap_or_default());
        }
        None
    }

    /// A message of the host's came.
    pub(super) fn incoming(&mut self, peek: &Peek<'_>, message: &[u8]) -> Passed {
        if let Some(id) = peek.answer() {
            if self.swallow.as_ref() == Some(id) {
                self.swallow = None;
                let answer: Value = serde_json::from_slice(message).unwrap_or_default();
                return Passed::Greeted(answer["result"].is_object());
            }
            if self.pending.remove(id).as_deref() == Some("initialize") {
                self.memory.agreed(message);
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

    /// The host is gone: what the client must be told so that it waits for nothing. `why` answers what is pending.
    pub(super) fn settle(&mut self, why: &str) -> Vec<Value> {
        let mut told: Vec<Value> = self.pending.take().map(|(id, _)| super::error_answer(&id, -32603, why)).collect();
        told.extend(self.progress.drain().map(|(_, token)| {
            json!({"jsonrpc": "2.0", "method": "$/progress", "params": {"token": token, "value": {"kind": "end"}}})
        }));
        told
    }

    /// The next host will be told `initialize`, whose answer is not passed on; what it registers, the last one registered too.
    pub(super) fn next_host(&mut self, initialize: &[u8]) -> Option<Value> {
        self.host += 1;
        self.swallow = Peek::of(initialize).and_then(|peek| peek.id);
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

    fn incoming(talk: &mut Talk, message: &Value) -> Passed {
        let text = message.to_string();
        talk.incoming(&Peek::of(text.as_bytes()).unwrap(), text.as_bytes())
    }

    fn outgoing(talk: &mut Talk, message: &Value) -> Option<String> {
        let text = message.to_string();
        let passed = talk.outgoing(&Peek::of(text.as_bytes()).unwrap(), text.as_bytes());
        passed.map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn each_host_is_answered_what_it_asked_itself() {
        let mut talk = Talk::default();
        let request = json!({"id": 0, "method": "client/registerCapability",
                             "params": {"registrations": [{"id": "r", "method": "m"}]}});
        assert!(matches!(incoming(&mut talk, &request), Passed::AsItIs));
        let unregister = talk.next_host(br#"{"id": 1, "method": "initialize"}"#).unwrap();
        assert_eq!(unregister["params"]["unregisterations"], json!([{"id": "r", "method": "m"}]));
        assert!(matches!(incoming(&mut talk, &json!({"id": 1, "result": {}})), Passed::Greeted(true)));
        let Passed::Instead(renamed) = incoming(&mut talk, &request) else {
            panic!("the old id would be taken for the old request")
        };
        assert_ne!(renamed["id"], 0);
        assert_eq!(outgoing(&mut talk, &json!({"id": 0, "result": "old"})), Some(String::new()));
        assert_eq!(outgoing(&mut talk, &json!({"id": unregister["id"], "result": null})), Some(String::new()));
        let answer = outgoing(&mut talk, &json!({"id": renamed["id"], "result": "new"})).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&answer).unwrap(), json!({"id": 0, "result": "new"}));
    }

    #[test]
    fn nothing_is_left_waiting_for_a_host_that_is_gone() {
        let mut talk = Talk::default();
        assert_eq!(outgoing(&mut talk, &json!({"id": 5, "method": "textDocument/hover"})), None);
        for (token, kind) in [("a", "begin"), ("b", "begin"), ("a", "end")] {
            incoming(&mut talk, &json!({"method": "$/progress", "params": {"token": token, "value": {"kind": kind}}}));
        }
        let told = talk.settle("lost");
        assert_eq!(told[0]["id"], 5);
        assert_eq!((&told[1]["params"]["token"], &told[1]["params"]["value"]["kind"]), (&json!("b"), &json!("end")));
        assert!(talk.settle("lost").is_empty());
    }
}
