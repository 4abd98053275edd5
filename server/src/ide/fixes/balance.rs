//! Fixes for unbalanced forms, from the data of the findings of `ide::structure`.

use super::{Change, Fix};
use crate::model::diagnostic::Diagnostic;
use crate::text::Span;
use crate::text::document::Document;
use crate::text::position::{line_content, line_of};

/// Returns the place at which text is missing: from the last character before it to the end of its
/// line. The message of the diagnostic names that line, and the cursor is there after typing.
pub(super) fn place(document: &Document, item: &Diagnostic) -> Option<Span> {
    let text = document.text();
    let at = usize::try_from(item.data.get("insert")?["at"].as_u64()?).ok()?.min(text.len_chars());
    let start = at.saturating_sub(1);
    let line = line_of(text, start);
    Some(Span { start, end: (text.line_to_char(line) + line_content(text, line).len_chars()).max(at) })
}

pub(super) fn fix(item: &Diagnostic) -> Option<Fix> {
    if let Some(insert) = item.data.get("insert") {
        let at = usize::try_from(insert["at"].as_u64()?).ok()?;
        let text = insert["text"].as_str()?.to_owned();
        let title = format!("Insert `{text}`");
        return Some(Fix::new(title, vec![Change { span: Span { start: at, end: at }, text }]).with_preference());
    }
    let span: Span = serde_json::from_value(item.data.get("delete")?.clone()).ok()?;
    Some(Fix::new("Delete it", vec![Change { span, text: String::new() }]).with_preference())
}
