//! Several edits of one text, each of a form or of a piece of text within a form. Missing or extra
//! parentheses of the new text are repaired.

mod batch;

use self::batch::Batch;
use super::edit_form::{Edit, Operation, Refusal};
use super::{fixes, structure};
use crate::model::diagnostic::Diagnostic;
use crate::text::document::Document;
use crate::text::position::line_of;

/// The maximum number of parentheses repaired in one content.
const MAX_REPAIRS: usize = 4;

/// An edit of one form.
#[derive(Debug, Clone, Default)]
pub struct FormEdit {
    /// The operator of the form.
    pub form_type: String,
    /// The name of the form.
    pub form_name: String,
    /// The operation. `None` means [`Operation::Replace`], which is the only operation for a patch.
    pub operation: Option<Operation>,
    /// The new form.
    pub content: Option<String>,
    /// The replaced text, which must occur exactly once in the form.
    pub old: Option<String>,
    /// The replacement text.
    pub new: Option<String>,
}

/// The result of several edits of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edits {
    /// The edits in order. The offsets of each are those in the text that the edits before it made.
    pub each: Vec<Edit>,
    /// The text afterwards.
    pub text: String,
    /// The new form of each edit, as it was written.
    pub contents: Vec<String>,
    /// Descriptions of the repairs.
    pub repairs: Vec<String>,
}

impl Edits {
    /// Returns the single changed range of the old text in bytes, and its replacement.
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

/// Makes the edits in order. On an error, makes none. Edits that do not depend on each other are
/// made together, so that the text is parsed once for them.
///
/// # Errors
/// A content is not one form. No form, or more than one, is selected. A form does not balance. The
/// old text of a patch is not in the form, or is there more than once.
pub fn edit_all(text: &str, edits: &[FormEdit]) -> Result<Edits, Refusal> {
    let mut done = Edits { each: Vec::new(), text: text.to_owned(), contents: Vec::new(), repairs: Vec::new() };
    let mut together = usize::MAX;
    while done.each.len() < edits.len() {
        let first = done.each.len();
        let numbered = |mut refusal: Refusal| {
            if edits.len() > 1 {
                refusal.message = format!("Edit {} of {}: {}", first + 1, edits.len(), refusal.message);
            }
            refusal
        };
        let batch = Batch::plan(&done.text, &edits[first..], together).map_err(numbered)?;
        match batch.apply() {
            Ok(batch) => {
                done.text = batch.text;
                done.each.extend(batch.each);
                done.contents.extend(batch.contents);
                done.repairs.extend(batch.repairs);
                together = together.saturating_mul(2);
            }
            // One of the edits is refused. It is found by making fewer of them at once.
            Err(_) if batch.len() > 1 => together = batch.len() / 2,
            Err(refusal) => return Err(numbered(refusal)),
        }
    }
    Ok(done)
}

fn refusal<T>(kind: &'static str, message: String) -> Result<T, Refusal> {
    Err(Refusal { kind, message })
}

/// Returns the form with its only occurrence of `old` replaced by `new`. Every other byte is kept.
/// In `old`, LF also matches CRLF, because an agent does not see a file's line breaks.
fn patched(form: &str, old: &str, new: &str) -> Result<String, Refusal> {
    let plain = form.replace("\r\n", "\n");
    let old = old.replace("\r\n", "\n");
    let mut places = Vec::new();
    let mut from = 0;
    // Overlapping occurrences count separately.
    while let Some(at) = plain[from..].find(&old).map(|at| from + at).filter(|_| !old.is_empty()) {
        places.push(at);
        from = at + plain[at..].chars().next().map_or(1, char::len_utf8);
    }
    match places.as_slice() {
        [at] => {
            let (start, end) = (place_in(form, *at), place_in(form, at + old.len()));
            Ok([&form[..start], new, &form[end..]].concat())
        }
        [] => refusal(
            "old-not-found",
            format!(
                "The form does not have the text of `old`. Nothing was changed. It is:\n{}",
                super::clip::clip(&plain, 2_000).text
            ),
        ),
        several => refusal(
            "old-ambiguous",
            format!(
                "The form has the text of `old` {} times. Nothing was changed. Give more of the surrounding text.",
                several.len()
            ),
        ),
    }
}

/// Returns the byte offset in `form` for the offset `plain` in the same text with LF for each CRLF.
fn place_in(form: &str, plain: usize) -> usize {
    let mut at = 0;
    let mut left = plain;
    for line in form.split_inclusive("\r\n") {
        let length = line.len() - usize::from(line.ends_with("\r\n"));
        if left < length {
            break;
        }
        left -= length;
        at += line.len();
    }
    at + left
}

/// Returns the content with missing `)` inserted and extra ones removed, as its structural
/// diagnostics indicate. Also returns a description of the repair.
fn repair(content: &str, of: &str) -> Option<(String, String)> {
    let mut text = content.to_owned();
    let mut words = Vec::new();
    let mut parentheses = 0;
    for _ in 0..=MAX_REPAIRS {
        let document = Document::new(&text, 0);
        let found = structure::check(&document).diagnostics;
        let Some(first) = found.first() else {
            return (!words.is_empty()).then(|| (text, words.join("; ")));
        };
        let (changed, count, what) = repair_one(&document, first, of)?;
        parentheses += count;
        if parentheses > MAX_REPAIRS {
            return None;
        }
        text = changed;
        words.push(what);
    }
    None
}

fn repair_one(document: &Document, item: &Diagnostic, of: &str) -> Option<(String, usize, String)> {
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
        format!("put the missing `{}` in on line {line} of the {of}", change.text)
    } else {
        format!("took the extra `{}` out on line {line} of the {of}", removed.trim())
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
        let overlapping = edit_all("(defun f () aaa)", &[patch("f", "aa", "b")]).unwrap_err();
        assert_eq!(overlapping.kind, "old-ambiguous");
    }

    #[test]
    fn a_patch_keeps_every_other_byte_of_the_form() {
        // The texts have line breaks of the other kind, in a string and elsewhere. The place of a
        // patch is behind them, before them, or across one.
        for text in [
            "(defun f ()\n  (list \"a\r\nb\" 1)\n  (end))\n(g)\n",
            "(defun f ()\r\n  (list \"a\nb\" 1)\r\n  (end))\r\n(g)\r\n",
            "(defun f ()\r  (list \"a\r\r\nλ\" 1)\n  (end))\n(g)\n",
        ] {
            for (old, new) in [("1", "2"), ("list", "vector"), ("(end)", "(é)")] {
                let edits = edit_all(text, &[patch("f", old, new)]).unwrap();
                assert_eq!(edits.text, text.replace(old, new));
            }
            let edits = edit_all(text, &[patch("f", "1)\n  (end)", "2)\n  (done)")]).unwrap();
            assert_eq!(edits.text, text.replace('1', "2").replace("end", "done"));
            let edits = edit_all(text, &[patch("f", "1)\r\n  (end)", "2) (done)")]).unwrap();
            assert_eq!(edits.text.matches('\n').count(), text.matches('\n').count() - 1);
        }
        let refused = edit_all(TEXT, &[patch("g", "(car y)", ") (defun h ()")]).unwrap_err();
        assert!(refused.message.starts_with("With `new` in the place of `old` the form would"), "{refused}");
    }

    #[test]
    fn quoted_data_is_no_definition() {
        for text in ["'(defun f () 1)\n", "`(defun f () 1)\n", "#'(defun f () 1)\n", "#.(defun f () 1)\n"] {
            let refused = edit_all(text, &[replace("f", "(defun f () 2)")]).unwrap_err();
            assert_eq!(refused.kind, "form-not-found", "{text}");
        }
        let guarded = edit_all("#+a #-b (defun f () 1)", &[replace("f", "(defun f () 2)")]).unwrap();
        assert_eq!(guarded.text, "#+a #-b (defun f () 2)");
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
    fn forms_without_a_name_are_edited_as_one_after_another() {
        let text = "(a)\n(b)\n(a)\n(cl:a)\n(b)\n";
        let edit = |form_type: &str, form_name: &str, operation, content: &str| FormEdit {
            form_type: form_type.into(),
            form_name: form_name.into(),
            operation: Some(operation),
            content: Some(content.into()),
            ..FormEdit::default()
        };
        let edits = [
            edit("a", "[2]", Operation::Replace, "(a )"),
            edit("b", "[2]", Operation::InsertBefore, "(a)"),
            edit("cl:a", "[3]", Operation::Replace, "(c)"),
            edit("a", "[3]", Operation::Replace, "(d)"),
            edit("b", "[1]", Operation::Replace, "(b )"),
        ];
        let together = edit_all(text, &edits).unwrap().text;
        let mut expected = text.to_owned();
        for edit in edits {
            expected = edit_all(&expected, &[edit]).unwrap().text;
        }
        assert_eq!(together, expected);
        assert_eq!(together, "(a)\n(b )\n(a )\n(c)\n(d)\n\n(b)\n");
    }

    #[test]
    fn a_parenthesis_is_repaired_with_a_word_about_it() {
        for content in ["(defun f (x)\n  (list x)", "(defun f (x)\n  (list x)))"] {
            let edits = edit_all(TEXT, &[replace("f", content)]).unwrap();
            assert_eq!(edits.text, TEXT.replace("(list x x)", "(list x)"), "{content}");
            assert!(edits.repairs[0].contains("line 2 of the content"), "{:?}", edits.repairs);
            assert_eq!(edits.contents, ["(defun f (x)\n  (list x))"]);
        }
        for content in ["(a) (b)", "\"a", "(a . )", "((((((a", "", "(a #<x>"] {
            assert!(edit_all(TEXT, &[replace("f", content)]).is_err(), "{content}");
        }
    }
}
