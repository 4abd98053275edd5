//! Rules about package definitions.

use std::collections::HashMap;

use super::workspace::{Whole, WorkspaceFinding};
use crate::ide::index::{PackageText, designated};
use crate::ide::package_lists::{names, sorted};
use crate::ide::package_uses::{Uses, names_in};

/// The minimum number of names of a clause that must be sorted.
const MIN_SORTED_NAMES: usize = 10;

/// Returns the long clauses whose names are not in alphabetical order.
pub(super) fn unsorted_names(whole: &Whole) -> Vec<WorkspaceFinding> {
    let (definitions, _) = names_in(whole.document, &[]);
    let mut found = Vec::new();
    for definition in &definitions {
        for clause in definition.form.nodes.iter().flat_map(|list| list.elements()) {
            let names = names(&definition.form, clause);
            // Clauses with comments between names, which `sorted` refuses, may be in another order.
            let unsorted =
                names.len() >= MIN_SORTED_NAMES && sorted(&definition.form, names).is_ok_and(|moved| !moved.is_empty());
            if let Some(head) = clause.elements().first().filter(|_| unsorted) {
                let message = format!("These {} names are in no alphabetical order.", names.len());
                found.push(WorkspaceFinding { span: head.span, message });
            }
        }
    }
    found
}

/// Returns the exports that no other package of the workspace uses. A package without any used
/// export is left out.
pub(super) fn unused_exports(whole: &Whole) -> Vec<WorkspaceFinding> {
    let Some(path) = whole.path.filter(|_| whole.is_known()) else { return Vec::new() };
    let (definitions, wanted) = names_in(whole.document, &[(":export", 1)]);
    if wanted.is_empty() {
        return Vec::new();
    }
    let uses = Uses::of(whole.document, whole.index, whole.packages, path, &wanted);
    let mut found = Vec::new();
    for definition in &definitions {
        let names = definition.clauses(":export").flat_map(|clause| clause.elements().iter().skip(1));
        let (mut unused, mut used) = (Vec::new(), 0);
        for node in names.filter(|node| node.is_plain()) {
            let Some(name) = designated(&definition.form, node) else { continue };
            if uses.is_export_used(&definition.name, &name) {
                used += 1;
            } else {
                let message = format!("No other package of the workspace uses {}.", name.to_lowercase());
                unused.push(WorkspaceFinding { span: node.span, message });
            }
        }
        if used > 0 {
            found.append(&mut unused);
        }
    }
    found
}

/// Returns the imports that no text of the package uses.
pub(super) fn unused_imports(whole: &Whole) -> Vec<WorkspaceFinding> {
    let Some(path) = whole.path.filter(|_| whole.is_known()) else { return Vec::new() };
    let (definitions, wanted) = names_in(whole.document, &[(":import-from", 2)]);
    if wanted.is_empty() {
        return Vec::new();
    }
    let uses = Uses::of(whole.document, whole.index, whole.packages, path, &wanted);
    let mut found = Vec::new();
    for definition in &definitions {
        let Some(package) = whole.packages.get(&definition.name) else { continue };
        for clause in definition.clauses(":import-from") {
            let mut unused = Vec::new();
            let names = clause.elements().get(2..).unwrap_or_default();
            for node in names.iter().filter(|node| node.is_plain()) {
                let Some(name) = designated(&definition.form, node) else { continue };
                if !uses.is_import_used(package, &name) {
                    let message = format!("No text of the package uses {}.", name.to_lowercase());
                    unused.push(WorkspaceFinding { span: node.span, message });
                }
            }
            // In systems whose files are packages, the clause itself causes the other file to be
            // loaded.
            if unused.len() < names.len() || !package.name.contains('/') {
                found.append(&mut unused);
            }
        }
    }
    found
}

/// Returns the `:use` entries by which packages use each other or themselves, directly or through
/// others.
pub(super) fn package_cycles(whole: &Whole) -> Vec<WorkspaceFinding> {
    let (definitions, _) = names_in(whole.document, &[]);
    if definitions.is_empty() {
        return Vec::new();
    }
    let groups = groups(whole);
    let mut found = Vec::new();
    for definition in &definitions {
        let Some(group) = groups.get(definition.name.as_str()) else { continue };
        for node in definition.clauses(":use").flat_map(|clause| clause.elements().iter().skip(1)) {
            let Some(used) = designated(&definition.form, node) else { continue };
            let used = whole.packages.package_name(&used, "");
            if groups.get(used.as_str()) != Some(group) {
                continue;
            }
            let (one, other) = (definition.name.to_lowercase(), used.to_lowercase());
            let directly = whole.packages.get(&used).is_some_and(|package| {
                package.uses.iter().any(|back| whole.packages.package_name(back, "") == definition.name)
            });
            let message = match (used == definition.name, directly) {
                (true, _) => format!("{one} uses itself."),
                (_, true) => format!("{one} and {other} use each other."),
                _ => format!("{other} uses {one} too, by way of other packages."),
            };
            found.push(WorkspaceFinding { span: node.span, message });
        }
    }
    found
}

/// Returns the group of each package. The packages of a group use each other, directly or through
/// others. The groups are the strongly connected components, found by Kosaraju's algorithm. A
/// package that is alone in its group has none, unless it uses itself.
fn groups<'a>(whole: &Whole<'a>) -> HashMap<&'a str, usize> {
    let all: Vec<&PackageText> = whole.packages.all();
    let at: HashMap<&str, usize> = all.iter().enumerate().map(|(at, one)| (one.name.as_str(), at)).collect();
    let mut used: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    let mut users: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
    for (from, package) in all.iter().enumerate() {
        for to in &package.uses {
            if let Some(to) = at.get(whole.packages.package_name(to, "").as_str()) {
                used[from].push(*to);
                users[*to].push(from);
            }
        }
    }
    let mut order = Vec::new();
    let mut seen = vec![false; all.len()];
    for start in 0..all.len() {
        walk(start, &used, &mut seen, &mut order);
    }
    let mut groups = HashMap::new();
    let mut seen = vec![false; all.len()];
    for start in order.into_iter().rev() {
        let mut members = Vec::new();
        walk(start, &users, &mut seen, &mut members);
        let alone = members.len() == 1 && !used[members[0]].contains(&members[0]);
        if !alone {
            groups.extend(members.into_iter().map(|member| (all[member].name.as_str(), start)));
        }
    }
    groups
}

/// Adds the unseen nodes that are reachable from `start` to `order`, in postorder.
fn walk(start: usize, edges: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[start], true) {
        return;
    }
    let mut open = vec![(start, 0)];
    while let Some((at, next)) = open.pop() {
        match edges[at].get(next) {
            Some(to) => {
                open.push((at, next + 1));
                if !std::mem::replace(&mut seen[*to], true) {
                    open.push((*to, 0));
                }
            }
            None => order.push(at),
        }
    }
}
