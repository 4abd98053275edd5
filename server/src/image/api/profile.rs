//! `profile`: an evaluation, and where its time or its memory went.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::model::evaluation::EvalOutcome;

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileMode {
    /// Processor time.
    Cpu,
    /// The clock.
    Time,
    /// Allocation.
    Alloc,
}

/// `profile`.
#[derive(Debug, Clone, Serialize)]
pub struct ProfileParams {
    /// The session whose `*package*`, `*`, `+`, `/` are in force.
    pub session: String,
    /// What to read and evaluate, form by form.
    pub code: String,
    /// Binds `*package*` for this call; `None`: the session's current one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// What is counted.
    pub mode: ProfileMode,
    /// Seconds between samples (not of allocation: there each new piece of memory that a thread takes is one).
    pub interval: f64,
    /// Samples that are told of at most.
    pub max_samples: u32,
    /// Seconds after which the image itself interrupts.
    pub timeout: f64,
}

/// Samples that found the same stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// How many.
    pub count: u64,
    /// Indices into [`Profile::names`], outermost first.
    pub frames: Vec<usize>,
}

/// What was sampled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The most frequent first.
    #[serde(default)]
    pub stacks: Vec<Stack>,
    /// Functions, as seen from the package in force.
    #[serde(default)]
    pub names: Vec<String>,
    /// Wall clock.
    #[serde(default)]
    pub milliseconds: f64,
    /// Bytes that the image allocated meanwhile.
    #[serde(default)]
    pub bytes: u64,
}

/// The answer to `profile`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProfileOutcome {
    /// The evaluation's facts.
    #[serde(flatten)]
    pub outcome: EvalOutcome,
    /// What was sampled; nothing when it never began.
    #[serde(default)]
    pub profile: Profile,
}

impl Operation for ProfileParams {
    const NAME: &'static str = "profile";
    const IN_TURN: bool = true;
    type Answer = ProfileOutcome;
}
