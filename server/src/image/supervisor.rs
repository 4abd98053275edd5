//! The task that owns the image's process. The task starts the image, watches it, and starts it
//! again after its death. Other tasks send commands to this task.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::core::Start;
use super::instance::Instance;
use super::plan::Restoration;
use super::program::{self, Program};
use super::programs;
use super::restore::restore;
use super::running::{Running, StartError, StartErrorKind};
use super::runtime::{Command, Phase, Runtime};
use super::suspended;
use crate::config::InitFile;
use crate::locked::lock;
use crate::model::image::ImageEvent;

/// The pause before the first new attempt to start. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause before a new attempt to start.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The lifetime after which an image counts as healthy. The pause after its death is
/// [`FIRST_PAUSE`] again.
const HEALTHY_LIFETIME: Duration = Duration::from_secs(30);
/// The maximum number of consecutive attempts to start in which no image becomes ready.
const MAX_FAILED_STARTS: u32 = 5;
/// The maximum number of attempts if the program is unresponsive
/// ([`StartErrorKind::Unresponsive`]).
const UNRESPONSIVE_TRIES: u32 = 2;
/// The time limit for an image to exit when asked to. After that, the process is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// The waiting time of a request after which the supervisor checks whether the image responds. Also
/// the interval between these checks.
const HEALTH_CHECK_DELAY: Duration = Duration::from_secs(10);
/// The time limit for an answer of the image's dispatcher, a Lisp thread that answers at once
/// unless all threads of the image are stopped.
const DISPATCHER_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason for the end of an image that is restarted on request.
const RESTARTED: &str = "The Lisp image was restarted on request.";
pub(crate) const LEAVING: &str = "Consort is leaving.";

/// The end of one life cycle.
enum LifeEnd {
    /// A command was received. `None` means that every handle was dropped.
    Commanded(Option<Command>),
    /// The image died, or the host ends it. The flag is true if the host ends it; otherwise the
    /// reason is empty.
    Died(String, bool),
    /// The image did not become ready, for this reason. A further attempt may succeed.
    NotReady(String),
    /// The image cannot be started, for this reason: the program is missing, the core or fasl
    /// cannot be built, or the environment does not allow the start. A further attempt would fail
    /// too.
    CannotStart(String),
}

/// The task that owns the image.
pub(crate) struct Supervisor {
    runtime: Arc<Runtime>,
    generation: u64,
    /// The reason why the last image ended, for the report when the next one is ready.
    why: Option<String>,
    /// The callers that wait for a restart.
    waiting: Vec<oneshot::Sender<Result<(), String>>>,
    pause: Duration,
    failures: u32,
}

impl Supervisor {
    /// Creates the supervisor before the first start.
    pub(crate) fn new(runtime: Arc<Runtime>) -> Supervisor {
        Supervisor { runtime, generation: 0, why: None, waiting: Vec::new(), pause: FIRST_PAUSE, failures: 0 }
    }

    /// Starts the image and keeps it running until [`Command::Shutdown`], or until every handle is
    /// dropped.
    pub(crate) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        loop {
            let mut running = None;
            let ended = tokio::select! {
                biased;
                command = commands.recv() => LifeEnd::Commanded(command),
                ended = self.life(&mut running) => ended,
            };
            let command = match ended {
                LifeEnd::Commanded(command) => {
                    // The command may interrupt a step of the restoration. A later death must not
                    // be attributed to that step.
                    lock(&self.runtime.plan).set_current_step(None);
                    if let Some(instance) = running.as_ref().and_then(|running| running.instance.as_ref()) {
                        let restart = matches!(command, Some(Command::Restart(_)));
                        instance.note_end(if restart { RESTARTED } else { LEAVING });
                        // The new phase keeps further calls from beginning in the image. The
                        // session is told of the end after the process has ended.
                        let next = if restart {
                            Phase::Starting("restarting".into(), None)
                        } else {
                            Phase::Dead(LEAVING.into(), true)
                        };
                        self.runtime.phase.send_replace(next);
                    }
                    self.finish(running, "it was asked to leave", EXIT_TIMEOUT).await;
                    command
                }
                ended => match self.report_end(ended, running).await {
                    Some(pause) => tokio::select! {
                        biased;
                        command = commands.recv() => command,
                        () = crate::steady::sleep(pause) => continue,
                    },
                    None => commands.recv().await,
                },
            };
            match command {
                Some(Command::Restart(reply)) => {
                    self.runtime.start_if_idle();
                    self.waiting.push(reply);
                    self.why = Some(RESTARTED.into());
                    (self.pause, self.failures) = (FIRST_PAUSE, 0);
                }
                Some(Command::Shutdown(reply)) => {
                    self.leave().await;
                    let _ = reply.send(()); // whoever asked may have gone
                    return;
                }
                None => return self.leave().await,
            }
        }
    }

    /// Runs one image, from its start to its end. The process is stored in `running`, so that the
    /// caller can end the process after dropping this future.
    async fn life(&mut self, running: &mut Option<Running>) -> LifeEnd {
        self.runtime.wait_until_needed().await;
        self.generation += 1;
        let runtime = self.runtime.clone();
        let config = runtime.config();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let program = match program::find(&config.command, &runtime.workspace, &path) {
            Ok(program) => program,
            Err(error) => return LifeEnd::CannotStart(error.to_string()),
        };
        let mut built = false;
        let instance = loop {
            let start = match runtime.cache.lookup(&program) {
                Some(start) => start,
                None => match self.build(&program).await {
                    Ok(start) => {
                        built = true;
                        start
                    }
                    Err(reason) => return LifeEnd::CannotStart(reason),
                },
            };
            runtime.enter(Phase::Starting("starting SBCL".into(), None));
            match Running::begin(&runtime, &program, &start, self.generation, &runtime.events, running).await {
                Ok(instance) => {
                    let cache = runtime.cache.clone();
                    runtime.tasks.spawn_blocking_on(move || cache.remove_stale(&start), &runtime.handle);
                    break instance;
                }
                // A cached core or fasl with which the image does not start is built again, once.
                // The file may be damaged, or a wrapper command may start another sbcl than before.
                Err(StartError { reason, kind: StartErrorKind::Exited }) if !built => {
                    tracing::warn!(reason, "what was cached does not start: it is built again");
                    self.finish(running.take(), &reason, Duration::ZERO).await;
                    runtime.cache.discard(&start);
                }
                Err(StartError { reason, kind: StartErrorKind::Environment }) => {
                    self.finish(running.take(), &reason, Duration::ZERO).await;
                    return LifeEnd::CannotStart(reason);
                }
                // A program that hangs is likely to hang again, and each attempt takes a minute.
                Err(StartError { reason, kind: StartErrorKind::Unresponsive }) => {
                    self.failures = self.failures.max(MAX_FAILED_STARTS - UNRESPONSIVE_TRIES);
                    return LifeEnd::NotReady(reason);
                }
                Err(StartError { reason, kind: StartErrorKind::Exited | StartErrorKind::NotSpawned }) => {
                    return LifeEnd::NotReady(reason);
                }
            }
        };
        // A wrapper command has loaded its own init files (docs/wire.md).
        let init = program.plain || config.init_file != InitFile::Default;
        let say = |what| runtime.enter(Phase::Starting(what, Some(instance.clone())));
        let restored = tokio::select! {
            restored = restore(&runtime, &instance, init, say) => restored,
            () = instance.end_wanted() => Err(()),
        };
        match (restored, instance.ending()) {
            (Ok(restoration), None) => self.ready(instance.clone(), restoration),
            (_, Some(reason)) => return LifeEnd::Died(reason, true),
            (Err(()), None) => {} // the image died: the select below ends at once
        }
        tokio::select! {
            // Whichever future completes first, `report_end` finds out how the process ended.
            () = Self::exited(running) => {}
            () = instance.link.closed() => {}
            () = instance.end_wanted() => {}
            () = watch_dispatcher(&runtime, &instance) => {}
            () = suspended::watch(&runtime, &instance) => {}
        }
        match instance.ending() {
            Some(reason) => LifeEnd::Died(reason, true),
            None => LifeEnd::Died(String::new(), false),
        }
    }

    async fn exited(running: &mut Option<Running>) {
        match running {
            Some(running) => running.exited().await,
            None => std::future::pending().await,
        }
    }

    async fn build(&self, program: &Program) -> Result<Start, String> {
        let what = if program.plain { "building the image's core, once" } else { "compiling Consort's Lisp, once" };
        let runtime = &self.runtime;
        runtime.enter(Phase::Building(what.into()));
        let say = |step: &str| runtime.enter(Phase::Building(format!("{what} ({step})")));
        runtime.cache.build(program, &runtime.workspace, say).await.map_err(|error| error.to_string())
    }

    fn ready(&mut self, instance: Arc<Instance>, restoration: Restoration) {
        *lock(&self.runtime.last) = Some(restoration.clone());
        self.failures = 0;
        self.runtime.enter(Phase::Ready(instance));
        let Restoration { restored, failed } = restoration;
        match self.why.take() {
            Some(reason) => self.runtime.emit(ImageEvent::Restored { reason, restored, failed }),
            None => {
                for (name, why) in failed {
                    self.runtime
                        .emit(ImageEvent::Printed { text: format!("{name} could not be loaded: {why}"), stderr: true });
                }
            }
        }
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Ok(())); // whoever asked may have gone
        }
    }

    /// Ends what remains of an image and reports its end. Returns the pause before the next start,
    /// or `None` if only a command can start the image again.
    async fn report_end(&mut self, ended: LifeEnd, running: Option<Running>) -> Option<Duration> {
        let healthy = running.as_ref().is_some_and(|running| running.since.elapsed() > HEALTHY_LIFETIME);
        let instance = running.as_ref().and_then(|running| running.instance.clone());
        let (reason, deliberate, is_final) = match ended {
            LifeEnd::Died(reason, deliberate) => {
                let end = self.finish(running, &reason, Duration::ZERO).await;
                let reason = if deliberate { reason } else { format!("The Lisp image {end}") };
                (reason, deliberate, false)
            }
            LifeEnd::NotReady(reason) => {
                self.finish(running, &reason, Duration::ZERO).await;
                self.failures += 1;
                (reason, false, self.failures >= MAX_FAILED_STARTS)
            }
            LifeEnd::CannotStart(reason) => (reason, false, true),
            LifeEnd::Commanded(_) => return Some(Duration::ZERO),
        };
        lock(&self.runtime.plan).died(&reason);
        if let Some(instance) = instance {
            instance.note_end(&reason);
        }
        self.why.get_or_insert_with(|| reason.clone());
        self.runtime.enter(Phase::Dead(reason.clone(), is_final));
        if is_final {
            for waiting in self.waiting.drain(..) {
                let _ = waiting.send(Err(reason.clone())); // whoever asked may have gone
            }
            return None;
        }
        if healthy {
            self.pause = FIRST_PAUSE;
        }
        let pause = if deliberate { Duration::ZERO } else { self.pause };
        if !deliberate {
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        Some(pause)
    }

    /// Ends the image's process and its copies, as [`Running::finish`] does, and also the programs
    /// that its code started, if the configuration says so (`end_programs`). Returns the
    /// description of the process's end, which is empty without a process.
    async fn finish(&self, running: Option<Running>, reason: &str, patience: Duration) -> String {
        let Some(running) = running else { return String::new() };
        let how = running.finish(reason, patience).await;
        if self.runtime.config().end_programs {
            let ended: Vec<String> = programs::end().await.into_iter().map(|program| program.command).collect();
            if !ended.is_empty() {
                let text = format!(
                    "Ended with the image, whose code had started them: {}. `end_programs = false` in the table [lisp] lets them stay.",
                    ended.join(", ")
                );
                tracing::info!(text);
                self.runtime.emit(ImageEvent::Printed { text, stderr: true });
            }
        }
        how
    }

    async fn leave(&mut self) {
        self.runtime.enter(Phase::Dead(LEAVING.into(), true));
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Err(LEAVING.into())); // whoever asked may have gone
        }
        self.runtime.tasks.close();
        self.runtime.tasks.wait().await;
    }
}

/// Reports an image whose dispatcher does not respond. Does not end the image, because collecting a
/// large heap also takes long. Never returns.
async fn watch_dispatcher(runtime: &Runtime, instance: &Instance) {
    loop {
        crate::steady::sleep(HEALTH_CHECK_DELAY).await;
        if instance.link.oldest_wait().is_none_or(|wait| wait < HEALTH_CHECK_DELAY)
            || instance.answers(DISPATCHER_TIMEOUT).await
            || suspended::suspended(instance.ready.pid).await.is_some()
        {
            continue;
        }
        let text = format!(
            "The Lisp image (process {}) has not answered for {} s: it may be collecting garbage, or be held by foreign code. \
             Restart it if it does not come back.",
            instance.ready.pid,
            DISPATCHER_TIMEOUT.as_secs()
        );
        tracing::warn!(text);
        runtime.emit(ImageEvent::Unresponsive { text });
        let since = Instant::now();
        while !instance.answers(DISPATCHER_TIMEOUT).await {}
        tracing::info!(seconds = since.elapsed().as_secs(), "the image answers again");
    }
}
