//! The operation `macroexpand`, which expands macros in a temporary copy of the image, and
//! operations like it.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::model::expansion::{ExpandRequest, Expansion};

/// The operation `macroexpand`, as the session sends it.
#[derive(Debug, Clone, Serialize)]
pub struct ExpandParams {
    /// The parameters of the expansion.
    #[serde(flatten)]
    pub request: ExpandRequest,
    /// The time limit in seconds, from the copy's start to its end.
    pub deadline: f64,
    /// True if the copy is confined.
    pub confine: bool,
    /// The limit of the copy's private memory, in bytes.
    #[serde(skip)]
    pub memory: u64,
}

/// The operation `macroexpand-plain`, an expansion that needs no copy, because it runs none of the
/// user's code (`lisp/src/expand/plain.lisp`).
#[derive(Debug, Clone, Serialize)]
pub struct ExpandPlain(pub ExpandRequest);

impl Operation for ExpandPlain {
    const NAME: &'static str = "macroexpand-plain";
    type Answer = PlainAnswer;
}

/// The answer to `macroexpand-plain`.
#[derive(Debug, Clone, Deserialize)]
pub struct PlainAnswer {
    /// The expansion; `None` if a copy is needed.
    pub answer: Option<Expansion>,
}

/// The operation `compare-expansions`, which tells whether texts of a top-level form mean the same
/// except for the names of local bindings (`lisp/src/expand/compare.lisp`). The operation runs in a
/// copy, because it runs the user's macros.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CompareExpansions {
    /// The session whose settings apply.
    pub session: String,
    /// The form before the change.
    pub code: String,
    /// The package in which the forms are read.
    pub package: Option<String>,
    /// The name that is replaced, as written.
    pub old: String,
    /// The name that takes its place.
    pub new: String,
    /// The texts of the form after the change that are compared with `code`.
    pub variants: Vec<String>,
    /// The number of seconds after which the copy leaves the code.
    pub timeout: f64,
}

impl Operation for CompareExpansions {
    const NAME: &'static str = "compare-expansions";
    type Answer = Compared;
}

/// The answer to `compare-expansions`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Compared {
    /// The reason why `code` could not be expanded.
    #[serde(default)]
    pub failure: Option<String>,
    /// The comparison of each variant.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// The reason why nothing was compared, if the copy was ended.
    #[serde(default)]
    pub error: Option<ExpandFailure>,
}

impl Compared {
    /// Returns the reason why there is no comparison.
    pub fn why_not(&self) -> Option<&str> {
        self.error.as_ref().map(|error| error.message.as_str()).or(self.failure.as_deref())
    }
}

/// The error of a copy that was ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ExpandFailure {
    /// The message for a person.
    pub message: String,
}

/// The comparison of one variant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Variant {
    /// True if only local names differ.
    pub same: bool,
    /// The reason why more differs.
    #[serde(default)]
    pub why: Option<String>,
    /// True if constants differ, too, but only in the replaced name.
    #[serde(default)]
    pub data: bool,
}
