//! An evaluation in a copy of the image: nothing that the code does is kept.

use std::path::PathBuf;
use std::sync::Arc;

use super::Shared;
use super::copy::run;
use super::job::CheckJob;
use crate::image::api::eval_copy::EvalInCopyParams;
use crate::model::check::CheckEnd;
use crate::model::evaluation::{Clipped, EvalError, EvalOutcome, EvalStatus};
use crate::model::image::ImageError;

/// Runs `eval-in-copy`; see [`super::Checker::evaluate`].
pub(super) async fn evaluate(shared: &Arc<Shared>, params: EvalInCopyParams) -> Result<EvalOutcome, ImageError> {
    let timeout = params.timeout;
    let job = CheckJob {
        op: "eval-in-copy",
        what: "an evaluation",
        deadline: params.deadline,
        memory: params.memory,
        first: (PathBuf::new(), params.code.chars().count()),
        last_form: None,
        until_exit: false,
        params,
        files: None,
    };
    let mut told = run(shared, &job, false).await?;
    // Code that evaluates may write to the copy's socket: this is its own answer in any case.
    let report = told.reports.pop().map(|(_, report)| report);
    Ok(match told.answer.map(serde_json::from_value::<EvalOutcome>) {
        Some(Ok(outcome)) => outcome,
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
    })
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
