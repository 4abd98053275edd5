//! The connection of one editor: the state that its request handlers share.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, OnceLock};

use lsp_types::*;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::Error;

use super::incoming::Lost;
use super::missing::{Missing, Told};
use super::negotiated::Negotiated;
use super::progress::Bars;
use super::tokens_delta::SentTokens;
use super::transport::Peer;
use super::workspace_checks::ClientChanges;
use super::{from_proto, to_proto};
use crate::ide::context::Cursor;
use crate::locked::lock;
use crate::session::calls::Calls;
use crate::session::{ClientId, Feedback, Level, Session, path_of_uri};
use crate::text::position::to_offset;

/// The connection of one editor.
pub(super) struct Connection {
    pub(super) session: Session,
    pub(super) client: ClientId,
    pub(super) peer: Peer,
    pub(super) bars: Bars,
    pub(super) negotiated: OnceLock<Negotiated>,
    /// The open Lisp documents; an editor may also open others.
    pub(super) opened: Mutex<HashSet<Url>>,
    /// Events for the client; taken once the client may receive notifications.
    pub(super) feedback: Mutex<Option<mpsc::UnboundedReceiver<Feedback>>>,
    /// The settings given with `initialize`, in force if the client has no section `consort`.
    pub(super) options: OnceLock<Value>,
    /// The number of requests for the client's settings that were sent.
    pub(super) settings_asked: AtomicU64,
    /// The number of the newest settings request whose answer was applied.
    pub(super) settings_applied: AtomicU64,
    /// The client's changes that may alter the findings of files that are not open.
    pub(super) changes: ClientChanges,
    /// The semantic tokens last sent for each document.
    pub(super) tokens: SentTokens,
    /// Size limits already reported, by document and feature.
    pub(super) limits: Mutex<HashSet<(Url, &'static str)>>,
    /// The reasons for incomplete results of which the person was told.
    pub(super) missing: Told,
    /// The commands in progress, for `consort.interrupt`.
    pub(super) calls: Calls,
    /// The task that sends new log entries to the client.
    follower: Mutex<Option<tokio::task::AbortHandle>>,
}

impl Connection {
    pub(super) fn new(
        session: Session,
        client: ClientId,
        peer: Peer,
        feedback: mpsc::UnboundedReceiver<Feedback>,
    ) -> Connection {
        Connection {
            calls: Calls::new(session.clone(), client),
            session,
            client,
            bars: Bars::new(peer.clone()),
            peer,
            negotiated: OnceLock::new(),
            opened: Mutex::default(),
            feedback: Mutex::new(Some(feedback)),
            options: OnceLock::new(),
            settings_asked: AtomicU64::new(0),
            settings_applied: AtomicU64::new(0),
            changes: ClientChanges::default(),
            tokens: SentTokens::default(),
            limits: Mutex::default(),
            missing: Told::default(),
            follower: Mutex::default(),
        }
    }

    /// Returns the negotiated capabilities, or LSP's defaults before `initialize`.
    pub(super) fn negotiated(&self) -> &Negotiated {
        static DEFAULT: OnceLock<Negotiated> = OnceLock::new();
        self.negotiated.get().unwrap_or_else(|| DEFAULT.get_or_init(Negotiated::default))
    }

    /// Returns a position in a document of the editor, with the snapshot of the session for one
    /// request. Returns `None` if the document is not open.
    pub(super) async fn cursor(&self, place: TextDocumentPositionParams) -> Option<Cursor<Session>> {
        let context = self.session.context(self.client).await;
        let position = from_proto::position(place.position);
        Cursor::new(context, place.text_document.uri.as_str(), |text| {
            to_offset(text, position, self.negotiated().encoding)
        })
    }

    /// Replaces the task that sends new log entries to the client; `None` stops it.
    pub(super) fn follow(&self, follower: Option<tokio::task::AbortHandle>) {
        let before = std::mem::replace(&mut *lock(&self.follower), follower);
        if let Some(before) = before {
            before.abort();
        }
    }

    /// Shows a message to the person (`window/showMessage`).
    pub(super) fn show(&self, level: Level, message: &str) {
        self.peer.notify(
            "window/showMessage",
            json!({"type": to_proto::message_type(level), "message": crate::shown::notification(message)}),
        );
    }

    /// Reports that the feature `what` is not computed for a document, once for each document and
    /// feature.
    pub(super) fn limited(&self, uri: &Url, what: &'static str, why: &str) {
        let mut limits = lock(&self.limits);
        if limits.insert((uri.clone(), what)) {
            self.show(
                Level::Info,
                &format!("{} {why}.", path(uri).map_or_else(|| uri.to_string(), |path| path.display().to_string())),
            );
        }
    }

    /// Tells the person, once, that a result may be incomplete for the reason `why`, a clause.
    pub(super) fn may_miss(&self, what: Missing, why: Option<&str>) {
        let Some((method, text)) = why.and_then(|why| self.missing.notification(what, why)) else { return };
        let message = crate::shown::notification(&text);
        self.peer.notify(method, json!({"type": to_proto::message_type(Level::Info), "message": message}));
    }

    /// Handles `window/workDoneProgress/cancel`.
    pub(super) async fn cancel_progress(&self, params: WorkDoneProgressCancelParams) {
        self.bars.cancel(&params.token);
    }

    /// Handles the message about a text that could not be understood ([`incoming::LOST`]).
    pub(super) async fn text_lost(&self, lost: Lost) {
        let Some(uri) = lost.uri else { return self.session.lose_text(self.client, None, lost.why) };
        // Documents that are no Lisp are not kept.
        let Ok(uri) = Url::parse(&uri) else { return };
        if self.opened().contains(&uri) || from_proto::is_lisp(&lost.language, &uri) {
            self.start_feedback();
            self.session.lose_text(self.client, Some(uri.to_string()), lost.why);
            self.opened().insert(uri);
        }
    }

    pub(super) fn opened(&self) -> std::sync::MutexGuard<'_, HashSet<Url>> {
        lock(&self.opened)
    }
}

pub(super) fn path(uri: &Url) -> Option<PathBuf> {
    path_of_uri(uri.as_str())
}

/// Returns the error of a request for a document that is neither open nor a readable Lisp file.
pub(super) fn no_document(uri: &Url) -> Error {
    Error::invalid_params(format!("{uri} is not open, and is not a Common Lisp file that can be read."))
}
