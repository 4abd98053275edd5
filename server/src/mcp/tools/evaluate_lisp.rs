//! `evaluate-lisp`, as specified by its contract.

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::in_copy::{self, EvalPlace};
use super::{BeforeApproval, Call, CodeContext, Failure, FromFailure, Hints, Reply, Tool, tried_first};
use crate::ide::evaluate::{self, Evaluation};
use crate::ide::stops;
use crate::mcp::agent_breakpoints::NextEvent;
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::{EvalOutcome, EvalStatus};
use crate::model::image::ImageError;
use crate::session::EvalRequest;
use crate::session::approval::{Class, Subject};

/// The tool `evaluate-lisp`.
pub(crate) struct EvaluateLisp;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// One or more forms
    code: String,
    /// Default: the last used
    #[serde(default)]
    package: Option<String>,
    /// Also time and bytes consed
    #[serde(default, rename = "capture-time")]
    capture_time: Option<bool>,
    /// Seconds. Default 30.
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 86400))]
    timeout: Option<f64>,
    /// `copy`: confined, nothing kept, nobody asked.
    #[serde(default, rename = "in")]
    place: Option<EvalPlace>,
}

impl Input {
    fn request(&self) -> EvalRequest {
        EvalRequest {
            code: self.code.clone(),
            package: self.package.clone(),
            capture_time: self.capture_time.unwrap_or(false),
            timeout: self.timeout,
            ..EvalRequest::default()
        }
    }
}

impl Tool for EvaluateLisp {
    type Input = Input;
    type Output = Evaluation;

    const NAME: &'static str = "evaluate-lisp";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Evaluate Common Lisp code in a persistent REPL session. Definitions and variables persist \
across calls, in the live image the user's editor shares.";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: true };

    async fn required_approval_async(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        let what = "Evaluate code in the image".into();
        let subject = Subject { what, file: None, code: Some(input.code.clone()), ..Subject::default() };
        Ok(in_copy::required_approval(call, input.place, (Class::Eval, subject)))
    }

    async fn before_approval(call: &Call, input: &Input) -> BeforeApproval<Evaluation> {
        // A copy has no breakpoints.
        if input.place.is_some() || call.breakpoints.may_stop() {
            return BeforeApproval::Nothing;
        }
        tried_first::try_first(call, input.request()).await
    }

    fn code_context(input: &Input) -> Option<CodeContext> {
        Some(CodeContext::InSession(input.package.clone()))
    }

    async fn call(call: Call, input: Input) -> Reply<Evaluation> {
        let (package, in_copy) = (input.package.clone(), in_copy::in_copy(input.place));
        let (output, chunks) = if call.progress.is_wanted() && !in_copy {
            let (output, chunks) = mpsc::unbounded_channel();
            (Some(output), Some(chunks))
        } else {
            (None, None)
        };
        let request = EvalRequest { output, ..input.request() };
        let answer = if in_copy {
            call.progress.report_during(call.session.evaluate_in_copy(call.client, request), chunks).await
        } else if let Some(running) = call.breakpoints.begin() {
            let request = EvalRequest { breakpoints: true, ..request };
            let client = (&call.session, call.client);
            match call.breakpoints.run(running, client, &call.progress, request, chunks).await {
                NextEvent::Ended(answer) => *answer,
                NextEvent::Stopped(stopped) => {
                    let (text, _) = stops::describe_for_agent(&call.session, stopped.stop).await;
                    return Reply::new(text, Evaluation::waiting(stopped.stop), false);
                }
            }
        } else {
            call.progress.report_during(call.session.evaluate(call.client, request), chunks).await
        };
        ended(answer, package.as_deref())
    }
}

/// Returns the answer about an evaluation that has ended. `package` is the package in the call.
pub(super) fn ended(answer: Result<EvalOutcome, ImageError>, package: Option<&str>) -> Reply<Evaluation> {
    match answer {
        Ok(outcome) => {
            let mut facts = Evaluation::from(outcome);
            let full = facts.for_agent();
            Reply { text: evaluate::render(&facts), failed: !facts.is_ok(), facts, full }
        }
        Err(error @ ImageError::Lost { .. }) => {
            let facts = Evaluation::from_failure(Failure::of(error, None));
            Reply { text: evaluate::render(&facts), facts, failed: true, full: None }
        }
        Err(error) => Failure::of(error, package).into(),
    }
}

impl FromFailure for Evaluation {
    fn from_failure(failure: Failure) -> Self {
        let status = if failure.kind == ErrorKind::LOST { EvalStatus::Lost } else { EvalStatus::Refused };
        Evaluation::failed(status, failure.kind.into(), failure.message)
    }
}
