//! The work in progress: a task for each job. A job is cancelled when its caller is gone. `consort
//! status` lists the jobs.

use std::collections::HashMap;
use std::future::Future;
use std::time::Instant;

use tokio::sync::oneshot;
use tokio::task::{AbortHandle, Id, JoinSet};

use super::ClientId;
use super::documents::Key;
use crate::model::check::CheckReport;
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageError;

/// A unit of work.
#[derive(Debug)]
pub(super) struct Job {
    /// The client. `None` stands for the session itself.
    pub(super) client: Option<ClientId>,
    pub(super) kind: Kind,
    /// A description in one line.
    pub(super) what: String,
    /// The start time.
    pub(super) since: Instant,
    /// The sender that ends the job with an answer, if the job can be ended so. A job that is
    /// aborted instead gives its caller no answer.
    pub(super) stop: Option<oneshot::Sender<()>>,
}

/// The kind of a job, which decides what the session does at the job's end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// An evaluation, in the client's session with this number. At its end, the client's next
    /// evaluation begins, and documents are checked again.
    Evaluation(usize),
    /// A load or a restart. At its end, documents are checked again.
    LoadOrRestart,
    /// The check of an open document.
    Document(Key),
    /// A question to a person, with its number.
    Approval(u64),
    /// A status request. The status lists no jobs of this kind.
    Status,
    /// Any other job.
    Other,
}

impl Job {
    pub(super) fn new(client: ClientId, kind: Kind, what: impl Into<String>) -> Job {
        Job { client: Some(client), kind, what: what.into(), since: Instant::now(), stop: None }
    }
}

/// A job that has ended.
#[derive(Debug)]
pub(super) struct Finished {
    /// The id of the job's task.
    pub(super) id: Id,
    pub(super) job: Job,
    /// The result of the check of a document. `None` for other jobs, and for a cancelled check.
    pub(super) report: Option<Report>,
    /// The answer to the caller, if the session must send it after it has handled the job's end.
    pub(super) answer: Option<Answer>,
}

/// An answer to a caller, ready to be sent.
pub(super) struct Answer(Box<dyn FnOnce() + Send>);

impl Answer {
    /// Sends the answer. The caller may be gone.
    pub(super) fn send(self) {
        (self.0)();
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Answer")
    }
}

/// The result of a job's task.
type Outcome = (Option<Report>, Option<Answer>);

/// The result of the check of a document.
pub(super) type Report = Result<CheckReport, ImageError>;

/// All jobs. Dropping the value cancels them all.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    tasks: JoinSet<Outcome>,
    running: HashMap<Id, (Job, AbortHandle)>,
}

impl Jobs {
    /// Starts work and sends the result to a caller. If the caller is gone, the work is dropped,
    /// which interrupts it in the image. If the work may change the image, the session is notified
    /// before the caller. A caller that has received the answer thus finds no outdated diagnostics.
    pub(super) fn start<T: Send + 'static>(
        &mut self,
        job: Job,
        mut reply: oneshot::Sender<T>,
        work: impl Future<Output = T> + Send + 'static,
    ) {
        let changes = matches!(job.kind, Kind::Evaluation(_) | Kind::LoadOrRestart);
        self.spawn(job, async move {
            let result = tokio::select! {
                () = reply.closed() => return (None, None),
                result = work => result,
            };
            // The caller may be gone by now.
            let answer = Answer(Box::new(move || drop(reply.send(result))));
            if changes {
                return (None, Some(answer));
            }
            answer.send();
            (None, None)
        });
    }

    /// Starts work as [`Jobs::start`] does. [`Jobs::stop`] ends the work with an answer.
    pub(super) fn start_stoppable<T: Send + 'static>(
        &mut self,
        mut job: Job,
        reply: oneshot::Sender<Result<T, ImageError>>,
        work: impl Future<Output = Result<T, ImageError>> + Send + 'static,
    ) {
        let (stop, stopped) = oneshot::channel();
        job.stop = Some(stop);
        self.start(job, reply, async move {
            tokio::select! {
                biased;
                Ok(()) = stopped => {
                    let message = "The work was interrupted, and nothing of it is kept.".into();
                    Err(ImageError::Refused { kind: ErrorKind::INTERRUPTED, message })
                }
                result = work => result,
            }
        });
    }

    /// Starts the check of a document.
    pub(super) fn start_check(&mut self, job: Job, work: impl Future<Output = Report> + Send + 'static) -> AbortHandle {
        self.spawn(job, async move { (Some(work.await), None) })
    }

    fn spawn(&mut self, job: Job, work: impl Future<Output = Outcome> + Send + 'static) -> AbortHandle {
        let abort = self.tasks.spawn(work);
        self.running.insert(abort.id(), (job, abort.clone()));
        abort
    }

    /// Waits for the next job that ends, and returns it. Waits forever if no job is in progress.
    pub(super) async fn next(&mut self) -> Finished {
        loop {
            let (id, (report, answer)) = match self.tasks.join_next_with_id().await {
                Some(Ok(done)) => done,
                Some(Err(error)) => {
                    if error.is_panic() {
                        tracing::error!("a job panicked; this is a bug in Consort: {error}");
                    }
                    (error.id(), (None, None))
                }
                None => std::future::pending().await,
            };
            if let Some((job, _)) = self.running.remove(&id) {
                return Finished { id, job, report, answer };
            }
        }
    }

    /// Returns true if a load or a restart is in progress.
    pub(super) fn has_load_or_restart(&self) -> bool {
        self.running.values().any(|(job, _)| job.kind == Kind::LoadOrRestart)
    }

    /// Returns the jobs in progress, the oldest first.
    pub(super) fn list(&self) -> Vec<&Job> {
        let mut jobs: Vec<&Job> = self.running.values().map(|(job, _)| job).collect();
        jobs.sort_by_key(|job| job.since);
        jobs
    }

    /// Cancels all jobs of a client that has disconnected.
    pub(super) fn abort_client(&mut self, client: ClientId) {
        for (job, abort) in self.running.values() {
            if job.client == Some(client) {
                abort.abort();
            }
        }
    }

    /// Stops the jobs of a client, or of all clients if `client` is `None`, that can be ended with
    /// an answer. Returns the number of stopped jobs.
    pub(super) fn stop(&mut self, client: Option<ClientId>) -> usize {
        let stops = self.running.values_mut().filter(|(job, _)| client.is_none() || job.client == client);
        // A send fails if the work has already ended by itself.
        stops.filter_map(|(job, _)| job.stop.take()).filter_map(|stop| stop.send(()).ok()).count()
    }
}
