//! Escaping of the texts that a debugger shows to a person. Names, values and conditions come from
//! the debugged program and may contain anything.

use serde_json::Value;

use crate::shown;

/// The names of fields with one line.
const LINES: [&str; 9] =
    ["name", "type", "typeName", "fullTypeName", "exceptionId", "text", "label", "title", "report"];
/// The names of fields with several lines.
const BLOCKS: [&str; 4] = ["value", "result", "description", "message"];

/// Escapes the texts of a body that are shown. Other fields are unchanged: paths, the texts of
/// sources, fields that the client sends back, and the program's own output.
pub(super) fn clean(body: &mut Value) {
    match body {
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => {
            let console = fields.get("category").is_some_and(|category| category == "console");
            for (name, value) in fields.iter_mut() {
                let Value::String(text) = value else {
                    clean(value);
                    continue;
                };
                if LINES.contains(&name.as_str()) {
                    *text = shown::line(text);
                } else if BLOCKS.contains(&name.as_str()) || (console && name == "output") {
                    *text = shown::safe(text);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_nasty_is_more_than_text() {
        let nasty: Vec<String> = serde_json::from_str(include_str!("../../../tests/fixtures/nasty.json")).unwrap();
        for nasty in &nasty {
            let mut body = json!({
                "text": nasty, "path": nasty, "output": nasty, "category": "stdout",
                "variables": [{"name": nasty, "value": nasty, "evaluateName": nasty}],
            });
            clean(&mut body);
            assert_eq!(body["text"], shown::line(nasty));
            assert_eq!((&body["path"], &body["output"]), (&json!(nasty), &json!(nasty)));
            let variable = &body["variables"][0];
            assert_eq!(
                (&variable["name"], &variable["value"]),
                (&json!(shown::line(nasty)), &json!(shown::safe(nasty)))
            );
            assert_eq!(variable["evaluateName"], *nasty);
        }
        let mut console = json!({"category": "console", "output": "a\u{1b}[2Jb\n"});
        clean(&mut console);
        assert_eq!(console["output"], "a\\u{1b}[2Jb\n");
    }
}
