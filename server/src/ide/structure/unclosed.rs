//! Detection of the lists that are never closed. It uses the indentation, which is right more often
//! than the parentheses.
//!
//! A line inside a list is indented beyond the list's `(`. The first line that is indented less
//! shows which lists should have been closed before it. If the indentation contradicts the
//! parentheses, the lists that are open at the end are reported.

use serde_json::json;

use super::{Broken, related};
use crate::model::diagnostic::Diagnostic;
use crate::text::position::{LineColumn, line_column};
use crate::text::scanner::TokenKind;

/// The maximum number of places reported in one form. A form with more is unfinished or not Lisp.
const MAX_PLACES: usize = 20;

/// The number of bytes of a form above which only one place is reported.
const LARGE: usize = 1 << 20;

/// An open list.
#[derive(Debug, Clone, Copy)]
struct Open {
    byte: usize,
    /// The end of the list's `(` or `#(`.
    end: usize,
    place: LineColumn,
}

/// The lists to close at one place.
#[derive(Debug, Clone, Copy)]
struct Missing {
    /// The innermost of the lists.
    innermost: Open,
    count: usize,
    /// The byte offset at which `)` is missing: after the last token before the place.
    at: usize,
}

/// Returns the diagnostics of a form with lists that are never closed, one for each place where `)`
/// is missing.
pub(super) fn diagnose(broken: &Broken<'_>) -> Vec<Diagnostic> {
    let total = depth_at_end(broken);
    let missing = by_indentation(broken, total).unwrap_or_else(|| at_the_end(broken));
    let most = if broken.source.len() > LARGE { 1 } else { MAX_PLACES };
    missing.into_iter().take(most).map(|missing| diagnostic(broken, missing)).collect()
}

fn diagnostic(broken: &Broken<'_>, missing: Missing) -> Diagnostic {
    let Missing { innermost, count, at } = missing;
    let at = broken.offset(at);
    let line = line_column(broken.text, at.saturating_sub(1)).line;
    let missing = if count == 1 { "one `)` is".to_owned() } else { format!("{count} `)` are") };
    let place = if line == innermost.place.line { String::new() } else { format!(" at the end of line {line}") };
    let message = if place.is_empty() {
        format!("This list is never closed; {missing} missing here.")
    } else {
        format!("This list is never closed; {missing} missing{place}.")
    };
    let mut others = Vec::new();
    if innermost.byte > 0 && innermost.place.line != line_column(broken.text, broken.span.start).line {
        let span = broken.span(0, broken.tokens().next().map_or(1, |token| token.end));
        others.push(related(span, "The top-level form that is left open begins here.".to_owned()));
    }
    if let Some(next) = broken.next {
        others.push(related(next, "The next definition begins here, inside this form.".to_owned()));
    }
    let data = json!({ "insert": { "at": at, "text": ")".repeat(count) } });
    broken.diagnostic("unbalanced-list", broken.span(innermost.byte, innermost.end), message, others, data)
}

fn depth_at_end(broken: &Broken<'_>) -> usize {
    broken.tokens().fold(0usize, |depth, token| match token.kind {
        TokenKind::Open => depth + 1,
        TokenKind::Close => depth.saturating_sub(1),
        _ => depth,
    })
}

/// Returns the places that follow from the indentation, or `None` if it contradicts the
/// parentheses.
fn by_indentation(broken: &Broken<'_>, total: usize) -> Option<Vec<Missing>> {
    let mut open: Vec<Open> = Vec::new();
    let mut found: Vec<Missing> = Vec::new();
    let mut left = total;
    let mut last_end = 0;
    let mut places = Places::new(broken);
    for token in broken.tokens() {
        if matches!(token.kind, TokenKind::LineComment | TokenKind::BlockComment) {
            continue;
        }
        let (place, first_on_line) = places.of(token.start);
        if first_on_line && matches!(token.kind, TokenKind::Open | TokenKind::Atom | TokenKind::Prefix) {
            let late = |open: &&Open| open.place.line < place.line && open.place.column >= place.column;
            let count = open.iter().rev().take(left).take_while(late).count();
            if let Some(innermost) = open.last().copied().filter(|_| count > 0) {
                found.push(Missing { innermost, count, at: last_end });
                open.truncate(open.len() - count);
                left -= count;
            }
        }
        match token.kind {
            TokenKind::Open => open.push(Open { byte: token.start, end: token.end, place }),
            TokenKind::Close => {
                open.pop()?;
            }
            _ => {}
        }
        last_end = token.end;
    }
    if let Some(innermost) = open.last().copied() {
        found.push(Missing { innermost, count: open.len(), at: last_end });
    }
    Some(found)
}

/// Returns one place for all missing parentheses: the end of the form.
fn at_the_end(broken: &Broken<'_>) -> Vec<Missing> {
    let mut open: Vec<Open> = Vec::new();
    let mut last_end = 0;
    let mut places = Places::new(broken);
    for token in broken.tokens() {
        match token.kind {
            TokenKind::LineComment | TokenKind::BlockComment => continue,
            TokenKind::Open => open.push(Open { byte: token.start, end: token.end, place: places.of(token.start).0 }),
            TokenKind::Close => drop(open.pop()),
            _ => {}
        }
        last_end = token.end;
    }
    let innermost = open.last().copied();
    innermost.map(|innermost| Missing { innermost, count: open.len(), at: last_end }).into_iter().collect()
}

/// A conversion from the bytes of a form to lines and columns. Bytes must be queried in ascending
/// order. A tab advances to the next multiple of 8, as in Emacs.
struct Places<'a> {
    source: &'a str,
    byte: usize,
    place: LineColumn,
    only_space: bool,
}

impl<'a> Places<'a> {
    fn new(broken: &'a Broken<'_>) -> Self {
        let place = line_column(broken.text, broken.span.start);
        Places { source: &broken.source, byte: 0, place, only_space: true }
    }

    /// Returns the place of a byte, and true if only white space is before it on its line.
    fn of(&mut self, byte: usize) -> (LineColumn, bool) {
        for char in self.source.get(self.byte..byte).unwrap_or_default().chars() {
            match char {
                '\n' | '\r' => {
                    self.place = LineColumn { line: self.place.line + usize::from(char == '\n'), column: 1 };
                    self.only_space = true;
                }
                '\t' => self.place.column = (self.place.column - 1) / 8 * 8 + 9,
                _ => {
                    self.place.column += 1;
                    self.only_space &= char.is_whitespace();
                }
            }
        }
        self.byte = byte;
        (self.place, self.only_space)
    }
}
