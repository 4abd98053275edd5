//! The sender of the server's notifications and requests.

use serde_json::json;

use super::negotiated::Negotiated;
use super::progress::Bars;
use super::to_proto;
use super::transport::Peer;
use crate::session::{ClientId, Level, Session};
use crate::shown;

/// Sends notifications and requests of the session to one client.
#[derive(Clone)]
pub(super) struct Notifier {
    pub(super) peer: Peer,
    pub(super) bars: Bars,
    pub(super) negotiated: Negotiated,
    pub(super) session: Session,
    pub(super) client: ClientId,
}

impl Notifier {
    /// Shows a message, or logs it. `method` is the method of the notification.
    pub(super) fn say(&self, method: &str, level: Level, message: &str) {
        let message =
            if method == "window/logMessage" { shown::terminal(message) } else { shown::notification(message) };
        self.peer.notify(method, json!({"type": to_proto::message_type(level), "message": message}));
    }

    /// Asks the client to request its diagnostics again.
    pub(super) fn refresh(&self) {
        if self.negotiated.refresh {
            let peer = self.peer.clone();
            tokio::spawn(async move {
                if let Err(error) = peer.request("workspace/diagnostic/refresh", serde_json::Value::Null).await {
                    tracing::debug!("the client did not refresh its diagnostics: {error}");
                }
            });
        }
    }
}
