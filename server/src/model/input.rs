//! Lines of standard input for which running code asks a person.

use serde::{Deserialize, Serialize};

/// The client that the code of a request may ask for input (docs/wire.md, `input`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InputTarget {
    /// The client's evaluation session.
    pub session: String,
    /// The tool or command that runs the code.
    pub what: String,
}

/// A request for a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputWanted {
    /// The question's number, new in each image.
    pub question: u64,
    /// The tool or command that runs the code.
    pub what: String,
    /// The last line of the output so far.
    pub prompt: String,
}

/// The answer to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputAnswer {
    /// The line, without its line break.
    Line(String),
    /// The end of file, with its cause in a few words: `cancelled by the person`.
    End(String),
}
