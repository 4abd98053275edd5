//! Frozen failures as text and as data: their list, and the outcome of an attempt.

use std::fmt::Write as _;

use serde::Serialize;

use super::evaluate::{self, Evaluation};
use super::restarts::numbered_list;
use super::stops::{self, ActionFacts};
use crate::model::action_outcome::AttemptOutcome;
use crate::model::frozen::Failure;
use crate::shown::line;

/// The outcome of an attempt at a frozen failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AttemptFacts {
    /// The attempt ended in the stack of the failure.
    Ended(ActionFacts),
    /// The evaluation continued.
    Continued {
        /// The status, always `tried`.
        status: &'static str,
        /// The outcome that the evaluation would have had.
        outcome: Box<Evaluation>,
    },
}

/// Lists frozen failures, with their restarts.
pub fn listed(failures: &[Failure]) -> String {
    let texts: Vec<String> = failures.iter().map(described).collect();
    texts.join("\n\n")
}

fn described(failure: &Failure) -> String {
    let mut text = format!("Failure {}: {}", failure.number, line(&format!("{}: {}", failure.kind, failure.message)));
    let _ = write!(text, "\n  of {}, {} s ago, kept with its stack", line(&failure.session), failure.seconds);
    text + &numbered_list(&failure.restarts, "\n  restart ")
}

/// Returns the outcome of an attempt as text and as data, and true if the attempt failed.
pub fn outcome(tried: AttemptOutcome) -> (String, AttemptFacts, bool) {
    let AttemptOutcome { action, outcome } = tried;
    let Some(outcome) = outcome else {
        let (text, facts, failed) = stops::outcome(&action, "failure");
        return (text, AttemptFacts::Ended(facts), failed);
    };
    let evaluation = Evaluation::from(outcome);
    let failed = !evaluation.is_ok();
    let text = format!(
        "; Tried in a copy: this is what the evaluation would have answered. The image is as it was.\n\n{}",
        evaluate::render(&evaluation)
    );
    (text, AttemptFacts::Continued { status: "tried", outcome: Box::new(evaluation) }, failed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn failures_are_listed_with_their_restarts() {
        let failure: Failure = Failure {
            number: 3,
            pid: 7,
            session: "mcp-2".into(),
            kind: "SIMPLE-ERROR".into(),
            message: "boom\n\u{202e}no".into(),
            restarts: serde_json::from_value(json!([{"name": "USE", "report": "Use\nit.", "arguments": true}]))
                .unwrap(),
            seconds: 4,
        };
        insta::assert_snapshot!(listed(&[failure]), @r"
        Failure 3: SIMPLE-ERROR: boom \u{202e}no
          of mcp-2, 4 s ago, kept with its stack
          restart 0: [USE] Use it. (takes an argument)
        ");
    }

    #[test]
    fn an_attempt_is_told_by_the_outcome_that_the_evaluation_would_have_had() {
        let tried = |value: Value| {
            let (text, facts, failed) = outcome(serde_json::from_value(value).unwrap());
            (text, json!(facts), failed)
        };
        let went_on = json!({"status": "ok", "values": [{"text": "(1 2)"}], "package": "CL-USER"});
        let (text, facts, failed) = tried(json!({"status": "left", "outcome": went_on}));
        assert!(text.starts_with("; Tried in a copy") && text.ends_with("=> (1 2)") && !failed, "{text}");
        assert_eq!(facts["outcome"]["values"][0], "(1 2)");
        let error = json!({"type": "SIMPLE-ERROR", "message": "again"});
        let (text, _, failed) =
            tried(json!({"status": "left", "outcome": {"status": "error", "error": error, "package": "CL-USER"}}));
        assert!(text.contains("[ERROR] SIMPLE-ERROR\nagain") && failed, "{text}");
        let (text, _, failed) =
            tried(json!({"status": "ok", "values": [{"text": "5", "type": "FIXNUM", "reference": 0}]}));
        assert!(text == "=> 5" && !failed, "{text}");
        for (status, error) in [("error", Some(&error)), ("timeout", None)] {
            let (text, _, failed) = tried(json!({"status": status, "error": error}));
            assert!(text.ends_with("The failure is as it was.") && failed, "{text}");
        }
    }

    #[test]
    fn code_that_was_tried_shows_what_it_wrote() {
        let wrote = json!({"status": "error", "error": {"type": "SIMPLE-ERROR", "message": "after"},
            "stdout": {"text": "before\n"}, "stderr": {"text": "x"}});
        let (text, facts, _) = outcome(serde_json::from_value(wrote).unwrap());
        let facts = json!(facts);
        assert!(text.ends_with("as it was.\n\n[stdout]\nbefore\n\n[stderr]\nx"), "{text}");
        assert_eq!(facts["stdout"], "before\n");
    }
}
