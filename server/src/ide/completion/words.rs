//! The names that occur around a place, with the number and distance of their uses.

use std::collections::HashMap;

use crate::text::document::Document;
use crate::text::scanner::{Scanner, TokenKind};

/// The number of characters before the place that are scanned.
const MAX_CHARS_BEFORE: usize = 60_000;
/// The number of characters after the place that are scanned.
const MAX_CHARS_AFTER: usize = 30_000;

/// The uses of a name near a place.
#[derive(Debug, Clone, Default)]
pub(super) struct Used {
    /// The name as written at its first use.
    pub(super) written: String,
    /// The number of uses as an operator, or after `#'`.
    pub(super) operator: u32,
    /// The number of other uses.
    pub(super) other: u32,
    /// The distance in characters from the place to the start of the nearest use.
    pub(super) distance: usize,
    /// The offset of the first use, in characters.
    first: usize,
}

impl Used {
    /// Adds the uses of the same name in another letter case.
    fn add(&mut self, other: &Used) {
        if other.first < self.first {
            self.written.clone_from(&other.written);
            self.first = other.first;
        }
        self.operator += other.operator;
        self.other += other.other;
        self.distance = self.distance.min(other.distance);
    }
}

/// Returns the names near `offset`, keyed by their lower-case form. The name that is being typed at
/// `start` is left out.
pub(super) fn near(document: &Document, start: usize, offset: usize) -> HashMap<String, Used> {
    let text = document.text();
    let forms = document.scan().forms();
    // The scan starts at a top-level form, so that strings and comments are recognized. If that
    // form is very long, the scan starts within it.
    let from = offset.saturating_sub(MAX_CHARS_BEFORE);
    let first = forms.partition_point(|form| form.span.end < from);
    let from = match forms.get(first) {
        Some(form) if form.span.start <= offset => form.span.start.max(offset.saturating_sub(4 * MAX_CHARS_BEFORE)),
        _ => from,
    };
    let to = (offset + MAX_CHARS_AFTER).min(text.len_chars());
    let part = text.slice(from..to).to_string();
    // The keys are the names as written, so that an occurrence needs no allocation.
    let mut found: HashMap<&str, Used> = HashMap::new();
    let (mut byte, mut at) = (0, from);
    let mut open = false;
    for token in Scanner::inside(&part) {
        let opens = token.kind == TokenKind::Open;
        let named = token.kind == TokenKind::Prefix && part.get(token.start..token.end) == Some("#'");
        if token.kind != TokenKind::Atom {
            open = opens || named || open && matches!(token.kind, TokenKind::LineComment | TokenKind::BlockComment);
            continue;
        }
        let called = std::mem::replace(&mut open, false);
        let Some(written) = part.get(token.start..token.end) else { continue };
        at += part.get(byte..token.start).map_or(0, |gap| gap.chars().count());
        byte = token.start;
        if at == start || !is_name(written) {
            continue;
        }
        let distance = at.abs_diff(offset);
        let used = found.entry(written).or_insert_with(|| Used { first: at, distance, ..Used::default() });
        if called {
            used.operator += 1;
        } else {
            used.other += 1;
        }
        used.distance = used.distance.min(distance);
    }
    let mut by_lower: HashMap<String, Used> = HashMap::with_capacity(found.len());
    for (written, mut used) in found {
        used.written = written.to_owned();
        by_lower.entry(written.to_lowercase()).and_modify(|known| known.add(&used)).or_insert(used);
    }
    by_lower
}

/// Returns true for a token of at least two characters that looks neither like a number nor like a
/// dispatching macro character. A token that begins with `#:` is a name.
fn is_name(written: &str) -> bool {
    let first = written.bytes().next().unwrap_or(b'0');
    written.len() > 1
        && (first != b'#' || written.starts_with("#:"))
        && !(first.is_ascii_digit() || (first == b'-' || first == b'.') && written.as_bytes()[1].is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted_by_their_role() {
        let source = "(in-package :app)\n; (comment)\n(Scan x #'scan \"scan\" scan 12 -1 #\\a)\n(sc";
        let document = Document::new(source, 0);
        let found = near(&document, source.len() - 2, source.len());
        let scan = &found["scan"];
        assert_eq!((scan.written.as_str(), scan.operator, scan.other), ("Scan", 2, 1));
        let mut names: Vec<&str> = found.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, [":app", "in-package", "scan"]);
    }
}
