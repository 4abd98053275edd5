//! The answer of `compile-form`, as data and as the text that its contract specifies.

use std::collections::HashSet;
use std::fmt::Write as _;

use ropey::Rope;
use serde::Serialize;

use crate::model::check::{CheckEnd, CheckReport};
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::model::error_kind::ErrorKind;

/// The reason why no check was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// The kind: `package-not-found`, `bad-arguments`, `image-lost`, ...
    #[serde(rename = "type")]
    pub kind: String,
    /// The message, with the next step.
    pub message: String,
}

/// A condition of the compiler or the reader. Lines and columns are 1-based, columns in characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// ERROR, WARNING, STYLE-WARNING or NOTE.
    pub severity: String,
    /// The message of the compiler.
    pub message: String,
    /// The machine-readable kind.
    pub code: String,
    /// The top-level form, abbreviated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// The line of the start.
    pub line: usize,
    /// The column of the start.
    pub column: usize,
    /// The line of the end, exclusive.
    pub end_line: usize,
    /// The column of the end, exclusive.
    pub end_column: usize,
    /// True if the form could not be read.
    #[serde(skip_serializing_if = "is_false")]
    pub unreadable: bool,
    /// True if the text ended inside the form.
    #[serde(skip)]
    cut_off: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compilation {
    /// True if no ERROR was found and the check reached the end of the code.
    pub success: bool,
    /// The number of warnings.
    pub warnings: usize,
    /// The number of errors.
    pub errors: usize,
    /// The number of style warnings.
    pub style_warnings: usize,
    /// The number of notes.
    pub notes: usize,
    /// The number of top-level forms that compiled.
    pub forms_compiled: usize,
    /// The number of top-level forms that were seen.
    pub forms: usize,
    /// The conditions, in the order of the text.
    pub conditions: Vec<Finding>,
    /// The reason why the check ended before the end of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The reason why there was no check.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Refusal>,
    /// The notices about events since the last call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl Compilation {
    /// Creates the result from the report of a check of `code`.
    pub fn new(code: &str, report: CheckReport) -> Compilation {
        let text = Rope::from_str(code);
        let found: Vec<&Diagnostic> =
            report.diagnostics.iter().filter(|diagnostic| diagnostic.severity != Severity::Information).collect();
        let count = |severity| found.iter().filter(|diagnostic| diagnostic.severity == severity).count();
        let unread = found.iter().filter(|diagnostic| is_unreadable(diagnostic)).count();
        // A form with several errors counts as one failed form.
        let failed: HashSet<_> = found
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error && !is_unreadable(diagnostic))
            .map(|diagnostic| diagnostic.toplevel.unwrap_or(diagnostic.span))
            .collect();
        let stopped = match report.end {
            CheckEnd::Complete => None,
            CheckEnd::Stopped { reason } => Some(reason),
        };
        Compilation {
            success: count(Severity::Error) == 0 && stopped.is_none(),
            warnings: count(Severity::Warning),
            errors: count(Severity::Error),
            style_warnings: count(Severity::StyleWarning),
            notes: count(Severity::Note),
            forms_compiled: report.forms.saturating_sub(failed.len()),
            forms: report.forms + unread,
            conditions: found.into_iter().map(|diagnostic| Finding::new(&text, diagnostic)).collect(),
            stopped,
            error: None,
            notices: Vec::new(),
        }
    }

    /// Returns a compilation that checked nothing.
    pub fn failed(kind: ErrorKind, message: String) -> Compilation {
        Compilation {
            success: false,
            warnings: 0,
            errors: 0,
            style_warnings: 0,
            notes: 0,
            forms_compiled: 0,
            forms: 0,
            conditions: Vec::new(),
            stopped: None,
            error: Some(Refusal { kind: kind.into(), message }),
            notices: Vec::new(),
        }
    }

    /// Returns true if the check was not made or was stopped, or a form could not be read. Errors
    /// in compiled code do not count, because the tool exists to report them.
    pub fn work_failed(&self) -> bool {
        self.error.is_some() || self.stopped.is_some() || self.conditions.iter().any(|finding| finding.unreadable)
    }
}

impl Finding {
    fn new(text: &Rope, diagnostic: &Diagnostic) -> Finding {
        let (line, column) = line_column(text, diagnostic.span.start);
        let (end_line, end_column) = line_column(text, diagnostic.span.end);
        let severity = match diagnostic.severity {
            Severity::Error => "ERROR",
            Severity::Warning => "WARNING",
            Severity::StyleWarning => "STYLE-WARNING",
            Severity::Note | Severity::Information => "NOTE",
        };
        Finding {
            severity: severity.into(),
            message: diagnostic.message.clone(),
            code: diagnostic.code.clone(),
            form: diagnostic.form.clone(),
            line,
            column,
            end_line,
            end_column,
            unreadable: is_unreadable(diagnostic),
            cut_off: is_cut_off(diagnostic),
        }
    }
}

/// Returns the line and the column of an offset, 1-based, in characters.
fn line_column(text: &Rope, offset: usize) -> (usize, usize) {
    let offset = offset.min(text.len_chars());
    let line = text.char_to_line(offset);
    (line + 1, offset - text.line_to_char(line) + 1)
}

/// Returns true if the diagnostic reports an unreadable form. The diagnostic is one of the reader,
/// or one of the scanner, which has no Lisp condition.
fn is_unreadable(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Error
        && match &diagnostic.condition {
            None => diagnostic.code.starts_with("unbalanced-") || diagnostic.code.starts_with("unfinished-"),
            Some(condition) => condition.contains("READER") || condition.ends_with("END-OF-FILE"),
        }
}

/// Returns true if the text ended before the form did.
fn is_cut_off(diagnostic: &Diagnostic) -> bool {
    is_unreadable(diagnostic)
        && (diagnostic.code != "unbalanced-close" && diagnostic.condition.is_none()
            || diagnostic.condition.as_ref().is_some_and(|condition| condition.ends_with("END-OF-FILE")))
}

/// Returns the text that the contract specifies.
pub fn render(compilation: &Compilation) -> String {
    if let Some(refusal) = &compilation.error {
        return refusal.message.clone();
    }
    let heading = if !compilation.success {
        "Compilation failed"
    } else if compilation.warnings > 0 {
        "Compilation successful (with warnings)"
    } else {
        "Compilation successful"
    };
    let mut text = format!("{heading}\nWarnings: {}\nErrors: {}", compilation.warnings, compilation.errors);
    for (name, count) in [("Style-warnings", compilation.style_warnings), ("Notes", compilation.notes)] {
        if count > 0 {
            let _ = write!(text, "\n{name}: {count}");
        }
    }
    for finding in &compilation.conditions {
        text.push_str("\n\n");
        text.push_str(&render_finding(finding));
    }
    // A finding on the form that was being checked may already contain the reason.
    if let Some(reason) = &compilation.stopped
        && !compilation.conditions.iter().any(|finding| finding.message.contains(reason))
    {
        let _ = write!(text, "\n\nThe check was stopped: {reason}");
    }
    if let Some(summary) = summary(compilation) {
        text.push_str("\n\n");
        text.push_str(&summary);
    }
    text
}

fn render_finding(finding: &Finding) -> String {
    let mut lines = Vec::new();
    let mut message = finding.message.lines();
    if finding.cut_off {
        // The contract specifies these lines. The finding's own message, which follows, names the
        // construct.
        lines.push(format!("{}: end of file on #<STRING-INPUT-STREAM>", finding.severity));
        lines.push("  Could not read form from code string".into());
    } else {
        lines.push(format!("{}: {}", finding.severity, message.next().unwrap_or_default()));
    }
    lines.extend(message.map(|line| format!("  {line}")));
    if finding.unreadable && !finding.cut_off {
        lines.push("  Could not read form from code string".into());
    }
    if let Some(form) = &finding.form {
        lines.push(format!("  in form: {form}"));
    }
    lines.push(format!("  at: line {}, column {}", finding.line, finding.column));
    lines.push(format!("  severity: {}", finding.severity));
    lines.join("\n")
}

/// Returns a sentence with the number of compiled forms. Returns `None` if the compilation failed
/// and no form was compiled.
fn summary(compilation: &Compilation) -> Option<String> {
    let (compiled, seen) = (compilation.forms_compiled, compilation.forms);
    let forms = |count: usize| if count == 1 { "form" } else { "forms" };
    if compilation.success {
        Some(format!("Compiled {compiled} {} successfully", forms(compiled)))
    } else if compiled > 0 {
        Some(format!("Compiled {compiled} of {seen} {} successfully", forms(seen)))
    } else {
        None
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::text::Span;

    fn diagnostic(
        severity: Severity,
        code: &str,
        message: &str,
        span: (usize, usize),
        form: Option<&str>,
    ) -> Diagnostic {
        Diagnostic {
            condition: form.map(|_| "WARNING".into()),
            form: form.map(str::to_owned),
            toplevel: form.map(|_| Span { start: 0, end: 40 }),
            ..Diagnostic::new(span.into(), severity, code, message)
        }
    }

    fn checked(code: &str, diagnostics: Vec<Diagnostic>, forms: usize) -> Compilation {
        Compilation::new(code, CheckReport { diagnostics, forms, unloaded_system: None, end: CheckEnd::Complete })
    }

    #[test]
    fn a_clean_form() {
        assert_eq!(
            render(&checked("(defun double (x) (* x 2))", vec![], 1)),
            "Compilation successful\nWarnings: 0\nErrors: 0\n\nCompiled 1 form successfully"
        );
        assert!(render(&checked("", vec![], 0)).ends_with("Compiled 0 forms successfully"));
    }

    #[test]
    fn a_warning_has_its_form_and_its_place() {
        let code = "\n(defun uses-undefined () (undefined-function 42))";
        let warning = diagnostic(
            Severity::Warning,
            "undefined-function",
            "Undefined function: UNDEFINED-FUNCTION",
            (27, 45),
            Some("(DEFUN USES-UNDEFINED () (UNDEFINED-FUNCTION 42))"),
        );
        let style = diagnostic(Severity::StyleWarning, "unused-variable", "one\ntwo", (1, 2), Some("(X)"));
        let facts = checked(code, vec![warning, style], 1);
        assert!(facts.success && !facts.work_failed());
        insta::assert_snapshot!(render(&facts), @r"
        Compilation successful (with warnings)
        Warnings: 1
        Errors: 0
        Style-warnings: 1

        WARNING: Undefined function: UNDEFINED-FUNCTION
          in form: (DEFUN USES-UNDEFINED () (UNDEFINED-FUNCTION 42))
          at: line 2, column 27
          severity: WARNING

        STYLE-WARNING: one
          two
          in form: (X)
          at: line 2, column 1
          severity: STYLE-WARNING

        Compiled 1 form successfully
        ");
    }

    #[test]
    fn an_unbalanced_form_fails_the_work_and_the_rest_still_counts() {
        let open = diagnostic(Severity::Error, "unbalanced-list", "this list is never closed", (0, 1), None);
        let facts = checked("(defun incomplete (x)", vec![open.clone()], 0);
        assert!(!facts.success && facts.work_failed());
        insta::assert_snapshot!(render(&facts), @r"
        Compilation failed
        Warnings: 0
        Errors: 1

        ERROR: end of file on #<STRING-INPUT-STREAM>
          Could not read form from code string
          this list is never closed
          at: line 1, column 1
          severity: ERROR
        ");
        assert!(render(&checked("(a) (", vec![open], 1)).ends_with("Compiled 1 of 2 forms successfully"));
    }

    #[test]
    fn errors_in_code_are_not_a_failure_of_the_tool() {
        let error = || diagnostic(Severity::Error, "malformed-binding", "bad LET", (3, 9), Some("(LET ((X 1 2)))"));
        let facts = checked("(let ((x 1 2)))", vec![error(), error()], 2);
        assert!(!facts.success && !facts.work_failed());
        assert_eq!((facts.errors, facts.forms_compiled, facts.forms), (2, 1, 2));
    }

    #[test]
    fn a_check_that_was_stopped_says_so() {
        let report = CheckReport {
            diagnostics: vec![],
            forms: 1,
            unloaded_system: None,
            end: CheckEnd::Stopped { reason: "no end after 20 s".into() },
        };
        let facts = Compilation::new("(a)", report);
        assert!(!facts.success && facts.work_failed());
        assert!(render(&facts).contains("The check was stopped: no end after 20 s"));
    }
}
