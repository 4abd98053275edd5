//! The state that the image's handles, its supervisor and the tasks between them share.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;

use super::build;
use super::core::Cache;
use super::instance::Instance;
use super::obstacles::Obstacles;
use super::plan::{Plan, Restoration};
use super::stops::MAX_LAG;
use super::turns::Turns;
use crate::config::LispConfig;
use crate::locked::lock;
use crate::model::image::{ImageError, ImageEvent, ImageState};
use crate::model::stop::StopEvent;

/// The time that a call waits for the next step of a starting image.
const START_WAIT: Duration = Duration::from_secs(30);
/// The time that a call whose image died waits for the report of what was restored.
const RESTORE_WAIT: Duration = Duration::from_secs(20);

/// The phase of the image's life cycle, with the data that callers need.
#[derive(Clone)]
pub(crate) enum Phase {
    /// See [`ImageState::Idle`].
    Idle,
    /// See [`ImageState::Starting`]; the image is present while its contents are loaded again.
    Starting(String, Option<Arc<Instance>>),
    /// The core or fasl is being built; the text is for the user.
    Building(String),
    /// See [`ImageState::Ready`].
    Ready(Arc<Instance>),
    /// See [`ImageState::Dead`].
    Dead(String, bool),
}

impl Phase {
    /// Returns the image that is ready.
    ///
    /// # Errors
    /// There is no image, or it is being started, or will be started without being asked for.
    pub(super) fn ready(&self) -> Result<Arc<Instance>, ImageError> {
        Err(match self {
            Phase::Ready(instance) => return Ok(instance.clone()),
            Phase::Idle => ImageError::Unavailable("The Lisp image has not been started.".into()),
            Phase::Dead(reason, true) => ImageError::Unavailable(reason.clone()),
            Phase::Dead(reason, false) => ImageError::Starting(format!("{reason} A new one is being started.")),
            Phase::Starting(what, _) | Phase::Building(what) => {
                ImageError::Starting(format!("The Lisp image is starting ({what})."))
            }
        })
    }
}

/// A command to the supervisor.
pub(crate) enum Command {
    /// Ends the image and starts a new one.
    Restart(oneshot::Sender<Result<(), String>>),
    /// Ends the image permanently.
    Shutdown(oneshot::Sender<()>),
}

/// The state that the handles, the supervisor and the tasks between them share.
pub(crate) struct Runtime {
    /// The configuration of the next start.
    config: Mutex<Arc<LispConfig>>,
    /// True once something needs the image.
    needed: watch::Sender<bool>,
    /// The image's current directory.
    pub(crate) workspace: PathBuf,
    /// The host's own directory.
    pub(crate) private: PathBuf,
    /// The cache of cores.
    pub(crate) cache: Cache,
    /// The Tokio runtime of all tasks of the image. It is kept because a future may be dropped
    /// outside of a runtime.
    pub(crate) handle: Handle,
    /// The phase of the image's life cycle.
    pub(crate) phase: watch::Sender<Phase>,
    /// The phase as an [`ImageState`], for other modules of the crate.
    pub(crate) state: watch::Sender<ImageState>,
    /// The channel of the image's events to the session.
    pub(crate) events: mpsc::UnboundedSender<ImageEvent>,
    /// The contents that a new image is to have.
    pub(crate) plan: Mutex<Plan>,
    /// The result of loading the contents of the last new image.
    pub(crate) last: Mutex<Option<Restoration>>,
    /// The tasks that must end before the host may exit.
    pub(crate) tasks: TaskTracker,
    /// The turns of the sessions. Each session has one evaluation at a time.
    pub(crate) turns: Turns,
    /// The stops of programs.
    pub(crate) stops: broadcast::Sender<StopEvent>,
    /// The reasons why checks wait for a copy of the image.
    pub(crate) obstacles: Obstacles,
}

impl Runtime {
    /// Creates the initial state.
    pub(crate) fn new(
        config: LispConfig,
        workspace: PathBuf,
        private: PathBuf,
        cache: PathBuf,
        events: mpsc::UnboundedSender<ImageEvent>,
    ) -> Runtime {
        Runtime {
            config: Mutex::new(Arc::new(config)),
            needed: watch::Sender::new(false),
            workspace,
            private,
            cache: Cache::new(cache),
            handle: Handle::current(),
            phase: watch::Sender::new(Phase::Idle),
            state: watch::Sender::new(ImageState::Idle),
            events,
            plan: Mutex::default(),
            last: Mutex::default(),
            tasks: TaskTracker::new(),
            turns: Turns::default(),
            stops: broadcast::channel(MAX_LAG).0,
            obstacles: Obstacles::default(),
        }
    }

    /// Returns the configuration of the next start.
    pub(crate) fn config(&self) -> Arc<LispConfig> {
        lock(&self.config).clone()
    }

    /// Sets the configuration of the next start.
    pub(crate) fn configure(&self, config: LispConfig) {
        *lock(&self.config) = Arc::new(config);
    }

    /// Starts the image, if nothing has needed it yet.
    pub(crate) fn start_if_idle(&self) {
        self.needed.send_if_modified(|needed| {
            // The phase is entered before receivers see `needed`: the supervisor then continues at
            // once, and may enter the next phase.
            let first = !std::mem::replace(needed, true);
            if first && matches!(&*self.phase.borrow(), Phase::Idle) {
                self.enter(Phase::Starting("starting".into(), None));
            }
            first
        });
    }

    /// Resolves once something has needed the image.
    pub(crate) async fn wait_until_needed(&self) {
        let mut needed = self.needed.subscribe();
        // The sender lives as long as `self`.
        let _ = needed.wait_for(|needed| *needed).await;
    }

    /// Sends the event to the session, which may have ended.
    pub(crate) fn emit(&self, event: ImageEvent) {
        let _ = self.events.send(event);
    }

    pub(crate) fn enter(&self, phase: Phase) {
        let state = match &phase {
            Phase::Idle => ImageState::Idle,
            Phase::Starting(what, _) | Phase::Building(what) => ImageState::Starting { what: what.clone() },
            Phase::Ready(instance) => ImageState::Ready {
                pid: instance.ready.pid,
                image: instance.ready.image.clone(),
                lisp: instance.ready.lisp.clone(),
            },
            Phase::Dead(reason, is_final) => ImageState::Dead { reason: reason.clone(), is_final: *is_final },
        };
        tracing::info!(?state, "image");
        // The session is told first. Otherwise a front end could see the new state, ask the
        // session, and get an answer in the old state.
        self.emit(ImageEvent::State(state.clone()));
        self.phase.send_replace(phase);
        self.state.send_replace(state);
    }
}

impl Runtime {
    /// Returns the image, when it is ready; waits for one that is starting.
    pub(crate) async fn instance(&self) -> Result<Arc<Instance>, ImageError> {
        if let Phase::Ready(instance) = &*self.phase.borrow() {
            return Ok(instance.clone());
        }
        self.start_if_idle();
        let mut phase = self.phase.subscribe();
        loop {
            let busy = |what: &str, wait: Duration| {
                let wait = wait.as_secs();
                format!(
                    "The Lisp image is not ready: it has been busy with {what} for {wait} s. Try again later, or interrupt it."
                )
            };
            let (wait, why) = match &*phase.borrow_and_update() {
                Phase::Ready(instance) => return Ok(instance.clone()),
                Phase::Dead(reason, true) => return Err(ImageError::Unavailable(reason.clone())),
                Phase::Idle => (START_WAIT, busy("starting", START_WAIT)),
                Phase::Dead(reason, false) => (START_WAIT, reason.clone()),
                Phase::Starting(what, _) => (START_WAIT, busy(what, START_WAIT)),
                // A build has its own time limit, and its result also serves later calls.
                Phase::Building(what) => (build::BUILD_TIMEOUT, busy(what, build::BUILD_TIMEOUT)),
            };
            let changed = crate::steady::timeout(wait, phase.changed()).await;
            if !changed.is_ok_and(|change| change.is_ok()) {
                return Err(ImageError::Unavailable(why));
            }
        }
    }

    /// Returns the image, even while its contents are loaded again: its dispatcher answers then,
    /// too.
    pub(crate) async fn dispatcher(&self) -> Result<Arc<Instance>, ImageError> {
        let there = match &*self.phase.borrow() {
            Phase::Ready(instance) | Phase::Starting(_, Some(instance)) => Some(instance.clone()),
            Phase::Idle | Phase::Starting(_, None) | Phase::Building(_) | Phase::Dead(..) => None,
        };
        match there {
            Some(instance) => Ok(instance),
            None => self.instance().await,
        }
    }
}

/// Returns the error of a call whose image died: the cause, and the state now. Waits a while for
/// the new image, so that the error can describe it.
pub(crate) async fn lost_error(runtime: &Runtime, instance: &Instance) -> ImageError {
    let mut phase = runtime.phase.subscribe();
    let settled = async {
        loop {
            match phase.borrow_and_update().clone() {
                Phase::Ready(new) if new.generation > instance.generation => {
                    let last = lock(&runtime.last).clone().unwrap_or_default();
                    return format!("A new image is running.{}", last.describe());
                }
                Phase::Dead(why, true) if instance.ending().is_none_or(|reason| reason == why) => return String::new(),
                Phase::Dead(why, true) => return format!("No new one could be started: {why}"),
                Phase::Idle | Phase::Ready(_) | Phase::Starting(..) | Phase::Building(_) | Phase::Dead(_, false) => {}
            }
            if phase.changed().await.is_err() {
                return String::new();
            }
        }
    };
    let outlook = crate::steady::timeout(RESTORE_WAIT, settled).await.unwrap_or_else(|_| {
        let state = runtime.state.borrow().clone();
        match state {
            ImageState::Starting { what } => format!("A new one is starting ({what})."),
            _ => "A new one will be started.".into(),
        }
    });
    let reason = instance.ending().unwrap_or_else(|| "The Lisp image was ended.".into());
    ImageError::Lost { reason: format!("{reason} {outlook}").trim_end().to_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::error_kind::ErrorKind;

    fn runtime() -> Arc<Runtime> {
        let (events, _) = mpsc::unbounded_channel();
        let place = PathBuf::from("/nowhere");
        Arc::new(Runtime::new(crate::config::Config::default().lisp, place.clone(), place.clone(), place, events))
    }

    fn state(runtime: &Runtime) -> ImageState {
        runtime.state.borrow().clone()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn whoever_needs_the_image_does_not_undo_what_the_supervisor_found() {
        for _ in 0..2_000 {
            let runtime = runtime();
            let waiting = runtime.clone();
            let supervisor = tokio::spawn(async move {
                waiting.wait_until_needed().await;
                waiting.enter(Phase::Dead("No Lisp.".into(), true));
            });
            runtime.start_if_idle();
            supervisor.await.unwrap();
            assert_eq!(state(&runtime), ImageState::Dead { reason: "No Lisp.".into(), is_final: true });
        }
    }

    #[test]
    fn an_image_that_starts_may_know_what_an_image_that_is_gone_does_not() {
        let unanswered = |phase: Phase| phase.ready().map(drop).unwrap_err();
        for phase in [
            Phase::Starting("restarting".into(), None),
            Phase::Building("building the image's core, once".into()),
            Phase::Dead("It was killed.".into(), false),
        ] {
            let error = unanswered(phase);
            assert!(error.is_unanswered() && error.kind() == ErrorKind::UNAVAILABLE, "{error}");
        }
        let error = unanswered(Phase::Dead("No Lisp.".into(), true));
        assert!(!error.is_unanswered() && error.to_string() == "No Lisp.", "{error}");
    }

    #[tokio::test]
    async fn an_image_that_was_ended_before_it_was_needed_is_not_starting() {
        let runtime = runtime();
        runtime.enter(Phase::Dead("Consort is leaving.".into(), true));
        runtime.start_if_idle();
        assert!(matches!(state(&runtime), ImageState::Dead { .. }));
    }
}
