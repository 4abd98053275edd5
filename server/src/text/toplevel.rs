//! Top-level forms of a text: their spans, and the faults of those that cannot be read.
//!
//! A form's span is the text that SBCL's reader consumes for it, from its first prefix or `#+`
//! guard to its end. A guard belongs to the datum that it guards, whatever the features are.
//!
//! In a text that balances, the reader's rule alone decides. In another text, the form that would
//! include the rest of the text is cut at the first line inside it that begins with `(`. The text
//! after the cut is scanned anew, so that one missing parenthesis breaks only one form. If a
//! definition begins at the start of a line within a string (or `|...|`), the end of that string is
//! taken to be missing.

use std::sync::Arc;

use ropey::Rope;

use super::Span;
use super::pass::{FoundForm, MAX_RECOVERIES, Outcome, Pass, Reuse};
use super::top_form::Edited;
pub use super::top_form::{TopForm, Unreadable};

/// The top-level forms of a text, in order and disjoint.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scan {
    /// Shared by all clones of the document. Each request has a clone.
    forms: Arc<[TopForm]>,
}

/// Returns the source text of each top-level form. If a form cannot be read, returns the whole text
/// as one form, so that its errors are about all of it.
pub fn written_forms(text: &str) -> Vec<String> {
    placed_forms(text).into_iter().map(|(_, form)| form).collect()
}

/// Returns the forms of [`written_forms`], each with the character offset at which it begins.
pub fn placed_forms(text: &str) -> Vec<(usize, String)> {
    let scan = Scan::of(text);
    if scan.broken().next().is_some() {
        return vec![(0, text.to_owned())];
    }
    let mut chars = text.chars();
    let mut at = 0;
    let form = |form: &TopForm| {
        let (start, end) = (form.span.start, form.span.end);
        let written: String = chars.by_ref().skip(start - at).take(end - start).collect();
        at = end;
        (start, written)
    };
    scan.forms().iter().map(form).collect()
}

/// The number of bytes after an edit that an update scans at first. If they do not decide all
/// forms, the rest of the text is scanned.
const SCAN_WINDOW_BYTES: usize = 16 * 1024;

impl Scan {
    /// Scans a text, in time linear in its length.
    pub fn of(text: &str) -> Scan {
        let mut pass = Pass::new(text, None, None);
        pass.run(false);
        Scan { forms: in_chars(text, &pass.forms, 0, 0).into() }
    }

    /// Returns all top-level forms, broken ones included.
    pub fn forms(&self) -> &[TopForm] {
        &self.forms
    }

    /// Returns the forms that cannot be read.
    pub fn broken(&self) -> impl Iterator<Item = &TopForm> {
        self.forms.iter().filter(|form| form.fault.is_some())
    }

    /// Returns the form that contains or touches `offset` (in characters). If two forms touch it,
    /// returns the one that begins there.
    pub fn form_at(&self, offset: usize) -> Option<&TopForm> {
        let after = self.forms.partition_point(|form| form.span.start <= offset);
        self.forms[..after].last().filter(|form| offset <= form.span.end)
    }

    /// Updates the scan after an edit. `text` is the new text; `bytes` and `chars` are the edited
    /// range in either unit. The result equals `Scan::of` the new text. The time depends mostly on
    /// the size of the edit.
    pub(super) fn update(&mut self, text: &Rope, bytes: Edited, chars: Edited) {
        let kept = self.kept_before(bytes.start);
        let near = text.char_to_byte(text.byte_to_char((bytes.new_end + SCAN_WINDOW_BYTES).min(text.len_bytes())));
        let forms = self
            .updated(text, bytes, chars, kept, near)
            .or_else(|| self.updated(text, bytes, chars, kept, text.len_bytes()))
            .filter(|forms| equals_one_scan(forms, kept));
        match forms {
            Some(forms) => self.forms = forms.into(),
            None => *self = Scan::of(&String::from(text)),
        }
    }

    /// Returns the number of forms before byte `start` that an update keeps, if [`equals_one_scan`]
    /// confirms them. The last form before `start` is not kept: it may be a prefix whose datum
    /// follows. Neither a form that was cut in a string or comment nor any form after it is kept,
    /// because only a scan of the rest can confirm them.
    fn kept_before(&self, start: usize) -> usize {
        let before = self.forms.partition_point(|form| form.bytes.end < start).saturating_sub(1);
        let first_lexical = self.forms[..before].iter().position(|form| form.fault.is_some_and(is_lexical));
        first_lexical.unwrap_or(before)
    }

    /// Scans the new text after the first `kept` forms, up to byte `until`, and returns all new
    /// forms. Returns `None` if the text up to `until` does not decide them.
    fn updated(&self, text: &Rope, bytes: Edited, chars: Edited, kept: usize, until: usize) -> Option<Vec<TopForm>> {
        let prefix = &self.forms[..kept];
        let (from_byte, from_char) = prefix.last().map_or((0, 0), |form| (form.bytes.end, form.span.end));
        let part = String::from(text.byte_slice(from_byte..until));
        let before = (from_byte > 0).then(|| text.byte(from_byte - 1));
        let mut pass = Pass::new(&part, before, Some(Reuse::new(&self.forms, bytes, from_byte)));
        let outcome = pass.run(until < text.len_bytes())?;
        let rest = match outcome {
            Outcome::End => &[],
            Outcome::Reuse(index) => &self.forms[index..],
        };
        let mut forms = Vec::with_capacity(prefix.len() + pass.forms.len() + rest.len());
        forms.extend_from_slice(prefix);
        forms.extend(in_chars(&part, &pass.forms, from_byte, from_char));
        forms.extend(rest.iter().map(|form| TopForm {
            span: shifted(form.span, chars),
            bytes: shifted(form.bytes, bytes),
            ..*form
        }));
        Some(forms)
    }
}

fn shifted(span: Span, damage: Edited) -> Span {
    let shift = |at: usize| at - damage.old_end + damage.new_end;
    Span { start: shift(span.start), end: shift(span.end) }
}

fn is_lexical(fault: Unreadable) -> bool {
    matches!(fault, Unreadable::UnterminatedString | Unreadable::UnterminatedBar | Unreadable::UnterminatedComment)
}

/// Returns true if forms that were combined from an old and a new scan are certain to equal one
/// scan of the whole text. This requires:
///
/// - The number of cut forms is below the limit of recoveries.
/// - No form after a kept form with an unclosed list has a fault other than an unclosed list, so
///   that no `)` after it can close that list.
/// - No form before the last one with an unterminated string, `|` or comment has a string that
///   seems unterminated.
fn equals_one_scan(forms: &[TopForm], kept: usize) -> bool {
    let cut = |form: &&TopForm| form.fault.is_some_and(|fault| is_lexical(fault) || fault == Unreadable::UnclosedList);
    if forms.iter().filter(cut).count() >= MAX_RECOVERIES {
        return false;
    }
    let unclosed = forms[..kept].iter().position(|form| form.fault == Some(Unreadable::UnclosedList));
    let still_unclosed = unclosed
        .is_none_or(|i| forms[i..].iter().all(|form| matches!(form.fault, None | Some(Unreadable::UnclosedList))));
    let lexical = forms.iter().rposition(|form| form.fault.is_some_and(is_lexical));
    let culprit = lexical.is_none_or(|i| forms[..i].iter().all(|form| !form.seems_unterminated));
    still_unclosed && culprit
}

/// Converts forms with byte offsets in `part` to forms with offsets in the whole text. `part`
/// begins at byte `from_byte` and character `from_char` of the text.
fn in_chars(part: &str, found: &[FoundForm], from_byte: usize, from_char: usize) -> Vec<TopForm> {
    let ascii = found.last().is_none_or(|last| part.as_bytes()[..last.end].is_ascii());
    let (mut byte, mut char) = (0, 0);
    let mut char_at = |at: usize| {
        char += if ascii { at - byte } else { part[byte..at].chars().count() };
        byte = at;
        char + from_char
    };
    let form = |found: &FoundForm| TopForm {
        span: Span { start: char_at(found.start), end: char_at(found.end) },
        fault: found.fault,
        bytes: Span { start: found.start + from_byte, end: found.end + from_byte },
        seems_unterminated: found.missing_delimiter.is_some(),
    };
    found.iter().map(form).collect()
}

#[cfg(test)]
mod tests {
    use super::Unreadable::*;
    use super::*;

    fn forms(text: &str) -> Vec<(String, Option<Unreadable>)> {
        let chars: Vec<char> = text.chars().collect();
        let scan = Scan::of(text);
        scan.forms().iter().map(|form| (chars[form.span.start..form.span.end].iter().collect(), form.fault)).collect()
    }

    #[test]
    fn a_text_may_have_several_forms() {
        assert_eq!(
            written_forms("(in-package :a) 'b ; c\n#+d \"é\"(e)"),
            ["(in-package :a)", "'b", "#+d \"é\"", "(e)"]
        );
        assert_eq!(written_forms("(a) )"), ["(a) )"]);
        assert_eq!(placed_forms("é ; (a)\n(a)"), [(0, "é".to_owned()), (8, "(a)".to_owned())]);
        assert_eq!(written_forms(" ; only a comment"), [""; 0]);
    }

    fn whole(text: &str, expected: &[&str]) {
        let expected: Vec<_> = expected.iter().map(|form| ((*form).to_owned(), None)).collect();
        assert_eq!(forms(text), expected, "{text:?}");
    }

    fn broken(text: &str, expected: &[(&str, Option<Unreadable>)]) {
        let expected: Vec<_> = expected.iter().map(|(form, fault)| ((*form).to_owned(), *fault)).collect();
        assert_eq!(forms(text), expected, "{text:?}");
    }

    #[test]
    fn a_form_is_what_the_reader_consumes_for_it() {
        whole("(a)(b) c d", &["(a)", "(b)", "c", "d"]);
        whole("; (x)\n(é \"漢)\") #| (y) |# 'b", &["(é \"漢)\")", "'b"]);
        whole("#'a `(b ,c ,@d) #.(e) '\n#| |# f", &["#'a", "`(b ,c ,@d)", "#.(e)", "'\n#| |# f"]);
        whole("#p\"x\" #x FF #1=(a . #1#)", &["#p\"x\"", "#x FF", "#1=(a . #1#)"]);
        whole("#?\"a\" #@(b) (c #?) #?", &["#?\"a\"", "#@(b)", "(c #?)", "#?"]);
    }

    #[test]
    fn a_guard_belongs_to_its_datum() {
        whole("#+sbcl (a) (b)", &["#+sbcl (a)", "(b)"]);
        whole("#+(or a b)\n#-c ; no\n(d) e", &["#+(or a b)\n#-c ; no\n(d)", "e"]);
        whole("'#+a b c", &["'#+a b", "c"]);
        whole("(a #+b c #-b d) e", &["(a #+b c #-b d)", "e"]);
    }

    #[test]
    fn only_the_form_that_is_broken_is_lost() {
        broken("(a\n(b)\n(c)", &[("(a", Some(UnclosedList)), ("(b)", None), ("(c)", None)]);
        broken(
            "(a \"x\n(defun b \"y\")\n(c)",
            &[("(a \"x", Some(UnterminatedString)), ("(defun b \"y\")", None), ("(c)", None)],
        );
        broken("(a |x\n(b)\n(c)", &[("(a |x", Some(UnterminatedBar)), ("(b)", None), ("(c)", None)]);
        broken("(a))\n(b)", &[("(a)", None), (")", Some(ExtraClose)), ("(b)", None)]);
        broken("(a ')\n(b)", &[("(a ')", Some(DanglingPrefix)), ("(b)", None)]);
        broken("(a)\n#| (b)", &[("(a)", None), ("#| (b)", Some(UnterminatedComment))]);
        broken("(a\n(b)\n#| (c", &[("(a", Some(UnclosedList)), ("(b)", None), ("#| (c", Some(UnterminatedComment))]);
        broken("(a) '", &[("(a)", None), ("'", Some(DanglingPrefix))]);
        broken("(a) #\\", &[("(a)", None), ("#\\", Some(DanglingEscape))]);
    }

    #[test]
    fn text_that_balances_is_never_cut() {
        whole("(progn\n(a)\n\"\n(defun x\"\n(b))\n(c)", &["(progn\n(a)\n\"\n(defun x\"\n(b))", "(c)"]);
    }

    #[test]
    fn many_broken_forms_are_told_apart_as_long_as_each_line_begins_one() {
        let text = "(a (b)\n".repeat(100) + "(c)";
        let forms = forms(&text);
        assert_eq!(forms.len(), 101);
        assert!(forms[..100].iter().all(|form| *form == ("(a (b)".to_owned(), Some(UnclosedList))), "{forms:?}");
        assert_eq!(forms[100], ("(c)".to_owned(), None));
    }

    #[test]
    fn a_deep_text_needs_no_deep_stack() {
        let deep = "(".repeat(300_000);
        assert_eq!(Scan::of(&deep).broken().count(), 1);
        assert_eq!(Scan::of(&(deep + &")".repeat(300_000))).broken().count(), 0);
    }

    #[test]
    fn the_form_at_an_offset() {
        let scan = Scan::of("(a)(b)  c");
        let at = |offset| scan.form_at(offset).map(|form| form.span.start);
        assert_eq!(
            [0, 2, 3, 6, 7, 8, 9, 10].map(at),
            [Some(0), Some(0), Some(3), Some(3), None, Some(8), Some(8), None]
        );
    }
}
