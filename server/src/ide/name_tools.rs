//! Operations on a name that run code and print text: `describe`, `disassemble`, `trace`,
//! `untrace`.

use super::context::Backend;
use crate::image::api::name_operations::{Traced, TracedCalls};
use crate::model::evaluation::{EvalOutcome, EvalStatus};
use crate::model::image::ImageError;

/// An operation on a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameOperation {
    /// Prints the description of the named object.
    Describe,
    /// Prints the machine code of a function.
    Disassemble,
    /// Reports the calls of a function from now on.
    Trace,
    /// Ends the tracing of one function, or of all functions.
    Untrace,
}

impl NameOperation {
    /// Returns the operation's name in requests to the image and in the log.
    pub fn name(self) -> &'static str {
        match self {
            NameOperation::Describe => "describe",
            NameOperation::Disassemble => "disassemble",
            NameOperation::Trace => "trace",
            NameOperation::Untrace => "untrace",
        }
    }
}

/// Returns up to `count` recorded calls of traced functions with numbers greater than `after`. If
/// `clear` is true, all recorded calls are deleted afterwards.
///
/// # Errors
/// See [`Backend::query`].
pub async fn traced_calls<B: Backend>(backend: &B, after: u64, count: u64, clear: bool) -> Result<Traced, ImageError> {
    backend.query(TracedCalls { after, count, clear }).await
}

/// The printed text of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Printed {
    /// The text.
    pub text: String,
    /// The reason for the failure, if the operation failed.
    pub error: Option<String>,
}

impl From<EvalOutcome> for Printed {
    fn from(outcome: EvalOutcome) -> Printed {
        let mut text = outcome.stdout.text;
        let stderr = outcome.stderr.text;
        if !text.is_empty() && !text.ends_with('\n') && !stderr.is_empty() {
            text.push('\n');
        }
        text += &stderr;
        let why = match (outcome.error, outcome.status) {
            (_, EvalStatus::Ok) => return Printed { text, error: None },
            (Some(error), _) => format!("{}: {}", error.kind, error.message),
            (None, EvalStatus::Timeout) => "It took too long and was ended.".into(),
            (None, EvalStatus::Lost) => "The image ended meanwhile.".into(),
            (None, EvalStatus::Refused) => "It was refused.".into(),
            (None, EvalStatus::Stopped) => "It waits at a breakpoint.".into(),
            (None, EvalStatus::Interrupted) => "It was interrupted.".into(),
            (None, EvalStatus::Error) => "It failed.".into(),
        };
        Printed { text, error: Some(why) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_output_and_the_true_end_are_reported() {
        let printed = |status| {
            let mut outcome = EvalOutcome::empty(status, None);
            (outcome.stdout.text, outcome.stderr.text) = ("out".into(), "err\n".into());
            Printed::from(outcome)
        };
        assert_eq!(printed(EvalStatus::Ok), Printed { text: "out\nerr\n".into(), error: None });
        assert_eq!(printed(EvalStatus::Lost).error.as_deref(), Some("The image ended meanwhile."));
    }
}
