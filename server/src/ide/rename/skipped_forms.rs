//! Forms that the reader skips because of a feature condition.

use crate::text::datum::Form;

/// Returns the feature condition before a form, if the reader skipped the form because of it. `why`
/// is the reader's error about the form.
pub(super) fn guard_of_skipped<'a>(form: &'a Form, why: &str) -> Option<&'a str> {
    let node = form.nodes.first().filter(|node| node.guarded && why.starts_with("end of file"))?;
    Some(form.written(node).strip_suffix(form.text(node))?.trim())
}
