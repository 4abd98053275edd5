//! The report of a check.

use serde::{Deserialize, Serialize};

use crate::model::diagnostic::Diagnostic;
use crate::text::Span;

/// How the text of a check is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckMode {
    /// As `compile-file` would, `*read-eval*` true.
    File,
    /// A `compile-form` call: no file, `*read-eval*` nil.
    Form,
}

/// What the copy of a system's check must know of a file before it reads it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileFacts {
    /// Characters.
    pub length: usize,
    /// Spans the scanner found broken: read as white space.
    pub withheld: Vec<Span>,
    /// The start of the last form that a complete check comes to, by the host's own count.
    pub last_form: Option<usize>,
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum CheckEnd {
    /// The whole text was seen.
    Complete,
    /// The copy passed a limit or died; what had been found is in the report, with a diagnostic on the form it was at.
    Stopped {
        /// One sentence, for a person.
        reason: String,
    },
}

/// The answer to `check`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckReport {
    /// In the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// Top-level forms that were read and compiled.
    pub forms: usize,
    /// The file's system, when it is known and not loaded in the image.
    pub unloaded_system: Option<String>,
    /// How it ended.
    pub end: CheckEnd,
}
