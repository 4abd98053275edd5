//! The wait of a new host for the documents of editors whose host was killed. The host waits until
//! the editors' bridges have opened them again. Until then, it does not assume that a file on disk
//! has the current text.
//!
//! Each `consort lsp` holds a shared lock on a file in the runtime directory. It also holds a name
//! (`named_marks`), in case the directory is removed. The file stays when a host is killed, and the
//! bridges keep their locks and names until the new host has their documents.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::FlockOperation;

use super::named_marks::{self, NamedMark};
use super::runtime_dir::RuntimeDir;
use crate::fault::{self, Call};

/// The time limit of the wait for the bridges, so that a suspended editor does not block agents
/// forever.
const MAX_WAIT: Duration = Duration::from_secs(20);
/// The polling interval, because the system has no notification for a lock that becomes free.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The lock and the name by which a bridge shows that it may have documents. Each is `None` if it
/// could not be acquired.
#[derive(Debug)]
#[allow(dead_code, reason = "it is held")]
pub(super) struct Holds {
    locked: Option<File>,
    name: Option<NamedMark>,
}

/// The locked file and the names of a killed host's bridges. `locked` is `None` if there was no
/// file, or if it could not be removed.
#[derive(Debug)]
pub(super) struct Retired {
    locked: Option<File>,
    names: Vec<String>,
}

/// Acquires the lock and the name of this bridge, for the running host. If both fail, the next host
/// does not wait for this bridge.
pub(super) fn hold(runtime: &RuntimeDir) -> Holds {
    let marked = || -> io::Result<File> {
        fault::point(Call::Open)?;
        let path = path(runtime);
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared)?;
        Ok(file)
    };
    Holds { locked: marked().ok(), name: NamedMark::bind(runtime).ok() }
}

/// Removes the lock file of a killed host's bridges. A new host calls this before it answers any
/// bridge.
/// Returns `None` if no bridge of the killed host is left.
pub(super) fn retire(runtime: &RuntimeDir) -> Option<Retired> {
    let path = path(runtime);
    let file = OpenOptions::new().write(true).open(&path).ok();
    // Bridges that connect later create a new file, so that this host does not wait for them.
    let locked = file.filter(|_| std::fs::remove_file(&path).is_ok());
    let retired = Retired { locked, names: named_marks::bound_names(runtime) };
    retired.is_held().then_some(retired)
}

fn path(runtime: &RuntimeDir) -> PathBuf {
    runtime.documents()
}

impl Retired {
    /// Returns true while a bridge of the killed host still holds its lock or name.
    fn is_held(&self) -> bool {
        // Other errors do not show that a bridge holds the lock, and are no reason to wait.
        let held = |file: &File| {
            let lock = rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive);
            matches!(lock, Err(rustix::io::Errno::WOULDBLOCK))
        };
        self.locked.as_ref().is_some_and(held) || named_marks::any_bound(&self.names)
    }

    /// Waits until the bridges have opened their documents at this host, or have ended. Gives up
    /// with a warning in the log after `MAX_WAIT`.
    pub(super) async fn wait_until_reopened(self) {
        let this = Arc::new(self);
        let all = async {
            loop {
                let retired = this.clone();
                // A poll that panics is no reason to wait.
                if !tokio::task::spawn_blocking(move || retired.is_held()).await.unwrap_or(false) {
                    return;
                }
                crate::steady::sleep(POLL_INTERVAL).await;
            }
        };
        if crate::steady::timeout(MAX_WAIT, all).await.is_err() {
            tracing::warn!("an editor of the killed host has not opened its documents again; it is not waited for");
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::Path;

    use super::*;

    #[tokio::test]
    async fn a_new_host_waits_for_the_bridges_of_the_killed_one_and_for_no_others() {
        let place = tempfile::Builder::new().prefix("c").tempdir_in("/tmp").unwrap();
        let runtime = RuntimeDir::within(place.path().join("consort"), Path::new("/some/workspace")).unwrap();
        runtime.create().unwrap();
        assert!(retire(&runtime).is_none(), "there was no host");
        let (one, other) = (hold(&runtime), hold(&runtime));
        drop(one);
        let retired = retire(&runtime).unwrap();
        let new = hold(&runtime);
        assert!(retired.is_held());
        drop(other);
        assert!(!retired.is_held(), "the new host's are not waited for");
        retired.wait_until_reopened().await;
        drop(new);
        assert!(retire(&runtime).is_none());
        assert!(!path(&runtime).exists());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_bridges_are_waited_for_also_when_the_directory_was_removed() {
        let place = tempfile::Builder::new().prefix("c").tempdir_in("/tmp").unwrap();
        let runtime = |workspace| RuntimeDir::within(place.path().join("consort"), Path::new(workspace)).unwrap();
        let (runtime, other) = (runtime("/some/workspace"), runtime("/other"));
        runtime.create().unwrap();
        let bridge = hold(&runtime);
        std::fs::remove_dir_all(place.path().join("consort")).unwrap();
        assert!(retire(&other).is_none(), "it has no documents of another workspace");
        let retired = retire(&runtime).unwrap();
        assert!(retired.is_held());
        drop(bridge);
        retired.wait_until_reopened().await;
        assert!(retire(&runtime).is_none());
    }
}
