//! The answer of `evaluate-lisp`, as data and as the contract's text.

use std::fmt::Write as _;

use serde::Serialize;

use super::chatter::{self, Chatter};
use super::clip::{self, clip};
use super::restarts::numbered;
use crate::model::evaluation::{Clipped, EvalOutcome, EvalStatus};
use crate::model::frozen::Restart;
use crate::model::stack_frame;

/// How an evaluation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Values came back.
    Ok,
    /// An unhandled condition.
    Error,
    /// The deadline passed; the image's state was kept.
    Timeout,
    /// Interrupted by a person; the image's state was kept.
    Interrupted,
    /// The image was lost with it and has been restarted.
    Lost,
    /// Nothing was evaluated.
    Refused,
    /// It waits at a breakpoint of the agent's.
    Stopped,
}

/// A warning that was signalled and muffled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warned {
    /// `STYLE-WARNING`, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of the condition.
    pub message: String,
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// The condition's type, or the kind of refusal.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of the condition.
    pub message: String,
    /// Frames, innermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub backtrace: Vec<String>,
}

impl Fault {
    /// The contract's text: the condition, and the backtrace if there is one.
    pub fn render(&self) -> String {
        let mut text = format!("[ERROR] {}\n{}", self.kind, self.message);
        for (number, frame) in self.backtrace.iter().enumerate() {
            let heading = if number == 0 { "\n\n[Backtrace]" } else { "" };
            let _ = write!(text, "{heading}\n{number}: {frame}");
        }
        text
    }
}

/// Time and allocation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// Milliseconds of wall clock.
    pub real_ms: f64,
    /// Milliseconds of CPU.
    pub run_ms: f64,
    /// Milliseconds in the collector.
    pub gc_ms: f64,
    /// Bytes allocated.
    pub bytes: u64,
}

/// The facts of one evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// How it ended.
    pub status: Ending,
    /// The last form's values, printed.
    pub values: Vec<String>,
    /// Standard output.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// Error and trace output.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// In order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warned>,
    /// Unless `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
    /// When asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Measured>,
    /// The current package afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Characters of output and values that were left out.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// Events since the last call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The stack of the error, which lives on in a copy of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Kept>,
    /// The number of the stop that it waits in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<u64>,
}

/// A frozen failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The number by which it is asked.
    pub number: u64,
    /// The restarts, innermost first.
    pub restarts: Vec<Restart>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Evaluation {
    /// An evaluation that evaluated nothing, or whose result is lost.
    pub fn without_work(status: Ending, kind: String, message: String) -> Evaluation {
        Evaluation {
            status,
            values: Vec::new(),
            stdout: String::new(),
            stderr: String::new(),
            warnings: Vec::new(),
            error: Some(Fault { kind, message, backtrace: Vec::new() }),
            timing: None,
            package: None,
            omitted: 0,
            notices: Vec::new(),
            failure: None,
            stop: None,
        }
    }

    /// An evaluation that waits in a stop.
    pub fn waiting(stop: u64) -> Evaluation {
        let nothing = Evaluation::without_work(Ending::Stopped, String::new(), String::new());
        Evaluation { error: None, stop: Some(stop), ..nothing }
    }
}

impl Evaluation {
    /// Removes the compiler's own output from the printed output. Returns the reported conditions,
    /// and the original text if anything was removed.
    pub fn condense(&mut self) -> (Chatter, Option<String>) {
        let (stdout, mut chatter) = chatter::condense(&self.stdout);
        let (stderr, more) = chatter::condense(&self.stderr);
        chatter.add(more);
        if stdout == self.stdout && stderr == self.stderr {
            return (chatter, None);
        }
        let full = render(self);
        (self.stdout, self.stderr) = (stdout, stderr);
        (chatter, Some(full))
    }

    /// [`Evaluation::condense`], with the compiler's reports as a few lines of error output.
    pub fn for_agent(&mut self) -> Option<String> {
        let (chatter, full) = self.condense();
        let summary = chatter.summary();
        if !summary.is_empty() {
            if !self.stderr.is_empty() && !self.stderr.ends_with('\n') {
                self.stderr.push('\n');
            }
            self.stderr.push_str(&summary);
        }
        full
    }
}

impl From<EvalOutcome> for Evaluation {
    fn from(outcome: EvalOutcome) -> Self {
        // The message when the image gave none of its own.
        let (status, kind, message) = match outcome.status {
            EvalStatus::Ok => (Ending::Ok, "", ""),
            EvalStatus::Error => (Ending::Error, "ERROR", ""),
            EvalStatus::Timeout => {
                (Ending::Timeout, "TIMEOUT", "Stopped: the deadline passed. What had been defined before is kept.")
            }
            EvalStatus::Interrupted => (
                Ending::Interrupted,
                "SB-SYS:INTERACTIVE-INTERRUPT",
                "Stopped: it was interrupted. What had been defined before is kept.",
            ),
        };
        let mut budget = Budget { left: clip::LIMIT, omitted: 0 };
        let values = outcome.values.into_iter().map(|value| budget.take(value)).collect();
        let stdout = budget.take(outcome.stdout);
        let stderr = budget.take(outcome.stderr);
        let kept = outcome.frozen.filter(|frozen| frozen.number > 0);
        let kept = kept.map(|frozen| Kept { number: frozen.number, restarts: frozen.restarts });
        let error = (status != Ending::Ok).then(|| {
            let mut fault = match outcome.error {
                Some(error) => {
                    Fault { kind: error.kind, message: error.message, backtrace: stack_frame::texts(error.backtrace) }
                }
                None => Fault { kind: kind.into(), message: message.into(), backtrace: Vec::new() },
            };
            if status == Ending::Timeout {
                fault.message.push_str(" Give `timeout` (seconds) for more.");
            }
            fault
        });
        Evaluation {
            status,
            values,
            stdout,
            stderr,
            warnings: outcome
                .warnings
                .into_iter()
                .map(|warning| Warned { kind: warning.kind, message: warning.message })
                .collect(),
            error,
            timing: outcome.timing.map(|timing| Measured {
                real_ms: timing.real_ms,
                run_ms: timing.run_ms,
                gc_ms: timing.gc_ms,
                bytes: timing.bytes,
            }),
            package: Some(outcome.package),
            omitted: budget.omitted,
            notices: Vec::new(),
            failure: kept,
            stop: None,
        }
    }
}

/// Characters that one answer may still take.
struct Budget {
    left: usize,
    omitted: usize,
}

impl Budget {
    fn take(&mut self, part: Clipped) -> String {
        let clipped = clip(&part.text, self.left.max(200));
        self.left = self.left.saturating_sub(clipped.text.chars().count());
        self.omitted += part.omitted + clipped.omitted;
        clipped.text
    }
}

/// The contract's text.
pub fn render(evaluation: &Evaluation) -> String {
    let mut blocks = Vec::new();
    if let Some(error) = &evaluation.error {
        blocks.push(error.render());
    }
    for (heading, text) in [("stdout", &evaluation.stdout), ("stderr", &evaluation.stderr)] {
        if !text.is_empty() {
            blocks.push(format!("[{heading}]\n{}", text.strip_suffix('\n').unwrap_or(text)));
        }
    }
    if !evaluation.warnings.is_empty() {
        let lines: Vec<String> =
            evaluation.warnings.iter().map(|warning| format!("{}: {}", warning.kind, warning.message)).collect();
        blocks.push(format!("[warnings]\n{}", lines.join("\n")));
    }
    if evaluation.error.is_none() {
        blocks.push(match evaluation.values.as_slice() {
            [] => "; No value".into(),
            values => values.iter().map(|value| format!("=> {value}")).collect::<Vec<_>>().join("\n"),
        });
    }
    if let Some(Measured { real_ms, run_ms, gc_ms, bytes }) = &evaluation.timing {
        blocks.push(format!(
            "; Timing: {}ms real, {}ms run, {}ms GC, {bytes} bytes consed",
            real_ms.round(),
            run_ms.round(),
            gc_ms.round()
        ));
    }
    if let Some(Kept { number, restarts }) = &evaluation.failure {
        blocks.push(format!(
            "[restarts]{}\n; The stack is kept as failure {number}: look, and try a restart, in copies with debug {{\"failure\": {number}, \"action\": ...}}",
            numbered(restarts, "\n")
        ));
    }
    blocks.join("\n\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::evaluation::{EvalError, EvalWarning, Timing};
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
    fn output_before_an_error_follows_the_backtrace() {
        let mut failed = outcome(EvalStatus::Error);
        failed.stdout = whole("before\n");
        failed.error = Some(EvalError {
            kind: "DIVISION-BY-ZERO".into(),
            message: "arithmetic error DIVISION-BY-ZERO signalled".into(),
            operation: None,
            backtrace: ["(/ 1 0)", "(F)"].map(|text| StackFrame { text: text.into(), ..StackFrame::default() }).into(),
        });
        let facts = Evaluation::from(failed);
        assert_eq!(facts.status, Ending::Error);
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
        let mut frozen = crate::model::frozen::Frozen { pid: 1, number: 0, restarts: vec![restart] };
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
        assert_eq!(facts.status, Ending::Timeout);
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
        let characters: usize = facts.values.iter().chain([&facts.stdout]).map(|text| text.chars().count()).sum();
        assert!(characters < clip::LIMIT + 2_000, "{characters}");
        assert_eq!(facts.omitted, 380_000 - (clip::LIMIT + 4 * 200));
        assert!(render(&facts).contains("characters left out"));
    }
}
