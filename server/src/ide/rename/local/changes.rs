//! The changes that give occurrences a new name, and a check that they keep the meaning of other
//! names.

use std::collections::HashMap;

use super::super::Change;
use super::super::spelling::{keyword, respelled, same};
use super::occurrences::Spans;
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::scopes::{Scopes, Shorthand};

/// Returns the changes that give the occurrences the new name.
pub(super) fn changes(form: &Form, scopes: &Scopes, spans: &Spans, old_as_written: &str, new: &str) -> Vec<Change> {
    let source: Vec<char> = form.source.chars().collect();
    let written = |span: &Span| -> String {
        let start = span.start - form.span.start;
        source[start..].iter().take(span.end - span.start).collect()
    };
    let shorthands: HashMap<Span, &Shorthand> =
        scopes.bindings.iter().rev().map(|binding| (binding.span, &binding.shorthand)).collect();
    let mut found: Vec<Change> = Vec::new();
    for span in spans {
        let old = written(span);
        let plain = respelled(&old, old_as_written, new);
        let (span, by) = match shorthands.get(span) {
            Some(Shorthand::Key) => (*span, format!("(({} {plain}))", keyword(&old))),
            Some(Shorthand::KeyInList) => (*span, format!("({} {plain})", keyword(&old))),
            Some(Shorthand::KeyPair { keyword, around, alone })
                if same(keyword, &plain) && keyword.starts_with(':') =>
            {
                let whole = if *alone { format!("(({keyword} {old}))") } else { format!("({keyword} {old})") };
                if written(around) == whole { (*around, plain) } else { (*span, plain) }
            }
            Some(Shorthand::Slot) => (*span, format!("({plain} {old})")),
            Some(Shorthand::SlotPair { slot, around })
                if *slot == plain && written(around) == format!("({old} {slot})") =>
            {
                (*around, plain)
            }
            _ => (*span, plain),
        };
        found.push(Change { span, by, unsure: None });
    }
    found
}

/// Returns the text of the form with the changes.
pub(super) fn changed(form: &Form, changes: &[Change]) -> String {
    let mut text = String::with_capacity(form.source.len());
    let mut chars = form.source.chars();
    let mut at = form.span.start;
    for change in changes {
        text.extend(chars.by_ref().take(change.span.start.saturating_sub(at)));
        text.push_str(&change.by);
        chars.by_ref().take(change.span.end - change.span.start).for_each(drop);
        at = change.span.end;
    }
    text.extend(chars);
    text
}

/// Checks that each other name of the form resolves to the same binding before and after the
/// changes, by the scopes of the text.
///
/// # Errors
/// The reason names the first name that resolves to another binding.
pub(in crate::ide::rename) fn keeps_meanings(form: &Form, scopes: &Scopes, changes: &[Change]) -> Result<(), String> {
    keeps_meanings_without(form, scopes, changes, &[])
}

/// Does the same as [`keeps_meanings`], except that operators with the names in `plain` bind
/// nothing in the changed text.
///
/// # Errors
/// See [`keeps_meanings`].
pub(in crate::ide::rename) fn keeps_meanings_without(
    form: &Form,
    scopes: &Scopes,
    changes: &[Change],
    plain: &[String],
) -> Result<(), String> {
    let text = changed(form, changes);
    let document = crate::text::document::Document::new(&text, 0);
    let after = Form::of(&document, Span { start: 0, end: document.text().len_chars() });
    let after = Scopes::without(&after, plain);
    match scopes.first_difference(&after) {
        None => Ok(()),
        Some(name) => Err(format!("{name} would then mean another binding")),
    }
}
