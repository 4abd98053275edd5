//! The stop of an evaluation, and the texts that show it.

use serde_json::Value;

use super::fields::{elements, text};

/// The stop of an evaluation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stop {
    /// The id of the thread that waits.
    pub(super) thread: u64,
    /// The depth of nested stops: more than 1 for a stop on the stack of another.
    pub(super) level: u64,
    /// True until the stop was shown.
    pub(super) is_new: bool,
}

impl Stop {
    /// Reads a `stopped` event.
    pub(super) fn of(body: &Value) -> Stop {
        Stop {
            thread: body["threadId"].as_u64().unwrap_or(0),
            level: body["level"].as_u64().unwrap_or(1),
            is_new: true,
        }
    }
}

/// Returns the condition, from the answer to `exceptionInfo`.
pub(super) fn condition(information: &Value) -> String {
    let details = &information["details"];
    let (kind, message) = (text(&details["typeName"]), text(&details["message"]));
    if kind == "pause" { format!("{message}\n") } else { format!("{kind}: {message}\n") }
}

/// Returns the numbered restarts, from the answer to `consort/restarts`.
pub(super) fn restarts(answer: &Value) -> String {
    let mut shown = String::from("Restarts (a number invokes one, :help says more):\n");
    for restart in elements(&answer["restarts"]) {
        let name = restart["name"].as_str().map(|name| format!("[{name}] ")).unwrap_or_default();
        shown.push_str(&format!("{:>3}: {name}{}\n", restart["index"].as_u64().unwrap_or(0), text(&restart["report"])));
    }
    shown
}

/// Returns frames, from the answer to `stackTrace`. The first has the number `first`, and `current`
/// is marked.
pub(super) fn frames(answer: &Value, first: usize, current: usize) -> String {
    let mut shown = String::new();
    let frames = elements(&answer["stackFrames"]);
    for (number, frame) in (first..).zip(frames) {
        let mark = if number == current { '*' } else { ' ' };
        shown.push_str(&format!("{mark}{number:>2}: {}{}\n", text(&frame["name"]), place(frame)));
    }
    let total = usize::try_from(answer["totalFrames"].as_u64().unwrap_or(0)).unwrap_or(usize::MAX);
    let more = total.saturating_sub(first + frames.len());
    if more > 0 {
        shown.push_str(&format!("    {more} more\n"));
    }
    shown
}

fn place(frame: &Value) -> String {
    let source = &frame["source"];
    let named = source["path"].as_str().map(|path| path.rsplit('/').next().unwrap_or(path));
    match (named, frame["line"].as_u64()) {
        (Some(name), Some(line)) if line > 0 => format!("  {name}:{line}"),
        (Some(name), _) => format!("  {name}"),
        (None, _) => String::new(),
    }
}

/// Returns variables, from the answer to `variables`.
pub(super) fn locals(answer: &Value) -> String {
    let locals = elements(&answer["variables"]);
    if locals.is_empty() {
        return "; no variables\n".into();
    }
    let width = locals.iter().map(|local| text(&local["name"]).chars().count()).max().unwrap_or(0).min(30);
    let line = |local: &Value| {
        let value = text(&local["value"]).replace('\n', &format!("\n{:1$}", "", width + 5));
        format!("  {:<width$} = {value}\n", text(&local["name"]))
    };
    locals.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_stop_is_shown_with_its_restarts_frames_and_variables() {
        let information = json!({"details": {"typeName": "SIMPLE-ERROR", "message": "boom\n7"}});
        assert_eq!(condition(&information), "SIMPLE-ERROR: boom\n7\n");
        let listed = json!({"restarts": [
            {"index": 0, "name": "USE-OTHER", "report": "Use another.", "arguments": true},
            {"index": 1, "name": null, "report": "Leave.", "arguments": false},
        ]});
        let expected = "  0: [USE-OTHER] Use another.\n  1: Leave.\n";
        assert!(restarts(&listed).ends_with(expected), "{}", restarts(&listed));
        let trace = json!({"totalFrames": 5, "stackFrames": [
            {"name": "FAILS", "line": 7, "source": {"path": "/w/shop.lisp"}},
            {"name": "OUTER", "line": 0},
        ]});
        assert_eq!(frames(&trace, 1, 2), "  1: FAILS  shop.lisp:7\n* 2: OUTER\n    2 more\n");
        let variables = json!({"variables": [{"name": "X", "value": "(1\n2)"}, {"name": "LONG", "value": "1"}]});
        assert_eq!(locals(&variables), "  X    = (1\n         2)\n  LONG = 1\n");
        assert_eq!(locals(&json!({"variables": []})), "; no variables\n");
    }
}
