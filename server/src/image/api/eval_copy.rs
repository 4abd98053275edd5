//! `eval-in-copy`: an evaluation, or other work, in a confined, throw-away copy of the image.

use serde::Serialize;

use super::Operation;
use crate::model::evaluation::TriedEvaluation;

/// `eval-in-copy`, as the session sends it.
#[derive(Debug, Clone, Serialize)]
pub struct EvalInCopyParams {
    /// The session whose package and REPL variables the copy starts with.
    pub session: String,
    /// The code to read and evaluate, form by form.
    pub code: String,
    /// The package to bind `*package*` to; `None`: the session's current one.
    pub package: Option<String>,
    /// True to measure time and allocation.
    pub capture_time: bool,
    /// Seconds after which the copy itself leaves the code.
    pub timeout: f64,
    /// Seconds after which the host ends the copy.
    pub deadline: f64,
    /// True if the copy is confined.
    pub confine: bool,
    /// True if the copy may have threads, and sockets in a network of its own (`eval.in_copy`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub threads: bool,
    /// Bytes of private memory for the copy.
    #[serde(skip)]
    pub memory: u64,
}

/// The work `try-evaluation`: an evaluation that reports what it would have changed.
#[derive(Debug, Clone, Serialize)]
pub struct TryEvaluationParams {
    /// See [`EvalInCopyParams::session`].
    pub session: String,
    /// See [`EvalInCopyParams::code`].
    pub code: String,
    /// See [`EvalInCopyParams::package`].
    pub package: Option<String>,
    /// See [`EvalInCopyParams::capture_time`].
    pub capture_time: bool,
    /// Seconds after which the copy leaves the code.
    pub code_timeout: f64,
    /// Seconds for the code and the comparison.
    pub timeout: f64,
}

impl Operation for TryEvaluationParams {
    const NAME: &'static str = "try-evaluation";
    type Answer = TriedEvaluation;
}

/// `eval-in-copy` for an operation that is otherwise one of the image's own.
#[derive(Debug, Clone, Serialize)]
pub struct WorkInCopyParams<O> {
    /// The operation's name.
    pub work: &'static str,
    /// The operation's parameters.
    #[serde(flatten)]
    pub operation: O,
    /// See [`EvalInCopyParams::timeout`]. The operation's own parameters have it too.
    #[serde(skip)]
    pub timeout: f64,
    /// See [`EvalInCopyParams::deadline`].
    pub deadline: f64,
    /// See [`EvalInCopyParams::confine`].
    pub confine: bool,
    /// See [`EvalInCopyParams::threads`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub threads: bool,
    /// See [`EvalInCopyParams::memory`].
    #[serde(skip)]
    pub memory: u64,
}
