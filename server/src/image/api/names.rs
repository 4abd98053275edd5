//! `find-name`: what a name is where it stands, and who offers one of that name.

use serde::{Deserialize, Serialize};

use super::Operation;

/// What a name is asked about.
#[derive(Debug, Clone, Serialize)]
pub struct FindName {
    /// As the reader has it: upper-case where it was not escaped.
    pub name: String,
    /// Where it stands.
    pub package: String,
}

impl Operation for FindName {
    const NAME: &'static str = "find-name";
    type Answer = FoundName;
}

/// The answer to `find-name`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct FoundName {
    /// What it is where it stands: `function`, `macro`, `special-operator`, `variable`, `constant`, `class`.
    pub here: Vec<String>,
    /// The package exists.
    pub known_package: bool,
    /// Those that have a symbol of that name that is something, the most likely first.
    pub offers: Vec<Offer>,
}

/// A package's symbol.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Offer {
    /// The package's name.
    pub package: String,
    /// It exports the symbol.
    pub external: bool,
    /// What the symbol is, as `here`.
    pub kinds: Vec<String>,
}
