//! `macroexpand`: macros expanded in a throw-away copy of the image.

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::text::Span;
use crate::text::position::PositionEncoding;

/// How much is expanded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// The form's own macro, once.
    #[default]
    One,
    /// Every macro in it.
    Full,
}

/// What is to be expanded, and how it is to be shown.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ExpandRequest {
    /// The form, or the top-level form that it is in.
    pub text: String,
    /// The package that the text is read in and the expansion is printed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// How much.
    pub how: How,
    /// A place of `text`, 0-based characters: the innermost form there that is evaluated is expanded, in its lexical environment. `None`: the first form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
    /// Show the whole first form, with the expansion in its place.
    pub whole: bool,
    /// Places of what was shown, line and column, 0-based, each of the text that the one before it led to: the form there is expanded once more.
    pub steps: Vec<[u32; 2]>,
    /// What the columns of `steps` count.
    pub unit: PositionEncoding,
    /// The column, 0-based, of the text's first character, when the expansion is to be written where the form is: its lines are indented for that place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// The text is one that was printed as an expansion: symbols of no package and one name are one symbol, `#<...>` may be read.
    pub printed: bool,
    /// Name symbols of no package so that the expansion can be written into a file.
    pub writable: bool,
    /// Seconds; `None`: the configured default.
    #[serde(skip)]
    pub timeout: Option<f64>,
}

/// `macroexpand`, as the session states it.
#[derive(Debug, Clone, Serialize)]
pub struct ExpandParams {
    /// What.
    #[serde(flatten)]
    pub request: ExpandRequest,
    /// Seconds, from the copy's start to its end.
    pub deadline: f64,
    /// Whether the copy is confined.
    pub confine: bool,
    /// Bytes of private memory for the copy.
    #[serde(skip)]
    pub memory: u64,
}

impl ExpandRequest {
    /// It may be answered without a copy: nothing is asked for but the expansion of the first form.
    pub(crate) fn is_plain(&self) -> bool {
        self.offset.is_none() && self.column.is_none() && self.steps.is_empty() && !(self.printed || self.writable)
    }
}

/// `macroexpand-plain`: an expansion that takes no copy, because it runs no code of the user's (`lisp/src/expand/plain.lisp`).
#[derive(Debug, Clone, Serialize)]
pub struct ExpandPlain(pub ExpandRequest);

impl Operation for ExpandPlain {
    const NAME: &'static str = "macroexpand-plain";
    type Answer = PlainAnswer;
}

/// The answer to `macroexpand-plain`.
#[derive(Debug, Clone, Deserialize)]
pub struct PlainAnswer {
    /// `None`: it takes a copy.
    pub answer: Option<Expansion>,
}

/// The answer to `macroexpand`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ExpandAnswer {
    /// There is no expansion.
    Failed {
        /// Why.
        error: ExpandError,
    },
    /// There is.
    Done(Expansion),
}

/// Why a form has no expansion.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ExpandError {
    /// Where it failed.
    pub stage: Stage,
    /// The condition's type as seen from CL-USER, or a word of ours.
    #[serde(rename = "type")]
    pub kind: String,
    /// The condition's text, or ours.
    pub message: String,
}

/// Where an expansion failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The text cannot be read.
    Read,
    /// It names a package that does not exist.
    Package,
    /// There is no form at the place that was asked for.
    Place,
    /// A macro failed, or never ended.
    Expand,
    /// This system cannot confine what a macro does.
    Confine,
}

/// A form and what its macros make of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Expansion {
    /// The form on one line, upper-case, abbreviated.
    pub form: String,
    /// Its expansion, pretty and lower-case, symbols as the package sees them.
    pub expansion: String,
    /// Characters left out of it.
    pub omitted: usize,
    /// Some macro was expanded.
    pub expanded: bool,
    /// When it was asked for: the expansion can be written down as it is and read again.
    pub writable: bool,
    /// Where the form is in the text.
    pub span: Span,
    /// The text goes on behind the first form.
    pub more: bool,
}
