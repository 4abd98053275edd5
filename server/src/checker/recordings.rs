//! Recordings: copies of the image that ran a form or a test and recorded it, or that have a call
//! that was recorded in the image. A copy stays for a while to answer questions (docs/wire.md,
//! `record`).

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::asking;
use super::copy::{Runner, Running};
use super::evaluation::{decode_answer, failed_outcome};
use super::job::CopyJob;
use super::turn::Queue;
use crate::image::api::record::{RecordCallParams, RecordParams, RecordingQuestion};
use crate::locked::lock;
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::EvalError;
use crate::model::image::ImageError;
use crate::model::recording::Recording;
use crate::steady::{sleep, timeout};

/// The number of recordings that are kept. Older ones are ended.
const MAX_RECORDINGS: usize = 4;
/// The time for which a recording is kept.
const RETENTION: Duration = Duration::from_secs(600);
/// The time that an answer may take, in seconds.
const ANSWER_TIMEOUT_S: f64 = 20.0;
/// The time limit for a copy to accept a question.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of questions that wait for a recording.
const MAX_WAITING_QUESTIONS: usize = 8;

/// The recordings of an image.
pub(super) struct Recordings {
    runner: Arc<Runner>,
    kept: Mutex<Vec<KeptRecording>>,
    /// The calls that are awaited, and the newest of those that were not made in time.
    expected: Mutex<Vec<Expected>>,
    last: AtomicU64,
}

/// The awaited recording of a call that was not made yet, or never will be.
struct Expected {
    number: u64,
    function: String,
    /// The reason why there will be no recording.
    failure: Option<ImageError>,
    end: CancellationToken,
}

/// The number of the recording of an awaited call. Dropping it removes the entry of the call,
/// unless the entry has the reason why there will be no recording.
pub struct ExpectedRecording {
    recordings: Arc<Recordings>,
    number: u64,
    end: CancellationToken,
}

impl std::fmt::Debug for ExpectedRecording {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ExpectedRecording").field("number", &self.number).finish_non_exhaustive()
    }
}

impl ExpectedRecording {
    /// Returns the number by which questions name the recording.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Resolves when the wait for the call is cancelled.
    pub async fn cancelled(&self) {
        self.end.cancelled().await;
    }

    /// Notes why there will be no recording, for later questions.
    pub fn fail(&self, error: ImageError) {
        let mut expected = lock(&self.recordings.expected);
        if let Some(one) = expected.iter_mut().find(|one| one.number == self.number) {
            one.failure = Some(error);
        }
        let failed = expected.iter().filter(|one| one.failure.is_some()).count();
        if failed > MAX_RECORDINGS
            && let Some(oldest) = expected.iter().position(|one| one.failure.is_some())
        {
            expected.remove(oldest);
        }
    }
}

impl Drop for ExpectedRecording {
    fn drop(&mut self) {
        lock(&self.recordings.expected).retain(|one| one.number != self.number || one.failure.is_some());
    }
}

/// A recording that is kept.
struct KeptRecording {
    number: u64,
    /// The error with which the form or the test ended.
    error: Option<EvalError>,
    asks: mpsc::Sender<QuestionFrame>,
    end: CancellationToken,
}

/// A question to a recording, as JSON.
struct QuestionFrame {
    question: Vec<u8>,
    reply: oneshot::Sender<Result<Value, ImageError>>,
}

fn not_found(number: u64) -> ImageError {
    let message = format!(
        "There is no recording {number} (any more): the newest {MAX_RECORDINGS} are kept for {} minutes, while the image that they are of runs. Record again.",
        RETENTION.as_secs() / 60
    );
    ImageError::Refused { kind: ErrorKind::STALE, message }
}

impl Recordings {
    /// Creates the state of an image without recordings.
    pub(super) fn new(runner: Arc<Runner>) -> Recordings {
        Recordings { runner, kept: Mutex::default(), expected: Mutex::default(), last: AtomicU64::new(0) }
    }

    fn next_number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn remove(&self, number: u64) {
        lock(&self.kept).retain(|kept| kept.number != number);
    }

    /// Adds a recording, and ends the oldest if there are too many. Returns the receiver of
    /// questions, and the token that ends the recording.
    fn add(&self, number: u64, error: Option<EvalError>) -> (mpsc::Receiver<QuestionFrame>, CancellationToken) {
        let (asks, asked) = mpsc::channel(MAX_WAITING_QUESTIONS);
        let end = CancellationToken::new();
        let mut kept = lock(&self.kept);
        kept.push(KeptRecording { number, error, asks, end: end.clone() });
        let excess = kept.len().saturating_sub(MAX_RECORDINGS);
        kept.drain(..excess).for_each(|oldest| oldest.end.cancel());
        (asked, end)
    }
}

fn job<P>(op: &'static str, params: P, deadline: f64, memory: u64) -> CopyJob<P> {
    CopyJob::without_text(op, "a recording", params, (deadline, memory))
}

/// Returns the number of the recording of a call that is about to be awaited; see
/// [`super::Checker::expect_call`].
pub(super) fn expect(recordings: &Arc<Recordings>, function: &str) -> ExpectedRecording {
    let (number, end) = (recordings.next_number(), CancellationToken::new());
    let one = Expected { number, function: function.to_owned(), failure: None, end: end.clone() };
    lock(&recordings.expected).push(one);
    ExpectedRecording { recordings: recordings.clone(), number, end }
}

/// Runs `record`; see [`super::Checker::record`].
pub(super) async fn record(recordings: &Arc<Recordings>, params: RecordParams) -> Result<Recording, ImageError> {
    let (code_timeout_s, host_timeout_s, memory) = (params.code_timeout_s, params.host_timeout_s, params.memory);
    keep(recordings, job("record", params, host_timeout_s, memory), code_timeout_s, None).await
}

/// Runs `record-call`; see [`super::Checker::record_call`].
pub(super) async fn record_call(
    recordings: &Arc<Recordings>,
    params: RecordCallParams,
    expected: &ExpectedRecording,
) -> Result<Recording, ImageError> {
    let (code_timeout_s, host_timeout_s, memory) = (params.code_timeout_s, params.host_timeout_s, params.memory);
    keep(recordings, job("record-call", params, host_timeout_s, memory), code_timeout_s, Some(expected.number)).await
}

/// Makes a copy and keeps it. `number` is that of the recording, if it has one already.
async fn keep<P: Serialize>(
    recordings: &Arc<Recordings>,
    job_of_copy: CopyJob<P>,
    seconds: f64,
    number: Option<u64>,
) -> Result<Recording, ImageError> {
    let memory = job_of_copy.memory;
    let (output, running) = recordings.runner.run_on(&job_of_copy, Queue::Work).await?;
    let lost = |outcome| Recording {
        number: 0,
        outcome,
        events: 0,
        first: 0,
        calls: 0,
        skipped: 0,
        failed_checks: 0,
        definitions: Vec::new(),
        left_out: 0,
        call: None,
    };
    let stopped = output.stopped.is_some();
    let mut recording: Recording = match decode_answer(output, seconds) {
        Ok(recording) => recording,
        Err(outcome) => return Ok(lost(*outcome)),
    };
    let Some(mut running) = running.filter(|_| !stopped) else {
        return Ok(lost(failed_outcome("COPY-LOST", "The copy of the image that recorded was lost.".into())));
    };
    running.forked.release();
    let number = number.unwrap_or_else(|| recordings.next_number());
    let (asked, end) = recordings.add(number, recording.outcome.error.clone());
    recording.number = number;
    let kept = {
        let recordings = recordings.clone();
        async move {
            tokio::select! {
                () = serve(running, asked, memory) => {}
                () = end.cancelled() => {}
                () = sleep(RETENTION) => {}
            }
            recordings.remove(number);
        }
    };
    let runtime = &recordings.runner.forker.runtime;
    runtime.tasks.spawn_on(kept, &runtime.handle);
    Ok(recording)
}

/// Serves questions, one at a time, until the copy ends or passes a limit.
async fn serve(mut running: Running, mut asked: mpsc::Receiver<QuestionFrame>, memory: u64) {
    loop {
        let ask = tokio::select! {
            ask = asked.recv() => ask,
            _ = running.forked.ended() => None,
        };
        let Some(QuestionFrame { question, reply }) = ask else { return };
        let answer = answer(&mut running, question, memory).await;
        let lost = answer.is_none();
        let result = answer.unwrap_or_else(|| {
            let message = "The recording was lost: its copy of the image ended, or passed a limit, before it answered. Record again.";
            Err(ImageError::Refused { kind: ErrorKind::STALE, message: message.into() })
        });
        let _ = reply.send(result); // the caller may have gone
        if lost {
            return;
        }
    }
}

/// Returns the answer to a question, or `None` if there will be no more answers.
async fn answer(running: &mut Running, mut line: Vec<u8>, memory: u64) -> Option<Result<Value, ImageError>> {
    line.push(b'\n');
    timeout(ACCEPT_TIMEOUT, running.answers.write_all(&line)).await.ok()?.ok()?;
    let job = job("record", (), ANSWER_TIMEOUT_S, memory);
    let findings = job.findings().trusted();
    let within = job.time_limit().ok()?;
    let output =
        running.forked.follow(&mut running.lines, &mut running.answers, findings, &job, within, None).await.ok()?;
    if output.stopped.is_some() {
        return None;
    }
    Some(decode_answer::<Value>(output, ANSWER_TIMEOUT_S).map_err(|outcome| {
        let why = outcome.error.map(|error| error.message).unwrap_or_default();
        ImageError::Unavailable(format!("The recording gave no answer: {why}"))
    }))
}

/// Asks a recording a question; see [`super::Checker::ask_recording`].
pub(super) async fn ask<Q: RecordingQuestion>(
    recordings: &Recordings,
    number: u64,
    question: &Q,
) -> Result<Q::Answer, ImageError> {
    let meaningless = |error| {
        ImageError::Unavailable(format!(
            "The answer of the recording could not be decoded: {error}. Restart the image if this happens again."
        ))
    };
    let question = serde_json::to_vec(question).map_err(meaningless)?;
    let asks = lock(&recordings.kept).iter().find(|kept| kept.number == number).map(|kept| kept.asks.clone());
    if asks.is_none() {
        not_yet(recordings, number)?;
    }
    let asks = asks.ok_or_else(|| not_found(number))?;
    let answer = asking::ask(asks, |reply| QuestionFrame { question, reply }).await;
    let answer = answer.ok_or_else(|| not_found(number))??;
    match answer["problem"].as_str() {
        Some(message) => Err(ImageError::Refused { kind: ErrorKind::NO_ANSWER, message: message.into() }),
        None => serde_json::from_value(answer).map_err(meaningless),
    }
}

/// Fails if the recording is of a call that is awaited, or that never came.
fn not_yet(recordings: &Recordings, number: u64) -> Result<(), ImageError> {
    let expected = lock(&recordings.expected);
    let Some(one) = expected.iter().find(|one| one.number == number) else { return Ok(()) };
    Err(one.failure.clone().unwrap_or_else(|| {
        let function = crate::shown::line(&one.function);
        let message = format!(
            "Recording {number} is of the next call of {function}, which was not made yet: make it, and ask again."
        );
        ImageError::Refused { kind: ErrorKind::WAITING, message }
    }))
}

/// Ends a recording, or the wait for its call; see [`super::Checker::end_recording`].
pub(super) fn end(recordings: &Recordings, number: u64) -> Result<(), ImageError> {
    let kept = lock(&recordings.kept).iter().find(|kept| kept.number == number).map(|kept| kept.end.clone());
    let waiting = || {
        let expected = lock(&recordings.expected);
        expected.iter().find(|one| one.number == number && one.failure.is_none()).map(|one| one.end.clone())
    };
    kept.or_else(waiting).map(|end| end.cancel()).ok_or_else(|| not_found(number))
}

/// Returns the error with which the recorded code ended; see [`super::Checker::recorded_error`].
pub(super) fn error(recordings: &Recordings, number: u64) -> Result<Option<EvalError>, ImageError> {
    let kept = lock(&recordings.kept);
    kept.iter().find(|kept| kept.number == number).map(|kept| kept.error.clone()).ok_or_else(|| not_found(number))
}
