//! Operations on text alone: documents, positions, the scanner. This module names no protocol and
//! no image, and does no I/O.

pub mod cancellation;
pub mod datum;
pub mod definitions;
pub mod designator;
pub mod document;
pub(crate) mod encoding;
pub mod expected;
pub mod features;
pub mod forms;
pub mod line_break;
pub mod loop_keywords;
pub mod names;
mod packages;
mod part;
mod pass;
pub mod pattern;
pub mod position;
pub mod recorded_definitions;
pub mod scanner;
pub mod scopes;
pub mod thread_time;
mod top_form;
pub mod toplevel;
pub mod tree;

pub use self::encoding::decode;
pub(crate) use self::encoding::decode_as_edited;

/// A half-open range of a text, in characters (Unicode code points, as SBCL counts them), 0-based.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(from = "(usize, usize)", into = "(usize, usize)")]
pub struct Span {
    /// The first character.
    pub start: usize,
    /// The end, one past the last character.
    pub end: usize,
}

impl From<(usize, usize)> for Span {
    fn from((start, end): (usize, usize)) -> Self {
        Span { start, end }
    }
}

impl From<Span> for (usize, usize) {
    fn from(span: Span) -> Self {
        (span.start, span.end)
    }
}
