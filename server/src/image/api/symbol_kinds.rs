//! The image's knowledge of the names in a text.

use serde::{Deserialize, Serialize};

use super::Operation;

/// `symbol-kinds`: the kinds of some symbols. None is interned.
#[derive(Debug, Clone, Serialize)]
pub struct SymbolKindsParams {
    /// The package in which the symbols are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Package prefix (`None`: no prefix) and name of each, as the reader has them.
    pub symbols: Vec<(Option<String>, String)>,
}

/// The answer to `symbol-kinds`: in the order of the request, `None` for a symbol that does not
/// exist.
#[derive(Debug, Clone, Deserialize)]
pub struct SymbolKinds {
    /// The kind of each symbol.
    pub kinds: Vec<Option<SymbolKind>>,
}

/// The kinds of a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SymbolKind {
    /// `special-operator`, `macro`, `generic-function`, `function`.
    #[serde(default)]
    pub operator: Option<String>,
    /// For a macro, the number of arguments before its `&body`.
    #[serde(default)]
    pub body: Option<usize>,
    /// `constant`, `special`, `global`, `symbol-macro`.
    #[serde(default)]
    pub variable: Option<String>,
    /// True if the symbol names a class.
    #[serde(default)]
    pub class: bool,
}

impl Operation for SymbolKindsParams {
    const NAME: &'static str = "symbol-kinds";
    type Answer = SymbolKinds;
}
