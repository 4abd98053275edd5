//! What a copy streams back, taken as untrusted: code under check may write to the same socket.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::api::{CheckEnd, CheckReport};
use crate::ide::diagnostic::{Diagnostic, Severity};
use crate::text::Span;

/// The longest line, bytes.
pub(super) const LINE_LIMIT: usize = 1 << 20;
/// Bytes in all.
const TOTAL_LIMIT: usize = 32 << 20;
/// Diagnostics of one text.
const DIAGNOSTICS_LIMIT: usize = 5000;
/// Characters of one message.
const MESSAGE_LIMIT: usize = 10_000;
/// Lines that cannot be used, of which the first are logged.
const LOGGED: usize = 3;

/// One line: one of these is there.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    at: Option<Span>,
    #[serde(default)]
    diagnostic: Option<Box<Diagnostic>>,
    #[serde(default)]
    done: Option<Done>,
    #[serde(default)]
    confined: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Done {
    forms: usize,
    #[serde(default)]
    unloaded_system: Option<String>,
}

/// Why a copy was stopped, for `code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// The deadline or its processor time.
    Time,
    /// Its memory.
    Memory,
    /// Anything else.
    Other,
}

impl Limit {
    fn code(self) -> &'static str {
        match self {
            Limit::Time => "out-of-time",
            Limit::Memory => "out-of-memory",
            Limit::Other => "check-stopped",
        }
    }
}

/// What is known so far.
#[derive(Debug)]
pub(super) struct Findings {
    /// Characters of the text.
    length: usize,
    /// The token was right.
    trusted: bool,
    bytes: usize,
    unusable: usize,
    diagnostics: Vec<Diagnostic>,
    dropped: usize,
    at: Option<Span>,
    /// Where the forms start that it was at: each is told when it is read and when it is compiled.
    seen: BTreeSet<usize>,
    forms: usize,
    unloaded_system: Option<String>,
    done: bool,
}

impl Findings {
    /// None yet, of a text of so many characters.
    pub(super) fn new(length: usize) -> Findings {
        Findings {
            length,
            trusted: false,
            bytes: 0,
            unusable: 0,
            diagnostics: Vec::new(),
            dropped: 0,
            at: None,
            seen: BTreeSet::new(),
            forms: 0,
            unloaded_system: None,
            done: false,
        }
    }

    /// Take a line. `Err`: the copy is not the one we made, or it floods us; for a person.
    pub(super) fn take(&mut self, line: &[u8], token: &str) -> Result<(), String> {
        self.bytes += line.len() + 1;
        if self.bytes > TOTAL_LIMIT {
            return Err(format!("it reported more than {} MB", TOTAL_LIMIT >> 20));
        }
        let parsed = serde_json::from_slice::<Line>(line);
        if !self.trusted {
            return match parsed {
                Ok(Line { token: Some(said), .. }) if said == token => {
                    self.trusted = true;
                    Ok(())
                }
                _ => Err("it did not say the token it was given".into()),
            };
        }
        match parsed {
            Ok(Line { at: Some(span), .. }) => {
                let span = self.clamp(span);
                self.at = Some(span);
                self.seen.insert(span.start);
                self.forms = self.seen.len();
            }
            Ok(Line { diagnostic: Some(diagnostic), .. }) => self.add(*diagnostic),
            Ok(Line { done: Some(done), .. }) => {
                self.done = true;
                self.forms = done.forms;
                self.unloaded_system = done.unloaded_system;
            }
            Ok(Line { confined: Some(how), .. }) => tracing::debug!(%how, "a copy is confined"),
            Ok(Line { .. }) => self.note_unusable("an unknown kind of line"),
            Err(error) => self.note_unusable(&error.to_string()),
        }
        Ok(())
    }

    fn note_unusable(&mut self, error: &str) {
        self.unusable += 1;
        if self.unusable <= LOGGED {
            tracing::warn!(error, "a check's copy sent a line that cannot be used");
        }
    }

    fn clamp(&self, span: Span) -> Span {
        let start = span.start.min(self.length);
        Span { start, end: span.end.clamp(start, self.length) }
    }

    fn add(&mut self, mut diagnostic: Diagnostic) {
        if self.diagnostics.len() >= DIAGNOSTICS_LIMIT {
            self.dropped += 1;
            return;
        }
        diagnostic.span = self.clamp(diagnostic.span);
        diagnostic.toplevel = diagnostic.toplevel.map(|span| self.clamp(span));
        diagnostic.related.truncate(20);
        for related in &mut diagnostic.related {
            if related.file.is_none() {
                related.span = self.clamp(related.span);
            }
        }
        if let Some((cut, _)) = diagnostic.message.char_indices().nth(MESSAGE_LIMIT) {
            diagnostic.message.truncate(cut);
            diagnostic.message.push('…');
        }
        self.diagnostics.push(diagnostic);
    }

    /// The copy said that it saw the whole text.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// The report, when the copy saw the whole text.
    pub(super) fn complete(mut self) -> CheckReport {
        if self.dropped > 0 {
            tracing::warn!(dropped = self.dropped, "more diagnostics than are shown");
            let message = format!("{} more diagnostics of this text are not shown.", self.dropped);
            let end = Span { start: self.length, end: self.length };
            self.diagnostics.push(finding(end, Severity::Information, "too-many-diagnostics", message));
        }
        self.report(CheckEnd::Complete)
    }

    /// The report, when it did not: with a diagnostic on the form it was at.
    pub(super) fn stopped(mut self, limit: Limit, reason: String) -> CheckReport {
        let at = self.at.unwrap_or(Span { start: 0, end: 0 });
        let message = format!("The check stopped here: {reason}");
        self.diagnostics.push(finding(at, Severity::Error, limit.code(), message));
        self.report(CheckEnd::Stopped { reason })
    }

    fn report(mut self, end: CheckEnd) -> CheckReport {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span);
        CheckReport { diagnostics: self.diagnostics, forms: self.forms, unloaded_system: self.unloaded_system, end }
    }
}

fn finding(span: Span, severity: Severity, code: &str, message: String) -> Diagnostic {
    Diagnostic {
        span,
        severity,
        code: code.into(),
        message,
        condition: None,
        form: None,
        toplevel: Some(span),
        tags: Vec::new(),
        related: Vec::new(),
        data: serde_json::Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> Findings {
        let mut findings = Findings::new(100);
        findings.take(br#"{"token":"t","pid":1}"#, "t").unwrap();
        for line in lines {
            findings.take(line.as_bytes(), "t").unwrap();
        }
        findings
    }

    #[test]
    fn a_stream_without_the_token_is_refused() {
        for line in ["", "{}", r#"{"token":"x","pid":1}"#, r#"{"done":{"forms":1}}"#] {
            assert!(Findings::new(1).take(line.as_bytes(), "t").is_err(), "{line}");
        }
    }

    #[test]
    fn spans_are_kept_inside_the_text_and_nonsense_is_ignored() {
        let findings = told(&[
            r#"{"confined":{"landlock":3}}"#,
            r#"{"at":[90,95]}"#,
            "nonsense \u{0}",
            r#"{"diagnostic":{"span":[500,7],"severity":"error","code":"x","message":"m","toplevel":[90,1000]}}"#,
            r#"{"diagnostic":{"span":[-1,7],"severity":"error","code":"x","message":"m"}}"#,
            r#"{"done":{"forms":4,"unloaded_system":"sys"}}"#,
        ]);
        assert!(findings.is_done());
        let report = findings.complete();
        assert_eq!((report.forms, report.unloaded_system.as_deref(), report.diagnostics.len()), (4, Some("sys"), 1));
        assert_eq!(report.diagnostics[0].span, Span { start: 100, end: 100 });
        assert_eq!(report.diagnostics[0].toplevel, Some(Span { start: 90, end: 100 }));
    }

    #[test]
    fn a_copy_that_was_stopped_leaves_its_findings_and_one_on_the_form_it_was_at() {
        let findings = told(&[
            r#"{"at":[0,5]}"#,
            r#"{"diagnostic":{"span":[1,2],"severity":"warning","code":"x","message":"m"}}"#,
            r#"{"at":[6,20]}"#,
        ]);
        let report = findings.stopped(Limit::Time, "it took long.".into());
        let codes: Vec<_> = report.diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect();
        assert_eq!(codes, ["x", "out-of-time"]);
        assert_eq!(report.diagnostics[1].span, Span { start: 6, end: 20 });
        assert_eq!(report.end, CheckEnd::Stopped { reason: "it took long.".into() });
    }

    #[test]
    fn a_flood_is_bounded() {
        let mut findings = told(&[]);
        let long = "x".repeat(20_000);
        let line = format!(r#"{{"diagnostic":{{"span":[0,1],"severity":"note","code":"x","message":"{long}"}}}}"#);
        for _ in 0..1500 {
            findings.take(line.as_bytes(), "t").unwrap();
        }
        assert!((0..1500).any(|_| findings.take(line.as_bytes(), "t").is_err()));
        assert!(findings.diagnostics.iter().all(|diagnostic| diagnostic.message.chars().count() == MESSAGE_LIMIT + 1));
        let short = r#"{"diagnostic":{"span":[0,1],"severity":"note","code":"x","message":"m"}}"#;
        let mut findings = told(&[]);
        for _ in 0..DIAGNOSTICS_LIMIT + 7 {
            findings.take(short.as_bytes(), "t").unwrap();
        }
        let report = findings.complete();
        assert_eq!(report.diagnostics.len(), DIAGNOSTICS_LIMIT + 1);
        assert!(report.diagnostics.iter().any(|diagnostic| diagnostic.message.starts_with("7 more")));
    }
}
