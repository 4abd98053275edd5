//! The life of the image: Starting, Ready, Dead, and again. One task owns the process; everybody else asks.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio_util::task::TaskTracker;

use super::core::{Cache, Start};
use super::instance::Instance;
use super::link::lock;
use super::program::{self, Program};
use super::restore::{Plan, Restoration, restore};
use super::running::{Fault, NotReady, Running};
use super::state::{ImageEvent, ImageState};
use super::turns::Turns;
use super::warm_copy::Claims;
use super::worker;
use crate::config::{InitFile, LispConfig};

/// The first pause before a new try, and the longest.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));
/// An image that lived so long was healthy: the next pause is the first one again.
const HEALTHY: Duration = Duration::from_secs(30);
/// Images in a row that did not become ready, after which no further try is made.
const TRIES: u32 = 5;
/// The same of those that were there and said nothing.
const MUTE_TRIES: u32 = 2;
/// Copies of the image at once.
const COPIES: usize = 2;
/// What an image may take to leave by itself when it is asked to.
const LEAVE: Duration = Duration::from_secs(1);
/// A request that waits longer has the image looked at.
const SUSPICIOUS: Duration = Duration::from_secs(10);
/// The dispatcher answers at once, unless something stops the whole process.
const UNRESPONSIVE: Duration = Duration::from_secs(30);

/// Reasons that are not faults.
const RESTARTED: &str = "The Lisp image was restarted on request.";
pub(super) const LEAVING: &str = "Consort is leaving.";

/// Where the image is in its life, with what callers need.
#[derive(Clone)]
pub(super) enum Phase {
    /// See [`ImageState::Starting`]; the image is there while what it had is loaded again.
    Starting(String, Option<Arc<Instance>>),
    /// What it starts from is being built; for a person.
    Building(String),
    /// See [`ImageState::Ready`].
    Ready(Arc<Instance>),
    /// See [`ImageState::Dead`].
    Dead(String, bool),
}

/// What the supervisor is told.
pub(super) enum Command {
    /// End the image and start a new one.
    Restart(oneshot::Sender<Result<(), String>>),
    /// End the image for good.
    Shutdown(oneshot::Sender<()>),
}

/// What the handles, the supervisor and the tasks between them share.
pub(super) struct Shared {
    /// How the image is started.
    pub(super) config: LispConfig,
    /// Its current directory.
    pub(super) workspace: PathBuf,
    /// The host's own directory.
    pub(super) private: PathBuf,
    /// Where cores are.
    pub(super) cache: Cache,
    /// What everything runs on, also when a future is dropped elsewhere.
    pub(super) runtime: Handle,
    /// Where the image is in its life.
    pub(super) phase: watch::Sender<Phase>,
    /// The same for the rest of the house.
    pub(super) state: watch::Sender<ImageState>,
    /// What the image volunteers.
    pub(super) events: mpsc::UnboundedSender<ImageEvent>,
    /// What a new image will get.
    pub(super) plan: Mutex<Plan>,
    /// What the last new image got.
    pub(super) last: Mutex<Option<Restoration>>,
    /// What must end before the host may.
    pub(super) tasks: TaskTracker,
    /// Leave to make a copy, first come first served.
    pub(super) copies: Arc<Semaphore>,
    /// Leave that only texts being edited take.
    pub(super) reserved: Arc<Semaphore>,
    /// A copy that is kept ready, if one is.
    pub(super) warm: Mutex<Option<Claims>>,
    /// A second process that is kept ready, if one is.
    pub(super) worker: Mutex<Option<worker::Claims>>,
    /// One evaluation of a session at a time.
    pub(super) turns: Turns,
}

impl Shared {
    /// Everything at its beginning.
    pub(super) fn new(
        config: LispConfig,
        workspace: PathBuf,
        private: PathBuf,
        cache: PathBuf,
        events: mpsc::UnboundedSender<ImageEvent>,
    ) -> Shared {
        let what = "starting".to_owned();
        Shared {
            config,
            workspace,
            private,
            cache: Cache::new(cache),
            runtime: Handle::current(),
            phase: watch::Sender::new(Phase::Starting(what.clone(), None)),
            state: watch::Sender::new(ImageState::Starting { what }),
            events,
            plan: Mutex::default(),
            last: Mutex::default(),
            tasks: TaskTracker::new(),
            copies: Arc::new(Semaphore::new(COPIES)),
            reserved: Arc::new(Semaphore::new(1)),
            warm: Mutex::default(),
            worker: Mutex::default(),
            turns: Turns::default(),
        }
    }

    /// Tell the session; it may have ended.
    pub(super) fn tell(&self, event: ImageEvent) {
        let _ = self.events.send(event);
    }

    fn enter(&self, phase: Phase) {
        let state = match &phase {
            Phase::Starting(what, _) | Phase::Building(what) => ImageState::Starting { what: what.clone() },
            Phase::Ready(instance) => ImageState::Ready {
                pid: instance.ready.pid,
                image: instance.ready.image.clone(),
                lisp: instance.ready.lisp.clone(),
            },
            Phase::Dead(reason, is_final) => ImageState::Dead { reason: reason.clone(), is_final: *is_final },
        };
        tracing::info!(?state, "image");
        self.phase.send_replace(phase);
        self.state.send_replace(state.clone());
        self.tell(ImageEvent::State(state));
    }
}

/// How one life ended.
enum Ended {
    /// Somebody wants something; `None`: every handle was dropped.
    Commanded(Option<Command>),
    /// The image is gone, or must go; whether we ended it ourselves.
    Died(String, bool),
    /// It did not become ready.
    NotReady(String),
    /// There is nothing to start.
    CannotStart(String),
}

/// The task that owns the image.
pub(super) struct Supervisor {
    shared: Arc<Shared>,
    generation: u64,
    /// Why the last image went, for the one that comes.
    why: Option<String>,
    /// Who waits for a restart.
    waiting: Vec<oneshot::Sender<Result<(), String>>>,
    pause: Duration,
    failures: u32,
}

impl Supervisor {
    /// Before the first start.
    pub(super) fn new(shared: Arc<Shared>) -> Supervisor {
        Supervisor { shared, generation: 0, why: None, waiting: Vec::new(), pause: BACK_OFF.0, failures: 0 }
    }

    /// Start the image and keep it, until told otherwise or until every handle is dropped.
    pub(super) async fn run(mut self, mut commands: mpsc::UnboundedReceiver<Command>) {
        loop {
            let mut running = None;
            let ended = tokio::select! {
                biased;
                command = commands.recv() => Ended::Commanded(command),
                ended = self.life(&mut running) => ended,
            };
            let command = match ended {
                Ended::Commanded(command) => {
                    if let Some(instance) = running.as_ref().and_then(|running| running.instance.as_ref()) {
                        let restart = matches!(command, Some(Command::Restart(_)));
                        instance.note_end(if restart { RESTARTED } else { LEAVING });
                        // Nobody begins anything in it any more. The rest of the house is told when it is gone.
                        let next = if restart {
                            Phase::Starting("restarting".into(), None)
                        } else {
                            Phase::Dead(LEAVING.into(), true)
                        };
                        self.shared.phase.send_replace(next);
                    }
                    self.finish(running, "it was asked to leave", LEAVE).await;
                    command
                }
                ended => match self.after(ended, running).await {
                    Some(pause) => tokio::select! {
                        biased;
                        command = commands.recv() => command,
                        () = tokio::time::sleep(pause) => continue,
                    },
                    None => commands.recv().await,
                },
            };
            match command {
                Some(Command::Restart(reply)) => {
                    self.waiting.push(reply);
                    self.why = Some(RESTARTED.into());
                    (self.pause, self.failures) = (BACK_OFF.0, 0);
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

    /// One life, from nothing to its end. The process is in `running`, so that the caller can end it whenever this is dropped.
    async fn life(&mut self, running: &mut Option<Running>) -> Ended {
        self.generation += 1;
        let shared = self.shared.clone();
        let path = std::env::var("PATH").unwrap_or_default();
        let program = match program::find(&shared.config.command, &shared.workspace, &path) {
            Ok(program) => program,
            Err(error) => return Ended::CannotStart(error.to_string()),
        };
        let mut built = false;
        let instance = loop {
            let start = match shared.cache.lookup(&program) {
                Some(start) => start,
                None => match self.build(&program).await {
                    Ok(start) => {
                        built = true;
                        start
                    }
                    Err(reason) => return Ended::CannotStart(reason),
                },
            };
            shared.enter(Phase::Starting("starting SBCL".into(), None));
            match Running::begin(&shared, &program, &start, self.generation, &shared.events, running).await {
                Ok(instance) => {
                    shared.tasks.spawn_blocking_on(sweep(shared.cache.clone(), start), &shared.runtime);
                    break instance;
                }
                // What does not start is made again, once: a core may be damaged, and behind a command that runs some sbcl of its own choice
                // there may be another one now.
                Err(NotReady { reason, fault: Fault::Left }) if !built => {
                    tracing::warn!(reason, "what was cached does not start: it is built again");
                    self.finish(running.take(), &reason, Duration::ZERO).await;
                    shared.cache.discard(&start);
                }
                Err(NotReady { reason, fault: Fault::Surroundings }) => {
                    self.finish(running.take(), &reason, Duration::ZERO).await;
                    return Ended::CannotStart(reason);
                }
                // One that hangs does so again: each try costs a minute.
                Err(NotReady { reason, fault: Fault::Mute }) => {
                    self.failures = self.failures.max(TRIES - MUTE_TRIES);
                    return Ended::NotReady(reason);
                }
                Err(NotReady { reason, fault: Fault::Left }) => return Ended::NotReady(reason),
            }
        };
        // A command that is not the plain executable has loaded its own init files: it knows which (docs/wire.md).
        let init = program.plain || shared.config.init_file != InitFile::Default;
        let say = |what| shared.enter(Phase::Starting(what, Some(instance.clone())));
        let restored = tokio::select! {
            restored = restore(&shared, &instance, init, say) => restored,
            () = instance.end_wanted() => Err(()),
        };
        match (restored, instance.ending()) {
            (Ok(restoration), None) => self.ready(instance.clone(), restoration),
            (_, Some(reason)) => return Ended::Died(reason, true),
            (Err(()), None) => {} // it died, which is seen below
        }
        tokio::select! {
            // Both at once when it dies: the process says more.
            () = Self::exited(running) => {}
            () = instance.link.closed() => {}
            () = instance.end_wanted() => {}
            () = watch_dispatcher(&shared, &instance) => {}
        }
        match instance.ending() {
            Some(reason) => Ended::Died(reason, true),
            None => Ended::Died(String::new(), false),
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
        self.shared.enter(Phase::Building(what.into()));
        self.shared.cache.build(program, &self.shared.workspace).await.map_err(|error| error.to_string())
    }

    fn ready(&mut self, instance: Arc<Instance>, restoration: Restoration) {
        *lock(&self.shared.last) = Some(restoration.clone());
        self.failures = 0;
        self.shared.enter(Phase::Ready(instance));
        let Restoration { restored, failed } = restoration;
        match self.why.take() {
            Some(reason) => self.shared.tell(ImageEvent::Restored { reason, restored, failed }),
            None => {
                for (name, why) in failed {
                    self.shared
                        .tell(ImageEvent::Printed { text: format!("{name} could not be loaded: {why}"), stderr: true });
                }
            }
        }
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Ok(())); // whoever asked may have gone
        }
    }

    /// An image is gone: say so. How long to wait for the next; `None`: until somebody asks for it.
    async fn after(&mut self, ended: Ended, running: Option<Running>) -> Option<Duration> {
        let healthy = running.as_ref().is_some_and(|running| running.since.elapsed() > HEALTHY);
        let instance = running.as_ref().and_then(|running| running.instance.clone());
        let (reason, deliberate, is_final) = match ended {
            Ended::Died(reason, deliberate) => {
                let end = self.finish(running, &reason, Duration::ZERO).await;
                let reason = if deliberate { reason } else { format!("The Lisp image {end}") };
                (reason, deliberate, false)
            }
            Ended::NotReady(reason) => {
                self.finish(running, &reason, Duration::ZERO).await;
                self.failures += 1;
                (reason, false, self.failures >= TRIES)
            }
            Ended::CannotStart(reason) => (reason, false, true),
            Ended::Commanded(_) => return Some(Duration::ZERO),
        };
        lock(&self.shared.plan).died(&reason);
        if let Some(instance) = instance {
            instance.note_end(&reason);
        }
        self.why.get_or_insert_with(|| reason.clone());
        self.shared.enter(Phase::Dead(reason.clone(), is_final));
        if is_final {
            for waiting in self.waiting.drain(..) {
                let _ = waiting.send(Err(reason.clone())); // whoever asked may have gone
            }
            return None;
        }
        if healthy {
            self.pause = BACK_OFF.0;
        }
        let pause = if deliberate { Duration::ZERO } else { self.pause };
        if !deliberate {
            self.pause = (self.pause * 2).min(BACK_OFF.1);
        }
        Some(pause)
    }

    /// End a process and everything that came of it; how it ended.
    async fn finish(&self, running: Option<Running>, reason: &str, patience: Duration) -> String {
        match running {
            Some(running) => running.finish(reason, patience).await,
            None => String::new(),
        }
    }

    async fn leave(&mut self) {
        self.shared.enter(Phase::Dead(LEAVING.into(), true));
        for waiting in self.waiting.drain(..) {
            let _ = waiting.send(Err(LEAVING.into())); // whoever asked may have gone
        }
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }
}

fn sweep(cache: Cache, used: Start) -> impl FnOnce() + Send + 'static {
    move || cache.sweep(&used)
}

/// Notice when the whole image stands still, and say so. It is not ended for that: a collection of a large heap is not a fault.
async fn watch_dispatcher(shared: &Shared, instance: &Instance) {
    loop {
        tokio::time::sleep(SUSPICIOUS).await;
        if instance.link.oldest_wait().is_none_or(|wait| wait < SUSPICIOUS) || instance.answers(UNRESPONSIVE).await {
            continue;
        }
        let text = format!(
            "The Lisp image (process {}) has not answered for {} s: it may be collecting garbage, or be held by foreign code. \
             Restart it if it does not come back.",
            instance.ready.pid,
            UNRESPONSIVE.as_secs()
        );
        tracing::warn!(text);
        shared.tell(ImageEvent::Printed { text, stderr: true });
        let since = Instant::now();
        while !instance.answers(UNRESPONSIVE).await {}
        tracing::info!(seconds = since.elapsed().as_secs(), "the image answers again");
    }
}
