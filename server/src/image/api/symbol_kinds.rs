//! The operation `symbol-kinds`: the kinds of the symbols in a text.

use serde::{Deserialize, Serialize};

use super::Operation;

/// `symbol-kinds`: the kinds of some symbols. No symbol is interned.
#[derive(Debug, Clone, Serialize)]
pub struct SymbolKindsParams {
    /// The package in which the symbols are read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The package prefix (`None`: no prefix) and the name of each symbol, as the reader has them.
    pub symbols: Vec<(Option<String>, String)>,
}

/// The answer to `symbol-kinds`.
#[derive(Debug, Clone, Deserialize)]
pub struct SymbolKinds {
    /// The kind of each symbol, in the order of the request; `None`: the symbol does not exist.
    pub kinds: Vec<Option<SymbolKind>>,
}

/// The kinds of a symbol.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct SymbolKind {
    /// The kind of operator: `special-operator`, `macro`, `generic-function` or `function`.
    #[serde(default)]
    pub operator: Option<String>,
    /// The number of arguments before the `&body` of a macro.
    #[serde(default)]
    pub body: Option<usize>,
    /// The kind of variable: `constant`, `special`, `global` or `symbol-macro`.
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
