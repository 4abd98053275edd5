//! The trial of a candidate: definitions are evaluated in a copy of the image, followed by code
//! that uses them.

use serde::{Deserialize, Serialize};

use super::evaluation::EvalOutcome;

/// A definition to evaluate in the copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TriedForm {
    /// The text of one or more forms.
    pub code: String,
    /// The package in which the code is read.
    pub package: String,
    /// The names of the functions that the code defines. Their calls are counted.
    pub functions: Vec<String>,
}

/// The number of calls of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// The name as in [`TriedForm::functions`].
    pub name: String,
    /// The number of calls by the code.
    pub calls: u64,
}

/// The coverage of a definition: the forms that ran. Only lists count as forms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The name as written.
    pub name: String,
    /// The number of forms.
    pub forms: usize,
    /// The number of forms that ran.
    pub ran: usize,
    /// The outermost forms that did not run, up to a maximum number.
    pub missed: Vec<Missed>,
}

/// A form that did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// The line in the definition's text, 1-based.
    pub line: usize,
    /// The column, 1-based, in UTF-16 code units.
    pub column: usize,
    /// The beginning of the form.
    pub text: String,
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Trial {
    /// The outcomes of the definitions, up to the first failure.
    pub forms: Vec<EvalOutcome>,
    /// The outcome of the code. `None` if a definition failed, or if there was no code.
    #[serde(default)]
    pub outcome: Option<EvalOutcome>,
    /// The numbers of calls of the functions that were defined.
    #[serde(default)]
    pub calls: Vec<Called>,
    /// The coverage of the definitions by the code. Empty if there was no code.
    #[serde(default)]
    pub coverage: Vec<Coverage>,
    /// The message about an operation that the confinement refused.
    #[serde(default)]
    pub refused: Option<String>,
}
