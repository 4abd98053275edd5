//! Removal of the exports of a package definition that no other package of the workspace uses.

use super::site::{Edit, Site};
use super::{Group, Refactoring};
use crate::ide::index::designated;
use crate::ide::package_lists::without;
use crate::ide::package_uses::{Definition, Uses};

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let chain = site.nearest(&["defpackage", "define-package"])?;
    let path = site.path?;
    let top = site.document.scan().form_at(site.form.span.start)?;
    let definition = Definition::of(site.document, top).filter(|_| chain.len() == 1)?;
    let clauses: Vec<_> = definition.clauses(":export").collect();
    let names = clauses.iter().flat_map(|clause| clause.elements().iter().skip(1));
    let wanted = names.filter_map(|name| designated(&definition.form, name)).collect();
    let packages = site.index.packages();
    let uses = Uses::of(site.document, site.index, &packages, path, &wanted);
    let mut edits: Vec<Edit> = Vec::new();
    let mut kept = 0;
    let mut refused = None;
    for clause in clauses {
        for name in clause.elements().iter().skip(1).filter(|name| name.is_plain()) {
            let unused = |written: &String| !uses.is_export_used(&definition.name, written);
            if designated(&definition.form, name).filter(unused).is_none() {
                kept += 1;
                continue;
            }
            match without(&definition.form, clause, name) {
                Some((span, text)) => edits.push(Edit { span, text, cluster: 0, other: None }),
                None => refused = Some("comments stand between the names, and it is not known which they are about"),
            }
        }
    }
    let result = match refused.map(str::to_owned).or_else(|| site.index.incomplete.clone()) {
        Some(why) => Err(why),
        None if edits.is_empty() => return None,
        // If the workspace uses none of the exports, they are meant for users outside of the
        // workspace.
        None if kept == 0 => return None,
        None => Ok(edits),
    };
    Some(Refactoring::new(
        "clean-exports",
        Group::Rewrite,
        "Remove the exports that no other package of the workspace uses",
        result,
    ))
}
