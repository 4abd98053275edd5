//! The order of evaluations. A session runs one evaluation at a time, in the order of the requests.
//! Later evaluations wait here and not in the image, so that the deadline of an evaluation does not
//! include the evaluations before it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::locked::lock;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// A lock for each session that has evaluated code.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    sessions: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

/// A session's right to evaluate. The next evaluation of the session may begin when it is dropped.
pub(crate) type Turn = OwnedMutexGuard<()>;

impl Turns {
    /// Waits until the earlier evaluations of the session have ended, and returns the turn.
    pub(crate) async fn take(&self, session: &str) -> Turn {
        let turn = lock(&self.sessions).entry(session.to_owned()).or_default().clone();
        turn.lock_owned().await
    }

    /// Removes the lock of a session whose client has left. Turns that were taken stay valid.
    pub(crate) fn forget(&self, session: &str) {
        lock(&self.sessions).remove(session);
    }
}
