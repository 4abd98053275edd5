//! Names that are made of another: a structure's functions, and what macros commonly make.

use std::collections::HashSet;

use super::mentions::Target;
use crate::ide::index::{Indexed, Packages, Snapshot};
use crate::text::names;

/// The names that follow from the renaming of `target`.
pub(super) async fn targets(index: &Snapshot, packages: &Packages<'_>, target: &Target) -> Vec<Target> {
    let mut found: Vec<Target> = Vec::new();
    let functions = || HashSet::from(["function".to_owned()]);
    let make = |name: String, new: String, guess: Option<String>| Target {
        home: target.home.clone(),
        name: name.to_uppercase(),
        new,
        kinds: functions(),
        guess,
    };
    let (old, new) = (target.name.to_lowercase(), target.new.clone());
    let defined = |one: &&Indexed| {
        names::symbol(&one.written).is_some_and(|symbol| symbol.name == target.name)
            && packages.home(one.package.as_deref().unwrap_or("COMMON-LISP-USER"), &target.name) == target.home
    };
    let definitions: Vec<&Indexed> = index.files.iter().flat_map(|file| &file.definitions).collect();
    for one in definitions.iter().copied().filter(defined) {
        if one.operator == "defstruct" {
            let options = &one.structure;
            let mut pairs: Vec<(String, String)> = Vec::new();
            if !options.contains("constructor") {
                pairs.push((format!("make-{old}"), format!("make-{new}")));
            }
            if !options.contains("copier") {
                pairs.push((format!("copy-{old}"), format!("copy-{new}")));
            }
            if !options.contains("predicate") {
                pairs.push((format!("{old}-p"), format!("{new}-p")));
            }
            if !options.contains("conc-name") {
                let slots = one.slots.iter().filter_map(|slot| names::symbol(slot));
                pairs.extend(
                    slots
                        .map(|slot| slot.name.to_lowercase())
                        .map(|slot| (format!("{old}-{slot}"), format!("{new}-{slot}"))),
                );
            }
            found.extend(pairs.into_iter().map(|(old, new)| make(old, new, None)));
        }
    }
    // A slot of a structure: its accessors.
    if target.kinds.contains("slot") {
        for one in definitions.iter().filter(|one| one.operator == "defstruct" && !one.structure.contains("conc-name"))
        {
            let has = one.slots.iter().filter_map(|slot| names::symbol(slot)).any(|slot| slot.name == target.name);
            let home = packages.home(one.package.as_deref().unwrap_or("COMMON-LISP-USER"), &target.name);
            if has && home == target.home {
                let structure = one.key.clone();
                found.push(make(format!("{structure}-{old}"), format!("{structure}-{new}"), None));
            }
        }
    }
    // Names that a macro of a library may make of the name.
    let own = definitions.iter().copied().filter(defined).any(|one| one.kind() == one.operator);
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
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found.dedup_by(|one, other| one.name == other.name);
    found
}
