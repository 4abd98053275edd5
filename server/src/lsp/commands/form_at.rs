//! The top-level form at a position of a document, a part of which is to be expanded.

use lsp_types::{Position, Url};

use crate::lsp::from_proto;
use crate::text::Span;
use crate::text::document::Document;
use crate::text::forms::{package_at, toplevel_form};
use crate::text::position::{PositionEncoding, line_column, to_offset};

/// A top-level form, and a position in it.
pub(super) struct FormAt {
    pub(super) form: Span,
    /// The offset of the position in the form.
    pub(super) offset: usize,
    /// The form's column, 0-based.
    pub(super) column: usize,
    /// The package in force at the form.
    pub(super) package: String,
}

impl FormAt {
    /// Returns the form at a position, or `None` if there is none.
    pub(super) fn of(document: &Document, uri: &Url, position: Position, encoding: PositionEncoding) -> Option<FormAt> {
        let at = to_offset(document.text(), from_proto::position(position), encoding);
        let form = toplevel_form(document, at)?;
        let first = if uri.path().ends_with(".asd") { "ASDF-USER" } else { "COMMON-LISP-USER" };
        Some(FormAt {
            offset: at.clamp(form.start, form.end) - form.start,
            column: line_column(document.text(), form.start).column - 1,
            package: package_at(document, form.start).unwrap_or_else(|| first.into()),
            form,
        })
    }
}
