//! The operations of the inspector other than `inspect`: values as tables, searches, comparisons of
//! two values, code evaluated on a value, the definitions of a value, and its description.

use serde::{Deserialize, Serialize};

use super::Operation;
use super::debug::operation;
use super::symbols::Definition;
use crate::model::action_outcome::{ActionOutcome, InspectedAtStop};
use crate::model::evaluation::EvalOutcome;
use crate::model::inspection::{Comparison, LispValue, MatchingParts, Table};

operation!(
    /// `inspect-table`: a page of a value as a table.
    InspectTable {
        /// The value's reference.
        reference: u64,
        /// The first row.
        start: usize,
        /// The number of rows.
        count: usize,
    },
    "inspect-table",
    Table
);
operation!(
    /// `inspect-find`: the parts of a value that contain a text.
    InspectFind {
        /// The value's reference.
        reference: u64,
        /// The numbers of the parts that lead to the part to search, outermost first.
        path: Vec<usize>,
        /// The text that parts are to contain.
        text: String,
        /// The first match.
        start: usize,
        /// The number of matches.
        count: usize,
    },
    "inspect-find",
    MatchingParts
);
operation!(
    /// `inspect-compare`: the differences between two values.
    InspectCompare {
        /// The first value's reference.
        reference: u64,
        /// The second value's reference.
        other: u64,
    },
    "inspect-compare",
    Comparison
);
operation!(
    /// `inspect-eval`: evaluates code on a value.
    InspectEval {
        /// The value's reference.
        reference: u64,
        /// The code. In it, `*` is the value.
        code: String,
        /// The time limit of the code in seconds. `None` stands for 10 at a stop, and for no limit
        /// elsewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<f64>,
    },
    "inspect-eval",
    ActionOutcome
);

operation!(
    /// `inspect-definition`: the definitions of a value.
    InspectDefinition {
        /// The value's reference.
        reference: u64,
    },
    "inspect-definition",
    Definitions
);
operation!(
    /// `inspect-describe`: prints the description of a value to standard output.
    InspectDescribe {
        /// The value's reference.
        reference: u64,
    },
    "inspect-describe",
    EvalOutcome
);

operation!(
    /// `variable-value`: the value of a variable.
    VariableValue {
        /// The session whose package and own variables, such as `*`, are used.
        session: String,
        /// The name as written.
        name: String,
        /// The package in which the name is read. `None` stands for the session's package.
        #[serde(skip_serializing_if = "Option::is_none")]
        package: Option<String>,
    },
    "variable-value",
    LispValue
);
operation!(
    /// `debug-inspect`: inspects the first value of code in a frame.
    DebugInspect {
        /// The stop.
        stop: u64,
        /// The frame.
        frame: usize,
        /// The code whose first value is inspected.
        code: String,
        /// The numbers of the parts that lead to the part to inspect, outermost first.
        path: Vec<usize>,
        /// The first part.
        start: usize,
        /// The number of parts.
        count: usize,
        /// The time limit of the code in seconds. `None` stands for 10.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<f64>,
    },
    "debug-inspect",
    InspectedAtStop
);

/// The definitions of a value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Definitions {
    /// The definitions in files, the value's own first.
    pub definitions: Vec<Definition>,
    /// The image's `*features*`, upper-case.
    pub features: Vec<String>,
}
