//! The lifetime of a host. After its election a host listens, serves connections, and removes its
//! files when it leaves.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::VERSION;
use super::elected::{Elected, State};
use super::hello::{self, Ack, Hello};
use super::memory;
use super::runtime_dir::RuntimeDir;
use crate::fault::{self, Call};
use crate::framing::first_line;
use crate::locked::lock;
use crate::session::OpenFolders;

/// The time limit for a connection's hello.
const HELLO_WAIT: Duration = Duration::from_secs(10);
/// The interval between checks of the runtime directory.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The minimum time that a new host waits for the client that started it.
const FIRST_CLIENT_WAIT: Duration = Duration::from_secs(10);
/// The number of checks of the runtime directory after a client has left at which memory is
/// returned to the system. At the first check, the session may still be removing the client's data.
const MEMORY_RELEASE_CHECKS: u32 = 2;

/// A connection after its hello.
#[derive(Debug)]
pub struct Connection {
    /// The client's hello.
    pub hello: Hello,
    /// The connection, for the front end's own protocol from here on.
    pub stream: UnixStream,
    /// The id of the client's process, as reported by the kernel.
    pub process: Option<u32>,
}

/// The services that a host offers on its connections.
pub trait Services: Send + Sync + 'static {
    /// Serves one connection until it ends.
    fn open(&self, connection: Connection, lifetime: Arc<Lifetime>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    /// Reports the state of the host's runtime directory: the reason why it is missing, and
    /// whether it was just created again.
    fn directory(&self, trouble: Option<String>, restored: bool);
    /// Returns the folders that editors have open.
    fn open_folders(&self) -> OpenFolders;
    /// Reports folders of editors that another host serves, or with `None` that there are none.
    fn report_separate_folders(&self, message: Option<String>);
    /// Ends everything that outlives connections, within a time limit of its own.
    fn close(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The connected clients, and the request to leave.
#[derive(Debug)]
pub struct Lifetime {
    clients: watch::Sender<Clients>,
    stop: Notify,
    held: Mutex<Vec<UnixStream>>,
}

/// The connected clients of a host.
#[derive(Debug, Clone, Copy, Default)]
struct Clients {
    count: usize,
    /// True once no further client is accepted.
    closed: bool,
}

impl Lifetime {
    fn new() -> Lifetime {
        Lifetime { clients: watch::Sender::default(), stop: Notify::new(), held: Mutex::default() }
    }

    /// Returns the number of connected clients: editors, agents, running commands.
    pub fn clients(&self) -> usize {
        self.clients.borrow().count
    }

    /// Refuses further clients from now on, unless a client is connected. Returns true if further
    /// clients are refused.
    fn close_if_empty(&self) -> bool {
        self.clients.send_modify(|clients| clients.closed |= clients.count == 0);
        self.clients.borrow().closed
    }

    /// Ends the host now.
    pub fn stop(&self) {
        self.stop.notify_one();
    }

    /// Keeps a connection open until this process has ended, which the client sees as the end of
    /// file.
    pub fn hold(&self, stream: UnixStream) {
        lock(&self.held).push(stream);
    }

    /// Counts a client for as long as the guard lives. Returns `None` if this host is leaving.
    pub fn enter(self: &Arc<Self>) -> Option<Presence> {
        let entered = self.clients.send_if_modified(|clients| {
            clients.count += usize::from(!clients.closed);
            !clients.closed
        });
        entered.then(|| Presence(self.clone()))
    }
}

/// A connected client.
#[derive(Debug)]
pub struct Presence(Arc<Lifetime>);

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.clients.send_modify(|clients| clients.count -= 1);
    }
}

/// Serves until asked to leave, or until there has been no client for `linger`, if given. Must run
/// within a Tokio runtime.
///
/// # Errors
/// Fails when the socket or the signal handlers cannot be set up. Everything is closed and
/// removed in any case.
pub async fn serve(mut elected: Elected, services: Arc<dyn Services>, linger: Option<Duration>) -> io::Result<()> {
    let lifetime = Arc::new(Lifetime::new());
    let result = accept(&mut elected, &services, &lifetime, linger).await;
    leave(elected, services).await;
    // Closes the held connections. Clients that wait for this host to end see the end of file only
    // now.
    drop(lifetime);
    result
}

async fn accept(
    elected: &mut Elected,
    services: &Arc<dyn Services>,
    lifetime: &Arc<Lifetime>,
    linger: Option<Duration>,
) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut listener = UnixListener::from_std(elected.listener()?)?;
    let mut poll = tokio::time::interval(POLL_INTERVAL);
    let resident = memory::Resident::default();
    poll.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    let mut clients = lifetime.clients.subscribe();
    let mut folders = services.open_folders();
    let mut connections = JoinSet::new();
    let (mut present, mut release_checks_left) = (0, 0);
    let mut deadline = linger.map(|linger| Instant::now() + linger.max(FIRST_CLIENT_WAIT));
    let (mut place, mut ordered) = (State::InPlace, true);
    loop {
        let idle_timeout = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = listener.accept() => match accepted.and_then(|accepted| fault::point(Call::Open).map(|()| accepted)) {
                Ok((stream, _)) => {
                    connections.spawn(receive(stream, services.clone(), lifetime.clone()));
                }
                Err(error) => {
                    // Out of descriptors: the present clients continue, and the next attempt may
                    // succeed.
                    tracing::error!("a connection could not be accepted: {error}");
                    crate::steady::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(ended) = connections.join_next() => if let Err(error) = ended && error.is_panic() {
                tracing::error!("a connection ended in a panic, its client is disconnected: {error}");
            },
            changed = clients.changed() => {
                // The sender lives as long as `lifetime`.
                let now = clients.borrow_and_update().count;
                if now < present {
                    release_checks_left = MEMORY_RELEASE_CHECKS;
                }
                present = now;
                let here = changed.is_ok() && now > 0;
                deadline = if here { None } else { linger.map(|linger| Instant::now() + linger) };
            }
            () = folders.changed() => record_folders(elected, services, &mut folders).await,
            _ = poll.tick() => {
                resident.release_unused(release_checks_left > 0);
                release_checks_left = release_checks_left.saturating_sub(1);
                place = look_after(elected, services, &mut listener).await?;
                if place == State::Taken {
                    tracing::error!("the runtime directory was removed, and another host or another user has its place: leaving");
                    break;
                }
            },
            () = idle_timeout => {
                if lifetime.close_if_empty() {
                    tracing::info!("nobody has been here for a while: leaving");
                    break;
                }
                // A client came just before the host closed.
                deadline = None;
            }
            // Programs that end others to free memory send these signals, too. Editors need another
            // host then.
            _ = terminate.recv() => { tracing::info!("SIGTERM: leaving"); ordered = false; break }
            _ = hangup.recv() => { tracing::info!("SIGHUP: leaving"); ordered = false; break }
            _ = interrupt.recv() => { tracing::info!("SIGINT: leaving"); break }
            () = lifetime.stop.notified() => { tracing::info!("told to leave"); break }
        }
    }
    // Must be done before the bridges see their connections end: they do not replace a host that
    // leaves in order.
    elected.retract(ordered && place != State::Taken);
    connections.shutdown().await;
    Ok(())
}

/// Records the folders of the editors, and reports those that have other hosts.
async fn record_folders(elected: &mut Elected, services: &Arc<dyn Services>, folders: &mut OpenFolders) {
    match elected.record_folders(folders.now()).await {
        Ok(recorded) => {
            let apart = tokio::task::spawn_blocking(move || super::folders::hosts_of_folders_message(&recorded));
            services.report_separate_folders(apart.await.unwrap_or_default());
        }
        Err(error) => tracing::warn!("the folders of editors could not be recorded: {error}"),
    }
}

/// Looks after the runtime directory, and listens anew when it had to be made again. Returns the
/// directory's state; one that cannot be checked counts as in place.
///
/// # Errors
/// An I/O error of the new socket.
async fn look_after(
    elected: &mut Elected,
    services: &Arc<dyn Services>,
    listener: &mut UnixListener,
) -> io::Result<State> {
    let state = match elected.look_after().await {
        Ok(state) => state,
        Err(error) => {
            services.directory(Some(not_looked_after(elected.runtime(), &error)), false);
            return Ok(State::InPlace);
        }
    };
    match state {
        State::InPlace => services.directory(None, false),
        State::Restored => {
            *listener = UnixListener::from_std(elected.listener()?)?;
            tracing::warn!("the runtime directory was removed by somebody else: it was made again");
            services.directory(None, true);
        }
        State::Taken => {}
    }
    Ok(state)
}

/// Returns a message about the reason why the host's directory could not be checked or restored.
fn not_looked_after(runtime: &RuntimeDir, error: &io::Error) -> String {
    let path = runtime.path().display();
    match runtime.path().symlink_metadata() {
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
            format!("the runtime directory {path} was removed and cannot be made again: {error}")
        }
        _ => format!("the runtime directory {path} cannot be checked, and new clients may not be served: {error}"),
    }
}

/// Ends a host that was elected. Removes the socket first, so that the next client starts a new
/// host, which waits for the locks of this one.
pub async fn leave(elected: Elected, services: Arc<dyn Services>) {
    let runtime = elected.runtime().clone();
    let start = tokio::task::spawn_blocking(move || runtime.lock_start());
    // A process that finds this host alive holds the start lock only briefly.
    let start = match crate::steady::timeout(Duration::from_secs(5), start).await {
        Ok(Ok(Ok(lock))) => Some(lock),
        other => {
            tracing::warn!("leaving without the start lock: {other:?}");
            None
        }
    };
    let elected = elected.close();
    services.close().await;
    elected.remove();
    drop(start);
}

/// Serves one connection: checks the user and the hello, then calls the front end.
async fn receive(mut stream: UnixStream, services: Arc<dyn Services>, lifetime: Arc<Lifetime>) {
    let ours = rustix::process::getuid().as_raw();
    let process = match stream.peer_cred() {
        Ok(peer) if peer.uid() == ours => peer.pid().and_then(|process| u32::try_from(process).ok()),
        Ok(peer) => return tracing::warn!("a connection of user {} was refused", peer.uid()),
        Err(error) => return tracing::warn!("a connection without credentials was refused: {error}"),
    };
    let hello = match crate::steady::timeout(HELLO_WAIT, read_hello(&mut stream)).await {
        Ok(Ok(Some(hello))) => hello,
        // The process only checked whether a host runs.
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
    // Requests for any version are not logged: some only check, repeatedly, whether this host
    // answers.
    if !hello.any_version {
        tracing::info!(frontend = ?hello.frontend, cwd = %hello.cwd.display(), "a client came");
    }
    if hello.version != VERSION && !hello.any_version {
        if lifetime.close_if_empty() {
            leave_to(stream, &lifetime, "another version comes: leaving").await;
            return lifetime.stop();
        }
        let text = format!(
            "the Consort host of this workspace is version {VERSION} and this client is {}; run `consort stop` in the workspace (what is \
             defined only in its image is lost) and restart your editors and agents",
            hello.version
        );
        let _ = answer(&mut stream, Some(text), false).await;
        return;
    }
    // `status` and `stop` do not count as clients.
    let presence = if hello.any_version {
        None
    } else {
        match lifetime.enter() {
            Some(presence) => Some(presence),
            None => return leave_to(stream, &lifetime, "nobody was here for a while: leaving").await,
        }
    };
    if let Err(error) = answer(&mut stream, None, false).await {
        return tracing::info!("a client left before its connection was served: {error}");
    }
    let (frontend, any_version) = (hello.frontend, hello.any_version);
    // The front end runs in a task of its own, so that a panic (as of tower-lsp's transport, when a
    // client vanishes during a request) disconnects only its client.
    let task = AbortOnDrop(tokio::spawn(services.open(Connection { hello, stream, process }, lifetime)));
    let ended = task.join().await;
    drop(presence);
    match ended {
        Ok(()) if any_version => {}
        Ok(()) => tracing::info!(?frontend, "a client left"),
        Err(error) => tracing::error!(?frontend, "a connection failed, its client is disconnected: {error}"),
    }
}

/// Tells a client that this host leaves, and that the client is to start the next one. The client
/// waits until this process has ended.
async fn leave_to(mut stream: UnixStream, lifetime: &Lifetime, why: &str) {
    if answer(&mut stream, Some(why.into()), true).await.is_ok() {
        lifetime.hold(stream);
    }
}

/// A task that is aborted when its waiter is dropped.
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
    fault::point(Call::Write)?;
    stream.write_all(&hello::line(&ack)?).await
}

async fn read_hello(read: &mut UnixStream) -> io::Result<Option<Hello>> {
    let line = first_line::read(read, hello::MAX_LINE).await?;
    Ok(line.map(|line| serde_json::from_slice(&line)).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_leaves_takes_no_further_client() {
        let lifetime = Arc::new(Lifetime::new());
        let client = lifetime.enter();
        assert!(client.is_some() && !lifetime.close_if_empty());
        let second = lifetime.enter();
        assert!(second.is_some() && lifetime.clients() == 2);
        drop((client, second));
        assert!(lifetime.close_if_empty());
        assert!(lifetime.enter().is_none() && lifetime.clients() == 0);
    }
}
