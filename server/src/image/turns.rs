//! One evaluation of a session at a time, in the order asked for. The wait is here and not in the image, so that a deadline counts the
//! evaluation and not what ran before it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

use super::link::lock;

/// The sessions that have evaluated.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    sessions: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

/// A session's turn, until it is dropped.
pub(crate) type Turn = OwnedMutexGuard<()>;

impl Turns {
    /// Wait for the session's turn.
    pub(crate) async fn take(&self, session: &str) -> Turn {
        let turn = lock(&self.sessions).entry(session.to_owned()).or_default().clone();
        turn.lock_owned().await
    }

    /// The session's client left.
    pub(crate) fn forget(&self, session: &str) {
        lock(&self.sessions).remove(session);
    }
}
