//! The state of questions and permissions, which the actor owns.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use super::audit::Audit;
use super::types::{Answer, BoundRequest, PendingApproval};
use crate::config::approval::Class;
use crate::session::ClientId;
use crate::session::event::Event;

/// The state of questions and permissions.
#[derive(Debug)]
pub(in crate::session) struct ApprovalState {
    pub(in crate::session) audit: Audit,
    pub(in crate::session) events: mpsc::WeakUnboundedSender<Event>,
    /// Editors that can show questions.
    pub(in crate::session) editors: BTreeSet<ClientId>,
    /// Each editor's program and process id, as far as they are known.
    pub(in crate::session) processes: HashMap<ClientId, String>,
    pub(in crate::session) open: BTreeMap<u64, Open>,
    /// Permissions for the session, which is the connection.
    pub(in crate::session) granted: HashSet<(ClientId, Class, &'static str)>,
    pub(in crate::session) pending: HashMap<String, PendingApproval>,
    pub(in crate::session) next: u64,
}

/// A question to the editors.
#[derive(Debug)]
pub(in crate::session) struct Open {
    pub(in crate::session) client: ClientId,
    /// The agent's name at the time of the question.
    pub(in crate::session) name: String,
    pub(in crate::session) bound: Box<BoundRequest>,
    pub(in crate::session) asked: BTreeSet<ClientId>,
    pub(in crate::session) dismissed: bool,
    pub(in crate::session) until: Instant,
    pub(in crate::session) verdict: Option<oneshot::Sender<(Answer, String)>>,
    /// The verdict is in the audit log.
    pub(in crate::session) ruled: Arc<AtomicBool>,
}

impl ApprovalState {
    pub(in crate::session) fn new(audit: Audit, events: mpsc::WeakUnboundedSender<Event>) -> ApprovalState {
        ApprovalState {
            audit,
            events,
            editors: BTreeSet::new(),
            processes: HashMap::new(),
            open: BTreeMap::new(),
            granted: HashSet::new(),
            pending: HashMap::new(),
            next: 1,
        }
    }

    /// Returns the first connected editor of those that can show questions.
    pub(in crate::session) fn first_editor(&self) -> Option<ClientId> {
        self.editors.first().copied()
    }

    /// Returns the time at which the next question that waits for a retried call expires.
    pub(in crate::session) fn next_tick(&self) -> Option<Instant> {
        self.pending.values().map(|pending| pending.until).min()
    }
}
