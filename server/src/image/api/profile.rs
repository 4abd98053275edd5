//! `profile`: an evaluation with a sampled profile of its time or allocation.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::model::evaluation::EvalOutcome;
use crate::model::profile::ProfileMode;

/// The parameters of `profile`.
#[derive(Debug, Clone, Serialize)]
pub struct ProfileParams {
    /// The session whose `*package*`, `*`, `+` and `/` are in force.
    pub session: String,
    /// The code to read and evaluate, form by form.
    pub code: String,
    /// The package to which `*package*` is bound for this call. `None` stands for the session's
    /// current package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The sampled quantity.
    pub mode: ProfileMode,
    /// The time between samples in seconds. For allocation, each memory region that a thread
    /// allocates is a sample instead.
    pub interval: f64,
    /// The maximum number of samples reported.
    pub max_samples: u32,
    /// The time limit in seconds, enforced by the image.
    pub timeout: f64,
}

/// Samples with the same stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// The number of samples.
    pub count: u64,
    /// Indices into [`Profile::names`], outermost first.
    pub frames: Vec<usize>,
}

/// The result of the sampling.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The stacks, most frequent first.
    #[serde(default)]
    pub stacks: Vec<Stack>,
    /// The names of functions, as printed in the package in force.
    #[serde(default)]
    pub names: Vec<String>,
    /// The wall-clock time in milliseconds.
    #[serde(default)]
    pub milliseconds: f64,
    /// The number of bytes that the image allocated during the evaluation.
    #[serde(default)]
    pub bytes: u64,
}

/// The answer to `profile`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileOutcome {
    /// The facts of the evaluation.
    #[serde(flatten)]
    pub outcome: EvalOutcome,
    /// The profile. It is empty if the evaluation never began.
    #[serde(default)]
    pub profile: Profile,
}

impl Operation for ProfileParams {
    const NAME: &'static str = "profile";
    const IN_TURN: bool = true;
    const IS_UNDER_TEST: bool = true;
    type Answer = ProfileOutcome;
}
