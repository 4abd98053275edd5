//! Edits of one file by agents, one after another: each reads what the one before it has written.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use tokio::sync::OwnedMutexGuard;

use super::file_identity::real_path;
use super::{ClientId, Session};
use crate::locked::lock;

/// The time limit for an editor to send the text after an edit that it has made.
const SENT: Duration = Duration::from_secs(1);
/// The interval in which it is looked whether it has.
const LOOK: Duration = Duration::from_millis(10);

/// A file's turn: the edit that holds it is the only one.
type Turn = Arc<tokio::sync::Mutex<()>>;

/// The turns of the files that are being edited.
#[derive(Debug, Default)]
pub(super) struct EditTurns(Mutex<HashMap<PathBuf, Weak<tokio::sync::Mutex<()>>>>);

/// The turn of one edit, which ends when this is dropped.
#[derive(Debug)]
pub struct EditTurn {
    _held: OwnedMutexGuard<()>,
}

impl EditTurns {
    /// Waits until no other edit of the file has its turn. `file`: with links resolved.
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
    /// Waits until no other call edits the file: a call holds its turn from before it reads the
    /// file until it has written it, also while a person is asked. `path`: absolute or relative to
    /// the workspace's directory.
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
    /// Waits until an editor that has made an edit has sent the text too, which the next edit of
    /// the file reads.
    pub(super) async fn newer_text(&self, client: ClientId, uri: &str, revision: u64) {
        let until = Instant::now() + SENT;
        while Instant::now() < until {
            match self.document(client, uri).await {
                Some(document) if document.revision() == revision => crate::steady::sleep(LOOK).await,
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
