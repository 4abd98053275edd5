//! Approval: operations that an agent may do only with a person's permission (contracts:
//! Approval; docs/security.md).
//!
//! An [`ApprovalRequest`] is decided by the actor (`actor/approving.rs`): by a rule, by an
//! earlier permission for the session, by asking in the editors, or, without an editor, by asking
//! through the agent's own client ([`Verdict::ThroughAgent`]). Every verdict is written to the
//! audit log before it is returned.

mod audit;
mod binding;
mod bound_file;
mod messages;
mod sources;
mod state;
pub(super) mod types;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

pub use crate::config::approval::{Class, Setting};

use super::event::Event;
use super::{ClientId, Frontend, Session};
use crate::ide::context::Backend as _;
use crate::image::api::reading::{Reading, SessionReading};
pub use crate::shown::safe;
pub(super) use audit::{Audit, Entry};
pub use bound_file::BoundFile;
pub(super) use messages::{denied, message, nobody, only_in_copy, said_no, too_late, unwritten, whole};
pub use sources::{Sources, digest_of};
pub(super) use state::{ApprovalState, Open};
use types::Withdraw;
pub use types::{Answer, ApprovalPrompt, ApprovalRequest, Decision, Grant, Question, Retry, Subject, Verdict};
pub(super) use types::{BoundRequest, PendingApproval};

/// Returns a question to the person behind an agent's client. The session is told when the question
/// is dropped without an answer; `client`: the agent's connection and name, which may both be gone
/// from the session by then.
pub(super) fn question(
    client: (ClientId, String),
    bound: BoundRequest,
    message: String,
    deadline: Duration,
    events: mpsc::WeakUnboundedSender<Event>,
) -> Question {
    let agent = client.0;
    let withdraw = Withdraw(Box::new(move |bound| {
        if let Some(events) = events.upgrade() {
            // Fails only when the session has ended.
            let _ = events.send(Event::Withdrawn { client, bound });
        }
    }));
    Question::new(agent, bound, message, deadline, withdraw)
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
        let client = question.client;
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
            let pending = PendingApproval { client: question.client, bound, until: Instant::now() + question.deadline };
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

    /// Returns the package and the syntax in which code would be read now: by a client's
    /// evaluation session, or by the image (`None`). `package`: the package that is given. `None`
    /// without an image.
    pub async fn reading(&self, client: Option<ClientId>, package: Option<&str>) -> Option<Reading> {
        let session = client.map(|client| Frontend::Mcp.session(client));
        let reading = self.query(SessionReading { session }).await.ok()?;
        Some(match package {
            Some(package) => Reading { package: package.to_owned(), ..reading },
            None => reading,
        })
    }

    /// Checks that code is still read as the person who approved it was shown. `client`, `package`:
    /// as for [`Session::reading`].
    ///
    /// # Errors
    ///
    /// The package or the syntax is another. The failure is written to the audit log.
    pub async fn recheck_reading(
        &self,
        client: ClientId,
        by: Option<ClientId>,
        package: Option<&str>,
        permit: &Grant,
    ) -> Result<(), String> {
        let Some(approved) = &permit.bound.wish.subject.reading else { return Ok(()) };
        if self.reading(by, package).await.as_ref() == Some(approved) {
            return Ok(());
        }
        let why = "the package or the readtable in which the code is read changed since it was allowed; nothing was done. Call again to have \
                   it decided anew";
        self.send(Event::Broken { client, bound: permit.bound.clone(), why: why.to_owned() });
        Err(why.to_owned())
    }

    /// Records in the audit log that a request was refused because of its file, before a person
    /// was asked.
    pub fn refused(&self, client: ClientId, wish: ApprovalRequest, why: &str) {
        let bound = Arc::new(BoundRequest::new(wish, self.workspace()));
        self.send(Event::Broken { client, bound, why: why.to_owned() });
    }

    /// Records the process of an editor: its program and id, for the people at other editors who
    /// are told who answered.
    pub fn is_process(&self, editor: ClientId, process: String) {
        self.send(Event::IsProcess { editor, process });
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
