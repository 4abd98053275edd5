//! The order of evaluations. A session has one at a time, in the order of the requests. They wait
//! here and not in the image, so that a deadline counts the evaluation and not the ones before it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::locked::lock;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The sessions that have evaluated code.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    sessions: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

/// The turn of a session, which ends when it is dropped.
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
