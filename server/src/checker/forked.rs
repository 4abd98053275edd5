//! One copy, from its request to its end: it connects, its output is read within limits, and it is
//! killed when it is dropped.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::IgnoredAny;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::ending::{
    Failed, connect_failure, explain, is_locked_out, left_well, locked_out, no_socket, own_error, passed_limit,
    resource_shortage,
};
use super::job::{CopyJob, EXCHANGE_TIMEOUT, Files, Wire};
use super::memory;
use super::report::{Findings, Limit};
use super::scratch::{self, Scratch};
use super::scratch_use::Watch;
use super::threads;
use super::turn::Turn;
use super::worker::{WorkerProcess, Workers};
use crate::fault;
use crate::image::frames::CopyEnd;
use crate::image::instance::Instance;
use crate::image::lines::{LineError, Lines};
use crate::image::link::{Call, CallError, Listener};
use crate::image::process::PidHandle;
use crate::image::runtime::Runtime;
use crate::model::check::CheckReport;
use crate::model::image::ImageError;
use crate::steady::{sleep, timeout};

/// The time limit of a fork by the image, which has a shorter limit of its own.
const FORK_TIMEOUT: Duration = Duration::from_secs(15);
/// The upper bound of a deadline, so that it can be added to an [`Instant`].
const MAX_DEADLINE: Duration = Duration::from_secs(365 * 86_400);
/// The interval between checks of the limits.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The handle through which the host learns that a copy has ended.
enum ChildHandle {
    /// The call to the image. The image answers it when it has reaped the copy.
    Image(Call),
    /// The second process that does the work of the copy. The call is answered only by a refusal.
    Process(Box<WorkerProcess>, Call),
}

impl ChildHandle {
    /// Waits for the end of the copy, and returns how it ended. The future may be dropped and the
    /// method called again, until it has resolved once.
    async fn end(&mut self) -> Result<CopyEnd, CallError> {
        match self {
            ChildHandle::Image(call) => call.result().await,
            ChildHandle::Process(worker, call) => worker.end(Some(call)).await,
        }
    }
}

/// The output of a copy.
pub(super) struct CheckOutput {
    pub(super) reports: Vec<(PathBuf, CheckReport)>,
    pub(super) answer: Option<serde_json::Value>,
    /// The limit that stopped the copy, if it did not finish.
    pub(super) stopped: Option<Limit>,
}

/// The source of copies of one image.
#[derive(Clone)]
pub(super) struct Forker {
    pub(super) runtime: Arc<Runtime>,
    pub(super) workers: Workers,
}

/// A copy that is requested or runs. When dropped, the copy is killed as soon as its process is
/// known.
pub(super) struct ForkedCheck {
    runtime: Arc<Runtime>,
    instance: Arc<Instance>,
    child: Option<ChildHandle>,
    copied: Option<oneshot::Receiver<u32>>,
    pid_handle: Option<Arc<PidHandle>>,
    pid: u32,
    /// Bytes of memory that do not count for the check: in a second process, those that it had
    /// before it began; in a forked copy, the swapped memory and page tables of the image.
    baseline_memory: u64,
    /// The end of the copy, when known; the copy was then reaped.
    end: Option<CopyEnd>,
    scratch: Option<Scratch>,
    permit: Option<Arc<Turn>>,
}

impl Forker {
    /// Creates the source of copies of the image that `runtime` has.
    pub(super) fn new(runtime: Arc<Runtime>) -> Forker {
        Forker { workers: Workers::new(runtime.clone()), runtime }
    }

    /// Requests a copy. `by_process` requests it from a second process even if the image can be
    /// forked.
    pub(super) async fn start<P: Serialize>(
        &self,
        job: &CopyJob<P>,
        permit: Option<Arc<Turn>>,
        by_process: bool,
    ) -> Result<ForkedCheck, Failed> {
        let instance = self.runtime.instance().await.map_err(Failed::Error)?;
        let by_process = by_process || self.workers.is_needed(&instance);
        let worker = if by_process { Some(self.workers.take(&instance).await?) } else { None };
        let scratch = Scratch::new(&self.runtime.private, scratch::COPY).map_err(|error| {
            let directory = self.runtime.private.display();
            Failed::Error(ImageError::Unavailable(format!(
                "Nothing can be checked: no scratch directory in {directory}: {error}"
            )))
        })?;
        let (sender, copied) = oneshot::channel();
        let config = self.runtime.config();
        let read = config.read.iter().map(PathBuf::as_path);
        let wire = Wire {
            params: &job.params,
            read: std::iter::once(self.runtime.workspace.as_path()).chain(read).collect(),
            socket: scratch.socket(),
            token: &scratch.token,
            scratch: scratch.path(),
            withhold: job.files.is_some(),
            in_place: by_process,
        };
        fault::point(fault::Call::Fork)
            .map_err(|error| Failed::Unforkable(format!("The system refused to copy the image: {error}")))?;
        let asked = worker.as_ref().and_then(|worker| worker.instance()).unwrap_or(&instance);
        let call = asked.link.call(job.op, &wire, None, Listener::Copy(Some(sender))).map_err(Failed::Error)?;
        let child = match worker {
            Some(worker) => ChildHandle::Process(worker, call),
            None => ChildHandle::Image(call),
        };
        Ok(ForkedCheck {
            runtime: self.runtime.clone(),
            instance,
            child: Some(child),
            copied: Some(copied),
            pid_handle: None,
            pid: 0,
            baseline_memory: 0,
            end: None,
            scratch: Some(scratch),
            permit,
        })
    }
}

/// Returns the reason to stop a copy, for a person.
fn stopped_because(why: &str) -> (Limit, String) {
    (Limit::Other, format!("The copy of the image was stopped: {why}."))
}

/// Handles a line of a copy's output. Returns false at the end of the output.
///
/// # Errors
/// The reason to stop the copy.
async fn take_line(
    line: Result<Option<&[u8]>, LineError>,
    token: &str,
    findings: &mut Findings,
    files: Option<&Files>,
    answers: &mut OwnedWriteHalf,
) -> Result<bool, String> {
    match line {
        Ok(Some(line)) => {
            let taken = findings.handle_line(line, token)?;
            if let Some(files) = files {
                files.serve(taken, findings, answers).await?;
            }
            Ok(true)
        }
        Ok(None) => Ok(false),
        Err(LineError::TooLong(limit)) => {
            Err(format!("it sent a line of more than {} MiB, the most that a copy may say at once", limit >> 20))
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the limit that a copy has exceeded, with the reason. `late` is the time limit of the
/// copy, if it is over. `baseline_memory` is the memory in bytes that the copy had at its start.
async fn limit_exceeded<P>(
    job: &CopyJob<P>,
    pid_handle: Option<&PidHandle>,
    late: Option<Duration>,
    baseline_memory: u64,
    contents: &mut Watch,
) -> Option<(Limit, String)> {
    let copy = pid_handle.map(PidHandle::pid).filter(|_| job.threads);
    // Files in memory are the copy's memory too, as are buffers of sockets.
    let beside = contents.memory().saturating_add(copy.map_or(0, threads::memory));
    let memory = (job.memory, baseline_memory, beside);
    if let Some(passed) = passed_limit(pid_handle, late.is_some(), late.unwrap_or_default(), memory, job.what) {
        return Some(passed);
    }
    match copy.and_then(threads::exceeded_limit) {
        Some(what) => Some(stopped_because(&what)),
        None => contents.exceeded_limit().await.map(|what| stopped_because(&what)),
    }
}

impl ForkedCheck {
    /// Waits for the fork, then up to `limit` for the copy to connect.
    pub(super) async fn connection(&mut self, limit: Duration) -> Result<UnixStream, Failed> {
        let (Some(child), Some(copied), Some(scratch)) = (&mut self.child, &mut self.copied, &mut self.scratch) else {
            return Err(Failed::Unresponsive("The copy is gone.".into()));
        };
        let asked = tokio::select! {
            biased;
            Ok(pid) = copied => Ok(pid),
            end = child.end() => Err(connect_failure(end, &self.instance)),
            () = sleep(FORK_TIMEOUT) => {
                let message = format!("The image could not be copied within {} s: a thread of it cannot be stopped.", FORK_TIMEOUT.as_secs());
                return Err(Failed::Unforkable(message)); // a copy that still comes is killed
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
                let Ok(accepted) = timeout(POLL_INTERVAL, scratch.accept(self.pid)).await else { return Err(connect_failure(end, &self.instance)) };
                self.end = Some(end.map_err(|error| connect_failure(Err(error), &self.instance))?);
                accepted
            }
            () = sleep(limit) => {
                return Err(Failed::Unresponsive(format!("The check's copy of the image did not begin within {} s.", limit.as_secs_f64())));
            }
        };
        if let Some(pid_handle) = &self.pid_handle {
            let measure = if matches!(child, ChildHandle::Process(..)) { memory::resident } else { memory::inherited };
            self.baseline_memory = measure(pid_handle.pid()).unwrap_or(0);
        }
        accepted.map_err(no_socket)
    }

    /// Reads the copy's findings until the copy is done or has ended. Kills a copy that exceeds a
    /// limit. `within` is the time limit of the job. `begin` is the time limit for the copy to
    /// begin its work: before that it may hang in the C library.
    ///
    /// The exit of a copy that is done is not awaited in general, because freeing its memory takes
    /// as long as checking a small text.
    pub(super) async fn follow<P>(
        &mut self,
        lines: &mut Lines<OwnedReadHalf>,
        answers: &mut OwnedWriteHalf,
        mut findings: Findings,
        job: &CopyJob<P>,
        within: Duration,
        begin: Option<Duration>,
    ) -> Result<CheckOutput, Failed> {
        let files = job.files.as_ref();
        let (Some(child), Some(scratch)) = (&mut self.child, &self.scratch) else {
            return Err(Failed::Unresponsive("The copy is gone.".into()));
        };
        let pid_handle = self.pid_handle.clone();
        let started = Instant::now();
        let deadline = started + within.min(MAX_DEADLINE);
        let mut contents = Watch::new(scratch.path(), pid_handle.as_deref().map(PidHandle::pid));
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut passed: Option<(Limit, String)> = None;
        let mut end = self.end.take();
        // When either the output or the process has ended, the other must end soon.
        let mut ending_since: Option<Instant> = None;
        let mut open = true;
        // Code under check can send the message that the check is done. For a text without findings
        // the message counts only when the copy has exited normally.
        let awaits_exit = |findings: &Findings| job.clean_needs_exit && findings.is_clean();
        // Bytes after the message show that the checker did not send it.
        while (!findings.is_done() || awaits_exit(&findings)) && (open || end.is_none()) {
            let mut over: Option<(Limit, String)> = None;
            tokio::select! {
                line = lines.next(), if open => {
                    match take_line(line, &scratch.token, &mut findings, files, answers).await {
                        Ok(more) => open = more,
                        Err(why) => {
                            open = false;
                            over = Some(stopped_because(&why));
                        }
                    }
                }
                result = child.end(), if end.is_none() => match result {
                    Ok(how) => end = Some(how),
                    Err(error) => return Err(connect_failure(Err(error), &self.instance)),
                },
                now = ticks.tick() => match ending_since {
                    Some(since) if now <= since + EXCHANGE_TIMEOUT => {}
                    Some(_) if end.is_none() && passed.is_none() => {
                        ending_since = Some(now);
                        over = Some((Limit::Other, "The copy of the image did not end.".into()));
                    }
                    Some(_) => break,
                    None => {
                        if let Some(limit) = begin
                            && !findings.has_begun()
                            && now > started + limit
                        {
                            let seconds = limit.as_secs_f64();
                            return Err(Failed::Unresponsive(format!("The check's copy of the image did not start the check within {seconds} s.")));
                        }
                        let late = (now > deadline).then_some(within);
                        over = limit_exceeded(job, pid_handle.as_deref(), late, self.baseline_memory, &mut contents).await;
                    }
                },
            }
            if let Some(over) = over {
                if let Some(pid_handle) = &pid_handle {
                    pid_handle.kill();
                }
                passed.get_or_insert(over);
            }
            if (!open || end.is_some() || passed.is_some()) && ending_since.is_none() {
                ending_since = Some(Instant::now());
            }
        }
        let awaited = awaits_exit(&findings);
        let output = self.output(findings, passed, end.as_ref(), awaited);
        self.end = end;
        output
    }

    /// Returns the result of a check whose copy is done, has ended, or has passed a limit. If
    /// `awaited` is true, the check is complete only if the copy exited normally.
    fn output(
        &self,
        mut findings: Findings,
        passed: Option<(Limit, String)>,
        end: Option<&CopyEnd>,
        awaited: bool,
    ) -> Result<CheckOutput, Failed> {
        let answer = findings.take_answer();
        let shortage = || resource_shortage(Some(&self.runtime.private), &self.instance);
        let (limit, reason) = match passed {
            Some(passed) => passed,
            None if findings.is_done() && awaited && !left_well(end) => {
                explain(end, || shortage().or_else(|| own_error(&findings)))
            }
            None if findings.is_done() => {
                return Ok(CheckOutput { reports: findings.complete(), answer, stopped: None });
            }
            None if is_locked_out(end) => return Err(Failed::Locked(locked_out(findings.lock()))),
            // The copy was killed because the image is being ended.
            None if self.instance.ending().is_some() => return Err(Failed::Gone(self.instance.clone())),
            None => {
                // The text is not the cause: the check can run when memory is available again.
                if end.is_some_and(|end| end.exit.is_some())
                    && let Some(why) = shortage()
                {
                    return Err(Failed::Error(ImageError::Unavailable(format!("Nothing can be checked: {why}"))));
                }
                explain(end, || own_error(&findings))
            }
        };
        Ok(CheckOutput { reports: findings.stopped(limit, reason), answer, stopped: Some(limit) })
    }

    /// Returns true if the copy is one of this image.
    pub(super) fn is_of(&self, instance: &Arc<Instance>) -> bool {
        Arc::ptr_eq(&self.instance, instance)
    }

    /// Returns the token that the copy must send first.
    pub(super) fn token(&self) -> Option<&str> {
        self.scratch.as_ref().map(|scratch| scratch.token.as_str())
    }

    /// Returns the image of which this is a copy.
    pub(super) fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    /// Returns the copy's directory.
    pub(super) fn scratch(&self) -> &Path {
        self.scratch.as_ref().map_or(Path::new(""), Scratch::path)
    }

    /// Returns the bytes of memory that do not count for the check.
    pub(super) fn baseline_memory(&self) -> u64 {
        self.baseline_memory
    }

    /// Returns the process id of the copy, or 0 until it is known.
    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Gives up the permit, so that another copy can be made while this one stays.
    pub(super) fn release(&mut self) {
        self.permit = None;
    }

    /// Holds the permit while the copy runs.
    pub(super) fn hold(&mut self, permit: Arc<Turn>) {
        self.permit = Some(permit);
    }

    /// Waits for the end of the copy or the image. Returns true if only the copy has ended. The
    /// future may be dropped and the method called again, until it has resolved once.
    pub(super) async fn ended(&mut self) -> bool {
        let Some(child) = &mut self.child else { return true };
        child.end().await.is_ok() && self.instance.ending().is_none()
    }

    /// Removes the copy's directory at once if a forked copy has ended and was reaped.
    pub(super) fn finish_if_ended(&mut self) {
        if self.end.is_none() || matches!(self.child, Some(ChildHandle::Process(..))) {
            return;
        }
        self.instance.forget(self.pid);
        self.child = None;
        if let Some(mut scratch) = self.scratch.take() {
            scratch.remove(&self.runtime);
        }
    }
}

impl Drop for ForkedCheck {
    fn drop(&mut self) {
        if let Some(pid_handle) = &self.pid_handle {
            pid_handle.kill();
        }
        let Some(child) = self.child.take() else { return };
        let (runtime, instance, pid) = (self.runtime.clone(), self.instance.clone(), self.pid);
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
                    // Waits until the copy was reaped or the image is gone. Fails at once if the
                    // answer was received before.
                    let _ = call.result::<IgnoredAny>().await;
                }
                ChildHandle::Process(worker, call) => {
                    drop(call);
                    worker.finish().await;
                }
            }
            instance.forget(pid);
            if let Some(mut scratch) = scratch {
                scratch.remove(&runtime);
            }
            drop(permit);
        };
        self.runtime.tasks.spawn_on(clean, &self.runtime.handle);
    }
}
