//! The types of approval: the request of an agent, the question to a person, and the verdict.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::bound_file::BoundFile;
use super::sources::Sources;
use crate::config::approval::Class;
use crate::image::api::reading::Reading;
use crate::session::ClientId;

/// The content of a question to a person, to which the approval is bound.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The operation in a few words: "Replace the function CL-PPCRE:SCAN".
    pub what: String,
    /// The file concerned.
    pub file: Option<PathBuf>,
    /// The complete code concerned.
    pub code: Option<String>,
    /// The files that would be loaded, with digests of their content.
    pub sources: Sources,
    /// The changes in these files since they were loaded.
    pub changes: Option<String>,
    /// The package and the syntax in which the code is read.
    pub reading: Option<Reading>,
    /// A second class that the same answer covers.
    pub also: Option<Class>,
}

/// An agent's request for an approval.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The class of the operation.
    pub class: Class,
    /// The tool's own name, regardless of the name in the call.
    pub tool: &'static str,
    /// The content shown to a person.
    pub subject: Subject,
    /// All arguments.
    pub arguments: Value,
    /// The agent has a connection of its own, so that "for this session" has an end.
    pub lasting: bool,
}

/// An approval request, and the state that its approval is bound to.
#[derive(Debug, Clone)]
pub(in crate::session) struct BoundRequest {
    pub(in crate::session) wish: ApprovalRequest,
    /// The digest of tool, class and arguments.
    pub(in crate::session) digest: String,
    /// The arguments as JSON, clipped, and their full length in characters.
    pub(in crate::session) written: (String, usize),
    pub(in crate::session) file: Option<BoundFile>,
    /// The reason for a refusal regardless of any answer.
    pub(in crate::session) impossible: Option<String>,
}

/// The permission for exactly the approved operation. See [`Session::recheck`](crate::session::Session::recheck).
#[derive(Debug, Clone)]
pub struct Grant {
    pub(super) bound: Arc<BoundRequest>,
    /// True if a person decided, now or for the session; false for a rule.
    pub(super) decided: bool,
}

impl Grant {
    /// Returns the permitted operation in a few words, as a person was shown it.
    pub fn what(&self) -> &str {
        &self.bound.wish.subject.what
    }

    /// Returns true if a person decided, now or for the session, and not a rule.
    pub fn is_decided(&self) -> bool {
        self.decided
    }
}

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

/// A person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Permission for this call.
    Allow,
    /// Permission for this class and tool until the agent's connection ends.
    AllowSession,
    /// Refusal.
    Deny,
}

impl Decision {
    /// Parses a decision: `allow`, `allow-session`, `deny`.
    pub fn of(name: &str) -> Option<Decision> {
        match name {
            "allow" => Some(Decision::Allow),
            "allow-session" => Some(Decision::AllowSession),
            "deny" => Some(Decision::Deny),
            _ => None,
        }
    }
}

/// The outcome of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A decision.
    Decided(Decision),
    /// The question was dismissed without a decision.
    Dismissed,
    /// The client cannot ask.
    Cannot,
    /// No answer in time.
    Late,
}

/// A question to the person behind an agent's client. Dropped without an answer (the agent
/// cancelled, or went away), the question is withdrawn.
#[derive(Debug)]
pub struct Question {
    /// The agent's connection.
    pub(super) client: ClientId,
    pub(super) bound: Option<Box<BoundRequest>>,
    /// The text to show.
    pub message: String,
    /// The time limit for the answer.
    pub deadline: Duration,
    withdraw: Option<Withdraw>,
}

/// Withdraws a question, given its request.
pub(super) struct Withdraw(pub(super) Box<dyn FnOnce(Box<BoundRequest>) + Send + Sync>);

impl std::fmt::Debug for Withdraw {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Withdraw")
    }
}

impl Question {
    pub(super) fn new(
        client: ClientId,
        bound: BoundRequest,
        message: String,
        deadline: Duration,
        withdraw: Withdraw,
    ) -> Question {
        Question { client, bound: Some(Box::new(bound)), message, deadline, withdraw: Some(withdraw) }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let (Some(bound), Some(withdraw)) = (self.bound.take(), self.withdraw.take()) {
            (withdraw.0)(bound);
        }
    }
}

/// A question as sent to an editor.
#[derive(Debug, Clone)]
pub struct ApprovalPrompt {
    /// The question's number.
    pub id: u64,
    /// The requesting client's name.
    pub client: String,
    /// The tool.
    pub tool: &'static str,
    /// The class.
    pub class: Class,
    /// The operation in a few words.
    pub what: String,
    /// The file, links resolved.
    pub file: Option<PathBuf>,
    /// The complete code.
    pub code: Option<String>,
    /// All arguments.
    pub arguments: Value,
    /// The question in words, shortened for a message box.
    pub message: String,
    /// The time limit for an answer.
    pub deadline: Duration,
}

/// A retried call that carries an answer (MCP 2026-07-28).
#[derive(Debug, Clone)]
pub struct Retry {
    /// The state returned by [`Session::await_retry`](crate::session::Session::await_retry).
    pub state: String,
    /// The answer of the client's person.
    pub answer: Answer,
}

/// A question that waits for a retried call.
#[derive(Debug)]
pub(in crate::session) struct PendingApproval {
    pub(in crate::session) client: ClientId,
    pub(in crate::session) bound: Box<BoundRequest>,
    pub(in crate::session) until: Instant,
}
