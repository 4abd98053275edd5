//! A frame of a backtrace.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The owner of a frame's function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrameRole {
    /// A function of a program, which may have a source.
    #[default]
    Program,
    /// A function that signals conditions, such as `ERROR`. Its call repeats the error's message.
    Signal,
    /// A function of the standard, or a form that the evaluator evaluates.
    Standard,
    /// A function of the implementation, or a foreign one.
    Internal,
}

/// A frame of a backtrace, as the image describes it (docs/wire.md, `StackFrame`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    /// The call, `(NAME ARG ...)`, as printed in CL-USER. It has at most 1000 characters.
    pub text: String,
    /// The name of the definition that contains the frame, such as `SHOP::PRICE` or `(SETF
    /// SHOP::PRICE)`. `None` if it has none.
    #[serde(default)]
    pub name: Option<String>,
    /// The qualifiers and specializers of a method, such as `:AROUND (T)`.
    #[serde(default)]
    pub method: Option<String>,
    /// The owner of the function.
    #[serde(default)]
    pub role: FrameRole,
    /// The first 10 arguments, printed, with at most 200 characters each.
    #[serde(default)]
    pub args: Vec<String>,
    /// The file from which the function was loaded.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The line, 1-based, of the form that the frame executes, or else of the definition. `None` if
    /// the file has changed since it was loaded.
    #[serde(default)]
    pub line: Option<u64>,
}

impl fmt::Display for StackFrame {
    /// Writes the printed call.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// Returns the printed calls of `frames`.
pub fn texts(frames: Vec<StackFrame>) -> Vec<String> {
    frames.into_iter().map(|frame| frame.text).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_frame_is_read_as_the_image_writes_it() {
        let written = json!({
            "text": "((:METHOD SHOP:SEND (T)) 5)", "name": "SHOP:SEND", "method": "(T)", "role": "program",
            "args": ["5"], "file": "/w/shop.lisp", "line": 3,
        });
        let frame: StackFrame = serde_json::from_value(written.clone()).unwrap();
        assert_eq!((frame.to_string().as_str(), frame.line), ("((:METHOD SHOP:SEND (T)) 5)", Some(3)));
        assert_eq!(serde_json::to_value(frame).unwrap(), written);
        let bare: StackFrame = serde_json::from_value(json!({"text": "(READ)", "name": null})).unwrap();
        assert_eq!(bare, StackFrame { text: "(READ)".into(), ..StackFrame::default() });
    }
}
