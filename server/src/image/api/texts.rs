//! What the image knows of the names in a text.

use serde::{Deserialize, Serialize};

use super::Operation;

/// `symbol-kinds`: what each of some symbols names. None is interned.
#[derive(Debug, Clone, Serialize)]
pub struct SymbolKindsParams {
    /// The package they are read in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Package prefix (`None`: none) and name of each, as the reader has them.
    pub symbols: Vec<(Option<String>, String)>,
}

/// The answer to `symbol-kinds`: in the order they were asked, `None` for a symbol that is not there.
#[derive(Debug, Clone, Deserialize)]
pub struct SymbolKinds {
    /// One for each.
    pub kinds: Vec<Option<SymbolKind>>,
}

/// What a symbol names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SymbolKind {
    /// `special-operator`, `macro`, `generic-function`, `function`.
    #[serde(default)]
    pub operator: Option<String>,
    /// Of a macro: how many arguments come before its `&body`.
    #[serde(default)]
    pub body: Option<usize>,
    /// `constant`, `special`, `global`, `symbol-macro`.
    #[serde(default)]
    pub variable: Option<String>,
    /// It names a class.
    #[serde(default)]
    pub class: bool,
}

impl Operation for SymbolKindsParams {
    const NAME: &'static str = "symbol-kinds";
    type Answer = SymbolKinds;
}
