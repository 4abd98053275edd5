//! An error with its backtrace, as agents get it: the contract's text, and bounded data.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::clip::clip;
use crate::model::evaluation::EvalError;
use crate::model::stack_frame::StackFrame;

/// The number of a frame's arguments that an agent gets as data.
const ARGUMENTS: usize = 5;
/// The characters of each argument.
const ARGUMENT: usize = 80;

/// Returns an error as data for an agent.
pub fn facts(error: &EvalError) -> Value {
    let mut facts = json!({"type": error.kind, "message": error.message});
    if !error.backtrace.is_empty() {
        facts["backtrace"] = error.backtrace.iter().map(frame).collect();
    }
    facts
}

/// Returns a frame as data for an agent. Its printed call is in the text of the answer, so it is
/// here only when the frame is in no definition.
fn frame(frame: &StackFrame) -> Value {
    let mut facts = json!({"name": frame.name.as_deref().unwrap_or(&frame.text)});
    if let Some(method) = &frame.method {
        facts["method"] = json!(method);
    }
    if !frame.args.is_empty() {
        facts["args"] = frame.args.iter().take(ARGUMENTS).map(|argument| clip(argument, ARGUMENT).text).collect();
    }
    if let Some(file) = &frame.file {
        facts["file"] = json!(file);
    }
    if let Some(line) = frame.line {
        facts["line"] = json!(line);
    }
    facts
}

/// Serializes [`facts`].
pub(super) fn serialize<S: Serializer>(error: &Option<EvalError>, serializer: S) -> Result<S::Ok, S::Error> {
    error.as_ref().map(facts).serialize(serializer)
}

/// Returns the contract's text: the condition, and the printed calls of the backtrace.
pub fn render(error: &EvalError) -> String {
    let mut text = format!("[ERROR] {}\n{}", error.kind, error.message);
    for (number, frame) in error.backtrace.iter().enumerate() {
        let heading = if number == 0 { "\n\n[Backtrace]" } else { "" };
        let _ = write!(text, "{heading}\n{number}: {frame}");
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_backtrace_is_bounded_data_for_an_agent_and_text_as_in_the_contract() {
        let share = StackFrame {
            text: "(SHOP::SHARE 44 0)".into(),
            name: Some("SHOP::SHARE".into()),
            args: vec!["44".into(), "x".repeat(500), "3".into(), "4".into(), "5".into(), "6".into()],
            file: Some("/w/shop.lisp".into()),
            line: Some(12),
            ..StackFrame::default()
        };
        let method = StackFrame { method: Some("(T)".into()), name: Some("SHOP:SEND".into()), ..StackFrame::default() };
        let unnamed = StackFrame { text: "((LAMBDA ()))".into(), ..StackFrame::default() };
        let error = EvalError { backtrace: vec![share, method, unnamed], ..EvalError::new("ERROR", "no") };
        let text = render(&error);
        assert!(text.starts_with("[ERROR] ERROR\nno\n\n[Backtrace]\n0: (SHOP::SHARE 44 0)\n1: "), "{text}");
        let data = facts(&error);
        let [share, method, unnamed] = data["backtrace"].as_array().unwrap().as_slice() else { panic!("{data}") };
        assert_eq!(
            (&share["name"], &share["file"], &share["line"]),
            (&json!("SHOP::SHARE"), &json!("/w/shop.lisp"), &json!(12))
        );
        let args = share["args"].as_array().unwrap();
        assert_eq!((args.len(), &args[0]), (ARGUMENTS, &json!("44")));
        assert!(args[1].as_str().unwrap().contains("characters left out"), "{}", args[1]);
        assert_eq!(method, &json!({"name": "SHOP:SEND", "method": "(T)"}));
        assert_eq!(unnamed, &json!({"name": "((LAMBDA ()))"}));
        assert_eq!(facts(&EvalError::new("ERROR", "no")), json!({"type": "ERROR", "message": "no"}));
    }
}
