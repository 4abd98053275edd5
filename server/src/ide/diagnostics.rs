//! What is known to be wrong with one text while it changes: the scanner's findings, which are always true for the text as it is now, and
//! the compiler's, which come later and are carried over the changes made since. No image, no clock, no protocol: a state and its steps.
//!
//! The rule that keeps what is published from being stale: a compiler's finding survives a change only if the change did not touch the
//! top-level form it is in, and then it moves with that form.

use crate::ide::diagnostic::{Diagnostic, Severity};
use crate::text::Span;

/// LSP's number of a severity, also in `consort check --json`. The only place that says it.
pub fn severity_number(severity: Severity) -> u8 {
    match severity {
        Severity::Error => 1,
        Severity::Warning => 2,
        Severity::StyleWarning | Severity::Information => 3,
        Severity::Note => 4,
    }
}

/// One replacement in a text, as far as diagnostics care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replaced {
    /// What was replaced, in the text before.
    pub span: Span,
    /// How many characters took its place.
    pub inserted: usize,
    /// The character of the new text that follows the replacement's start: the first inserted one, or what came after the deletion.
    pub first: Option<char>,
    /// The character of the new text that precedes the replacement's end: the last inserted one, or what came before the deletion.
    pub last: Option<char>,
}

impl Replaced {
    /// Where `span` lies afterwards; `None` when the change touched it.
    ///
    /// A change that merely abuts the span touches it when it could join a token: `#+nil` or a quote before it, a constituent after it.
    pub fn carry(&self, span: Span) -> Option<Span> {
        if self.span.start >= span.end {
            let joins = self.span.start == span.end && self.first.is_some_and(|c| !ends_token(c));
            return (!joins).then_some(span);
        }
        if self.span.end <= span.start {
            let joins = self.span.end == span.start && self.last.is_some_and(|c| !c.is_whitespace() && c != ')');
            let moved = |at: usize| at - (self.span.end - self.span.start) + self.inserted;
            return (!joins).then(|| Span { start: moved(span.start), end: moved(span.end) });
        }
        None
    }
}

/// Whether a token that precedes `c` ends there (white space and terminating macro characters, CLHS 2.1.4, 2.1.7).
fn ends_token(c: char) -> bool {
    c.is_whitespace() || matches!(c, '(' | ')' | '"' | ';' | '\'' | '`' | ',')
}

/// A finding after a change, or `None` when the change touched its form.
fn carry(mut diagnostic: Diagnostic, change: &Replaced) -> Option<Diagnostic> {
    match diagnostic.toplevel {
        Some(form) => {
            diagnostic.toplevel = Some(change.carry(form)?);
            // Inside an untouched form everything moves alike; a finding may also lie at the form's very edge.
            diagnostic.span = shift(diagnostic.span, change, form)?;
        }
        None => diagnostic.span = change.carry(diagnostic.span)?,
    }
    diagnostic.related.retain_mut(|related| match &related.file {
        Some(_) => true,
        None => change.carry(related.span).map(|span| related.span = span).is_some(),
    });
    Some(diagnostic)
}

/// Move a span that belongs to `form`, which `change` did not touch.
fn shift(span: Span, change: &Replaced, form: Span) -> Option<Span> {
    if span.start < form.start || span.end > form.end {
        return change.carry(span);
    }
    if change.span.start >= form.end {
        return Some(span);
    }
    let moved = |at: usize| at - (change.span.end - change.span.start) + change.inserted;
    Some(Span { start: moved(span.start), end: moved(span.end) })
}

/// The findings of one open text.
#[derive(Debug, Default)]
pub struct Findings {
    structure: Vec<Diagnostic>,
    withheld: Vec<Span>,
    compiled: Vec<Diagnostic>,
    /// The changes since the running check took its copy of the text; `None` when no check runs.
    since: Option<Vec<Replaced>>,
}

impl Findings {
    /// The text changed. The scanner's findings are of the text before until [`Findings::scanned`] says otherwise.
    pub fn change(&mut self, change: Replaced) {
        let compiled = std::mem::take(&mut self.compiled);
        self.compiled = compiled.into_iter().filter_map(|diagnostic| carry(diagnostic, &change)).collect();
        if let Some(since) = &mut self.since {
            since.push(change);
        }
    }

    /// The scanner saw the text as it is now: what is wrong with its structure, and the top-level forms that are broken.
    pub fn scanned(&mut self, structure: Vec<Diagnostic>, withheld: Vec<Span>) {
        self.structure = structure;
        self.withheld = withheld;
    }

    /// The broken top-level forms, to be withheld from the compiler.
    pub fn withheld(&self) -> &[Span] {
        &self.withheld
    }

    /// A check of the text as it is now begins.
    pub fn check_begins(&mut self) {
        self.since = Some(Vec::new());
    }

    /// The running check gave up or was cancelled; what was known stays.
    pub fn check_fails(&mut self) {
        self.since = None;
    }

    /// The running check is done. Its findings are carried over whatever changed since it began.
    pub fn check_ends(&mut self, found: Vec<Diagnostic>) {
        let since = self.since.take().unwrap_or_default();
        self.compiled = found
            .into_iter()
            .filter_map(|diagnostic| since.iter().try_fold(diagnostic, |diagnostic, change| carry(diagnostic, change)))
            .collect();
    }

    /// All that is true for the text as it is now, in its order.
    pub fn merged(&self) -> Vec<Diagnostic> {
        merge(&self.structure, &self.withheld, &self.compiled)
    }
}

/// The scanner's and the compiler's findings of one text: in order, without duplicates, and without what the compiler said of a form that is
/// broken now.
pub fn merge(structure: &[Diagnostic], withheld: &[Span], compiled: &[Diagnostic]) -> Vec<Diagnostic> {
    let broken = |diagnostic: &Diagnostic| {
        let span = diagnostic.toplevel.unwrap_or(diagnostic.span);
        withheld.iter().any(|form| span.start < form.end && form.start < span.end)
    };
    let mut all: Vec<Diagnostic> =
        structure.iter().chain(compiled.iter().filter(|diagnostic| !broken(diagnostic))).cloned().collect();
    // A stable sort: of two findings at one place the scanner's comes first.
    all.sort_by(|a, b| (a.span, a.severity).cmp(&(b.span, b.severity)));
    let mut seen = std::collections::HashSet::new();
    all.retain(|diagnostic| seen.insert((diagnostic.span, diagnostic.code.clone(), diagnostic.message.clone())));
    all
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ide::diagnostic::Related;

    fn span(start: usize, end: usize) -> Span {
        Span { start, end }
    }

    fn finding(at: Span, form: Option<Span>) -> Diagnostic {
        Diagnostic {
            span: at,
            severity: Severity::Warning,
            code: "undefined-function".into(),
            message: "Undefined function: FOO".into(),
            condition: None,
            form: None,
            toplevel: form,
            tags: vec![],
            related: vec![],
            data: serde_json::Value::Null,
        }
    }

    /// The change that turns `before` into `after`, at its narrowest.
    fn change(before: &str, after: &str) -> Replaced {
        let (old, new): (Vec<char>, Vec<char>) = (before.chars().collect(), after.chars().collect());
        let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
        let inserted = new.len() - tail - head;
        Replaced {
            span: span(head, old.len() - tail),
            inserted,
            first: new.get(head).copied(),
            last: (head + inserted).checked_sub(1).map(|at| new[at]),
        }
    }

    /// Findings in which the form `(foo)` of `text` has one finding at `foo`.
    fn findings_of(text: &str) -> Findings {
        let start = text.find("(foo)").unwrap();
        let mut findings = Findings::default();
        findings.check_begins();
        findings.check_ends(vec![finding(span(start + 1, start + 4), Some(span(start, start + 5)))]);
        findings
    }

    /// Where the finding lies after `before` became `after`, as the text it marks.
    fn marked(before: &str, after: &str) -> Vec<String> {
        let mut findings = findings_of(before);
        findings.change(change(before, after));
        findings.merged().iter().map(|d| after.chars().skip(d.span.start).take(d.span.end - d.span.start).collect()).collect()
    }

    #[test]
    fn a_finding_moves_with_its_untouched_form() {
        for (before, after) in [
            ("(a)\n(foo)\n", "(a b)\n(foo)\n"),
            ("; a\n(foo)\n", "(foo)\n"),
            ("(foo)\n", "\n(foo)\n"),
            ("\n\n(foo)\n", "\n(foo)\n"),
            ("(a)\n(foo)", "(a)(foo)"),
            ("(foo)\n(b)", "(foo)\n(b c)"),
            ("(foo)", "(foo)\n"),
            ("(foo)", "(foo)(b"),
            ("(foo) x", "(foo)"),
        ] {
            assert_eq!(marked(before, after), ["foo"], "{before:?} -> {after:?}");
        }
    }

    #[test]
    fn a_finding_goes_when_its_form_is_touched() {
        for (before, after) in [
            ("(foo)\n", "(fo)\n"),
            ("(foo)\n", "(foo \n"),
            ("(foo)\n", "'(foo)\n"),
            ("#+a (foo)", "#+(foo)"),
            ("(a)\n(foo)\n(b)", "(a)\n(b)"),
            ("(foo)", ""),
            ("x (foo)", "x"),
            ("(foo)\n", "(foo)x\n"),
            ("(a)\n(foo)\n", "(b foo)\n"),
        ] {
            assert_eq!(marked(before, after), [] as [&str; 0], "{before:?} -> {after:?}");
        }
    }

    #[test]
    fn a_result_is_carried_over_the_changes_made_while_it_was_computed() {
        let text = "(a)\n(foo)\n";
        let mut findings = Findings::default();
        findings.check_begins();
        findings.change(change(text, "(aa)\n(foo)\n"));
        findings.change(change("(aa)\n(foo)\n", "(aab)\n(foo)\n"));
        findings.check_ends(vec![finding(span(1, 2), Some(span(0, 3))), finding(span(5, 8), Some(span(4, 9)))]);
        let merged = findings.merged();
        assert_eq!(merged.iter().map(|d| d.span).collect::<Vec<_>>(), [span(7, 10)]);
        assert_eq!(merged[0].toplevel, Some(span(6, 11)));
    }

    #[test]
    fn a_check_that_fails_leaves_what_was_known() {
        let mut findings = findings_of("(foo)\n");
        findings.check_begins();
        findings.check_fails();
        assert_eq!(findings.merged().len(), 1);
    }

    #[test]
    fn what_the_compiler_said_of_a_form_that_is_broken_now_is_not_shown() {
        let mut findings = findings_of("(foo)\n(b)");
        let broken = Diagnostic { code: "unbalanced-list".into(), ..finding(span(0, 1), None) };
        findings.scanned(vec![broken.clone()], vec![span(0, 5)]);
        assert_eq!(findings.merged(), [broken]);
        findings.scanned(vec![], vec![]);
        assert_eq!(findings.merged().len(), 1);
    }

    #[test]
    fn findings_come_in_the_order_of_the_text_and_once() {
        let (a, b) = (finding(span(8, 9), None), finding(span(2, 3), None));
        assert_eq!(merge(&[], &[], &[a.clone(), b.clone(), a.clone()]), [b, a]);
    }

    #[test]
    fn a_related_place_that_was_touched_goes_and_one_in_another_file_stays() {
        let related = |file: Option<&str>, at| Related { file: file.map(Into::into), span: at, message: "here".into() };
        let mut diagnostic = finding(span(11, 14), Some(span(10, 15)));
        diagnostic.related = vec![related(None, span(1, 2)), related(None, span(4, 8)), related(Some("b.lisp"), span(0, 2))];
        let mut findings = Findings::default();
        findings.check_ends(vec![diagnostic]);
        findings.change(Replaced { span: span(1, 2), inserted: 3, first: Some('x'), last: Some('x') });
        let merged = findings.merged();
        assert_eq!(merged[0].span, span(13, 16));
        assert_eq!(merged[0].related, [related(None, span(6, 10)), related(Some("b.lisp"), span(0, 2))]);
    }

    #[test]
    fn severities_have_the_numbers_of_lsp() {
        use Severity::*;
        assert_eq!([Error, Warning, StyleWarning, Information, Note].map(severity_number), [1, 2, 3, 3, 4]);
    }
}
