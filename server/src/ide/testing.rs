//! The answer of `run-tests`, as data and as text, and the tests that a document defines.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Serialize;

use super::backtrace;
use super::clip::clip;
use super::evaluate::Evaluation;
use crate::image::api::testing::{CheckFailure, RunTestsOutcome, TestOutcome};
use crate::model::evaluation::{EvalError, EvalOutcome, EvalStatus};
use crate::text::Span;
use crate::text::definitions;
use crate::text::document::Document;

/// The maximum number of characters of a test's output that are reported.
const OUTPUT: usize = 4000;

/// The result of a test run, as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestReport {
    /// The status of the run.
    pub status: EvalStatus,
    /// True if the run ended normally, with at least one test, and none failed or had an error.
    pub success: bool,
    /// The test framework: `fiveam`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    /// The number of tests that passed.
    pub passed: usize,
    /// The number of tests with a check that failed.
    pub failed: usize,
    /// The number of tests that signalled an error.
    pub errors: usize,
    /// The number of tests that were skipped.
    pub skipped: usize,
    /// The tests.
    pub tests: Vec<TestFacts>,
    /// The error that ended the run early.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "backtrace::serialize")]
    pub error: Option<EvalError>,
    /// The output printed outside of tests.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub output: String,
    /// The run's output with the compiler's, if the compiler's was removed. An agent can ask for
    /// it.
    #[serde(skip)]
    pub full_output: Option<String>,
}

impl TestReport {
    /// Creates the report of a run without any test.
    pub fn failed(status: EvalStatus, kind: String, message: String) -> TestReport {
        TestReport {
            status,
            success: false,
            framework: None,
            passed: 0,
            failed: 0,
            errors: 0,
            skipped: 0,
            tests: Vec::new(),
            error: Some(EvalError::new(kind, message)),
            output: String::new(),
            full_output: None,
        }
    }
}

impl From<RunTestsOutcome> for TestReport {
    fn from(answer: RunTestsOutcome) -> Self {
        let RunTestsOutcome { outcome, framework, tests } = answer;
        let mut evaluation = Evaluation::from(outcome);
        let full_output = evaluation.for_agent();
        let EvalOutcome { status, stdout, stderr, error, .. } = evaluation.outcome;
        let count = |status: &str| tests.iter().filter(|test| test.status == status).count();
        let (passed, failed, errors, skipped) = (count("passed"), count("failed"), count("error"), count("skipped"));
        TestReport {
            status,
            success: status == EvalStatus::Ok && failed + errors == 0 && !tests.is_empty(),
            framework,
            passed,
            failed,
            errors,
            skipped,
            tests: tests.into_iter().map(TestFacts::from).collect(),
            error,
            output: clip(&[stdout.text, stderr.text].concat(), OUTPUT).text,
            full_output,
        }
    }
}

/// A test that was run, as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TestFacts {
    /// `PACKAGE::NAME`.
    pub name: String,
    /// `passed`, `failed`, `error` or `skipped`.
    pub status: String,
    /// The number of checks that the test made.
    pub checks: u64,
    /// The wall-clock time, rounded to a tenth.
    pub milliseconds: f64,
    /// The failed checks, in order.
    pub failures: Vec<CheckFailure>,
    /// The innermost suite that contains the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// The place of the definition, if it is known.
    #[serde(flatten)]
    pub place: Option<TestPlace>,
    /// The number of the frozen failure of the error that ended the test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<u64>,
    /// The test's output, clipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// The place of a test's definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TestPlace {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
}

impl From<TestOutcome> for TestFacts {
    fn from(test: TestOutcome) -> Self {
        let frozen = test.frozen.map(|kept| kept.frozen).filter(|frozen| frozen.number > 0);
        TestFacts {
            name: test.name,
            status: test.status,
            checks: test.checks,
            milliseconds: (test.milliseconds * 10.0).round() / 10.0,
            failures: test.failures,
            suite: test.suite,
            place: test.file.zip(test.line).map(|(file, line)| TestPlace { file, line }),
            failure: frozen.map(|frozen| frozen.number),
            output: (!test.output.text.is_empty()).then(|| clip(&test.output.text, OUTPUT).text),
        }
    }
}

/// Returns a summary of one line for a person.
pub fn summary(facts: &TestReport) -> String {
    let number = facts.tests.len();
    let mut text = format!("{number} test{}: {} passed", if number == 1 { "" } else { "s" }, facts.passed);
    for (count, what) in [(facts.failed, "failed"), (facts.errors, "with errors"), (facts.skipped, "skipped")] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    if let Some(framework) = &facts.framework {
        let _ = write!(text, " ({framework})");
    }
    text
}

/// Returns the text of a run, with the failures and their locations first.
pub fn render(facts: &TestReport) -> String {
    let mut blocks = Vec::new();
    if let Some(error) = &facts.error {
        blocks.push(backtrace::render(error));
    }
    if facts.error.is_none() || !facts.tests.is_empty() {
        blocks.push(summary(facts));
    }
    for test in facts.tests.iter().filter(|test| matches!(test.status.as_str(), "failed" | "error")) {
        let mut block = format!("{} {}", test.status.to_uppercase(), test.name);
        if let Some(TestPlace { file, line }) = &test.place {
            let _ = write!(block, "  ({}:{line})", file.display());
        }
        for failure in &test.failures {
            let _ = write!(block, "\n  {}", failure.message);
            let CheckFailure { expression, expected, actual, .. } = failure;
            for (field, value) in [("expression", expression), ("expected", expected), ("actual", actual)] {
                if let Some(value) = value {
                    let _ = write!(block, "\n    {field}: {value}");
                }
            }
        }
        if let Some(number) = test.failure {
            let _ = write!(block, "\n  its stack is kept as failure {number}");
        }
        if let Some(output) = &test.output {
            let _ = write!(block, "\n  output:\n    {}", output.trim().replace('\n', "\n    "));
        }
        blocks.push(block);
    }
    for status in ["skipped", "passed"] {
        let names: Vec<&str> =
            facts.tests.iter().filter(|test| test.status == status).map(|test| test.name.as_str()).collect();
        if !names.is_empty() {
            blocks.push(format!("{status}: {}", names.join(", ")));
        }
    }
    blocks.join("\n\n")
}

/// A definition made by a top-level form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The form.
    pub form: Span,
    /// The name, as written.
    pub name: String,
    /// True for a test.
    pub test: bool,
}

/// Returns the definition of a top-level form, if code lenses are shown for its operator.
pub fn definition(document: &Document, form: Span) -> Option<Definition> {
    const HEAD: usize = 400;
    let start = document.text().char_to_byte(form.start.min(document.text().len_chars()));
    let end = document.text().char_to_byte(form.end.min(form.start + HEAD).min(document.text().len_chars()));
    let head = document.text().byte_slice(start..end).to_string();
    let mut words = head
        .strip_prefix('(')?
        .split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"'))
        .filter(|word| !word.is_empty());
    let operator = words.next()?.rsplit(':').next()?.to_ascii_lowercase();
    let name = words.next()?.trim_start_matches("#:").trim_start_matches('\'').to_owned();
    if name.eq_ignore_ascii_case("setf") {
        return None; // `(defun (setf place) ...)`: references to SETF do not refer to it
    }
    let test = matches!(operator.as_str(), "test" | "def-test" | "deftest" | "define-test");
    let other = matches!(
        operator.as_str(),
        "defun"
            | "defmacro"
            | "defgeneric"
            | "defvar"
            | "defparameter"
            | "defconstant"
            | "defclass"
            | "defstruct"
            | "define-condition"
    );
    (test || other).then_some(Definition { form, name, test })
}

/// Returns the first test whose top-level form is on a line, counted from 1.
pub fn test_on_line(document: &Document, line: usize) -> Option<Definition> {
    let text = document.text();
    let start = text.try_line_to_char(line.checked_sub(1)?).ok()?;
    let end = text.try_line_to_char(line).unwrap_or_else(|_| text.len_chars());
    let on_line =
        document.scan().forms().iter().map(|form| form.span).filter(|span| span.start < end && span.end > start);
    on_line.filter_map(|span| definition(document, span)).find(|definition| definition.test)
}

/// Returns the test to which a breakpoint on a line, counted from 1, belongs. Its form is the first
/// that does not end before the line.
pub fn test_of_breakpoint(document: &Document, line: usize) -> Option<Definition> {
    let start = document.text().try_line_to_char(line.checked_sub(1)?).ok()?;
    let form = document.scan().forms().iter().map(|form| form.span).find(|span| span.end > start)?;
    definition(document, form).filter(|definition| definition.test)
}

/// Returns true if `asked`, a name and a package, denotes the test `name` in `package`. A package
/// prefix in the name that was asked for takes precedence over the package. An unknown package
/// matches every package.
pub fn is_test_called(asked: (&str, Option<&str>), name: &str, package: Option<&str>) -> bool {
    let plain = |package: &str| package.trim_start_matches(['#', ':']).trim_matches(['"', '|']).to_lowercase();
    let (asked, given) = asked;
    let prefix = asked.split_once(':').map(|(prefix, _)| prefix).filter(|prefix| !prefix.is_empty());
    let same_package = match (prefix.or(given), package) {
        (Some(one), Some(other)) => plain(one) == plain(other),
        _ => true,
    };
    same_package && definitions::key(asked) == definitions::key(name)
}

/// Returns the last `in-suite` form before a definition. FiveAM's `in-suite` sets the suite of the
/// tests below it.
pub fn suite_before(document: &Document, form: Span) -> Option<Span> {
    const HEAD: usize = 100;
    let forms = document.scan().forms();
    let before = forms.partition_point(|one| one.span.start < form.start);
    forms[..before].iter().rev().map(|one| one.span).find(|span| {
        let head: String = document.text().slice(span.start..span.end.min(span.start + HEAD)).chars().collect();
        let operator = head.strip_prefix('(').and_then(|rest| rest.split(char::is_whitespace).next());
        let name = operator.and_then(|operator| operator.rsplit(':').next());
        name.is_some_and(|name| name.eq_ignore_ascii_case("in-suite"))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    use crate::image::api::testing::FrozenTest;
    use crate::model::evaluation::Clipped;
    use crate::model::frozen::Frozen;

    fn answer() -> RunTestsOutcome {
        let test = |name: &str, status: &str| TestOutcome {
            name: name.into(),
            suite: Some("S".into()),
            status: status.into(),
            checks: 1,
            failures: Vec::new(),
            file: Some("/w/tests.lisp".into()),
            line: Some(8),
            milliseconds: 1.26,
            output: Clipped::default(),
            frozen: None,
        };
        let mut wrong = test("T::WRONG", "failed");
        wrong.output.text = "looking\n".into();
        wrong.failures.push(CheckFailure {
            message: "(PRICE 2) evaluated to 4 which is not = to 5".into(),
            expression: None,
            expected: Some("5".into()),
            actual: Some("4".into()),
        });
        let frozen = Frozen { pid: 7, number: 3, restarts: Vec::new() };
        wrong.frozen = Some(FrozenTest { frozen, error: EvalError::new("SIMPLE-ERROR", "no") });
        RunTestsOutcome {
            outcome: EvalOutcome::empty(EvalStatus::Ok, None),
            framework: Some("fiveam".into()),
            tests: vec![test("T::GOOD", "passed"), wrong, test("T::LATE", "skipped")],
        }
    }

    #[test]
    fn what_failed_comes_first_with_where_it_is() {
        let facts = TestReport::from(answer());
        assert!(!facts.success);
        insta::assert_snapshot!(render(&facts), @r"
        3 tests: 1 passed, 1 failed, 1 skipped (fiveam)

        FAILED T::WRONG  (/w/tests.lisp:8)
          (PRICE 2) evaluated to 4 which is not = to 5
            expected: 5
            actual: 4
          its stack is kept as failure 3
          output:
            looking

        skipped: T::LATE

        passed: T::GOOD
        ");
        let failure = json!({
            "message": "(PRICE 2) evaluated to 4 which is not = to 5", "expected": "5", "actual": "4",
        });
        let wrong = json!({
            "name": "T::WRONG", "status": "failed", "checks": 1, "milliseconds": 1.3, "failures": [failure], "suite": "S",
            "file": "/w/tests.lisp", "line": 8, "failure": 3, "output": "looking\n",
        });
        assert_eq!(json!(facts.tests[1]), wrong);
        let mut good = answer();
        good.tests.truncate(1);
        assert!(TestReport::from(good).success);
        let mut none = answer();
        none.tests.clear();
        assert!(!TestReport::from(none).success);
    }

    #[test]
    fn definitions_are_seen_by_their_operators() {
        let text = "(test good (is t))\n(fiveam:def-test (late :depends-on good) ())\n(defun f () 1)\n(print 1)\n(defstruct (s (:conc-name nil)) a)\n(defun (setf f) (to) to)";
        let document = Document::new(text, 1);
        let found: Vec<(String, bool)> = document
            .scan()
            .forms()
            .iter()
            .filter_map(|form| definition(&document, form.span))
            .map(|definition| (definition.name, definition.test))
            .collect();
        let expected = [("good", true), ("late", true), ("f", false), ("s", false)];
        assert_eq!(found, expected.map(|(name, test)| (name.to_owned(), test)));
    }

    #[test]
    fn the_test_on_a_line_is_found() {
        let document = Document::new("(defun f ())\n\n(test a\n  (is t))(test b)\n (deftest c)", 1);
        let found = |line: usize| test_on_line(&document, line).map(|definition| definition.name);
        let names: Vec<Option<String>> = (0..8).map(found).collect();
        let expected = [None, None, None, Some("a"), Some("a"), Some("c"), None, None];
        assert_eq!(names, expected.map(|name| name.map(str::to_owned)));
    }

    #[test]
    fn a_breakpoint_is_in_the_test_that_does_not_end_before_it() {
        let document = Document::new("(defun f ())\n\n(test a\n  (is t))\n\n(deftest c)\n", 1);
        let found = |line: usize| test_of_breakpoint(&document, line).map(|definition| definition.name);
        let names: Vec<Option<String>> = (0..8).map(found).collect();
        let expected = [None, None, Some("a"), Some("a"), Some("a"), Some("c"), Some("c"), None];
        assert_eq!(names, expected.map(|name| name.map(str::to_owned)));
    }

    #[test]
    fn tests_are_asked_for_with_or_without_their_package() {
        for (asked, given, is_it) in [
            ("broken", None, true),
            ("BROKEN", Some("shop/tests"), true),
            ("SHOP/TESTS::BROKEN", None, true),
            ("shop/tests:broken", Some("other"), true),
            ("broken", Some("other"), false),
            ("OTHER::BROKEN", None, false),
            ("good", None, false),
        ] {
            assert_eq!(is_test_called((asked, given), "broken", Some("SHOP/TESTS")), is_it, "{asked} {given:?}");
        }
    }

    #[test]
    fn the_suite_of_a_test_is_chosen_by_the_last_form_before_it() {
        let text = "(test a)\n(fiveam:in-suite one)\n(in-suite two)\n(defun in-suite ())\n(test b)\n(in-suite three)";
        let document = Document::new(text, 1);
        let forms = document.scan().forms();
        let chosen = |at: usize| {
            suite_before(&document, forms[at].span).map(|span| document.text().slice(span.start..span.end).to_string())
        };
        assert_eq!(chosen(0), None);
        assert_eq!(chosen(4).as_deref(), Some("(in-suite two)"));
    }
}
