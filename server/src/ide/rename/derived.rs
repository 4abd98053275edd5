//! Names that are derived from another name: those of a structure's functions, and names that
//! macros commonly derive.

use std::collections::HashSet;

use super::structures::Structures;
use super::target::Target;
use crate::ide::index::{Indexed, Packages, Snapshot};
use crate::text::names;

/// Returns the other symbols that must be renamed together with `target`.
pub(super) fn targets(
    index: &Snapshot,
    packages: &Packages<'_>,
    structures: &Structures<'_>,
    target: &Target,
) -> Vec<Target> {
    let mut found: Vec<Target> = Vec::new();
    let functions = || HashSet::from(["function".to_owned()]);
    let make = |name: String, new: String, doubt: Option<String>| Target {
        home: target.home.clone(),
        name: name.to_uppercase(),
        new,
        kinds: functions(),
        doubt,
        ..Target::default()
    };
    let (old, new) = (target.name.to_lowercase(), target.new.clone());
    let defined = |one: &&Indexed| {
        names::symbol(&one.written).is_some_and(|symbol| symbol.name == target.name)
            && packages.home(one.package.as_deref().unwrap_or("COMMON-LISP-USER"), &target.name) == target.home
    };
    let definitions: Vec<&Indexed> = index.files.iter().flat_map(|file| &file.definitions).collect();
    for one in definitions.iter().copied().filter(defined) {
        if one.operator == "defstruct" && target.is_type() {
            // Functions that a structure's option names keep their names.
            let named = one.naming.as_ref().map(|naming| naming.named.as_slice()).unwrap_or_default();
            let by_default = |name: &String| {
                one.functions.iter().any(|(_, function)| function == name)
                    && !named.iter().any(|written| written.eq_ignore_ascii_case(name))
            };
            let pairs = [("make-", ""), ("copy-", ""), ("", "-p")]
                .map(|(before, after)| (format!("{before}{old}{after}"), format!("{before}{new}{after}")));
            let pairs = pairs.into_iter().filter(|(old, _)| by_default(old));
            found.extend(pairs.map(|(old, new)| make(old, new, None)));
            found.extend(structures.prefixed(one, &new));
        }
    }
    if target.is_slot() {
        found.extend(structures.accessors(target));
    }
    // Names that a user's macro may derive from the name.
    let own = definitions
        .iter()
        .copied()
        .filter(defined)
        .any(|one| one.kind() == one.operator && target.kinds.contains(one.kind()));
    if own {
        let why = format!("A macro may make this name of {old}.");
        for (before, after) in
            [("make-", ""), ("copy-", ""), ("", "-p"), ("with-", ""), ("do-", ""), ("%", ""), ("*", "*"), ("+", "+")]
        {
            let name = format!("{before}{old}{after}");
            let is_defined = definitions.iter().any(|one| one.key == name);
            if !is_defined && index.mentioning(&name).next().is_some() {
                found.push(make(name, format!("{before}{new}{after}"), Some(why.clone())));
            }
        }
    }
    found.sort_by(|one, other| (&one.name, &one.home).cmp(&(&other.name, &other.home)));
    found.dedup_by(|one, other| one.name == other.name && one.home == other.home);
    found
}
