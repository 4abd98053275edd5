//! The stream of results from a copy, treated as untrusted: code under check may write to the same
//! socket.

mod text;

use std::path::PathBuf;

use serde::Deserialize;

use self::text::{Text, finding};
use super::coverage::Coverage;
use crate::model::check::{CheckEnd, CheckReport, FileFacts};
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::text::Span;
use crate::text::expected::Expected;

/// The length limit of a line, bytes.
pub(super) const LINE_LIMIT: usize = 1 << 20;
/// Bytes of all lines.
const TOTAL_LIMIT: usize = 32 << 20;
/// Bytes of a system's name.
const SYSTEM_NAME_LIMIT: usize = 500;
/// Files of one system.
const FILES_LIMIT: usize = 10_000;
/// The number of unusable lines that are logged.
const LOGGED: usize = 3;

/// A line; one of these fields is present.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    file: Option<PathBuf>,
    /// For a file: true if the file is loaded and not reported on.
    #[serde(default)]
    silent: bool,
    #[serde(default)]
    step: Option<String>,
    #[serde(default)]
    at: Option<Span>,
    #[serde(default)]
    diagnostic: Option<Box<Diagnostic>>,
    #[serde(default)]
    done: Option<Done>,
    #[serde(default)]
    confined: Option<serde_json::Value>,
    /// The result of a copy that does not check.
    #[serde(default)]
    answer: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Done {
    /// The number of forms that were compiled.
    forms: usize,
    /// The number of forms that the copy came to.
    #[serde(default)]
    read: usize,
    #[serde(default)]
    unloaded_system: Option<String>,
}

/// The reason why a copy was stopped, for `code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// The deadline or the limit of processor time.
    Time,
    /// The memory limit.
    Memory,
    /// Any other reason.
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

/// The request in a line to the follower of the copy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CheckEvent {
    /// No request.
    Noted,
    /// A file comes next: the follower begins it, and the copy waits for the spans withheld from
    /// it.
    File {
        /// The path of the file.
        path: PathBuf,
        /// True if the file is loaded and not reported on.
        silent: bool,
    },
    /// The current step of the copy, for the user.
    Step(String),
}

/// The findings so far, about one text or the files of a system. There is always a text; the last
/// is the one that the copy is checking.
#[derive(Debug)]
pub(super) struct Findings {
    /// True if the token was right.
    trusted: bool,
    bytes: usize,
    unusable: usize,
    texts: Vec<Text>,
    forms: Option<usize>,
    /// The number of forms that the copy says it came to.
    read: usize,
    unloaded_system: Option<String>,
    answer: Option<serde_json::Value>,
    done: bool,
}

impl Findings {
    /// Creates empty findings for a text of `length` characters. For files, findings before the
    /// first file belong to the text at `path`.
    pub(super) fn new(path: PathBuf, length: usize, expected: Expected) -> Findings {
        Findings {
            trusted: false,
            bytes: 0,
            unusable: 0,
            texts: vec![Text { coverage: Coverage::new(expected), ..Text::new(path, length, false) }],
            forms: None,
            read: 0,
            unloaded_system: None,
            answer: None,
            done: false,
        }
    }

    /// Returns the copy's result, if the job was a single request and the copy sent its result.
    pub(super) fn take_answer(&mut self) -> Option<serde_json::Value> {
        self.answer.take()
    }

    /// Marks the findings as those of a copy that has sent its token.
    pub(super) fn trusted(mut self) -> Findings {
        self.trusted = true;
        self
    }

    /// Begins a file: subsequent findings belong to it.
    pub(super) fn begin(&mut self, path: PathBuf, facts: &FileFacts, silent: bool) -> Result<(), String> {
        if self.texts.len() >= FILES_LIMIT {
            return Err(format!("it named more than {FILES_LIMIT} files"));
        }
        // Positions in a system definition are not reported.
        let definition = path.extension().is_some_and(|extension| extension == "asd");
        let counted = facts.withheld.is_empty() && !silent && !definition;
        let coverage = Coverage::new(if counted { facts.expected.clone() } else { Expected::default() });
        let length = facts.length;
        let text = match self.texts.iter().position(|text| text.path == path) {
            Some(index) => Text { length, coverage, silent, begun: true, ..self.texts.remove(index) },
            None => Text { begun: true, coverage, ..Text::new(path, length, silent) },
        };
        self.texts.push(text);
        Ok(())
    }

    /// Takes a line. `Err`: the reason, for the user: the sender is not the requested copy, or it
    /// sends too much.
    pub(super) fn take(&mut self, line: &[u8], token: &str) -> Result<CheckEvent, String> {
        self.bytes += line.len() + 1;
        if self.bytes > TOTAL_LIMIT {
            return Err(format!("it reported more than {} MB", TOTAL_LIMIT >> 20));
        }
        let parsed = serde_json::from_slice::<Line>(line);
        if !self.trusted {
            return match parsed {
                Ok(Line { token: Some(said), .. }) if said == token => {
                    self.trusted = true;
                    Ok(CheckEvent::Noted)
                }
                _ => Err("it did not say the token it was given".into()),
            };
        }
        if self.done {
            return Err("it went on after it had said that it was done".into());
        }
        match parsed {
            Ok(Line { at: Some(span), .. }) => {
                if let Some(text) = self.texts.last_mut() {
                    // A place that the text does not have is not one that a copy came to.
                    if span.start <= span.end && span.end <= text.length {
                        text.coverage.at(span);
                    }
                    let span = text.clamp(span);
                    text.at = Some(span);
                    text.seen.insert(span.start);
                }
            }
            Ok(Line { diagnostic: Some(diagnostic), file, .. }) => {
                let named = |text: &&mut Text| file.as_ref().is_none_or(|file| text.path == *file);
                match self.texts.iter_mut().rev().find(named) {
                    Some(text) => text.add(*diagnostic, line.len()),
                    None => self.note_unusable("a diagnostic of a file that was not begun"),
                }
            }
            Ok(Line { file: Some(path), silent, .. }) => return Ok(CheckEvent::File { path, silent }),
            Ok(Line { step: Some(step), .. }) => return Ok(CheckEvent::Step(step)),
            Ok(Line { answer: Some(answer), .. }) => self.answer = Some(answer),
            Ok(Line { done: Some(done), .. }) => {
                self.done = true;
                self.forms = Some(done.forms);
                self.read = done.read;
                // The name of a system, shown to a person.
                self.unloaded_system = done.unloaded_system.filter(|name| name.len() <= SYSTEM_NAME_LIMIT);
            }
            Ok(Line { confined: Some(how), .. }) => tracing::debug!(%how, "a copy is confined"),
            Ok(Line { .. }) => self.note_unusable("an unknown kind of line"),
            Err(error) => self.note_unusable(&error.to_string()),
        }
        Ok(CheckEvent::Noted)
    }

    fn note_unusable(&mut self, error: &str) {
        self.unusable += 1;
        if self.unusable <= LOGGED {
            tracing::warn!(error, "a check's copy sent a line that cannot be used");
        }
    }

    /// Returns whether the copy reported that it checked the whole text.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Returns whether there is no finding that makes a check fail.
    pub(super) fn is_clean(&self) -> bool {
        let fails = |diagnostic: &Diagnostic| matches!(diagnostic.severity, Severity::Error | Severity::Warning);
        !self.texts.iter().any(|text| text.diagnostics.iter().any(fails))
    }

    /// Returns the report of each text in order, when the copy reported that it checked all of
    /// them. If a text has no error and the copy did not come to all of its forms, the message came
    /// from code under check.
    pub(super) fn complete(mut self) -> Vec<(PathBuf, CheckReport)> {
        let met: usize = self.texts.iter().map(|text| text.coverage.met()).sum();
        let seen: usize = self.texts.iter().map(|text| text.seen.len()).sum();
        // Places in files that are only loaded are not reported.
        let all_told = self.texts.iter().all(|text| !text.silent);
        let miscounted = self.read < met || self.forms > Some(self.read) || (all_told && self.read > seen);
        // The first form that was left out; without one, the first text with forms.
        let lacking = |text: &Text| text.coverage.missed().next().is_some();
        let cut = match self.texts.iter().position(|text| lacking(text) && !text.has_error()) {
            None if miscounted => self.texts.iter().position(|text| text.coverage.forms() > 0 && !text.has_error()),
            cut => cut,
        };
        let Some(cut) = cut else { return self.reports(CheckEnd::Complete) };
        let mut text = self.texts.remove(cut);
        let (missed, forms) = (text.coverage.missed().count(), text.coverage.forms());
        if let Some(start) = text.coverage.missed().next() {
            text.at = Some(text.clamp(Span { start, end: start + 1 }));
        }
        self.texts.push(text);
        let reason = if missed > 0 {
            format!("the copy of the image said that it was done and had not come to {missed} of the {forms} forms.")
        } else {
            format!("the copy of the image said that it was done with {} forms and had come to {seen}.", self.read)
        };
        self.stopped(Limit::Other, reason)
    }

    /// Returns the reports of a copy that did not finish, with a diagnostic on the form at which it
    /// stopped.
    pub(super) fn stopped(mut self, limit: Limit, reason: String) -> Vec<(PathBuf, CheckReport)> {
        if let Some(text) = self.texts.last_mut() {
            let at = text.at.unwrap_or(Span { start: 0, end: 0 });
            let message = format!("The check stopped here: {reason}");
            text.diagnostics.push(finding(at, Severity::Error, limit.code(), message));
        }
        self.reports(CheckEnd::Stopped { reason })
    }

    /// Returns the reports; `end` is the end of the last text's check.
    fn reports(self, end: CheckEnd) -> Vec<(PathBuf, CheckReport)> {
        let last = self.texts.len() - 1;
        let single = last == 0;
        let (forms, system) = (self.forms.filter(|_| single), self.unloaded_system);
        let told = |(_, text): &(usize, Text)| !text.diagnostics.is_empty() || (!text.silent && (text.begun || single));
        let report = |(index, text): (usize, Text)| {
            let end = if index == last { end.clone() } else { CheckEnd::Complete };
            text.report(forms, system.clone(), end)
        };
        self.texts.into_iter().enumerate().filter(told).map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::text::{DIAGNOSTICS_LIMIT, FRAME, MESSAGE_LIMIT, TEXT_LIMIT};
    use super::*;

    fn told(lines: &[&str]) -> Findings {
        let mut findings = Findings::new(PathBuf::new(), 100, Expected::default());
        findings.take(br#"{"token":"t","pid":1}"#, "t").unwrap();
        for line in lines {
            findings.take(line.as_bytes(), "t").unwrap();
        }
        findings
    }

    fn of_length(length: usize) -> FileFacts {
        FileFacts { length, ..FileFacts::default() }
    }

    #[test]
    fn a_copy_that_is_done_too_early_is_not_believed() {
        let plain = |plain: &[usize]| Expected { plain: plain.into(), ..Expected::default() };
        for (lines, stopped) in [
            (vec![r#"{"at":[0,5]}"#, r#"{"done":{"forms":9,"read":9}}"#], true),
            (vec![r#"{"done":{"forms":9,"read":9}}"#], true),
            (vec![r#"{"at":[0,5]}"#, r#"{"at":[60,70]}"#, r#"{"done":{"forms":2,"read":2}}"#], false),
            (vec![r#"{"at":[0,5]}"#, r#"{"at":[60,70]}"#, r#"{"done":{"forms":2}}"#], true),
            (vec![r#"{"at":[0,5]}"#, r#"{"at":[60,70]}"#, r#"{"done":{"forms":9,"read":9}}"#], true),
            // The last form alone, all forms at once, and places that the text does not have.
            (vec![r#"{"at":[60,70]}"#, r#"{"done":{"forms":9,"read":9}}"#], true),
            (vec![r#"{"at":[0,100]}"#, r#"{"done":{"forms":9,"read":9}}"#], true),
            (vec![r#"{"at":[0,5]}"#, r#"{"at":[60,9000]}"#, r#"{"done":{"forms":9,"read":9}}"#], true),
            // Text that could not be read has a diagnostic.
            (
                vec![
                    r#"{"diagnostic":{"span":[1,2],"severity":"error","code":"x","message":"m"}}"#,
                    r#"{"done":{"forms":1}}"#,
                ],
                false,
            ),
        ] {
            let mut findings = Findings::new(PathBuf::new(), 100, plain(&[0, 60])).trusted();
            for line in &lines {
                findings.take(line.as_bytes(), "t").unwrap();
            }
            let report = only(findings.complete());
            assert_eq!(report.end != CheckEnd::Complete, stopped, "{lines:?}");
            assert_eq!(report.diagnostics.iter().any(|d| d.code == "check-stopped"), stopped, "{lines:?}");
        }
        let mut findings = Findings::new("s.asd".into(), 10, Expected::default()).trusted();
        let facts = FileFacts { length: 50, expected: plain(&[40]), ..FileFacts::default() };
        findings.begin("a.lisp".into(), &facts, false).unwrap();
        findings.begin("b.lisp".into(), &facts, false).unwrap();
        findings.take(br#"{"at":[40,50]}"#, "t").unwrap();
        findings.begin("c.lisp".into(), &facts, true).unwrap();
        findings.take(br#"{"done":{"forms":2,"read":2}}"#, "t").unwrap();
        let reports = findings.complete();
        let stopped: Vec<_> = reports
            .iter()
            .filter(|(_, report)| report.end != CheckEnd::Complete)
            .map(|(path, _)| path.clone())
            .collect();
        assert_eq!(stopped, [PathBuf::from("a.lisp")]);
    }

    fn only(mut reports: Vec<(PathBuf, CheckReport)>) -> CheckReport {
        assert_eq!(reports.len(), 1);
        reports.remove(0).1
    }

    #[test]
    fn lines_belong_to_their_files_and_a_stop_to_the_one_it_was_at() {
        let mut findings = Findings::new("s.asd".into(), 10, Expected::default());
        findings.take(br#"{"token":"t"}"#, "t").unwrap();
        let taken = findings.take(br#"{"file":"a.lisp","silent":true}"#, "t").unwrap();
        assert_eq!(taken, CheckEvent::File { path: "a.lisp".into(), silent: true });
        findings.begin("quiet.lisp".into(), &of_length(50), true).unwrap();
        findings.begin("a.lisp".into(), &of_length(50), false).unwrap();
        findings.take(br#"{"at":[1,500]}"#, "t").unwrap();
        findings.begin("b.lisp".into(), &of_length(20), false).unwrap();
        findings.take(br#"{"at":[2,500]}"#, "t").unwrap();
        for file in ["a.lisp", "s.asd", "never-begun.lisp"] {
            let line = format!(
                r#"{{"file":"{file}","diagnostic":{{"span":[3,500],"severity":"error","code":"x","message":"m"}}}}"#
            );
            assert_eq!(findings.take(line.as_bytes(), "t").unwrap(), CheckEvent::Noted);
        }
        let reports = findings.stopped(Limit::Memory, "it is large.".into());
        let told: Vec<_> = reports
            .iter()
            .map(|(path, report)| {
                let found: Vec<_> = report.diagnostics.iter().map(|d| (d.code.as_str(), d.span.end)).collect();
                (path.to_str().unwrap(), found, report.end == CheckEnd::Complete)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("s.asd", vec![("x", 10)], true),
                ("a.lisp", vec![("x", 50)], true),
                ("b.lisp", vec![("out-of-memory", 20)], false),
            ]
        );
    }

    #[test]
    fn an_answer_is_kept_and_taken_once() {
        let mut findings = told(&[r#"{"answer":{"expanded":true}}"#, r#"{"done":{"forms":1}}"#]);
        assert!(findings.is_done());
        assert_eq!(findings.take_answer(), Some(serde_json::json!({"expanded": true})));
        assert_eq!(findings.take_answer(), None);
    }

    #[test]
    fn a_stream_without_the_token_is_refused() {
        for line in ["", "{}", r#"{"token":"x","pid":1}"#, r#"{"done":{"forms":1}}"#] {
            assert!(
                Findings::new(PathBuf::new(), 1, Expected::default()).take(line.as_bytes(), "t").is_err(),
                "{line}"
            );
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
            r#"{"done":{"forms":1,"unloaded_system":"sys"}}"#,
        ]);
        assert!(findings.is_done());
        let report = only(findings.complete());
        assert_eq!((report.forms, report.unloaded_system.as_deref(), report.diagnostics.len()), (1, Some("sys"), 1));
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
        let report = only(findings.stopped(Limit::Time, "it took long.".into()));
        let codes: Vec<_> = report.diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect();
        assert_eq!(codes, ["x", "out-of-time"]);
        assert_eq!(report.diagnostics[1].span, Span { start: 6, end: 20 });
        assert_eq!(report.end, CheckEnd::Stopped { reason: "it took long.".into() });
    }

    #[test]
    fn few_other_files_are_referred_to() {
        let mut findings = told(&[]);
        for number in 0..200 {
            let related = format!(r#"{{"file":"/usr/{number}","span":[0,1],"message":"m"}}"#);
            let line = format!(
                r#"{{"diagnostic":{{"span":[0,1],"severity":"note","code":"x","message":"m","related":[{related},{related}]}}}}"#
            );
            findings.take(line.as_bytes(), "t").unwrap();
        }
        let report = only(findings.complete());
        let files = report.diagnostics.iter().flat_map(|one| &one.related).filter_map(|related| related.file.clone());
        assert_eq!(files.collect::<std::collections::BTreeSet<_>>().len(), 50);
        assert_eq!(report.diagnostics.len(), 200);
    }

    #[test]
    fn a_flood_is_bounded() {
        let mut findings = told(&[]);
        let long = "x".repeat(20_000);
        let line = format!(r#"{{"diagnostic":{{"span":[0,1],"severity":"note","code":"x","message":"{long}"}}}}"#);
        for _ in 0..1500 {
            findings.take(line.as_bytes(), "t").unwrap();
        }
        assert!(findings.texts[0].bytes <= TEXT_LIMIT && !findings.texts[0].diagnostics.is_empty());
        assert!((0..1500).any(|_| findings.take(line.as_bytes(), "t").is_err()));
        assert!(
            findings.texts[0]
                .diagnostics
                .iter()
                .all(|diagnostic| diagnostic.message.chars().count() == MESSAGE_LIMIT + 1)
        );
        let short = r#"{"diagnostic":{"span":[0,1],"severity":"note","code":"x","message":"m"}}"#;
        let mut findings = told(&[]);
        for _ in 0..DIAGNOSTICS_LIMIT + 7 {
            findings.take(short.as_bytes(), "t").unwrap();
        }
        let report = only(findings.complete());
        let kept = report.diagnostics.len() - 1;
        assert_eq!(kept, DIAGNOSTICS_LIMIT.min(TEXT_LIMIT / (short.len() + FRAME)));
        let said: usize = report.diagnostics.iter().map(|one| serde_json::to_vec(one).unwrap().len()).sum();
        assert!(said <= TEXT_LIMIT, "{said}");
        let more = format!("{} more", DIAGNOSTICS_LIMIT + 7 - kept);
        assert!(report.diagnostics.iter().any(|diagnostic| diagnostic.message.starts_with(&more)));
    }
}
