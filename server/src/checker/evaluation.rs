//! Evaluations and other work in a copy of the image: nothing that the code does is kept.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::copy::Runner;
use super::forked::CheckOutput;
use super::job::CopyJob;
use super::turn::Queue;
use crate::image::api::Operation;
use crate::image::api::eval_copy::{EvalInCopyParams, WorkInCopyParams};
use crate::image::api::try_code::TryParams;
use crate::model::check::CheckEnd;
use crate::model::evaluation::{EvalError, EvalOutcome, EvalStatus};
use crate::model::image::ImageError;
use crate::model::trial::Trial;

/// The maximum value of a number in an answer. Sums of all such numbers that fit in a line do not
/// overflow.
const NUMBER_LIMIT: f64 = (1_u64 << 44) as f64;

/// The limits of work in a copy.
struct Limits {
    /// Seconds after which the copy itself stops the code.
    timeout: f64,
    /// Seconds after which the host ends the copy.
    deadline: f64,
    /// Bytes of private memory.
    memory: u64,
    /// True if the copy may have threads, and sockets of its own.
    threads: bool,
}

impl Limits {
    fn of(params: &EvalInCopyParams) -> Limits {
        let EvalInCopyParams { timeout, deadline, memory, threads, .. } = *params;
        Limits { timeout, deadline, memory, threads }
    }
}

/// Runs `eval-in-copy`; see [`super::Checker::evaluate`].
pub(super) async fn evaluate(runner: &Runner, params: EvalInCopyParams) -> Result<EvalOutcome, ImageError> {
    let limits = Limits::of(&params);
    Ok(answer(runner, "eval-in-copy", params, limits).await?.unwrap_or_else(|ended| *ended))
}

/// Runs `try-code`; see [`super::Checker::try_code`].
pub(super) async fn try_code(runner: &Runner, params: TryParams) -> Result<Trial, ImageError> {
    let limits = Limits::of(&params.copy);
    Ok(answer(runner, "try-code", params, limits).await?.unwrap_or_else(|ended| Trial {
        forms: Vec::new(),
        outcome: Some(*ended),
        calls: Vec::new(),
        coverage: Vec::new(),
        refused: None,
    }))
}

/// Runs another operation in a copy; see [`super::Checker::work`].
pub(super) async fn work<O: Operation>(runner: &Runner, params: WorkInCopyParams<O>) -> Result<O::Answer, ImageError> {
    let WorkInCopyParams { timeout, deadline, memory, threads, .. } = params;
    let limits = Limits { timeout, deadline, memory, threads };
    match answer(runner, "eval-in-copy", params, limits).await? {
        Ok(answer) => Ok(answer),
        // Every answer has the fields of an outcome. All its other fields may be missing.
        Err(ended) => serde_json::to_value(ended)
            .and_then(serde_json::from_value)
            .map_err(|error| ImageError::Unavailable(format!("The copy of the image gave no answer: {error}"))),
    }
}

/// Returns the answer of a copy, or an outcome that explains why there is none.
async fn answer<P: Serialize, A: DeserializeOwned>(
    runner: &Runner,
    op: &'static str,
    params: P,
    limits: Limits,
) -> Result<Result<A, Box<EvalOutcome>>, ImageError> {
    let mut job = CopyJob::without_text(op, "work in a copy", params, (limits.deadline, limits.memory));
    job.threads = limits.threads;
    Ok(decode_answer(runner.run(&job, Queue::Work).await?, limits.timeout))
}

/// Returns the answer in the output of a copy, or an outcome that explains why there is none.
/// `timeout` is the time in seconds after which the copy should have stopped the code.
pub(super) fn decode_answer<A: DeserializeOwned>(mut output: CheckOutput, timeout: f64) -> Result<A, Box<EvalOutcome>> {
    // Evaluated code may forge the report by writing to the copy's socket. The report is only about
    // that code.
    let report = output.reports.pop().map(|(_, report)| report);
    let meaningless = match output.answer {
        Some(answer) if !numbers_are_bounded(&answer) => Some("a number in it is out of range".to_owned()),
        Some(answer) => match serde_json::from_value(answer) {
            Ok(answer) => return Ok(answer),
            Err(error) => Some(error.to_string()),
        },
        None => None,
    };
    Err(Box::new(match (meaningless, report) {
        (Some(why), _) => failed_outcome(
            "COPY-LOST",
            format!(
                "The copy of the image gave an answer that could not be decoded: {why}. Restart the image if this happens again."
            ),
        ),
        (None, Some(report)) if report.diagnostics.iter().any(|found| found.code == "out-of-time") => EvalOutcome {
            status: EvalStatus::Timeout,
            ..failed_outcome(
                "TIMEOUT",
                format!("Stopped: the deadline of {timeout} s passed, and the code could not be left."),
            )
        },
        (None, Some(report)) => match report.end {
            CheckEnd::Stopped { reason } => {
                failed_outcome("COPY-LOST", format!("The copy of the image was lost: {reason}"))
            }
            CheckEnd::Complete => failed_outcome("COPY-LOST", "The copy of the image gave no answer.".into()),
        },
        (None, None) => failed_outcome("COPY-LOST", "The copy of the image gave no answer.".into()),
    }))
}

/// Returns true if every number of an answer is between 0 and [`NUMBER_LIMIT`].
pub(super) fn numbers_are_bounded(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|number| (0.0..=NUMBER_LIMIT).contains(&number)),
        Value::Array(values) => values.iter().all(numbers_are_bounded),
        Value::Object(fields) => fields.values().all(numbers_are_bounded),
        _ => true,
    }
}

/// Returns the outcome of an evaluation about which the copy reported nothing.
pub(super) fn failed_outcome(kind: &str, message: String) -> EvalOutcome {
    EvalOutcome::empty(EvalStatus::Error, Some(EvalError::new(kind, message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_no_number_that_overflows() {
        for (answer, bounded) in [
            (serde_json::json!({"values": [{"text": "1", "omitted": 7}], "timing": {"real_ms": 1.5}}), true),
            (serde_json::json!({"stdout": {"omitted": u64::MAX}}), false),
            (serde_json::json!({"stacks": [{"count": 1_u64 << 60}]}), false),
            (serde_json::json!({"milliseconds": -1}), false),
        ] {
            assert_eq!(numbers_are_bounded(&answer), bounded, "{answer}");
        }
    }
}
