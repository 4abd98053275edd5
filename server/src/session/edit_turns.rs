//! Edits of one file by agents, one after another, so that each reads the text that the one before
//! it has written.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::sync::OwnedMutexGuard;

use super::file_identity::real_path;
use super::{ClientId, Session};
use crate::locked::lock;

/// The time limit for an editor to send the text after it has made an edit.
const TEXT_TIMEOUT: Duration = Duration::from_secs(1);
/// The interval between checks whether the editor has sent the text.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The turn of a file, which one edit holds at a time.
type Turn = Arc<tokio::sync::Mutex<()>>;

/// The turns of the files that are being edited.
#[derive(Debug, Default)]
pub(super) struct EditTurns(Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>);

/// The turn of one edit, which ends when this value is dropped.
#[derive(Debug)]
pub struct EditTurn {
    _held: OwnedMutexGuard<()>,
}

impl EditTurns {
    /// Waits until no other edit of the file has its turn. `file` is a path with links resolved.
    async fn take(&self, file: PathBuf) -> EditTurn {
        let turn = self.of(file);
        EditTurn { _held: turn.lock_owned().await }
    }

    fn of(&self, file: PathBuf) -> Turn {
        let mut turns = lock(&self.0);
        turns.retain(|_, turn| turn.strong_count() > 0);
        let known = turns.get(&file).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let turn = Turn::default();
            turns.insert(file, Arc::downgrade(&turn));
            turn
        })
    }
}

impl Session {
    /// Waits until no other call edits the file. A call holds its turn from before it reads the
    /// file until it has written it, also while a person is asked. `path` is absolute or relative
    /// to the workspace's directory.
    pub async fn edit_turn(&self, path: &str) -> EditTurn {
        let named = self.workspace().join(path);
        let resolved = tokio::task::spawn_blocking({
            let named = named.clone();
            move || real_path(&named)
        });
        self.inner.edit_turns.take(resolved.await.unwrap_or(named)).await
    }
}

impl Session {
    /// Waits until an editor that has made an edit has also sent the text, which the next edit of
    /// the file reads.
    pub(super) async fn newer_text(&self, client: ClientId, uri: &str, revision: u64) {
        let until = Instant::now() + TEXT_TIMEOUT;
        while Instant::now() < until {
            match self.document(client, uri).await {
                Some(document) if document.revision() == revision => crate::steady::sleep(POLL_INTERVAL).await,
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn edits_of_one_file_wait_for_each_other_and_those_of_another_do_not() {
        let turns = Arc::new(EditTurns::default());
        let first = turns.take("/w/a.lisp".into()).await;
        let second = tokio::spawn({
            let turns = turns.clone();
            async move { turns.take("/w/a.lisp".into()).await }
        });
        let other = turns.take("/w/b.lisp".into()).await;
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        drop((first, other));
        assert!(second.await.is_ok());
        let _third = turns.take("/w/c.lisp".into()).await;
        assert_eq!(lock(&turns.0).len(), 1, "nothing is left of edits that have ended");
    }
}
