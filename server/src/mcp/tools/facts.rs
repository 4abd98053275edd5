//! Structured content whose fields depend on the call.

use rmcp::model::JsonObject;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Failure, FromFailure};

/// An object of facts. A failure is `{"error": {"type", "message"}}`.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    #[serde(flatten)]
    facts: JsonObject,
}

impl Facts {
    /// Creates the facts from `value`, which must serialize to an object.
    pub(super) fn new(value: impl Serialize) -> Facts {
        match serde_json::to_value(value) {
            Ok(Value::Object(facts)) => Facts { facts },
            _ => Facts { facts: JsonObject::new() },
        }
    }
}

impl FromFailure for Facts {
    fn from_failure(failure: Failure) -> Self {
        Facts::new(json!({"error": {"type": failure.kind, "message": failure.message}}))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_are_the_object_itself() {
        let facts = Facts::new(json!({"ended": 3}));
        assert_eq!(serde_json::to_value(facts).unwrap(), json!({"ended": 3}));
        let failure = Failure { kind: "stale".into(), message: "Nothing is stopped.".into() };
        let expected = json!({"error": {"type": "stale", "message": "Nothing is stopped."}});
        assert_eq!(serde_json::to_value(Facts::from_failure(failure)).unwrap(), expected);
    }
}
