//! Correction of notifications about the text of a document. tower-lsp drops a notification that
//! does not fit the protocol's types, but these must not be dropped. Members that do not matter are
//! made to fit. A change that cannot be understood is replaced by [`LOST`].

use serde::Deserialize;
use serde_json::{Value, json};

/// The notification that replaces one that could not be understood.
pub(super) const LOST: &str = "consort/lostChange";

/// The parameters of [`LOST`].
#[derive(Debug, Deserialize)]
pub(super) struct Lost {
    /// The document. `None` stands for any document of the client.
    pub(super) uri: Option<String>,
    /// The document's language, if it was to be opened.
    #[serde(default)]
    pub(super) language: String,
    /// The reason, for a person.
    pub(super) why: String,
}

/// Returns the notification [`LOST`].
pub(super) fn lost_text_notification(uri: Option<&str>, why: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": LOST, "params": {"uri": uri, "why": why}})
}

/// Returns the message that replaces a message of the client.
pub(super) fn normalize(mut message: Value) -> Value {
    let method = message["method"].as_str();
    let (open, change) = (method == Some("textDocument/didOpen"), method == Some("textDocument/didChange"));
    if !open && !change {
        return message;
    }
    let Some(document) = message.pointer_mut("/params/textDocument").and_then(Value::as_object_mut) else {
        return lost_text_notification(None, "a message about a text names no document");
    };
    let version = document.get("version").map_or(0, version);
    document.insert("version".into(), version.into());
    if open {
        if !document.get("languageId").is_some_and(Value::is_string) {
            document.insert("languageId".into(), "".into());
        }
        if document.get("text").is_some_and(Value::is_string) {
            return message;
        }
        let mut lost =
            lost_text_notification(document.get("uri").and_then(Value::as_str), "it was opened without a text");
        lost["params"]["language"] = document["languageId"].take();
        return lost;
    }
    let uri = document.get("uri").and_then(Value::as_str).map(str::to_owned);
    let changes = message.pointer_mut("/params/contentChanges").and_then(Value::as_array_mut);
    let fits = uri.is_some() && changes.is_some_and(|changes| changes.iter_mut().all(fit_change));
    if fits { message } else { lost_text_notification(uri.as_deref(), "a change of the text could not be understood") }
}

/// Returns a version as the protocol demands, or 0 if it is no number.
fn version(version: &Value) -> i32 {
    let clamped = version.as_i64().map(|version| version.clamp(i32::MIN.into(), i32::MAX.into()));
    clamped.and_then(|version| i32::try_from(version).ok()).unwrap_or_default()
}

/// Makes a change fit the protocol's types. Returns false if it has no meaning.
fn fit_change(change: &mut Value) -> bool {
    let Some(change) = change.as_object_mut().filter(|change| change.get("text").is_some_and(Value::is_string)) else {
        return false;
    };
    // The member is deprecated and not used.
    change.remove("rangeLength");
    match change.get_mut("range") {
        None | Some(Value::Null) => true,
        Some(range) => ["/start/line", "/start/character", "/end/line", "/end/character"]
            .into_iter()
            .all(|part| range.pointer_mut(part).is_some_and(fit_number)),
    }
}

/// Makes a line or a character fit the protocol's type, because clients send very large numbers for
/// the end of a text or line. Returns false if the value is no natural number.
fn fit_number(number: &mut Value) -> bool {
    if number.as_u64().is_none_or(|number| number > u32::MAX.into()) {
        if !number.as_f64().is_some_and(|number| number > f64::from(u32::MAX)) {
            return false;
        }
        *number = u32::MAX.into();
    }
    true
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use lsp_types::{DidChangeTextDocumentParams, DidOpenTextDocumentParams};

    use super::*;

    fn change(version: Value, change: Value) -> Value {
        let document = json!({"uri": "file:///a.lisp", "version": version});
        let params = json!({"textDocument": document, "contentChanges": [change]});
        normalize(json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": params}))
    }

    fn range(start: Value, end: Value) -> Value {
        json!({"start": {"line": 0, "character": start}, "end": {"line": 0, "character": end}})
    }

    #[test]
    fn what_does_not_matter_is_made_to_fit() {
        let document = |version| json!({"uri": "file:///a.lisp", "version": version, "text": "(a)"});
        for (given, expected) in [(json!(null), 0), (json!(7), 7), (json!(3_000_000_000_u32), i32::MAX)] {
            let message =
                json!({"method": "textDocument/didOpen", "params": {"textDocument": document(given.clone())}});
            let fitted: DidOpenTextDocumentParams =
                serde_json::from_value(normalize(message)["params"].clone()).unwrap();
            assert_eq!(fitted.text_document.version, expected, "{given}");
        }
        for given in [
            json!({"text": "x"}),
            json!({"text": "x", "range": null}),
            json!({"text": "x", "range": range(json!(0), json!(1_u64 << 40)), "rangeLength": -1}),
            json!({"text": "x", "range": range(json!(0), json!(f64::MAX))}),
        ] {
            let fitted = change(json!(null), given);
            serde_json::from_value::<DidChangeTextDocumentParams>(fitted["params"].clone()).unwrap();
        }
    }

    #[test]
    fn a_change_without_a_meaning_is_told_as_lost() {
        for given in [
            json!({}),
            json!({"text": 5}),
            json!({"text": "x", "range": range(json!(-1), json!(1))}),
            json!({"text": "x", "range": range(json!(0.5), json!(1))}),
            json!({"text": "x", "range": {"start": {"line": 0, "character": 0}}}),
        ] {
            let told = change(json!(2), given);
            assert_eq!((&told["method"], &told["params"]["uri"]), (&json!(LOST), &json!("file:///a.lisp")), "{told}");
        }
        for method in ["textDocument/didChange", "textDocument/didOpen"] {
            let told = normalize(json!({"method": method, "params": 3}));
            assert_eq!((&told["method"], &told["params"]["uri"]), (&json!(LOST), &Value::Null));
        }
    }

    #[test]
    fn a_document_that_is_opened_without_a_text_is_told_as_lost() {
        for text in [json!(null), json!(5), json!({"value": "(a)"})] {
            let document = json!({"uri": "file:///a", "languageId": "lisp", "version": 1, "text": text});
            let told = normalize(json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}));
            assert_eq!(told["method"], LOST, "{told}");
            let lost: Lost = serde_json::from_value(told["params"].clone()).unwrap();
            assert_eq!((lost.uri.as_deref(), lost.language.as_str()), (Some("file:///a"), "lisp"));
        }
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        for message in [json!({"method": "textDocument/hover", "params": {"textDocument": {}}}), json!([1]), json!(2)] {
            assert_eq!(normalize(message.clone()), message);
        }
    }
}
