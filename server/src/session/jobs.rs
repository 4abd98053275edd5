//! The work in progress: a task for each job, ended when its asker goes away, and listed for `consort status`.

use std::collections::HashMap;
use std::future::Future;
use std::time::Instant;

use tokio::sync::oneshot;
use tokio::task::{AbortHandle, Id, JoinSet};

use super::ClientId;
use super::documents::Key;
use crate::model::check::CheckReport;
use crate::model::image::ImageError;

/// One piece of work.
#[derive(Debug)]
pub(super) struct Job {
    /// For whom; `None`: for the session itself.
    pub(super) client: Option<ClientId>,
    pub(super) kind: Kind,
    /// One line for a person.
    pub(super) what: String,
    /// Since when.
    pub(super) since: Instant,
    /// Ends it with an answer, where dropping it would leave the asker without one.
    pub(super) stop: Option<oneshot::Sender<()>>,
}

/// What kind of work it is, as far as its end matters to the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// An evaluation: the next of the same client follows, and documents are checked again.
    Evaluation,
    /// A load or a restart: documents are checked again.
    WorldChange,
    /// The check of an open document.
    Document(Key),
    /// A question to a person.
    Approval(u64),
    /// Anything else.
    Other,
}

impl Job {
    pub(super) fn new(client: ClientId, kind: Kind, what: impl Into<String>) -> Job {
        Job { client: Some(client), kind, what: what.into(), since: Instant::now(), stop: None }
    }
}

/// A job that is over. `report`: what the check of a document brought; `None` when it was cancelled.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) job: Job,
    pub(super) report: Option<Report>,
    /// Still to be given, once the session knows that the job is over.
    pub(super) answer: Option<Answer>,
}

/// An answer to an asker.
pub(super) struct Answer(Box<dyn FnOnce() + Send>);

impl Answer {
    /// The asker may have gone.
    pub(super) fn give(self) {
        (self.0)();
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Answer")
    }
}

/// What a job's task ends with.
type Outcome = (Option<Report>, Option<Answer>);

/// What the check of a document brought.
pub(super) type Report = Result<CheckReport, ImageError>;

/// All of them. Dropped, they all end.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    tasks: JoinSet<Outcome>,
    running: HashMap<Id, (Job, AbortHandle)>,
}

impl Jobs {
    /// Work whose answer goes to an asker. When the asker is gone, the work is dropped, which interrupts it in the image. Of work that changes
    /// the image the session hears first: whoever has the answer finds no diagnostics of before.
    pub(super) fn start<T: Send + 'static>(
        &mut self,
        job: Job,
        mut reply: oneshot::Sender<T>,
        work: impl Future<Output = T> + Send + 'static,
    ) {
        let changes = matches!(job.kind, Kind::Evaluation | Kind::WorldChange);
        self.spawn(job, async move {
            let result = tokio::select! {
                () = reply.closed() => return (None, None),
                result = work => result,
            };
            // The asker may go away just now.
            let answer = Answer(Box::new(move || drop(reply.send(result))));
            if changes {
                return (None, Some(answer));
            }
            answer.give();
            (None, None)
        });
    }

    /// The check of a document.
    pub(super) fn start_check(&mut self, job: Job, work: impl Future<Output = Report> + Send + 'static) -> AbortHandle {
        self.spawn(job, async move { (Some(work.await), None) })
    }

    fn spawn(&mut self, job: Job, work: impl Future<Output = Outcome> + Send + 'static) -> AbortHandle {
        let abort = self.tasks.spawn(work);
        self.running.insert(abort.id(), (job, abort.clone()));
        abort
    }

    /// The next one that is over. Waits for ever while there is none.
    pub(super) async fn next(&mut self) -> Finished {
        loop {
            let (id, (report, answer)) = match self.tasks.join_next_with_id().await {
                Some(Ok(done)) => done,
                Some(Err(error)) => {
                    if error.is_panic() {
                        tracing::error!("a job panicked; this is a mistake in Consort: {error}");
                    }
                    (error.id(), (None, None))
                }
                None => std::future::pending().await,
            };
            if let Some((job, _)) = self.running.remove(&id) {
                return Finished { job, report, answer };
            }
        }
    }

    /// Those in progress, the oldest first.
    pub(super) fn list(&self) -> Vec<&Job> {
        let mut jobs: Vec<&Job> = self.running.values().map(|(job, _)| job).collect();
        jobs.sort_by_key(|job| job.since);
        jobs
    }

    /// End everything that is done for a client that left.
    pub(super) fn abort_client(&mut self, client: ClientId) {
        for (job, abort) in self.running.values() {
            if job.client == Some(client) {
                abort.abort();
            }
        }
    }

    /// Stop the loads of a client, or of everybody, with an answer; how many there were.
    pub(super) fn stop(&mut self, client: Option<ClientId>) -> usize {
        let stops = self.running.values_mut().filter(|(job, _)| client.is_none() || job.client == client);
        // One whose receiver is gone is over by itself.
        stops.filter_map(|(job, _)| job.stop.take()).filter_map(|stop| stop.send(()).ok()).count()
    }
}
