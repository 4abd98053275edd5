//! The outcome of an action at a stop, and of a tried action at a frozen failure.

use serde::{Deserialize, Serialize};

use super::evaluation::{Clipped, EvalError, EvalOutcome};
use super::inspection::{Inspected, LispValue};

/// The outcome of an action at a stop, which the stopped thread carries out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ActionOutcome {
    /// The way in which the action ended.
    pub status: ActionStatus,
    /// The values, with status `ok`.
    #[serde(default)]
    pub values: Vec<LispValue>,
    /// The error, with status `error`.
    #[serde(default)]
    pub error: Option<EvalError>,
    /// The standard output of code that was evaluated in a frame.
    #[serde(default)]
    pub stdout: Clipped,
    /// The error output.
    #[serde(default)]
    pub stderr: Clipped,
}

/// The ways in which an action at a stop ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionStatus {
    /// The code returned values.
    Ok,
    /// The stop is being left.
    Sent,
    /// The code failed.
    Error,
    /// The code took too long.
    Timeout,
    /// Somebody interrupted the code.
    Interrupted,
    /// The code itself left the stop.
    Left,
    /// The work ended without a result.
    Done,
}

impl ActionOutcome {
    /// Describes how code ended without values or an error of its own. `place` is `stop` or
    /// `failure`, depending on where the code ran.
    pub fn trouble(&self, place: &str) -> String {
        match self.status {
            ActionStatus::Timeout => format!("The code took too long and was ended. The {place} is as it was."),
            ActionStatus::Left => "The code left the stop.".into(),
            ActionStatus::Interrupted => {
                "The code was left by a restart or an interrupt, and returned no value.".into()
            }
            ActionStatus::Ok | ActionStatus::Sent | ActionStatus::Error | ActionStatus::Done => {
                "The code ended without a result.".into()
            }
        }
    }
}

/// The outcome of an attempt at a frozen failure.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AttemptOutcome {
    /// The outcome of the action. With status `left`, the evaluation continued in the attempt's
    /// process.
    #[serde(flatten)]
    pub action: ActionOutcome,
    /// The outcome that the evaluation would have had, with status `left`.
    #[serde(default)]
    pub outcome: Option<EvalOutcome>,
}

/// The outcome of code that was evaluated in a frame, and its first value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InspectedAtStop {
    /// The outcome of the code, without the values.
    #[serde(flatten)]
    pub action: ActionOutcome,
    /// The first value, or a part of it. `None` if the code returned no values.
    #[serde(default)]
    pub inspected: Option<Inspected>,
}
