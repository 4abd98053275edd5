//! Worker processes: second SBCL processes that do the work of copies where the image cannot be
//! forked. A worker starts from the image's core and loads what a new image would (`restore.rs`).
//! The worker then receives one check or expansion, acts like a forked copy, and exits. Definitions
//! that were only evaluated are missing in it. While a text is edited, one worker is kept ready, to
//! be used if nothing was loaded since.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::locked::lock;
use crate::steady::sleep;
use serde::de::IgnoredAny;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::asking::ask;
use super::ending::Failed;
use crate::config::{Copies, InitFile};
use crate::image::frames::CopyEnd;
use crate::image::instance::Instance;
use crate::image::link::{Call, CallError};
use crate::image::program;
use crate::image::restore::repeat;
use crate::image::running::Running;
use crate::image::runtime::Runtime;
use crate::model::image::ImageError;

/// The time for which a process is kept without a check.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The channel to the process that is kept ready. A request is the sender through which the process
/// is handed over.
type Claims = mpsc::Sender<oneshot::Sender<Box<WorkerProcess>>>;

/// The worker processes of one image. Clones share the one that is kept ready.
#[derive(Clone)]
pub(super) struct Workers {
    runtime: Arc<Runtime>,
    ready: Arc<Mutex<Option<Claims>>>,
}

/// A worker process. Dropping it ends the process.
pub(super) struct WorkerProcess {
    runtime: Arc<Runtime>,
    running: Option<Running>,
    /// The link to the process.
    instance: Option<Arc<Instance>>,
    /// The image that the process stands in for. The process ends when the image does.
    image: Arc<Instance>,
    /// The revision of the plan that was loaded (`Plan::revision`).
    revision: u64,
    /// Keeps the host from exiting before the process has.
    _token: TaskTrackerToken,
}

impl Workers {
    /// Creates the state of an image that has no worker processes yet.
    pub(super) fn new(runtime: Arc<Runtime>) -> Workers {
        Workers { runtime, ready: Arc::default() }
    }

    /// Returns true if checks of this image run in a worker process from the start.
    pub(super) fn is_needed(&self, instance: &Instance) -> bool {
        self.runtime.config().copies == Copies::Process || !instance.ready.features.fork
    }

    /// Returns a process with the contents of `image`: the one that is kept ready, or a new one.
    pub(super) async fn take(&self, image: &Arc<Instance>) -> Result<Box<WorkerProcess>, Failed> {
        let kept = lock(&self.ready).take();
        if let Some(claims) = kept {
            // The process may still be loading; if it has ended, another is made.
            if let Some(worker) = ask(claims, |claim| claim).await
                && Arc::ptr_eq(&worker.image, image)
                && worker.revision == lock(&self.runtime.plan).revision()
            {
                return Ok(worker);
            }
        }
        self.begin(image).await
    }

    async fn begin(&self, image: &Arc<Instance>) -> Result<Box<WorkerProcess>, Failed> {
        let unavailable = |why: String| {
            Failed::Error(ImageError::Unavailable(format!(
                "Nothing can be checked: no second SBCL process could be started: {why}"
            )))
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = program::find(&self.runtime.config().command, &self.runtime.workspace, &path)
            .map_err(|error| unavailable(error.to_string()))?;
        let start = self
            .runtime
            .cache
            .lookup(&program)
            .ok_or_else(|| unavailable("the saved core of the image is gone; restart the image".into()))?;
        let mut worker = Box::new(WorkerProcess {
            runtime: self.runtime.clone(),
            running: None,
            instance: None,
            image: image.clone(),
            revision: lock(&self.runtime.plan).revision(),
            _token: self.runtime.tasks.token(),
        });
        // Nobody receives the output and the thread errors: they were reported when the image
        // itself loaded the same contents.
        let (nobody, _) = mpsc::unbounded_channel();
        let begun = Running::begin(&self.runtime, &program, &start, image.generation, &nobody, &mut worker.running);
        let instance = tokio::select! {
            begun = begun => begun.map_err(|error| unavailable(error.reason))?,
            () = image.link.closed() => return Err(Failed::Gone(image.clone())),
        };
        worker.instance = Some(instance.clone());
        let init = program.plain || self.runtime.config().init_file != InitFile::Default;
        tokio::select! {
            restored = repeat(&self.runtime, &instance, init) => match restored {
                Ok(failed) => for (name, why) in failed {
                    tracing::warn!(name, why, "not loaded into the second process");
                },
                Err(()) => return Err(unavailable("it ended while it loaded what the image has".into())),
            },
            () = instance.end_wanted() => return Err(unavailable(instance.ending().unwrap_or_default())),
            () = image.link.closed() => return Err(Failed::Gone(image.clone())),
        }
        Ok(worker)
    }

    /// Starts a process for the next check in the background, unless one is kept or is starting.
    pub(super) fn prepare(&self, image: Arc<Instance>) {
        let (claims, mut claimed) = mpsc::channel(1);
        {
            let mut slot = lock(&self.ready);
            if slot.is_some() {
                return;
            }
            *slot = Some(claims.clone());
        }
        let keep = {
            let workers = self.clone();
            async move {
                if let Ok(mut worker) = workers.begin(&image).await {
                    tokio::select! {
                        biased;
                        claim = claimed.recv() => if let Some(Err(unclaimed)) = claim.map(|claim| claim.send(worker)) {
                            unclaimed.finish().await; // its claimant has gone
                        },
                        _ = worker.end(None) => worker.finish().await,
                        () = sleep(IDLE_TIMEOUT) => worker.finish().await,
                    }
                }
                // The slot may belong to another process by now.
                let mut slot = lock(&workers.ready);
                if slot.as_ref().is_some_and(|other| other.same_channel(&claims)) {
                    *slot = None;
                }
            }
        };
        self.runtime.tasks.spawn_on(keep, &self.runtime.handle);
    }
}

impl WorkerProcess {
    /// Returns the instance that receives the requests.
    pub(super) fn instance(&self) -> Option<&Arc<Instance>> {
        self.instance.as_ref()
    }

    /// Waits for the end of the process, and returns how it ended. `call` is the request, whose
    /// only possible answer is a refusal. The future may be dropped, and the method called again.
    ///
    /// # Errors
    /// The refusal, or `Gone` if the image has ended.
    pub(super) async fn end(&mut self, call: Option<&mut Call>) -> Result<CopyEnd, CallError> {
        let Some(running) = &mut self.running else { return Err(CallError::Gone) };
        let ended = async {
            if let Some(call) = call
                && let Err(CallError::Refused(error)) = call.result::<IgnoredAny>().await
            {
                return Err(CallError::Refused(error));
            }
            running.end().await.map_err(|_| CallError::Gone)
        };
        tokio::select! {
            biased;
            () = self.image.link.closed() => Err(CallError::Gone),
            ended = ended => ended,
        }
    }

    /// Ends the process and waits until it is gone.
    pub(super) async fn finish(mut self: Box<Self>) {
        if let Some(running) = self.running.take() {
            running.finish("the check is over", Duration::ZERO).await;
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            let finish = async move {
                running.finish("it is not wanted any more", Duration::ZERO).await;
            };
            self.runtime.tasks.spawn_on(finish, &self.runtime.handle);
        }
    }
}
