//! The host's life: elected, it listens, opens doors, and leaves with everything it made.

use std::fs::Permissions;
use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::VERSION;
use super::hello::{self, Ack, Hello};
use super::runtime_dir::{Lock, RuntimeDir};

/// A connection that says nothing for this long is none.
const HELLO_WAIT: Duration = Duration::from_secs(10);
/// A host that was started waits at least this long for the client that started it.
const FIRST_CLIENT_WAIT: Duration = Duration::from_secs(10);

/// A connection after its hello.
#[derive(Debug)]
pub struct Connection {
    /// What the client said.
    pub hello: Hello,
    /// What follows is the door's own protocol.
    pub stream: UnixStream,
}

/// What is behind the doors.
pub trait Services: Send + Sync + 'static {
    /// Serve one connection until it ends.
    fn open(&self, connection: Connection, lifetime: Arc<Lifetime>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    /// End everything that outlives connections, with a bound of its own.
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Who is here, and whether to leave.
#[derive(Debug)]
pub struct Lifetime {
    clients: watch::Sender<usize>,
    stop: Notify,
    held: Mutex<Vec<UnixStream>>,
}

impl Lifetime {
    fn new() -> Lifetime {
        Lifetime { clients: watch::Sender::new(0), stop: Notify::new(), held: Mutex::default() }
    }

    /// How many clients are connected: editors, agents, running commands.
    pub fn clients(&self) -> usize {
        *self.clients.borrow()
    }

    /// Leave now.
    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// Keep a connection open until this process has ended, which the client sees as its end of file.
    pub fn hold(&self, stream: UnixStream) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    /// Count a client for as long as the guard lives.
    pub fn enter(self: &Arc<Self>) -> Presence {
        self.clients.send_modify(|count| *count += 1);
        Presence(self.clone())
    }
}

/// A client that is here.
#[derive(Debug)]
pub struct Presence(Arc<Lifetime>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.clients.send_modify(|count| *count -= 1);
    }
}

/// The right to be a workspace's host: its locks, and its socket, which listens already.
#[derive(Debug)]
pub struct Elected {
    runtime: RuntimeDir,
    listener: std::os::unix::net::UnixListener,
    _host: Lock,
}

/// Become the workspace's host; `None` when there is one. Replaces what a killed host left.
///
/// # Errors
/// The system's.
pub fn elect(runtime: &RuntimeDir) -> io::Result<Option<Elected>> {
    runtime.create()?;
    let start = runtime.lock_start()?;
    let Some(host) = runtime.lock_host()? else { return Ok(None) };
    remove_if_there(&runtime.socket())?;
    runtime.clear_work()?;
    std::fs::create_dir(runtime.work())?;
    std::fs::set_permissions(runtime.work(), Permissions::from_mode(0o700))?;
    // The directory is closed to others, so that nobody connects before the mode is set.
    let listener = std::os::unix::net::UnixListener::bind(runtime.socket())?;
    std::fs::set_permissions(runtime.socket(), Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    drop(start);
    Ok(Some(Elected { runtime: runtime.clone(), listener, _host: host }))
}

/// Serve until told to leave; with `linger`, also when nobody has been here for so long. Must run within a Tokio runtime.
///
/// # Errors
/// When the socket or the signal handlers cannot be set up. Everything is closed and removed in any case.
pub async fn serve(elected: Elected, services: Arc<dyn Services>, linger: Option<Duration>) -> io::Result<()> {
    let lifetime = Arc::new(Lifetime::new());
    let result = accept(&elected, &services, &lifetime, linger).await;
    leave(elected, services).await;
    // Only now do those who wait for the end see it.
    drop(lifetime);
    result
}

async fn accept(
    elected: &Elected,
    services: &Arc<dyn Services>,
    lifetime: &Arc<Lifetime>,
    linger: Option<Duration>,
) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let listener = UnixListener::from_std(elected.listener.try_clone()?)?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut clients = lifetime.clients.subscribe();
    let mut doors = JoinSet::new();
    let mut deadline = linger.map(|linger| Instant::now() + linger.max(FIRST_CLIENT_WAIT));
    loop {
        let lonely = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    doors.spawn(receive(stream, services.clone(), lifetime.clone()));
                }
                Err(error) => {
                    // Out of descriptors: those who are here may go on, and the next try may succeed.
                    tracing::error!("a connection could not be accepted: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(ended) = doors.join_next() => if let Err(error) = ended && error.is_panic() {
                tracing::error!("a door ended in a panic, its client is disconnected: {error}");
            },
            changed = clients.changed() => {
                // The sender lives as long as `lifetime`.
                let here = changed.is_ok() && *clients.borrow_and_update() > 0;
                deadline = if here { None } else { linger.map(|linger| Instant::now() + linger) };
            }
            () = lonely => { tracing::info!("nobody has been here for a while: leaving"); break }
            _ = terminate.recv() => { tracing::info!("SIGTERM: leaving"); break }
            _ = interrupt.recv() => { tracing::info!("SIGINT: leaving"); break }
            _ = hangup.recv() => { tracing::info!("SIGHUP: leaving"); break }
            () = lifetime.stop.notified() => { tracing::info!("told to leave"); break }
        }
    }
    // Before the bridges see the end: a host that leaves is not replaced by them.
    elected.runtime.remove_host_file();
    doors.shutdown().await;
    Ok(())
}

/// Remove the socket first, so that whoever comes now starts a new host, which waits for the locks of this one.
pub async fn leave(elected: Elected, services: Arc<dyn Services>) {
    let runtime = elected.runtime.clone();
    let start = tokio::task::spawn_blocking(move || runtime.lock_start());
    // Held for a moment only by a process that finds this host alive.
    let start = match tokio::time::timeout(Duration::from_secs(5), start).await {
        Ok(Ok(Ok(lock))) => Some(lock),
        other => {
            tracing::warn!("leaving without the start lock: {other:?}");
            None
        }
    };
    drop(elected.listener);
    if let Err(error) = remove_if_there(&elected.runtime.socket()) {
        tracing::warn!("the socket could not be removed: {error}");
    }
    services.close().await;
    elected.runtime.remove();
    drop(start);
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// One connection: who is it, may it come in, and if so its door.
async fn receive(mut stream: UnixStream, services: Arc<dyn Services>, lifetime: Arc<Lifetime>) {
    let ours = rustix::process::getuid().as_raw();
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == ours => {}
        Ok(peer) => return tracing::warn!("a connection of user {} was refused", peer.uid()),
        Err(error) => return tracing::warn!("a connection without credentials was refused: {error}"),
    }
    let hello = match tokio::time::timeout(HELLO_WAIT, read_hello(&mut stream)).await {
        Ok(Ok(Some(hello))) => hello,
        // Somebody looked whether a host runs.
        Ok(Ok(None)) => return,
        Ok(Err(error)) => {
            let text = format!(
                "this is Consort's own socket; its first line must be a hello ({error}). Use `consort lsp` or `consort mcp`"
            );
            let _ = answer(&mut stream, Some(text), false).await;
            return;
        }
        Err(_) => return tracing::warn!("a connection said nothing and was closed"),
    };
    tracing::info!(door = ?hello.frontend, cwd = %hello.cwd.display(), "a client came");
    if hello.version != VERSION && !hello.any_version {
        if lifetime.clients() == 0 {
            if answer(&mut stream, Some("another version comes: leaving".into()), true).await.is_ok() {
                lifetime.hold(stream);
                lifetime.stop();
            }
            return;
        }
        let text = format!(
            "the Consort host of this workspace is version {VERSION} and this client is {}; run `consort stop` in the workspace (what is \
             defined only in its image is lost) and restart your editors and agents",
            hello.version
        );
        let _ = answer(&mut stream, Some(text), false).await;
        return;
    }
    // `status` and `stop` are not company.
    let presence = (!hello.any_version).then(|| lifetime.enter());
    if let Err(error) = answer(&mut stream, None, false).await {
        return tracing::info!("a client left before its door was open: {error}");
    }
    let frontend = hello.frontend;
    // A task of its own: a panic in a door (tower-lsp's transport, when a client vanishes mid-request) is that client's end only.
    let task = AbortOnDrop(tokio::spawn(services.open(Connection { hello, stream }, lifetime)));
    let ended = task.join().await;
    drop(presence);
    match ended {
        Ok(()) => tracing::info!(?frontend, "a client left"),
        Err(error) => tracing::error!(?frontend, "a door failed, its client is disconnected: {error}"),
    }
}

/// A task that does not outlive whoever waits for it.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl AbortOnDrop {
    async fn join(mut self) -> Result<(), tokio::task::JoinError> {
        (&mut self.0).await
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn answer(stream: &mut UnixStream, error: Option<String>, leaving: bool) -> io::Result<()> {
    let ack = Ack { ok: error.is_none(), version: VERSION.into(), host_pid: std::process::id(), error, leaving };
    stream.write_all(&hello::line(&ack)?).await
}

/// Byte by byte, so that nothing of what follows is taken from the door.
async fn read_hello(read: &mut UnixStream) -> io::Result<Option<Hello>> {
    let mut line = Vec::new();
    loop {
        match read.read_u8().await {
            Ok(b'\n') => return Ok(Some(serde_json::from_slice(&line)?)),
            Ok(byte) if line.len() < hello::MAX_LINE => line.push(byte),
            Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, "it is too long")),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof && line.is_empty() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}
