//! The life cycle of the image: Starting, Ready, Dead, and again. One task owns the process; all
//! others send it commands.

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

/// The pause before the first new attempt to start. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause before a new attempt to start.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The lifetime after which an image counts as healthy. The next pause is then the first one again.
const HEALTHY_LIFETIME: Duration = Duration::from_secs(30);
/// The number of consecutive images that did not become ready after which no further attempt is
/// made.
const MAX_FAILED_STARTS: u32 = 5;
/// The number of attempts for unresponsive programs ([`StartErrorKind::Unresponsive`]).
const UNRESPONSIVE_TRIES: u32 = 2;
/// The time limit for an image to exit by itself when asked to.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// The waiting time of a request after which the supervisor checks whether the image responds.
const HEALTH_CHECK_DELAY: Duration = Duration::from_secs(10);
/// The time limit of the dispatcher, which answers at once unless the whole process is stopped.
const DISPATCHER_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason for the end of an image that was restarted.
const RESTARTED: &str = "The Lisp image was restarted on request.";
pub(crate) const LEAVING: &str = "Consort is leaving.";

/// The end of one life cycle.
enum LifeEnd {
    /// A command came, or `None` because every handle was dropped.
    Commanded(Option<Command>),
    /// The image is gone, or must end. The flag is true if the host ended it.
    Died(String, bool),
    /// The image did not become ready.
    NotReady(String),
    /// There is no program to start.
    CannotStart(String),
}

/// The task that owns the image.
pub(crate) struct Supervisor {
    runtime: Arc<Runtime>,
    generation: u64,
    /// The reason why the last image ended, for the report on the next one.
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

    /// Starts the image and keeps it running, until a command ends it or every handle is dropped.
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
                    // A step of the restoration that is interrupted now is not the cause of the
                    // next end.
                    lock(&self.runtime.plan).set_current_step(None);
                    if let Some(instance) = running.as_ref().and_then(|running| running.instance.as_ref()) {
                        let restart = matches!(command, Some(Command::Restart(_)));
                        instance.note_end(if restart { RESTARTED } else { LEAVING });
                        // No further call begins in the image. Its end is reported once the process
                        // has ended.
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

    /// Runs one life cycle, from start to end. The process is kept in `running`, so that the caller
    /// can end it whenever this future is dropped.
    async fn life(&mut self, running: &mut Option<Running>) -> LifeEnd {
        self.runtime.note_needed().await;
        self.generation += 1;
        let runtime = self.runtime.clone();
        let config = runtime.config();
        let path = std::env::var("PATH").unwrap_or_default();
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
                // A file that does not start is built again, once. A core may be damaged, and a
                // command that chooses an sbcl itself may start another sbcl now.
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
            (Err(()), None) => {} // the image died, which is noticed below
        }
        tokio::select! {
            // Both occur together when the image dies, but the exit status says more.
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

    /// Reports that an image is gone. Returns the pause before the next start, or `None` if the
    /// next start waits for a command.
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

    /// Ends a process, its copies, and, unless they are to stay, the programs that it started.
    /// Returns a description of the end.
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

/// Reports when the whole image does not respond. The image is not ended, because the collection of
/// a large heap is not a fault.
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
