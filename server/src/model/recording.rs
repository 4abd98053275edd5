//! A recording of what a form or a test did in a copy of the image, and the answers to questions
//! about it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::evaluation::EvalOutcome;

/// A recording.
#[derive(Debug, Clone, Deserialize)]
pub struct Recording {
    /// The number by which it is asked; 0: it is not kept.
    #[serde(skip)]
    pub number: u64,
    /// The outcome of the form or the test.
    pub outcome: EvalOutcome,
    /// The number of events in all.
    #[serde(default)]
    pub events: u64,
    /// The number of the oldest event that is kept.
    #[serde(default)]
    pub first: u64,
    /// The number of recorded calls.
    #[serde(default)]
    pub calls: u64,
    /// The number of calls that were nested too deep to be recorded.
    #[serde(default)]
    pub skipped: u64,
    /// The recorded definitions.
    #[serde(default)]
    pub definitions: Vec<String>,
    /// The number of functions that were not looked at, for their number or for time.
    #[serde(default)]
    pub left_out: u64,
}

/// A row of an answer: a call, a value, a variable, a condition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedRow {
    /// The kind: `call`, `value`, `return`, `exit`, `signal` or `variable`.
    pub kind: String,
    /// The text of the form, or the call with its arguments.
    pub text: String,
    /// The value or the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The number of its event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// The depth of a call in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// The file, empty for the recorded code itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line and the column of the start and of the end, from 1, columns in UTF-16 code units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<[u32; 4]>,
}

/// The answer to a question.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingAnswer {
    /// The reason why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// A page of the rows.
    #[serde(default)]
    pub rows: Vec<RecordedRow>,
    /// The index of the first row.
    #[serde(default)]
    pub start: u64,
    /// The number of all rows.
    #[serde(default)]
    pub total: u64,
    /// The event that was found or asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// The calls around the event, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// The number of moments at which a condition failed, with the first error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// The first error of a condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
