//! Operators that no text of the workspace defines: macros in the host's index of names, and names
//! that may be macros of unknown packages.

use std::collections::HashSet;

use super::names::STANDARD;
use crate::ide::hyperspec::page_of_symbol;
use crate::ide::index::{Packages, Snapshot};
use crate::ide::name_index::{NameIndex, Symbol};
use crate::text::datum::{Form, Kind, Node};
use crate::text::definitions;
use crate::text::names;
use crate::text::scopes::Scopes;

/// The operators of a form that no text of the workspace defines.
#[derive(Debug, Default)]
pub(super) struct OperatorsOutsideWorkspace {
    /// The macros of the image. A macro with `&body` has the number of arguments before the body.
    pub(super) macros: Vec<(String, Option<usize>)>,
    /// The names that may be macros of unknown packages.
    pub(super) undefined: Vec<String>,
}

impl OperatorsOutsideWorkspace {
    /// Finds the operators in `form`. `here` is the package in which the form is read.
    pub(super) fn of(
        form: &Form,
        index: &Snapshot,
        known: &NameIndex,
        here: Option<&str>,
    ) -> OperatorsOutsideWorkspace {
        let mut heads: HashSet<&str> = HashSet::new();
        form.nodes.iter().for_each(|node| add_heads(form, node, &mut heads));
        heads.retain(|written| {
            form_name(written).is_some_and(|name| !name.starts_with([':', '&']) && page_of_symbol(&name).is_none())
        });
        let mut found = OperatorsOutsideWorkspace::default();
        if heads.is_empty() {
            return found;
        }
        let mut defined: HashSet<&str> = HashSet::new();
        for one in index.files.iter().flat_map(|file| &file.definitions) {
            defined.insert(&one.key);
            defined.extend(one.functions.iter().map(|(_, name)| name.as_str()));
        }
        heads.retain(|written| !defined.contains(definitions::key(written).as_str()));
        // In a list that binds a name, such as `(name value)`, the head is not an operator.
        let scopes = Scopes::of(form);
        let bound: HashSet<&str> = scopes.bindings.iter().map(|binding| binding.name.as_str()).collect();
        heads.retain(|written| form_name(written).is_some_and(|name| !bound.contains(name.as_str())));
        let packages = index.packages();
        for written in heads {
            let Some(name) = form_name(written) else { continue };
            match meaning(&packages, known, here, written) {
                Meaning::Symbol(symbol) if symbol.function == b'm' => {
                    found.macros.push((name, before_body(symbol.parameters())));
                }
                Meaning::OfUnknownPackage => found.undefined.push(name),
                Meaning::Symbol(_) | Meaning::Undefined => {}
            }
        }
        found
    }
}

fn form_name(written: &str) -> Option<String> {
    crate::text::datum::symbol_name(written)
}

/// Adds the symbols at the heads of lists, as written.
fn add_heads<'a>(form: &'a Form, node: &Node, found: &mut HashSet<&'a str>) {
    if node.kind == Kind::List
        && let Some(head) = node.children.first().filter(|head| head.kind == Kind::Atom)
    {
        found.insert(form.text(head));
    }
    node.children.iter().for_each(|child| add_heads(form, child, found));
}

/// The meaning of an operator that no text defines.
enum Meaning<'a> {
    /// A symbol of the image.
    Symbol(&'a Symbol),
    /// Possibly a symbol of a package that neither the texts nor the image have.
    OfUnknownPackage,
    Undefined,
}

fn meaning<'a>(packages: &Packages, known: &'a NameIndex, here: Option<&str>, written: &str) -> Meaning<'a> {
    let Some(symbol) = names::symbol(written) else { return Meaning::Undefined };
    let here_known = here.and_then(|here| known.package(here, None));
    let loaded = known.written(written, here_known.map(|package| &**package));
    if let Some(loaded) = loaded.filter(|loaded| loaded.function != b'-') {
        return Meaning::Symbol(loaded);
    }
    let here_name = here.unwrap_or_default();
    let text = here.and_then(|here| packages.get(here));
    let from: Vec<String> = match (&symbol.package, text) {
        (Some(prefix), _) => vec![packages.package_name(prefix, here_name)],
        (None, Some(text)) => match text.imports.get(&symbol.name) {
            Some(from) => vec![packages.package_name(from, here_name)],
            None if text.shadows.contains(&symbol.name) => Vec::new(),
            None => text.uses.iter().map(|used| packages.package_name(used, here_name)).collect(),
        },
        (None, None) => Vec::new(),
    };
    let mut unknown = false;
    for package in from {
        if STANDARD.contains(&package.as_str()) || packages.get(&package).is_some() {
            continue;
        }
        match known.package(&package, None) {
            None => unknown = true,
            Some(package) => {
                let symbol = package.symbol(&symbol.name).filter(|symbol| symbol.external && symbol.function != b'-');
                if let Some(symbol) = symbol {
                    return Meaning::Symbol(symbol);
                }
            }
        }
    }
    if unknown { Meaning::OfUnknownPackage } else { Meaning::Undefined }
}

/// Returns the number of parameters before `&body` in a lambda list, given as in the index of
/// names. Returns `None` without a `&body` behind plain parameters.
fn before_body(parameters: &str) -> Option<usize> {
    let words = parameters.split(' ').filter(|word| *word != "&optional");
    let before: Vec<&str> = words.clone().take_while(|word| *word != "&body").collect();
    let plain = !before.iter().any(|word| word.starts_with('&') || word.contains(['(', ')']));
    (plain && words.count() > before.len()).then_some(before.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parameters_before_a_body_are_counted() {
        for (parameters, before) in [
            ("&body forms", Some(0)),
            ("a &optional b &body forms", Some(2)),
            ("test &rest reason", None),
            ("name &key x &body forms", None),
            ("", None),
        ] {
            assert_eq!(before_body(parameters), before, "{parameters}");
        }
    }
}
