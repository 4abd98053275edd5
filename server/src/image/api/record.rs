//! The operations of recordings. `record` runs a form or a test once in a confined copy of the
//! image and records it. `await-call` and `record-call` record the next call of a function. This
//! module also has the questions to a recording.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Operation;
use crate::model::recording::RecordingAnswer;

/// The parameters of `record`, which is not an [`Operation`], since the checker sends it to a copy.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RecordParams {
    /// The session whose package and REPL variables the copy starts with.
    pub session: String,
    /// The code, empty for a test.
    pub code: String,
    /// The test's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The package of the code; `None`: the session's current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The functions to record; empty: those of `directories` that are called.
    pub functions: Vec<String>,
    /// Directories whose definitions are recorded.
    #[serde(rename = "within")]
    pub directories: Vec<PathBuf>,
    /// The file of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line in `file` where the code begins, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column there, from 1, in UTF-16 code units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The time in seconds after which the copy itself ends the code.
    #[serde(rename = "timeout")]
    pub code_timeout_s: f64,
    /// The processor time in seconds that the copy may take in all, questions included.
    #[serde(rename = "deadline")]
    pub cpu_limit_s: f64,
    /// True if the copy is confined.
    pub confine: bool,
    /// The time in seconds after which the host ends the copy if there is no answer.
    #[serde(skip)]
    pub host_timeout_s: f64,
    /// The limit of the copy's private memory in bytes.
    #[serde(skip)]
    pub memory: u64,
}

/// `await-call`: waits for the next call of a function in the image, which is recorded there.
#[derive(Debug, Clone, Default, Serialize)]
pub struct AwaitCallParams {
    /// The session of the client that asks.
    pub session: String,
    /// The name of the function.
    pub function: String,
    /// The package in which names are read; `None`: CL-USER.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The functions to record in addition; empty: those of `directories` that are called.
    pub functions: Vec<String>,
    /// Directories whose definitions are recorded.
    #[serde(rename = "within")]
    pub directories: Vec<PathBuf>,
    /// The time in seconds to wait for the call.
    pub wait: f64,
    /// The time in seconds after which a call that has not returned is no longer recorded.
    pub timeout: f64,
}

impl Operation for AwaitCallParams {
    const NAME: &'static str = "await-call";
    type Answer = AwaitedCall;
}

/// The answer to `await-call`.
#[derive(Debug, Clone, Deserialize)]
pub struct AwaitedCall {
    /// The number of the recorded call, for `record-call`.
    pub call: u64,
}

/// `record-call`: makes a copy of the image that keeps a recorded call.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RecordCallParams {
    /// The session whose package the copy starts with.
    pub session: String,
    /// The number of the call.
    pub call: u64,
    /// The `timeout` of the `await-call`, in seconds.
    #[serde(rename = "timeout")]
    pub code_timeout_s: f64,
    /// The processor time in seconds that the copy may take in all, questions included.
    #[serde(rename = "deadline")]
    pub cpu_limit_s: f64,
    /// True if the copy is confined.
    pub confine: bool,
    /// The time in seconds after which the host ends the copy if there is no answer.
    #[serde(skip)]
    pub host_timeout_s: f64,
    /// The limit of the copy's private memory in bytes.
    #[serde(skip)]
    pub memory: u64,
}

/// A question to a recording, which is sent as JSON: a [`RecordingQuery`], or a step of a replay
/// (`api/replay.rs`).
pub trait RecordingQuestion: Serialize {
    /// The answer to the question.
    type Answer: DeserializeOwned;
}

impl RecordingQuestion for RecordingQuery {
    type Answer = RecordingAnswer;
}

/// A question of a person or an agent to a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RecordingQuery {
    /// The question: `tree`, `values`, `history`, `when`, `error`, `event` or `origin`.
    pub query: &'static str,
    /// The text of an expression, for `values`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The file of an expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line of an expression, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column of an expression, from 1, in UTF-16 code units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The name of a variable, for `history`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// A condition over variables, for `when`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The function to which the question is restricted; `None`: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The number of an event, for `event` and `origin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<u64>,
    /// The index of the first row.
    pub start: u64,
    /// The number of rows.
    pub count: u64,
}
