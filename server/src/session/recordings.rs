//! Recordings, for front ends. A form or a test runs once in a confined copy of the image, which
//! records it and answers questions. Alternatively, the next call of a function is recorded in the
//! image.

use std::path::PathBuf;

use tokio::sync::{mpsc, oneshot};

use super::event::{Event, StartJob};
use super::in_copy::Limits;
use super::jobs::{Jobs, Kind};
use super::{ClientId, SentJob, Session, calls, settle_keeping_result};
use crate::checker::ExpectedRecording;
use crate::ide::recording::{Question, first_question};
use crate::image::api::record::{AwaitCallParams, RecordCallParams, RecordParams, RecordingQuery, RecordingQuestion};
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::EvalError;
use crate::model::image::{ImageError, Progress};
use crate::model::recording::{Recording, RecordingAnswer};

pub use crate::image::api::replay::{
    ReplayBegin, ReplayBreakpoints, ReplayEvaluate, ReplayFrames, ReplayStep, ReplayText, ReplayValues,
};

/// The processor time that a copy has for questions, in seconds.
const QUESTIONS_CPU_TIME_S: f64 = 600.0;
/// The time limit of the wait for the next call of a function, in seconds.
const CALL_TIMEOUT_S: f64 = 600.0;
/// The time limit for a copy to keep a recorded call, in seconds.
const KEEP_TIMEOUT_S: f64 = 20.0;

/// The code to record.
#[derive(Debug, Clone, Default)]
pub struct RecordRequest {
    /// The code, empty for a test.
    pub code: String,
    /// The test's name.
    pub test: Option<String>,
    /// The package of the code; `None`: the client's current one.
    pub package: Option<String>,
    /// The functions to record; empty: those of the workspace that are called.
    pub functions: Vec<String>,
    /// The place of the code: the file, and the line and the column, 1-based.
    pub place: Option<(PathBuf, u32, u32)>,
    /// The time limit in seconds.
    pub timeout: Option<f64>,
}

/// The next call to record.
#[derive(Debug, Clone, Default)]
pub struct NextCall {
    /// The function's name.
    pub function: String,
    /// The package in which names are read; `None`: CL-USER.
    pub package: Option<String>,
    /// The functions to record in addition; empty: those of the workspace that are called.
    pub functions: Vec<String>,
    /// The longest time for which the call is recorded, in seconds.
    pub timeout: Option<f64>,
}

impl Session {
    /// Waits for the next call of a function in the image, whoever makes it, and records it there.
    /// Returns the same as [`Session::record`]. Dropping the future ends the wait.
    ///
    /// # Errors
    /// The function cannot be recorded, was not called in time, or no copy can be made of the
    /// image.
    pub async fn record_next(
        &self,
        client: ClientId,
        next: NextCall,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<(Recording, RecordingAnswer), ImageError> {
        let expected = self.inner.checker.expect_call(&next.function);
        self.record_expected(client, next, progress, &expected).await
    }

    async fn record_expected(
        &self,
        client: ClientId,
        next: NextCall,
        progress: Option<mpsc::UnboundedSender<Progress>>,
        expected: &ExpectedRecording,
    ) -> Result<(Recording, RecordingAnswer), ImageError> {
        let config = self.settings(client).await;
        let requested_timeout = next.timeout.unwrap_or(config.eval_timeout.as_secs_f64());
        let Limits { timeout, memory, .. } = Limits::of(&config, requested_timeout);
        let directories = vec![self.workspace().to_owned()];
        let what = format!("waiting for the next call of {}", crate::shown::line(&next.function));
        let (reply, answer) = oneshot::channel();
        let checker = self.inner.checker.clone();
        let start = StartJob(Box::new(move |jobs: &mut Jobs, job, session: String, _| {
            let NextCall { function, package, functions, .. } = next;
            let wait = CALL_TIMEOUT_S;
            let call =
                AwaitCallParams { session: session.clone(), function, package, functions, directories, wait, timeout };
            jobs.start_stoppable(job, reply, async move {
                let call = checker.await_call(&call, progress).await?;
                Ok((session, call))
            });
        }));
        let event = Event::RunOperation { client, description: what, kind: Kind::Other, start };
        let (session, call) = tokio::select! {
            called = settle_keeping_result(SentJob { job: calls::job(|| self.send(event)), answer }) => called?,
            () = expected.cancelled() => {
                let message = "The recording was cancelled.".into();
                return Err(ImageError::Refused { kind: ErrorKind::INTERRUPTED, message });
            }
        };
        let params = RecordCallParams {
            session,
            call,
            code_timeout_s: timeout,
            cpu_limit_s: KEEP_TIMEOUT_S + QUESTIONS_CPU_TIME_S,
            // Always confined: questions run code.
            confine: true,
            host_timeout_s: KEEP_TIMEOUT_S,
            memory,
        };
        let recording = self.inner.checker.record_call(params, expected).await?;
        self.look_first(recording).await
    }

    /// Begins to wait for the next call of a function. Returns the number of its recording once the
    /// wait has begun. The wait ends with the call, when the client leaves, or when the recording
    /// is ended.
    ///
    /// # Errors
    /// The errors of [`Session::record_next`], if the wait cannot begin.
    pub async fn record_next_later(&self, client: ClientId, next: NextCall) -> Result<u64, ImageError> {
        let expected = self.inner.checker.expect_call(&next.function);
        let number = expected.number();
        let (progress, mut steps) = mpsc::unbounded_channel();
        let (refused, refusal) = oneshot::channel();
        let session = self.clone();
        tokio::spawn(async move {
            if let Err(error) = session.record_expected(client, next, Some(progress), &expected).await {
                tracing::info!(%error, "the next call of a function was not recorded");
                // The caller is still waiting for this error, or a later question to the recording
                // gets it.
                if let Err(error) = refused.send(error) {
                    expected.fail(error);
                }
            }
        });
        tokio::select! {
            biased;
            Some(_) = steps.recv() => Ok(number),
            error = refusal => error.map_or(Ok(number), Err),
        }
    }

    /// Ends a recording, or the wait for its call.
    ///
    /// # Errors
    /// There is no recording of this number (`stale`).
    pub fn end_recording(&self, number: u64) -> Result<(), ImageError> {
        self.inner.checker.end_recording(number)
    }

    /// Records a form or a test. Returns the recording and, if it is kept, the answer to the
    /// question that its outcome suggests. Dropping the future ends the run.
    ///
    /// # Errors
    /// There is no image, or no copy can be made of it.
    pub async fn record(
        &self,
        client: ClientId,
        request: RecordRequest,
    ) -> Result<(Recording, RecordingAnswer), ImageError> {
        let config = self.settings(client).await;
        let requested_timeout = request.timeout.unwrap_or(config.eval_timeout.as_secs_f64());
        let Limits { timeout, deadline, memory } = Limits::of(&config, requested_timeout);
        let directories = vec![self.workspace().to_owned()];
        let what = "recording in a copy".to_owned();
        let (reply, answer) = oneshot::channel();
        let checker = self.inner.checker.clone();
        let start = StartJob(Box::new(move |jobs: &mut Jobs, job, session: String, _| {
            let RecordRequest { code, test, package, functions, place, .. } = request;
            let (file, line, column) = match place {
                Some((file, line, column)) => (Some(file), Some(line), Some(column)),
                None => (None, None, None),
            };
            let params = RecordParams {
                session,
                code,
                test,
                package,
                functions,
                directories,
                file,
                line,
                column,
                code_timeout_s: timeout,
                cpu_limit_s: deadline + QUESTIONS_CPU_TIME_S,
                // Always confined, since no person is asked about code in a copy.
                confine: true,
                host_timeout_s: deadline,
                memory,
            };
            jobs.start_stoppable(job, reply, async move { checker.record(params).await });
        }));
        let event = Event::RunOperation { client, description: what, kind: Kind::Other, start };
        let recording = settle_keeping_result(SentJob { job: calls::job(|| self.send(event)), answer }).await?;
        self.look_first(recording).await
    }

    async fn look_first(&self, recording: Recording) -> Result<(Recording, RecordingAnswer), ImageError> {
        if recording.number == 0 {
            return Ok((recording, RecordingAnswer::default()));
        }
        let look = self.ask_recording(recording.number, &first_question(&recording)).await?;
        Ok((recording, look))
    }

    /// Asks a recording a question.
    ///
    /// # Errors
    /// The recording is gone (`stale`), or has no answer to the question (`no-answer`).
    pub async fn ask_recording<Q: RecordingQuestion>(
        &self,
        number: u64,
        question: &Q,
    ) -> Result<Q::Answer, ImageError> {
        self.inner.checker.ask_recording(number, question).await
    }

    /// Returns the error with which the recorded code ended.
    ///
    /// # Errors
    /// The recording is gone (`stale`).
    pub fn recorded_error(&self, number: u64) -> Result<Option<EvalError>, ImageError> {
        self.inner.checker.recorded_error(number)
    }

    /// Returns the query to a recording for a question as a person or an agent wrote it.
    ///
    /// # Errors
    /// An argument is missing or cannot be read (`bad-arguments`).
    pub fn recording_query(&self, question: &Question) -> Result<RecordingQuery, ImageError> {
        question
            .query(self.workspace())
            .map_err(|message| ImageError::Refused { kind: ErrorKind::BAD_ARGUMENTS, message })
    }
}
