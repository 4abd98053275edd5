//! Frozen failures: copies of the image that preserve the stack of a failed evaluation or thread.

use serde::{Deserialize, Serialize};

/// A restart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// The name. An anonymous restart has none.
    pub name: Option<String>,
    /// The report of the restart.
    pub report: String,
    /// True if the restart takes values.
    pub arguments: bool,
}

/// A frozen failure as the image describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// The process id.
    pub pid: u32,
    /// The number that requests use; 0 until the host has assigned one.
    #[serde(default)]
    pub number: u64,
    /// The restarts, innermost first.
    pub restarts: Vec<Restart>,
}

/// A frozen failure that the host keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The number that requests use.
    #[serde(rename = "failure")]
    pub number: u64,
    /// The process id.
    pub pid: u32,
    /// The evaluation's session, or a description of another failed thread, such as `the thread
    /// "worker"`.
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
