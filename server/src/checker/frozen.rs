//! Frozen failures: copies of the image that failing evaluations leave behind, in which their
//! stacks live on (docs/wire.md, "A frozen failure"). Each connects to the host by itself.

mod talk;
mod watch;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use self::talk::Ask;
use super::Shared;
use super::evaluation::numbers_are_bounded;
use super::report::LINE_LIMIT;
use super::scratch::{self, Scratch};
use crate::config::Copies;
use crate::image::api::{Freeze, Operation};
use crate::image::lines::Lines;
use crate::image::link::lock;
use crate::image::runtime::Phase;
use crate::model::evaluation::EvalError;
use crate::model::frozen::{Failure, Frozen};
use crate::model::image::ImageError;
use crate::steady::{sleep, timeout};

/// Seconds for which a frozen failure is kept.
const KEPT: f64 = 600.0;
/// Seconds that an attempt may take.
const ATTEMPT: f64 = 20.0;
/// The time limit of a frozen failure to connect, and for the outcome that tells of it.
const CONNECT: Duration = Duration::from_secs(10);
/// The pause before connections are accepted again after an error.
const AGAIN: Duration = Duration::from_secs(1);
/// The requests that may wait for a frozen failure.
const WAITING: usize = 8;

/// The frozen failures of an image.
#[derive(Default)]
pub(super) struct Failures {
    state: Mutex<State>,
    last: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The socket to which the copies connect, once one was wanted.
    listening: Option<Listening>,
    kept: Vec<Kept>,
    /// Copies that are expected to connect, and those that have before they were told of.
    expected: HashMap<u32, oneshot::Sender<Connection>>,
    arrived: HashMap<u32, Connection>,
    /// True while their memory is watched.
    watched: bool,
}

struct Listening {
    scratch: Arc<Scratch>,
    accepting: AbortHandle,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A frozen failure that is kept.
struct Kept {
    failure: Failure,
    since: Instant,
    asks: mpsc::Sender<Ask>,
    end: CancellationToken,
}

/// The connection of a frozen failure that has said who it is.
struct Connection {
    lines: Lines<OwnedReadHalf>,
    orders: OwnedWriteHalf,
}

/// The first line of a frozen failure.
#[derive(Deserialize)]
struct Hello {
    token: String,
    pid: u32,
}

fn gone(number: u64) -> ImageError {
    let message = format!(
        "There is no frozen failure {number} (any more): the newest are kept for {} minutes, and only while there is memory for them. \
         The action `stops` lists those that there are; evaluate again for a new one.",
        KEPT / 60.0
    );
    ImageError::Refused { kind: "stale".into(), message }
}

impl Failures {
    /// Returns those that are kept, oldest first.
    pub(super) fn list(&self) -> Vec<Failure> {
        let state = lock(&self.state);
        state
            .kept
            .iter()
            .map(|kept| Failure { seconds: kept.since.elapsed().as_secs(), ..kept.failure.clone() })
            .collect()
    }

    /// Ends one; returns false if there is none of this number.
    pub(super) fn end(&self, number: u64) -> bool {
        let state = lock(&self.state);
        let found = state.kept.iter().find(|kept| kept.failure.number == number);
        found.inspect(|kept| kept.end.cancel()).is_some()
    }

    /// Ends the oldest, or all.
    fn end_some(&self, all: bool) {
        let state = lock(&self.state);
        let count = if all { state.kept.len() } else { 1 };
        state.kept.iter().take(count).for_each(|kept| kept.end.cancel());
    }

    /// Returns the processes, oldest first; `None`: there are none, and they are watched no longer.
    fn watched(&self) -> Option<Vec<Pid>> {
        let mut state = lock(&self.state);
        state.watched = !state.kept.is_empty();
        state.watched.then(|| state.kept.iter().filter_map(|kept| pid_of(kept.failure.pid)).collect())
    }

    fn remove(&self, number: u64) {
        lock(&self.state).kept.retain(|kept| kept.failure.number != number);
    }

    /// Gives a connection to whoever expects it, or has it wait for a moment.
    fn arrived(&self, pid: u32, connection: Connection) {
        let mut state = lock(&self.state);
        match state.expected.remove(&pid) {
            Some(expecting) => drop(expecting.send(connection)), // whoever expected it may be gone
            None => drop(state.arrived.insert(pid, connection)),
        }
    }
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Returns how an error is to be frozen; see [`super::Checker::freeze`].
pub(super) fn freeze(shared: &Arc<Shared>, keep: usize) -> Option<Freeze> {
    let config = shared.runtime.config();
    if keep == 0 || config.copies == Copies::Process {
        return None;
    }
    let mut state = lock(&shared.failures.state);
    if state.listening.is_none() {
        match Scratch::new(&shared.runtime.private, scratch::FAILURES) {
            Ok(scratch) => {
                let scratch = Arc::new(scratch);
                let accepting = shared.runtime.handle.spawn(accept(Arc::downgrade(shared), scratch.clone()));
                state.listening = Some(Listening { scratch, accepting: accepting.abort_handle() });
            }
            Err(error) => {
                tracing::warn!(%error, "failures are not frozen: there is no socket for them");
                return None;
            }
        }
    }
    let scratch = &state.listening.as_ref()?.scratch;
    let read = std::iter::once(shared.runtime.workspace.clone()).chain(config.read.iter().cloned());
    Some(Freeze {
        socket: scratch.socket().to_owned(),
        token: scratch.token.clone(),
        keep,
        seconds: KEPT,
        read: read.collect(),
    })
}

/// Accepts the connections of frozen failures until the host ends.
async fn accept(shared: Weak<Shared>, scratch: Arc<Scratch>) {
    loop {
        match scratch.accept_any().await {
            Ok((stream, pid)) => drop(tokio::spawn(greet(shared.clone(), scratch.token.clone(), stream, pid))),
            Err(error) => {
                tracing::warn!(%error, "a frozen failure could not connect");
                sleep(AGAIN).await;
            }
        }
    }
}

/// Reads the first line of a connection. One that nobody tells of is closed again.
async fn greet(shared: Weak<Shared>, token: String, stream: UnixStream, pid: u32) {
    let (read, orders) = stream.into_split();
    let mut lines = Lines::new(read, LINE_LIMIT);
    let said = match timeout(CONNECT, lines.next()).await {
        Ok(Ok(Some(line))) => serde_json::from_slice::<Hello>(line).ok(),
        _ => None,
    };
    if !said.is_some_and(|said| said.token == token && said.pid == pid) {
        tracing::warn!(pid, "another process connected to the socket of frozen failures");
        return;
    }
    let Some(strong) = shared.upgrade() else { return };
    strong.failures.arrived(pid, Connection { lines, orders });
    drop(strong);
    sleep(CONNECT).await;
    if let Some(shared) = shared.upgrade() {
        drop(lock(&shared.failures.state).arrived.remove(&pid));
    }
}

/// Keeps a frozen failure; see [`super::Checker::keep_failure`].
pub(super) fn keep(
    shared: &Arc<Shared>,
    frozen: &Frozen,
    session: &str,
    error: Option<&EvalError>,
    memory: u64,
) -> u64 {
    let Phase::Ready(instance) = shared.runtime.phase.borrow().clone() else { return 0 };
    let number = shared.failures.last.fetch_add(1, Ordering::Relaxed) + 1;
    let (asks, asked) = mpsc::channel(WAITING);
    let end = CancellationToken::new();
    let failure = Failure {
        number,
        pid: frozen.pid,
        session: session.to_owned(),
        kind: error.map(|error| error.kind.clone()).unwrap_or_default(),
        message: error.map(|error| error.message.clone()).unwrap_or_default(),
        restarts: frozen.restarts.clone(),
        seconds: 0,
    };
    let (sender, connection) = oneshot::channel();
    let is_watched = {
        let mut state = lock(&shared.failures.state);
        match state.arrived.remove(&frozen.pid) {
            Some(arrived) => drop(sender.send(arrived)), // its receiver is below
            None => drop(state.expected.insert(frozen.pid, sender)),
        }
        state.kept.push(Kept { failure, since: Instant::now(), asks, end: end.clone() });
        std::mem::replace(&mut state.watched, true)
    };
    let pid = frozen.pid;
    let kept = {
        let shared = shared.clone();
        async move {
            let talking = talk::run(&instance, pid, connection, asked, memory);
            tokio::select! {
                () = talking => {}
                () = end.cancelled() => {}
                () = instance.link.closed() => {}
            }
            lock(&shared.failures.state).expected.remove(&pid);
            shared.failures.remove(number);
        }
    };
    shared.runtime.tasks.spawn_on(kept, &shared.runtime.handle);
    if !is_watched {
        shared.runtime.handle.spawn(watch::run(Arc::downgrade(shared)));
    }
    number
}

/// Asks a frozen failure; see [`super::Checker::ask_failure`].
pub(super) async fn ask<O: Operation, A: DeserializeOwned>(
    shared: &Shared,
    number: u64,
    operation: &O,
) -> Result<A, ImageError> {
    let unreadable = |error: serde_json::Error| {
        ImageError::Unavailable(format!("The answer of the frozen failure means nothing: {error}"))
    };
    let params = serde_json::to_value(operation).map_err(unreadable)?;
    let asks = {
        let state = lock(&shared.failures.state);
        let kept = state.kept.iter().find(|kept| kept.failure.number == number);
        kept.map(|kept| kept.asks.clone()).ok_or_else(|| gone(number))?
    };
    let (reply, answer) = oneshot::channel();
    asks.send(Ask { op: O::NAME, params, seconds: ATTEMPT, reply }).await.map_err(|_| gone(number))?;
    let answer = answer.await.map_err(|_| gone(number))??;
    if !numbers_are_bounded(&answer) {
        return Err(ImageError::Unavailable("A number in the answer of the frozen failure is out of range.".into()));
    }
    serde_json::from_value(answer).map_err(unreadable)
}
