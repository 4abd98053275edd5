//! `eval-in-copy`: an evaluation, or other work, in a confined copy of the image that is discarded
//! afterwards.

use serde::Serialize;

use super::Operation;
use crate::model::evaluation::TriedEvaluation;

/// The parameters of `eval-in-copy`, as the session sends them.
#[derive(Debug, Clone, Serialize)]
pub struct EvalInCopyParams {
    /// The session whose package and REPL variables the copy has at first.
    pub session: String,
    /// The code to read and evaluate, form by form.
    pub code: String,
    /// The package to which `*package*` is bound. `None` stands for the session's current package.
    pub package: Option<String>,
    /// True if time and allocation are measured.
    pub capture_time: bool,
    /// The time limit of the code in seconds, enforced by the copy.
    pub timeout: f64,
    /// The time limit of the copy in seconds, enforced by the host.
    pub deadline: f64,
    /// True if the copy is confined.
    pub confine: bool,
    /// True if the copy may have threads, and sockets in its own network (`eval.in_copy`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub threads: bool,
    /// The limit of the copy's private memory, in bytes.
    #[serde(skip)]
    pub memory: u64,
}

/// `try-evaluation`: an evaluation in a copy that reports the changes it would have made.
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
    /// The time limit of the code in seconds.
    pub code_timeout: f64,
    /// The time limit of the code and the comparison together, in seconds.
    pub timeout: f64,
}

impl Operation for TryEvaluationParams {
    const NAME: &'static str = "try-evaluation";
    type Answer = TriedEvaluation;
}

/// `eval-in-copy` for an operation that otherwise runs in the image itself.
#[derive(Debug, Clone, Serialize)]
pub struct WorkInCopyParams<O> {
    /// The operation's name.
    pub work: &'static str,
    /// The operation's parameters.
    #[serde(flatten)]
    pub operation: O,
    /// See [`EvalInCopyParams::timeout`]. The operation's own parameters also contain it.
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
