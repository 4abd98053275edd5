//! The names that files of the workspace define, whether the files are loaded or not.

use std::collections::{HashMap, HashSet};

use super::matching::Pattern;
use crate::ide::index::{PackageText, Snapshot};
use crate::ide::partial_name::Local;

/// Returns the matching names that the files of the workspace, except the file `own`, define. They
/// are the names of the current package, those that it imports, and those that the packages that it
/// uses export.
pub(super) fn names(workspace: &Snapshot, own: &str, package: &str, pattern: &Pattern) -> Vec<Local> {
    let seen = VisiblePackages::of(workspace, package);
    let mut found = Vec::new();
    for file in workspace.files.iter().filter(|file| file.uri != own) {
        let (mut before, mut of_package) = (None, None);
        for one in &file.definitions {
            // The visibility is computed once for several definitions, because most definitions of
            // a file are in one package.
            if before != Some(one.package.as_deref()) {
                before = Some(one.package.as_deref());
                of_package = seen.package(one.package.as_deref().unwrap_or("COMMON-LISP-USER"));
            }
            let Some(visible) = of_package else { continue };
            let names_something =
                !one.key.starts_with('(') && !one.written.starts_with(['"', '#', ':']) && one.kind() != "package";
            if names_something
                && pattern.may_fit(one.letters)
                && pattern.score(&one.key).is_some()
                && visible.has(&one.key)
            {
                let label = one.written.rsplit(':').next().unwrap_or(&one.written).to_owned();
                found.push(Local { label, operator: is_operator(one.kind()), detail: one.operator.clone() });
            }
            for (_, name) in one.functions.iter().filter(|(letters, _)| pattern.may_fit(*letters)) {
                if pattern.score(name).is_some() && visible.has(name) {
                    let detail = format!("{} {}", one.kind(), one.key);
                    found.push(Local { label: name.clone(), operator: true, detail });
                }
            }
        }
    }
    found
}

/// Returns the names of a package in lower case. They are the names that the texts define in it, or
/// with `exported` those that its definition exports.
pub(super) fn of_package(workspace: &Snapshot, package: &str, exported: bool) -> HashSet<String> {
    let texts = || workspace.files.iter().flat_map(|file| &file.packages).filter(|one| is(one, package));
    if exported {
        return texts().flat_map(|one| &one.exports).map(|name| name.to_lowercase()).collect();
    }
    let mut found = HashSet::new();
    // An `in-package` may name the package by a nickname.
    let called: HashSet<&str> = texts().flat_map(names_of).chain([package]).collect();
    for one in workspace.files.iter().flat_map(|file| &file.definitions) {
        if one.package.as_deref().is_some_and(|name| called.contains(name)) && one.kind() != "package" {
            if !one.key.starts_with('(') && !one.written.starts_with(['"', '#', ':']) {
                found.insert(one.key.clone());
            }
            found.extend(one.functions.iter().map(|(_, name)| name.clone()));
        }
    }
    found
}

fn names_of(package: &PackageText) -> impl Iterator<Item = &str> {
    package.nicknames.iter().chain([&package.name]).map(String::as_str)
}

fn is(package: &PackageText, name: &str) -> bool {
    names_of(package).any(|one| one == name)
}

fn is_operator(kind: &str) -> bool {
    matches!(kind, "function" | "generic function" | "method" | "macro" | "compiler macro" | "setf expander")
}

/// The packages with names that are visible in a package.
struct VisiblePackages<'a> {
    packages: HashMap<&'a str, Visible<'a>>,
}

/// The part of a package's names that is visible.
#[derive(Clone, Copy)]
enum Visible<'a> {
    All,
    Exports(&'a PackageText),
    /// The names that the first package imports from the second.
    Imports(&'a PackageText, &'a PackageText),
}

impl<'a> VisiblePackages<'a> {
    fn of(workspace: &'a Snapshot, name: &'a str) -> VisiblePackages<'a> {
        let mut packages = HashMap::from([(name, Visible::All)]);
        let mut sees = |one: &'a PackageText, how: Visible<'a>| packages.extend(names_of(one).map(|name| (name, how)));
        let all = || workspace.files.iter().flat_map(|file| &file.packages);
        if let Some(here) = all().find(|one| is(one, name)) {
            for one in all().filter(|one| one.name != here.name) {
                let named = |name: &String| is(one, name);
                if here.uses.iter().any(named) {
                    sees(one, Visible::Exports(one));
                } else if here.imports.values().any(named) {
                    sees(one, Visible::Imports(here, one));
                }
            }
            sees(here, Visible::All);
        }
        VisiblePackages { packages }
    }

    fn package(&self, name: &str) -> Option<Visible<'a>> {
        self.packages.get(name).copied()
    }
}

impl Visible<'_> {
    /// Returns true if a name in lower case is visible.
    fn has(self, lower: &str) -> bool {
        match self {
            Visible::All => true,
            Visible::Exports(package) => package.exports.contains(&lower.to_uppercase()),
            Visible::Imports(here, of) => here.imports.get(&lower.to_uppercase()).is_some_and(|from| is(of, from)),
        }
    }
}
