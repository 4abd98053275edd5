//! Operations on a name that run code and print text: `describe`, `disassemble`, `trace`,
//! `untrace`.

pub use crate::image::api::Operation;
pub use crate::image::api::tools::{Describe, Disassemble, Named, Trace, TracedCalls, Untrace};
use crate::model::evaluation::{EvalOutcome, EvalStatus};

/// The printed text of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The text.
    pub text: String,
    /// The reason of the failure, if the operation failed.
    pub error: Option<String>,
}

impl From<EvalOutcome> for Printed {
    fn from(outcome: EvalOutcome) -> Printed {
        let text = outcome.stdout.text;
        if outcome.status == EvalStatus::Ok {
            return Printed { text, error: None };
        }
        let why = outcome
            .error
            .map_or_else(|| "It was interrupted.".to_owned(), |error| format!("{}: {}", error.kind, error.message));
        Printed { text, error: Some(why) }
    }
}
