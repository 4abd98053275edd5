//! The trial of an evaluation in a confined copy of the image, before a person is asked about it.

use super::{BeforeApproval, Call, Failure, Reply};
use crate::ide::evaluate::{self, Evaluation};
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::{EvalStatus, TriedEvaluation};
use crate::session::EvalRequest;

/// The number of seconds that a trial may take while the person waits for the question.
const TRIAL_TIMEOUT_S: f64 = 5.0;
/// The note to an agent whose code was evaluated only in a copy.
const NOTE: &str = "Evaluated in a confined copy of the image, where it changed nothing that Consort compares: nobody \
was asked, and nothing of it is kept. With \"in\": \"image\" the user is asked.";

/// Tries the evaluation in a copy. If the copy changed nothing and was refused nothing, its answer
/// is that of the call. Otherwise, the person is told about the trial.
pub(super) async fn try_first(call: &Call, mut request: EvalRequest) -> BeforeApproval<Evaluation> {
    if call.session.limits_reading() != Some(true) || call.asker.is_retry() {
        return BeforeApproval::Nothing;
    }
    let most = request.timeout.unwrap_or(TRIAL_TIMEOUT_S).min(TRIAL_TIMEOUT_S);
    request.timeout = Some(most);
    match call.progress.report_during(call.session.try_evaluation(call.client, request), None).await {
        Ok(answer) => consequence(answer, most),
        // The call ends, so that nobody is asked about it any more.
        Err(error) if error.kind() == ErrorKind::INTERRUPTED => BeforeApproval::Answer(Failure::of(error, None).into()),
        Err(error) => {
            tracing::info!(%error, "an evaluation could not be tried before the question");
            BeforeApproval::Nothing
        }
    }
}

/// Returns the consequence of a trial that had `most` seconds.
fn consequence(tried: TriedEvaluation, most: f64) -> BeforeApproval<Evaluation> {
    let TriedEvaluation { outcome, compared, changed, refusals } = tried;
    if outcome.status == EvalStatus::Timeout {
        return BeforeApproval::Tried(format!("it had not ended after {most} s"));
    }
    if !compared {
        // The copy was lost, or could not be confined.
        return outcome.error.map_or(BeforeApproval::Nothing, |error| BeforeApproval::Tried(error.message));
    }
    if changed.is_empty() && refusals.is_empty() {
        return BeforeApproval::Answer(answer(Evaluation::from(outcome)));
    }
    let mut reasons = Vec::new();
    if !refusals.is_empty() {
        reasons.push(format!("it was refused: {}", refusals.join("; ")));
    }
    if !changed.is_empty() {
        reasons.push(format!("it changed {}", changed.join(", ")));
    }
    BeforeApproval::Tried(reasons.join(", and "))
}

fn answer(mut facts: Evaluation) -> Reply<Evaluation> {
    let full = facts.for_agent();
    let text = format!("{}\n\n; Note: {NOTE}", evaluate::render(&facts));
    facts.notices.push(NOTE.into());
    Reply { text, failed: !facts.is_ok(), facts, full }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::evaluation::{Clipped, EvalError, EvalOutcome};

    fn tried(changed: &[&str], refusals: &[&str]) -> TriedEvaluation {
        let mut outcome = EvalOutcome::empty(EvalStatus::Ok, None);
        outcome.values.push(Clipped { text: "3".into(), omitted: 0 });
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        TriedEvaluation { outcome, compared: true, changed: texts(changed), refusals: texts(refusals) }
    }

    fn reasons(tried: TriedEvaluation) -> String {
        match consequence(tried, 5.0) {
            BeforeApproval::Answer(reply) => reply.text,
            BeforeApproval::Tried(reasons) => reasons,
            BeforeApproval::Nothing => "nothing".into(),
        }
    }

    #[test]
    fn only_a_trial_that_changed_nothing_and_was_refused_nothing_answers() {
        assert_eq!(reasons(tried(&[], &[])), format!("=> 3\n\n; Note: {NOTE}"));
        assert_eq!(reasons(tried(&["functions", "variables"], &[])), "it changed functions, variables");
        assert_eq!(
            reasons(tried(&["functions"], &["Operation not permitted"])),
            "it was refused: Operation not permitted, and it changed functions"
        );
        let uncompared = |status, error: Option<&str>| {
            let outcome = EvalOutcome::empty(status, error.map(|message| EvalError::new("X", message)));
            TriedEvaluation { outcome, compared: false, changed: Vec::new(), refusals: Vec::new() }
        };
        assert_eq!(reasons(uncompared(EvalStatus::Ok, None)), "nothing");
        assert_eq!(reasons(uncompared(EvalStatus::Error, Some("the copy was lost"))), "the copy was lost");
        assert_eq!(reasons(uncompared(EvalStatus::Timeout, None)), "it had not ended after 5 s");
    }
}
