//! Errors for code that cannot be read, with the same messages as the diagnostics.

use super::requests::in_place;
use crate::ide::structure;
use crate::model::evaluation::EvalOutcome;
use crate::text::document::Document;
use crate::text::position::{LineColumn, line_column};

/// Replaces the message of the outcome's error if the code could not be read. The new message is
/// that of the first structural diagnostic in the part that was read or, without one, the reader's
/// message, followed by line and column. The code is the part of `text` from the character offset
/// `start` on. `place` is the place in the file at which `text` begins; `None` if `text` begins at
/// the start of its file or has no file.
pub(super) fn explain(
    text: impl FnOnce() -> String,
    start: usize,
    place: Option<LineColumn>,
    outcome: &mut EvalOutcome,
) {
    let Some(error) = &mut outcome.error else { return };
    let Some(unread) = error.unread else { return };
    let text = text();
    error.message = in_place(text.len(), || {
        let document = Document::new(&text, 0);
        let mut found = structure::check(&document).diagnostics;
        // The reader stops at the first form that it cannot read. Later diagnostics do not concern
        // this error.
        found.retain(|found| (start..=start + unread).contains(&found.span.start));
        let (message, at) = match found.into_iter().next() {
            Some(found) => (found.message, found.span.start),
            None => (error.message_without_stream().to_owned(), start + unread),
        };
        let LineColumn { mut line, mut column } = line_column(document.text(), at);
        if let Some(place) = place {
            column += if line == 1 { place.column - 1 } else { 0 };
            line += place.line - 1;
        }
        format!("{message} (line {line}, column {column})")
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::evaluation::{EvalError, EvalStatus};

    fn explained(text: &str, start: usize, error: EvalError) -> String {
        let mut outcome = EvalOutcome::empty(EvalStatus::Error, Some(error));
        explain(|| text.to_owned(), start, None, &mut outcome);
        outcome.error.map(|error| error.message).unwrap_or_default()
    }

    #[test]
    fn what_cannot_be_read_is_said_as_diagnostics_say_it() {
        let unread = |message: &str, at| EvalError { unread: Some(at), ..EvalError::new("READER-ERROR", message) };
        insta::assert_snapshot!(
            explained("(+ 1", 0, unread("The code ends within a form.", 4)),
            @"This list is never closed; one `)` is missing here. (line 1, column 1)"
        );
        insta::assert_snapshot!(
            explained("\n(list 1)\n(+ 1))", 10, unread("unmatched close parenthesis", 6)),
            @"This `)` closes nothing: there is one too many. (line 3, column 6)"
        );
        insta::assert_snapshot!(
            explained("(foo:bar)\n(+ 1", 0, unread("Package FOO does not exist.", 8)),
            @"Package FOO does not exist. (line 1, column 9)"
        );
        insta::assert_snapshot!(
            explained("(foo:bar)", 0, unread("Package FOO does not exist. Line: 1, Column: 7, File-Position: 7 Stream: #<STRING-INPUT-STREAM>", 8)),
            @"Package FOO does not exist. (line 1, column 9)"
        );
        assert_eq!(explained("(f)", 0, EvalError::new("UNDEFINED-FUNCTION", "as it is")), "as it is");
    }
}
