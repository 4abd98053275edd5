//! A diagnostic, as every door and `consort check` see it.

use std::path::PathBuf;

use crate::text::Span;

/// How bad it is. The order is worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The form cannot be read or compiled. LSP 1.
    Error,
    /// The compiler's WARNING, and every undefined function or variable. LSP 2.
    Warning,
    /// The compiler's STYLE-WARNING. LSP 3 (information).
    StyleWarning,
    /// A compiler note. LSP 4 (hint); off until asked for.
    Note,
    /// Something about the file and not a finding in it (its system is not loaded). LSP 3.
    Information,
}

impl Severity {
    /// LSP's `DiagnosticSeverity`, the same in the editor and in `consort check --json`.
    pub fn lsp(self) -> u8 {
        match self {
            Severity::Error => 1,
            Severity::Warning => 2,
            Severity::StyleWarning | Severity::Information => 3,
            Severity::Note => 4,
        }
    }
}

/// How an editor may draw it beside its severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tag {
    /// Faded out: an unused variable, deleted code.
    Unnecessary,
    /// Struck through: a deprecated name.
    Deprecated,
}

/// Another place that explains this one: where the name was defined, the opening parenthesis that is never closed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Related {
    /// The file it lies in; `None`: the text that was checked.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// Where.
    pub span: Span,
    /// Why it matters, one sentence.
    pub message: String,
}

/// One finding at one place. A name that is undefined in three places gives three.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Diagnostic {
    /// Where, narrowed to the symbol that is meant.
    pub span: Span,
    /// How bad.
    pub severity: Severity,
    /// What kind, stable for machines: `undefined-function`, `unused-variable`, `unbalanced-list`, ... See docs/diagnostics.md.
    pub code: String,
    /// What a person reads: the compiler's own words, cleaned of addresses and stream names.
    pub message: String,
    /// The condition's type as the contract prints it: `WARNING`, `STYLE-WARNING`, `SB-INT:SIMPLE-READER-ERROR`; `None` for the scanner's own.
    #[serde(default)]
    pub condition: Option<String>,
    /// The top-level form it is in, upper-case and abbreviated to a line, for `compile-form`.
    #[serde(default)]
    pub form: Option<String>,
    /// The span of that top-level form; `None` when no form could be told.
    #[serde(default)]
    pub toplevel: Option<Span>,
    /// How an editor may draw it.
    #[serde(default)]
    pub tags: Vec<Tag>,
    /// Other places.
    #[serde(default)]
    pub related: Vec<Related>,
    /// What a quick fix needs: `{"symbol": "FOO"}`, `{"system": "my-app"}`. Its shape depends on `code`.
    #[serde(default)]
    pub data: serde_json::Value,
}
