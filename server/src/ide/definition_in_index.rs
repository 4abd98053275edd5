//! The definitions of a symbol in the index of the workspace's texts, loaded or not.

use std::sync::Arc;

use super::index::{FileEntry, Indexed, Packages, Snapshot};
use super::references::home;
use crate::text::definitions;
use crate::text::names;

/// A symbol as written in a package.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Named {
    /// The name as written.
    pub name: String,
    /// The package in force at the name.
    pub package: Option<String>,
}

/// The symbol that a name denotes, as far as the texts declare it.
#[derive(Debug)]
pub struct TextSymbol {
    /// The name, as by `symbol-name`.
    name: String,
    /// The name of the setf function for comparison, and the name itself.
    keys: [String; 2],
    /// The home package.
    home: String,
}

impl TextSymbol {
    /// Returns the symbol of a name as written in a package.
    pub fn of(index: &Snapshot, named: &Named) -> TextSymbol {
        TextSymbol::within(&index.packages(), named)
    }

    /// Does the same as [`TextSymbol::of`], for a caller that already has the packages of the
    /// index.
    pub fn within(packages: &Packages<'_>, named: &Named) -> TextSymbol {
        let written = symbol_of(&named.name);
        let key = definitions::key(written);
        TextSymbol {
            name: names::symbol(written).map(|symbol| symbol.name).unwrap_or_default(),
            home: home(packages, written, named.package.as_deref()),
            keys: [format!("(setf {key})"), key],
        }
    }

    /// Returns true if both are the same symbol.
    pub fn is(&self, other: &TextSymbol) -> bool {
        self.name == other.name && self.home == other.home
    }
}

/// Returns `f` for `(setf f)`, and another name unchanged.
pub(super) fn symbol_of(written: &str) -> &str {
    let Some(inner) = written.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else { return written };
    inner.split_whitespace().next_back().unwrap_or(written)
}

/// Returns the definitions of a symbol whose kind is wanted, in the order of the files.
pub fn indexed<'a>(
    index: &'a Snapshot,
    meant: &TextSymbol,
    wanted: impl Fn(&str) -> bool,
) -> Vec<(&'a Arc<FileEntry>, &'a Indexed)> {
    let packages = index.packages();
    let mut found = Vec::new();
    for file in index.mentioning(&meant.name) {
        for one in file.definitions.iter().filter(|one| meant.keys.contains(&one.key) && wanted(one.kind())) {
            if home(&packages, symbol_of(&one.written), one.package.as_deref()) == meant.home {
                found.push((file, one));
            }
        }
    }
    found
}

/// Returns the definitions of classes, conditions and structures that define a function with this
/// name, such as an accessor.
pub(super) fn generators<'a>(index: &'a Snapshot, meant: &TextSymbol) -> Vec<(&'a Arc<FileEntry>, &'a Indexed)> {
    let packages = index.packages();
    let all = index.files.iter().flat_map(|file| file.definitions.iter().map(move |one| (file, one)));
    let makes = |one: &Indexed| {
        one.functions.iter().any(|(_, function)| *function == meant.keys[1])
            && home(&packages, &meant.name, one.package.as_deref()) == meant.home
    };
    all.filter(|(_, one)| makes(one)).collect()
}
