//! Recordings: copies of the image that ran a form or a test, recorded it, and stay for a while to
//! answer questions (docs/wire.md, `record`).

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::copy::{Runner, Running};
use super::evaluation::{ended, meaning};
use super::job::CheckJob;
use super::turn::Queue;
use crate::image::api::record::{RecordParams, RecordingQuestion};
use crate::image::link::lock;
use crate::model::evaluation::EvalError;
use crate::model::image::ImageError;
use crate::model::recording::Recording;
use crate::steady::{sleep, timeout};

/// The recordings that are kept, the newest.
const RECORDINGS: usize = 4;
/// The time for which a recording is kept.
const KEPT: Duration = Duration::from_secs(600);
/// Seconds that an answer may take.
const ANSWER: f64 = 20.0;
/// The time limit for a copy to accept a question.
const ACCEPT: Duration = Duration::from_secs(10);
/// The questions that may wait for a recording.
const WAITING: usize = 8;

/// The recordings of an image.
pub(super) struct Recordings {
    runner: Arc<Runner>,
    kept: Mutex<Vec<Kept>>,
    last: AtomicU64,
}

/// A recording that is kept.
struct Kept {
    number: u64,
    /// The error that the form or the test ended with.
    error: Option<EvalError>,
    asks: mpsc::Sender<Ask>,
    end: CancellationToken,
}

/// A question to a recording, as JSON.
struct Ask {
    question: Vec<u8>,
    reply: oneshot::Sender<Result<Value, ImageError>>,
}

fn gone(number: u64) -> ImageError {
    let message = format!(
        "There is no recording {number} (any more): the newest {RECORDINGS} are kept for {} minutes, while the image that they are of runs. Record again.",
        KEPT.as_secs() / 60
    );
    ImageError::Refused { kind: "stale".into(), message }
}

impl Recordings {
    /// Creates the state of an image without recordings.
    pub(super) fn new(runner: Arc<Runner>) -> Recordings {
        Recordings { runner, kept: Mutex::default(), last: AtomicU64::new(0) }
    }

    fn remove(&self, number: u64) {
        lock(&self.kept).retain(|kept| kept.number != number);
    }

    /// Returns the number and the questions of a new recording; the oldest makes room.
    fn add(&self, error: Option<EvalError>) -> (u64, mpsc::Receiver<Ask>, CancellationToken) {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let (asks, asked) = mpsc::channel(WAITING);
        let end = CancellationToken::new();
        let mut kept = lock(&self.kept);
        kept.push(Kept { number, error, asks, end: end.clone() });
        let excess = kept.len().saturating_sub(RECORDINGS);
        kept.drain(..excess).for_each(|oldest| oldest.end.cancel());
        (number, asked, end)
    }
}

fn job<P>(params: P, deadline: f64, memory: u64) -> CheckJob<P> {
    CheckJob::of_work("record", "a recording", params, (deadline, memory))
}

/// Runs `record`; see [`super::Checker::record`].
pub(super) async fn record(recordings: &Arc<Recordings>, params: RecordParams) -> Result<Recording, ImageError> {
    let (seconds, memory) = (params.timeout, params.memory);
    let job_of_copy = job(params.clone(), params.within_seconds, memory);
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
    };
    let stopped = output.stopped.is_some();
    let mut recording: Recording = match meaning(output, seconds) {
        Ok(recording) => recording,
        Err(outcome) => return Ok(lost(*outcome)),
    };
    let Some(mut running) = running.filter(|_| !stopped) else {
        return Ok(lost(ended("COPY-LOST", "The copy of the image that recorded was lost.".into())));
    };
    running.forked.release();
    let (number, asked, end) = recordings.add(recording.outcome.error.clone());
    recording.number = number;
    let kept = {
        let recordings = recordings.clone();
        async move {
            tokio::select! {
                () = serve(running, asked, memory) => {}
                () = end.cancelled() => {}
                () = sleep(KEPT) => {}
            }
            recordings.remove(number);
        }
    };
    let runtime = &recordings.runner.forker.runtime;
    runtime.tasks.spawn_on(kept, &runtime.handle);
    Ok(recording)
}

/// Serves questions, one at a time, until the copy ends or one passes a limit.
async fn serve(mut running: Running, mut asked: mpsc::Receiver<Ask>, memory: u64) {
    loop {
        let ask = tokio::select! {
            ask = asked.recv() => ask,
            () = running.forked.ended() => None,
        };
        let Some(Ask { question, reply }) = ask else { return };
        let answer = answer(&mut running, question, memory).await;
        let lost = answer.is_none();
        let result = answer.unwrap_or_else(|| {
            let message = "The recording was lost: its copy of the image ended, or passed a limit, before it answered. Record again.";
            Err(ImageError::Refused { kind: "stale".into(), message: message.into() })
        });
        let _ = reply.send(result); // whoever asked may be gone
        if lost {
            return;
        }
    }
}

/// Returns the answer to a question; `None`: there will be no more answers.
async fn answer(running: &mut Running, mut line: Vec<u8>, memory: u64) -> Option<Result<Value, ImageError>> {
    line.push(b'\n');
    timeout(ACCEPT, running.answers.write_all(&line)).await.ok()?.ok()?;
    let job = job((), ANSWER, memory);
    let findings = job.findings().trusted();
    let within = job.within().ok()?;
    let output =
        running.forked.follow(&mut running.lines, &mut running.answers, findings, &job, within, None).await.ok()?;
    if output.stopped.is_some() {
        return None;
    }
    Some(meaning::<Value>(output, ANSWER).map_err(|outcome| {
        let why = outcome.error.map(|error| error.message).unwrap_or_default();
        ImageError::Unavailable(format!("The recording gave no answer: {why}"))
    }))
}

/// Asks a recording; see [`super::Checker::ask_recording`].
pub(super) async fn ask<Q: RecordingQuestion>(
    recordings: &Recordings,
    number: u64,
    question: &Q,
) -> Result<Q::Answer, ImageError> {
    let meaningless =
        |error| ImageError::Unavailable(format!("The recording gave an answer that means nothing: {error}"));
    let question = serde_json::to_vec(question).map_err(meaningless)?;
    let asks = lock(&recordings.kept).iter().find(|kept| kept.number == number).map(|kept| kept.asks.clone());
    let (reply, answer) = oneshot::channel();
    asks.ok_or_else(|| gone(number))?.send(Ask { question, reply }).await.map_err(|_| gone(number))?;
    let answer = answer.await.map_err(|_| gone(number))??;
    match answer["problem"].as_str() {
        Some(message) => Err(ImageError::Refused { kind: "no-answer".into(), message: message.into() }),
        None => serde_json::from_value(answer).map_err(meaningless),
    }
}

/// Returns the error that a recording ended with; see [`super::Checker::recorded_error`].
pub(super) fn error(recordings: &Recordings, number: u64) -> Result<Option<EvalError>, ImageError> {
    let kept = lock(&recordings.kept);
    kept.iter().find(|kept| kept.number == number).map(|kept| kept.error.clone()).ok_or_else(|| gone(number))
}
