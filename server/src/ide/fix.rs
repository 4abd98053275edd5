//! What a quick fix of a diagnostic is called, for those who cannot press it.

use super::diagnostic::Diagnostic;
use super::diagnostics::SYSTEM_NOT_LOADED;

/// The title of the fix that a diagnostic has, if it has one.
pub fn title(item: &Diagnostic) -> Option<String> {
    if item.code == SYSTEM_NOT_LOADED {
        return Some(format!("Load the system {}", item.data["system"].as_str()?));
    }
    if let Some(insert) = item.data.get("insert") {
        return Some(format!("Insert `{}`", insert["text"].as_str()?));
    }
    item.data.get("delete").map(|_| "Delete it".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ide::diagnostic::Severity;
    use serde_json::json;

    #[test]
    fn a_fix_is_named_where_there_is_one() {
        for (code, data, expected) in [
            ("system-not-loaded", json!({"system": "app"}), Some("Load the system app")),
            ("unclosed-list", json!({"insert": {"at": 3, "text": ")"}}), Some("Insert `)`")),
            ("extra-close", json!({"delete": [1, 2]}), Some("Delete it")),
            ("undefined-function", json!({"symbol": "F"}), None),
        ] {
            let item = Diagnostic {
                span: (0, 1).into(),
                severity: Severity::Error,
                code: code.into(),
                message: String::new(),
                condition: None,
                form: None,
                toplevel: None,
                tags: Vec::new(),
                related: Vec::new(),
                data,
            };
            assert_eq!(title(&item).as_deref(), expected);
        }
    }
}
