//! The context of a tool call: the session, the client, and the approval.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::reply::Failure;
use crate::mcp::agent_breakpoints::AgentBreakpoints;
use crate::mcp::consent::Asker;
use crate::mcp::partial_answers::Kept;
use crate::mcp::progress::Reporter;
use crate::model::error_kind::ErrorKind;
use crate::session::approval::{ApprovalRequest, Class, Grant, Subject};
use crate::session::calls::Interrupt;
use crate::session::sources::Sources;
use crate::session::{ClientId, Session};

/// The context in which a tool reads code.
#[derive(Debug)]
pub(crate) enum CodeContext {
    /// The settings of the client's session, in its package unless one is given.
    InSession(Option<String>),
    /// The image's settings, in this package.
    InImage(String),
}

impl CodeContext {
    /// Returns the arguments of [`Session::reading`].
    pub(super) fn place(&self, client: ClientId) -> (Option<ClientId>, Option<&str>) {
        match self {
            CodeContext::InSession(package) => (Some(client), package.as_deref()),
            CodeContext::InImage(package) => (None, Some(package)),
        }
    }
}

/// The context of a tool call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) session: Session,
    pub(crate) client: ClientId,
    /// Reports the call's progress to the client, if requested.
    pub(crate) progress: Reporter,
    /// Asks the client's user, if needed.
    pub(crate) asker: Asker,
    /// The answers that were shown in part.
    pub(crate) partial_answers: Arc<Mutex<Kept>>,
    /// The client's breakpoints, and the client's evaluation that waits at one.
    pub(crate) breakpoints: Arc<AgentBreakpoints>,
    /// The grant, for a tool whose [`Tool::required_approval`](super::Tool::required_approval)
    /// names a class; see [`Call::allowed_file`].
    pub(crate) permit: Option<Grant>,
    /// The interrupt that this call made when it arrived.
    pub(crate) interrupt: Option<Interrupt>,
}

impl Call {
    /// Returns the approved file, to be opened by this path. It is checked again directly before a
    /// write.
    ///
    /// # Errors
    /// The file is no longer the approved one.
    pub(crate) async fn allowed_file(&self) -> Result<Option<std::path::PathBuf>, String> {
        match &self.permit {
            Some(permit) => self.session.recheck(permit).await,
            None => Ok(None),
        }
    }

    /// Returns the approved contents of files, if unchanged, or `None` if no approval of files was
    /// requested.
    ///
    /// # Errors
    /// The changed file.
    pub(crate) async fn allowed_sources(&self) -> Result<Option<Sources>, String> {
        match &self.permit {
            Some(permit) => self.session.recheck_sources(permit).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns [`Call::allowed_sources`] for a load. The load is restricted to these files if a
    /// person decided.
    pub(crate) async fn allowed_to_load(&self) -> Result<Option<Sources>, Failure> {
        if self.permit.as_ref().is_none_or(|permit| !permit.is_decided()) {
            return Ok(None);
        }
        let refused = |why| Failure { kind: ErrorKind::REFUSED, message: format!("Refused: {why}.") };
        self.allowed_sources().await.map_err(refused)
    }

    pub(super) async fn check_read_as_approved(&self, context: Option<&CodeContext>) -> Result<(), String> {
        let (Some(permit), Some(context)) = (&self.permit, context) else { return Ok(()) };
        let (by, package) = context.place(self.client);
        self.session.recheck_reading(by, package, permit).await
    }

    /// Writes to the audit log that a tool refuses an operation without a request for approval.
    pub(crate) async fn refuse(&self, tool: &'static str, asked: (Class, Subject), arguments: Value, why: &str) {
        let request = ApprovalRequest::new_off_thread(
            self.session.workspace(),
            self.client,
            tool,
            asked,
            arguments,
            self.asker.can_remember_approval(),
        )
        .await;
        self.session.refused(request, why);
    }
}
