//! A client's calls in the order in which they arrived, so that an interrupt reaches each call that
//! was sent before it. The actor may not know such a call yet, while the call waits for a person's
//! approval or for the image, or is between two of its jobs.

use std::future::Future;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::event::Event;
use super::{ClientId, Session, settle};
use crate::locked::lock;
use crate::model::image::ImageError;

/// The answer to a call that an interrupt ended before any of its work.
const NOT_BEGUN: &str = "Interrupted before it began.";
/// The answer to a call that an interrupt ended between two of its jobs.
const BETWEEN: &str = "Interrupted between two of its steps; what it had done in the image is kept.";
/// The error of a step that an interrupt prevented, in a call that still reports its earlier steps.
pub(super) const NO_FURTHER: &str = "Interrupted before this step; what was done before is kept.";

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

/// The state of a call.
#[derive(Debug, Default)]
pub(super) struct Progress {
    state: Mutex<State>,
    /// Cancelled when an interrupt ends the call itself, not one of its jobs.
    ended: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the call's jobs that the actor has not answered.
    jobs: usize,
    /// True if the call may have changed something, by a job that was sent to the actor or by
    /// itself.
    begun: bool,
    /// True if the call has made a lasting change and only its report is left. Another job of the
    /// call makes it false again.
    done: bool,
    interrupted: bool,
    /// True if the call had a further job after it was interrupted.
    refused: bool,
}

/// An interrupt that has taken effect. The number of calls and jobs that it reached comes later.
#[derive(Debug)]
pub(crate) struct Interrupt {
    /// The number of interrupted calls that had no job.
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

    /// Notes a call. An interrupt reaches the call from now on.
    pub(crate) fn begin(&self) -> Running {
        let progress = Arc::new(Progress::default());
        let mut active = lock(&self.active);
        active.retain(|call| call.strong_count() > 0);
        active.push(Arc::downgrade(&progress));
        Running(progress)
    }

    /// Interrupts the calls that were noted before, and the client's jobs, or the jobs of all
    /// clients if `everything` is true.
    pub(crate) fn interrupt(&self, everything: bool) -> Interrupt {
        let calls: Vec<Arc<Progress>> = lock(&self.active).iter().filter_map(Weak::upgrade).collect();
        let waiting = calls.iter().filter(|call| call.interrupt()).count();
        // The actor receives the calls' jobs before this event.
        let client = self.client;
        Interrupt {
            waiting,
            jobs: self.session.ask(|reply| Event::Interrupt { client, everything, start: waiting == 0, reply }),
        }
    }
}

impl Running {
    /// Does the work of the call. If an interrupt has ended the call, fails with the message for
    /// the client.
    pub(crate) async fn work<T>(&self, work: impl Future<Output = T>) -> Result<T, &'static str> {
        if !self.0.ended.is_cancelled() {
            tokio::select! {
                // A call that already has its answer is not interrupted.
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
    /// Interrupts the call. Returns true if the call had no job that the session interrupts. A call
    /// that has only its report to make is not interrupted, because the client would not know what
    /// it did.
    fn interrupt(&self) -> bool {
        let mut state = lock(&self.state);
        let first = !std::mem::replace(&mut state.interrupted, true);
        let waits = state.jobs == 0 && !state.done;
        if waits {
            self.ended.cancel();
        }
        first && waits
    }
}

/// A job of the current call. The value exists until the job is answered or dropped.
pub(super) enum Job {
    /// The actor has the job. `None` if the job belongs to no call.
    Sent(Option<Arc<Progress>>),
    /// The actor does not have the job, because the call was interrupted before.
    Refused {
        /// True if the call still has to report its earlier jobs.
        reports: bool,
    },
}

impl Job {
    /// Ends a job that made a lasting change. An interrupt lets the call make its report from now
    /// on.
    pub(super) fn finish(self) {
        if let Job::Sent(Some(call)) = &self {
            lock(&call.state).done = true;
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Job::Sent(Some(call)) = self {
            lock(&call.state).jobs -= 1;
        }
    }
}

/// Sends a job to the actor, as one of the current call. Sends nothing if the call has been
/// interrupted: the call ends now, or goes on to report what it has done.
pub(super) fn job(send: impl FnOnce()) -> Job {
    let Ok(call) = CALL.try_with(Clone::clone) else {
        send();
        return Job::Sent(None);
    };
    let mut state = lock(&call.state);
    if state.interrupted {
        if !state.done {
            state.refused = true;
            call.ended.cancel();
        }
        return Job::Refused { reports: state.done };
    }
    send();
    state.jobs += 1;
    (state.begun, state.done) = (true, false);
    drop(state);
    Job::Sent(Some(call))
}

/// Notes that the current call now makes a lasting change without a job.
pub(super) fn note_lasting_change() {
    if let Ok(call) = CALL.try_with(Clone::clone) {
        let mut state = lock(&call.state);
        (state.begun, state.done) = (true, true);
    }
}

/// Notes that the jobs of the current call so far changed nothing.
pub(super) fn note_no_change() {
    if let Ok(call) = CALL.try_with(Clone::clone) {
        lock(&call.state).begun = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn within(call: &Running, work: impl FnOnce()) -> Result<(), &'static str> {
        call.work(async {
            work();
            tokio::task::yield_now().await;
        })
        .await
    }

    #[tokio::test]
    async fn a_call_that_has_only_its_report_to_make_makes_it() {
        let call = Running(Arc::default());
        let reported = within(&call, || {
            job(|| {}).finish();
            assert!(!call.0.interrupt(), "nothing was left to interrupt");
        });
        assert_eq!(reported.await, Ok(()));
        // A change without a job, such as writing a file, counts as well.
        let call = Running(Arc::default());
        let reported = within(&call, || {
            note_lasting_change();
            call.0.interrupt();
            assert!(matches!(job(|| {}), Job::Refused { reports: true }), "what follows is refused");
        });
        assert_eq!(reported.await, Ok(()));
    }

    #[tokio::test]
    async fn a_call_between_two_jobs_is_ended() {
        let call = Running(Arc::default());
        let ended = within(&call, || {
            drop(job(|| {}));
            assert!(call.0.interrupt());
        });
        assert_eq!(ended.await, Err(BETWEEN));
        let call = Running(Arc::default());
        let ended = within(&call, || {
            job(|| {}).finish();
            drop(job(|| {}));
            assert!(call.0.interrupt(), "a further job has begun since");
        });
        assert_eq!(ended.await, Err(BETWEEN));
    }
}
