//! Breakpoints, as they are requested and as they are in force, and their events.

use serde::{Deserialize, Serialize};

use super::place::Place;

/// The identity of a breakpoint, given by its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreakpointName {
    /// The owner.
    pub owner: String,
    /// The number that the owner gave the breakpoint.
    pub id: u64,
}

/// A breakpoint that a client requests, by its line or by the name of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RequestedBreakpoint {
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
    /// The hits at which the program stops: `5`, `> 5`, `% 5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hit: Option<String>,
    /// The message to log instead of stopping, with `{form}` in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
}

/// A requested breakpoint as the image has set it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Breakpoint {
    /// True if the breakpoint is in force.
    #[serde(default)]
    pub verified: bool,
    /// The reason why the breakpoint is not in force.
    #[serde(default)]
    pub message: Option<String>,
    /// The actual place of the breakpoint.
    #[serde(flatten)]
    pub place: Place,
}

/// The outcomes for breakpoints, or the places where breakpoints are possible.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Breakpoints {
    /// An entry for each point, in order.
    pub breakpoints: Vec<Breakpoint>,
}

impl Breakpoints {
    /// Returns an outcome for each of `count` points, also if the image has given fewer.
    pub fn for_each_of(mut self, count: usize) -> Vec<Breakpoint> {
        let message = "The Lisp image did not say whether it has set this breakpoint. Set it again.";
        self.breakpoints.resize_with(count, || Breakpoint { message: Some(message.into()), ..Breakpoint::default() });
        self.breakpoints
    }
}

/// The event `breakpoints-changed`: breakpoints have lost their place, or may have one now.
#[derive(Debug, Clone, Deserialize)]
pub struct BreakpointsChanged {
    /// The breakpoints that changed, by owner and file.
    pub changed: Vec<FileBreakpoints>,
}

/// The breakpoints of an owner in a file.
#[derive(Debug, Clone, Deserialize)]
pub struct FileBreakpoints {
    /// The owner.
    pub owner: String,
    /// The file; empty for breakpoints at functions.
    pub file: String,
}

/// The event `breakpoint-log`: the message of a breakpoint that logs instead of stopping.
#[derive(Debug, Clone, Deserialize)]
pub struct LogpointMessage {
    /// The owner of the breakpoint.
    pub owner: String,
    /// The number that the owner gave the breakpoint.
    pub id: u64,
    /// The text.
    pub text: String,
    /// The place of the breakpoint.
    pub place: Place,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_breakpoint_without_an_outcome_has_a_reason() {
        let set = Breakpoint { verified: true, ..Breakpoint::default() };
        let outcomes = Breakpoints { breakpoints: vec![set.clone()] }.for_each_of(2);
        assert_eq!(outcomes[0], set);
        assert!(outcomes.len() == 2 && !outcomes[1].verified && outcomes[1].message.is_some());
    }
}
