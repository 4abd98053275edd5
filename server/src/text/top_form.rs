//! A top-level form, the reason why it cannot be read, and the part of a text that changed.

use super::Span;

/// The reason why a top-level form cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unreadable {
    /// A list in it is never closed.
    UnclosedList,
    /// A `)` that closes nothing.
    ExtraClose,
    /// A string in it is never closed.
    UnterminatedString,
    /// A `|` in it is never closed.
    UnterminatedBar,
    /// A `#|` in it, or the `#|` that it is, is never closed.
    UnterminatedComment,
    /// The text ends after its `\` or `#\`.
    DanglingEscape,
    /// A `'`, `#'`, `#+` or the like in it has nothing after it.
    DanglingPrefix,
}

/// A top-level form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TopForm {
    /// The span in characters.
    pub span: Span,
    /// The reason why the form cannot be read; `None` if its structure is whole.
    pub fault: Option<Unreadable>,
    /// The span in bytes.
    pub(crate) bytes: Span,
    /// True if the form has a string in which a definition seems to begin.
    pub(super) seems_unterminated: bool,
}

/// The changed part of a text: `start..old_end` of the old text became `start..new_end` of the new
/// one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edited {
    pub(super) start: usize,
    pub(super) old_end: usize,
    pub(super) new_end: usize,
}
