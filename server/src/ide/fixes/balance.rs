//! Fixes for unbalanced forms, from the data of the findings of `ide::structure`.

use super::{Change, Fix};
use crate::model::diagnostic::Diagnostic;
use crate::text::Span;

pub(super) fn fix(item: &Diagnostic) -> Option<Fix> {
    if let Some(insert) = item.data.get("insert") {
        let at = usize::try_from(insert["at"].as_u64()?).ok()?;
        let text = insert["text"].as_str()?.to_owned();
        let title = format!("Insert `{text}`");
        return Some(Fix::new(title, vec![Change { span: Span { start: at, end: at }, text }]).preferred());
    }
    let span: Span = serde_json::from_value(item.data.get("delete")?.clone()).ok()?;
    Some(Fix::new("Delete it", vec![Change { span, text: String::new() }]).preferred())
}
