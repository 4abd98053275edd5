//! A value in the inspector: pages of its parts, the value as a table, and the differences from
//! another value.

use serde::{Deserialize, Serialize};

/// A Lisp value, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LispValue {
    /// The printed value, as one line of limited length.
    pub text: String,
    /// The name of the value's class.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// The number by which the value can be inspected; 0 if it cannot be inspected.
    #[serde(default)]
    pub reference: u64,
}

/// A part of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The slot's name, the index, or the subscripts.
    pub label: String,
    /// The key, if the value is a hash table.
    #[serde(default)]
    pub key: Option<LispValue>,
    /// The value, or the reason why the part has none.
    pub value: LispValue,
    /// True if the part has no value.
    pub missing: bool,
}

/// The answer to `inspect`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspected {
    /// The value.
    pub value: LispValue,
    /// The kind of the value: `list`, `vector`, `hash table`, ...
    pub kind: String,
    /// A remark, such as that the list is circular.
    pub note: Option<String>,
    /// The number of parts.
    pub total: usize,
    /// The stop whose stack contains the value, if any. Code on the value runs in the thread of
    /// that stop.
    #[serde(default, skip_serializing)]
    pub stop: Option<u64>,
    /// The parts on the page.
    pub parts: Vec<Part>,
}

/// The parts of a value that contain a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MatchingParts {
    /// The value.
    pub value: LispValue,
    /// The value's kind, as in [`Inspected`].
    pub kind: String,
    /// The number of the value's parts.
    pub total: usize,
    /// The number of parts that were searched.
    pub searched: usize,
    /// The number of searched parts that contain the text.
    pub matches: usize,
    /// A page of the parts that contain the text.
    pub parts: Vec<MatchingPart>,
}

/// A part that contains a text.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct MatchingPart {
    /// The part's number among the parts of the value.
    pub number: usize,
    /// The part.
    #[serde(flatten)]
    pub part: Part,
}

/// A value as a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The number of rows of the whole table.
    pub total: usize,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows on the page.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The index or the key.
    pub label: String,
    /// A cell for each column, `None` where the row has none.
    pub cells: Vec<Option<LispValue>>,
}

/// The differences between two values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The differences, in the order of the parts.
    pub differences: Vec<Difference>,
    /// True if the values were too large to be compared completely.
    pub partial: bool,
}

/// A part that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The labels of the parts that lead to this part, outermost first. Empty for the values
    /// themselves.
    pub path: Vec<String>,
    /// The part of the first value.
    pub one: LispValue,
    /// The part of the second value.
    pub other: LispValue,
}
