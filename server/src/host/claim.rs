//! A workspace's claim: a name that the host's process holds as long as it lives, independent of
//! files.
//!
//! The locks in the runtime directory determine the host. If the directory is removed while the
//! host lives, the claim prevents a second host until the first has created its directory again.
//! Linux has such names (unix(7), "abstract"). On other systems, a host whose directory was taken
//! over notices that within a second and leaves.

use std::io;
use std::path::{Path, PathBuf};

use super::runtime_dir::RuntimeDir;
#[cfg(target_os = "linux")]
use crate::fault::{self, Call};

/// The held name, freed when dropped and at the end of the process.
#[derive(Debug)]
pub(super) struct Claim {
    #[cfg(target_os = "linux")]
    name: Option<std::os::unix::net::UnixListener>,
}

impl Claim {
    /// Takes the claim. Returns `None` if a living process of this user holds it.
    #[cfg(target_os = "linux")]
    pub(super) fn take(runtime: &RuntimeDir) -> io::Result<Option<Claim>> {
        let address = linux::address(runtime)?;
        match fault::point(Call::Bind).and_then(|()| std::os::unix::net::UnixListener::bind_addr(&address)) {
            Ok(name) => {
                name.set_nonblocking(true)?;
                Ok(Some(Claim { name: Some(name) }))
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && linux::holder(runtime).is_some() => Ok(None),
            // Another user has the name, or the system does not permit one. Then only the locks
            // determine the host.
            Err(error) => {
                tracing::warn!("the workspace's claim cannot be taken: {error}");
                Ok(Some(Claim { name: None }))
            }
        }
    }

    /// Tells the processes of this user that ask where the host's directory is, and closes their
    /// connections, so that the backlog never fills. `directory` is `None` while it cannot be
    /// created.
    pub(super) fn answer_connections(&self, directory: Option<&Path>) {
        #[cfg(target_os = "linux")]
        while let Some(Ok((asking, _))) = self.name.as_ref().map(std::os::unix::net::UnixListener::accept) {
            linux::answer(asking, directory);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = directory;
    }

    /// Returns a claim without effect, because other systems have none.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn take(_: &RuntimeDir) -> io::Result<Option<Claim>> {
        Ok(Some(Claim {}))
    }
}

/// Returns the process of this user that holds the claim, where the system reports it.
pub(super) fn holder(runtime: &RuntimeDir) -> Option<u32> {
    #[cfg(target_os = "linux")]
    return linux::holder(runtime);
    #[cfg(not(target_os = "linux"))]
    return runtime.read_host_file().map(|host| host.pid);
}

/// The answer of the holder of a claim about its directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HostLocation {
    /// The directory, which is in place.
    At(PathBuf),
    /// The process has lost its directory, and cannot make it again.
    Lost(u32),
}

/// Asks the process of this user that holds the claim where its directory is. The process may have
/// to create the directory first. Returns `None` if no process holds the claim, or if it has not
/// answered when `is_over` returns true.
pub(super) fn ask(runtime: &RuntimeDir, is_over: impl FnMut() -> bool) -> Option<HostLocation> {
    #[cfg(target_os = "linux")]
    return linux::ask(runtime, is_over);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (runtime, is_over);
        None
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::{may_be_held, name};

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::io::{self, Read, Write};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::os::unix::net::{SocketAddr, UnixStream};
    use std::path::Path;
    use std::time::Duration;

    use rustix::fd::{AsFd, OwnedFd};
    use rustix::io::Errno;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    use sha2::{Digest, Sha256};

    use super::HostLocation;
    use crate::fault::{self, Call};
    use crate::host::runtime_dir::RuntimeDir;

    /// The first byte of an answer, before the directory.
    const ANSWER_AT: u8 = b'@';
    /// The whole answer of a host without a directory.
    const ANSWER_LOST: u8 = b'-';
    /// The longest answer, in bytes.
    const MAX_ANSWER_BYTES: u64 = 4096;
    /// The interval at which the asking process calls `is_over`.
    const ASK_POLL_INTERVAL: Duration = Duration::from_millis(20);

    /// Returns the name for this user and this workspace's runtime directory.
    pub(in crate::host) fn name(runtime: &RuntimeDir) -> String {
        let digest = Sha256::digest(runtime.claim().as_bytes());
        let digits: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("consort-{}-{digits}", rustix::process::getuid().as_raw())
    }

    pub(super) fn address(runtime: &RuntimeDir) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(name(runtime))
    }

    /// Connects without waiting, because any user may have the name, and need not accept.
    fn connect(name: &str) -> rustix::io::Result<OwnedFd> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        Ok(socket)
    }

    pub(super) fn holder(runtime: &RuntimeDir) -> Option<u32> {
        holder_of(&name(runtime))
    }

    /// Returns the process of this user that holds a name.
    fn holder_of(name: &str) -> Option<u32> {
        fault::point(Call::Connect).ok()?;
        our_peer(&connect(name).ok()?)
    }

    /// Returns true if a process of this user holds a name, or may hold it. It may if another user
    /// has filled the name's queue of connections.
    pub(in crate::host) fn may_be_held(name: &str) -> bool {
        match fault::point(Call::Connect).map_err(|_| Errno::CONNREFUSED).and_then(|()| connect(name)) {
            Ok(stream) => our_peer(&stream).is_some(),
            Err(error) => error == Errno::AGAIN,
        }
    }

    /// Answers a process that asks where the directory is.
    pub(super) fn answer(mut asking: UnixStream, directory: Option<&Path>) {
        let answer = match directory {
            Some(directory) => [&[ANSWER_AT], directory.as_os_str().as_bytes()].concat(),
            None => vec![ANSWER_LOST],
        };
        // The answer fits the socket's buffer. A process that only looked for a holder has left.
        if our_peer(&asking).is_some() && asking.set_nonblocking(true).is_ok() {
            let _ = asking.write_all(&answer);
        }
    }

    pub(super) fn ask(runtime: &RuntimeDir, mut is_over: impl FnMut() -> bool) -> Option<HostLocation> {
        fault::point(Call::Connect).ok()?;
        let stream = connect(&name(runtime)).ok()?;
        let holder = our_peer(&stream)?;
        let stream = UnixStream::from(stream);
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(ASK_POLL_INTERVAL)).ok()?;
        let mut answer = Vec::new();
        while let Err(error) = (&stream).take(MAX_ANSWER_BYTES).read_to_end(&mut answer) {
            let waits = matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut);
            // Another error: the holder has left without an answer.
            if !waits || is_over() {
                return None;
            }
        }
        match answer.split_first()? {
            (&ANSWER_AT, directory) => Some(HostLocation::At(OsString::from_vec(directory.to_vec()).into())),
            (&ANSWER_LOST, []) => Some(HostLocation::Lost(holder)),
            _ => None,
        }
    }

    /// Returns the process at the other end, if it is this user's.
    fn our_peer(stream: impl AsFd) -> Option<u32> {
        let peer = rustix::net::sockopt::socket_peercred(stream).ok()?;
        let ours = rustix::process::getuid() == peer.uid;
        ours.then(|| peer.pid.as_raw_nonzero().get().cast_unsigned())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Any user may take a name, and need not accept connections.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_whose_holder_does_not_accept_keeps_nobody_waiting() {
        let place = tempfile::Builder::new().prefix("c").tempdir_in("/tmp").unwrap();
        let runtime = RuntimeDir::within(place.path().join("consort"), Path::new("/some/workspace")).unwrap();
        let address = linux::address(&runtime).unwrap();
        // Programs that other tests start do not inherit it.
        let (family, stream) = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM);
        let squatter = rustix::net::socket_with(family, stream, rustix::net::SocketFlags::CLOEXEC, None).unwrap();
        let name = rustix::net::SocketAddrUnix::new_abstract_name(linux::name(&runtime).as_bytes()).unwrap();
        rustix::net::bind(&squatter, &name).unwrap();
        rustix::net::listen(&squatter, 0).unwrap();
        let _waits = std::os::unix::net::UnixStream::connect_addr(&address).unwrap();
        assert_eq!(holder(&runtime), None);
        assert!(Claim::take(&runtime).unwrap().is_some(), "the locks alone must do");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn one_process_has_it_whatever_becomes_of_the_files() {
        let place = tempfile::Builder::new().prefix("c").tempdir_in("/tmp").unwrap();
        let runtime = RuntimeDir::within(place.path().join("consort"), Path::new("/some/workspace")).unwrap();
        let claim = Claim::take(&runtime).unwrap().unwrap();
        assert!(Claim::take(&runtime).unwrap().is_none());
        assert_eq!(holder(&runtime), Some(std::process::id()));
        let other = RuntimeDir::within(place.path().join("consort"), Path::new("/other")).unwrap();
        assert!(Claim::take(&other).unwrap().is_some());
        drop(claim);
        assert!(Claim::take(&runtime).unwrap().is_some());
    }
}
