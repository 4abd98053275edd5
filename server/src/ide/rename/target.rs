//! A symbol that gets a new name, with the kinds of its definitions.

use std::collections::HashSet;

/// A symbol that gets a new name.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// The home package.
    pub home: String,
    /// The name, as the reader has it.
    pub name: String,
    /// The new name, as typed.
    pub new: String,
    /// The kinds of its definitions.
    pub kinds: HashSet<String>,
    /// The reason why every mention of it is unsure.
    pub guess: Option<String>,
}

impl Target {
    pub(super) fn is(&self, kinds: &[&str]) -> bool {
        self.kinds.iter().any(|kind| kinds.contains(&kind.as_str()))
    }

    pub(super) fn is_function(&self) -> bool {
        self.is(&["function", "generic function", "method", "macro", "compiler macro", "setf expander", "type"])
    }

    pub(super) fn is_variable(&self) -> bool {
        self.is(&["variable", "constant", "symbol macro"])
    }

    pub(super) fn is_type(&self) -> bool {
        self.is(&["class", "structure", "condition", "type"])
    }
}
