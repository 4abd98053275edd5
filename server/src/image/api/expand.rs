//! `macroexpand`: macros expanded in a throw-away copy of the image.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::model::expansion::{ExpandRequest, Expansion};

/// `macroexpand`, as the session sends it.
#[derive(Debug, Clone, Serialize)]
pub struct ExpandParams {
    /// The parameters of the expansion.
    #[serde(flatten)]
    pub request: ExpandRequest,
    /// The time limit, seconds, from the copy's start to its end.
    pub deadline: f64,
    /// True if the copy is confined.
    pub confine: bool,
    /// Bytes of private memory for the copy.
    #[serde(skip)]
    pub memory: u64,
}

/// `macroexpand-plain`: an expansion that needs no copy, because it runs none of the user's code
/// (`lisp/src/expand/plain.lisp`).
#[derive(Debug, Clone, Serialize)]
pub struct ExpandPlain(pub ExpandRequest);

impl Operation for ExpandPlain {
    const NAME: &'static str = "macroexpand-plain";
    type Answer = PlainAnswer;
}

/// The answer to `macroexpand-plain`.
#[derive(Debug, Clone, Deserialize)]
pub struct PlainAnswer {
    /// The expansion; `None`: a copy is needed.
    pub answer: Option<Expansion>,
}
