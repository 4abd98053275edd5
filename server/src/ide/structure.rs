//! What can be told of a text without Lisp: parentheses, strings, comments and `|` that do not balance.

use super::diagnostic::{Diagnostic, Severity};
use crate::text::Span;
use crate::text::document::Document;
use crate::text::toplevel::{Fault, TopForm};

/// The structure of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Structure {
    /// What is wrong, in the order of the text; every one an error.
    pub diagnostics: Vec<Diagnostic>,
    /// The top-level forms that cannot be read, in order and disjoint: the compiler takes them as white space.
    pub withheld: Vec<Span>,
}

/// Check a document's structure. Takes time by the number of forms and by the size of the broken ones. For a text that is no open
/// document: `check(&Document::new(text, 0))`.
pub fn check(document: &Document) -> Structure {
    let mut structure = Structure::default();
    for form in document.scan().broken() {
        if let Some(fault) = form.fault {
            structure.diagnostics.push(diagnostic(form, fault));
            structure.withheld.push(form.span);
        }
    }
    structure
}

fn diagnostic(form: &TopForm, fault: Fault) -> Diagnostic {
    let (code, message) = match fault {
        Fault::UnclosedList => ("unbalanced-list", "This list is never closed."),
        Fault::ExtraClose => ("extra-close", "This `)` closes nothing."),
        Fault::UnterminatedString => ("unterminated-string", "This string never ends."),
        Fault::UnterminatedBar => ("unterminated-symbol", "This `|` is never closed."),
        Fault::UnterminatedComment => ("unterminated-comment", "This comment never ends."),
        Fault::DanglingEscape => ("dangling-escape", "The text ends after this backslash."),
        Fault::DanglingPrefix => ("dangling-prefix", "Nothing follows."),
    };
    Diagnostic {
        span: form.span,
        severity: Severity::Error,
        code: code.to_owned(),
        message: message.to_owned(),
        condition: None,
        form: None,
        toplevel: Some(form.span),
        tags: Vec::new(),
        related: Vec::new(),
        data: serde_json::Value::Null,
    }
}
