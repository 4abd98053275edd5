//! A process of the image, from its start to the end of its last descendant. Only the supervisor
//! owns it.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use tokio::process::Child;
use tokio::sync::{broadcast, mpsc, oneshot};

use super::core::Start;
use super::excerpt::{clean, clock_advice, clock_fault, excerpt, heap_fault};
use super::frames::{CopyEnd, HeapFrame, InputFrame, InputOverFrame, PROTOCOL, ThreadErrorFrame, TraceFrame};
use super::hang::{Steps, hangs};
use super::instance::Instance;
use super::link::{CLOSED_BY_IMAGE, Link, Unsolicited};
use super::pipes::{LineSink, Pipes};
use super::process::{Launch, Started, describe, kill_group, start};
use super::program::Program;
use super::rate::Rate;
use super::runtime::Runtime;
use crate::config::{InitFile, LispConfig};
use crate::limits;
use crate::locked::lock;
use crate::model::image::ImageEvent;
use crate::model::stop::StopEvent;

/// The time limit for a process to send `ready`. A start from a core takes tens of milliseconds. A
/// wrapper may take longer.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
/// The time limit for copies to end.
const COPIES_GONE: Duration = Duration::from_secs(2);

/// Strings that mark the first line of the reason for an exit in the final output of SBCL's
/// runtime.
const CAUSES: [&str; 5] =
    ["Heap exhausted", "fatal error", "Unhandled ", "INFO: Control stack guard page", "debugger invoked on"];
/// The number of lines that are shown from the reason's first line.
const CAUSE_LINES: usize = 4;
/// The number of lines before the reason that are shown.
const BEFORE_LINES: usize = 6;

/// The reason why an image did not become ready.
pub(crate) struct StartError {
    /// The reason, for the user.
    pub(crate) reason: String,
    /// The kind, which determines the next start.
    pub(crate) kind: StartErrorKind,
}

/// The kind of a [`StartError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartErrorKind {
    /// The process exited by itself. The file from which it was started may be damaged.
    Exited,
    /// The process could not be spawned, for lack of descriptors or processes. The next try may
    /// succeed.
    NotSpawned,
    /// The process ran and did not become ready, or does not speak this host's protocol.
    Unresponsive,
    /// The process cannot have the configured heap, or has no usable clock. The next process would
    /// fail too.
    Environment,
}

impl StartError {
    fn unresponsive(reason: String) -> StartError {
        StartError { reason, kind: StartErrorKind::Unresponsive }
    }
}

/// A started process.
pub(crate) struct Running {
    child: Child,
    group: Option<Pid>,
    /// The time of the start.
    pub(crate) since: Instant,
    link: Arc<Link>,
    /// The instance, once the process is ready.
    pub(crate) instance: Option<Arc<Instance>>,
    /// The output pipes, until the process is ready.
    pipes: Option<Pipes>,
}

impl Running {
    /// Starts a process and waits until it is ready. The process is stored in `slot` as soon as it
    /// has started, so that it can be ended if this future is dropped. `events` receives the
    /// unsolicited events of the process.
    ///
    /// # Errors
    /// The process could not be spawned, exited, or was not ready within [`READY_TIMEOUT`].
    pub(crate) async fn begin(
        runtime: &Arc<Runtime>,
        program: &Program,
        start: &Start,
        generation: u64,
        events: &mpsc::UnboundedSender<ImageEvent>,
        slot: &mut Option<Running>,
    ) -> Result<Arc<Instance>, StartError> {
        let (ready_sender, mut ready) = oneshot::channel();
        let running = Running::spawn(runtime, program, start, events, ready_sender).map_err(|error| StartError {
            reason: format!("{} could not be started: {}", program.path.display(), limits::explained(&error)),
            kind: StartErrorKind::NotSpawned,
        })?;
        let running = slot.insert(running);
        let name = program.path.display();
        let (leader, steps) = (running.child.id().unwrap_or_default(), Steps::default());
        let ready = tokio::select! {
            biased;
            Ok(ready) = &mut ready => ready,
            status = running.child.wait() => {
                let how = status.map_or_else(|error| error.to_string(), describe);
                return Err(running.exited_early(&format!("{name} {how} before it was ready"), runtime.config().heap));
            }
            () = running.link.closed() => {
                // The process usually exits right after closing its link. The exit status says more
                // than the link.
                let how = match crate::steady::timeout(Duration::from_secs(1), running.child.wait()).await {
                    Ok(Ok(status)) => describe(status),
                    _ => running.link.why_closed().unwrap_or_default(),
                };
                return Err(running.exited_early(&format!("{name} {how} before it was ready"), runtime.config().heap));
            }
            () = crate::steady::sleep(READY_TIMEOUT) => {
                let reason = running.explain(&format!("{name} was not ready after {} s", READY_TIMEOUT.as_secs()));
                return Err(StartError::unresponsive(reason));
            }
            // Other commands than the plain executable may first load init files of their own,
            // which may wait for a network.
            how = hangs(leader, &steps, || {}), if program.plain => {
                let reason = running.explain(&format!("{name} {how} before it was ready"));
                return Err(StartError::unresponsive(reason));
            }
        };
        if ready.protocol != PROTOCOL {
            let reason = format!(
                "The image speaks version {} of Consort's protocol and this host version {PROTOCOL}. \
                 Is another copy of Consort loaded by the init file?",
                ready.protocol
            );
            return Err(StartError::unresponsive(reason));
        }
        let Some(pipes) = running.pipes.take() else {
            return Err(StartError::unresponsive("The image said twice that it is ready.".into()));
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
            keep_programs: !runtime.config().end_programs,
        };
        tracing::debug!(?launch, "starting");
        let Started { child, link, out, err } = start(&launch)?;
        let group = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let sender = events.clone();
        let print: LineSink = Arc::new(move |text, stderr| {
            let _ = sender.send(ImageEvent::Printed { text, stderr }); // the session may have ended
        });
        let pipes = Pipes::open(out, err, print, &runtime.handle)?;
        let link = Link::open(link, &runtime.handle, listener(events, &runtime.stops, ready))?;
        Ok(Running { child, group, since: Instant::now(), link, instance: None, pipes: Some(pipes) })
    }

    /// Resolves when the process has exited.
    pub(crate) async fn exited(&mut self) {
        if let Err(error) = self.child.wait().await {
            tracing::error!(%error, "waiting for the image");
        }
    }

    /// Waits until the process has exited, and returns its exit status. The future may be dropped
    /// and the method called again.
    pub(crate) async fn end(&mut self) -> std::io::Result<CopyEnd> {
        let status = self.child.wait().await?;
        Ok(CopyEnd { exit: status.code(), signal: status.signal() })
    }

    /// Returns the error for a process that exited before it was ready. `what` describes the exit,
    /// and `heap` is the size of the configured heap in bytes.
    fn exited_early(&self, what: &str, heap: u64) -> StartError {
        let printed = self.last_printed();
        match heap_fault(&printed) {
            Some(says) => StartError {
                reason: format!(
                    "SBCL cannot have a Lisp heap of {} MB, which `lisp.heap` says: {}. Configure a smaller one (`heap = \"1GB\"` in the table [lisp]), or raise the limit of this process's memory (`ulimit -v`), and restart the image.",
                    heap >> 20,
                    clean(says)
                ),
                kind: StartErrorKind::Environment,
            },
            None if clock_fault(&printed) => {
                StartError { reason: format!("{what}. {}", clock_advice()), kind: StartErrorKind::Environment }
            }
            None => StartError { reason: self.explain(what), kind: StartErrorKind::Exited },
        }
    }

    /// Returns the last lines that the process printed.
    fn last_printed(&self) -> String {
        let lines = match (&self.instance, &self.pipes) {
            (Some(instance), _) => instance.pipes.last_lines(),
            (None, Some(pipes)) => pipes.last_lines(),
            (None, None) => Vec::new(),
        };
        lines.join("\n")
    }

    /// Returns the sentence `what` with the lines that the process printed about the cause.
    fn explain(&self, what: &str) -> String {
        let printed = self.last_printed();
        // SBCL's runtime prints tables of its heap and its threads after the reason.
        let cause = printed.lines().position(|line| CAUSES.iter().any(|cause| line.contains(cause)));
        let shown = match cause {
            Some(at) => {
                let from = at.saturating_sub(BEFORE_LINES);
                printed.lines().skip(from).take(at - from + CAUSE_LINES).collect::<Vec<_>>().join("\n")
            }
            None => printed,
        };
        let shown = excerpt(shown.as_bytes());
        if shown.is_empty() { format!("{what}.") } else { format!("{what}. It printed:\n{shown}") }
    }

    /// Ends the process and its copies. The process is killed if it has not exited by itself within
    /// `patience`. Returns a description of its end and its last output. The description completes
    /// a sentence with the process as its subject, such as `exited with code 1`.
    pub(crate) async fn finish(mut self, reason: &str, patience: Duration) -> String {
        if let Some(instance) = &self.instance {
            // An image that runs reaps its copies.
            let copies_until = Instant::now() + if patience.is_zero() { Duration::ZERO } else { COPIES_GONE };
            while instance.kill_copies() > 0 && Instant::now() < copies_until {
                crate::steady::sleep(Duration::from_millis(5)).await;
            }
        }
        let why = self.link.why_closed();
        self.link.close(reason);
        // An image that died closes its link a moment before its exit can be seen. An image with a
        // failed link has not exited.
        let patience = if why.is_some() { patience.max(Duration::from_secs(1)) } else { patience };
        let mut how = None;
        if let Ok(Ok(status)) = crate::steady::timeout(patience, self.child.wait()).await {
            how = Some(describe(status));
        }
        // The group is killed even if its leader has exited, because it contains the copies.
        if let Some(group) = self.group {
            kill_group(group);
        }
        if let Some(process) = self.instance.as_ref().and_then(|instance| instance.process.as_ref()) {
            process.kill();
        }
        // An image whose link had failed exits with code 0. The code is not the cause.
        let failed = why.as_ref().is_some_and(|why| why != CLOSED_BY_IMAGE);
        let how = match (how, self.child.wait().await) {
            (Some(how), _) if !failed => how,
            (_, Ok(_)) if why.is_some() => format!("had to be ended: {}", why.unwrap_or_default()),
            (_, Ok(status)) => describe(status),
            (_, Err(error)) => format!("cannot be waited for: {error}"),
        };
        self.copies_gone().await;
        self.explain(&how)
    }

    /// Waits until the processes that were killed with the group are gone.
    async fn copies_gone(&self) {
        let until = Instant::now() + COPIES_GONE;
        let exists = |group| rustix::process::test_kill_process_group(group).is_ok();
        while self.group.is_some_and(exists) && Instant::now() < until {
            crate::steady::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// Returns the handler of the image's unsolicited frames.
fn listener(
    events: &mpsc::UnboundedSender<ImageEvent>,
    stops: &broadcast::Sender<StopEvent>,
    ready: oneshot::Sender<super::frames::Ready>,
) -> impl Fn(Unsolicited) + Send + 'static {
    let ready = Mutex::new(Some(ready));
    let rate = Mutex::new(Rate::new());
    let (events, stops) = (events.clone(), stops.clone());
    move |unsolicited| match unsolicited {
        Unsolicited::Ready(frame) => {
            if let Some(ready) = lock(&ready).take() {
                let _ = ready.send(frame); // the start was given up
            }
        }
        Unsolicited::Trace(TraceFrame { session, text }) => {
            let _ = events.send(ImageEvent::Trace { session, text }); // the session may have ended
        }
        Unsolicited::ThreadError(ThreadErrorFrame { thread, kind, message, backtrace, frozen }) => {
            if lock(&rate).take().is_some() {
                let _ = events.send(ImageEvent::ThreadError { thread, kind, message, backtrace, frozen }); // the session may have ended
            }
        }
        Unsolicited::Stop(event) => {
            // The session is told before the front ends, so that it knows of the stop when they ask
            // about it.
            let told = match &event {
                StopEvent::Stopped(stop) => {
                    stop.session.clone().map(|session| ImageEvent::Stopped { session, stop: stop.number })
                }
                StopEvent::Left(left) => Some(ImageEvent::StopLeft { stop: left.stop }),
                StopEvent::Breakpoints(_)
                | StopEvent::Log(_)
                | StopEvent::Input { .. }
                | StopEvent::InputOver { .. } => None,
            };
            if let Some(told) = told {
                let _ = events.send(told); // the session may have ended
            }
            let _ = stops.send(event); // nobody may be listening
        }
        Unsolicited::Input(InputFrame { evaluation, session, wanted }) => {
            let _ = stops.send(StopEvent::Input { evaluation, question: wanted.question });
            let _ = events.send(ImageEvent::Input { session, wanted }); // the session may have ended
        }
        Unsolicited::InputOver(InputOverFrame { evaluation, question }) => {
            let _ = stops.send(StopEvent::InputOver { evaluation, question });
            let _ = events.send(ImageEvent::InputOver { question: Some(question) }); // the session may have ended
        }
        Unsolicited::Heap(HeapFrame { usage, size, stopped }) => {
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

/// Returns the arguments after the program (docs/wire.md, "Starting the image").
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
