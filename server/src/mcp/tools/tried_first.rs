//! The trial of an evaluation in a confined copy of the image, before a person is asked about it.

use super::{Call, Failure, Foreseen, Reply};
use crate::ide::evaluate::{self, Ending, Evaluation};
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::{EvalStatus, TriedEvaluation};
use crate::session::EvalRequest;

/// Seconds that a trial may take while the person waits for the question.
const TRIAL: f64 = 5.0;
/// The note to an agent whose code was evaluated in a copy alone.
const NOTE: &str = "Evaluated in a confined copy of the image, where it changed nothing that Consort compares: nobody \
was asked, and nothing of it is kept. With \"in\": \"image\" the user is asked.";

/// Tries the evaluation. Its answer is that of the call if the copy changed nothing and was
/// refused nothing; otherwise the person is told.
pub(super) async fn foresee(call: &Call, mut request: EvalRequest) -> Foreseen<Evaluation> {
    if call.session.limits_reading() != Some(true) || call.asker.is_retry() {
        return Foreseen::Nothing;
    }
    let most = request.timeout.unwrap_or(TRIAL).min(TRIAL);
    request.timeout = Some(most);
    match call.progress.during(call.session.try_evaluation(call.client, request), None).await {
        Ok(answer) => judged(answer, most),
        // The call ends: nobody is asked about it any more.
        Err(error) if error.kind() == ErrorKind::INTERRUPTED => Foreseen::Answer(Failure::of(error, None).into()),
        Err(error) => {
            tracing::info!(%error, "an evaluation could not be tried before the question");
            Foreseen::Nothing
        }
    }
}

/// The consequence of a trial that had `most` seconds.
fn judged(tried: TriedEvaluation, most: f64) -> Foreseen<Evaluation> {
    let TriedEvaluation { outcome, compared, changed, refusals } = tried;
    if outcome.status == EvalStatus::Timeout {
        return Foreseen::Tried(format!("it had not ended after {most} s"));
    }
    if !compared {
        // The copy was lost, or could not be confined.
        return outcome.error.map_or(Foreseen::Nothing, |error| Foreseen::Tried(error.message));
    }
    if changed.is_empty() && refusals.is_empty() {
        return Foreseen::Answer(answer(Evaluation::from(outcome)));
    }
    let mut told = Vec::new();
    if !refusals.is_empty() {
        told.push(format!("it was refused: {}", refusals.join("; ")));
    }
    if !changed.is_empty() {
        told.push(format!("it changed {}", changed.join(", ")));
    }
    Foreseen::Tried(told.join(", and "))
}

fn answer(mut facts: Evaluation) -> Reply<Evaluation> {
    let full = facts.for_agent();
    let text = format!("{}\n\n; Note: {NOTE}", evaluate::render(&facts));
    facts.notices.push(NOTE.into());
    Reply { text, failed: facts.status != Ending::Ok, facts, full }
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

    fn told(tried: TriedEvaluation) -> String {
        match judged(tried, 5.0) {
            Foreseen::Answer(reply) => reply.text,
            Foreseen::Tried(told) => told,
            Foreseen::Nothing => "nothing".into(),
        }
    }

    #[test]
    fn only_a_trial_that_changed_nothing_and_was_refused_nothing_answers() {
        assert_eq!(told(tried(&[], &[])), format!("=> 3\n\n; Note: {NOTE}"));
        assert_eq!(told(tried(&["functions", "variables"], &[])), "it changed functions, variables");
        assert_eq!(
            told(tried(&["functions"], &["Operation not permitted"])),
            "it was refused: Operation not permitted, and it changed functions"
        );
        let uncompared = |status, error: Option<&str>| {
            let outcome = EvalOutcome::empty(status, error.map(|message| EvalError::new("X", message)));
            TriedEvaluation { outcome, compared: false, changed: Vec::new(), refusals: Vec::new() }
        };
        assert_eq!(told(uncompared(EvalStatus::Ok, None)), "nothing");
        assert_eq!(told(uncompared(EvalStatus::Error, Some("the copy was lost"))), "the copy was lost");
        assert_eq!(told(uncompared(EvalStatus::Timeout, None)), "it had not ended after 5 s");
    }
}
