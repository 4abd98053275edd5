//! The calls of a client in the order in which they arrived, so that an interrupt reaches each call
//! that was sent before it: also one that is not yet known to the actor, because it waits for a
//! person's approval, for the image, or between two of its jobs.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::event::Event;
use super::{ClientId, Session, settle};
use crate::model::image::ImageError;

/// The answer to a call that an interrupt ended before any of its work.
const NOT_BEGUN: &str = "Interrupted before it began.";
/// The answer to a call that an interrupt ended between two of its jobs.
const BETWEEN: &str = "Interrupted between two of its steps; what it had done in the image is kept.";

tokio::task_local! {
    static CALL: Arc<Progress>;
}

/// A client's calls in progress that run code.
#[derive(Debug)]
pub(crate) struct Calls {
    session: Session,
    client: ClientId,
    active: Mutex<Vec<Weak<Progress>>>,
}

/// A call, from its arrival until it is dropped.
#[derive(Debug)]
pub(crate) struct Running(Arc<Progress>);

#[derive(Debug, Default)]
struct Progress {
    state: Mutex<State>,
    /// Cancelled when an interrupt ends the call itself, not one of its jobs.
    ended: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the call's jobs that the actor has and that are not answered.
    jobs: usize,
    /// The actor has had a job of this call that may have left something behind.
    begun: bool,
    interrupted: bool,
    /// The call had a further job after it was interrupted.
    refused: bool,
}

/// An interrupt that has taken effect; the number of what it reached comes later.
#[derive(Debug)]
pub(crate) struct Interrupt {
    /// The calls that had no job.
    waiting: usize,
    jobs: oneshot::Receiver<Result<usize, ImageError>>,
}

impl Interrupt {
    /// Returns the number of calls and jobs that were interrupted.
    pub(crate) async fn count(self) -> Result<usize, ImageError> {
        Ok(self.waiting + settle(self.jobs).await?)
    }
}

impl Calls {
    pub(crate) fn new(session: Session, client: ClientId) -> Calls {
        Calls { session, client, active: Mutex::default() }
    }

    /// Notes a call. From now on an interrupt reaches it.
    pub(crate) fn begin(&self) -> Running {
        let progress = Arc::new(Progress::default());
        let mut active = lock(&self.active);
        active.retain(|call| call.strong_count() > 0);
        active.push(Arc::downgrade(&progress));
        Running(progress)
    }

    /// Interrupts the calls that were noted before, and the client's jobs; with `everything`, the
    /// jobs of all clients.
    pub(crate) fn interrupt(&self, everything: bool) -> Interrupt {
        let calls: Vec<Arc<Progress>> = lock(&self.active).iter().filter_map(Weak::upgrade).collect();
        let waiting = calls.iter().filter(|call| call.interrupt()).count();
        // Jobs that the calls have sent are before this event.
        let client = self.client;
        Interrupt { waiting, jobs: self.session.ask(|reply| Event::Interrupt { client, everything, reply }) }
    }
}

impl Running {
    /// Does the work of the call. Fails with the message for the client when an interrupt has ended
    /// the call.
    pub(crate) async fn work<T>(&self, work: impl Future<Output = T>) -> Result<T, &'static str> {
        if !self.0.ended.is_cancelled() {
            tokio::select! {
                // A call that has its answer is not interrupted.
                biased;
                result = CALL.scope(self.0.clone(), work) => if !lock(&self.0.state).refused {
                    return Ok(result);
                },
                () = self.0.ended.cancelled() => {}
            }
        }
        Err(if lock(&self.0.state).begun { BETWEEN } else { NOT_BEGUN })
    }
}

impl Progress {
    /// Interrupts the call; returns true if it had no job that the session interrupts.
    fn interrupt(&self) -> bool {
        let mut state = lock(&self.state);
        let first = !std::mem::replace(&mut state.interrupted, true);
        let waits = state.jobs == 0;
        if waits {
            self.ended.cancel();
        }
        first && waits
    }
}

/// A job of the current call, until it is answered or dropped.
pub(super) struct Job(Option<Arc<Progress>>);

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(call) = &self.0 {
            lock(&call.state).jobs -= 1;
        }
    }
}

/// Sends a job to the actor, as one of the current call. Does nothing for a call that has been
/// interrupted, which ends now.
pub(super) fn job(send: impl FnOnce()) -> Job {
    let Ok(call) = CALL.try_with(Clone::clone) else {
        send();
        return Job(None);
    };
    let mut state = lock(&call.state);
    if state.interrupted {
        state.refused = true;
        call.ended.cancel();
        return Job(None);
    }
    send();
    state.jobs += 1;
    state.begun = true;
    drop(state);
    Job(Some(call))
}

/// Notes that the jobs of the current call so far left nothing behind.
pub(super) fn left_nothing() {
    if let Ok(call) = CALL.try_with(Clone::clone) {
        lock(&call.state).begun = false;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
