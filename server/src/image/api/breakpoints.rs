//! Breakpoints: the operations `debug-breakpoints`, `debug-function-breakpoints`, `debug-break-on`
//! and `debug-breakpoint-locations`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Operation;
use super::debug::{Place, operation};

/// A breakpoint that is wanted: `line` or `name`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Point {
    /// The number that its owner gives it.
    pub id: u64,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column, from 1, in UTF-16 code units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The function's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The condition, a form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The hits that count: `5`, `> 5`, `% 5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit: Option<String>,
    /// The message to log instead of stopping, with `{form}` in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// The outcome for a breakpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Verified {
    /// True if the breakpoint is in force.
    #[serde(default)]
    pub verified: bool,
    /// The reason why it is not.
    #[serde(default)]
    pub message: Option<String>,
    /// The place where it really is.
    #[serde(flatten)]
    pub place: Place,
}

/// The outcome for breakpoints, or places where there can be some.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Breakpoints {
    /// An entry for each point, in order.
    pub breakpoints: Vec<Verified>,
}

operation!(
    /// `debug-breakpoints`.
    DebugBreakpoints {
        /// The client whose breakpoints are set.
        owner: String,
        /// The file.
        file: PathBuf,
        /// The file's text as it is now.
        text: String,
        /// All of the owner's breakpoints in the file.
        points: Vec<Point>,
    },
    "debug-breakpoints",
    Breakpoints
);
operation!(
    /// `debug-function-breakpoints`.
    DebugFunctionBreakpoints {
        /// The client whose breakpoints are set.
        owner: String,
        /// All of the owner's breakpoints at functions.
        points: Vec<Point>,
    },
    "debug-function-breakpoints",
    Breakpoints
);
operation!(
    /// `debug-break-on`.
    DebugBreakOn {
        /// The client whose types of conditions are set.
        owner: String,
        /// All types of conditions at which evaluations stop when one is signalled, for this owner.
        types: Vec<String>,
    },
    "debug-break-on",
    Breakpoints
);
operation!(
    /// `debug-breakpoint-locations`.
    DebugBreakpointLocations {
        /// The file.
        file: PathBuf,
        /// The file's text as it is now.
        text: String,
        /// The first line, from 1.
        line: usize,
        /// The last line.
        end_line: usize,
    },
    "debug-breakpoint-locations",
    Breakpoints
);
