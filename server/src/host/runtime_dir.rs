//! The private directory of a workspace's host: its locks, its socket and its host file.
//!
//! ```text
//!     BASE/consort/<hash of the workspace>/   0700, owned by the user, no symbolic link
//!         start       held (flock) while a process becomes the host or leaves; excludes others
//!         lock        held (flock) by the host while it runs; marked by a host that leaves
//!         host.sock   0600
//!         host.json   [`HostFile`]
//!         breakpoints.json   0600, agents' breakpoints, for the next host if this one is killed
//!         documents   held (flock, shared) by editors' bridges
//!         work/       of the image: sockets and scratch directories of checks
//! ```
//!
//! The system frees a lock when its holder dies. A host that leaves removes all files.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::FlockOperation;
use sha2::{Digest, Sha256};

use super::runtime_base::{self, base, check_private, is_of_another, places, with_path};
use crate::bounded_file;
use crate::fault::{self, Call};
use crate::private_file;
use crate::remove_tree::remove_tree;

/// The name prefix of leftover files of checks that could not be removed.
const LEFT: &str = "left-";
/// The name of the host's lock.
const HOST_LOCK: &str = "lock";
/// The limit of `host.json`, in bytes.
const HOST_FILE: u64 = 64 << 10;

/// The time limit for a killed host to free its locks.
const LOCK_RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// The contents of `host.json`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HostFile {
    /// The host's process id.
    pub pid: u32,
    /// The workspace of the host.
    pub workspace: PathBuf,
    /// The version of the host.
    pub version: String,
    /// The log of the host. `None` if the host logs to a terminal.
    pub log: Option<PathBuf>,
    /// The folders that the host's editors have open beside its workspace, links resolved.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
}

/// The paths of a workspace's host. Creating the value touches no files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeDir {
    base: PathBuf,
    dir: PathBuf,
    /// The text from which the claim's name is computed. For a new host, the text does not depend
    /// on the base, because files of another user can force the host to use another base.
    claim: OsString,
}

/// A held lock file, unlocked when dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Returns a second handle on the same lock, which is freed when both are dropped.
    ///
    /// # Errors
    /// An I/O error.
    pub fn try_clone(&self) -> io::Result<Lock> {
        Ok(Lock { file: self.file.try_clone()?, path: self.path.clone() })
    }

    /// Returns the lock file.
    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Returns true when the lock file is still at its path and was not removed or replaced.
    pub fn is_in_place(&self) -> bool {
        let there = std::fs::symlink_metadata(&self.path);
        let facts = |facts: std::fs::Metadata| (facts.dev(), facts.ino());
        there.is_ok_and(|there| self.file.metadata().is_ok_and(|ours| facts(ours) == facts(there)))
    }
}

impl RuntimeDir {
    /// Returns the directory of a new host of `workspace` (a canonical path).
    ///
    /// # Errors
    /// Fails when no directory that is private to this user can be named.
    pub(super) fn of_new(workspace: &Path) -> io::Result<RuntimeDir> {
        let (temporary, private) = places(rustix::process::getuid().as_raw());
        Ok(RuntimeDir::within(base()?, workspace)?.claimed_in(&temporary, private.as_deref()))
    }

    /// Returns the same workspace's directory below another base, with the same claim.
    pub(super) fn moved_to(&self, base: &Path) -> RuntimeDir {
        let dir = base.join(self.dir.file_name().unwrap_or_default());
        RuntimeDir { base: base.into(), dir, claim: self.claim.clone() }
    }

    /// Returns the same directory with a claim that is the same for all bases, so that a workspace
    /// has one host.
    fn claimed_in(self, temporary: &Path, private: Option<&Path>) -> RuntimeDir {
        let mut claim = OsString::from(self.dir.file_name().unwrap_or_default());
        for place in [Some(temporary), private].into_iter().flatten() {
            claim.push(":");
            claim.push(place);
        }
        RuntimeDir { claim, ..self }
    }

    /// Returns the directory of `workspace` below `base`, with a claim for this directory only.
    ///
    /// # Errors
    /// Fails when the socket's path would be too long for the system.
    pub fn within(base: PathBuf, workspace: &Path) -> io::Result<RuntimeDir> {
        let dir = base.join(name_of(workspace));
        runtime_base::check_length(&dir)?;
        Ok(RuntimeDir { claim: dir.clone().into(), base, dir })
    }

    /// Returns the text from which the claim's name is computed.
    pub(super) fn claim(&self) -> &OsStr {
        &self.claim
    }

    /// Returns true if another user made the directory or its base.
    pub(super) fn is_somebody_elses(&self) -> bool {
        let user = rustix::process::getuid().as_raw();
        [&self.base, &self.dir].into_iter().any(|dir| is_of_another(dir, user))
    }

    /// Returns the directory itself.
    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Returns the path of the host's socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.join("host.sock")
    }

    /// Returns the image's own directory.
    pub fn work(&self) -> PathBuf {
        self.dir.join("work")
    }

    /// Returns the path of the lock of the workspace's host.
    pub(super) fn host_lock(&self) -> PathBuf {
        self.dir.join(HOST_LOCK)
    }

    /// Returns the path of the file that editors' bridges hold while they may have documents.
    pub(super) fn documents(&self) -> PathBuf {
        self.dir.join("documents")
    }

    /// Returns the path of the record of agents' breakpoints.
    pub fn breakpoints(&self) -> PathBuf {
        self.dir.join("breakpoints.json")
    }

    /// Reads the host file of a host that runs or was killed.
    pub fn read_host_file(&self) -> Option<HostFile> {
        serde_json::from_slice(&bounded_file::read(&self.dir.join("host.json"), HOST_FILE).ok()?).ok()
    }

    /// Writes the host file.
    ///
    /// # Errors
    /// An I/O error.
    pub fn write_host_file(&self, file: &HostFile) -> io::Result<()> {
        let path = self.dir.join("host.json");
        private_file::replace(&path, &serde_json::to_vec(file)?).map_err(|error| with_path(error, &path))
    }

    /// Removes the host file. If the file exists and no host runs, the host counts as killed.
    pub fn remove_host_file(&self) {
        // A leftover file is removed with the directory.
        let _ = std::fs::remove_file(self.dir.join("host.json"));
    }

    /// Creates the directory if necessary, and checks that it is private to this user.
    ///
    /// # Errors
    /// An I/O error; an error when another user could have put something there.
    pub fn create(&self) -> io::Result<()> {
        for dir in [&self.base, &self.dir] {
            // Only in the user's own state directory may parents of the base be missing.
            let above = *dir == self.base && dir.parent().is_some_and(|parent| !parent.exists());
            match fault::point(Call::Open).and_then(|()| DirBuilder::new().mode(0o700).recursive(above).create(dir)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(with_path(error, dir)),
            }
            check_private(dir)?;
        }
        Ok(())
    }

    /// Returns true if a host listens on the socket. Creates nothing.
    pub fn is_live(&self) -> bool {
        let connect = || {
            fault::point(Call::Connect)?;
            std::os::unix::net::UnixStream::connect(self.socket())
        };
        self.check().is_ok() && connect().is_ok()
    }

    /// Checks that the directory exists and is private to this user.
    ///
    /// # Errors
    /// `NotFound`, or an error when another user could have put something there.
    pub fn check(&self) -> io::Result<()> {
        check_private(&self.base)?;
        check_private(&self.dir)
    }

    /// Takes the lock for starting or ending a host. Waits for the present holder, which holds the
    /// lock only for a short time.
    ///
    /// # Errors
    /// An I/O error.
    pub fn lock_start(&self) -> io::Result<Lock> {
        match self.lock("start", FlockOperation::LockExclusive)? {
            Some(lock) => Ok(lock),
            None => Err(io::Error::from(io::ErrorKind::WouldBlock)),
        }
    }

    /// Takes the lock of the workspace's host. Returns `None` if another process holds it.
    ///
    /// # Errors
    /// An I/O error.
    pub fn lock_host(&self) -> io::Result<Option<Lock>> {
        self.lock(HOST_LOCK, FlockOperation::NonBlockingLockExclusive)
    }

    fn lock(&self, name: &str, operation: FlockOperation) -> io::Result<Option<Lock>> {
        let path = self.dir.join(name);
        loop {
            let opened = fault::point(Call::Open)
                .and_then(|()| File::options().create(true).truncate(false).write(true).mode(0o600).open(&path));
            let file = match opened {
                Ok(file) => file,
                // A host that was leaving has just removed the directory.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.create()?;
                    continue;
                }
                Err(error) => return Err(with_path(error, &path)),
            };
            match rustix::fs::flock(&file, operation) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(with_path(error.into(), &path)),
            }
            // A host that left may have removed the file during the wait. The lock is then void.
            let lock = Lock { file, path: path.clone() };
            if lock.is_in_place() {
                return Ok(Some(lock));
            }
        }
    }

    /// Removes the files of a killed host, after the end of its process. Does nothing if a host
    /// runs or if there are no files.
    ///
    /// # Errors
    /// An I/O error.
    pub fn tidy(&self) -> io::Result<()> {
        match self.check() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        }
        let deadline = Instant::now() + LOCK_RELEASE_TIMEOUT;
        loop {
            let start = self.lock_start()?;
            if let Some(host) = self.lock_host()? {
                self.remove();
                drop(host);
                return Ok(());
            }
            drop(start);
            // The sockets of a killed process are closed before its locks are free.
            if self.is_live() || Instant::now() > deadline {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Removes the directory and its base if they are empty. Used after a test whether the
    /// directory can be created.
    pub fn remove_if_empty(&self) {
        // Fails when the directory is not empty, as intended.
        let _ = std::fs::remove_dir(&self.dir);
        let _ = std::fs::remove_dir(&self.base);
    }

    /// Removes the image's own directory. Files of checked code that cannot be removed are renamed,
    /// and removed by a later call.
    ///
    /// # Errors
    /// Fails when a file can neither be removed nor renamed.
    pub fn clear_work(&self) -> io::Result<()> {
        let entries = std::fs::read_dir(&self.dir)?.flatten();
        let aside = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(LEFT.as_bytes()));
        for entry in aside {
            if let Err(error) = remove_tree(&entry.path()) {
                tracing::warn!(%error, path = %entry.path().display(), "left by a check, and cannot be removed");
            }
        }
        let Err(error) = remove_tree(&self.work()) else { return Ok(()) };
        if std::fs::symlink_metadata(self.work()).is_err() {
            return Ok(());
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        let aside = self.dir.join(format!("{LEFT}{now}"));
        tracing::warn!(%error, aside = %aside.display(), "left by a check, and cannot be removed");
        std::fs::rename(self.work(), aside)
    }

    /// Removes all files of the host. Only for the process that holds both locks. The locks are
    /// freed when that process ends.
    pub fn remove(&self) {
        // The next host replaces files that cannot be removed.
        if let Err(error) = self.clear_work() {
            tracing::warn!(%error, "not all of what checks left could be removed");
        }
        for name in [
            "host.sock",
            "host.json",
            "host.json.new",
            "breakpoints.json",
            "breakpoints.json.new",
            "documents",
            HOST_LOCK,
            "start",
        ] {
            let _ = std::fs::remove_file(self.dir.join(name));
        }
        let _ = std::fs::remove_dir(&self.dir);
        let _ = std::fs::remove_dir(&self.base);
    }
}

/// Returns the directories of all hosts of this user, live or not.
///
/// # Errors
/// Fails when no directory that is private to this user can be named, or read.
pub fn all() -> io::Result<Vec<RuntimeDir>> {
    let base = base()?;
    // Earlier hosts may have been started with another base.
    let others = runtime_base::all().into_iter().filter(|other| *other != base && check_private(other).is_ok());
    let mut found = Vec::new();
    for base in [base.clone()].into_iter().chain(others) {
        let entries = match std::fs::read_dir(&base) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(with_path(error, &base)),
        };
        found.extend(entries.flatten().map(|entry| {
            let dir = entry.path();
            RuntimeDir { base: base.clone(), claim: dir.clone().into(), dir }
        }));
    }
    Ok(found)
}

/// Returns 16 hexadecimal digits that identify a canonical path.
pub fn name_of(workspace: &Path) -> String {
    let digest = Sha256::digest(workspace.as_os_str().as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn fresh() -> (tempfile::TempDir, RuntimeDir) {
        let dir = tempfile::Builder::new().prefix("c").tempdir().unwrap();
        let runtime = RuntimeDir::within(dir.path().join("consort"), Path::new("/some/workspace")).unwrap();
        (dir, runtime)
    }

    #[test]
    fn names_are_short_and_differ() {
        let name = name_of(Path::new("/a"));
        assert!(name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit()), "{name}");
        assert_ne!(name_of(Path::new("/a")), name_of(Path::new("/b")));
        let long = PathBuf::from("/").join("x".repeat(90));
        assert!(RuntimeDir::within(long, Path::new("/a")).unwrap_err().to_string().contains("XDG_RUNTIME_DIR"));
    }

    #[test]
    fn it_is_private_and_goes_away() {
        let (dir, runtime) = fresh();
        runtime.create().unwrap();
        runtime.create().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(runtime.path()), 0o700);
        let (workspace, version) = ("/some/workspace".into(), String::new());
        runtime.write_host_file(&HostFile { pid: 1, workspace, version, log: None, folders: Vec::new() }).unwrap();
        assert_eq!(mode(&runtime.path().join("host.json")), 0o600);
        let start = runtime.lock_start().unwrap();
        let host = runtime.lock_host().unwrap().unwrap();
        std::fs::create_dir_all(runtime.work().join("left/behind")).unwrap();
        runtime.remove();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        drop((start, host));
    }

    #[test]
    fn the_files_of_a_host_are_removed_when_its_lock_becomes_free() {
        let (dir, runtime) = fresh();
        runtime.create().unwrap();
        let lock = runtime.lock_host().unwrap().unwrap();
        std::thread::scope(|scope| {
            let tidied = scope.spawn(|| runtime.tidy());
            std::thread::sleep(Duration::from_millis(100));
            drop(lock);
            tidied.join().unwrap().unwrap();
        });
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_link_or_an_open_directory_is_refused() {
        let (dir, runtime) = fresh();
        std::fs::create_dir(dir.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), dir.path().join("consort")).unwrap();
        assert!(runtime.create().unwrap_err().to_string().contains("is not a directory"));

        let (_dir, runtime) = fresh();
        runtime.create().unwrap();
        std::fs::set_permissions(runtime.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(runtime.create().unwrap_err().to_string().contains("open to other users"));
        assert!(!runtime.is_live());
    }

    #[test]
    fn a_workspace_has_one_claim_whichever_place_its_directory_is_in() {
        let (temporary, private) = (Path::new("/tmp/consort-7"), Path::new("/s/run"));
        let claim = |base: &Path, workspace: &str| {
            let runtime = RuntimeDir::within(base.into(), Path::new(workspace)).unwrap();
            runtime.claimed_in(temporary, Some(private)).claim
        };
        assert_eq!(claim(temporary, "/w"), claim(private, "/w"));
        assert_ne!(claim(temporary, "/w"), claim(temporary, "/other"));
    }

    #[test]
    fn one_process_is_the_host() {
        let (_dir, runtime) = fresh();
        assert!(!runtime.is_live());
        assert!(!runtime.path().exists(), "asking makes nothing");
        let host = runtime.lock_host().unwrap();
        assert!(host.is_some());
        assert!(runtime.lock_host().unwrap().is_none());
        drop(host);
        assert!(runtime.lock_host().unwrap().is_some());
    }

    #[test]
    fn whoever_waited_for_a_host_that_left_starts_afresh() {
        let (_dir, runtime) = fresh();
        let leaving = runtime.lock_start().unwrap();
        let waiter = std::thread::spawn({
            let runtime = runtime.clone();
            move || {
                let start = runtime.lock_start().unwrap();
                let host = runtime.lock_host().unwrap();
                let others = runtime.lock_host().unwrap();
                drop((start, host));
                others.is_none()
            }
        });
        runtime.remove();
        drop(leaving);
        assert!(waiter.join().unwrap(), "the lock it got is the one that others see");
    }
}
