//! Recordings, for front ends: a form or a test runs once in a confined copy of the image, which
//! records it and answers questions.

use std::path::PathBuf;

use tokio::sync::oneshot;

use super::event::{Event, Start};
use super::in_copy::Limits;
use super::jobs::{Jobs, Kind};
use super::{ClientId, SentJob, Session, calls, settle_kept};
use crate::ide::recording::{Question, first_question};
use crate::image::api::record::{RecordParams, RecordingQuery, RecordingQuestion};
use crate::model::evaluation::EvalError;
use crate::model::image::ImageError;
use crate::model::recording::{Recording, RecordingAnswer};

pub use crate::image::api::replay::{
    RecordingPoint, ReplayBegin, ReplayBreakpoints, ReplayEvaluate, ReplayFrames, ReplayStep, ReplayText, ReplayValues,
};

/// Seconds of processor time that a copy has for questions.
const QUESTIONS: f64 = 600.0;

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
    /// The place of the code: file, and line and column from 1.
    pub place: Option<(PathBuf, u32, u32)>,
    /// Seconds.
    pub timeout: Option<f64>,
}

impl Session {
    /// Records a form or a test. Returns the recording, and the answer to the question that its
    /// outcome suggests, if it is kept. Dropping the future ends it.
    ///
    /// # Errors
    /// There is no image, or no copy can be made of it.
    pub async fn record(
        &self,
        client: ClientId,
        request: RecordRequest,
    ) -> Result<(Recording, RecordingAnswer), ImageError> {
        let config = self.settings(client).await;
        let wanted = request.timeout.unwrap_or(config.eval_timeout.as_secs_f64());
        let Limits { timeout, deadline, memory } = Limits::of(&config, wanted);
        let within = vec![self.workspace().to_owned()];
        let what = "recording in a copy".to_owned();
        let (reply, answer) = oneshot::channel();
        let checker = self.inner.checker.clone();
        let start = Start(Box::new(move |jobs: &mut Jobs, job, session: String, _| {
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
                within,
                file,
                line,
                column,
                timeout,
                deadline: deadline + QUESTIONS,
                // Whatever the settings say of checks: nobody is asked about it.
                confine: true,
                within_seconds: deadline,
                memory,
            };
            jobs.start_stoppable(job, reply, async move { checker.record(params).await });
        }));
        let event = Event::Run { client, what, kind: Kind::Other, start };
        let recording = settle_kept(SentJob { job: calls::job(|| self.send(event)), answer }).await?;
        if recording.number == 0 {
            return Ok((recording, RecordingAnswer::default()));
        }
        let look = self.ask_recording(recording.number, &first_question(&recording)).await?;
        Ok((recording, look))
    }

    /// Asks a recording.
    ///
    /// # Errors
    /// The recording is gone (`stale`), or has no answer to this (`no-answer`).
    pub async fn ask_recording<Q: RecordingQuestion>(
        &self,
        number: u64,
        question: &Q,
    ) -> Result<Q::Answer, ImageError> {
        self.inner.checker.ask_recording(number, question).await
    }

    /// Returns the error that a recording ended with.
    ///
    /// # Errors
    /// The recording is gone (`stale`).
    pub fn recorded_error(&self, number: u64) -> Result<Option<EvalError>, ImageError> {
        self.inner.checker.recorded_error(number)
    }

    /// Makes the question about a recording that a person or an agent has written.
    ///
    /// # Errors
    /// Something is missing or cannot be read.
    pub fn recording_query(&self, question: &Question) -> Result<RecordingQuery, ImageError> {
        question
            .query(self.workspace())
            .map_err(|message| ImageError::Refused { kind: "bad-arguments".into(), message })
    }
}
