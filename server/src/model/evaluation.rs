//! The outcome of an evaluation: values, output, warnings, and the error that ended it.

use serde::{Deserialize, Serialize};

/// Text kept to a limit: head and tail, with how many characters between them were left out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clipped {
    /// The text; where something was left out, a line in it says so.
    pub text: String,
    /// Characters left out; 0 when whole.
    #[serde(default)]
    pub omitted: usize,
}

/// A warning that was signalled and muffled while evaluating.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalWarning {
    /// `WARNING`, `STYLE-WARNING`, ... printed as seen from CL-USER.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its text.
    pub message: String,
}

/// An unhandled serious condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalError {
    /// Its type, printed as seen from CL-USER: `DIVISION-BY-ZERO`, `SB-INT:SIMPLE-PROGRAM-ERROR`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its text.
    pub message: String,
    /// Up to 20 frames that matter, `(NAME ARG ...)`, innermost first, without their numbers.
    #[serde(default)]
    pub backtrace: Vec<String>,
}

/// Time and allocation of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timing {
    /// Wall clock, milliseconds.
    pub real_ms: f64,
    /// CPU time, milliseconds.
    pub run_ms: f64,
    /// In the collector, milliseconds.
    pub gc_ms: f64,
    /// Bytes allocated.
    pub bytes: u64,
}

/// How an evaluation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvalStatus {
    /// Values came back.
    Ok,
    /// An unhandled condition, `ABORT`, a refused exit: `error` says which.
    Error,
    /// The deadline passed.
    Timeout,
    /// Interrupted by `interrupt` or a cancel.
    Interrupted,
}

/// The answer to `eval`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvalOutcome {
    /// How it ended.
    pub status: EvalStatus,
    /// The last form's values, printed.
    #[serde(default)]
    pub values: Vec<Clipped>,
    /// `*standard-output*`, and what foreign code and children printed on descriptor 1.
    #[serde(default)]
    pub stdout: Clipped,
    /// `*error-output*` and `*trace-output*`, and descriptor 2.
    #[serde(default)]
    pub stderr: Clipped,
    /// In order.
    #[serde(default)]
    pub warnings: Vec<EvalWarning>,
    /// Unless `Ok`.
    #[serde(default)]
    pub error: Option<EvalError>,
    /// When asked for.
    #[serde(default)]
    pub timing: Option<Timing>,
    /// The session's current package afterwards.
    pub package: String,
}

/// The answer to `load-system`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSystemOutcome {
    /// Whether it is loaded now.
    pub loaded: bool,
    /// The evaluation's facts: output, warnings, the error if it failed.
    #[serde(flatten)]
    pub outcome: EvalOutcome,
}
