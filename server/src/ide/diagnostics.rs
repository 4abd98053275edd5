//! The diagnostics of one text while it changes. The scanner's findings are always valid for the
//! current text. The compiler's findings come later and are carried over the changes made since. A
//! pure state machine without image, clock or protocol.
//!
//! No stale diagnostic is published: a compiler's finding is shown only while the top-level form it
//! was found in is still a top-level form and untouched, though the form may have moved.

use std::collections::HashSet;

use crate::ide::structure;
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::text::Span;
use crate::text::document::{Applied, Document};
use crate::text::toplevel::Scan;

/// The code of the single diagnostic of a file whose system is not loaded; its `data` is
/// `{"system": name}`.
pub const SYSTEM_NOT_LOADED: &str = "system-not-loaded";

/// The code of the one diagnostic that says why the others are not up to date.
pub const NOT_CHECKED: &str = "not-checked";

/// A compiler's finding, and the scanner's top-level form around it (with its `#+` and prefixes).
/// The form is `None` if the finding is in no form and so concerns the whole text.
#[derive(Debug, Clone)]
struct PlacedFinding {
    diagnostic: Diagnostic,
    form: Option<Span>,
}

impl PlacedFinding {
    fn new(diagnostic: Diagnostic, scan: &Scan) -> PlacedFinding {
        let forms = scan.forms();
        let after = forms.partition_point(|form| form.span.start <= diagnostic.span.start);
        let form = forms[..after].last().map(|form| form.span).filter(|form| holds(form, diagnostic.span));
        PlacedFinding { diagnostic, form }
    }

    /// Returns the finding after a change, unless the change touched its form.
    fn carry(mut self, applied: &Applied) -> Option<PlacedFinding> {
        if let Some(form) = self.form {
            let moved = applied.shift(form)?;
            // Inside an untouched form all spans move by the same distance.
            self.diagnostic.span = shift_with_form(self.diagnostic.span, form, moved);
            self.diagnostic.toplevel = self.diagnostic.toplevel.map(|toplevel| shift_with_form(toplevel, form, moved));
            self.form = Some(moved);
        } else {
            self.diagnostic.span = applied.shift(self.diagnostic.span)?;
            self.diagnostic.toplevel = None;
        }
        self.diagnostic.related.retain_mut(|related| match (&related.file, applied.shift(related.span)) {
            (Some(_), _) => true,
            (None, Some(span)) => {
                related.span = span;
                true
            }
            (None, None) => false,
        });
        Some(self)
    }
}

/// Returns the new position of `span` after the form around it moved.
fn shift_with_form(span: Span, form: Span, moved: Span) -> Span {
    let at = |offset: usize| offset + moved.start - form.start;
    Span { start: at(span.start), end: at(span.end) }
}

/// Returns the form that contains `span`. `forms` are in order and disjoint.
fn containing(forms: &[Span], span: Span) -> Option<Span> {
    let after = forms.partition_point(|form| form.start <= span.start);
    forms[..after].last().copied().filter(|form| holds(form, span))
}

/// Returns true if `form` contains `span`. The form does not begin behind the span's start.
fn holds(form: &Span, span: Span) -> bool {
    span.end <= form.end && span.start < form.end
}

/// A check in progress.
#[derive(Debug)]
struct Checking {
    /// The top-level forms of the text that is checked.
    scan: Scan,
    /// The changes of the text since the check began.
    since: Vec<Applied>,
}

/// The findings of one open text.
#[derive(Debug, Default)]
pub struct Findings {
    compiled: Vec<PlacedFinding>,
    checking: Option<Checking>,
    /// The reason why no check can be made, so that the findings may be outdated.
    outdated: Option<String>,
}

impl Findings {
    /// Carries the findings over a change of the text.
    pub fn change(&mut self, applied: &Applied) {
        let compiled = std::mem::take(&mut self.compiled);
        self.compiled = compiled.into_iter().filter_map(|found| found.carry(applied)).collect();
        if let Some(checking) = &mut self.checking {
            checking.since.push(applied.clone());
        }
    }

    /// Begins a check of the text as it is now.
    pub fn check_begins(&mut self, document: &Document) {
        self.checking = Some(Checking { scan: document.scan().clone(), since: Vec::new() });
    }

    /// Ends the running check, which failed or was cancelled. The earlier findings are kept.
    pub fn check_fails(&mut self) {
        self.checking = None;
    }

    /// Records why no check can be made, until a check ends. Returns true if the reason is new.
    pub fn set_outdated(&mut self, why: &str) -> bool {
        let new = self.outdated.as_deref() != Some(why);
        self.outdated = Some(why.to_owned());
        new
    }

    /// Returns true if a reason is recorded why no check can be made.
    pub fn is_outdated(&self) -> bool {
        self.outdated.is_some()
    }

    /// Ends the running check. Its findings are carried over the changes made since it began.
    pub fn check_ends(&mut self, diagnostics: Vec<Diagnostic>) {
        self.outdated = None;
        let Some(Checking { scan, since }) = self.checking.take() else { return };
        self.compiled = diagnostics
            .into_iter()
            .map(|diagnostic| PlacedFinding::new(diagnostic, &scan))
            .filter_map(|found| since.iter().try_fold(found, PlacedFinding::carry))
            .collect();
    }

    /// Sets the compiler's findings for the current text. They come from a chain of check processes
    /// (docs/wire.md, "A chain"), which does not report the lint rules' findings, so that those
    /// stay. The findings of a running check will replace these.
    pub fn answered(&mut self, document: &Document, diagnostics: Vec<Diagnostic>) {
        let scan = document.scan();
        self.compiled.retain(|found| found.diagnostic.is_of_rule());
        self.compiled.extend(diagnostics.into_iter().map(|diagnostic| PlacedFinding::new(diagnostic, scan)));
    }

    /// Returns the findings that hold for the text as it is now, in the order of the text.
    pub fn merged(&self, document: &Document) -> Vec<Diagnostic> {
        self.merged_with(document, structure::check(document))
    }

    /// Does the same as [`Findings::merged`]. `structure` is the result of [`structure::check`] for
    /// the text.
    pub fn merged_with(&self, document: &Document, structure: structure::Structure) -> Vec<Diagnostic> {
        let forms = document.scan().forms();
        let is_form = |form: Span| forms.binary_search_by(|one| one.span.cmp(&form)).is_ok();
        let shown = |found: &&PlacedFinding| found.form.is_none_or(is_form);
        let compiled = self.compiled.iter().filter(shown).map(|found| found.diagnostic.clone());
        let outdated = self.outdated.iter().map(|why| {
            let head = head(document, forms.first().map(|form| form.span));
            let message = format!("What is shown here may be out of date: {why}");
            Diagnostic::new(head, Severity::Information, NOT_CHECKED, message)
        });
        merge(structure, compiled.chain(outdated).collect())
    }
}

/// Returns the span for findings about a whole file: the first line of its first form.
pub fn head_of(document: &Document) -> Span {
    head(document, document.scan().forms().first().map(|form| form.span))
}

/// Returns the span of the first line of the first form.
fn head(document: &Document, first: Option<Span>) -> Span {
    let Some(first) = first else { return Span { start: 0, end: 0 } };
    let length = document.text().chars_at(first.start).take_while(|c| !matches!(c, '\n' | '\r')).count();
    Span { start: first.start, end: first.end.min(first.start + length) }
}

/// Merges the scanner's and the compiler's findings of one text, in order and without duplicates.
/// The compiler's findings about a form that is now broken are left out.
pub fn merge(structure: structure::Structure, compiled: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let broken = |diagnostic: &Diagnostic| containing(&structure.withheld, diagnostic.span).is_some();
    let mut all = structure.diagnostics;
    all.extend(compiled.into_iter().filter(|diagnostic| !broken(diagnostic)));
    // The sort is stable: of two findings at one place, the scanner's comes first.
    all.sort_by_key(|diagnostic| (diagnostic.span, diagnostic.severity));
    let mut seen = HashSet::new();
    all.retain(|diagnostic| seen.insert((diagnostic.span, diagnostic.code.clone(), diagnostic.message.clone())));
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::diagnostic::Related;
    use crate::text::document::Edit;
    use crate::text::position::{PositionEncoding, to_position};

    fn finding(span: Span) -> Diagnostic {
        Diagnostic::new(span, Severity::Warning, "undefined-function", "Undefined function: FOO")
    }

    /// Returns the span of `what` in `text`.
    fn find(text: &str, what: &str) -> Span {
        let start = text[..text.find(what).unwrap()].chars().count();
        Span { start, end: start + what.chars().count() }
    }

    #[test]
    fn a_check_that_cannot_be_made_is_said_beside_what_was_known() {
        let Case { document, mut findings } = Case::new("(foo)\n(bar)");
        let before = findings.merged(&document);
        findings.check_begins(&document);
        assert!(findings.set_outdated("A thread holds a lock."));
        let now = findings.merged(&document);
        let said: Vec<&Diagnostic> = now.iter().filter(|diagnostic| diagnostic.code == NOT_CHECKED).collect();
        assert_eq!(now.len(), before.len() + 1);
        assert!(said[0].message.contains("A thread holds a lock."));
        findings.check_begins(&document);
        findings.check_ends(Vec::new());
        assert_eq!(findings.merged(&document), []);
    }

    /// A document and its findings, one at `foo`.
    struct Case {
        document: Document,
        findings: Findings,
    }

    impl Case {
        fn new(text: &str) -> Case {
            let document = Document::new(text, 1);
            let mut findings = Findings::default();
            findings.check_begins(&document);
            Case { document, findings }
        }

        fn checked(text: &str) -> Case {
            let mut case = Case::new(text);
            case.findings.check_ends(vec![finding(find(text, "foo"))]);
            case
        }

        /// Replaces `what` by `by`.
        fn replace(&mut self, what: &str, by: &str) -> &mut Case {
            let rope = self.document.text().clone();
            let span = find(&rope.to_string(), what);
            let at = |offset| to_position(&rope, offset, PositionEncoding::Utf16);
            let edit = Edit { range: Some((at(span.start), at(span.end))), text: by.into() };
            let version = self.document.version() + 1;
            let applied = self.document.apply(version, PositionEncoding::Utf16, &[edit]).unwrap();
            self.findings.change(&applied);
            self
        }

        /// Returns the texts marked now, and the number of structural errors.
        fn marked(&self) -> (Vec<String>, usize) {
            let text: Vec<char> = self.document.text().chars().collect();
            let merged = self.findings.merged(&self.document);
            let (compiled, structure): (Vec<_>, Vec<_>) = merged.iter().partition(|d| d.code == "undefined-function");
            (compiled.iter().map(|d| text[d.span.start..d.span.end].iter().collect()).collect(), structure.len())
        }
    }

    #[test]
    fn a_finding_moves_with_its_untouched_form() {
        for (text, what, by) in [
            ("(a)\n(foo)\n", "a", "a bc"),
            ("; a\n(foo)\n", "; a\n", ""),
            ("\n\n(foo)\n", "\n\n", "\n"),
            ("𝄞 (foo)\n", "𝄞", "x"),
            ("(foo)\n(b)", "b", "b c"),
            ("(foo)", "(foo)", "(foo)"),
            ("(foo) x", " x", ""),
            ("(foo) x", " x", " (x"),
        ] {
            let mut case = Case::checked(text);
            if what != "(foo)" {
                case.replace(what, by);
            }
            assert_eq!(case.marked().0, ["foo"], "{text:?}: {what:?} -> {by:?}");
        }
    }

    #[test]
    fn a_finding_is_not_shown_once_its_form_is_touched_or_no_longer_a_form() {
        for (text, what, by) in [
            ("(a foo)\n", "foo", "fo"),
            ("(a foo)\n", "foo)", "foo "),
            ("(a foo)\n", "(a", "'(a"),
            ("b (a foo)\n", "b ", "#+b "),
            ("b (a foo)\n", "b ", "b #|"),
            ("b (a foo)\n", "b ", "b \""),
            ("b (a foo)\n", "b", "(b"),
            ("(a)\n(b foo)\n(c)", "\n(b foo)", ""),
        ] {
            let mut case = Case::checked(text);
            case.replace(what, by);
            assert_eq!(case.marked().0, [] as [&str; 0], "{text:?}: {what:?} -> {by:?}");
        }
    }

    #[test]
    fn a_finding_comes_back_when_what_hid_its_form_goes() {
        let mut case = Case::checked("b (a foo)\n");
        assert_eq!(case.replace("b", "b \"").marked().0.len(), 0);
        assert_eq!(case.replace("\"", "").marked(), (vec!["foo".to_string()], 0));
    }

    #[test]
    fn a_result_is_carried_over_the_changes_made_while_it_was_computed() {
        let text = "(a)\n(b foo)\n(c foo)";
        let mut case = Case::new(text);
        let found = vec![finding(find(text, "a")), finding(find(text, "foo")), finding(find(text, "c"))];
        case.replace("a", "aa").replace("(aa", "(aab").replace("c foo", "c bar");
        case.findings.check_ends(found);
        assert_eq!(case.marked().0, ["foo"]);
    }

    #[test]
    fn the_lint_rules_findings_stay_when_a_chain_answers() {
        let text = "(a)\n(b foo)\n(c foo)";
        let mut case = Case::new(text);
        let of_rule = |what| Diagnostic::new(find(text, what), Severity::StyleWarning, "lint-when-not", "WHEN NOT");
        case.findings.check_ends(vec![of_rule("a"), of_rule("b"), finding(find(text, "foo"))]);
        case.replace("b foo", "b bar");
        let answer = finding(find("(a)\n(b bar)\n(c foo)", "foo"));
        case.findings.answered(&case.document, vec![answer.clone()]);
        // The finding in the edited form was dropped by the edit.
        assert_eq!(case.findings.merged(&case.document), [of_rule("a"), answer]);
    }

    #[test]
    fn a_check_that_fails_leaves_what_was_known() {
        let mut case = Case::checked("(foo)\n");
        case.findings.check_begins(&case.document);
        case.findings.check_fails();
        assert_eq!(case.marked().0, ["foo"]);
        case.findings.check_ends(vec![]);
        assert_eq!(case.marked().0, ["foo"], "an end without a beginning says nothing");
    }

    #[test]
    fn findings_come_in_the_order_of_the_text_and_once() {
        let at = |start| finding(Span { start, end: start + 1 });
        assert_eq!(merge(Default::default(), vec![at(8), at(2), at(8)]), [at(2), at(8)]);
    }

    #[test]
    fn a_related_place_that_was_touched_goes_and_one_in_another_file_stays() {
        let text = "(ab)\n(cd)\n(foo)";
        let related = |file: Option<&str>, span| Related { file: file.map(Into::into), span, message: "here".into() };
        let elsewhere = related(Some("b.lisp"), Span { start: 0, end: 2 });
        let mut diagnostic = finding(find(text, "foo"));
        diagnostic.related = vec![related(None, find(text, "ab")), related(None, find(text, "cd")), elsewhere.clone()];
        let mut case = Case::new(text);
        case.findings.check_ends(vec![diagnostic]);
        case.replace("ab", "abc");
        let merged = case.findings.merged(&case.document);
        assert_eq!(merged[0].related, [related(None, find("(abc)\n(cd)", "cd")), elsewhere]);
    }
}
