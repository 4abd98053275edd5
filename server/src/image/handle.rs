//! The handle on the image that the rest of the house holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{mpsc, oneshot, watch};

use super::api::expand::{ExpandAnswer, ExpandParams, ExpandPlain, PlainAnswer};
use super::api::{
    CheckParams, CheckReport, CheckSystemParams, EvalOutcome, EvalParams, ImageFacts, LoadSystemOutcome,
    LoadSystemParams, Operation,
};
use super::copies::Sequel;
use super::core::{BUILD_LIMIT, Cache};
use super::link::{CallError, lock};
use super::live::Live;
use super::order::Look;
use super::restore::Replay;
use super::state::{ImageError, ImageEvent, ImageState, OutputChunk, Progress};
use super::supervisor::{Command, LEAVING, Phase, Shared, Supervisor};
use super::{copies, evaluate, second};
use crate::config::{Copies, LispConfig};

/// How long a call waits for an image that is starting to come one step further.
const START_WAIT: Duration = Duration::from_secs(30);
/// How long a call whose image died waits to be able to say what was restored.
const RESTORE_WAIT: Duration = Duration::from_secs(20);
/// The dispatcher's answers; it never waits for user's code.
const DISPATCHER: Duration = Duration::from_secs(30);
/// What looking something up may take.
const LOOK: Duration = Duration::from_secs(10);

/// A handle on the workspace's image. Clones are the same image. Calls wait a bounded time while it starts. When the last handle is
/// dropped, the image is ended.
#[derive(Clone)]
pub struct Image {
    shared: Arc<Shared>,
    commands: mpsc::UnboundedSender<Command>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Image").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl Shared {
    /// The image, when it is ready; waits for one that is starting.
    pub(super) async fn live(&self) -> Result<Arc<Live>, ImageError> {
        if let Phase::Ready(live) = &*self.phase.borrow() {
            return Ok(live.clone());
        }
        let mut phase = self.phase.subscribe();
        loop {
            let busy = |what: &str, wait: Duration| {
                let wait = wait.as_secs();
                format!(
                    "The Lisp image is not ready: it has been busy with {what} for {wait} s. Try again later, or interrupt it."
                )
            };
            let (wait, why) = match &*phase.borrow_and_update() {
                Phase::Ready(live) => return Ok(live.clone()),
                Phase::Dead(reason, true) => return Err(ImageError::Unavailable(reason.clone())),
                Phase::Dead(reason, false) => (START_WAIT, reason.clone()),
                Phase::Starting(what, _) => (START_WAIT, busy(what, START_WAIT)),
                // That has a limit of its own, and is not wasted on whoever asks again.
                Phase::Building(what) => (BUILD_LIMIT, busy(what, BUILD_LIMIT)),
            };
            let changed = tokio::time::timeout(wait, phase.changed()).await;
            if !changed.is_ok_and(|change| change.is_ok()) {
                return Err(ImageError::Unavailable(why));
            }
        }
    }

    /// The image also while what it had is being loaded again: its dispatcher answers.
    async fn dispatcher(&self) -> Result<Arc<Live>, ImageError> {
        let there = match &*self.phase.borrow() {
            Phase::Ready(live) | Phase::Starting(_, Some(live)) => Some(live.clone()),
            Phase::Starting(_, None) | Phase::Building(_) | Phase::Dead(..) => None,
        };
        match there {
            Some(live) => Ok(live),
            None => self.live().await,
        }
    }
}

/// The error of a call whose image died: what happened, and what there is now. Waits a while for the new image, to be able to say so.
pub(super) async fn lost(shared: &Shared, live: &Live) -> ImageError {
    let mut phase = shared.phase.subscribe();
    let settled = async {
        loop {
            match phase.borrow_and_update().clone() {
                Phase::Ready(new) if new.generation > live.generation => {
                    let last = lock(&shared.last).clone().unwrap_or_default();
                    return format!("A new image is running.{}", last.describe());
                }
                Phase::Dead(why, true) if live.ending().is_none_or(|reason| reason == why) => return String::new(),
                Phase::Dead(why, true) => return format!("No new one could be started: {why}"),
                Phase::Ready(_) | Phase::Starting(..) | Phase::Building(_) | Phase::Dead(_, false) => {}
            }
            if phase.changed().await.is_err() {
                return String::new();
            }
        }
    };
    let outlook = tokio::time::timeout(RESTORE_WAIT, settled).await.unwrap_or_else(|_| {
        let state = shared.state.borrow().clone();
        match state {
            ImageState::Starting { what } => format!("A new one is starting ({what})."),
            _ => "A new one will be started.".into(),
        }
    });
    let reason = live.ending().unwrap_or_else(|| "The Lisp image was ended.".into());
    ImageError::Lost { reason: format!("{reason} {outlook}").trim_end().to_owned() }
}

impl Image {
    /// Start the supervisor, which builds the core if need be and starts the image in `workspace`. `private` is the host's 0700
    /// directory. To be called on a Tokio runtime.
    pub fn start(
        config: LispConfig,
        workspace: &Path,
        private: PathBuf,
    ) -> (Image, mpsc::UnboundedReceiver<ImageEvent>) {
        Image::start_with_cache(config, workspace, private, Cache::default_directory())
    }

    /// [`Image::start`] with another directory for the cached core than the user's.
    pub fn start_with_cache(
        config: LispConfig,
        workspace: &Path,
        private: PathBuf,
        cache: PathBuf,
    ) -> (Image, mpsc::UnboundedReceiver<ImageEvent>) {
        let (events, receiver) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared::new(config, workspace.to_owned(), private, cache, events));
        let (commands, orders) = mpsc::unbounded_channel();
        tokio::spawn(Supervisor::new(shared.clone()).run(orders));
        (Image { shared, commands }, receiver)
    }

    /// The state now.
    pub fn state(&self) -> ImageState {
        self.shared.state.borrow().clone()
    }

    /// Where the checks of this image work; `None` while there is none.
    pub fn copies(&self) -> Option<Copies> {
        let Phase::Ready(live) = &*self.shared.phase.borrow() else { return None };
        Some(if second::wanted(&self.shared, live) { Copies::Process } else { Copies::Fork })
    }

    /// The state, to wait on.
    pub fn watch(&self) -> watch::Receiver<ImageState> {
        self.shared.state.subscribe()
    }

    /// Evaluate. Ends by its deadline whatever the code does: after `timeout` the image interrupts, after a grace of 2 s (longer only
    /// while the whole image stands still) it is ended and started again (`Lost`). Evaluations of one session queue. Dropping the
    /// future interrupts it.
    pub async fn eval(
        &self,
        params: EvalParams,
        output: Option<mpsc::UnboundedSender<OutputChunk>>,
    ) -> Result<EvalOutcome, ImageError> {
        evaluate::eval(&self.shared, params, output, std::future::pending()).await
    }

    /// [`Image::eval`], interrupted when `stop` is told so, wherever it is by then: waiting for its turn or for the image, running, ended.
    pub async fn eval_until(
        &self,
        params: EvalParams,
        output: Option<mpsc::UnboundedSender<OutputChunk>>,
        stop: oneshot::Receiver<()>,
    ) -> Result<EvalOutcome, ImageError> {
        let stopped = async {
            // One who went away without a word interrupts nothing.
            if stop.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        evaluate::eval(&self.shared, params, output, stopped).await
    }

    /// Check a text in a throw-away copy. Dropping the future kills the copy.
    pub async fn check(&self, params: CheckParams) -> Result<CheckReport, ImageError> {
        copies::check(&self.shared, params, Sequel::None).await
    }

    /// [`Image::check`], one of several: a copy is kept ready for the next check, which then does not wait for a fork.
    pub async fn check_repeated(&self, params: CheckParams) -> Result<CheckReport, ImageError> {
        copies::check(&self.shared, params, Sequel::More).await
    }

    /// [`Image::check_repeated`], of a text that is being edited: it does not wait for what agents and terminals ask for.
    pub async fn check_edited(&self, params: CheckParams) -> Result<CheckReport, ImageError> {
        copies::check(&self.shared, params, Sequel::Edited).await
    }

    /// Check the files of a system in a throw-away copy, in which they and what they depend on are loaded; each file's report, in the order
    /// of the build. `look` is asked for each file when its turn comes. Dropping the future kills the copy.
    pub async fn check_system(
        &self,
        params: CheckSystemParams,
        look: Look,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<Vec<(PathBuf, CheckReport)>, ImageError> {
        copies::check_system(&self.shared, params, look, progress).await
    }

    /// Expand macros: in a throw-away copy, unless no code of the user's can run. Dropping the future kills the copy.
    pub async fn expand(&self, params: ExpandParams) -> Result<ExpandAnswer, ImageError> {
        // Whatever goes wrong there is told by the copy.
        if params.request.is_plain()
            && let Ok(PlainAnswer { answer: Some(answer) }) = self.look(&ExpandPlain(params.request.clone())).await
        {
            return Ok(ExpandAnswer::Done(answer));
        }
        copies::expand(&self.shared, params).await
    }

    /// Load a system and remember it, so that a new image has it too. Dropping the future interrupts it.
    pub async fn load_system(
        &self,
        params: LoadSystemParams,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<LoadSystemOutcome, ImageError> {
        evaluate::load_system(&self.shared, params, progress).await
    }

    /// Look something up: an operation that runs none of the user's code, changes nothing, and answers beside whatever runs. Dropping the
    /// future interrupts it.
    ///
    /// # Errors
    /// At once when there is no image, or one that is being started; after 10 s when it does not answer.
    pub async fn look<O: Operation>(&self, operation: &O) -> Result<O::Answer, ImageError> {
        let live = match &*self.shared.phase.borrow() {
            Phase::Ready(live) => live.clone(),
            Phase::Dead(reason, _) => return Err(ImageError::Unavailable(reason.clone())),
            Phase::Starting(what, _) | Phase::Building(what) => {
                return Err(ImageError::Unavailable(format!("The Lisp image is starting ({what}).")));
            }
        };
        match tokio::time::timeout(LOOK, live.link.ask(O::NAME, operation)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(CallError::Refused(error))) => Err(error),
            Ok(Err(CallError::Gone)) => Err(ImageError::Unavailable("The Lisp image was ended.".into())),
            Err(_) => {
                Err(ImageError::Busy(format!("The Lisp image did not answer {} within {} s.", O::NAME, LOOK.as_secs())))
            }
        }
    }

    /// Run an operation that runs user's code in the live image. `session`: whose; `within`: its own deadline, after which the image itself
    /// interrupts it; when that does not help, or when the dropped future's interrupt does not, the image is ended and started again.
    pub async fn run<O: Operation>(
        &self,
        operation: &O,
        session: Option<&str>,
        within: Option<Duration>,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<O::Answer, ImageError> {
        evaluate::run(&self.shared, operation, session, within, progress).await
    }

    /// Code was reloaded: a new image gets it too, in order.
    pub fn replay_later(&self, replay: Replay) {
        lock(&self.shared.plan).replay(replay);
    }

    /// Files were reloaded that define `names`; of a system when `system` says so, which a new image gets too. `recorded`: it can be
    /// taken back.
    pub fn reloaded_files(&self, system: Option<LoadSystemParams>, names: &[String], recorded: bool) {
        let mut plan = lock(&self.shared.plan);
        if let Some(system) = system {
            plan.remember(system);
        }
        plan.reloaded_files(names, recorded);
    }

    /// The last reload was taken back: a new image is not to get it.
    pub fn reload_undone(&self) {
        lock(&self.shared.plan).undone();
    }

    /// What the image says of itself; answers while Lisp loops.
    pub async fn facts(&self) -> Result<ImageFacts, ImageError> {
        let live = self.shared.dispatcher().await?;
        match tokio::time::timeout(DISPATCHER, live.link.ask("status", &json!({}))).await {
            Ok(Ok(facts)) => Ok(facts),
            Ok(Err(CallError::Refused(error))) => Err(error),
            Ok(Err(CallError::Gone)) => Err(lost(&self.shared, &live).await),
            Err(_) => Err(ImageError::Unavailable(format!(
                "The Lisp image (process {}) has not answered for {} s: it may be collecting garbage, or be held by foreign code.",
                live.ready.pid,
                DISPATCHER.as_secs()
            ))),
        }
    }

    /// Interrupt what runs for `session`, or everything; the number of evaluations interrupted.
    pub async fn interrupt(&self, session: Option<&str>) -> Result<usize, ImageError> {
        self.interrupt_these(session, &["eval", "load-system", "load-file"]).await
    }

    /// [`Image::interrupt`] for all but evaluations, which [`Image::eval_until`] can be told to end.
    pub async fn interrupt_loads(&self, session: Option<&str>) -> Result<usize, ImageError> {
        self.interrupt_these(session, &["load-system", "load-file"]).await
    }

    async fn interrupt_these(&self, session: Option<&str>, operations: &[&str]) -> Result<usize, ImageError> {
        let live = self.shared.dispatcher().await?;
        let mut found = tokio::task::JoinSet::new();
        for target in live.link.running(session, operations) {
            let link = live.link.clone();
            found.spawn(async move { link.interrupt_found(target).await });
        }
        let all = tokio::time::timeout(DISPATCHER, found.join_all()).await.unwrap_or_default();
        Ok(all.into_iter().filter(|found| *found).count())
    }

    /// Forget a session (its client left); what it still runs is interrupted.
    pub fn close_session(&self, session: &str) {
        self.shared.turns.forget(session);
        if let Phase::Ready(live) | Phase::Starting(_, Some(live)) = &*self.shared.phase.borrow() {
            live.link.tell("close-session", &json!({"session": session}));
        }
    }

    /// End the image and start a new one, restoring what was loaded. Resolves when it is ready or cannot be.
    pub async fn restart(&self) -> Result<(), ImageError> {
        let (reply, done) = oneshot::channel();
        let left = || ImageError::Unavailable(LEAVING.into());
        self.commands.send(Command::Restart(reply)).map_err(|_| left())?;
        done.await.map_err(|_| left())?.map_err(ImageError::Unavailable)
    }

    /// A digest of everything a check could have changed (docs/wire.md, `fingerprint`), by part; `omit`: systems that do not count.
    pub async fn fingerprint(&self) -> Result<serde_json::Value, ImageError> {
        let live = self.shared.live().await?;
        match live.link.ask("fingerprint", &json!({"omit": []})).await {
            Ok(digest) => Ok(digest),
            Err(CallError::Refused(error)) => Err(error),
            Err(CallError::Gone) => Err(lost(&self.shared, &live).await),
        }
    }

    /// End the image and wait until it and its copies are gone.
    pub async fn shutdown(&self) {
        let (reply, done) = oneshot::channel();
        if self.commands.send(Command::Shutdown(reply)).is_ok() {
            let _ = done.await; // an error says that it has left already
        }
    }
}
