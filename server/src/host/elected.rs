//! The right to be a workspace's host: acquired by election, maintained while others remove files,
//! and released at the end.

use std::collections::VecDeque;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::claim::{self, Claim};
use super::departure;
use super::folders;
use super::runtime_base::with_path;
use super::runtime_dir::{HostFile, Lock, RuntimeDir};
use crate::fault::{self, Call};

/// The time limit of the wait for a process that holds the locks and does not listen. A killed
/// process frees the locks at once. A process whose directory was removed listens again within a
/// second.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(20);
/// The polling interval. No notification of the system covers both a free lock and a listening
/// socket.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The maximum number of removed lock files that are kept open.
const MAX_REMOVED_LOCKS: usize = 16;

/// The locks, the claim, and the listening socket.
#[derive(Debug)]
pub struct Elected {
    runtime: RuntimeDir,
    listener: UnixListener,
    /// The identity of the socket file: device and inode.
    socket: (u64, u64),
    host: Lock,
    /// Locks whose files were removed, which bridges may hold open.
    former: VecDeque<Lock>,
    claim: Claim,
    file: Option<HostFile>,
}

/// An [`Elected`] that no longer listens.
#[derive(Debug)]
pub(super) struct Leaving {
    runtime: RuntimeDir,
    host: Lock,
    _claim: Claim,
}

/// The result of a check of the runtime directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// All files are in place.
    InPlace,
    /// Some files had been removed, and were created again.
    Restored,
    /// Another process is the host, or another user has the directory.
    Taken,
}

/// Makes this process the workspace's host, in place of a killed host. Returns `None` if another
/// host listens.
///
/// # Errors
/// Fails with an I/O error, or if a process that is or was the host neither listens nor ends.
pub fn elect(runtime: &RuntimeDir) -> io::Result<Option<Elected>> {
    let deadline = Instant::now() + LISTEN_TIMEOUT;
    loop {
        runtime.create()?;
        let start = runtime.lock_start()?;
        if let Some(host) = runtime.lock_host()?
            && let Some(claim) = Claim::take(runtime)?
        {
            departure::clear(host.file())?;
            let (listener, socket) = prepare(runtime)?;
            drop(start);
            let (runtime, former) = (runtime.clone(), VecDeque::new());
            return Ok(Some(Elected { runtime, listener, socket, host, former, claim, file: None }));
        }
        // The current host may need the lock to listen again.
        drop(start);
        if runtime.is_live() {
            return Ok(None);
        }
        if Instant::now() > deadline {
            let pid = claim::holder(runtime).or_else(|| runtime.read_host_file().map(|host| host.pid));
            let message = match pid {
                Some(pid) => format!(
                    "the Consort host (process {pid}) holds its lock and does not listen; end it with `kill -9 {pid}` and try again"
                ),
                None => format!(
                    "a process holds the lock in {} and does not listen; end it and try again",
                    runtime.path().display()
                ),
            };
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Creates the image's empty directory and a listening socket in this process's runtime
/// directory.
fn prepare(runtime: &RuntimeDir) -> io::Result<(UnixListener, (u64, u64))> {
    runtime.clear_work()?;
    make_work(runtime)?;
    bind(runtime)
}

fn bind(runtime: &RuntimeDir) -> io::Result<(UnixListener, (u64, u64))> {
    let path = runtime.socket();
    remove_if_there(&path)?;
    // Other users cannot enter the directory, so none can connect before the mode is set.
    let listener =
        fault::point(Call::Bind).and_then(|()| UnixListener::bind(&path)).map_err(|error| with_path(error, &path))?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    let socket = identity(&path).ok_or(io::ErrorKind::NotFound)?;
    Ok((listener, socket))
}

fn make_work(runtime: &RuntimeDir) -> io::Result<()> {
    let work = runtime.work();
    fault::point(Call::Open).and_then(|()| std::fs::create_dir(&work)).map_err(|error| with_path(error, &work))?;
    std::fs::set_permissions(&work, Permissions::from_mode(0o700))
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(with_path(error, path)),
        _ => Ok(()),
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
}

impl Elected {
    /// Returns the runtime directory.
    pub fn runtime(&self) -> &RuntimeDir {
        &self.runtime
    }

    /// Writes the host file, and keeps its contents in case the file is removed.
    ///
    /// # Errors
    /// An I/O error.
    pub fn announce(&mut self, file: HostFile) -> io::Result<()> {
        self.runtime.write_host_file(&file)?;
        self.file = Some(file);
        Ok(())
    }

    /// Records the folders that editors have open in the host file. Returns the recorded folders.
    ///
    /// # Errors
    /// An I/O error; the record is then as it was.
    pub(super) async fn record_folders(&mut self, folders: Vec<PathBuf>) -> io::Result<Vec<PathBuf>> {
        let Some(mut file) = self.file.clone() else { return Ok(Vec::new()) };
        let runtime = self.runtime.clone();
        let written = tokio::task::spawn_blocking(move || {
            let folders = folders::to_record(folders, &file.workspace);
            if file.folders != folders {
                file.folders = folders;
                runtime.write_host_file(&file)?;
            }
            io::Result::Ok(file)
        });
        let file = written.await.map_err(io::Error::other)??;
        let folders = file.folders.clone();
        self.file = Some(file);
        Ok(folders)
    }

    /// Releases everything, for a host that has not served a client yet.
    pub fn abandon(self) {
        self.close().remove();
    }

    /// Withdraws this host before it closes its connections. If `ordered`, records that the host
    /// leaves, so that bridges start no other. A host without that record counts as killed.
    pub(super) fn retract(&mut self, ordered: bool) {
        self.file = None;
        if ordered {
            for lock in self.former.iter().chain([&self.host]) {
                if let Err(error) = departure::record(lock.file()) {
                    tracing::warn!(%error, "bridges are not told that this host leaves, and may start another");
                }
            }
        }
        if self.host.is_in_place() {
            self.runtime.remove_host_file();
        }
    }

    /// Returns a copy of the socket for the async runtime.
    pub(super) fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }

    /// Checks the files that make this process the host, and creates removed ones again.
    ///
    /// # Errors
    /// An I/O error when they cannot be created.
    pub(super) async fn look_after(&mut self) -> io::Result<State> {
        let looked = self.inspected().await;
        match &looked {
            Ok(State::InPlace | State::Restored) => self.claim.answer_connections(Some(self.runtime.path())),
            // The host leaves, and drops the claim.
            Ok(State::Taken) => {}
            Err(_) => self.claim.answer_connections(None),
        }
        looked
    }

    async fn inspected(&mut self) -> io::Result<State> {
        let (runtime, host, file) = (self.runtime.clone(), self.host.try_clone()?, self.file.clone());
        let socket = self.socket;
        let looked = tokio::task::spawn_blocking(move || inspect(&runtime, &host, socket, file.as_ref()));
        match looked.await.map_err(io::Error::other)?? {
            Inspection::InPlace => Ok(State::InPlace),
            Inspection::Taken => Ok(State::Taken),
            Inspection::Recreated(made) => {
                if let Some(host) = made.host {
                    self.former.push_back(std::mem::replace(&mut self.host, host));
                    if self.former.len() > MAX_REMOVED_LOCKS {
                        self.former.pop_front();
                    }
                }
                if let Some((listener, socket)) = made.socket {
                    (self.listener, self.socket) = (listener, socket);
                }
                Ok(State::Restored)
            }
        }
    }

    /// Stops listening, so that the next client starts a new host, which waits for the locks of
    /// this one.
    pub(super) fn close(self) -> Leaving {
        let Elected { runtime, listener, socket, host, claim, .. } = self;
        drop(listener);
        if identity(&runtime.socket()) == Some(socket)
            && let Err(error) = remove_if_there(&runtime.socket())
        {
            tracing::warn!("the socket could not be removed: {error}");
        }
        Leaving { runtime, host, _claim: claim }
    }
}

impl Leaving {
    /// Removes everything, unless another host owns it by now. The caller holds the start lock.
    pub(super) fn remove(self) {
        if self.host.is_in_place() {
            return self.runtime.remove();
        }
        // The directory was removed, and the start lock that is held is in a new one.
        let another = self.runtime.is_somebody_elses();
        if !another && let Ok(Some(_host)) = self.runtime.lock_host() {
            self.runtime.remove();
        }
    }
}

/// The files that were created again.
#[derive(Default)]
struct Recreated {
    host: Option<Lock>,
    socket: Option<(UnixListener, (u64, u64))>,
}

enum Inspection {
    InPlace,
    Taken,
    Recreated(Box<Recreated>),
}

fn inspect(runtime: &RuntimeDir, host: &Lock, socket: (u64, u64), file: Option<&HostFile>) -> io::Result<Inspection> {
    let whole = || {
        host.is_in_place()
            && identity(&runtime.socket()) == Some(socket)
            && runtime.work().is_dir()
            && (file.is_none() || runtime.read_host_file().is_some())
    };
    if whole() {
        return Ok(Inspection::InPlace);
    }
    // Files are not created, and checks not run, in a directory that another user can change.
    if runtime.is_somebody_elses() {
        return Ok(Inspection::Taken);
    }
    runtime.create()?;
    let _start = runtime.lock_start()?;
    let mut made = Recreated::default();
    if !host.is_in_place() {
        // Only a host holds the host lock without the start lock, which is held here.
        let Some(host) = runtime.lock_host()? else { return Ok(Inspection::Taken) };
        made.host = Some(host);
    }
    if !runtime.work().is_dir() {
        make_work(runtime)?;
    }
    if identity(&runtime.socket()) != Some(socket) {
        made.socket = Some(bind(runtime)?);
    }
    if let Some(file) = file {
        runtime.write_host_file(file)?;
    }
    Ok(Inspection::Recreated(Box::new(made)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::host::departure::Departure;

    fn fresh() -> (tempfile::TempDir, RuntimeDir) {
        let dir = tempfile::Builder::new().prefix("c").tempdir_in("/tmp").unwrap();
        let runtime = RuntimeDir::within(dir.path().join("consort"), Path::new("/some/workspace")).unwrap();
        (dir, runtime)
    }

    #[test]
    fn a_lock_that_is_free_a_moment_after_the_socket_closed_is_waited_for() {
        let (_dir, runtime) = fresh();
        runtime.create().unwrap();
        let dying = runtime.lock_host().unwrap().unwrap();
        let starter = std::thread::spawn({
            let runtime = runtime.clone();
            move || elect(&runtime).unwrap().is_some()
        });
        // By now the starter has found the lock held and no process listening, after it released
        // the start lock once.
        std::thread::sleep(3 * POLL_INTERVAL);
        assert!(!starter.is_finished(), "it does not give up");
        drop(dying);
        assert!(starter.join().unwrap());
    }

    #[tokio::test]
    async fn a_host_leaves_when_another_user_has_its_directory() {
        let (dir, runtime) = fresh();
        let mut elected = elect(&runtime).unwrap().unwrap();
        std::fs::remove_dir_all(dir.path().join("consort")).unwrap();
        std::fs::create_dir_all(runtime.work()).unwrap();
        // Only root can give a directory to another user.
        if std::os::unix::fs::chown(runtime.path(), Some(65534), None).is_ok() {
            assert_eq!(elected.look_after().await.unwrap(), State::Taken);
            assert!(!runtime.socket().exists());
        }
    }

    #[tokio::test]
    async fn what_is_removed_beneath_a_host_is_made_again_and_stays_its_own() {
        let (dir, runtime) = fresh();
        let mut elected = elect(&runtime).unwrap().unwrap();
        let (workspace, version) = ("/w".into(), "1".into());
        let file = HostFile { pid: 1, workspace, version, log: None, folders: Vec::new() };
        elected.announce(file.clone()).unwrap();
        assert_eq!(elected.look_after().await.unwrap(), State::InPlace);
        let removals: [&dyn Fn(); 5] = [
            &|| std::fs::remove_dir_all(dir.path().join("consort")).unwrap(),
            &|| std::fs::remove_file(runtime.socket()).unwrap(),
            &|| std::fs::remove_file(runtime.path().join("lock")).unwrap(),
            &|| std::fs::remove_dir_all(runtime.work()).unwrap(),
            &|| std::fs::remove_file(runtime.path().join("host.json")).unwrap(),
        ];
        for remove in removals {
            remove();
            let starter = std::thread::spawn({
                let runtime = runtime.clone();
                move || elect(&runtime).unwrap().is_none()
            });
            assert_eq!(elected.look_after().await.unwrap(), State::Restored);
            assert!(starter.join().unwrap(), "no second host comes to be");
            assert_eq!(elected.look_after().await.unwrap(), State::InPlace);
            assert_eq!(runtime.read_host_file(), Some(file.clone()));
        }
        elected.close().remove();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_host_that_leaves_when_its_directory_was_removed_leaves_nothing_behind() {
        let (dir, runtime) = fresh();
        let elected = elect(&runtime).unwrap().unwrap();
        std::fs::remove_dir_all(dir.path().join("consort")).unwrap();
        let start = runtime.lock_start().unwrap();
        elected.close().remove();
        drop(start);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn bridges_know_a_host_that_left_wherever_its_lock_is() {
        let (dir, runtime) = fresh();
        let mut elected = elect(&runtime).unwrap().unwrap();
        let first = Departure::of(&runtime).unwrap();
        std::fs::remove_dir_all(dir.path().join("consort")).unwrap();
        assert_eq!(elected.look_after().await.unwrap(), State::Restored);
        let second = Departure::of(&runtime).unwrap();
        assert!(!first.is_recorded() && !second.is_recorded());
        elected.retract(false);
        assert!(!first.is_recorded() && !second.is_recorded(), "they go to the host that has its place");
        elected.retract(true);
        assert!(first.is_recorded() && second.is_recorded());
        // As if the process were killed before it removed the file.
        drop(elected);
        let _next = elect(&runtime).unwrap().unwrap();
        assert!(!Departure::of(&runtime).unwrap().is_recorded());
    }

    #[tokio::test]
    async fn a_host_that_lost_its_directory_to_another_leaves_it_alone() {
        let (dir, runtime) = fresh();
        let mut elected = elect(&runtime).unwrap().unwrap();
        std::fs::remove_dir_all(dir.path().join("consort")).unwrap();
        runtime.create().unwrap();
        let other = runtime.lock_host().unwrap().unwrap();
        assert_eq!(elected.look_after().await.unwrap(), State::Taken);
        elected.close().remove();
        assert!(other.is_in_place());
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_made_again_is_an_error_until_it_can() {
        let (dir, runtime) = fresh();
        let mut elected = elect(&runtime).unwrap().unwrap();
        std::fs::remove_dir_all(dir.path().join("consort")).unwrap();
        std::fs::write(dir.path().join("consort"), "in the way").unwrap();
        assert!(elected.look_after().await.is_err());
        std::fs::remove_file(dir.path().join("consort")).unwrap();
        assert_eq!(elected.look_after().await.unwrap(), State::Restored);
        elected.close().remove();
    }
}
