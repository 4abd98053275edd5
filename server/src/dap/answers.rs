//! The answers to requests: their type, and the messages of failed requests.

use serde_json::Value;

use crate::model::action_outcome::ActionOutcome;
use crate::model::image::ImageError;

/// The maximum size of a page that the image returns.
pub(super) const MAX_PAGE: usize = 1000;

/// The body of a response, or the message of a failed request.
pub(super) type Answer = Result<Value, String>;

/// Returns the message of a request that the image did not answer.
#[allow(clippy::needless_pass_by_value)] // for `map_err`
pub(super) fn error_message(error: ImageError) -> String {
    error.to_string()
}

/// Returns the message of work at a stop that did not succeed.
pub(super) fn trouble(done: &ActionOutcome) -> String {
    match &done.error {
        Some(error) => format!("{}: {}", error.kind, error.message),
        None => done.trouble("stop"),
    }
}
