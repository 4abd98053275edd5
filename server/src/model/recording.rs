//! A recording of a form or a test that ran in a copy of the image, or of a call in the image
//! itself, and the answers to questions about it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::evaluation::EvalOutcome;

/// A recording.
#[derive(Debug, Clone, Deserialize)]
pub struct Recording {
    /// The number by which the recording is requested. 0: it is not kept.
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
    /// The number of failed checks, if a test was recorded.
    #[serde(default)]
    pub failed_checks: u64,
    /// The recorded definitions.
    #[serde(default)]
    pub definitions: Vec<String>,
    /// The number of functions that were not examined, because there were too many or for lack of
    /// time.
    #[serde(default)]
    pub left_out: u64,
    /// The call in the image that was recorded. `None`: a form or a test was recorded in a copy.
    #[serde(default)]
    pub call: Option<LiveCall>,
}

/// A call that was recorded in the image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LiveCall {
    /// The function's name.
    pub function: String,
    /// The name of the thread that made the call.
    pub thread: String,
}

/// A row of an answer: a call, a value, a variable or a condition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedRow {
    /// The kind: `call`, `value`, `return`, `exit`, `signal`, `variable`, or `check` for a failed
    /// check of a test.
    pub kind: String,
    /// The text of the form, or the call with its arguments.
    pub text: String,
    /// The value or the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The number of the row's event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// The depth of a call in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u64>,
    /// The file, empty for the recorded code itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line and the column of the start, and the line and the column of the end. Lines and
    /// columns are 1-based, columns in UTF-16 code units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<[u32; 4]>,
}

/// The answer to a question about a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingAnswer {
    /// A page of the rows.
    #[serde(default)]
    pub rows: Vec<RecordedRow>,
    /// The index of the first row.
    #[serde(default)]
    pub start: u64,
    /// The number of all rows.
    #[serde(default)]
    pub total: u64,
    /// The event that was found or requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// The calls around the event, innermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// The number of moments at which the question's condition signalled an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u64>,
    /// The first of these errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A moment at which a step through a recording stops.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RecordedMoment {
    /// The event.
    #[serde(flatten)]
    pub row: RecordedRow,
    /// The reason: `begin`, `end`, `step`, `breakpoint`, `error` for an error that nothing handled,
    /// or `wrong` where a value first appears that a check of the test found wrong.
    pub reason: String,
    /// The message of the check that found the value wrong.
    #[serde(default)]
    pub check: Option<String>,
    /// The numbers of the breakpoints at this moment.
    #[serde(default)]
    pub ids: Vec<u64>,
}

/// A call around a moment, with its place.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RecordedCall {
    /// The call with its arguments.
    pub name: String,
    /// The number of the recorded definition.
    pub unit: Option<u64>,
    /// The file, empty for the recorded code itself.
    pub file: Option<PathBuf>,
    /// The position, as in [`RecordedRow`].
    pub position: Option<[u32; 4]>,
}

/// A page of the calls around a moment, innermost first.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RecordedCalls {
    /// The calls.
    pub rows: Vec<RecordedCall>,
    /// The number of all calls around the moment.
    pub total: u64,
}

/// A variable, the value of a form, or a part of a value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RecordedValue {
    /// The name, the text of the form, or the label of the part.
    pub name: String,
    /// The value as text.
    pub value: String,
    /// The number of the value's parts.
    pub parts: u64,
    /// The place of the value in its scope, for a value that was requested by name.
    #[serde(default)]
    pub path: Vec<u64>,
}

/// A page of the values of a scope or of the parts of a value.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RecordedValues {
    /// The values.
    pub rows: Vec<RecordedValue>,
    /// The number of all values.
    pub total: u64,
}

/// A breakpoint in a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordingBreakpoint {
    /// The number that its owner gives it.
    pub id: u64,
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in UTF-16 code units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

/// The places of breakpoints.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RecordedPlaces {
    /// The place of each breakpoint, or `None` where no recorded definition has a form.
    pub places: Vec<Option<RecordedPlace>>,
}

/// A place in a recorded definition.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RecordedPlace {
    /// The position, as in [`RecordedRow`].
    pub position: [u32; 4],
}

/// The text of a recorded definition, and the place where it begins.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct RecordedText {
    /// The text.
    pub text: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1, in UTF-16 code units.
    pub column: u32,
}
