//! A fix for a finding of a user's lint rule, which rewrites the list. The data of the finding has
//! the new text.

use serde_json::{Value, json};

use super::{Change, Fix};
use crate::ide::index::digest_of;
use crate::model::diagnostic::Diagnostic;
use crate::text::Span;
use crate::text::datum::{Form, Node};
use crate::text::document::Document;

/// The maximum length in bytes of a list and of its replacement.
const MAX_BYTES: usize = 4_000;
/// The maximum number of characters of the replacement in a title.
const MAX_TITLE_CHARS: usize = 60;

/// Returns the data of a finding whose list can be rewritten as `text`, or `None` if one of them is
/// too long.
pub(in crate::ide) fn data(form: &Form, list: &Node, text: &str) -> Option<Value> {
    let before = form.text(list);
    (text.len() <= MAX_BYTES && before.len() <= MAX_BYTES)
        .then(|| json!({"rewrite": {"span": list.span, "text": text, "of": digest_of(before)}}))
}

pub(super) fn fix(document: &Document, item: &Diagnostic) -> Option<Fix> {
    let rewrite = item.data.get("rewrite")?;
    let span: Span = serde_json::from_value(rewrite.get("span")?.clone()).ok()?;
    let text = rewrite.get("text")?.as_str()?.to_owned();
    // The document may have changed since the finding was made.
    let before = document.text().get_slice(span.start..span.end)?.to_string();
    (Some(digest_of(before.as_str())) == rewrite.get("of")?.as_u64()).then_some(())?;
    let line = text.split_whitespace().collect::<Vec<&str>>().join(" ");
    let shown: String = line.chars().take(MAX_TITLE_CHARS).collect();
    let more = if shown.len() < line.len() { "…" } else { "" };
    Some(Fix::new(format!("Write {shown}{more}"), vec![Change { span, text }]))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{applied, marked};
    use super::*;

    #[test]
    fn a_list_is_rewritten_while_it_is_as_it_was() {
        let (document, item) = marked("(a («first» é))", "lint-own");
        let form = Form::at(&document, 4).unwrap();
        let list = &form.nodes[0].children[1];
        let item = Diagnostic { data: data(&form, list, "(car\n é)").unwrap(), ..item };
        let fixed = fix(&document, &item).unwrap();
        assert_eq!((fixed.title.as_str(), applied(&document, &fixed).as_str()), ("Write (car é)", "(a (car\n é))"));
        assert!(fix(&Document::new("(a (first e))", 0), &item).is_none());
        assert!(fix(&Document::new("(a", 0), &item).is_none());
        assert!(data(&form, list, &"x".repeat(MAX_BYTES + 1)).is_none());
    }
}
