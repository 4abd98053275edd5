//! Throw-away copies of the image, in which checks, macro expansions and evaluations run without
//! side effects on the image. docs/architecture.md describes each file.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test may fail"))]

mod asking;
mod chain;
mod changed_process;
mod copy;
mod coverage;
mod ending;
mod evaluation;
mod forked;
mod frozen;
mod job;
mod memory;
mod recordings;
mod report;
mod scratch;
mod scratch_use;
mod threads;
mod turn;
mod warm;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::config::Copies;
use crate::image::Image;
use crate::image::api::Operation;
use crate::image::api::eval_copy::{EvalInCopyParams, WorkInCopyParams};
use crate::image::api::expand::{ExpandParams, ExpandPlain, PlainAnswer};
use crate::image::api::package_contents::SourceDirectories;
use crate::image::api::record::{AwaitCallParams, RecordCallParams, RecordParams, RecordingQuestion};
use crate::image::api::try_code::TryParams;
use crate::image::api::{CheckParams, CheckSystemParams, Freeze};
use crate::image::runtime::Phase;
use crate::model::check::CheckReport;
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::{EvalError, EvalOutcome};
use crate::model::expansion::ExpandAnswer;
use crate::model::frozen::{Failure, Frozen};
use crate::model::image::{ImageError, Progress};
use crate::model::recording::Recording;
use crate::model::trial::Trial;
pub use chain::{Chain, ChainAnswer, ChainEdit, ChainEnd};
use copy::{CheckSeries, Runner, Waits};
use frozen::Failures;
pub use job::FileLookup;
pub use recordings::ExpectedRecording;
use recordings::Recordings;
pub use turn::max_copies;

/// Runs checks, expansions and evaluations in throw-away copies of one image. Clones share the
/// limits of the copies.
///
/// A task that outlives its request may share the other fields, but not `image`, so that it does
/// not keep the image alive.
#[derive(Clone)]
pub struct Checker {
    image: Image,
    runner: Arc<Runner>,
    failures: Arc<Failures>,
    recordings: Arc<Recordings>,
}

impl std::fmt::Debug for Checker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Checker").field("image", &self.image).finish_non_exhaustive()
    }
}

impl Checker {
    /// Creates the checker of `image`.
    pub fn new(image: &Image) -> Checker {
        let runtime = image.runtime();
        let runner = Arc::new(Runner::new(runtime.clone(), Waits::default(), max_copies()));
        Checker {
            image: image.clone(),
            failures: Arc::new(Failures::new(runtime)),
            recordings: Arc::new(Recordings::new(runner.clone())),
            runner,
        }
    }

    /// Returns how copies of this image are made: by a fork, or as a second process. Returns `None`
    /// while there is no image.
    pub fn copies(&self) -> Option<Copies> {
        let Phase::Ready(instance) = &*self.runner.forker.runtime.phase.borrow() else { return None };
        Some(if self.runner.forker.workers.is_needed(instance) { Copies::Process } else { Copies::Fork })
    }

    /// Returns true if the system can restrict what a copy reads (Landlock). Returns `None` while
    /// there is no image.
    pub fn limits_reading(&self) -> Option<bool> {
        let Phase::Ready(instance) = &*self.runner.forker.runtime.phase.borrow() else { return None };
        Some(instance.ready.features.landlock > 0)
    }

    /// Checks a text in a throw-away copy. Dropping the future kills the copy.
    ///
    /// # Errors
    /// There is no image, or no copy can be made of it.
    pub async fn check(&self, params: CheckParams) -> Result<CheckReport, ImageError> {
        self.runner.check(params, CheckSeries::Single).await
    }

    /// Checks a text as [`Checker::check`] does, and keeps a copy ready for the next check, which
    /// then does not wait for a fork.
    ///
    /// # Errors
    /// As [`Checker::check`].
    pub async fn check_repeated(&self, params: CheckParams) -> Result<CheckReport, ImageError> {
        self.runner.check(params, CheckSeries::Repeated).await
    }

    /// Checks a text that is being edited, as [`Checker::check_repeated`] does. The check does not
    /// wait for those of agents and terminals.
    ///
    /// # Errors
    /// As [`Checker::check`].
    pub async fn check_edited(&self, params: CheckParams) -> Result<CheckReport, ImageError> {
        self.runner.check(params, CheckSeries::Edited).await
    }

    /// Checks a text in a copy that leaves a chain behind: processes that check later edits of the
    /// text (docs/architecture.md, "A chain"). Dropping the future, or the chain, kills all of
    /// them.
    ///
    /// # Errors
    /// The reason why there can be no chain for this text now.
    pub async fn chain(&self, params: CheckParams) -> Result<Chain, ChainEnd> {
        chain::start(&self.runner, params).await
    }

    /// Checks the files of a system in a throw-away copy, into which they and their dependencies
    /// are loaded. Returns each file's report, in the order of the build. `lookup` is called for a
    /// file when its turn comes. Dropping the future kills the copy.
    ///
    /// # Errors
    /// As [`Checker::check`].
    pub async fn check_system(
        &self,
        params: CheckSystemParams,
        lookup: FileLookup,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<Vec<(PathBuf, CheckReport)>, ImageError> {
        self.runner.check_system(params, lookup, progress).await
    }

    /// Returns the directories in which checks find sources: those that the image knows, and the
    /// directory of the copies' scratch directories.
    ///
    /// # Errors
    /// There is no image.
    pub async fn source_directories(&self) -> Result<Vec<PathBuf>, ImageError> {
        let mut places = self.image.query_when_ready(&SourceDirectories {}).await?.directories;
        places.push(self.runner.forker.runtime.private.clone());
        Ok(places)
    }

    /// Evaluates code in a throw-away copy: nothing that it does is kept. Dropping the future kills
    /// the copy.
    ///
    /// # Errors
    /// As [`Checker::check`].
    pub async fn evaluate(&self, params: EvalInCopyParams) -> Result<EvalOutcome, ImageError> {
        evaluation::evaluate(&self.runner, params).await
    }

    /// Evaluates definitions, then code that uses them, in a confined copy of the image. Dropping
    /// the future kills the copy.
    ///
    /// # Errors
    /// As [`Checker::check`].
    pub async fn try_code(&self, params: TryParams) -> Result<Trial, ImageError> {
        evaluation::try_code(&self.runner, params).await
    }

    /// Runs a form or a test once in a confined copy, and records the run. The copy is kept to
    /// answer questions about it. Dropping the future kills the copy.
    ///
    /// # Errors
    /// As [`Checker::check`].
    pub async fn record(&self, params: RecordParams) -> Result<Recording, ImageError> {
        recordings::record(&self.recordings, params).await
    }

    /// Reserves a number for the recording of the next call of a function.
    pub fn expect_call(&self, function: &str) -> ExpectedRecording {
        recordings::expect(&self.recordings, function)
    }

    /// Waits for the next call of a function in the image, which is recorded there. Returns the
    /// call's number in the image. Dropping the future ends the wait.
    ///
    /// # Errors
    /// The function cannot be recorded, the function was not called in time, or the image cannot be
    /// copied.
    pub async fn await_call(
        &self,
        params: &AwaitCallParams,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<u64, ImageError> {
        if self.copies() == Some(Copies::Process) {
            let message = "The next call cannot be recorded: a copy of the image keeps a recording, and on this system, or with \
                           `check.copies = \"process\"`, the image is not copied.";
            return Err(ImageError::Refused { kind: ErrorKind::NOT_RECORDABLE, message: message.into() });
        }
        Ok(self.image.run(params, None, None, progress, None).await?.call)
    }

    /// Keeps a call that was recorded in the image, in a confined copy that answers questions about
    /// it. Dropping the future kills the copy.
    ///
    /// # Errors
    /// As [`Checker::check`].
    pub async fn record_call(
        &self,
        params: RecordCallParams,
        expected: &ExpectedRecording,
    ) -> Result<Recording, ImageError> {
        recordings::record_call(&self.recordings, params, expected).await
    }

    /// Ends a recording, or the wait for its call.
    ///
    /// # Errors
    /// There is no such recording (`stale`).
    pub fn end_recording(&self, number: u64) -> Result<(), ImageError> {
        recordings::end(&self.recordings, number)
    }

    /// Returns a recording's answer to a question.
    ///
    /// # Errors
    /// The recording is gone (`stale`), or has no answer to the question (`no-answer`).
    pub async fn ask_recording<Q: RecordingQuestion>(
        &self,
        number: u64,
        question: &Q,
    ) -> Result<Q::Answer, ImageError> {
        recordings::ask(&self.recordings, number, question).await
    }

    /// Returns the error with which the recorded run ended, if there was one.
    ///
    /// # Errors
    /// The recording is gone (`stale`).
    pub fn recorded_error(&self, number: u64) -> Result<Option<EvalError>, ImageError> {
        recordings::error(&self.recordings, number)
    }

    /// Runs an operation in a throw-away copy, as [`Checker::evaluate`] does with code.
    ///
    /// # Errors
    /// As [`Checker::check`].
    pub async fn work<O: Operation>(&self, params: WorkInCopyParams<O>) -> Result<O::Answer, ImageError> {
        evaluation::work(&self.runner, params).await
    }

    /// Expands macros: in the image if no code of the user can run, otherwise in a throw-away copy.
    /// Dropping the future kills the copy.
    ///
    /// # Errors
    /// As [`Checker::check`]; also if the expansion passed a limit.
    pub async fn expand(&self, params: ExpandParams) -> Result<ExpandAnswer, ImageError> {
        // An error of this query is not reported: the expansion in a copy reports its own.
        if params.request.is_plain()
            && let Ok(PlainAnswer { answer: Some(answer) }) =
                self.image.query(&ExpandPlain(params.request.clone())).await
        {
            return Ok(ExpandAnswer::Done(answer));
        }
        self.runner.expand(params).await
    }

    /// Returns the parameters with which an evaluation freezes the error that ends it. `keep` is
    /// the number of frozen failures that are kept, with this one. Returns `None` if errors are
    /// only reported.
    pub fn freeze(&self, keep: usize) -> Option<Freeze> {
        frozen::freeze_params(&self.failures, keep)
    }

    /// Keeps a frozen failure, and returns its number, or 0 if there is no image. `session` is the
    /// session of the evaluation that ended with `error`, or describes the thread or test that did.
    /// `memory` is the limit of each attempt's private memory, in bytes.
    pub fn keep_failure(&self, frozen: &Frozen, session: &str, error: Option<&EvalError>, memory: u64) -> u64 {
        frozen::keep(&self.failures, frozen, session, error, memory)
    }

    /// Returns the frozen failures that are kept, oldest first.
    pub fn failures(&self) -> Vec<Failure> {
        self.failures.list()
    }

    /// Ends a frozen failure. Returns false if there is none of this number.
    pub fn drop_failure(&self, number: u64) -> bool {
        self.failures.end(number)
    }

    /// Runs an operation on the stop of a frozen failure, in a process of its own. Dropping the
    /// future ends that process.
    ///
    /// # Errors
    /// The frozen failure is gone (`stale`), refuses the operation, or the process passed a limit.
    pub async fn ask_failure<O: Operation, A: serde::de::DeserializeOwned>(
        &self,
        number: u64,
        operation: &O,
    ) -> Result<A, ImageError> {
        frozen::ask(&self.failures, number, operation).await
    }
}
