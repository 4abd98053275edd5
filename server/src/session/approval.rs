//! Approval: what an agent may do only when a person lets it (contracts: Approval; docs/security.md).
//!
//! A [`ApprovalRequest`] goes to the actor, which rules on it (`actor/approving.rs`): by a rule, by what a person allowed for the session, by asking in the
//! editors, or, when there is no editor, by having the door ask through the agent's own client ([`Verdict::ThroughAgent`]). Every ruling is
//! in the audit log before it is known.

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

/// What a person who is asked is shown, and what the approval is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// What is to be done, in a few words: "Replace the function CL-PPCRE:SCAN".
    pub what: String,
    /// The file concerned.
    pub file: Option<PathBuf>,
    /// The code concerned, whole.
    pub code: Option<String>,
    /// The files that would be loaded, and what is in them.
    pub sources: Sources,
    /// What changed in them since they were loaded.
    pub changes: Option<String>,
    /// A second class that the one answer is for.
    pub also: Option<Class>,
}

/// What an agent wants to do.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// Its class.
    pub class: Class,
    /// The tool, by its own name, whatever name it was called by.
    pub tool: &'static str,
    /// What a person is shown.
    pub subject: Subject,
    /// All arguments.
    pub arguments: Value,
    /// The agent's connection is its own, so that "for this session" has an end.
    pub lasting: bool,
}

/// A wish, and what an approval of it is bound to.
#[derive(Debug, Clone)]
pub(super) struct BoundRequest {
    pub(super) wish: ApprovalRequest,
    /// Of tool, class and arguments.
    pub(super) digest: String,
    /// The arguments as JSON, clipped, and how many characters there are.
    pub(super) written: (String, usize),
    pub(super) file: Option<BoundFile>,
    /// It is refused whatever anybody says.
    pub(super) impossible: Option<String>,
}

/// The right to do exactly what was allowed. See [`Session::recheck`].
#[derive(Debug, Clone)]
pub struct Grant {
    bound: Arc<BoundRequest>,
}

/// What became of a wish.
#[derive(Debug)]
pub enum Verdict {
    /// It may be done.
    Allowed(Grant),
    /// Why not, and how a person can allow it.
    Refused(String),
    /// A person has to be asked, and no editor is there to do it.
    ThroughAgent(Question),
}

/// What a person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decision {
    /// Once.
    Allow,
    /// This class and tool, until the agent's connection ends.
    AllowSession,
    /// No.
    Deny,
}

impl Decision {
    /// The decision of that name: `allow`, `allow-session`, `deny`.
    pub fn of(name: &str) -> Option<Decision> {
        match name {
            "allow" => Some(Decision::Allow),
            "allow-session" => Some(Decision::AllowSession),
            "deny" => Some(Decision::Deny),
            _ => None,
        }
    }
}

/// How asking somebody ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// With a decision.
    Decided(Decision),
    /// Without one: the question was put away.
    Dismissed,
    /// They cannot be asked.
    Cannot,
    /// Nobody said anything in time.
    Late,
}

/// A question to the person behind an agent's client. Dropped without an answer (the agent cancelled, or went away), it is withdrawn.
#[derive(Debug)]
pub struct Question {
    /// The agent's connection and name: both may be gone from the session when the question is withdrawn.
    client: (ClientId, String),
    bound: Option<Box<BoundRequest>>,
    /// What to show.
    pub message: String,
    /// How long to wait.
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

/// A question as an editor is asked it.
#[derive(Debug, Clone)]
pub struct ApprovalPrompt {
    /// Its number.
    pub id: u64,
    /// Who asks.
    pub client: String,
    /// The tool.
    pub tool: &'static str,
    /// The class.
    pub class: Class,
    /// What is to be done.
    pub what: String,
    /// The file, links resolved.
    pub file: Option<PathBuf>,
    /// The code, whole.
    pub code: Option<String>,
    /// All arguments.
    pub arguments: Value,
    /// All of it in words, shortened for a message box.
    pub message: String,
    /// Until when an answer counts.
    pub deadline: Duration,
}

/// A retried call that brings an answer (MCP 2026-07-28).
#[derive(Debug, Clone)]
pub struct Retry {
    /// What [`Session::park`] gave.
    pub state: String,
    /// What the client's person said.
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
    /// Whether `client` may do what it wants with exactly these arguments; a person is asked if need be. Dropping the future withdraws it.
    /// `retry`: the call was answered with a question before and brings what was said.
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

    /// Whether a person would be asked before `client` may use a tool of this class, as far as the rules tell.
    pub fn would_ask(&self, client: ClientId, class: Class, tool: &'static str) -> impl Future<Output = bool> + use<> {
        let answer = self.ask(|reply| Event::WouldAsk { client, class, tool, reply });
        async { answer.await.unwrap_or(false) }
    }

    /// What the person behind an agent's client said to a question.
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

    /// Keep a question until the call is made again with its answer; the state to send with it, which is good once and for that call alone.
    ///
    /// # Errors
    /// That the system has no random numbers, in which case nothing can be asked.
    pub fn await_retry(&self, mut question: Question) -> Result<String, String> {
        let state =
            binding::random().map_err(|error| format!("Refused: no random bytes from /dev/urandom: {error}"))?;
        if let Some(bound) = question.bound.take() {
            let pending = PendingApproval { client: question.client.0, bound, until: Instant::now() + question.deadline };
            self.send(Event::AwaitRetry { state: state.clone(), pending });
        }
        Ok(state)
    }

    /// The file that was allowed, as it may be used now: a tool opens it by this path, and asks again right before it writes. Done once before
    /// every call of a tool that names a file.
    ///
    /// # Errors
    /// That it is no longer the file that was allowed: it was renamed, replaced, made a link, or changed. It is in the audit log then.
    pub fn recheck(&self, client: ClientId, permit: &Grant) -> Result<Option<PathBuf>, String> {
        let path = permit.bound.file.as_ref().map(BoundFile::recheck).transpose();
        if let Err(why) = &path {
            self.send(Event::Broken { client, bound: permit.bound.clone(), why: why.clone() });
        }
        path
    }

    /// The content of the files that was allowed, if it is what is there. To be asked right before they are loaded.
    ///
    /// # Errors
    /// Which file was changed. It is in the audit log then.
    pub async fn recheck_sources(&self, client: ClientId, permit: &Grant) -> Result<Sources, String> {
        let sources = permit.bound.wish.subject.sources.clone();
        let checked = tokio::task::spawn_blocking(move || sources.recheck().map(|()| sources)).await;
        let checked = checked.unwrap_or_else(|error| Err(format!("the files could not be read: {error}")));
        if let Err(why) = &checked {
            self.send(Event::Broken { client, bound: permit.bound.clone(), why: why.clone() });
        }
        checked
    }

    /// Have it in the audit log that a wish was refused, for its file, before anybody was asked.
    pub fn refused(&self, client: ClientId, wish: ApprovalRequest, why: &str) {
        let bound = Arc::new(BoundRequest::new(wish, self.workspace()));
        self.send(Event::Broken { client, bound, why: why.to_owned() });
    }

    /// This editor shows what it is told, so that it can be asked.
    pub fn can_be_asked(&self, editor: ClientId) {
        self.send(Event::CanBeAsked { editor });
    }

    /// What an editor answered to [`ApprovalPrompt`].
    pub fn answer(&self, editor: ClientId, question: u64, answer: Answer) {
        self.send(Event::Answered { editor, question, answer });
    }
}
