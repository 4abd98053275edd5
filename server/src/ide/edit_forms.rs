//! Several edits by form of one text, and patches within a form. Repairs a missing or extra
//! parenthesis of the new text.

use super::edit_form::{Edit, Operation, Refusal, edit, form_text};
use super::{fixes, structure};
use crate::model::diagnostic::Diagnostic;
use crate::text::document::Document;
use crate::text::position::line_of;

/// The maximum number of parentheses repaired in one content.
const MENDED: usize = 4;

/// An edit of one form.
#[derive(Debug, Clone, Default)]
pub struct FormEdit {
    /// The operator of the form.
    pub form_type: String,
    /// The name of the form.
    pub form_name: String,
    /// The operation; not used for a patch.
    pub operation: Option<Operation>,
    /// The new form.
    pub content: Option<String>,
    /// Text within the form, to be found once.
    pub old: Option<String>,
    /// The replacement text.
    pub new: Option<String>,
}

/// The edits of a text, together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edits {
    /// Each, with places in the text as the ones before it left it.
    pub each: Vec<Edit>,
    /// The text afterwards.
    pub text: String,
    /// The new form of each edit, as it was written.
    pub contents: Vec<String>,
    /// Descriptions of the repairs.
    pub mended: Vec<String>,
}

impl Edits {
    /// The single changed range of the old text, and its replacement.
    pub fn change<'a>(&'a self, old: &str) -> (std::ops::Range<usize>, &'a str) {
        let new = self.text.as_str();
        let mut start = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
        while !old.is_char_boundary(start) || !new.is_char_boundary(start) {
            start -= 1;
        }
        let most = old.len().min(new.len()) - start;
        let mut end = old.bytes().rev().zip(new.bytes().rev()).take(most).take_while(|(a, b)| a == b).count();
        while !old.is_char_boundary(old.len() - end) || !new.is_char_boundary(new.len() - end) {
            end -= 1;
        }
        (start..old.len() - end, &new[start..new.len() - end])
    }
}

/// Does each edit in turn; all of them or none.
///
/// # Errors
/// As [`edit`]; for a patch also that its old text is not in the form, or more than once.
pub fn edit_all(text: &str, edits: &[FormEdit]) -> Result<Edits, Refusal> {
    let mut done = Edits { each: Vec::new(), text: text.to_owned(), contents: Vec::new(), mended: Vec::new() };
    for (index, wanted) in edits.iter().enumerate() {
        let one = one(&done.text, wanted).map_err(|mut refusal| {
            if edits.len() > 1 {
                refusal.message = format!("Edit {} of {}: {}", index + 1, edits.len(), refusal.message);
            }
            refusal
        })?;
        let (edit, content, mended) = one;
        if let Some(mended) = mended {
            done.mended.push(format!("{}: {mended}", edit.title));
        }
        done.text.clone_from(&edit.text);
        done.contents.push(content);
        done.each.push(edit);
    }
    Ok(done)
}

fn refusal<T>(kind: &'static str, message: String) -> Result<T, Refusal> {
    Err(Refusal { kind, message })
}

fn one(text: &str, wanted: &FormEdit) -> Result<(Edit, String, Option<String>), Refusal> {
    let (operation, content) = match (&wanted.content, &wanted.old, &wanted.new) {
        (Some(content), None, None) => (wanted.operation.unwrap_or(Operation::Replace), content.clone()),
        (None, Some(old), Some(new)) => {
            if !matches!(wanted.operation, None | Some(Operation::Replace)) {
                return refusal(
                    "bad-arguments",
                    "`old` and `new` replace text within the form; leave `operation` out.".into(),
                );
            }
            (Operation::Replace, patched(&form_text(text, &wanted.form_type, &wanted.form_name)?, old, new)?)
        }
        _ => {
            return refusal(
                "bad-arguments",
                "Give either `content`, the new form, or `old` and `new`, a piece of the form's text and what takes its place.".into(),
            );
        }
    };
    match edit(text, &wanted.form_type, &wanted.form_name, operation, &content) {
        Err(refused) if refused.kind == "content-unreadable" => match mend(&content) {
            Some((mended, words)) => {
                let edit = edit(text, &wanted.form_type, &wanted.form_name, operation, &mended).map_err(|_| refused)?;
                Ok((edit, mended, Some(words)))
            }
            None => Err(refused),
        },
        Err(refused) => Err(refused),
        Ok(edit) => Ok((edit, content, None)),
    }
}

fn patched(form: &str, old: &str, new: &str) -> Result<String, Refusal> {
    // A file's line breaks may be another system's.
    let (form, old) = (form.replace("\r\n", "\n"), old.replace("\r\n", "\n"));
    match if old.is_empty() { 0 } else { form.matches(&old).count() } {
        1 => Ok(form.replacen(&old, new, 1)),
        0 => refusal(
            "old-not-found",
            format!(
                "The form does not have the text of `old`. Nothing was changed. It is:\n{}",
                super::clip::clip(&form, 2_000).text
            ),
        ),
        count => refusal(
            "old-ambiguous",
            format!(
                "The form has the text of `old` {count} times. Nothing was changed. Give more of what is around it."
            ),
        ),
    }
}

/// The content with missing `)` inserted and extra ones removed, as its structural diagnostics
/// indicate, and a description of the repair.
fn mend(content: &str) -> Option<(String, String)> {
    let mut text = content.to_owned();
    let mut words = Vec::new();
    let mut parentheses = 0;
    for _ in 0..=MENDED {
        let document = Document::new(&text, 0);
        let found = structure::check(&document).diagnostics;
        let Some(first) = found.first() else {
            return (!words.is_empty()).then(|| (text, words.join("; ")));
        };
        let (changed, count, what) = mend_one(&document, first)?;
        parentheses += count;
        if parentheses > MENDED {
            return None;
        }
        text = changed;
        words.push(what);
    }
    None
}

fn mend_one(document: &Document, item: &Diagnostic) -> Option<(String, usize, String)> {
    if !matches!(item.code.as_str(), "unbalanced-list" | "unbalanced-close") {
        return None;
    }
    let change = fixes::of_text(document, item).into_iter().next()?.changes.into_iter().next()?;
    let mut text = document.text().clone();
    let line = line_of(&text, change.span.start) + 1;
    let removed = text.slice(change.span.start..change.span.end).to_string();
    let parentheses = |text: &str| text.chars().all(|char| char == ')');
    if !parentheses(&change.text) || !parentheses(removed.trim()) {
        return None;
    }
    text.remove(change.span.start..change.span.end);
    text.insert(change.span.start, &change.text);
    let what = if removed.is_empty() {
        format!("put the missing `{}` in on line {line} of the content", change.text)
    } else {
        format!("took the extra `{}` out on line {line} of the content", removed.trim())
    };
    Some((text.to_string(), change.text.len() + removed.trim().len(), what))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TEXT: &str = "(in-package :a)\n\n(defun f (x)\n  (list x x))\n\n(defun g (y)\n  (car y))\n";

    fn replace(name: &str, content: &str) -> FormEdit {
        FormEdit {
            form_type: "defun".into(),
            form_name: name.into(),
            content: Some(content.into()),
            ..FormEdit::default()
        }
    }

    fn patch(name: &str, old: &str, new: &str) -> FormEdit {
        let (old, new) = (Some(old.into()), Some(new.into()));
        FormEdit { form_type: "defun".into(), form_name: name.into(), old, new, ..FormEdit::default() }
    }

    #[test]
    fn a_patch_changes_a_piece_of_the_form() {
        let edits = edit_all(TEXT, &[patch("g", "(car y)", "(cdr y)")]).unwrap();
        assert_eq!(edits.text, TEXT.replace("(car y)", "(cdr y)"));
        let (range, by) = edits.change(TEXT);
        assert_eq!((&TEXT[range], by), ("a", "d"));
        let crlf = TEXT.replace('\n', "\r\n");
        let edits = edit_all(&crlf, &[patch("g", "(y)\n  (car", "(y)\n  (cdr")]).unwrap();
        assert_eq!(edits.text, crlf.replace("car", "cdr"));
        for (old, kind) in [("nothing", "old-not-found"), ("", "old-not-found"), ("x", "old-ambiguous")] {
            assert_eq!(edit_all(TEXT, &[patch("f", old, "z")]).unwrap_err().kind, kind, "{old}");
        }
    }

    #[test]
    fn several_forms_are_edited_together_or_not_at_all() {
        let edits = edit_all(TEXT, &[replace("f", "(defun f (x)\n  x)"), patch("g", "car", "cdr")]).unwrap();
        assert_eq!(edits.text, TEXT.replace("(list x x)", "x").replace("car", "cdr"));
        let (range, by) = edits.change(TEXT);
        assert_eq!([&TEXT[..range.start], by, &TEXT[range.end..]].concat(), edits.text);
        let refused = edit_all(TEXT, &[patch("g", "car", "cdr"), replace("h", "(defun h ())")]).unwrap_err();
        assert_eq!(refused.kind, "form-not-found");
        assert!(refused.message.starts_with("Edit 2 of 2: "), "{refused}");
    }

    #[test]
    fn a_parenthesis_is_mended_with_a_word_about_it() {
        for content in ["(defun f (x)\n  (list x)", "(defun f (x)\n  (list x)))"] {
            let edits = edit_all(TEXT, &[replace("f", content)]).unwrap();
            assert_eq!(edits.text, TEXT.replace("(list x x)", "(list x)"), "{content}");
            assert!(edits.mended[0].contains("line 2 of the content"), "{:?}", edits.mended);
            assert_eq!(edits.contents, ["(defun f (x)\n  (list x))"]);
        }
        for content in ["(a) (b)", "\"a", "(a . )", "((((((a", "", "(a #<x>"] {
            assert!(edit_all(TEXT, &[replace("f", content)]).is_err(), "{content}");
        }
    }
}
