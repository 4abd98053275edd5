//! The Lisp systems that tests see: those that `systems` beside this file names, and no other that
//! is installed.

use std::path::{Path, PathBuf};

/// Debian's directory of the sources of libraries.
pub const LIBRARIES: &str = "/usr/share/common-lisp/source";

/// The list: one directory a line; `!` marks those that must exist.
const SYSTEMS: &str = include_str!("systems");

/// Returns the directories of the systems that exist.
///
/// # Panics
/// If a system that must exist does not.
pub fn libraries() -> Vec<PathBuf> {
    let names = SYSTEMS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let directory = |name: &str| {
        let path = Path::new(LIBRARIES).join(name.trim_start_matches('!'));
        assert!(
            path.is_dir() || !name.starts_with('!'),
            "{} is missing: install Debian's package of it (scripts/test-tools does)",
            path.display()
        );
        path.is_dir().then_some(path)
    };
    names.filter_map(directory).collect()
}

/// Returns the value of `CL_SOURCE_REGISTRY` that has ASDF find these systems and no other.
pub fn source_registry() -> String {
    let trees: String = SYSTEMS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|name| Path::new(LIBRARIES).join(name.trim_start_matches('!')))
        .filter(|path| path.is_dir())
        .map(|path| format!(" (:tree {:?})", format!("{}/", path.display())))
        .collect();
    format!("(:source-registry{trees} :ignore-inherited-configuration)")
}
