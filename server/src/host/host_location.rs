//! The search for the directory of a workspace's host. It is the directory that a new host would
//! use, or another one that was to be used when the host was started.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::claim::{self, HostLocation};
use super::runtime_base;
use super::runtime_dir::RuntimeDir;

/// The time limit for a host to say where its directory is. A host checks once a second whether the
/// directory was removed.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the directory of the host of `workspace` (a canonical path). If a host runs, it is the
/// directory of that host, even if a new host would use another one. If the directory of a running
/// host was removed, waits until the host has created it again.
///
/// # Errors
/// Fails if no directory that is private to this user can be named, or if a running host has lost
/// its directory.
pub fn of(workspace: &Path) -> io::Result<RuntimeDir> {
    of_host(RuntimeDir::of_new(workspace)?, &runtime_base::all())
}

/// Returns the directory of the running host, or `runtime`, that of a new host, if none runs.
/// `bases` are further places to search.
///
/// # Errors
/// A running host has lost its directory. A second host would have another image.
fn of_host(runtime: RuntimeDir, bases: &[PathBuf]) -> io::Result<RuntimeDir> {
    if runtime.is_live() {
        return Ok(runtime);
    }
    let until = Instant::now() + ANSWER_TIMEOUT;
    // A host that is being started listens on its socket before it answers.
    match claim::ask(&runtime, || runtime.is_live() || Instant::now() > until) {
        Some(HostLocation::At(directory)) => {
            let there = directory.parent().map(|base| runtime.moved_to(base));
            return Ok(there.filter(|there| there.path() == directory && there.check().is_ok()).unwrap_or(runtime));
        }
        Some(HostLocation::Lost(pid)) => {
            let message = format!(
                "the Consort host of this workspace (process {pid}) runs, but its runtime directory was removed (as at a logout) \
                 and it cannot make it again; `kill {pid}` ends it, and the next use starts another"
            );
            return Err(io::Error::new(io::ErrorKind::NotConnected, message));
        }
        None => {}
    }
    // There are no claims on this system, or none was found.
    let elsewhere = bases.iter().map(|base| runtime.moved_to(base)).find(RuntimeDir::is_live);
    Ok(elsewhere.unwrap_or(runtime))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::host::elected::elect;

    fn place() -> (tempfile::TempDir, RuntimeDir, RuntimeDir) {
        let place = tempfile::Builder::new().prefix("c").tempdir_in("/tmp").unwrap();
        let first = RuntimeDir::within(place.path().join("r/consort"), Path::new("/some/workspace")).unwrap();
        let second = first.moved_to(&place.path().join("t"));
        (place, first, second)
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_host_whose_base_was_removed_is_waited_for_and_found() {
        let (place, first, second) = place();
        let mut elected = elect(&first).unwrap().unwrap();
        std::fs::remove_dir_all(place.path().join("r")).unwrap();
        let asking = tokio::task::spawn_blocking({
            let second = second.clone();
            move || of_host(second, &[]).unwrap()
        });
        let found = loop {
            elected.look_after().await.unwrap();
            if asking.is_finished() {
                break asking.await.unwrap();
            }
        };
        assert_eq!(found, first);
        assert!(first.is_live() && !second.path().exists());
        elected.close().remove();
        assert_eq!(of_host(second.clone(), &[]).unwrap(), second, "it has left");
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_host_that_cannot_make_its_directory_again_is_named() {
        let (place, first, second) = place();
        let mut elected = elect(&first).unwrap().unwrap();
        std::fs::remove_dir_all(place.path().join("r")).unwrap();
        std::fs::write(place.path().join("r"), "in the way").unwrap();
        let asking = tokio::task::spawn_blocking(move || of_host(second, &[]).unwrap_err().to_string());
        while !asking.is_finished() {
            elected.look_after().await.unwrap_err();
        }
        let why = asking.await.unwrap();
        assert!(why.contains(&format!("process {}", std::process::id())), "{why}");
    }

    #[test]
    fn without_an_answer_the_other_bases_are_looked_in() {
        let (place, first, _) = place();
        first.create().unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(first.socket()).unwrap();
        let other = RuntimeDir::within(place.path().join("t"), Path::new("/some/workspace")).unwrap();
        let bases = [place.path().join("none"), place.path().join("r/consort")];
        assert_eq!(of_host(other, &bases).unwrap().path(), first.path());
    }
}
