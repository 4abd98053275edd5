//! The answers of hot reload: the report as text and as data, and the error object of the contract.

use std::fmt::Write as _;
use std::path::PathBuf;

use ropey::Rope;
use serde::Serialize;

use super::compiler_output::split_compiler_output;
use crate::image::api::reload::{ReloadFailure, ReloadOutcome, Report};
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::EvalWarning;
use crate::text::position::line_column;

/// The maximum number of names of a list in the text. The data has all of them.
const MAX_SHOWN: usize = 12;

/// The contract's error object (docs/protocol.md).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    /// The JSON-RPC error code, -32000.
    pub code: i32,
    /// The message, as one sentence.
    pub message: String,
    /// The details.
    pub data: Box<FailureData>,
}

/// The details of a failure.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FailureData {
    /// The kind, in the contract's spelling.
    #[serde(rename = "type")]
    pub kind: String,
    /// The error in a text that does not compile, in the compiler's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The place of the error, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// True if the text cannot be read. Then no part of it can be loaded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unreadable: bool,
    /// The changes that could not be undone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_undone: Vec<String>,
}

/// The place of an error, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Location {
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column, 1-based, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl Failure {
    /// Creates a failure without a location.
    pub fn new(kind: impl Into<ErrorKind>, message: impl Into<String>) -> Failure {
        let data = FailureData { kind: kind.into().of_contract(), ..FailureData::default() };
        Failure { code: -32000, message: message.into(), data: Box::new(data) }
    }

    /// Returns the error kind, from the contract's spelling in `data.type`.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::from(self.data.kind.as_str())
    }

    fn of(failure: ReloadFailure) -> Failure {
        let ReloadFailure { kind, message, file, line, column, unreadable } = failure;
        if kind != "COMPILATION_ERROR" {
            return Failure::new(kind, message);
        }
        let location = Location { file: file.map(|file| file.to_string_lossy().into_owned()), line, column };
        let location = Some(location).filter(|location| *location != Location::default());
        let data = FailureData { kind, message: Some(message), location, unreadable, not_undone: Vec::new() };
        Failure { code: -32000, message: "Compilation failed".into(), data: Box::new(data) }
    }

    /// Returns the message, the compiler's output and the location, for a person.
    pub fn render(&self) -> String {
        let mut text = self.message.clone();
        if let Some(fault) = &self.data.message {
            let _ = write!(text, ": {fault}");
        }
        let Some(Location { file, line, column }) = &self.data.location else { return text };
        match (file, line, column) {
            (Some(file), Some(line), Some(column)) => _ = write!(text, "\n  at: {file}:{line}:{column}"),
            (None, Some(line), Some(column)) => _ = write!(text, "\n  at: line {line}, column {column}"),
            (Some(file), Some(line), None) => _ = write!(text, "\n  at: {file}:{line}"),
            (None, Some(line), None) => _ = write!(text, "\n  at: line {line}"),
            (Some(file), None, _) => _ = write!(text, "\n  in: {file}"),
            (None, None, _) => {}
        }
        text
    }
}

/// Returns the first finding of a check that would also make `compile-file` fail. Findings that
/// only a check in a restricted process has do not count.
pub fn fatal(code: &str, items: &[Diagnostic], file: Option<&str>, line: usize) -> Option<ReloadFailure> {
    let fails = |item: &&Diagnostic| match item.severity {
        Severity::Error => !matches!(
            item.code.as_str(),
            "confined"
                | "cannot-confine"
                | "out-of-time"
                | "out-of-memory"
                | "check-stopped"
                | "exhausted"
                | "compile-time-error"
        ),
        Severity::Warning => item.condition.as_deref() == Some("WARNING") && !item.code.starts_with("undefined-"),
        _ => false,
    };
    let undefined = |item: &&Diagnostic| item.code == "undefined-variable";
    let item = items.iter().find(|item| fails(item) || undefined(item))?;
    let place = line_column(&Rope::from_str(code), item.span.start);
    Some(ReloadFailure {
        kind: "COMPILATION_ERROR".into(),
        message: item.message.clone(),
        file: file.map(Into::into),
        line: Some(place.line + line - 1),
        column: Some(place.column),
        unreadable: items.iter().any(is_unreadable),
    })
}

/// Returns true if a finding says that a form cannot be read.
fn is_unreadable(item: &Diagnostic) -> bool {
    const CODES: [&str; 5] = ["end-of-file", "read-eval", "reader-error", "unknown-package", "unknown-symbol"];
    CODES.contains(&item.code.as_str()) || item.code.starts_with("unbalanced-") || item.code.starts_with("unfinished-")
}

/// Returns the outcome of a reload that took place.
///
/// # Errors
/// The reason why the reload did not take place.
pub fn reloaded_or_failure(outcome: ReloadOutcome) -> Result<ReloadOutcome, Failure> {
    if outcome.reloaded {
        return Ok(outcome);
    }
    let mut failure = match (outcome.failure, outcome.outcome.error) {
        (Some(failure), _) => Failure::of(failure),
        (None, Some(error)) => {
            let kind = match error.kind.as_str() {
                "TIMEOUT" => ErrorKind::from("timeout"),
                "INTERRUPTED" => ErrorKind::INTERRUPTED,
                _ => ErrorKind::LOAD_ERROR,
            };
            let message =
                format!("Loading failed, and what it had changed was put back: {}: {}", error.kind, error.message);
            Failure::new(kind, message)
        }
        (None, None) => Failure::new(ErrorKind::LOAD_ERROR, "Loading failed, and what it had changed was put back."),
    };
    if !outcome.not_undone.is_empty() {
        failure.data.not_undone = outcome.not_undone;
    }
    Err(failure)
}

/// Returns the text of a reload that took place. If `undo` is true, the reload was undone.
pub fn render(outcome: &ReloadOutcome, undo: bool) -> String {
    let report = outcome.report.clone().unwrap_or_default();
    let mut text = format!("{} {}", if undo { "Undone: the reload of" } else { "Reloaded" }, report.what);
    let mut list = |title: &str, names: &[String]| {
        if names.is_empty() {
            return;
        }
        let _ = write!(text, "\n{title} ({}):", names.len());
        for name in names.iter().take(MAX_SHOWN) {
            let _ = write!(text, "\n  {name}");
        }
        if names.len() > MAX_SHOWN {
            let _ = write!(text, "\n  ... and {} more", names.len() - MAX_SHOWN);
        }
    };
    list("Files", &report.files);
    list(if undo { "Put back" } else { "Redefined" }, &report.redefined);
    list(if undo { "There again" } else { "New" }, &report.new);
    list(if undo { "Taken away" } else { "No longer in the source, still in the image" }, &report.gone);
    list("Loaded with errors", &report.errors);
    list("Still the old code (compile these again)", &report.stale);
    list("Layout changed (instances and compiled code of before)", &report.layouts);
    list("Could not be put back", &outcome.not_undone);
    let warnings: Vec<String> =
        outcome.outcome.warnings.iter().map(|warning| format!("{}: {}", warning.kind, warning.message)).collect();
    list("Warnings", &warnings);
    if report.redefined.is_empty() && report.new.is_empty() && report.gone.is_empty() {
        text += "\nNo definition changed.";
    }
    let stdout = outcome.outcome.stdout.text.trim_end();
    if !stdout.is_empty() {
        let _ = write!(text, "\n[stdout]\n{stdout}");
    }
    let stderr = error_output(outcome);
    if !stderr.trim_end().is_empty() {
        let _ = write!(text, "\n[stderr]\n{}", stderr.trim_end());
    }
    text
}

/// Returns the error output without the compiler's own lines, whose conditions are listed.
fn error_output(outcome: &ReloadOutcome) -> String {
    split_compiler_output(&outcome.outcome.stderr.text).0
}

/// Returns the files that were loaded.
pub fn files(outcome: &ReloadOutcome) -> Vec<PathBuf> {
    outcome.report.iter().flat_map(|report| &report.files).map(PathBuf::from).collect()
}

/// The data of a reload that took place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReloadFacts {
    /// The effects.
    #[serde(flatten)]
    pub report: Option<Report>,
    /// The changes that could not be undone.
    pub not_undone: Vec<String>,
    /// The warnings, in order.
    pub warnings: Vec<EvalWarning>,
    /// The standard output.
    pub output: String,
    /// The error output, without the compiler's messages.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error_output: String,
    /// The number of changes that can be undone, including this one.
    pub undoable: usize,
    /// The files with unsaved changes in an editor, which were not loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<String>,
    /// The definitions that the image keeps from evaluations, although files that have not changed
    /// define them differently.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
}

/// Returns the data of a reload that took place. [`ReloadFacts`] describes `unsaved` and `kept`.
pub fn facts(outcome: &ReloadOutcome, unsaved: &[String], kept: &[String]) -> ReloadFacts {
    ReloadFacts {
        report: outcome.report.clone(),
        not_undone: outcome.not_undone.clone(),
        warnings: outcome.outcome.warnings.clone(),
        output: outcome.outcome.stdout.text.clone(),
        error_output: error_output(outcome),
        undoable: outcome.undoable,
        unsaved: unsaved.to_vec(),
        kept: kept.to_vec(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::evaluation::{EvalOutcome, EvalStatus};
    use crate::text::Span;

    #[test]
    fn a_failure_tells_whether_the_text_can_be_read() {
        let found =
            |at: usize, code: &str| Diagnostic::new(Span { start: at, end: at + 1 }, Severity::Error, code, "m");
        let of = |items: &[Diagnostic]| Failure::of(fatal("(f)\n(g", items, None, 1).unwrap()).data.unreadable;
        // The text is unreadable even if another finding comes first.
        assert!(of(&[found(0, "malformed-form"), found(4, "unbalanced-list")]));
        assert!(of(&[found(0, "unknown-package")]));
        assert!(!of(&[found(0, "malformed-form")]));
    }

    #[test]
    fn error_output_is_shown_without_the_compilers() {
        let mut outcome = EvalOutcome::empty(EvalStatus::Ok, None);
        outcome.stderr.text = "; in: DEFUN F\n;     (G)\n;\n; caught WARNING:\n;   no\n\ncareful\n".into();
        let mut done = serde_json::to_value(outcome).unwrap();
        for (key, value) in [("reloaded", json!(true)), ("undoable", json!(1)), ("not_undone", json!([]))] {
            done[key] = value;
        }
        let outcome: ReloadOutcome = serde_json::from_value(done).unwrap();
        assert_eq!(render(&outcome, false), "Reloaded \nNo definition changed.\n[stderr]\ncareful");
        assert_eq!(facts(&outcome, &[], &[]).error_output, "careful\n");
    }

    #[test]
    fn a_line_is_shown_without_a_column_too() {
        let at = |file: Option<&str>, line, column| {
            let mut failure = Failure::new("x", "No");
            failure.data.location = Some(Location { file: file.map(str::to_owned), line, column });
            failure.render()
        };
        assert_eq!(at(Some("/a"), Some(3), None), "No\n  at: /a:3");
        assert_eq!(at(None, Some(3), None), "No\n  at: line 3");
        assert_eq!(at(Some("/a"), None, None), "No\n  in: /a");
    }

    #[test]
    fn a_failure_is_the_error_object_of_the_contract() {
        let failure = |file: Option<&str>, line| ReloadFailure {
            kind: "COMPILATION_ERROR".into(),
            message: "no".into(),
            file: file.map(Into::into),
            line,
            column: line,
            unreadable: false,
        };
        let failed = Failure::of(failure(Some("/w/a.lisp"), Some(3)));
        let data = json!({
            "type": "COMPILATION_ERROR", "message": "no", "location": {"file": "/w/a.lisp", "line": 3, "column": 3},
        });
        assert_eq!(json!(failed), json!({"code": -32000, "message": "Compilation failed", "data": data}));
        assert_eq!(failed.render(), "Compilation failed: no\n  at: /w/a.lisp:3:3");
        let data = json!({"type": "COMPILATION_ERROR", "message": "no"});
        assert_eq!(json!(Failure::of(failure(None, None)).data), data);
        let lost = Failure::new("image-lost", "The image was lost.");
        assert_eq!(json!(lost.data), json!({"type": "IMAGE_LOST"}));
        assert_eq!(lost.kind(), ErrorKind::LOST);
    }
}
