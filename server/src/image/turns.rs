//! The order of evaluations: one of a session at a time, in the order of the requests. The wait is
//! here and not in the image, so that a deadline counts the evaluation and not the ones before it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::locked::lock;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The sessions that have evaluated.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    sessions: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

/// A session's turn, until dropped.
pub(crate) type Turn = OwnedMutexGuard<()>;

impl Turns {
    /// Waits for the session's turn.
    pub(crate) async fn take(&self, session: &str) -> Turn {
        let turn = lock(&self.sessions).entry(session.to_owned()).or_default().clone();
        turn.lock_owned().await
    }

    /// Forgets a session whose client left.
    pub(crate) fn forget(&self, session: &str) {
        lock(&self.sessions).remove(session);
    }
}
