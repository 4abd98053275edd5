//! Approval: operations that an agent may do only with a person's permission (contracts:
//! Approval; docs/security.md).
//!
//! An [`ApprovalRequest`] is decided by the actor (`actor/approving.rs`): by a rule, by an
//! earlier permission for the session, by asking in the editors, or, without an editor, by asking
//! through the agent's own client ([`Verdict::ThroughAgent`]). Every verdict is written to the
//! audit log before it is returned.

mod audit;
mod binding;
mod messages;
mod sources;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc;

pub use crate::config::approval::{Class, Setting};

use super::event::Event;
use super::{ClientId, Session};
pub use crate::shown::safe;
pub(super) use audit::{Audit, Entry, timestamp};
pub use binding::BoundFile;
pub(super) use messages::{denied, message, nobody, said_no, too_late, unwritten, whole};
pub use sources::{Sources, digest_of};

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
pub(super) struct BoundRequest {
    pub(super) wish: ApprovalRequest,
    /// The digest of tool, class and arguments.
    pub(super) digest: String,
    /// The arguments as JSON, clipped, and their full length in characters.
    pub(super) written: (String, usize),
    pub(super) file: Option<BoundFile>,
    /// The reason for a refusal regardless of any answer.
    pub(super) impossible: Option<String>,
}

/// The permission for exactly the approved operation. See [`Session::recheck`].
#[derive(Debug, Clone)]
pub struct Grant {
    bound: Arc<BoundRequest>,
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
    /// The agent's connection and name, kept because both may be gone from the session when the
    /// question is withdrawn.
    client: (ClientId, String),
    bound: Option<Box<BoundRequest>>,
    /// The text to show.
    pub message: String,
    /// The time limit for the answer.
    pub deadline: Duration,
    events: mpsc::WeakUnboundedSender<Event>,
}

impl Question {
    pub(super) fn new(
        client: (ClientId, String),
        bound: BoundRequest,
        message: String,
        deadline: Duration,
        events: mpsc::WeakUnboundedSender<Event>,
    ) -> Question {
        Question { client, bound: Some(Box::new(bound)), message, deadline, events }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        if let (Some(bound), Some(events)) = (self.bound.take(), self.events.upgrade()) {
            // Fails only when the session has ended.
            let client = std::mem::take(&mut self.client.1);
            let _ = events.send(Event::Withdrawn { client: (self.client.0, client), bound });
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
    /// The state returned by [`Session::await_retry`].
    pub state: String,
    /// The answer of the client's person.
    pub answer: Answer,
}

/// A question that waits for a retried call.
#[derive(Debug)]
pub(super) struct PendingApproval {
    pub(super) client: ClientId,
    pub(super) bound: Box<BoundRequest>,
    pub(super) until: Instant,
}

impl Session {
    /// Decides whether `client` may do the operation with exactly these arguments; a person is
    /// asked if need be. Dropping the future withdraws the request. `retry`: the call was
    /// answered with a question before and carries the answer.
    pub fn permit(
        &self,
        client: ClientId,
        wish: ApprovalRequest,
        retry: Option<Retry>,
    ) -> impl Future<Output = Verdict> + Send + use<> {
        let bound = Box::new(BoundRequest::new(wish, self.workspace()));
        let answer = self.ask(|reply| Event::Grant { client, bound, retry, reply });
        async {
            answer.await.unwrap_or_else(|_| Verdict::Refused("Refused: the agent left, or Consort is ending.".into()))
        }
    }

    /// Returns true if a person would be asked before `client` may use a tool of this class, as
    /// far as the rules determine.
    pub fn would_ask(&self, client: ClientId, class: Class, tool: &'static str) -> impl Future<Output = bool> + use<> {
        let answer = self.ask(|reply| Event::WouldAsk { client, class, tool, reply });
        async { answer.await.unwrap_or(false) }
    }

    /// Handles the answer to a question from the person behind an agent's client.
    pub fn settle(&self, mut question: Question, answer: Answer) -> impl Future<Output = Verdict> + Send + use<> {
        let client = question.client.0;
        let bound = question.bound.take();
        let settled = bound.map(|bound| self.ask(|reply| Event::Settle { client, bound, answer, reply }));
        async {
            let ended = || Verdict::Refused("Refused: the agent left, or Consort is ending.".into());
            match settled {
                Some(settled) => settled.await.unwrap_or_else(|_| ended()),
                None => ended(),
            }
        }
    }

    /// Keeps a question until the call is retried with its answer. Returns the state to send with
    /// the question, valid once and for that call alone.
    ///
    /// # Errors
    ///
    /// The system has no random numbers, in which case nothing can be asked.
    pub fn await_retry(&self, mut question: Question) -> Result<String, String> {
        let state =
            binding::random().map_err(|error| format!("Refused: no random bytes from /dev/urandom: {error}"))?;
        if let Some(bound) = question.bound.take() {
            let pending =
                PendingApproval { client: question.client.0, bound, until: Instant::now() + question.deadline };
            self.send(Event::AwaitRetry { state: state.clone(), pending });
        }
        Ok(state)
    }

    /// Returns the approved file's path for use now. A tool opens the file by this path, and
    /// checks again right before a write. Called once before every call of a tool that names a
    /// file.
    ///
    /// # Errors
    ///
    /// The file is no longer the approved one: renamed, replaced, made a link, or changed. The
    /// failure is written to the audit log.
    pub fn recheck(&self, client: ClientId, permit: &Grant) -> Result<Option<PathBuf>, String> {
        let path = permit.bound.file.as_ref().map(BoundFile::recheck).transpose();
        if let Err(why) = &path {
            self.send(Event::Broken { client, bound: permit.bound.clone(), why: why.clone() });
        }
        path
    }

    /// Returns the approved content of the files, if unchanged. To be called right before the
    /// files are loaded.
    ///
    /// # Errors
    ///
    /// The name of the changed file. The failure is written to the audit log.
    pub async fn recheck_sources(&self, client: ClientId, permit: &Grant) -> Result<Sources, String> {
        let sources = permit.bound.wish.subject.sources.clone();
        let checked = tokio::task::spawn_blocking(move || sources.recheck().map(|()| sources)).await;
        let checked = checked.unwrap_or_else(|error| Err(format!("the files could not be read: {error}")));
        if let Err(why) = &checked {
            self.send(Event::Broken { client, bound: permit.bound.clone(), why: why.clone() });
        }
        checked
    }

    /// Records in the audit log that a request was refused because of its file, before a person
    /// was asked.
    pub fn refused(&self, client: ClientId, wish: ApprovalRequest, why: &str) {
        let bound = Arc::new(BoundRequest::new(wish, self.workspace()));
        self.send(Event::Broken { client, bound, why: why.to_owned() });
    }

    /// Records that an editor shows questions, so that it can be asked.
    pub fn can_be_asked(&self, editor: ClientId) {
        self.send(Event::CanBeAsked { editor });
    }

    /// Handles an editor's answer to [`ApprovalPrompt`].
    pub fn answer(&self, editor: ClientId, question: u64, answer: Answer) {
        self.send(Event::Answered { editor, question, answer });
    }
}
