//! Frozen failures: copies of the image in which the stack of an evaluation, or of a thread, that
//! failed lives on.

use serde::{Deserialize, Serialize};

/// A restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// The name; an anonymous restart has none.
    pub name: Option<String>,
    /// The report.
    pub report: String,
    /// True if the restart is meant to be given values.
    pub arguments: bool,
}

/// A frozen failure, as the image tells of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// The process.
    pub pid: u32,
    /// The number by which it is asked; 0 until the host has given one.
    #[serde(default)]
    pub number: u64,
    /// The restarts, innermost first.
    pub restarts: Vec<Restart>,
}

/// A frozen failure that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The number by which it is asked.
    #[serde(rename = "failure")]
    pub number: u64,
    /// The process.
    pub pid: u32,
    /// The evaluation's session, or what else failed: `the thread "worker"`.
    pub session: String,
    /// The condition's type.
    #[serde(rename = "type")]
    pub kind: String,
    /// The condition's text.
    pub message: String,
    /// The restarts, innermost first.
    pub restarts: Vec<Restart>,
    /// The seconds since the failure.
    pub seconds: u64,
}
