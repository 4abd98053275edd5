//! The handle on the image that the other modules of the crate hold.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::{broadcast, mpsc, oneshot, watch};

use super::api::{EvalParams, ImageFacts, LoadSystemParams, Operation};
use super::core::Cache;
use super::evaluate;
use super::instance::Instance;
use super::link::CallError;
use super::plan::Replay;
use super::runtime::{Command, Phase, Runtime, lost_error};
use super::silence::Unanswered;
use super::supervisor::{LEAVING, Supervisor};
use super::suspended;
use crate::config::LispConfig;
use crate::locked::lock;
use crate::model::evaluation::{EvalOutcome, LoadSystemOutcome};
use crate::model::image::{ImageError, ImageEvent, ImageState, OutputChunk, Progress};
use crate::model::input::{InputAnswer, InputTarget};
use crate::model::stop::StopEvent;

/// The time limit of an answer by the dispatcher, which never waits for the user's code.
const DISPATCHER_TIMEOUT: Duration = Duration::from_secs(30);

/// A handle on the workspace's image. Clones refer to the same image. Calls wait a bounded time
/// while the image starts. When the last handle is dropped, the image is ended.
#[derive(Clone)]
pub struct Image {
    runtime: Arc<Runtime>,
    commands: mpsc::UnboundedSender<Command>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Image").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl Image {
    /// Creates the handle and the supervisor, which builds the core if need be and starts the image
    /// in `workspace` when the image is first needed. `private` is the host's directory, mode 0700.
    /// Must be called on a Tokio runtime.
    pub fn prepare(
        config: LispConfig,
        workspace: &Path,
        private: PathBuf,
    ) -> (Image, mpsc::UnboundedReceiver<ImageEvent>) {
        Image::prepare_with_cache(config, workspace, private, Cache::default_directory())
    }

    /// Acts as [`Image::prepare`] with the given cache directory instead of the user's, and starts
    /// the image at once.
    pub fn start_with_cache(
        config: LispConfig,
        workspace: &Path,
        private: PathBuf,
        cache: PathBuf,
    ) -> (Image, mpsc::UnboundedReceiver<ImageEvent>) {
        let (image, events) = Image::prepare_with_cache(config, workspace, private, cache);
        image.start_if_idle();
        (image, events)
    }

    /// Acts as [`Image::prepare`] with the given cache directory instead of the user's.
    pub fn prepare_with_cache(
        config: LispConfig,
        workspace: &Path,
        private: PathBuf,
        cache: PathBuf,
    ) -> (Image, mpsc::UnboundedReceiver<ImageEvent>) {
        let (events, receiver) = mpsc::unbounded_channel();
        let runtime = Arc::new(Runtime::new(config, workspace.to_owned(), private, cache, events));
        let (commands, orders) = mpsc::unbounded_channel();
        tokio::spawn(Supervisor::new(runtime.clone()).run(orders));
        (Image { runtime, commands }, receiver)
    }

    /// Acts as [`Image::prepare`] for a test: `place` is the workspace, the private directory and
    /// the cache.
    #[cfg(test)]
    pub(crate) fn prepare_in(
        place: &Path,
        config: &crate::config::Config,
    ) -> (Image, mpsc::UnboundedReceiver<ImageEvent>) {
        let place = place.to_owned();
        Image::prepare_with_cache(config.lisp.clone(), &place, place.clone(), place.clone())
    }

    /// Starts the image, if nothing has needed it yet.
    pub fn start_if_idle(&self) {
        self.runtime.start_if_idle();
    }

    /// Starts the image, if nothing has needed it yet. Resolves when the image is ready, when it
    /// cannot start, or when the time to wait for it is over.
    pub async fn wait_until_started(&self) {
        // A call that needs the image reports why there is none.
        let _ = self.runtime.instance().await;
    }

    /// Sets the configuration of the next start.
    pub fn configure(&self, config: LispConfig) {
        self.runtime.configure(config);
    }

    /// Returns the current state.
    pub fn state(&self) -> ImageState {
        self.runtime.state.borrow().clone()
    }

    /// Returns the reason why a request waits for a copy of the image, if one does.
    pub fn obstacle(&self) -> Option<String> {
        self.runtime.obstacles.first()
    }

    /// Returns the shared state of the image, for the checker.
    pub(crate) fn runtime(&self) -> Arc<Runtime> {
        self.runtime.clone()
    }

    /// Returns a receiver of the state and its changes.
    pub fn watch(&self) -> watch::Receiver<ImageState> {
        self.runtime.state.subscribe()
    }

    /// Evaluates code. Evaluations of one session wait for each other. Dropping the future
    /// interrupts the evaluation.
    ///
    /// The evaluation ends whatever the code does. After `timeout` seconds the image interrupts the
    /// code. If the code has not stopped 2 s later (longer only while the whole image is paused),
    /// the image is ended and started again (`Lost`).
    pub async fn eval(
        &self,
        params: EvalParams,
        output: Option<mpsc::UnboundedSender<OutputChunk>>,
    ) -> Result<EvalOutcome, ImageError> {
        evaluate::eval(&self.runtime, params, output, None, std::future::pending()).await
    }

    /// Evaluates code as [`Image::eval`] does, until `stop` is signalled. The signal is heeded in
    /// any phase: while the evaluation waits for its turn or for the image, runs, or has ended.
    /// `input` is the client that is asked when the code reads a line. With `None` nobody is asked.
    pub async fn eval_until(
        &self,
        params: EvalParams,
        output: Option<mpsc::UnboundedSender<OutputChunk>>,
        input: Option<InputTarget>,
        stop: oneshot::Receiver<()>,
    ) -> Result<EvalOutcome, ImageError> {
        let stopped = async {
            // A `stop` that is dropped unsignalled interrupts nothing.
            if stop.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        evaluate::eval(&self.runtime, params, output, input, stopped).await
    }

    /// Loads a system and remembers it, so that a new image loads it, too. Dropping the future
    /// interrupts the load.
    pub async fn load_system(
        &self,
        params: LoadSystemParams,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<LoadSystemOutcome, ImageError> {
        self.load_system_asking(params, progress, None).await
    }

    /// Loads a system as [`Image::load_system`] does. `input` is asked when code that the load runs
    /// reads from standard input.
    pub async fn load_system_asking(
        &self,
        params: LoadSystemParams,
        progress: Option<mpsc::UnboundedSender<Progress>>,
        input: Option<InputTarget>,
    ) -> Result<LoadSystemOutcome, ImageError> {
        evaluate::load_system(&self.runtime, params, progress, input).await
    }

    /// Runs a query: an operation that runs none of the user's code, changes nothing, and is
    /// answered while other code runs. Dropping the future interrupts it.
    ///
    /// # Errors
    /// There is no image, or it is being started ([`ImageError::Starting`]): this error is returned
    /// at once. The image does not answer within 10 s, or within 0.25 s if it sends nothing at all.
    /// The image ends meanwhile: this error is returned once the next image runs.
    pub async fn query<O: Operation>(&self, operation: &O) -> Result<O::Answer, ImageError> {
        self.runtime.start_if_idle();
        let instance = self.runtime.phase.borrow().ready()?;
        self.query_instance(&instance, operation).await
    }

    /// Returns a message for a person if the image's process is suspended.
    pub async fn suspended(&self) -> Option<String> {
        let pid = match &*self.runtime.phase.borrow() {
            Phase::Ready(instance) | Phase::Starting(_, Some(instance)) => instance.ready.pid,
            _ => return None,
        };
        suspended::suspended(pid).await
    }

    /// Runs a query as [`Image::query`] does, but waits for an image that is being started.
    pub async fn query_when_ready<O: Operation>(&self, operation: &O) -> Result<O::Answer, ImageError> {
        let instance = self.runtime.instance().await?;
        self.query_instance(&instance, operation).await
    }

    async fn query_instance<O: Operation>(&self, instance: &Instance, operation: &O) -> Result<O::Answer, ImageError> {
        match instance.link.silence.answer_in_time(instance.link.ask(O::NAME, operation)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(CallError::Refused(error))) => Err(error),
            // Waits for the next image, so that the caller's next call reaches it.
            Ok(Err(CallError::Gone)) => Err(lost_error(&self.runtime, instance).await),
            Err(Unanswered { waited, silent }) => {
                if let Some(why) = suspended::suspended(instance.ready.pid).await {
                    return Err(ImageError::Busy(why));
                }
                Err(ImageError::Busy(format!(
                    "The Lisp image did not answer {} within {} s.{}",
                    O::NAME,
                    waited.as_secs_f64(),
                    if silent { " It has sent nothing for some seconds." } else { "" }
                )))
            }
        }
    }

    /// Returns a receiver of the stop events from now on.
    pub fn stop_events(&self) -> broadcast::Receiver<StopEvent> {
        self.runtime.stops.subscribe()
    }

    /// Runs an operation that a stopped thread serves. The image limits its time. Dropping the
    /// future interrupts code that runs in a frame.
    pub async fn at_stop<O: Operation>(&self, operation: &O) -> Result<O::Answer, ImageError> {
        let instance = self.runtime.dispatcher().await?;
        match instance.link.ask(O::NAME, operation).await {
            Ok(answer) => Ok(answer),
            Err(CallError::Refused(error)) => Err(error),
            Err(CallError::Gone) => Err(lost_error(&self.runtime, &instance).await),
        }
    }

    /// Runs an operation that runs the user's code in the live image, for `session`. `within` is
    /// the operation's own deadline, after which the image itself interrupts it. If the code does
    /// not stop after that interrupt, or after the one of a dropped future, the image is ended and
    /// started again.
    pub async fn run<O: Operation>(
        &self,
        operation: &O,
        session: Option<&str>,
        within: Option<Duration>,
        progress: Option<mpsc::UnboundedSender<Progress>>,
        input: Option<InputTarget>,
    ) -> Result<O::Answer, ImageError> {
        evaluate::run(&self.runtime, operation, session, within, progress, input).await
    }

    /// Notes a reload of code. A new image gets the noted reloads in the same order.
    pub fn replay_later(&self, replay: Replay) {
        lock(&self.runtime.plan).remember_reload(replay);
    }

    /// Notes a reload of files that define `names`. `system` is the system that was reloaded, which
    /// a new image loads, too. `recorded` is true if the reload can be undone.
    pub fn reloaded_files(&self, system: Option<LoadSystemParams>, names: &[String], recorded: bool) {
        let mut plan = lock(&self.runtime.plan);
        if let Some(system) = system {
            plan.remember(system);
        }
        plan.reloaded_files(names, recorded);
    }

    /// Notes that the last reload was undone, so that a new image does not get it.
    pub fn reload_undone(&self) {
        lock(&self.runtime.plan).undone();
    }

    /// Returns the image's facts about itself, also while Lisp code loops.
    pub async fn facts(&self) -> Result<ImageFacts, ImageError> {
        let instance = self.runtime.dispatcher().await?;
        match crate::steady::timeout(DISPATCHER_TIMEOUT, instance.link.ask("status", &json!({}))).await {
            Ok(Ok(facts)) => Ok(facts),
            Ok(Err(CallError::Refused(error))) => Err(error),
            Ok(Err(CallError::Gone)) => Err(lost_error(&self.runtime, &instance).await),
            Err(_) => Err(ImageError::Unavailable(format!(
                "The Lisp image (process {}) has not answered for {} s: it may be collecting garbage, or be held by foreign code.",
                instance.ready.pid,
                DISPATCHER_TIMEOUT.as_secs()
            ))),
        }
    }

    /// Interrupts the evaluations and loads that run for `session`, or for all sessions. Returns
    /// the number of interrupted requests.
    pub async fn interrupt(&self, session: Option<&str>) -> usize {
        self.interrupt_these(session, &["eval", "load-system", "load-file"]).await
    }

    /// Interrupts the evaluation whose request has the given number, if it has not ended.
    pub fn interrupt_evaluation(&self, number: u64) {
        // In another phase the image has ended, and the evaluation with it.
        if let Phase::Ready(instance) | Phase::Starting(_, Some(instance)) = &*self.runtime.phase.borrow()
            && instance.link.running(None, &["eval"]).contains(&number)
        {
            instance.link.interrupt(number, "cancel");
        }
    }

    /// Interrupts all loads, but no evaluations: [`Image::eval_until`] can end those. A load
    /// belongs to no session.
    pub async fn interrupt_loads(&self) -> usize {
        self.interrupt_these(None, &["load-system", "load-file"]).await
    }

    /// Interrupts the load with which a new image gets its contents, if one is in progress. The
    /// next step follows. Returns the number of interrupted loads.
    pub async fn interrupt_restoration(&self) -> usize {
        let is_starting = matches!(&*self.runtime.phase.borrow(), Phase::Starting(..));
        if is_starting { self.interrupt_loads().await } else { 0 }
    }

    /// Interrupts requests. Without an image that answers, there are none.
    async fn interrupt_these(&self, session: Option<&str>, operations: &[&str]) -> usize {
        let instance = match &*self.runtime.phase.borrow() {
            Phase::Ready(instance) | Phase::Starting(_, Some(instance)) => instance.clone(),
            Phase::Idle | Phase::Starting(_, None) | Phase::Building(_) | Phase::Dead(..) => return 0,
        };
        let mut found = tokio::task::JoinSet::new();
        for target in instance.link.running(session, operations) {
            let link = instance.link.clone();
            found.spawn(async move { link.interrupt_found(target).await });
        }
        let all = crate::steady::timeout(DISPATCHER_TIMEOUT, found.join_all()).await.unwrap_or_default();
        all.into_iter().filter(|found| *found).count()
    }

    /// Answers a question of running code for a line of input. An answer to a question that is over
    /// is ignored.
    pub fn answer_input(&self, question: u64, answer: &InputAnswer) {
        if let Phase::Ready(instance) | Phase::Starting(_, Some(instance)) = &*self.runtime.phase.borrow() {
            let params = match answer {
                InputAnswer::Line(text) => json!({"question": question, "text": text}),
                InputAnswer::End(why) => json!({"question": question, "why": why}),
            };
            instance.link.notify("input", &params);
        }
    }

    /// Forgets a session whose client has left. Work that the session still runs is interrupted.
    pub fn close_session(&self, session: &str) {
        self.runtime.turns.forget(session);
        if let Phase::Ready(instance) | Phase::Starting(_, Some(instance)) = &*self.runtime.phase.borrow() {
            instance.link.notify("close-session", &json!({"session": session}));
        }
    }

    /// Ends the image and starts a new one, in which the loaded code is restored. Returns when the
    /// new image is ready or cannot be started.
    pub async fn restart(&self) -> Result<(), ImageError> {
        let (reply, done) = oneshot::channel();
        let left = || ImageError::Unavailable(LEAVING.into());
        self.commands.send(Command::Restart(reply)).map_err(|_| left())?;
        done.await.map_err(|_| left())?.map_err(ImageError::Unavailable)
    }

    /// Returns digests of all parts of the image that a check could have changed (docs/wire.md,
    /// `fingerprint`).
    pub async fn fingerprint(&self) -> Result<serde_json::Value, ImageError> {
        let instance = self.runtime.instance().await?;
        match instance.link.ask("fingerprint", &json!({"omit": []})).await {
            Ok(digest) => Ok(digest),
            Err(CallError::Refused(error)) => Err(error),
            Err(CallError::Gone) => Err(lost_error(&self.runtime, &instance).await),
        }
    }

    /// Ends the image and waits until it and its copies are gone.
    pub async fn shutdown(&self) {
        let (reply, done) = oneshot::channel();
        if self.commands.send(Command::Shutdown(reply)).is_ok() {
            let _ = done.await; // an error means that the supervisor has ended already
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_an_image_there_is_nothing_to_interrupt() {
        let directory = tempfile::tempdir().unwrap();
        let (image, _events) = Image::prepare_in(directory.path(), &crate::config::Config::default());
        assert_eq!(image.interrupt_loads().await, 0);
        for phase in [Phase::Building("building the core".into()), Phase::Dead("No Lisp.".into(), true)] {
            image.runtime.enter(phase);
            assert_eq!(image.interrupt_loads().await, 0);
        }
    }
}
