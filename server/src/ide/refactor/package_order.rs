//! The names of a package definition in alphabetical order. Each stands where one stood before, so
//! that the lines stay as they are.

use super::site::{Edit, Site};
use super::{Group, Planned};
use crate::ide::index::designated;
use crate::text::datum::{Kind, Node};

/// Clauses whose names have no order, with the number of elements before them.
const CLAUSES: [(&str, usize); 6] = [
    (":export", 1),
    (":import-from", 2),
    (":shadowing-import-from", 2),
    (":shadow", 1),
    (":intern", 1),
    (":unexport", 1),
];

pub(super) fn plan(site: &Site) -> Option<Planned> {
    let chain = site.nearest(&["defpackage", "define-package"])?;
    let list = *chain.last()?;
    let mut edits = Vec::new();
    let mut refused = None;
    for clause in list.elements().iter().filter(|clause| clause.is_list()) {
        let head = clause.elements().first().and_then(|head| site.form.name(head)).unwrap_or_default();
        let Some((_, before)) = CLAUSES.iter().find(|(name, _)| *name == head) else { continue };
        let names = clause.elements().get(*before..).unwrap_or_default();
        match sorted(site, names) {
            Ok(more) => edits.extend(more),
            Err(why) => refused = Some(why),
        }
    }
    let result = match refused {
        Some(why) => Err(why),
        None if edits.is_empty() => return None,
        None => Ok(edits),
    };
    Some(Planned::new("sort-package", Group::Rewrite, "Sort the names of the package definition", result))
}

fn sorted(site: &Site, names: &[Node]) -> Result<Vec<Edit>, String> {
    let (Some(first), Some(last)) = (names.first(), names.last()) else { return Ok(Vec::new()) };
    let mut keyed: Vec<(String, &Node)> = Vec::new();
    for node in names {
        let name = designated(site.form, node).filter(|_| node.is_plain() && node.kind != Kind::List);
        let Some(name) = name else { return Err("a name is read only with some features, or is no name".into()) };
        keyed.push((name, node));
    }
    keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
    let moved: Vec<(&Node, &Node)> = names
        .iter()
        .zip(keyed.into_iter().map(|(_, node)| node))
        .filter(|(one, other)| !std::ptr::eq(*one, *other))
        .collect();
    let between = site.between(first.start(), last.end());
    if !moved.is_empty() && (between.contains(';') || between.contains("#|")) {
        return Err("comments stand between the names, and it is not known which they are about".into());
    }
    let edit = |(one, other): (&Node, &Node)| site.edit(one.start(), one.end(), site.form.written(other));
    Ok(moved.into_iter().map(edit).collect())
}
