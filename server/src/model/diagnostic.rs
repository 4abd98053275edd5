//! Diagnostics, as every front end and `consort check` see them.

use std::path::PathBuf;

use crate::text::Span;

/// The severity of a diagnostic, in the order from worst to mildest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The form cannot be read or compiled. LSP 1.
    Error,
    /// The compiler's WARNING, and every undefined function or variable. LSP 2.
    Warning,
    /// The compiler's STYLE-WARNING. LSP 3 (information).
    StyleWarning,
    /// A fact about the file that is not a finding in it (its system is not loaded). LSP 3.
    Information,
    /// A compiler note. LSP 4 (hint). Off by default.
    Note,
}

impl Severity {
    /// Returns the name, as in the contracts and docs/diagnostics.md.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::StyleWarning => "style-warning",
            Severity::Information => "information",
            Severity::Note => "note",
        }
    }

    /// Returns LSP's `DiagnosticSeverity`, the same in the editor and in `consort check --json`.
    pub fn lsp(self) -> u8 {
        match self {
            Severity::Error => 1,
            Severity::Warning => 2,
            Severity::StyleWarning | Severity::Information => 3,
            Severity::Note => 4,
        }
    }
}

/// The way an editor may draw a diagnostic, in addition to its severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tag {
    /// Drawn faded: an unused variable, deleted code.
    Unnecessary,
    /// Drawn struck through: a deprecated name.
    Deprecated,
}

/// A related place that explains a diagnostic, such as the definition of the name, or the opening
/// parenthesis that is never closed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Related {
    /// The file of the place; `None` for the text that was checked.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The span of the place.
    pub span: Span,
    /// The explanation, one sentence.
    pub message: String,
}

/// A finding at one place. A name that is undefined in three places has three diagnostics.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Diagnostic {
    /// The span, narrowed to the symbol that is meant.
    pub span: Span,
    /// The severity.
    pub severity: Severity,
    /// The kind, stable for programs: `undefined-function`, `unused-variable`, `unbalanced-list`,
    /// ... (docs/diagnostics.md).
    pub code: String,
    /// The message for the user: the compiler's own text without addresses and stream names.
    pub message: String,
    /// The condition's type as the contract prints it: `WARNING`, `STYLE-WARNING`,
    /// `SB-INT:SIMPLE-READER-ERROR`; `None` for the scanner's own diagnostics.
    #[serde(default)]
    pub condition: Option<String>,
    /// The enclosing top-level form, upper-case and abbreviated to a line, for `compile-form`.
    #[serde(default)]
    pub form: Option<String>,
    /// The span of that top-level form; `None` when the form is unknown.
    #[serde(default)]
    pub toplevel: Option<Span>,
    /// The way an editor may draw the diagnostic.
    #[serde(default)]
    pub tags: Vec<Tag>,
    /// Related places.
    #[serde(default)]
    pub related: Vec<Related>,
    /// The data for a quick fix: `{"symbol": "FOO"}`, `{"system": "my-app"}`. The shape depends on
    /// `code`.
    #[serde(default)]
    pub data: serde_json::Value,
}

impl Diagnostic {
    /// The start of the codes of lint rules' findings.
    pub const RULE: &str = "lint-";

    /// Returns true for a finding of a lint rule, and false for one of the compiler.
    pub fn is_of_rule(&self) -> bool {
        self.code.starts_with(Diagnostic::RULE)
    }

    /// Creates a diagnostic with only a place and a message.
    pub fn new(span: Span, severity: Severity, code: impl Into<String>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            span,
            severity,
            code: code.into(),
            message: message.into(),
            condition: None,
            form: None,
            toplevel: None,
            tags: Vec::new(),
            related: Vec::new(),
            data: serde_json::Value::Null,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Severity::*;

    #[test]
    fn severities_are_in_the_order_of_their_numbers_in_lsp() {
        let all = [Error, Warning, StyleWarning, Information, Note];
        assert!(all.is_sorted());
        assert_eq!(all.map(super::Severity::lsp), [1, 2, 3, 3, 4]);
        for severity in all {
            assert_eq!(serde_json::json!(severity), severity.name());
        }
    }
}
