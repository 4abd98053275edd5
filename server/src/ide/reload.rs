//! Hot reload's answers: the report as text and data, and the contract's error object.

use std::fmt::Write as _;
use std::path::PathBuf;

use ropey::Rope;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::image::api::reload::{ReloadFailure, ReloadOutcome};
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::model::error_kind::ErrorKind;
use crate::text::position::line_column;

/// The maximum number of names of a list in the text; the data has them all.
const MAX_SHOWN: usize = 12;

/// The contract's error object (docs/protocol.md).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    /// The JSON-RPC error code, -32000.
    pub code: i32,
    /// The message, one sentence.
    pub message: String,
    /// `type`, and, if known, `message` and `location` with `file`, `line` and `column` (1-based);
    /// `unreadable`: the text cannot be read, so that nothing of it can be loaded anyway.
    pub data: Value,
}

impl Failure {
    /// A failure without a location.
    pub fn new(kind: impl Into<ErrorKind>, message: impl Into<String>) -> Failure {
        Failure { code: -32000, message: message.into(), data: json!({"type": kind.into().of_contract()}) }
    }

    /// The error kind, from the contract's spelling in `data.type`.
    pub fn kind(&self) -> ErrorKind {
        self.data["type"].as_str().map_or(ErrorKind::REFUSED, ErrorKind::from)
    }

    fn of(failure: ReloadFailure) -> Failure {
        let ReloadFailure { kind, message, file, line, column, unreadable } = failure;
        if kind != "COMPILATION_ERROR" {
            return Failure::new(kind, message);
        }
        let mut location = Map::new();
        if let Some(file) = file {
            location.insert("file".into(), file.to_string_lossy().into());
        }
        if let Some(line) = line {
            location.insert("line".into(), line.into());
        }
        if let Some(column) = column {
            location.insert("column".into(), column.into());
        }
        let mut data = json!({"type": kind, "message": message});
        if !location.is_empty() {
            data["location"] = location.into();
        }
        if unreadable {
            data["unreadable"] = true.into();
        }
        Failure { code: -32000, message: "Compilation failed".into(), data }
    }

    /// For a person: the message, the compiler's output, and the location.
    pub fn render(&self) -> String {
        let mut text = self.message.clone();
        if let Some(said) = self.data["message"].as_str() {
            let _ = write!(text, ": {said}");
        }
        let at = &self.data["location"];
        match (at["file"].as_str(), at["line"].as_u64(), at["column"].as_u64()) {
            (Some(file), Some(line), Some(column)) => _ = write!(text, "\n  at: {file}:{line}:{column}"),
            (None, Some(line), Some(column)) => _ = write!(text, "\n  at: line {line}, column {column}"),
            (Some(file), ..) => _ = write!(text, "\n  in: {file}"),
            _ => {}
        }
        text
    }
}

/// The first finding of a check that makes the compilation fail: one that `compile-file` would
/// fail for, not one that only a confined check meets.
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

/// Returns true for a finding that tells that a form cannot be read.
fn is_unreadable(item: &Diagnostic) -> bool {
    const CODES: [&str; 5] = ["end-of-file", "read-eval", "reader-error", "unknown-package", "unknown-symbol"];
    CODES.contains(&item.code.as_str()) || item.code.starts_with("unbalanced-") || item.code.starts_with("unfinished-")
}

/// The result of a reload: the outcome, or the reason it did not take place.
pub fn settle(outcome: ReloadOutcome) -> Result<ReloadOutcome, Failure> {
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
        failure.data["not_undone"] = json!(outcome.not_undone);
    }
    Err(failure)
}

/// Returns the text of a reload that took place, or with `undo` of the undoing of one.
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
    text
}

/// The files that were loaded.
pub fn files(outcome: &ReloadOutcome) -> Vec<PathBuf> {
    outcome.report.iter().flat_map(|report| &report.files).map(PathBuf::from).collect()
}

/// The data of a reload that took place. `unsaved`: the files with unsaved changes in an editor.
/// `kept`: the definitions that are not those of unchanged files.
pub fn facts(outcome: &ReloadOutcome, unsaved: &[String], kept: &[String]) -> Map<String, Value> {
    let mut facts = match serde_json::to_value(&outcome.report) {
        Ok(Value::Object(report)) => report,
        _ => Map::new(),
    };
    facts.insert("not_undone".into(), json!(outcome.not_undone));
    facts.insert("warnings".into(), json!(outcome.outcome.warnings));
    facts.insert("output".into(), outcome.outcome.stdout.text.clone().into());
    facts.insert("undoable".into(), outcome.undoable.into());
    if !unsaved.is_empty() {
        facts.insert("unsaved".into(), json!(unsaved));
    }
    if !kept.is_empty() {
        facts.insert("kept".into(), json!(kept));
    }
    facts
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::text::Span;

    #[test]
    fn a_failure_tells_whether_the_text_can_be_read() {
        let found =
            |at: usize, code: &str| Diagnostic::new(Span { start: at, end: at + 1 }, Severity::Error, code, "m");
        let of =
            |items: &[Diagnostic]| Failure::of(fatal("(f)\n(g", items, None, 1).unwrap()).data["unreadable"].clone();
        // Also where another form is told of first.
        assert_eq!(of(&[found(0, "malformed-form"), found(4, "unbalanced-list")]), true);
        assert_eq!(of(&[found(0, "unknown-package")]), true);
        assert_eq!(of(&[found(0, "malformed-form")]), Value::Null);
    }
}
