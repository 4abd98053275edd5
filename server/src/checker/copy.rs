//! A check: a copy of the image is requested, followed and, when it passes a limit or its result is
//! no longer wanted, killed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use serde::Serialize;
use serde::de::IgnoredAny;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use super::Shared;
use super::job::{AFTERWARDS, CheckJob, Files, Look, Wire};
use super::memory;
use super::report::{Findings, LINE_LIMIT, Limit};
use super::scratch::Scratch;
use super::warm;
use super::worker::{self, WorkerProcess};
use crate::image::api::expand::ExpandParams;
use crate::image::api::{CheckParams, CheckSystemParams};
use crate::image::frames::CopyEnd;
use crate::image::instance::Instance;
use crate::image::lines::Lines;
use crate::image::link::{Call, CallError, Listener};
use crate::image::process::{PidHandle, describe_signal};
use crate::image::runtime::lost;
use crate::model::check::{CheckEnd, CheckReport};
use crate::model::expansion::ExpandAnswer;
use crate::model::image::{ImageError, Progress};

/// The number of repeated requests to a busy image; the pause doubles each time.
const BUSY_TRIES: u32 = 6;
/// The time for which a check waits for its turn.
const TURN: Duration = Duration::from_secs(60);
/// The time limit of a fork by the image, which has a shorter limit of its own.
const FORK: Duration = Duration::from_secs(15);
/// The waiting times that a test may shorten.
#[derive(Debug)]
pub(super) struct Waits {
    /// The first pause before the next request to a busy image; the pauses add up to 3.2 s.
    pub(super) busy: Duration,
    /// The limit for a copy to connect, at the first try and at the second. A copy that inherited a
    /// held lock never connects.
    pub(super) connect: [Duration; 2],
}

impl Default for Waits {
    fn default() -> Waits {
        Waits { busy: Duration::from_millis(50), connect: [Duration::from_secs(2), Duration::from_secs(5)] }
    }
}

/// The upper bound of a deadline, so that it can be added to the time of day.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);
/// The number of descriptors that a copy needs for its work.
const SPARE_DESCRIPTORS: usize = 8;
/// The interval between checks of the limits.
const WATCH: Duration = Duration::from_millis(50);

/// The source of the notice that a copy ended.
enum ChildHandle {
    /// The image's answer: the image reaps its copy.
    Image(Call),
    /// The second process that becomes the copy; the call is answered only when it refuses.
    Process(Box<WorkerProcess>, Call),
}

impl ChildHandle {
    /// Returns how the copy ended, when it has. May be dropped and called again until it resolved
    /// once.
    async fn end(&mut self) -> Result<CopyEnd, CallError> {
        match self {
            ChildHandle::Image(call) => call.result().await,
            ChildHandle::Process(worker, call) => worker.end(Some(call)).await,
        }
    }
}

/// The reason why an attempt gave no report.
pub(super) enum Failed {
    /// The image could not fork now.
    Busy(String),
    /// The image can never be forked as it is; the reason is for the user.
    Unforkable(String),
    /// The copy did not connect, or died before it did; the reason is for the user.
    Mute(String),
    /// The image died.
    Gone(Arc<Instance>),
    /// Any other error.
    Error(ImageError),
}

/// The expected successor of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priority {
    /// No known successor.
    None,
    /// Similar checks, so a copy is kept ready for the next.
    More,
    /// A check of the same text, edited, for which the user waits. As [`Priority::More`], and ahead
    /// of the checks of others.
    Edited,
}

/// Runs `check`; see [`super::Checker::check`].
pub(super) async fn check(
    shared: &Arc<Shared>,
    params: CheckParams,
    priority: Priority,
) -> Result<CheckReport, ImageError> {
    let (more, edited) = (priority != Priority::None, priority == Priority::Edited);
    let job = CheckJob {
        op: "check",
        what: "a check",
        deadline: params.deadline,
        memory: params.memory,
        first: (PathBuf::new(), params.text.chars().count()),
        last_form: params.last_form,
        until_exit: !more,
        params,
        files: None,
    };
    let _next = more.then(|| warm::Next::after(shared, &job.params));
    let reports = match if more { check_warm(shared, &job, edited).await? } else { None } {
        Some(reports) => reports,
        None => run(shared, &job, edited).await?.reports,
    };
    let report = reports.into_iter().next_back();
    report.map(|(_, report)| report).ok_or_else(|| ImageError::Unavailable("The check gave no report.".into()))
}

/// Runs `check-system`; see [`super::Checker::check_system`].
pub(super) async fn check_system(
    shared: &Arc<Shared>,
    params: CheckSystemParams,
    look: Look,
    progress: Option<mpsc::UnboundedSender<Progress>>,
) -> Result<Vec<(PathBuf, CheckReport)>, ImageError> {
    let Some(path) = params.asd.clone().or_else(|| params.only.first().cloned()) else {
        let message = "Name the system's definition, or files of it.".into();
        return Err(ImageError::Refused { kind: "bad-params".into(), message });
    };
    let job = CheckJob {
        op: "check-system",
        what: "a check",
        deadline: params.deadline,
        memory: params.memory,
        first: (path, 0),
        last_form: None,
        until_exit: true,
        params,
        files: Some(Files { look, progress }),
    };
    Ok(run(shared, &job, false).await?.reports)
}

/// Runs `macroexpand`; see [`super::Checker::expand`].
pub(super) async fn expand(shared: &Arc<Shared>, params: ExpandParams) -> Result<ExpandAnswer, ImageError> {
    let job = CheckJob {
        op: "macroexpand",
        what: "an expansion",
        deadline: params.deadline,
        memory: params.memory,
        first: (PathBuf::new(), params.request.text.chars().count()),
        last_form: None,
        until_exit: false,
        params,
        files: None,
    };
    let mut told = run(shared, &job, false).await?;
    let why = match told.answer.map(serde_json::from_value) {
        Some(Ok(answer)) => return Ok(answer),
        Some(Err(error)) => format!("The copy of the image gave an answer that means nothing: {error}"),
        None => match told.reports.pop().map(|(_, report)| report.end) {
            Some(CheckEnd::Stopped { reason }) => reason,
            _ => "The copy of the image gave no answer.".into(),
        },
    };
    Err(ImageError::Refused { kind: "stopped".into(), message: format!("The expansion was stopped: {why}") })
}

/// The output of a copy.
struct CheckOutput {
    reports: Vec<(PathBuf, CheckReport)>,
    answer: Option<serde_json::Value>,
}

/// Checks in the copy that is kept ready. `None`: there is none, or it could not be used.
async fn check_warm(
    shared: &Arc<Shared>,
    job: &CheckJob<CheckParams>,
    edited: bool,
) -> Result<Option<Vec<(PathBuf, CheckReport)>>, ImageError> {
    let (deadline, permit) = (job.within()?, turn(shared, edited).await?);
    let Some((mut forked, lines, answers)) = warm::claim(shared, &job.params, &permit).await else {
        return Ok(None);
    };
    let findings = job.findings().trusted();
    // The copy may have ended with the image; the text is then checked as if there had been no
    // copy.
    let told = forked.follow(lines, answers, findings, job, deadline).await.ok();
    Ok(told.inspect(|_| forked.finish_if_ended()).map(|told| told.reports))
}

/// Acquires a permit to use a copy. A check of an `edited` text does not wait for checks requested
/// by agents and terminals.
async fn turn(shared: &Arc<Shared>, edited: bool) -> Result<Arc<OwnedSemaphorePermit>, ImageError> {
    let leave = async {
        tokio::select! {
            biased;
            leave = shared.copies.clone().acquire_owned() => leave,
            leave = shared.reserved.clone().acquire_owned(), if edited => leave,
        }
    };
    match timeout(TURN, leave).await {
        Ok(Ok(permit)) => Ok(Arc::new(permit)),
        _ => Err(ImageError::Busy("Other checks are still running; try again in a moment.".into())),
    }
}

async fn run<P: Serialize>(shared: &Arc<Shared>, job: &CheckJob<P>, edited: bool) -> Result<CheckOutput, ImageError> {
    let (deadline, permit) = (job.within()?, turn(shared, edited).await?);
    let (mut busy, mut mute, mut again, mut by_process) = (0, 0, true, false);
    loop {
        match attempt(shared, job, deadline, shared.waits.connect[mute], permit.clone(), by_process).await {
            Ok(told) => return Ok(told),
            Err(Failed::Busy(_)) if busy < BUSY_TRIES => {
                sleep(shared.waits.busy * 2_u32.pow(busy)).await;
                busy += 1;
            }
            Err(Failed::Busy(message)) => return Err(ImageError::Busy(message)),
            Err(Failed::Unforkable(reason)) => {
                tracing::warn!(reason, "checking in a second process");
                by_process = true;
            }
            Err(Failed::Mute(reason)) if mute + 1 < shared.waits.connect.len() => {
                tracing::warn!(reason, "a check is tried once more");
                mute += 1;
            }
            Err(Failed::Mute(reason)) => {
                return Ok(CheckOutput { reports: job.findings().stopped(Limit::Other, reason), answer: None });
            }
            // Usually another call ended the image, and the check can run in the next image.
            Err(Failed::Gone(_)) if again => again = false,
            Err(Failed::Gone(instance)) => return Err(lost(&shared.runtime, &instance).await),
            Err(Failed::Error(error)) => return Err(error),
        }
    }
}

async fn attempt<P: Serialize>(
    shared: &Arc<Shared>,
    job: &CheckJob<P>,
    deadline: Duration,
    connect: Duration,
    permit: Arc<OwnedSemaphorePermit>,
    by_process: bool,
) -> Result<CheckOutput, Failed> {
    let mut forked = ForkedCheck::start(shared, job, Some(permit), by_process).await?;
    let (read, answers) = forked.connection(connect).await?.into_split();
    let lines = Lines::new(read, LINE_LIMIT);
    let told = forked.follow(lines, answers, job.findings(), job, deadline).await?;
    forked.finish_if_ended();
    Ok(told)
}

/// A copy that is requested or runs. When dropped, the copy is killed as soon as its process is
/// known.
pub(super) struct ForkedCheck {
    shared: Arc<Shared>,
    instance: Arc<Instance>,
    child: Option<ChildHandle>,
    copied: Option<oneshot::Receiver<u32>>,
    pid_handle: Option<Arc<PidHandle>>,
    pid: u32,
    /// Bytes that a second process had before the check began; they do not count for the check.
    had: u64,
    /// The end of the copy, when known; the copy was then reaped.
    end: Option<CopyEnd>,
    scratch: Option<Scratch>,
    permit: Option<Arc<OwnedSemaphorePermit>>,
}

impl ForkedCheck {
    /// Requests a copy; `by_process`: from a second process, even if the image can be forked.
    pub(super) async fn start<P: Serialize>(
        shared: &Arc<Shared>,
        job: &CheckJob<P>,
        permit: Option<Arc<OwnedSemaphorePermit>>,
        by_process: bool,
    ) -> Result<ForkedCheck, Failed> {
        let instance = shared.runtime.instance().await.map_err(Failed::Error)?;
        let by_process = by_process || worker::wanted(shared, &instance);
        let worker = if by_process { Some(worker::take(shared, &instance).await?) } else { None };
        let scratch = Scratch::new(&shared.runtime.private).map_err(|error| {
            let directory = shared.runtime.private.display();
            Failed::Error(ImageError::Unavailable(format!(
                "Nothing can be checked: no scratch directory in {directory}: {error}"
            )))
        })?;
        let (sender, copied) = oneshot::channel();
        let wire = Wire {
            params: &job.params,
            socket: scratch.socket(),
            token: &scratch.token,
            scratch: scratch.path(),
            withhold: job.files.is_some(),
            in_place: by_process,
        };
        let asked = worker.as_ref().and_then(|worker| worker.instance()).unwrap_or(&instance);
        let call = asked.link.call(job.op, &wire, None, Listener::Copy(Some(sender))).map_err(Failed::Error)?;
        let child = match worker {
            Some(worker) => ChildHandle::Process(worker, call),
            None => ChildHandle::Image(call),
        };
        Ok(ForkedCheck {
            shared: shared.clone(),
            instance,
            child: Some(child),
            copied: Some(copied),
            pid_handle: None,
            pid: 0,
            had: 0,
            end: None,
            scratch: Some(scratch),
            permit,
        })
    }

    /// Waits for the fork and for the copy to connect.
    pub(super) async fn connection(&mut self, limit: Duration) -> Result<UnixStream, Failed> {
        let (Some(child), Some(copied), Some(scratch)) = (&mut self.child, &mut self.copied, &mut self.scratch) else {
            return Err(Failed::Mute("The copy is gone.".into()));
        };
        let asked = tokio::select! {
            biased;
            Ok(pid) = copied => Ok(pid),
            end = child.end() => Err(early(end, &self.instance)),
            () = sleep(FORK) => {
                let message = format!("The image could not be copied within {} s: a thread of it cannot be stopped.", FORK.as_secs());
                return Err(Failed::Unforkable(message)); // what comes of it yet is killed
            }
        };
        self.copied = None;
        self.pid = asked?;
        if let Some(pid_handle) = PidHandle::new(self.pid) {
            let pid_handle = Arc::new(pid_handle);
            self.instance.adopt(self.pid, pid_handle.clone());
            self.pid_handle = Some(pid_handle);
        }
        let accepted = tokio::select! {
            biased;
            accepted = scratch.accept(self.pid) => accepted,
            end = child.end() => {
                // The copy may have connected, and done all its work.
                let Ok(accepted) = timeout(WATCH, scratch.accept(self.pid)).await else { return Err(early(end, &self.instance)) };
                self.end = Some(end.map_err(|error| early(Err(error), &self.instance))?);
                accepted
            }
            () = sleep(limit) => {
                return Err(Failed::Mute(format!("The check's copy of the image did not begin within {} s.", limit.as_secs_f64())));
            }
        };
        if let (ChildHandle::Process(..), Some(pid_handle)) = (child, &self.pid_handle) {
            self.had = memory::resident(pid_handle.pid()).unwrap_or(0);
        }
        accepted.map_err(no_socket)
    }

    /// Reads the copy's findings until it is done or has ended, within its limits. A copy that is
    /// done is not awaited: freeing its memory takes as long as checking a small text.
    async fn follow<P>(
        &mut self,
        mut lines: Lines<OwnedReadHalf>,
        mut answers: OwnedWriteHalf,
        mut findings: Findings,
        job: &CheckJob<P>,
        within: Duration,
    ) -> Result<CheckOutput, Failed> {
        let files = job.files.as_ref();
        let (Some(child), Some(scratch)) = (&mut self.child, &self.scratch) else {
            return Err(Failed::Mute("The copy is gone.".into()));
        };
        let pid_handle = self.pid_handle.clone();
        let deadline = Instant::now() + within.min(LONGEST);
        let mut ticks = interval(WATCH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut passed: Option<(Limit, String)> = None;
        let mut end = self.end.take();
        // When either the output or the process has ended, the other must end soon.
        let mut impatient: Option<Instant> = None;
        let mut open = true;
        // Code under check can send the message that the check is done. For a text without findings
        // the message counts only when the copy has exited normally.
        let awaits_exit = |findings: &Findings| job.until_exit && findings.is_clean();
        while (!findings.is_done() || (awaits_exit(&findings) && end.is_none())) && (open || end.is_none()) {
            let mut over: Option<(Limit, String)> = None;
            tokio::select! {
                line = lines.next(), if open => {
                    let why = match line {
                        Ok(Some(line)) => match (findings.take(line, &scratch.token), files) {
                            (Ok(taken), Some(files)) => files.serve(taken, &mut findings, &mut answers).await.err(),
                            (Ok(_), None) => None,
                            (Err(why), _) => Some(why),
                        },
                        Ok(None) => {
                            open = false;
                            None
                        }
                        Err(error) => Some(error.to_string()),
                    };
                    if let Some(why) = why {
                        open = false;
                        over = Some((Limit::Other, format!("The copy of the image was stopped: {why}.")));
                    }
                }
                result = child.end(), if end.is_none() => match result {
                    Ok(how) => end = Some(how),
                    Err(error) => return Err(early(Err(error), &self.instance)),
                },
                now = ticks.tick() => match impatient {
                    Some(since) if now <= since + AFTERWARDS => {}
                    Some(_) if end.is_none() && passed.is_none() => {
                        impatient = Some(now);
                        over = Some((Limit::Other, "The copy of the image did not end.".into()));
                    }
                    Some(_) => break,
                    None => over = passed_limit(pid_handle.as_deref(), now > deadline, within, (job.memory, self.had), job.what),
                },
            }
            if let Some(over) = over {
                if let Some(pid_handle) = &pid_handle {
                    pid_handle.kill();
                }
                passed.get_or_insert(over);
            }
            if (!open || end.is_some() || passed.is_some()) && impatient.is_none() {
                impatient = Some(Instant::now());
            }
        }
        let answer = findings.take_answer();
        let reports = match passed {
            Some((limit, reason)) => findings.stopped(limit, reason),
            None if findings.is_done() && awaits_exit(&findings) && !left_well(end.as_ref()) => {
                let why = || hindrance(Some(&self.shared.runtime.private), &self.instance);
                let (limit, reason) = explain(end.as_ref(), why);
                findings.stopped(limit, reason)
            }
            None if findings.is_done() => findings.complete(),
            // The copy was killed because the image is being ended.
            None if self.instance.ending().is_some() => return Err(Failed::Gone(self.instance.clone())),
            None => {
                // The text is not the cause: the check can run when memory is available again.
                if end.as_ref().is_some_and(|end| end.exit.is_some())
                    && let Some(why) = hindrance(Some(&self.shared.runtime.private), &self.instance)
                {
                    self.end = end;
                    return Err(Failed::Error(ImageError::Unavailable(format!("Nothing can be checked: {why}"))));
                }
                let (limit, reason) = explain(end.as_ref(), || None);
                findings.stopped(limit, reason)
            }
        };
        self.end = end;
        Ok(CheckOutput { reports, answer })
    }

    /// Returns whether the copy is one of this image.
    pub(super) fn is_of(&self, instance: &Arc<Instance>) -> bool {
        Arc::ptr_eq(&self.instance, instance)
    }

    /// Returns the token that the copy must send first.
    pub(super) fn token(&self) -> Option<&str> {
        self.scratch.as_ref().map(|scratch| scratch.token.as_str())
    }

    /// Holds the permit while the copy runs.
    pub(super) fn hold(&mut self, permit: Arc<OwnedSemaphorePermit>) {
        self.permit = Some(permit);
    }

    /// Resolves when the copy or the image has ended. May be dropped and called again.
    pub(super) async fn ended(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.end().await; // as it may
        }
    }

    /// Finishes at once if the copy has ended and was reaped.
    fn finish_if_ended(&mut self) {
        if self.end.is_none() || matches!(self.child, Some(ChildHandle::Process(..))) {
            return;
        }
        self.instance.forget(self.pid);
        self.child = None;
        if let Some(mut scratch) = self.scratch.take() {
            scratch.remove(&self.shared);
        }
    }
}

/// Returns the limit that a copy has passed, if any.
fn passed_limit(
    pid_handle: Option<&PidHandle>,
    late: bool,
    within: Duration,
    (memory, had): (u64, u64),
    what: &str,
) -> Option<(Limit, String)> {
    if late {
        let seconds = within.as_secs_f64();
        return Some((Limit::Time, format!("It took longer than the {seconds} s that {what} may take.")));
    }
    if memory::exceeds(pid_handle?.pid(), memory.saturating_add(had))? {
        let megabytes = memory >> 20;
        return Some((Limit::Memory, format!("It took more than the {megabytes} MB of memory that {what} may take.")));
    }
    None
}

fn no_socket(error: std::io::Error) -> Failed {
    Failed::Error(ImageError::Unavailable(format!("Nothing can be checked: the copy's socket failed: {error}")))
}

/// Converts an answer that came before the copy had connected, or that is an error.
fn early(end: Result<CopyEnd, CallError>, instance: &Arc<Instance>) -> Failed {
    match end {
        Ok(_) if instance.ending().is_some() => Failed::Gone(instance.clone()),
        Ok(end) => Failed::Mute(explain(Some(&end), || hindrance(None, instance)).1),
        Err(CallError::Refused(ImageError::Busy(message))) => Failed::Busy(message),
        Err(CallError::Refused(ImageError::Refused { kind, message })) if kind == "cannot-fork" => {
            Failed::Unforkable(message)
        }
        Err(CallError::Refused(error)) => Failed::Error(error),
        Err(CallError::Gone) => Failed::Gone(instance.clone()),
    }
}

/// Returns whether a copy exited by itself with code 0.
fn left_well(end: Option<&CopyEnd>) -> bool {
    end.is_some_and(|end| end.exit == Some(0) && end.signal.is_none())
}

/// Explains the end of a copy that did not report that it was done.
fn explain(end: Option<&CopyEnd>, hindrance: impl FnOnce() -> Option<String>) -> (Limit, String) {
    match end {
        Some(CopyEnd { signal: Some(signal), .. }) if *signal == Signal::XCPU.as_raw() => {
            (Limit::Time, "It used up the processor time that a check may take.".into())
        }
        Some(CopyEnd { signal: Some(signal), .. }) => {
            (Limit::Other, format!("The copy of the image was killed by {}.", describe_signal(*signal)))
        }
        Some(CopyEnd { exit: Some(code), .. }) => (Limit::Other, gave_up(*code, hindrance())),
        _ => (Limit::Other, "The copy of the image ended before it was done.".into()),
    }
}

/// Describes the end of a copy that gave up and could not send the reason.
fn gave_up(code: i32, hindrance: Option<String>) -> String {
    let why = hindrance.unwrap_or_else(|| {
        "Code under check, or a method of yours on PRINT-OBJECT or on another function of the Lisp itself, may fail in every copy; \
         restart the image if that goes on."
            .into()
    });
    format!("The copy of the image gave up before it was done (exit code {code}). {why}")
}

/// Returns a common obstacle to a copy's work, if present now: a full disk, no more descriptors.
fn hindrance(private: Option<&Path>, instance: &Instance) -> Option<String> {
    if let Some(private) = private
        && let Ok(facts) = rustix::fs::statvfs(private)
        && (facts.f_bavail == 0 || (facts.f_files > 0 && facts.f_favail == 0))
    {
        return Some(format!("The file system of {} is full: make room there.", private.display()));
    }
    let pid = instance.ready.pid;
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let most: usize =
        limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?.parse().ok()?;
    (open + SPARE_DESCRIPTORS > most).then(|| {
        format!(
            "The image has {open} of at most {most} file descriptors open: close the streams that code left open, restart the image, \
             or raise the limit (`ulimit -n`)."
        )
    })
}

impl Drop for ForkedCheck {
    fn drop(&mut self) {
        if let Some(pid_handle) = &self.pid_handle {
            pid_handle.kill();
        }
        let Some(child) = self.child.take() else { return };
        let (shared, instance, pid) = (self.shared.clone(), self.instance.clone(), self.pid);
        let (copied, scratch, permit) = (self.copied.take(), self.scratch.take(), self.permit.take());
        let clean = async move {
            match child {
                ChildHandle::Image(mut call) => {
                    if let Some(copied) = copied {
                        // The fork is pending or has just happened: the resulting copy is killed.
                        instance.link.interrupt(call.id(), "cancel");
                        tokio::select! {
                            biased;
                            Ok(pid) = copied => if let Some(pid_handle) = PidHandle::new(pid) { pid_handle.kill() },
                            _ = call.result::<IgnoredAny>() => {}
                        }
                    }
                    // Waits until the copy was reaped or the image is gone. An answer that came
                    // already comes as an error.
                    let _ = call.result::<IgnoredAny>().await;
                }
                ChildHandle::Process(worker, call) => {
                    drop(call);
                    worker.finish().await;
                }
            }
            instance.forget(pid);
            if let Some(mut scratch) = scratch {
                scratch.remove(&shared);
            }
            drop(permit);
        };
        self.shared.runtime.tasks.spawn_on(clean, &self.shared.runtime.handle);
    }
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
