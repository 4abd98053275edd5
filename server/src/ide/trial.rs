//! Trials of candidates: the forms that are evaluated in the copies, and the results of `try-code`.

use serde::Serialize;

use super::backtrace;
use super::clip::clip;
use super::edit_forms::Edits;
use super::evaluate::Evaluation;
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::{EvalError, EvalOutcome, EvalStatus};
use crate::model::trial::{Called, Coverage, Trial, TriedForm};
use crate::text::datum::{Form, Kind};
use crate::text::document::Document;
use crate::text::recorded_definitions;

/// The maximum number of characters of output that are shown for a candidate.
const OUTPUT: usize = 500;
/// The maximum number of characters that are shown of a value.
const VALUE: usize = 300;
/// The maximum number of compiler findings that are shown for a candidate.
const FINDINGS: usize = 8;
/// The maximum number of forms that did not run that are shown for a candidate.
const MISSED: usize = 8;

/// The result of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateResult {
    /// The label that the agent gave the candidate.
    pub label: String,
    /// True if the definitions and the code were evaluated without an error, and no test failed.
    pub passed: bool,
    /// The values of the code.
    pub values: Vec<String>,
    /// The warnings of the compiler.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The error that ended the definitions or the code.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "backtrace::serialize")]
    pub error: Option<EvalError>,
    /// True if the error was signalled in the definitions, before the code was run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_definitions: bool,
    /// The number of calls of each new function by the code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Called>,
    /// The coverage of each definition by the code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub coverage: Vec<Coverage>,
    /// The standard output and the error output of the code.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The real time of the code in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<f64>,
    /// The message about an operation that the confinement refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Returns the forms that a copy evaluates for these edits of a file.
pub fn forms_of(edits: &Edits) -> Vec<TriedForm> {
    let form = |(edit, content): (&super::edit_form::Edit, &String)| TriedForm {
        code: content.clone(),
        package: edit.package.clone(),
        functions: functions(content),
    };
    edits.each.iter().zip(&edits.contents).map(form).collect()
}

/// Returns the form that a copy evaluates for code in a package.
pub fn form_of(code: &str, package: &str) -> TriedForm {
    TriedForm { code: code.into(), package: package.into(), functions: functions(code) }
}

/// Returns the names, as written, of the functions that `defun` forms of the code define. Names of
/// the form `(setf name)` are left out.
fn functions(code: &str) -> Vec<String> {
    let of_functions = recorded_definitions::definitions(code).into_iter().filter(|one| one.kind == "function");
    of_functions.filter_map(|one| defined_name(&Document::new(&one.text, 0))).collect()
}

/// Returns the name that the definition at the start of a text defines, as written.
fn defined_name(document: &Document) -> Option<String> {
    let form = Form::at(document, 0)?;
    let name = form.nodes.first()?.children.get(1).filter(|name| name.kind == Kind::Atom)?;
    Some(form.text(name).to_owned())
}

impl CandidateResult {
    /// Returns the result of a trial. If `tests` is true, the code ran tests and returned two
    /// values: the number of tests that passed, and the number of the others.
    pub fn of(label: String, trial: Trial, tests: bool) -> CandidateResult {
        let bounded = |outcome| Evaluation::from(outcome).outcome;
        let forms: Vec<EvalOutcome> = trial.forms.into_iter().map(bounded).collect();
        let ran = trial.outcome.map(bounded);
        // A candidate redefines existing definitions on purpose.
        let warnings =
            forms.iter().flat_map(|form| &form.warnings).filter(|one| !one.message.starts_with("redefining "));
        let findings = warnings.map(|one| format!("{}: {}", one.kind, one.message));
        let failed = forms.iter().find(|form| form.status != EvalStatus::Ok);
        let passed = failed.is_none()
            && ran.as_ref().is_none_or(|ran| {
                ran.status == EvalStatus::Ok && (!tests || ran.values.get(1).is_some_and(|others| others.text == "0"))
            });
        CandidateResult {
            label,
            passed,
            findings: findings.collect(),
            in_definitions: failed.is_some(),
            error: failed.or(ran.as_ref()).and_then(|ended| ended.error.clone()),
            values: ran.iter().flat_map(|ran| &ran.values).map(|value| value.text.clone()).collect(),
            output: ran.as_ref().map(|ran| format!("{}{}", ran.stdout.text, ran.stderr.text)).unwrap_or_default(),
            milliseconds: ran.and_then(|ran| ran.timing).map(|timing| timing.real_ms),
            calls: trial.calls,
            coverage: trial.coverage,
            refused: trial.refused,
        }
    }

    /// Returns the result of a candidate that was not evaluated.
    pub fn not_tried(label: String, kind: ErrorKind, message: String) -> CandidateResult {
        CandidateResult {
            label,
            passed: false,
            values: Vec::new(),
            findings: Vec::new(),
            error: Some(EvalError::new(kind, message)),
            in_definitions: true,
            calls: Vec::new(),
            coverage: Vec::new(),
            output: String::new(),
            milliseconds: None,
            refused: None,
        }
    }

    /// Returns the lines of the answer.
    pub fn render(&self) -> String {
        let mut text = format!("{}: {}", self.label, if self.passed { "passed" } else { "failed" });
        if let Some(milliseconds) = self.milliseconds {
            text += &format!(" ({milliseconds:.0} ms)");
        }
        for value in &self.values {
            text += &format!("\n  => {}", clip(value, VALUE).text);
        }
        for finding in self.findings.iter().take(FINDINGS) {
            text += &format!("\n  {finding}");
        }
        if self.findings.len() > FINDINGS {
            text += &format!("\n  ... and {} findings more", self.findings.len() - FINDINGS);
        }
        if let Some(error) = &self.error {
            let place = if self.in_definitions { " in the definitions" } else { "" };
            text += &format!("\n  [ERROR]{place} {}: {}", error.kind, error.message);
            if let Some(frame) = error.backtrace.first() {
                text += &format!("\n  0: {}", clip(&frame.text, VALUE).text);
            }
        }
        if let Some(refused) = self.refused.as_ref().filter(|_| self.error.is_none()) {
            text += &format!("\n  {refused}");
        }
        if !self.output.is_empty() {
            text += &format!("\n  It printed:\n{}", clip(self.output.trim_end(), OUTPUT).text);
        }
        if !self.calls.is_empty() {
            let calls: Vec<String> = self
                .calls
                .iter()
                .map(|called| match called.calls {
                    0 => format!("{} never", called.name),
                    1 => format!("{} once", called.name),
                    calls => format!("{} {calls} times", called.name),
                })
                .collect();
            text += &format!("\n  Called: {}", calls.join(", "));
        }
        text + &self.render_coverage()
    }

    fn render_coverage(&self) -> String {
        let mut text = String::new();
        for Coverage { name, forms, ran, .. } in &self.coverage {
            text += if text.is_empty() { "\n  Forms that ran: " } else { ", " };
            text += &format!("{name} {ran} of {forms}");
        }
        // Missed forms are not listed for a definition that was never called.
        let entered = self.coverage.iter().filter(|one| one.ran > 0);
        let missed = entered.flat_map(|one| one.missed.iter().map(|missed| (&one.name, missed)));
        for (name, missed) in missed.take(MISSED) {
            text += &format!("\n    not run: {name}, line {}: {}", missed.line, missed.text);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::evaluation::Clipped;
    use crate::model::trial::Missed;

    fn outcome(values: &[&str], error: Option<&str>) -> EvalOutcome {
        let clipped = |text: &&str| Clipped { text: (*text).into(), omitted: 0 };
        let status = if error.is_some() { EvalStatus::Error } else { EvalStatus::Ok };
        EvalOutcome {
            values: values.iter().map(clipped).collect(),
            ..EvalOutcome::empty(status, error.map(|kind| EvalError::new(kind, "why")))
        }
    }

    fn trial(forms: Vec<EvalOutcome>, outcome: Option<EvalOutcome>) -> Trial {
        Trial { forms, outcome, calls: Vec::new(), coverage: Vec::new(), refused: None }
    }

    #[test]
    fn a_candidate_passes_when_all_came_to_its_end_and_no_test_failed() {
        let tried = |trial, tests| CandidateResult::of("a".into(), trial, tests);
        let fine = || vec![outcome(&["F"], None)];
        assert!(tried(trial(fine(), None), false).passed);
        assert!(tried(trial(fine(), Some(outcome(&["1", "1"], None))), false).passed);
        assert!(!tried(trial(fine(), Some(outcome(&["1", "1"], None))), true).passed);
        assert!(tried(trial(fine(), Some(outcome(&["2", "0"], None))), true).passed);
        // Tests whose numbers are missing did not pass.
        assert!(!tried(trial(fine(), Some(outcome(&["2"], None))), true).passed);
        assert!(!tried(trial(fine(), Some(outcome(&[], None))), true).passed);
        let broken = tried(trial(vec![outcome(&[], Some("READER-ERROR"))], None), false);
        assert!(!broken.passed && broken.in_definitions);
        assert_eq!(broken.render(), "a: failed\n  [ERROR] in the definitions READER-ERROR: why");
        assert!(!tried(trial(fine(), Some(outcome(&[], Some("TYPE-ERROR")))), false).passed);
    }

    #[test]
    fn forms_that_did_not_run_are_named_where_the_definition_was_entered() {
        let missed = |line, text: &str| Missed { line, column: 3, text: text.into() };
        let coverage = vec![
            Coverage { name: "f".into(), forms: 4, ran: 3, missed: vec![missed(4, "(error \"none\")")] },
            Coverage { name: "g".into(), forms: 2, ran: 0, missed: vec![missed(1, "(car x)")] },
        ];
        let tried =
            CandidateResult::of("a".into(), Trial { coverage, ..trial(Vec::new(), Some(outcome(&[], None))) }, false);
        assert_eq!(
            tried.render(),
            "a: passed\n  Forms that ran: f 3 of 4, g 0 of 2\n    not run: f, line 4: (error \"none\")"
        );
    }

    #[test]
    fn functions_are_named_as_they_are_written() {
        assert_eq!(
            functions("(defun app::f (x) x) (defmacro m ()) (defun (setf g) (x) x) (defmethod h ((x t)))"),
            ["app::f"]
        );
        assert_eq!(functions("(DEFUN F(x) x) (cl:defun\n  g ()) (common-lisp:defun |h i| ())"), ["F", "g", "|h i|"]);
    }
}
