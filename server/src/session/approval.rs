//! Approval: operations that an agent may do only with a person's permission (contracts:
//! Approval; docs/security.md).
//!
//! [`ApprovalState`] decides an [`ApprovalRequest`] by a configured setting, by an earlier
//! permission for the session, or by a person's answer. The question is shown in the editors or, if
//! no editor can show questions, through the agent's own client ([`Verdict::ThroughAgent`]). Every
//! verdict is written to the audit log before it is returned. The session's actor owns the state
//! and forwards the events.

mod audit;
mod editors;
mod messages;
pub(super) mod question;
pub(super) mod request;
mod state;

use std::path::PathBuf;

pub use crate::config::approval::{Class, Setting};

use super::event::Event;
use super::sources::Sources;
use super::{ClientId, Frontend, Session};
use crate::ide::context::Backend as _;
use crate::image::api::reading::{Reading, SessionReading};
pub use crate::shown::safe;
pub use messages::{complete_code, message};
pub use question::{Question, Verdict};
pub use request::{Answer, ApprovalRequest, Grant, Subject};
pub(super) use state::ApprovalState;

impl Session {
    /// Decides whether an agent may do the operation with exactly these arguments. Asks a person if
    /// the settings require it. Dropping the future withdraws the request. `retry` is the state
    /// from [`Session::await_retry`] and the person's answer; `None` if the call is not a retry
    /// after a question.
    pub fn permit(
        &self,
        request: ApprovalRequest,
        retry: Option<(String, Answer)>,
    ) -> impl Future<Output = Verdict> + Send + use<> {
        let request = Box::new(request);
        let verdict = self.ask(|reply| Event::RequestApproval { request, retry, reply });
        async { verdict.await.unwrap_or_else(|_| ended()) }
    }

    /// Returns true if a person would be asked before `client` may use this tool of this class:
    /// the setting of the class is `ask`, and no permission for the session covers the tool.
    pub fn would_ask(&self, client: ClientId, class: Class, tool: &'static str) -> impl Future<Output = bool> + use<> {
        let answer = self.ask(|reply| Event::WouldAsk { client, class, tool, reply });
        async { answer.await.unwrap_or(false) }
    }

    /// Returns the setting of a class that is in force for all agents. Returns [`Setting::Deny`] if
    /// the session is ending.
    pub fn setting(&self, class: Class) -> impl Future<Output = Setting> + Send + use<> {
        let answer = self.ask(|reply| Event::ApprovalSetting { class, reply });
        // A session that is ending allows nothing.
        async { answer.await.unwrap_or(Setting::Deny) }
    }

    /// Applies a person's answer to a question that was asked through the agent's client, and
    /// returns the verdict.
    pub fn settle(&self, mut question: Question, answer: Answer) -> impl Future<Output = Verdict> + Send + use<> {
        let settled = question.take().map(|request| self.ask(|reply| Event::ApplyAnswer { request, answer, reply }));
        async {
            match settled {
                Some(settled) => settled.await.unwrap_or_else(|_| ended()),
                None => ended(),
            }
        }
    }

    /// Keeps a question until the agent's client repeats the call with the answer. Returns the
    /// state to send with the question, which is valid once and for that call alone.
    ///
    /// # Errors
    ///
    /// The message says that `/dev/urandom` gave no random bytes. No question can then be asked.
    pub fn await_retry(&self, question: Question) -> Result<String, String> {
        let state =
            question::random().map_err(|error| format!("Refused: no random bytes from /dev/urandom: {error}"))?;
        self.send(Event::AwaitRetry { state: state.clone(), question });
        Ok(state)
    }

    /// Checks that the approved file is unchanged, and returns the path by which the tool opens it.
    /// Returns `None` if the request names no file. Called after the approval, and again by the
    /// tool that opens the file.
    ///
    /// # Errors
    ///
    /// The message says how the file differs from the approved one: the path leads elsewhere, or
    /// the file was replaced or changed. The failure is written to the audit log.
    pub async fn recheck(&self, grant: &Grant) -> Result<Option<PathBuf>, String> {
        let Some(file) = grant.request.file.clone() else { return Ok(None) };
        let path = tokio::task::spawn_blocking(move || file.recheck().map(Some)).await;
        let path = path.unwrap_or_else(|error| Err(format!("the file could not be read: {error}")));
        self.note_if_broken(grant, &path);
        path
    }

    fn note_if_broken<T>(&self, grant: &Grant, rechecked: &Result<T, String>) {
        if let Err(why) = rechecked {
            self.refused((*grant.request).clone(), why);
        }
    }

    /// Returns the approved files with their digests, if their content is unchanged. Must be called
    /// directly before the files are loaded.
    ///
    /// # Errors
    ///
    /// The message names the file that changed or cannot be read. The failure is written to the
    /// audit log.
    pub async fn recheck_sources(&self, grant: &Grant) -> Result<Sources, String> {
        let sources = grant.request.subject.sources.clone();
        let checked = tokio::task::spawn_blocking(move || sources.recheck().map(|()| sources)).await;
        let checked = checked.unwrap_or_else(|error| Err(format!("the files could not be read: {error}")));
        self.note_if_broken(grant, &checked);
        checked
    }

    /// Returns the package and the syntax (the differences from the standard readtable) in which
    /// code would be read now: in `client`'s evaluation session or, if `client` is `None`, with the
    /// image's own settings. The `package` that a call names, if any, replaces the current package.
    /// Returns `None` if the image does not answer.
    pub async fn reading(&self, client: Option<ClientId>, package: Option<&str>) -> Option<Reading> {
        let session = client.map(|client| Frontend::Mcp.session(client));
        let reading = self.query(SessionReading { session }).await.ok()?;
        Some(match package {
            Some(package) => Reading { package: package.to_owned(), ..reading },
            None => reading,
        })
    }

    /// Checks that the package and the syntax in which the code is read are still those that were
    /// shown to the person who approved it. Succeeds if the approval has none. `by` and `package`
    /// have the meaning of `client` and `package` in [`Session::reading`].
    ///
    /// # Errors
    ///
    /// The message says that the package or the readtable has changed, even if instead the image
    /// did not answer. The failure is written to the audit log.
    pub async fn recheck_reading(
        &self,
        by: Option<ClientId>,
        package: Option<&str>,
        grant: &Grant,
    ) -> Result<(), String> {
        let Some(approved) = &grant.request.subject.reading else { return Ok(()) };
        if self.reading(by, package).await.as_ref() == Some(approved) {
            return Ok(());
        }
        let why = "the package or the readtable in which the code is read changed since it was allowed; nothing was \
                   done. Call again for a new decision";
        let changed = Err(why.to_owned());
        self.note_if_broken(grant, &changed);
        changed
    }

    /// Writes to the audit log a refusal that neither a person nor a setting decided: an approved
    /// file or argument has changed, or a tool refused before it asked for approval.
    pub fn refused(&self, request: ApprovalRequest, why: &str) {
        self.send(Event::LogRefusal { request: Box::new(request), why: why.to_owned() });
    }

    /// Records the program and process id of an editor. Other editors show them as the one who
    /// answered a question.
    pub fn note_program(&self, editor: ClientId, program: String) {
        self.send(Event::EditorNamed { editor, program });
    }

    /// Records that an editor can show questions. Later questions are sent to the editor.
    pub fn note_shows_questions(&self, editor: ClientId) {
        self.send(Event::ShowsQuestions { editor });
    }

    /// Handles an editor's answer to a question ([`Feedback::Ask`](super::Feedback::Ask)).
    pub fn answer(&self, editor: ClientId, question: u64, answer: Answer) {
        self.send(Event::Answered { editor, question, answer });
    }
}

fn ended() -> Verdict {
    Verdict::Refused("Refused: the agent left, or Consort is ending.".into())
}
