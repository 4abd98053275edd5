//! Functions of the workspace that have exactly one value, as their definitions show.

use super::one_value;
use crate::ide::index::Indexed;
use crate::ide::refactor::site::Site;
use crate::text::datum::{Form, Node};
use crate::text::definitions;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::scopes::Scopes;

/// The maximum number of functions whose definitions are examined for one form.
const MAX_FUNCTIONS: usize = 8;

/// Returns true if the global function `name`, as called in a form of the site, has exactly one
/// value. It is a reader of a structure or class without other methods, or a function whose only
/// definition shows that it returns one value. `seen` contains the functions whose definitions were
/// examined. A call of one of these does not change the result: if it has several values, that was
/// found at its definition.
pub(super) fn has_one_value(site: &Site, head: &Node, name: &str, seen: &mut Vec<String>) -> bool {
    if site.form.text(head).contains([':', '|']) || site.index.incomplete.is_some() {
        return false;
    }
    let Some(package) = package_at(site.document, site.form.span.start) else { return false };
    if seen.iter().any(|one| one == name) {
        return true;
    }
    if seen.len() >= MAX_FUNCTIONS {
        return false;
    }
    let defines = |one: &&Indexed| one.key == name && is_of_function(&one.operator);
    let mut indexed = site.index.mentioning(name).flat_map(|file| &file.definitions).filter(defines);
    match (indexed.next(), indexed.next()) {
        (None, None) if is_accessor(site, name, &package) => true,
        (_, None) => one_definition(site, name, &package, seen).unwrap_or(false),
        _ => false,
    }
}

/// Returns true if an operator may define functions. All operators do, except some of the standard.
fn is_of_function(operator: &str) -> bool {
    let others =
        ["variable", "constant", "symbol macro", "class", "structure", "condition", "type", "package", "system"];
    !others.contains(&definitions::kind_of(operator))
}

/// Returns true if a structure or class of the package has an accessor of this name.
fn is_accessor(site: &Site, name: &str, package: &str) -> bool {
    let has = |one: &Indexed| {
        one.package.as_deref() == Some(package) && one.functions.iter().any(|(_, function)| function == name)
    };
    site.index.files.iter().flat_map(|file| &file.definitions).any(has)
}

/// Returns true if the only definition of a function in the texts of the site returns one value.
/// Returns `None` if there is no such definition.
fn one_definition(site: &Site, name: &str, package: &str, seen: &mut Vec<String>) -> Option<bool> {
    let texts = std::iter::once(site.document).chain(site.others.iter().map(|(_, other)| other));
    let mut found: Vec<(&Document, definitions::Defined)> = Vec::new();
    for text in texts.chain(site.closed_definers) {
        let named = definitions::named(text, name).into_iter().filter(|one| is_of_function(&one.operator));
        found.extend(named.map(|one| (text, one)));
    }
    let [(document, one)] = found.as_slice() else { return None };
    if one.operator != "defun"
        || one.written.contains(':')
        || definitions::package(document, one).as_deref() != Some(package)
    {
        return None;
    }
    let form = Form::of(document, document.scan().form_at(one.span.start)?.span);
    let node = form.node_at(one.span).filter(|node| !node.guarded)?;
    let inner = Site { document, form: &form, scopes: Scopes::of(&form), ..*site };
    seen.push(name.to_owned());
    let last = node.children.iter().skip(3).last();
    Some(last.is_none_or(|last| one_value(&inner, last, seen)) && returns_one_value(&inner, node, name, seen))
}

/// Returns true if each `return-from` the block in a form returns one value.
fn returns_one_value(site: &Site, node: &Node, block: &str, seen: &mut Vec<String>) -> bool {
    let leaves = site.form.operator(node).as_deref() == Some("return-from")
        && node.children.get(1).and_then(|name| site.form.name(name)).as_deref() == Some(block);
    (!leaves || node.children.get(2).is_none_or(|value| one_value(site, value, seen)))
        && node.children.iter().all(|child| returns_one_value(site, child, block, seen))
}
