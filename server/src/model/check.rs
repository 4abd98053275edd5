//! The report of a check.

use serde::{Deserialize, Serialize};

use crate::model::diagnostic::Diagnostic;
use crate::text::Span;
use crate::text::expected::Expected;

/// The mode in which the text of a check is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckMode {
    /// As `compile-file` reads it, with `*read-eval*` true.
    File,
    /// As in a `compile-form` call: without a file, and with `*read-eval*` nil.
    Form,
}

/// The facts that the copy of a system's check needs about a file before it reads the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// The length in characters.
    pub length: usize,
    /// Spans that the scanner found broken. The copy reads them as white space.
    pub withheld: Vec<Span>,
    /// The forms that a complete check reaches, counted by the host.
    pub expected: Expected,
}

/// The end of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum CheckEnd {
    /// The whole text was checked.
    Complete,
    /// The copy passed a limit or died. The report has the findings so far, with a diagnostic on
    /// the form at which the copy ended.
    Stopped {
        /// The reason, as one sentence for the user.
        reason: String,
    },
}

/// The answer to `check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// The diagnostics, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// The number of top-level forms that were read and compiled.
    pub forms: usize,
    /// The file's system, when the system is known and not loaded in the image.
    pub unloaded_system: Option<String>,
    /// The end of the check.
    pub end: CheckEnd,
}
