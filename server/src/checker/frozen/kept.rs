//! The frozen failures that are kept, and those that are expected to connect.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::process::Pid;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::requests::{Connection, Request};
use crate::checker::scratch::Scratch;
use crate::image::runtime::Runtime;
use crate::locked::lock;
use crate::model::frozen::Failure;

/// The frozen failures of an image.
pub(in crate::checker) struct Failures {
    pub(super) runtime: Arc<Runtime>,
    pub(super) state: Mutex<State>,
    last: AtomicU64,
}

#[derive(Default)]
pub(super) struct State {
    /// The socket to which the copies connect, once one was wanted.
    pub(super) listening: Option<Listening>,
    kept: Vec<KeptFailure>,
    /// The channels to the tasks that expect a connection, by process id.
    expected: HashMap<u32, oneshot::Sender<Connection>>,
    /// The connections of copies that no task expects yet, because the image has not reported the
    /// copies.
    arrived: HashMap<u32, Connection>,
    /// True while a task watches the memory of the frozen failures.
    watched: bool,
}

/// The socket, with the task that accepts connections until this value is dropped.
pub(super) struct Listening {
    pub(super) scratch: Arc<Scratch>,
    pub(super) accepting: AbortHandle,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// A frozen failure that is kept.
struct KeptFailure {
    failure: Failure,
    since: Instant,
    asks: mpsc::Sender<Request>,
    end: CancellationToken,
}

/// The receivers of a frozen failure for the task that serves it.
pub(super) struct Served {
    pub(super) asked: mpsc::Receiver<Request>,
    pub(super) connection: oneshot::Receiver<Connection>,
    pub(super) end: CancellationToken,
    /// True when no task watches the memory of frozen failures yet.
    pub(super) is_first: bool,
}

/// The maximum number of requests that may wait for a frozen failure.
const MAX_WAITING_REQUESTS: usize = 8;

impl Failures {
    /// Creates the state of an image without frozen failures.
    pub(in crate::checker) fn new(runtime: Arc<Runtime>) -> Failures {
        Failures { runtime, state: Mutex::default(), last: AtomicU64::new(0) }
    }

    /// Returns the frozen failures that are kept, oldest first.
    pub(in crate::checker) fn list(&self) -> Vec<Failure> {
        let state = lock(&self.state);
        state
            .kept
            .iter()
            .map(|kept| Failure { seconds: kept.since.elapsed().as_secs(), ..kept.failure.clone() })
            .collect()
    }

    /// Ends a frozen failure. Returns false if there is none with this number.
    pub(in crate::checker) fn end(&self, number: u64) -> bool {
        let state = lock(&self.state);
        let found = state.kept.iter().find(|kept| kept.failure.number == number);
        found.inspect(|kept| kept.end.cancel()).is_some()
    }

    /// Returns the number of a new failure.
    pub(super) fn next_number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Adds a failure, whose copy has connected or will connect.
    pub(super) fn add(&self, failure: Failure) -> Served {
        let (asks, asked) = mpsc::channel(MAX_WAITING_REQUESTS);
        let end = CancellationToken::new();
        let (sender, connection) = oneshot::channel();
        let mut state = lock(&self.state);
        match state.arrived.remove(&failure.pid) {
            Some(arrived) => drop(sender.send(arrived)), // its receiver is below
            None => drop(state.expected.insert(failure.pid, sender)),
        }
        state.kept.push(KeptFailure { failure, since: Instant::now(), asks, end: end.clone() });
        let is_first = !std::mem::replace(&mut state.watched, true);
        Served { asked, connection, end, is_first }
    }

    /// Removes a failure that has ended.
    pub(super) fn remove(&self, number: u64, pid: u32) {
        let mut state = lock(&self.state);
        state.expected.remove(&pid);
        state.kept.retain(|kept| kept.failure.number != number);
    }

    /// Returns the sender of requests to the frozen failure of this number.
    pub(super) fn asks(&self, number: u64) -> Option<mpsc::Sender<Request>> {
        let state = lock(&self.state);
        state.kept.iter().find(|kept| kept.failure.number == number).map(|kept| kept.asks.clone())
    }

    /// Ends the oldest frozen failure, or all of them.
    pub(super) fn end_some(&self, all: bool) {
        let state = lock(&self.state);
        let count = if all { state.kept.len() } else { 1 };
        state.kept.iter().take(count).for_each(|kept| kept.end.cancel());
    }

    /// Returns the processes of the frozen failures, oldest first. If there are none, returns
    /// `None`, and the caller must stop watching.
    pub(super) fn processes_to_watch(&self) -> Option<Vec<Pid>> {
        let mut state = lock(&self.state);
        state.watched = !state.kept.is_empty();
        state.watched.then(|| state.kept.iter().filter_map(|kept| pid_of(kept.failure.pid)).collect())
    }

    /// Gives a connection to the task that expects it, or keeps it until a task does.
    pub(super) fn deliver_connection(&self, pid: u32, connection: Connection) {
        let mut state = lock(&self.state);
        match state.expected.remove(&pid) {
            Some(expecting) => drop(expecting.send(connection)), // the task may have ended
            None => drop(state.arrived.insert(pid, connection)),
        }
    }

    /// Closes a connection that no task expects.
    pub(super) fn close_unexpected(&self, pid: u32) {
        drop(lock(&self.state).arrived.remove(&pid));
    }
}

/// Returns the process id as the system's type.
pub(super) fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}
