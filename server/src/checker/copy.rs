//! Checks and other jobs in copies of the image. A copy is requested, again if the image is busy,
//! and followed until it is done or has passed a limit.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;

use super::ending::Failed;
use super::forked::{CheckOutput, ForkedCheck, Forker};
use super::job::{CopyJob, FileLookup, Files};
use super::report::{LINE_LIMIT, Limit};
use super::turn::{Queue, Turn, Turns};
use super::warm::WarmCopies;
use crate::image::api::expand::ExpandParams;
use crate::image::api::{CheckParams, CheckSystemParams};
use crate::image::lines::Lines;
use crate::image::runtime::{Runtime, lost_error};
use crate::model::check::{CheckEnd, CheckReport};
use crate::model::error_kind::ErrorKind;
use crate::model::expansion::ExpandAnswer;
use crate::model::image::{ImageError, Progress};
use crate::steady::sleep;
use crate::text::expected::Expected;

/// The maximum number of repeated requests to a busy image. The pause doubles each time. A request
/// for an edited text is not repeated.
pub(super) const BUSY_TRIES: u32 = 6;
/// The waiting times that a test may shorten.
#[derive(Debug)]
pub(super) struct Waits {
    /// The pause before the first repeated request to a busy image. By default, all pauses add up
    /// to 3.2 s.
    pub(super) busy: Duration,
    /// The time limits for a copy to connect, at the first and at the second try. A copy that
    /// inherited a held lock never connects.
    pub(super) connect: [Duration; 2],
    /// The time limit for a connected copy to begin its work, at the first try.
    pub(super) begin: Duration,
}

impl Default for Waits {
    fn default() -> Waits {
        let connect = [Duration::from_secs(2), Duration::from_secs(5)];
        Waits { busy: Duration::from_millis(50), connect, begin: Duration::from_secs(5) }
    }
}

/// The checks that are expected to follow a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CheckSeries {
    /// No further check is expected.
    Single,
    /// Similar checks are expected, so a copy is kept ready for the next.
    Repeated,
    /// Checks of the same text are expected as it is edited, and the user waits for them. As
    /// [`CheckSeries::Repeated`], and ahead of the checks of others.
    Edited,
}

/// A copy that has done its job, and its connection.
pub(super) struct Running {
    pub(super) forked: ForkedCheck,
    pub(super) lines: Lines<OwnedReadHalf>,
    pub(super) answers: OwnedWriteHalf,
}

/// Runs jobs in copies of one image.
pub(super) struct Runner {
    pub(super) forker: Forker,
    pub(super) turns: Turns,
    pub(super) waits: Waits,
    warm: WarmCopies,
}

impl Runner {
    /// Creates the runner of jobs in copies of the image that `runtime` has. `copies` is the number
    /// of copies at once, without the one that is reserved for edited texts.
    pub(super) fn new(runtime: Arc<Runtime>, waits: Waits, copies: usize) -> Runner {
        let forker = Forker::new(runtime);
        Runner { warm: WarmCopies::new(forker.clone()), forker, turns: Turns::new(copies), waits }
    }

    /// Runs `check`; see [`super::Checker::check`].
    pub(super) async fn check(&self, mut params: CheckParams, series: CheckSeries) -> Result<CheckReport, ImageError> {
        let more = series != CheckSeries::Single;
        let queue = if series == CheckSeries::Edited { Queue::Edited } else { Queue::Checks };
        let job = CopyJob {
            op: "check",
            what: "a check",
            deadline: params.deadline,
            memory: params.memory,
            threads: false,
            first: (PathBuf::new(), params.text.chars().count()),
            expected: std::mem::take(&mut params.expected),
            clean_needs_exit: !more,
            params,
            files: None,
        };
        let _next = more.then(|| self.warm.prepare_when_dropped(&job.params));
        let reports = match if more { self.check_warm(&job, queue).await? } else { None } {
            Some(reports) => reports,
            None => self.run(&job, queue).await?.reports,
        };
        let report = reports.into_iter().next_back();
        report.map(|(_, report)| report).ok_or_else(|| ImageError::Unavailable("The check gave no report.".into()))
    }

    /// Runs `check-system`; see [`super::Checker::check_system`].
    pub(super) async fn check_system(
        &self,
        params: CheckSystemParams,
        lookup: FileLookup,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<Vec<(PathBuf, CheckReport)>, ImageError> {
        let Some(path) = params.asd.clone().or_else(|| params.only.first().cloned()) else {
            let message = "Name the system's definition, or files of it.".into();
            return Err(ImageError::Refused { kind: ErrorKind::BAD_ARGUMENTS, message });
        };
        let job = CopyJob {
            op: "check-system",
            what: "a check",
            deadline: params.deadline,
            memory: params.memory,
            threads: false,
            first: (path, 0),
            expected: Expected::default(),
            clean_needs_exit: true,
            params,
            files: Some(Files { lookup, progress }),
        };
        Ok(self.run(&job, Queue::Checks).await?.reports)
    }

    /// Runs `macroexpand`; see [`super::Checker::expand`].
    pub(super) async fn expand(&self, params: ExpandParams) -> Result<ExpandAnswer, ImageError> {
        let job = CopyJob {
            op: "macroexpand",
            what: "an expansion",
            deadline: params.deadline,
            memory: params.memory,
            threads: false,
            first: (PathBuf::new(), params.request.text.chars().count()),
            expected: Expected::default(),
            clean_needs_exit: false,
            params,
            files: None,
        };
        let mut output = self.run(&job, Queue::Checks).await?;
        let why = match output.answer.map(serde_json::from_value) {
            Some(Ok(answer)) => return Ok(answer),
            Some(Err(error)) => format!(
                "The copy of the image gave an answer that could not be decoded: {error}. Restart the image if this happens again."
            ),
            None => match output.reports.pop().map(|(_, report)| report.end) {
                Some(CheckEnd::Stopped { reason }) => reason,
                _ => "The copy of the image gave no answer.".into(),
            },
        };
        Err(ImageError::Refused { kind: ErrorKind::STOPPED, message: format!("The expansion was stopped: {why}") })
    }

    /// Checks a text in the copy that is kept ready. Returns `None` if there is none, or if it
    /// could not be used.
    async fn check_warm(
        &self,
        job: &CopyJob<CheckParams>,
        queue: Queue,
    ) -> Result<Option<Vec<(PathBuf, CheckReport)>>, ImageError> {
        let (deadline, permit) = (job.time_limit()?, self.turns.turn(queue).await?);
        let Some((mut forked, mut lines, mut answers)) = self.warm.claim(&job.params, &permit).await else {
            return Ok(None);
        };
        let findings = job.findings().trusted();
        // The copy may have ended with the image; the text is then checked as if there had been no
        // copy.
        let Ok(output) = forked.follow(&mut lines, &mut answers, findings, job, deadline, None).await else {
            return Ok(None);
        };
        forked.finish_if_ended();
        // A copy that waited may have been killed, or have lost what it needs, before it had the
        // text. A new copy tells whether the text is the cause.
        if matches!(output.stopped, Some(Limit::Other)) {
            tracing::info!("the copy that was kept ready ended before its check; a new copy is made");
            return Ok(None);
        }
        Ok(Some(output.reports))
    }

    pub(super) async fn run<P: Serialize>(&self, job: &CopyJob<P>, queue: Queue) -> Result<CheckOutput, ImageError> {
        Ok(self.run_on(job, queue).await?.0)
    }

    /// Runs a job as [`Runner::run`] does, and returns the copy, too, unless it never began.
    pub(super) async fn run_on<P: Serialize>(
        &self,
        job: &CopyJob<P>,
        queue: Queue,
    ) -> Result<(CheckOutput, Option<Running>), ImageError> {
        let (deadline, permit) = (job.time_limit()?, self.turns.turn(queue).await?);
        let (mut busy, mut locked, mut unresponsive, mut again, mut by_process) = (0, 0, 0, true, false);
        // The session tells the user why an edited text is not checked, and asks again itself.
        let busy_tries = if queue == Queue::Edited { 0 } else { BUSY_TRIES };
        let stopped = |reason| {
            let reports = job.findings().stopped(Limit::Other, reason);
            Ok((CheckOutput { reports, answer: None, stopped: Some(Limit::Other) }, None))
        };
        let obstacle = self.forker.runtime.obstacles.begin();
        loop {
            let attempt = self.attempt(job, deadline, unresponsive, permit.clone(), by_process).await;
            if let Err(failed) = &attempt {
                obstacle.set(failed.obstacle());
            }
            match attempt {
                Ok((output, running)) => return Ok((output, Some(running))),
                Err(Failed::Busy(_)) if busy < busy_tries => {
                    sleep(self.waits.busy * 2_u32.pow(busy)).await;
                    busy += 1;
                }
                Err(Failed::Busy(message)) => return Err(ImageError::Busy(message)),
                Err(Failed::Locked(_)) if locked < BUSY_TRIES => {
                    sleep(self.waits.busy * 2_u32.pow(locked)).await;
                    locked += 1;
                }
                Err(Failed::Locked(reason)) => return stopped(reason),
                Err(Failed::Unforkable(reason)) => {
                    tracing::warn!(reason, "checking in a second process");
                    by_process = true;
                }
                Err(Failed::Unresponsive(reason)) if unresponsive + 1 < self.waits.connect.len() => {
                    tracing::warn!(reason, "a check is tried once more");
                    unresponsive += 1;
                }
                Err(Failed::Unresponsive(reason)) => return stopped(reason),
                // Usually another call ended the image, and the check can run in the next image.
                Err(Failed::Gone(_)) if again => again = false,
                Err(Failed::Gone(instance)) => return Err(lost_error(&self.forker.runtime, &instance).await),
                Err(Failed::Error(error)) => return Err(error),
            }
        }
    }

    async fn attempt<P: Serialize>(
        &self,
        job: &CopyJob<P>,
        deadline: Duration,
        tried: usize,
        permit: Arc<Turn>,
        by_process: bool,
    ) -> Result<(CheckOutput, Running), Failed> {
        let mut forked = self.forker.start(job, Some(permit), by_process).await?;
        let (read, answers) = forked.connection(self.waits.connect[tried]).await?.into_split();
        let mut running = Running { forked, lines: Lines::new(read, LINE_LIMIT), answers };
        let Running { forked, lines, answers } = &mut running;
        let begin = (tried == 0).then_some(self.waits.begin);
        let output = forked.follow(lines, answers, job.findings(), job, deadline, begin).await?;
        forked.finish_if_ended();
        Ok((output, running))
    }
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
