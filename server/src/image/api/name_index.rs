//! The operation `name-index`: the symbols of all packages, for the index that the host keeps
//! (lisp/src/ops/name-index.lisp).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Operation;

/// The parameters of `name-index`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct NameIndex {
    /// The digests of the packages that the host has, by the packages' names.
    pub have: BTreeMap<String, String>,
}

/// The answer to `name-index`: all packages.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Indexed {
    /// The packages. A package that has not changed has no symbols.
    pub packages: Vec<IndexedPackage>,
}

/// A package.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct IndexedPackage {
    /// The package's name.
    pub name: String,
    /// A text that changes with the package.
    pub digest: String,
    /// True for a package of SBCL itself, whose internal symbols are not listed.
    #[serde(default)]
    pub system: bool,
    /// The nicknames.
    #[serde(default)]
    pub nicknames: Vec<String>,
    /// The local nicknames and the packages that they mean.
    #[serde(default)]
    pub local: Vec<(String, String)>,
    /// The packages that this package uses.
    #[serde(default)]
    pub uses: Vec<String>,
    /// The symbols present in the package, each as a line (docs/wire.md); `None` if the package has
    /// not changed.
    #[serde(default)]
    pub symbols: Option<Vec<String>>,
}

impl Operation for NameIndex {
    const NAME: &'static str = "name-index";
    type Answer = Indexed;
}
