//! An evaluation in a copy of the image: nothing that the code does is kept.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Shared;
use super::copy::run;
use super::job::CheckJob;
use crate::image::api::eval_copy::EvalInCopyParams;
use crate::image::api::try_code::TryParams;
use crate::model::check::CheckEnd;
use crate::model::evaluation::{Clipped, EvalError, EvalOutcome, EvalStatus};
use crate::model::image::ImageError;
use crate::model::trial::Trial;
use crate::text::expected::Expected;

/// Runs `eval-in-copy`; see [`super::Checker::evaluate`].
pub(super) async fn evaluate(shared: &Arc<Shared>, params: EvalInCopyParams) -> Result<EvalOutcome, ImageError> {
    let copy = params.clone();
    Ok(answer_of(shared, "eval-in-copy", &copy, params).await?.unwrap_or_else(|ended| ended))
}

/// Runs `try-code`; see [`super::Checker::try_code`].
pub(super) async fn try_code(shared: &Arc<Shared>, params: TryParams) -> Result<Trial, ImageError> {
    let copy = params.copy.clone();
    let answer = answer_of(shared, "try-code", &copy, params).await?;
    Ok(answer.unwrap_or_else(|ended| Trial {
        forms: Vec::new(),
        outcome: Some(ended),
        calls: Vec::new(),
        refused: None,
    }))
}

/// Returns the answer of a copy that evaluates, or the outcome that stands for a copy without one.
async fn answer_of<P: Serialize, A: DeserializeOwned>(
    shared: &Arc<Shared>,
    op: &'static str,
    copy: &EvalInCopyParams,
    params: P,
) -> Result<Result<A, EvalOutcome>, ImageError> {
    let timeout = copy.timeout;
    let job = CheckJob {
        op,
        what: "an evaluation",
        deadline: copy.deadline,
        memory: copy.memory,
        first: (PathBuf::new(), copy.code.chars().count()),
        expected: Expected::default(),
        until_exit: false,
        params,
        files: None,
    };
    let mut told = run(shared, &job, false).await?;
    // Code that evaluates may write to the copy's socket: this is its own answer in any case.
    let report = told.reports.pop().map(|(_, report)| report);
    Ok(Err(match told.answer.map(serde_json::from_value::<A>) {
        Some(Ok(answer)) => return Ok(Ok(answer)),
        Some(Err(error)) => {
            ended("COPY-LOST", format!("The copy of the image gave an answer that means nothing: {error}"))
        }
        None => match report {
            Some(report) if report.diagnostics.iter().any(|found| found.code == "out-of-time") => EvalOutcome {
                status: EvalStatus::Timeout,
                ..ended(
                    "TIMEOUT",
                    format!("Stopped: the deadline of {timeout} s passed, and the code could not be left."),
                )
            },
            Some(report) => match report.end {
                CheckEnd::Stopped { reason } => ended("COPY-LOST", format!("The copy of the image was lost: {reason}")),
                CheckEnd::Complete => ended("COPY-LOST", "The copy of the image gave no answer.".into()),
            },
            None => ended("COPY-LOST", "The copy of the image gave no answer.".into()),
        },
    }))
}

/// Returns the outcome of an evaluation of which the copy told nothing.
fn ended(kind: &str, message: String) -> EvalOutcome {
    EvalOutcome {
        status: EvalStatus::Error,
        values: Vec::new(),
        stdout: Clipped::default(),
        stderr: Clipped::default(),
        warnings: Vec::new(),
        error: Some(EvalError { kind: kind.into(), message, backtrace: Vec::new() }),
        timing: None,
        package: "COMMON-LISP-USER".into(),
    }
}
