//! Recordings: the questions of clients, and recordings and answers as text and as data.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evaluate::{self, Evaluation};
use crate::image::api::record::RecordingQuery;
use crate::model::evaluation::EvalStatus;
use crate::model::recording::{LiveCall, RecordedRow, Recording, RecordingAnswer};
use crate::shown::line;

/// The type of the error that stands for a non-local exit from the recorded call.
const LEFT: &str = "NON-LOCAL-EXIT";
/// The maximum number of rows of an answer.
const MAX_ROWS: u64 = 50;
/// The maximum number of names of definitions in the text.
const MAX_DEFINITIONS: usize = 12;
/// The maximum number of levels of indentation of a call tree.
const MAX_INDENT_LEVELS: u64 = 30;

/// The kind of a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum QuestionKind {
    /// The calls, with arguments and results.
    #[default]
    Tree,
    /// The values of an expression.
    Values,
    /// The values of a variable.
    History,
    /// The first moment at which a condition was true.
    When,
    /// The last error.
    Error,
    /// A moment, by the number of its event.
    Event,
    /// The form by which the value of an event, or that of a failed check, first came to be.
    Origin,
    /// The end of the recording, or of the wait for its call.
    Cancel,
}

/// A question to a recording, as the client writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Question {
    /// The kind of the question.
    #[serde(default)]
    pub query: QuestionKind,
    /// The expression (its text, `LINE`, `FILE:LINE` or `FILE:LINE:COLUMN`), the variable, or the
    /// condition.
    pub of: Option<String>,
    /// The function to which the question is limited; `None` for any function.
    pub function: Option<String>,
    /// The number of the event.
    pub event: Option<u64>,
    /// The index of the first row.
    pub start: Option<u64>,
}

/// Returns the question that the outcome of a recording suggests: about the error, about the origin
/// of the value of a failed check, or about the calls.
pub fn first_question(recording: &Recording) -> RecordingQuery {
    let left = recording.outcome.error.as_ref().is_some_and(|error| error.kind == LEFT);
    let query = match recording.outcome.status {
        EvalStatus::Error if !left => "error",
        _ if recording.failed_checks > 0 => "origin",
        _ => "tree",
    };
    RecordingQuery { query, count: MAX_ROWS, ..RecordingQuery::default() }
}

impl Question {
    /// Returns the question for the image. Paths are relative to the `workspace`.
    ///
    /// # Errors
    /// A sentence for the user: `of` is missing or not understood, or the kind is no question.
    pub fn query(&self, workspace: &Path) -> Result<RecordingQuery, String> {
        let of = self.of.as_deref().map(str::trim).filter(|of| !of.is_empty());
        let needed = |what: &str| of.map(str::to_owned).ok_or_else(|| format!("`of` is missing: it must be {what}."));
        let mut query = RecordingQuery {
            function: self.function.clone(),
            start: self.start.unwrap_or(0),
            count: MAX_ROWS,
            ..RecordingQuery::default()
        };
        query.query = match self.query {
            QuestionKind::Tree => "tree",
            QuestionKind::Error => "error",
            QuestionKind::Cancel => return Err("`cancel` is no question: it ends a recording.".into()),
            QuestionKind::Values => {
                let of = needed("the text of an expression, or FILE:LINE or FILE:LINE:COLUMN")?;
                match place(&of) {
                    Some((file, line, column)) => {
                        query.file = file.map(|file| workspace.join(file));
                        (query.line, query.column) = (Some(line), column);
                    }
                    None => query.text = Some(of),
                }
                "values"
            }
            QuestionKind::History => {
                query.variable = Some(needed("the name of a variable")?);
                "history"
            }
            QuestionKind::When => {
                query.code = Some(needed("a Lisp expression over variables")?);
                "when"
            }
            QuestionKind::Origin => {
                query.event = self.number_of_event();
                if query.event.is_none() && of.is_some() {
                    return Err(
                        "`of` must be the number of an event; without it, the value of the failed check is meant."
                            .into(),
                    );
                }
                "origin"
            }
            QuestionKind::Event => {
                let event = self.number_of_event();
                query.event = Some(event.ok_or("`of` is missing: it must be the number of an event.")?);
                "event"
            }
        };
        Ok(query)
    }

    /// Returns the number of an event, written as in an answer (`#12`) or without the `#`.
    fn number_of_event(&self) -> Option<u64> {
        self.event.or_else(|| self.of.as_deref()?.trim().trim_start_matches('#').parse().ok())
    }
}

/// Returns the place that `LINE`, `FILE:LINE` or `FILE:LINE:COLUMN` means, or `None` if the text is
/// an expression.
fn place(of: &str) -> Option<(Option<PathBuf>, u32, Option<u32>)> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
    if let Some(line) = number(of) {
        return Some((None, line, None));
    }
    if of.starts_with('(') {
        return None;
    }
    let (rest, last) = of.rsplit_once(':')?;
    let last = number(last)?;
    match rest.rsplit_once(':').and_then(|(file, line)| Some((file, number(line)?))) {
        Some((file, line)) => Some((Some(file.into()), line, Some(last))),
        None => Some((Some(rest.into()), last, None)),
    }
}

/// A recording as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordingFacts {
    /// The number by which questions name the recording; 0 if nothing was recorded.
    pub recording: u64,
    /// The outcome of the form or the test.
    pub outcome: Evaluation,
    /// The number of events in all.
    pub events: u64,
    /// The number of the oldest kept event.
    pub first: u64,
    /// The number of recorded calls.
    pub calls: u64,
    /// The number of calls that were nested too deep to be recorded.
    pub skipped: u64,
    /// The recorded definitions.
    pub definitions: Vec<String>,
    /// The number of functions that were not examined.
    pub left_out: u64,
    /// The answer to the first question.
    pub answer: RecordingAnswer,
    /// The call in the image that was recorded; `None` for a run in a copy.
    pub call: Option<LiveCall>,
}

/// Returns a recording with its first answer as text and as data, and true if the form failed.
pub fn recorded(recording: Recording, answer: RecordingAnswer, workspace: &Path) -> (String, RecordingFacts, bool) {
    let Recording { number, outcome, events, first, calls, skipped, definitions, left_out, call, .. } = recording;
    let evaluation = Evaluation::from(outcome);
    let mut text = evaluate::render(&evaluation);
    if number == 0 {
        text += "\n; Nothing was recorded.";
    } else {
        let of = match &call {
            Some(LiveCall { function, thread }) => {
                format!("a call of {} in the image, in the thread {}", line(function), line(thread))
            }
            None => "a run in a copy (the image is as it was)".into(),
        };
        let _ = write!(text, "\n; Recording {number}, of {of}: {events} events, {calls} calls.");
        if first > 0 {
            let _ = write!(text, " Those before event {first} are not kept.");
        }
        if skipped > 0 {
            let _ = write!(text, " {skipped} calls were nested too deep to be recorded.");
        }
        text += &definitions_text(&definitions, left_out);
        let _ = write!(text, "\n{}", rows_text(&answer, workspace));
    }
    let failed = !evaluation.is_ok();
    let facts = RecordingFacts {
        recording: number,
        outcome: evaluation,
        events,
        first,
        calls,
        skipped,
        definitions,
        left_out,
        answer,
        call,
    };
    (text, facts, failed)
}

fn definitions_text(definitions: &[String], left_out: u64) -> String {
    if definitions.is_empty() {
        return "\n; No definition was recorded: none that is called has a known text in the workspace, as it is in the image. \
                Save and load its file."
            .into();
    }
    let shown: Vec<String> = definitions.iter().take(MAX_DEFINITIONS).map(|name| line(name)).collect();
    let mut text = format!("\n; Recorded: {}", shown.join(", "));
    if definitions.len() > MAX_DEFINITIONS {
        let _ = write!(text, " and {} more", definitions.len() - MAX_DEFINITIONS);
    }
    if left_out > 0 {
        let _ = write!(text, "; {left_out} more functions were not looked at: name `functions` to choose");
    }
    text + "."
}

/// Returns the answer to a question as text.
pub fn answered(answer: &RecordingAnswer, workspace: &Path) -> String {
    let mut text = rows_text(answer, workspace);
    if !answer.calls.is_empty() {
        let calls: Vec<String> = answer.calls.iter().map(|call| line(call)).collect();
        let _ = write!(text, "\nwithin {}", calls.join("\n    of "));
    }
    text
}

fn rows_text(answer: &RecordingAnswer, workspace: &Path) -> String {
    let mut text: String = answer.rows.iter().map(|row| row_text(row, workspace) + "\n").collect();
    if answer.total == 0 {
        text += "Nothing: there is no such moment among the events that are kept.\n";
    }
    let after = answer.start + answer.rows.len() as u64;
    if after < answer.total {
        let _ = writeln!(text, "... {} of {} rows; the next: `start` {after}", answer.rows.len(), answer.total);
    }
    if let (Some(failed @ 1..), Some(why)) = (answer.failed, &answer.failure) {
        let _ = writeln!(text, "The condition failed at {failed} moments, first with {}", line(why));
    }
    text.truncate(text.trim_end().len());
    text
}

/// Returns a row as a line.
fn row_text(row: &RecordedRow, workspace: &Path) -> String {
    let number = row.event.map_or(String::new(), |event| format!("#{event}"));
    let indent = "  ".repeat(row.depth.unwrap_or(0).min(MAX_INDENT_LEVELS) as usize);
    let mut text = format!("{number:<7} {indent}{}", line(&row.text));
    if let Some(value) = &row.value {
        let equals = if row.kind == "variable" { "= " } else { "" };
        let _ = write!(text, " {equals}{}", line(value));
    }
    if let (Some(file), Some([at, column, ..])) = (&row.file, row.position) {
        let file = file.strip_prefix(workspace).unwrap_or(file);
        let name = if file.as_os_str().is_empty() { "code".into() } else { line(&file.display().to_string()) };
        let _ = write!(text, "  [{name}:{at}:{column}]");
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn question(value: Value) -> Result<RecordingQuery, String> {
        serde_json::from_value::<Question>(value).unwrap().query(Path::new("/w"))
    }

    #[test]
    fn an_expression_is_named_by_its_text_or_its_place() {
        let of = |of: &str| question(json!({"query": "values", "of": of})).unwrap();
        assert_eq!(of("(car x)").text.as_deref(), Some("(car x)"));
        assert_eq!(of("(f :a:1)").text.as_deref(), Some("(f :a:1)"));
        assert_eq!(of(" 12 ").line, Some(12));
        let place = of("src/a.lisp:3:7");
        assert_eq!(
            (place.file.as_deref(), place.line, place.column),
            (Some(Path::new("/w/src/a.lisp")), Some(3), Some(7))
        );
        let place = of("/x/a.lisp:3");
        assert_eq!((place.file.as_deref(), place.line, place.column), (Some(Path::new("/x/a.lisp")), Some(3), None));
    }

    #[test]
    fn what_is_missing_in_a_question_is_named() {
        for (query, name) in [("values", "`of`"), ("history", "`of`"), ("when", "`of`"), ("event", "`of`")] {
            let why = question(json!({"query": query})).unwrap_err();
            assert!(why.contains(name), "{query}: {why}");
        }
        assert_eq!(question(json!({})).unwrap().query, "tree");
        let origin = question(json!({"query": "origin", "of": " #12 "})).unwrap();
        assert_eq!((origin.query, origin.event), ("origin", Some(12)));
        assert_eq!(question(json!({"query": "origin"})).unwrap().event, None);
        assert!(question(json!({"query": "origin", "of": "x"})).unwrap_err().contains("`of`"));
    }

    #[test]
    fn rows_are_lines_whatever_is_in_them() {
        let answer: RecordingAnswer = serde_json::from_value(json!({
            "rows": [
                {"kind": "call", "text": "(f 1)", "value": "=> 2", "event": 3, "depth": 1, "file": "/w/a.lisp", "position": [4, 1, 5, 9]},
                {"kind": "variable", "text": "X", "value": "\"a\n\u{202e}b\"", "event": null},
            ],
            "start": 0, "total": 9, "failed": 2, "failure": "TYPE-ERROR: no",
        }))
        .unwrap();
        insta::assert_snapshot!(answered(&answer, Path::new("/w")), @r#"
        #3        (f 1) => 2  [a.lisp:4:1]
                X = "a \u{202e}b"
        ... 2 of 9 rows; the next: `start` 2
        The condition failed at 2 moments, first with TYPE-ERROR: no
        "#);
    }
}
