//! The verdict on an approval request, and the question to the person behind an agent's own client,
//! which is used if no editor can ask.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use super::messages;
use super::request::{ApprovalRequest, Grant};
use crate::fault::{self, Call};

/// The verdict on an approval request.
#[derive(Debug)]
pub enum Verdict {
    /// The operation is permitted.
    Allowed(Grant),
    /// The reason of the refusal, and how a person can permit the operation.
    Refused(String),
    /// A person has to be asked, and no editor is connected to do so.
    ThroughAgent(Question),
}

/// A question to the person behind an agent's client. It is withdrawn if it is dropped without an
/// answer, because the agent cancelled or went away.
pub struct Question {
    /// The text to show.
    pub message: String,
    /// The time limit for the answer.
    pub deadline: Duration,
    /// The end of the time limit.
    pub(super) until: Instant,
    request: Option<Box<ApprovalRequest>>,
    withdraw: Box<dyn Fn(Box<ApprovalRequest>) + Send + Sync>,
}

impl Question {
    /// Creates the question about a request. `withdraw` is called if the question is dropped
    /// without an answer.
    pub(super) fn new(
        request: Box<ApprovalRequest>,
        deadline: Duration,
        withdraw: Box<dyn Fn(Box<ApprovalRequest>) + Send + Sync>,
    ) -> Question {
        let message = messages::message(&request, deadline);
        Question { message, deadline, until: Instant::now() + deadline, request: Some(request), withdraw }
    }

    /// Returns the request, which is still to be answered, or `None` after [`Question::take`].
    pub(in crate::session) fn request(&self) -> Option<&ApprovalRequest> {
        self.request.as_deref()
    }

    /// Takes the request, so that the question is no longer withdrawn when dropped.
    pub(super) fn take(&mut self) -> Option<Box<ApprovalRequest>> {
        self.request.take()
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let Some(request) = self.request.take() {
            (self.withdraw)(request);
        }
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Question").field("request", &self.request).finish_non_exhaustive()
    }
}

/// Returns 128 random bits, in hex.
pub(super) fn random() -> io::Result<String> {
    let mut bytes = [0; 16];
    fault::point(Call::Open)?;
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
