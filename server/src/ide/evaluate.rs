//! The answer of `evaluate-lisp`, as data and as the contract's text.

use serde::{Serialize, Serializer};

use super::backtrace::{self, ErrorFacts};
use super::clip::{self, clip};
use super::compiler_output::{self, CompilerReport};
use super::restarts::numbered_list;
use crate::model::evaluation::{Clipped, EvalError, EvalOutcome, EvalStatus, EvalWarning, Timing};
use crate::model::frozen::{Frozen, Restart};

/// An evaluation for an agent: its outcome, within the limits of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// The outcome. It has an error unless the status is `Ok` or `Stopped`.
    pub outcome: EvalOutcome,
    /// The events since the last call.
    pub notices: Vec<String>,
    /// The number of the stop in which the evaluation waits.
    pub stop: Option<u64>,
}

/// An evaluation as data for an agent. Empty fields are left out, except `values`. The references
/// to the values are left out too, because an agent inspects the values by `*`.
#[derive(Serialize)]
struct AgentFacts<'a> {
    status: EvalStatus,
    values: Vec<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    stdout: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    stderr: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    omitted: usize,
    #[serde(skip_serializing_if = "is_empty")]
    warnings: &'a [EvalWarning],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorFacts<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timing: Option<&'a Timing>,
    #[serde(skip_serializing_if = "str::is_empty")]
    package: &'a str,
    #[serde(skip_serializing_if = "is_empty")]
    notices: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<KeptFailure<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<u64>,
}

/// The frozen failure that was kept for an evaluation.
#[derive(Serialize)]
struct KeptFailure<'a> {
    number: u64,
    restarts: &'a [Restart],
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

fn is_empty<T>(items: &&[T]) -> bool {
    items.is_empty()
}

impl Serialize for Evaluation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let facts = self.outcome.facts();
        let failure = self.kept().map(|frozen| KeptFailure { number: frozen.number, restarts: &frozen.restarts });
        let facts = AgentFacts {
            status: facts.status,
            values: facts.values,
            stdout: facts.stdout,
            stderr: facts.stderr,
            omitted: facts.omitted,
            warnings: facts.warnings,
            error: facts.error.map(backtrace::facts),
            timing: facts.timing,
            package: facts.package,
            notices: &self.notices,
            failure,
            stop: self.stop,
        };
        facts.serialize(serializer)
    }
}

impl Evaluation {
    /// Creates an evaluation that evaluated nothing, or whose result is lost.
    pub fn failed(status: EvalStatus, kind: String, message: String) -> Evaluation {
        let error = Some(EvalError::new(kind, message));
        let outcome = EvalOutcome { package: String::new(), ..EvalOutcome::empty(status, error) };
        Evaluation { outcome, notices: Vec::new(), stop: None }
    }

    /// Returns true if the evaluation returned values.
    pub fn is_ok(&self) -> bool {
        self.outcome.status == EvalStatus::Ok
    }

    /// Returns the frozen failure that was kept for the evaluation.
    fn kept(&self) -> Option<&Frozen> {
        self.outcome.frozen.as_ref().filter(|frozen| frozen.number > 0)
    }

    /// Creates an evaluation that waits in a stop.
    pub fn waiting(stop: u64) -> Evaluation {
        let outcome = EvalOutcome { package: String::new(), ..EvalOutcome::empty(EvalStatus::Stopped, None) };
        Evaluation { outcome, notices: Vec::new(), stop: Some(stop) }
    }

    /// Removes the compiler's own output from the printed output. Returns the reported conditions,
    /// and the original text if anything was removed.
    pub fn split_compiler_output(&mut self) -> (CompilerReport, Option<String>) {
        let EvalOutcome { stdout: out, stderr: err, .. } = &self.outcome;
        let (stdout, mut report) = compiler_output::split_compiler_output(&out.text);
        let (stderr, more) = compiler_output::split_compiler_output(&err.text);
        report.add(more);
        if stdout == out.text && stderr == err.text {
            return (report, None);
        }
        let full = render(self);
        (self.outcome.stdout.text, self.outcome.stderr.text) = (stdout, stderr);
        (report, Some(full))
    }

    /// Does the same as [`Evaluation::split_compiler_output`], and adds a summary of the compiler's
    /// reports to the error output. Returns the original text if anything was removed.
    pub fn for_agent(&mut self) -> Option<String> {
        let (report, full) = self.split_compiler_output();
        let summary = report.summary();
        if !summary.is_empty() {
            let stderr = &mut self.outcome.stderr.text;
            if !stderr.is_empty() && !stderr.ends_with('\n') {
                stderr.push('\n');
            }
            stderr.push_str(&summary);
        }
        full
    }
}

impl From<EvalOutcome> for Evaluation {
    fn from(mut outcome: EvalOutcome) -> Self {
        let mut left = clip::LIMIT;
        let EvalOutcome { values, stdout, stderr, .. } = &mut outcome;
        let mut keeps_cut = true;
        for part in values.iter_mut().chain([stdout, stderr]) {
            // The image has cut the part to its own limit, and says so within it.
            if part.omitted > 0 && std::mem::take(&mut keeps_cut) {
                left = 0;
                continue;
            }
            let clipped = clip(&part.text, left.max(200));
            left = left.saturating_sub(clipped.text.chars().count());
            *part = Clipped { omitted: part.omitted + clipped.omitted, ..clipped };
        }
        // The error to report if the image reported none.
        let (kind, message) = match outcome.status {
            EvalStatus::Ok | EvalStatus::Stopped => {
                outcome.error = None;
                return Evaluation { outcome, notices: Vec::new(), stop: None };
            }
            EvalStatus::Error | EvalStatus::Lost | EvalStatus::Refused => ("ERROR", ""),
            EvalStatus::Timeout => ("TIMEOUT", "Stopped: the deadline passed. What had been defined before is kept."),
            EvalStatus::Interrupted => {
                ("SB-SYS:INTERACTIVE-INTERRUPT", "Stopped: it was interrupted. What had been defined before is kept.")
            }
        };
        let error = outcome.error.get_or_insert_with(|| EvalError::new(kind, message));
        if outcome.status == EvalStatus::Timeout {
            error.message.push_str(" Give `timeout` (seconds) for more.");
        }
        Evaluation { outcome, notices: Vec::new(), stop: None }
    }
}

/// Returns the contract's text of an evaluation.
pub fn render(evaluation: &Evaluation) -> String {
    let outcome = &evaluation.outcome;
    let mut blocks = Vec::new();
    blocks.extend(outcome.error.as_ref().map(backtrace::render));
    for (heading, Clipped { text, .. }) in [("stdout", &outcome.stdout), ("stderr", &outcome.stderr)] {
        if !text.is_empty() {
            blocks.push(format!("[{heading}]\n{}", text.strip_suffix('\n').unwrap_or(text)));
        }
    }
    if !outcome.warnings.is_empty() {
        let lines: Vec<String> =
            outcome.warnings.iter().map(|warning| format!("{}: {}", warning.kind, warning.message)).collect();
        blocks.push(format!("[warnings]\n{}", lines.join("\n")));
    }
    if outcome.error.is_none() {
        blocks.push(match outcome.values.as_slice() {
            [] => "; No value".into(),
            values => values.iter().map(|value| format!("=> {}", value.text)).collect::<Vec<_>>().join("\n"),
        });
    }
    if let Some(Timing { real_ms, run_ms, gc_ms, bytes }) = &outcome.timing {
        blocks.push(format!(
            "; Timing: {}ms real, {}ms run, {}ms GC, {bytes} bytes consed",
            real_ms.round(),
            run_ms.round(),
            gc_ms.round()
        ));
    }
    if let Some(Frozen { number, restarts, .. }) = evaluation.kept() {
        blocks.push(format!(
            "[restarts]{}\n; The stack is kept as failure {number}: look, and try a restart, in copies with debug {{\"failure\": {number}, \"action\": ...}}",
            numbered_list(restarts, "\n")
        ));
    }
    blocks.join("\n\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::evaluation::EvalWarning;
    use crate::model::frozen::Restart;
    use crate::model::stack_frame::StackFrame;

    fn outcome(status: EvalStatus) -> EvalOutcome {
        EvalOutcome::empty(status, None)
    }

    fn whole(text: &str) -> Clipped {
        Clipped { text: text.into(), omitted: 0 }
    }

    #[test]
    fn a_value_alone_has_no_sections() {
        let mut simple = outcome(EvalStatus::Ok);
        simple.values = vec![whole("3")];
        assert_eq!(render(&simple.into()), "=> 3");
        assert_eq!(render(&outcome(EvalStatus::Ok).into()), "; No value");
    }

    #[test]
    fn sections_come_in_the_contracts_order() {
        let mut full = outcome(EvalStatus::Ok);
        full.values = vec![whole("1"), whole("(A\n B)")];
        full.stdout = whole("hello\n");
        full.stderr = whole("careful");
        full.warnings = vec![EvalWarning { kind: "STYLE-WARNING".into(), message: "X is unused".into() }];
        full.timing = Some(Timing { real_ms: 12.4, run_ms: 11.6, gc_ms: 0.0, bytes: 32768 });
        insta::assert_snapshot!(render(&full.into()), @r"
        [stdout]
        hello

        [stderr]
        careful

        [warnings]
        STYLE-WARNING: X is unused

        => 1
        => (A
         B)

        ; Timing: 12ms real, 12ms run, 0ms GC, 32768 bytes consed
        ");
    }

    #[test]
    fn output_that_the_image_has_cut_keeps_its_mark() {
        let mut long = outcome(EvalStatus::Ok);
        let half = "x".repeat(clip::LIMIT / 2);
        let text = format!("{half}\n...[7 characters left out]...\n{half}");
        long.values = vec![whole("NIL")];
        long.stdout = Clipped { text: text.clone(), omitted: 7 };
        let facts = Evaluation::from(long);
        assert_eq!((facts.outcome.stdout.text, facts.outcome.stdout.omitted), (text, 7));
    }

    #[test]
    fn output_before_an_error_follows_the_backtrace() {
        let mut failed = outcome(EvalStatus::Error);
        failed.stdout = whole("before\n");
        failed.error = Some(EvalError {
            kind: "DIVISION-BY-ZERO".into(),
            message: "arithmetic error DIVISION-BY-ZERO signalled".into(),
            operation: None,
            backtrace: ["(/ 1 0)", "(F)"].map(|text| StackFrame { text: text.into(), ..StackFrame::default() }).into(),
            unread: None,
        });
        let facts = Evaluation::from(failed);
        assert_eq!(facts.outcome.status, EvalStatus::Error);
        insta::assert_snapshot!(render(&facts), @r"
        [ERROR] DIVISION-BY-ZERO
        arithmetic error DIVISION-BY-ZERO signalled

        [Backtrace]
        0: (/ 1 0)
        1: (F)

        [stdout]
        before
        ");
    }

    #[test]
    fn an_error_names_the_restarts_of_its_frozen_failure() {
        let mut failed = outcome(EvalStatus::Error);
        failed.error = Some(EvalError::new("SIMPLE-ERROR", "boom"));
        let restart = Restart { name: Some("USE".into()), report: "Use it.".into(), arguments: true };
        let mut frozen = Frozen { pid: 1, number: 0, restarts: vec![restart] };
        failed.frozen = Some(frozen.clone());
        assert!(!render(&failed.clone().into()).contains("[restarts]"));
        frozen.number = 7;
        failed.frozen = Some(frozen);
        insta::assert_snapshot!(render(&failed.into()), @r#"
        [ERROR] SIMPLE-ERROR
        boom

        [restarts]
        0: [USE] Use it. (takes an argument)
        ; The stack is kept as failure 7: look, and try a restart, in copies with debug {"failure": 7, "action": ...}
        "#);
    }

    #[test]
    fn a_deadline_says_what_is_kept() {
        let facts = Evaluation::from(outcome(EvalStatus::Timeout));
        assert_eq!(facts.outcome.status, EvalStatus::Timeout);
        insta::assert_snapshot!(render(&facts), @r"
        [ERROR] TIMEOUT
        Stopped: the deadline passed. What had been defined before is kept. Give `timeout` (seconds) for more.
        ");
    }

    #[test]
    fn one_answer_keeps_a_hundred_thousand_characters_in_all() {
        let mut long = outcome(EvalStatus::Ok);
        long.stdout = whole(&"o".repeat(80_000));
        long.values = (0..5).map(|_| whole(&"v".repeat(60_000))).collect();
        let facts = Evaluation::from(long);
        let kept = facts.outcome.values.iter().chain([&facts.outcome.stdout]);
        let characters: usize = kept.map(|part| part.text.chars().count()).sum();
        assert!(characters < clip::LIMIT + 2_000, "{characters}");
        assert_eq!(facts.outcome.facts().omitted, 380_000 - (clip::LIMIT + 4 * 200));
        assert!(render(&facts).contains("characters left out"));
    }
}
