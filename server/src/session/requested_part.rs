//! A part of an open document that is to be evaluated.

use ropey::Rope;

use crate::text::Span;
use crate::text::position::Position;

/// A requested part of a document, and the tool or command that requests it.
#[derive(Debug)]
pub(super) struct RequestedPart {
    pub(super) uri: String,
    pub(super) part: Part,
    pub(super) how: String,
}

/// A part of a document, in the client's units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The form that ends at or contains a position.
    Form(Position),
    /// The top-level form at a position, or the one before it (`ide::evaluate_part::top_level`).
    TopLevel(Position),
    /// The top-level forms from the start to a position.
    UpTo(Position),
    /// The text between two positions.
    Region(Position, Position),
    /// The whole document.
    Buffer,
}

/// The text of a [`Part`].
#[derive(Debug, Clone)]
pub struct Selected {
    /// The part's span in `text`.
    pub span: Span,
    /// The document's text.
    pub text: Rope,
    /// The document's version.
    pub version: i32,
}
