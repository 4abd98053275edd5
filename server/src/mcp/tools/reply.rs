//! The answer of a tool, and the failure of a call.

use crate::ide::compile_form::Refusal;
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageError;
use crate::session::requests::TooLong;

/// A tool's answer, with the same facts as text and as data.
#[derive(Debug)]
pub(crate) struct Reply<T> {
    pub(crate) text: String,
    pub(crate) facts: T,
    /// True if the tool's work failed.
    pub(crate) failed: bool,
    /// The complete text, if parts of `text` were removed. An agent can ask for it.
    pub(crate) full: Option<String>,
}

impl<T> Reply<T> {
    /// Creates an answer whose text is complete.
    pub(crate) fn new(text: String, facts: T, failed: bool) -> Reply<T> {
        Reply { text, facts, failed, full: None }
    }
}

impl<T: FromFailure> From<Failure> for Reply<T> {
    fn from(failure: Failure) -> Self {
        Reply { text: failure.message.clone(), facts: T::from_failure(failure), failed: true, full: None }
    }
}

/// The reason why a call did no work, or lost the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The kind, on which programs may rely: `bad-arguments`, `package-not-found`, `image-lost`,
    /// `image-unavailable`, `busy`, ...
    pub(crate) kind: ErrorKind,
    /// The message for a user or an agent, including the next step.
    pub(crate) message: String,
}

impl From<TooLong> for Failure {
    fn from(too_long: TooLong) -> Self {
        Failure { kind: ErrorKind::REFUSED, message: too_long.to_string() }
    }
}

/// An output type that can represent a failure.
pub(crate) trait FromFailure {
    fn from_failure(failure: Failure) -> Self;
}

impl Failure {
    /// Converts the error of a call. `package` is the package in the call.
    pub(crate) fn of(error: ImageError, package: Option<&str>) -> Failure {
        let message = match package {
            // The contract specifies the text.
            Some(package) if error.kind() == ErrorKind::PACKAGE_NOT_FOUND => format!("Package {package} not found"),
            _ => error.to_string(),
        };
        Failure { kind: error.kind(), message }
    }
}

/// Converts a failure for the tools whose answers no contract specifies.
impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal { kind: failure.kind.into(), message: failure.message }
    }
}
