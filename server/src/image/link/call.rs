//! A request on the link to the image.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::{Answer, Link, NoResult, lock};
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageError;

/// The reason why a call has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The link is closed, because the image is gone.
    #[error("the image is gone")]
    Gone,
    /// The image, or the host, refused the call.
    #[error(transparent)]
    Refused(#[from] ImageError),
}

/// A request whose answer may be pending.
pub(crate) struct Call {
    pub(super) id: u64,
    pub(super) op: &'static str,
    pub(super) link: Arc<Link>,
    pub(super) answer: oneshot::Receiver<Answer>,
    pub(super) answered: bool,
}

impl Call {
    /// Returns the request id on the wire.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Waits for the answer. Until the future has resolved, it may be dropped and the method called
    /// again. Later calls return [`CallError::Gone`].
    pub(crate) async fn result<T: DeserializeOwned>(&mut self) -> Result<T, CallError> {
        if self.answered {
            return Err(CallError::Gone);
        }
        let answer = (&mut self.answer).await.unwrap_or(Err(NoResult::Closed));
        self.answered = true;
        match answer {
            Ok(raw) => serde_json::from_str(raw.get()).map_err(|error| {
                tracing::error!(%error, op = self.op, answer = %raw.get().chars().take(300).collect::<String>(), "unreadable answer");
                let message = format!("The image's answer to {} cannot be read: {error}", self.op);
                CallError::Refused(ImageError::Refused { kind: ErrorKind::INTERNAL, message })
            }),
            // `cannot-fork` does not count as busy, because another try would not help.
            Err(NoResult::Refused(refusal)) if refusal.kind == "busy" => {
                Err(CallError::Refused(ImageError::Busy(refusal.message)))
            }
            Err(NoResult::Refused(refusal)) => Err(CallError::Refused(refusal.into())),
            Err(NoResult::Closed) => Err(CallError::Gone),
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let unanswered = lock(&self.link.table).pending.remove(&self.id).is_some();
        if unanswered && is_interrupted_on_drop(self.op) {
            self.link.interrupt(self.id, "cancel");
        }
    }
}

/// Returns true if a request for `op` is interrupted when nobody waits for its answer any more.
/// Such requests may run the user's code or wait. Requests that leave or make a stop are not
/// interrupted: the image limits their time, and they take effect even if the client has left.
/// Neither is the work of a copy, which ends with the copy.
fn is_interrupted_on_drop(op: &str) -> bool {
    !matches!(
        op,
        "debug-restart"
            | "debug-return"
            | "debug-restart-frame"
            | "debug-continue"
            | "debug-step"
            | "debug-abort"
            | "debug-pause"
            | "interrupt-thread"
            | "kill-thread"
            | "check"
            | "check-system"
            | "macroexpand"
            | "eval-in-copy"
            | "try-code"
            | "record"
            | "record-call"
            | "interrupt"
            | "status"
    )
}
