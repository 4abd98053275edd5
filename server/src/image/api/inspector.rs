//! The inspector beside `inspect` itself: values as tables, two values compared, code evaluated on
//! a value, where one is defined, and its description.

use serde::{Deserialize, Serialize};

use super::Operation;
use super::debug::{Done, Inspected, Part, Value, operation};
use super::symbols::Definition;
use crate::model::evaluation::EvalOutcome;

operation!(
    /// `inspect-table`.
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
    /// `inspect-find`.
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
    Found
);
operation!(
    /// `inspect-compare`.
    InspectCompare {
        /// The value's reference.
        reference: u64,
        /// The reference of the other.
        other: u64,
    },
    "inspect-compare",
    Comparison
);
operation!(
    /// `inspect-eval`.
    InspectEval {
        /// The value's reference.
        reference: u64,
        /// The code; `*` is the value in it.
        code: String,
        /// The seconds that the code may run; `None`: 10 at a stop, no limit elsewhere.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<f64>,
    },
    "inspect-eval",
    Done
);

operation!(
    /// `inspect-definition`.
    InspectDefinition {
        /// The value's reference.
        reference: u64,
    },
    "inspect-definition",
    Definitions
);
operation!(
    /// `inspect-describe`: the description is printed to standard output.
    InspectDescribe {
        /// The value's reference.
        reference: u64,
    },
    "inspect-describe",
    EvalOutcome
);

operation!(
    /// `variable-value`.
    VariableValue {
        /// The session whose package and whose own variables count, such as `*`.
        session: String,
        /// The name, as it is written.
        name: String,
        /// The package in which the name is read; `None`: the session's.
        #[serde(skip_serializing_if = "Option::is_none")]
        package: Option<String>,
    },
    "variable-value",
    Value
);
operation!(
    /// `debug-inspect`.
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
        /// The seconds that the code may run; `None`: 10.
        #[serde(skip_serializing_if = "Option::is_none")]
        timeout: Option<f64>,
    },
    "debug-inspect",
    InspectedAtStop
);

/// The parts of a value that contain a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Found {
    /// The value.
    pub value: Value,
    /// Its kind.
    pub kind: String,
    /// The number of its parts.
    pub total: usize,
    /// The number of parts that were searched.
    pub searched: usize,
    /// The number of those that contain the text.
    pub matches: usize,
    /// A page of them.
    pub parts: Vec<FoundPart>,
}

/// A part that contains a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct FoundPart {
    /// Its number among the parts of the value.
    pub number: usize,
    /// The part.
    #[serde(flatten)]
    pub part: Part,
}

/// The end of code in a frame, and its first value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct InspectedAtStop {
    /// The end of the code; the values are not in it.
    #[serde(flatten)]
    pub done: Done,
    /// The first value, or the part of it; `None`: the code returned no values.
    #[serde(default)]
    pub inspected: Option<Inspected>,
}

/// The definitions of a value.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Definitions {
    /// The definitions that are from files, the value's own first.
    pub definitions: Vec<Definition>,
    /// The image's `*features*`, upper-case.
    pub features: Vec<String>,
}

/// A value as a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The number of rows of the whole.
    pub total: usize,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The page.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The index or the key.
    pub label: String,
    /// A cell for each column, where the row has one.
    pub cells: Vec<Option<Value>>,
}

/// The differences of two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The differences, in the order of the parts.
    pub differences: Vec<Difference>,
    /// True if the values were too large to be compared whole.
    pub partial: bool,
}

/// A part that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The labels of the parts that lead to it, outermost first; empty for the values themselves.
    pub path: Vec<String>,
    /// The part of the one.
    pub one: Value,
    /// The part of the other.
    pub other: Value,
}
