//! The resources that one check's copy may use: its own directory, and a socket in it to which only
//! the copy may connect.

use std::fs::{self, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};

use crate::fault::{self, Call};
use crate::image::runtime::Runtime;
use crate::remove_tree::remove_tree;

/// The prefix of the directories of copies that make a check, or work for an agent.
pub(super) const COPY: &str = "c-";
/// The prefix of the directory with the socket to which frozen failures connect. It is kept.
pub(super) const FAILURES: &str = "f-";

/// A scratch directory with a listening socket.
pub(super) struct Scratch {
    directory: Option<TempDir>,
    listener: UnixListener,
    socket: PathBuf,
    /// The token that the copy must send first.
    pub(super) token: String,
}

impl Scratch {
    /// Creates the directory below `private`, the host's own directory. `prefix` is that of the
    /// directory's name.
    pub(super) fn new(private: &Path, prefix: &str) -> io::Result<Scratch> {
        fault::point(Call::Open)?;
        let directory =
            tempfile::Builder::new().prefix(prefix).permissions(Permissions::from_mode(0o700)).tempdir_in(private)?;
        let socket = directory.path().join("s");
        fault::point(Call::Bind)?;
        let listener = UnixListener::bind(&socket)?;
        fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
        let mut random = [0; 16];
        fault::point(Call::Open)?;
        fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
        let token = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Scratch { directory: Some(directory), listener, socket, token })
    }

    /// Returns the directory in which the copy may write.
    pub(super) fn path(&self) -> &Path {
        self.directory.as_ref().map_or(Path::new(""), TempDir::path)
    }

    /// Returns the socket to which the copy connects.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Accepts the connection of the process `pid` of this user. Closes any other connection.
    pub(super) async fn accept(&self, pid: u32) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            fault::point(Call::Open)?;
            let peer = stream.peer_cred()?;
            let ours = peer.uid() == rustix::process::geteuid().as_raw();
            if ours && peer.pid().is_none_or(|peer| u32::try_from(peer) == Ok(pid)) {
                return Ok(stream);
            }
            tracing::warn!(?peer, pid, "another process connected to a check's socket");
        }
    }

    /// Accepts the connection of a process of this user. Returns the process id.
    pub(super) async fn accept_any(&self) -> io::Result<(UnixStream, u32)> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            fault::point(Call::Open)?;
            let peer = stream.peer_cred()?;
            match peer.pid().map(u32::try_from) {
                Some(Ok(pid)) if peer.uid() == rustix::process::geteuid().as_raw() => return Ok((stream, pid)),
                _ => tracing::warn!(?peer, "another process connected to the socket of frozen failures"),
            }
        }
    }

    /// Removes the directory on another thread, since a copy may have filled it.
    pub(super) fn remove(&mut self, runtime: &Runtime) {
        if let Some(directory) = self.directory.take() {
            let remove = move || {
                let path = directory.keep();
                if let Err(error) = remove_tree(&path) {
                    tracing::warn!(%error, path = %path.display(), "removing a check's scratch directory");
                }
            };
            runtime.tasks.spawn_blocking_on(remove, &runtime.handle);
        }
    }
}
