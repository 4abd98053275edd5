//! The stream of results from a copy. They are untrusted: code under check may write to the same
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

/// The limit of a line, in bytes.
pub(super) const LINE_LIMIT: usize = 1 << 20;
/// The limit of all lines together, in bytes.
const TOTAL_LIMIT: usize = 32 << 20;
/// The limit of the name of a system or a lock, in bytes.
const NAME_LIMIT: usize = 500;
/// The limit of the error that ended a copy, in characters.
const FAILURE_LIMIT: usize = 2_000;
/// The maximum number of files of one system.
const FILES_LIMIT: usize = 10_000;
/// The maximum number of unusable lines that are logged.
const LOGGED: usize = 3;

/// A line. One of the fields is present.
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
    /// The name of the lock for which the copy would have waited forever.
    #[serde(default)]
    locked: Option<String>,
    /// The error that ended the copy.
    #[serde(default)]
    failed: Option<String>,
    /// The result of a copy that does another job than a check.
    #[serde(default)]
    answer: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Done {
    /// The number of forms that were compiled.
    forms: usize,
    /// The number of forms that the copy has reached.
    #[serde(default)]
    read: usize,
    #[serde(default)]
    unloaded_system: Option<String>,
}

/// The reason why a copy was stopped.
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

/// The action that a line requires of the task that follows the copy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CheckEvent {
    /// No action.
    Noted,
    /// The next file begins. The copy waits for the spans that are withheld from it.
    File {
        /// The path of the file.
        path: PathBuf,
        /// True if the file is loaded and not reported on.
        silent: bool,
    },
    /// The current step of the copy, as shown to the user.
    Step(String),
}

/// The findings so far, about one text or about the files of a system. There is always at least one
/// text. The copy is checking the last one.
#[derive(Debug)]
pub(super) struct Findings {
    /// True if the token was right.
    trusted: bool,
    bytes: usize,
    unusable: usize,
    texts: Vec<Text>,
    forms: Option<usize>,
    /// The number of forms that the copy says it has reached.
    read: usize,
    unloaded_system: Option<String>,
    answer: Option<serde_json::Value>,
    /// True if the copy has reported that it is confined.
    begun: bool,
    locked: Option<String>,
    failed: Option<String>,
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
            begun: false,
            locked: None,
            failed: None,
            done: false,
        }
    }

    /// Returns the copy's result, if the job was a single request and the copy sent its result.
    pub(super) fn take_answer(&mut self) -> Option<serde_json::Value> {
        self.answer.take()
    }

    /// Marks the findings as those of a copy that has sent its token and is confined.
    pub(super) fn trusted(mut self) -> Findings {
        self.trusted = true;
        self.begun = true;
        self
    }

    /// Returns true if the copy has begun its work.
    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Returns the name of the lock for which the copy would have waited forever.
    pub(super) fn lock(&self) -> Option<&str> {
        self.locked.as_deref()
    }

    /// Returns the error that ended the copy.
    pub(super) fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Begins a file. Subsequent findings belong to that file.
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

    /// Handles a line.
    ///
    /// # Errors
    /// The reason, for the user, why the copy must be stopped: the sender is not the requested
    /// copy, or sends too much.
    pub(super) fn handle_line(&mut self, line: &[u8], token: &str) -> Result<CheckEvent, String> {
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
                _ => Err("it did not send the token that it was given".into()),
            };
        }
        if self.done {
            return Err("it sent a line after it had reported the end".into());
        }
        self.begun = true;
        match parsed {
            Ok(Line { at: Some(span), .. }) => {
                if let Some(text) = self.texts.last_mut() {
                    // The copy cannot have reached a place outside the text.
                    if span.start <= span.end && span.end <= text.length {
                        text.coverage.note_place(span);
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
                // The name of a system is shown to a person.
                self.unloaded_system = done.unloaded_system.filter(|name| name.len() <= NAME_LIMIT);
            }
            // The name is shown to a person.
            Ok(Line { locked: Some(name), .. }) => self.locked = Some(name).filter(|name| name.len() <= NAME_LIMIT),
            Ok(Line { failed: Some(error), .. }) => self.failed = Some(error.chars().take(FAILURE_LIMIT).collect()),
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

    /// Returns true if the copy reported that it has checked the whole text.
    pub(super) fn is_done(&self) -> bool {
        self.done
    }

    /// Returns true if no finding makes a check fail.
    pub(super) fn is_clean(&self) -> bool {
        let fails = |diagnostic: &Diagnostic| matches!(diagnostic.severity, Severity::Error | Severity::Warning);
        !self.texts.iter().any(|text| text.diagnostics.iter().any(fails))
    }

    /// Returns the report of each text in order, after the copy reported that it has checked all of
    /// them. If a text has no error and the copy has not reached all of its forms, code under check
    /// has sent that message, and the check counts as stopped.
    pub(super) fn complete(mut self) -> Vec<(PathBuf, CheckReport)> {
        let met: usize = self.texts.iter().map(|text| text.coverage.reported_plain_forms()).sum();
        let seen: usize = self.texts.iter().map(|text| text.seen.len()).sum();
        // Places in files that are only loaded are not reported.
        let all_told = self.texts.iter().all(|text| !text.silent);
        let miscounted = self.read < met || self.forms > Some(self.read) || (all_told && self.read > seen);
        // `cut` is the first text without errors that has a form that was not reached. If there is
        // none and the numbers disagree, `cut` is the first text with forms and without errors.
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
            format!("the copy of the image reported the end without having reached {missed} of the {forms} forms.")
        } else {
            format!("the copy of the image reported the end of {} forms and had reached {seen}.", self.read)
        };
        self.stopped(Limit::Other, reason)
    }

    /// Returns the length of the text that the findings are about.
    pub(super) fn length(&self) -> usize {
        self.texts.last().map_or(0, |text| text.length)
    }

    /// Returns the findings about the only text as they came, without a comparison with the forms.
    pub(super) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.reports(CheckEnd::Complete).into_iter().flat_map(|(_, report)| report.diagnostics).collect()
    }

    /// Returns the reports of a copy that did not finish, with a diagnostic on the form at which
    /// the copy stopped.
    pub(super) fn stopped(mut self, limit: Limit, reason: String) -> Vec<(PathBuf, CheckReport)> {
        if let Some(text) = self.texts.last_mut() {
            let at = text.at.unwrap_or(Span { start: 0, end: 0 });
            let message = format!("The check stopped here: {reason}");
            text.diagnostics.push(finding(at, Severity::Error, limit.code(), message));
        }
        self.reports(CheckEnd::Stopped { reason })
    }

    /// Returns the reports. `end` states how the check of the last text ended.
    fn reports(self, end: CheckEnd) -> Vec<(PathBuf, CheckReport)> {
        let last = self.texts.len() - 1;
        let single = last == 0;
        let (forms, system) = (self.forms.filter(|_| single), self.unloaded_system);
        let reported =
            |(_, text): &(usize, Text)| !text.diagnostics.is_empty() || (!text.silent && (text.begun || single));
        let report = |(index, text): (usize, Text)| {
            let end = if index == last { end.clone() } else { CheckEnd::Complete };
            text.report(forms, system.clone(), end)
        };
        self.texts.into_iter().enumerate().filter(reported).map(report).collect()
    }
}

#[cfg(test)]
mod tests;
