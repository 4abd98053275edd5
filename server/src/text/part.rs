//! A span of a document as one string, with conversions between bytes of the string and offsets of
//! the document.

use ropey::Rope;

use super::Span;
use super::scanner::{Scanner, Token, Unterminated};

/// A span of the text as one string, with its offsets.
pub(super) struct Part {
    /// The characters of the span.
    pub(super) text: String,
    /// The offset of the first character in the document.
    start: usize,
}

impl Part {
    /// Creates the part of a text at a span.
    pub(super) fn of(text: &Rope, span: Span) -> Part {
        Part { text: text.slice(span.start..span.end).to_string(), start: span.start }
    }

    /// Returns the tokens that are not empty.
    pub(super) fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        Scanner::inside(&self.text).filter(|token| token.start < token.end || token.unterminated != Unterminated::No)
    }

    /// Returns the byte of this part at an offset of the text, clamped.
    pub(super) fn byte(&self, offset: usize) -> usize {
        let chars = offset.saturating_sub(self.start);
        self.text.char_indices().nth(chars).map_or(self.text.len(), |(byte, _)| byte)
    }

    /// Returns the span of the document from one byte of this part to another.
    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        let chars = |byte: usize| self.text.get(..byte).map_or(0, |head| head.chars().count());
        Span { start: self.start + chars(start), end: self.start + chars(end) }
    }
}
