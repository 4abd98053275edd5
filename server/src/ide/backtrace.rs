//! An error with its backtrace, for agents: the text of the contract, and bounded data.

use std::fmt::Write as _;

use std::path::Path;

use serde::{Serialize, Serializer};

use super::clip::clip;
use crate::model::evaluation::EvalError;
use crate::model::stack_frame::StackFrame;

/// The maximum number of a frame's arguments that an agent gets as data.
const ARGUMENTS: usize = 5;
/// The maximum length of such an argument, in characters.
const ARGUMENT: usize = 80;

/// An error as data for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorFacts<'a> {
    /// The type of the condition.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// The text of the condition.
    pub message: &'a str,
    /// The frames, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backtrace: Vec<FrameFacts<'a>>,
}

/// A frame as data for an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FrameFacts<'a> {
    /// The name of the definition that contains the frame, or the printed call if the frame is in
    /// no definition. The printed calls of the other frames are only in the text of the answer.
    pub name: &'a str,
    /// The qualifiers and specializers of a method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'a str>,
    /// The first arguments, printed and clipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The file of the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<&'a Path>,
    /// The line, 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// Returns an error as data for an agent.
pub fn facts(error: &EvalError) -> ErrorFacts<'_> {
    ErrorFacts { kind: &error.kind, message: &error.message, backtrace: error.backtrace.iter().map(frame).collect() }
}

fn frame(frame: &StackFrame) -> FrameFacts<'_> {
    FrameFacts {
        name: frame.name.as_deref().unwrap_or(&frame.text),
        method: frame.method.as_deref(),
        args: frame.args.iter().take(ARGUMENTS).map(|argument| clip(argument, ARGUMENT).text).collect(),
        file: frame.file.as_deref(),
        line: frame.line,
    }
}

/// Serializes [`facts`].
pub(super) fn serialize<S: Serializer>(error: &Option<EvalError>, serializer: S) -> Result<S::Ok, S::Error> {
    error.as_ref().map(facts).serialize(serializer)
}

/// Returns the text of the contract: the condition, and the printed calls of the backtrace.
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
    use serde_json::json;

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
        let data = json!(facts(&error));
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
        assert_eq!(json!(facts(&EvalError::new("ERROR", "no"))), json!({"type": "ERROR", "message": "no"}));
    }
}
