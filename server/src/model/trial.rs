//! The trial of a candidate: definitions evaluated in a copy of the image, then code that uses
//! them.

use serde::{Deserialize, Serialize};

use super::evaluation::EvalOutcome;

/// A definition to evaluate in the copy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TriedForm {
    /// The text of one or more forms.
    pub code: String,
    /// The package in which it is read.
    pub package: String,
    /// The names of the functions that it defines, whose calls are counted.
    pub functions: Vec<String>,
}

/// The number of calls of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Called {
    /// The name as in [`TriedForm::functions`].
    pub name: String,
    /// The calls by the code.
    pub calls: u64,
}

/// The forms of a definition that ran. Forms that are no lists do not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// The name as it is written.
    pub name: String,
    /// The number of forms.
    pub forms: usize,
    /// The number of forms that ran.
    pub ran: usize,
    /// The outermost forms that did not run, the first few.
    pub missed: Vec<Missed>,
}

/// A form that did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missed {
    /// The line in the definition's text, from 1.
    pub line: usize,
    /// The column, from 1, in UTF-16 code units.
    pub column: usize,
    /// The beginning of the form.
    pub text: String,
}

/// The result of a trial.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Trial {
    /// The outcomes of the definitions, up to the first that failed.
    pub forms: Vec<EvalOutcome>,
    /// The outcome of the code; `None`: a definition failed, or there was no code.
    #[serde(default)]
    pub outcome: Option<EvalOutcome>,
    /// The calls of the functions that were defined.
    #[serde(default)]
    pub calls: Vec<Called>,
    /// The forms of the definitions that the code ran; none where there was no code.
    #[serde(default)]
    pub coverage: Vec<Coverage>,
    /// The message about something that the confinement refused.
    #[serde(default)]
    pub refused: Option<String>,
}
