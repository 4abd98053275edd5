//! The folders that editors have open, and the handle of a client that works in one of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use super::event::Event;
use super::{ClientId, Session};

/// The folders of all editors, by editor.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    all: watch::Sender<BTreeMap<ClientId, Vec<PathBuf>>>,
}

impl Default for Folders {
    fn default() -> Folders {
        Folders { all: watch::Sender::new(BTreeMap::new()) }
    }
}

impl Folders {
    pub(super) fn add(&self, client: ClientId, folder: PathBuf) {
        self.all.send_if_modified(|all| {
            let folders = all.entry(client).or_default();
            let new = !folders.contains(&folder);
            if new {
                folders.push(folder);
            }
            new
        });
    }

    pub(super) fn remove(&self, client: ClientId, folder: &Path) {
        self.all.send_if_modified(|all| {
            let Some(folders) = all.get_mut(&client) else { return false };
            let before = folders.len();
            folders.retain(|one| one != folder);
            folders.len() < before
        });
    }

    /// Removes the folders of a client that has left.
    pub(super) fn leave(&self, client: ClientId) {
        self.all.send_if_modified(|all| all.remove(&client).is_some());
    }
}

/// A receiver of changes of the folders that editors have open.
#[derive(Debug, Clone)]
pub struct OpenFolders(watch::Receiver<BTreeMap<ClientId, Vec<PathBuf>>>);

impl OpenFolders {
    /// Resolves when the folders have changed since the last call. Never resolves after the end of
    /// the session.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the folders as the editors named them, without duplicates.
    pub fn now(&mut self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self.0.borrow_and_update().values().flatten().cloned().collect();
        folders.sort();
        folders.dedup();
        folders
    }
}

impl Session {
    /// Adds a folder that an editor has open. Its `.asd` files count as the workspace's.
    pub fn add_folder(&self, client: ClientId, folder: PathBuf) {
        self.send(Event::FolderOpened { client, folder });
    }

    /// Removes a folder that an editor has closed. Its systems remain known.
    pub fn remove_folder(&self, client: ClientId, folder: PathBuf) {
        self.send(Event::FolderClosed { client, folder });
    }

    /// Returns the folders that editors have open.
    pub fn open_folders(&self) -> OpenFolders {
        OpenFolders(self.inner.folders.all.subscribe())
    }

    /// Returns a handle for a client that works in `folder`. The client's files and relative paths
    /// are those of that folder. The image is the same.
    #[must_use]
    pub fn in_folder(&self, folder: &Path) -> Session {
        Session { directory: Some(Arc::from(folder)), ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_open_while_one_editor_has_it() {
        let folders = Folders::default();
        let mut open = OpenFolders(folders.all.subscribe());
        let (one, two) = (ClientId(1), ClientId(2));
        folders.add(one, "/b".into());
        folders.add(one, "/a".into());
        folders.add(two, "/b".into());
        assert_eq!(open.now(), [PathBuf::from("/a"), PathBuf::from("/b")]);
        folders.remove(one, Path::new("/b"));
        folders.remove(two, Path::new("/a"));
        assert_eq!(open.now(), [PathBuf::from("/a"), PathBuf::from("/b")]);
        folders.leave(two);
        assert_eq!(open.now(), [PathBuf::from("/a")]);
    }
}
