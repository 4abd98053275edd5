//! Macro expansion: the request, and the expansion or the reason why there is none.

use serde::{Deserialize, Serialize};

use crate::text::Span;
use crate::text::position::PositionEncoding;

/// The extent of the expansion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExpandExtent {
    /// The form's own macro, once.
    #[default]
    One,
    /// Every macro in the form.
    Full,
    /// The form's compiler macro, or its format control, once.
    Compiler,
    /// Nothing: only the macro calls in the first form are found.
    Calls,
}

/// The parameters of an expansion and of its display.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ExpandRequest {
    /// The form, or the top-level form that contains it.
    pub text: String,
    /// The package in which the text is read and for which the expansion is printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The extent of the expansion.
    pub how: ExpandExtent,
    /// A position in `text`, in characters from 0. The innermost form there that is evaluated is
    /// expanded, in its lexical environment. `None`: the first form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<usize>,
    /// Two positions in `text`. If the form at `offset` is not a macro call, the innermost macro
    /// call around it between these positions is expanded, unless that is a definition. Uninterned
    /// symbols of the expansion get names that differ from those of the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Span>,
    /// True to return the whole first form, with the expansion in its place.
    pub whole: bool,
    /// Positions in the output: line and column, 0-based. The form at each is expanded once more.
    /// Each is a position in the text that resulted from the step before it.
    pub steps: Vec<[u32; 2]>,
    /// The unit in which the columns of `steps` are counted.
    pub unit: PositionEncoding,
    /// The column, 0-based, of the text's first character, if the expansion is to replace the form.
    /// The lines are indented for that place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    /// True if the text was printed as an expansion. Uninterned symbols with the same name are then
    /// one symbol, and `#<...>` may be read.
    pub printed: bool,
    /// True to name uninterned symbols so that the expansion can be written into a file.
    pub writable: bool,
    /// The time limit in seconds; `None`: the configured default.
    #[serde(skip)]
    pub timeout: Option<f64>,
    /// True to confine the copy whatever the settings for checks say.
    #[serde(skip)]
    pub confined: bool,
}

impl ExpandRequest {
    /// Returns true if the request may be answered without a copy, because only the expansion of
    /// the first form is requested.
    pub(crate) fn is_plain(&self) -> bool {
        self.how != ExpandExtent::Compiler
            && self.offset.is_none()
            && self.column.is_none()
            && self.steps.is_empty()
            && !(self.printed || self.writable)
    }
}

/// The answer to `macroexpand`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ExpandAnswer {
    /// There is no expansion.
    Failed {
        /// The reason.
        error: ExpandError,
    },
    /// The form was expanded.
    Done(Expansion),
}

/// The reason why a form has no expansion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpandError {
    /// The stage at which the expansion failed.
    pub stage: Stage,
    /// The condition's type as seen from CL-USER, or a word of Consort.
    #[serde(rename = "type")]
    pub kind: String,
    /// The condition's text, or a message of Consort.
    pub message: String,
}

/// The stage at which an expansion failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The text cannot be read.
    Read,
    /// The text names a package that does not exist.
    Package,
    /// There is no form at the requested position.
    Place,
    /// A macro failed, or did not end.
    Expand,
    /// The operating system cannot confine a macro's side effects.
    Confine,
}

/// A form and its macro expansion.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Expansion {
    /// The form on one line, upper-case, abbreviated.
    pub form: String,
    /// The expansion, pretty-printed in lower case, with symbols as the package sees them.
    pub expansion: String,
    /// The number of characters left out of the expansion.
    pub omitted: usize,
    /// True if a macro was expanded.
    pub expanded: bool,
    /// True if the expansion can be written to a file as it is and read again. Determined when
    /// requested.
    pub writable: bool,
    /// The span of the form in the text.
    pub span: Span,
    /// The spans of the macro calls in the first form, when requested.
    #[serde(default)]
    pub calls: Vec<Span>,
    /// True if more text follows the first form.
    pub more: bool,
}
