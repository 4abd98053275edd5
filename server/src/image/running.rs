//! One process of the image: from its start to the last of what came of it. Owned by the supervisor alone.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot};

use super::core::Start;
use super::excerpt::{clean, clock_advice, clock_fault, excerpt, heap_fault};
use super::frames::{CopyEnd, HeapFrame, PROTOCOL, ThreadErrorFrame, TraceFrame};
use super::instance::Instance;
use super::link::{Link, Volunteered, lock};
use super::pipes::{Pipes, Tell};
use super::process::{Launch, Started, describe, kill_group, start};
use super::program::Program;
use super::rate::Rate;
use super::runtime::Runtime;
use crate::config::{InitFile, LispConfig};
use crate::model::image::ImageEvent;

/// How long a process may take to say `ready`: a core does in tens of milliseconds, a wrapper has its own work to do.
const READY: Duration = Duration::from_secs(60);
/// How long copies may take to be gone.
const COPIES_GONE: Duration = Duration::from_secs(2);

/// Where the reason begins in what SBCL's runtime prints when it gives up, and how many lines it has.
const CAUSES: [&str; 5] =
    ["Heap exhausted", "fatal error", "Unhandled ", "INFO: Control stack guard page", "debugger invoked on"];
const CAUSE_LINES: usize = 4;
/// Lines before it, which may be of whatever brought it about.
const BEFORE_LINES: usize = 6;

/// Why an image did not become ready.
pub(crate) struct NotReady {
    /// For a person.
    pub(crate) reason: String,
    /// What it tells of the next try.
    pub(crate) fault: Fault,
}

/// What a start that failed tells of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process left by itself: what it was started from may be damaged.
    Left,
    /// It was there and did not become ready.
    Mute,
    /// It cannot have the heap that is configured, or has no clock to go by; the next one cannot and has not either.
    Surroundings,
}

/// A process that was started.
pub(crate) struct Running {
    child: Child,
    group: Option<Pid>,
    /// When.
    pub(crate) since: Instant,
    link: Arc<Link>,
    /// Once it is ready.
    pub(crate) instance: Option<Arc<Instance>>,
    /// Until it is ready.
    pipes: Option<Pipes>,
}

impl Running {
    /// Start a process and wait until it is ready. It is in `slot` from its start on. `events`: who hears what it volunteers.
    pub(crate) async fn begin(
        runtime: &Arc<Runtime>,
        program: &Program,
        start: &Start,
        generation: u64,
        events: &mpsc::UnboundedSender<ImageEvent>,
        slot: &mut Option<Running>,
    ) -> Result<Arc<Instance>, NotReady> {
        let (ready_sender, mut ready) = oneshot::channel();
        let running = Running::spawn(runtime, program, start, events, ready_sender).map_err(|error| NotReady {
            reason: format!("{} could not be started: {error}", program.path.display()),
            fault: Fault::Left,
        })?;
        let running = slot.insert(running);
        let name = program.path.display();
        let ready = tokio::select! {
            biased;
            Ok(ready) = &mut ready => ready,
            status = running.child.wait() => {
                let how = status.map_or_else(|error| error.to_string(), describe);
                return Err(running.left(&format!("{name} {how} before it was ready"), runtime.config().heap));
            }
            () = running.link.closed() => {
                // It usually exits right after; its exit says more than its link.
                let how = match tokio::time::timeout(Duration::from_secs(1), running.child.wait()).await {
                    Ok(Ok(status)) => describe(status),
                    _ => running.link.why_closed().unwrap_or_default(),
                };
                return Err(running.left(&format!("{name} {how} before it was ready"), runtime.config().heap));
            }
            () = tokio::time::sleep(READY) => {
                let reason = running.explain(&format!("{name} was not ready after {} s", READY.as_secs()));
                return Err(NotReady { reason, fault: Fault::Mute });
            }
        };
        if ready.protocol != PROTOCOL {
            let reason = format!(
                "The image speaks version {} of Consort's protocol and this host version {PROTOCOL}. \
                 Is another copy of Consort loaded by the init file?",
                ready.protocol
            );
            return Err(NotReady { reason, fault: Fault::Mute });
        }
        let Some(pipes) = running.pipes.take() else {
            return Err(NotReady { reason: "The image said twice that it is ready.".into(), fault: Fault::Mute });
        };
        let instance = Arc::new(Instance::new(generation, running.link.clone(), pipes, ready));
        running.instance = Some(instance.clone());
        Ok(instance)
    }

    fn spawn(
        runtime: &Arc<Runtime>,
        program: &Program,
        start_from: &Start,
        events: &mpsc::UnboundedSender<ImageEvent>,
        ready: oneshot::Sender<super::frames::Ready>,
    ) -> std::io::Result<Running> {
        let launch = Launch {
            program: program.path.clone(),
            arguments: arguments(program, start_from, &runtime.config()),
            directory: runtime.workspace.clone(),
            work: runtime.private.clone(),
        };
        tracing::debug!(?launch, "starting");
        let Started { child, link, out, err } = start(&launch)?;
        let group = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let heard = events.clone();
        let tell: Tell = Arc::new(move |text, stderr| {
            let _ = heard.send(ImageEvent::Printed { text, stderr }); // the session may have ended
        });
        let pipes = Pipes::open(out, err, tell, &runtime.handle)?;
        let link = Link::open(link, &runtime.handle, listener(events, ready))?;
        Ok(Running { child, group, since: Instant::now(), link, instance: None, pipes: Some(pipes) })
    }

    /// Resolves when the process has exited.
    pub(crate) async fn exited(&mut self) {
        if let Err(error) = self.child.wait().await {
            tracing::error!(%error, "waiting for the image");
        }
    }

    /// How the process ended, when it has. May be dropped and called again.
    pub(crate) async fn end(&mut self) -> std::io::Result<CopyEnd> {
        let status = self.child.wait().await?;
        Ok(CopyEnd { exit: status.code(), signal: status.signal() })
    }

    /// Why it left before it was ready.
    fn left(&self, what: &str, heap: u64) -> NotReady {
        let printed = self.last_printed();
        match heap_fault(&printed) {
            Some(says) => NotReady {
                reason: format!(
                    "SBCL cannot have a Lisp heap of {} MB, which `lisp.heap` says: {}. Configure a smaller one (`heap = \"1GB\"` in the table [lisp]), or raise the limit of this process's memory (`ulimit -v`), and restart the image.",
                    heap >> 20,
                    clean(says)
                ),
                fault: Fault::Surroundings,
            },
            None if clock_fault(&printed) => {
                NotReady { reason: format!("{what}. {}", clock_advice()), fault: Fault::Surroundings }
            }
            None => NotReady { reason: self.explain(what), fault: Fault::Left },
        }
    }

    fn last_printed(&self) -> String {
        let lines = match (&self.instance, &self.pipes) {
            (Some(instance), _) => instance.pipes.last_lines(),
            (None, Some(pipes)) => pipes.last_lines(),
            (None, None) => Vec::new(),
        };
        lines.join("\n")
    }

    fn explain(&self, what: &str) -> String {
        let printed = self.last_printed();
        // SBCL's runtime writes tables of its heap and its threads behind the reason.
        let cause = printed.lines().position(|line| CAUSES.iter().any(|cause| line.contains(cause)));
        let told = match cause {
            Some(at) => {
                let from = at.saturating_sub(BEFORE_LINES);
                printed.lines().skip(from).take(at - from + CAUSE_LINES).collect::<Vec<_>>().join("\n")
            }
            None => printed,
        };
        let told = excerpt(told.as_bytes());
        if told.is_empty() { format!("{what}.") } else { format!("{what}. It printed:\n{told}") }
    }

    /// End the process and its copies, after `patience` for leaving by itself. How it ended, to be read after its name.
    pub(crate) async fn finish(mut self, reason: &str, patience: Duration) -> String {
        if let Some(instance) = &self.instance {
            // While it lives, it reaps its copies.
            let copies_until = Instant::now() + if patience.is_zero() { Duration::ZERO } else { COPIES_GONE };
            while instance.kill_copies() > 0 && Instant::now() < copies_until {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        let why = self.link.why_closed();
        self.link.close(reason);
        // An image that died closes its link a moment before its exit can be seen; one whose link failed has not exited.
        let patience = if why.is_some() { patience.max(Duration::from_secs(1)) } else { patience };
        let mut how = None;
        if let Ok(Ok(status)) = tokio::time::timeout(patience, self.child.wait()).await {
            how = Some(describe(status));
        }
        // Also when the leader has exited: its copies are of its group.
        if let Some(group) = self.group {
            kill_group(group);
        }
        if let Some(process) = self.instance.as_ref().and_then(|instance| instance.process.as_ref()) {
            process.kill();
        }
        let how = match (how, self.child.wait().await) {
            (Some(how), _) => how,
            (None, Ok(_)) if why.is_some() => format!("had to be ended: {}", why.unwrap_or_default()),
            (None, Ok(status)) => describe(status),
            (None, Err(error)) => format!("cannot be waited for: {error}"),
        };
        self.copies_gone().await;
        self.explain(&how)
    }

    /// Wait until what was killed with the group is gone too.
    async fn copies_gone(&self) {
        let until = Instant::now() + COPIES_GONE;
        let there = |group| rustix::process::test_kill_process_group(group).is_ok();
        while self.group.is_some_and(there) && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// What hears the image from its first frame on.
fn listener(
    events: &mpsc::UnboundedSender<ImageEvent>,
    ready: oneshot::Sender<super::frames::Ready>,
) -> impl Fn(Volunteered) + Send + 'static {
    let ready = Mutex::new(Some(ready));
    let rate = Mutex::new(Rate::new());
    let events = events.clone();
    move |volunteered| match volunteered {
        Volunteered::Ready(frame) => {
            if let Some(ready) = lock(&ready).take() {
                let _ = ready.send(frame); // the start was given up
            }
        }
        Volunteered::Trace(TraceFrame { session, text }) => {
            let _ = events.send(ImageEvent::Trace { session, text }); // the session may have ended
        }
        Volunteered::ThreadError(ThreadErrorFrame { thread, kind, message, backtrace }) => {
            if lock(&rate).take().is_some() {
                let _ = events.send(ImageEvent::ThreadError { thread, kind, message, backtrace }); // the session may have ended
            }
        }
        Volunteered::Heap(HeapFrame { usage, size, stopped }) => {
            let text = format!(
                "Little of the Lisp heap is left ({} of {} MB in use): {} stopped. A larger one: `heap = \"8GB\"` in the table [lisp].",
                usage >> 20,
                size >> 20,
                if stopped.len() == 1 {
                    "1 evaluation was".into()
                } else {
                    format!("{} evaluations were", stopped.len())
                },
            );
            let _ = events.send(ImageEvent::Printed { text, stderr: true }); // the session may have ended
        }
    }
}

/// The arguments after the program (docs/wire.md, "Starting the image").
fn arguments(program: &Program, start: &Start, config: &LispConfig) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = program.arguments.iter().map(OsString::from).collect();
    if let Start::Core(core) = start {
        arguments.extend(["--core".into(), core.into()]);
    }
    arguments.extend(["--noinform", "--disable-ldb", "--dynamic-space-size"].map(OsString::from));
    arguments.push((config.heap >> 20).max(1).to_string().into());
    if let Start::Fasl(fasl) = start {
        if config.init_file != InitFile::Default {
            arguments.extend(["--no-sysinit", "--no-userinit"].map(OsString::from));
        }
        arguments.extend(["--disable-debugger".into(), "--load".into(), fasl.into()]);
        arguments.extend(["--eval", "(consort:main)"].map(OsString::from));
    }
    arguments
}
