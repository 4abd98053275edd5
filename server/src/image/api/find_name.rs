//! `find-name`: the meaning of a name in its package, and the packages that have a symbol of that
//! name.

use serde::{Deserialize, Serialize};

use super::Operation;

/// The parameters of `find-name`.
#[derive(Debug, Clone, Serialize)]
pub struct FindName {
    /// The name as the reader has it: upper-case unless escaped.
    pub name: String,
    /// The package in which the name is read.
    pub package: String,
}

impl Operation for FindName {
    const NAME: &'static str = "find-name";
    type Answer = FoundName;
}

/// The answer to `find-name`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct FoundName {
    /// The kinds of the name in its package: `function`, with `compiler-macro` if it has one,
    /// `macro`, `special-operator`, `variable`, `constant`, `class`.
    pub here: Vec<String>,
    /// True if the package exists.
    pub known_package: bool,
    /// The packages in which a symbol of that name has a meaning, the most likely first.
    pub offers: Vec<Offer>,
}

/// A symbol of a package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Offer {
    /// The package's name.
    pub package: String,
    /// True if the package exports the symbol.
    pub external: bool,
    /// The kinds of the symbol, as in `here`.
    pub kinds: Vec<String>,
}
