//! A refactoring that puts the names of a package definition into alphabetical order.

use super::site::{Edit, Site};
use super::{Group, Refactoring};
use crate::ide::package_lists;

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let chain = site.nearest(&["defpackage", "define-package"])?;
    let list = *chain.last()?;
    let mut edits: Vec<Edit> = Vec::new();
    let mut refused = None;
    for clause in list.elements() {
        match package_lists::sorted(site.form, package_lists::names(site.form, clause)) {
            Ok(more) => edits.extend(more.into_iter().map(|(span, text)| Edit { span, text, cluster: 0, other: None })),
            Err(why) => refused = Some(why),
        }
    }
    let result = match refused {
        Some(why) => Err(why),
        None if edits.is_empty() => return None,
        None => Ok(edits),
    };
    Some(Refactoring::new("sort-package", Group::Rewrite, "Sort the names of the package definition", result))
}
