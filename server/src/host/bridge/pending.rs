//! The unanswered requests.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::{Deserialize, Deserializer, IgnoredAny};
use serde_json::Value;

/// The fields of a JSON-RPC message that a bridge reads. The other fields are only copied.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct Peek<'a> {
    #[serde(default)]
    pub(super) id: Option<Value>,
    #[serde(borrow, default)]
    pub(super) method: Option<Cow<'a, str>>,
    /// True if the message has a result, which may be null.
    #[serde(default, deserialize_with = "present")]
    result: bool,
    /// True if the message has an error.
    #[serde(default, deserialize_with = "present")]
    error: bool,
}

/// Skips a value. Returns true.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(value).map(|_| true)
}

impl<'a> Peek<'a> {
    /// Parses a message. Returns `None` if it is not a JSON object of this shape, for example a
    /// batch or a malformed message.
    pub(super) fn of(message: &'a [u8]) -> Option<Peek<'a>> {
        serde_json::from_slice(message).ok()
    }

    /// Returns the id and method of a request, or `None` for notifications and answers.
    pub(super) fn request(&self) -> Option<(&Value, &str)> {
        Some((self.id.as_ref()?, self.method.as_deref()?))
    }

    /// Returns the id of an answer. A message without a method, a result or an error is no answer,
    /// and its receiver refuses it.
    pub(super) fn answer(&self) -> Option<&Value> {
        if self.method.is_none() && (self.result || self.error) { self.id.as_ref() } else { None }
    }
}

/// The unanswered requests, by their ids.
#[derive(Debug, Default)]
pub(super) struct Pending(HashMap<String, (Value, String)>);

impl Pending {
    pub(super) fn insert(&mut self, id: &Value, method: &str) {
        self.0.insert(id.to_string(), (id.clone(), method.into()));
    }

    /// Removes an answered request. Returns its method if it was pending.
    pub(super) fn remove(&mut self, id: &Value) -> Option<String> {
        self.0.remove(&id.to_string()).map(|(_, method)| method)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes and returns all pending requests.
    pub(super) fn take(&mut self) -> impl Iterator<Item = (Value, String)> + use<> {
        std::mem::take(&mut self.0).into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_result_or_an_error() {
        let answer = |text: &'static str| Peek::of(text.as_bytes()).and_then(|peek| peek.answer().cloned());
        assert_eq!(answer(r#"{"jsonrpc": "2.0", "id": 1, "result": null}"#), Some(1.into()));
        assert_eq!(answer(r#"{"id": "a", "error": {"code": 1}}"#), Some("a".into()));
        assert_eq!(answer(r#"{"id": 75}"#), None);
        assert_eq!(answer(r#"{"id": 1, "method": "ping", "result": 1}"#), None);
    }
}
