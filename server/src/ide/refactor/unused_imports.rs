//! The refactoring that removes the imports of a package definition that no text of the package
//! mentions.

use std::collections::HashSet;

use super::site::{Edit, Site};
use super::{Group, Refactoring};
use crate::ide::index::{PackageText, Packages, designated};
use crate::text::datum::{Form, Node};
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::names;
use crate::text::toplevel::TopForm;
use crate::text::tree::{Kind, Tree};

/// The maximum number of files that are read.
pub(super) const FILES: usize = 200;
const DEFINERS: [&str; 2] = ["defpackage", "define-package"];

/// Returns the names that the package definition at a site imports, or none if there is no such
/// definition.
pub(super) fn imported(site: &Site) -> Vec<String> {
    let Some(list) = site.nearest(&DEFINERS).and_then(|chain| chain.last().copied()) else { return Vec::new() };
    // The packages are computed only for package definitions, because they are costly.
    let package = defined(site.form, list, &site.index.packages());
    package.map(|package| package.imports.keys().cloned().collect()).unwrap_or_default()
}

/// Returns the name of the package that a form defines.
fn name_of(form: &Form, list: &Node) -> Option<String> {
    let operator = form.operator(list)?;
    let defines = DEFINERS.contains(&operator.as_str());
    list.children.get(1).filter(|_| defines).and_then(|name| designated(form, name))
}

fn defined<'a>(form: &Form, list: &Node, packages: &Packages<'a>) -> Option<&'a PackageText> {
    packages.get(&name_of(form, list)?)
}

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let chain = site.nearest(&DEFINERS)?;
    let list = *chain.last()?;
    let packages = site.index.packages();
    let package = defined(site.form, list, &packages)?;
    if package.imports.is_empty() {
        return None;
    }
    let result = match (site.users, &site.index.incomplete) {
        (None, _) => Err(format!("more than {FILES} files, or one that cannot be read, may use its imports")),
        (Some(_), Some(why)) => Err(why.clone()),
        (Some(users), None) => {
            let mut used = HashSet::new();
            let texts = std::iter::once(site.document).chain(site.others.iter().map(|(_, other)| other));
            texts.chain(users).for_each(|text| used_in(text, package, &packages, &mut used));
            let edits = removed(site, list, package, &packages, &used);
            if edits.is_empty() {
                return None;
            }
            Ok(edits)
        }
    };
    Some(Refactoring::new("clean-imports", Group::Rewrite, "Remove the imports that nothing uses", result))
}

/// Adds to `used` the names that a text mentions in the package, with its prefix, or as a string.
fn used_in(document: &Document, package: &PackageText, packages: &Packages, used: &mut HashSet<String>) {
    let text = document.text().to_string();
    let tree = Tree::of(&text, document.scan());
    let mut ids = tree.ids().skip(1).peekable();
    for top in document.scan().forms() {
        let here = package_at(document, top.span.start).map(|here| packages.package_name(&here, ""));
        // A text without `in-package` may be loaded in any package.
        let inside = here.as_ref().is_none_or(|here| *here == package.name);
        let defines = defines_package(document, top, packages);
        while let Some(id) = ids.next_if(|id| tree.node(*id).start < top.bytes.end) {
            let written = tree.text_of(id);
            match tree.node(id).kind {
                _ if defines => {}
                Kind::String => {
                    let inner = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                    used.extend(inner.map(str::to_owned));
                }
                Kind::Atom => {
                    let Some(symbol) = names::symbol(written) else { continue };
                    let is_it = match symbol.package.as_deref() {
                        None => inside || written.starts_with("#:"),
                        Some(prefix) => {
                            packages.package_name(prefix, here.as_deref().unwrap_or_default()) == package.name
                        }
                    };
                    used.extend(is_it.then_some(symbol.name));
                }
                _ => {}
            }
        }
    }
}

/// Returns true if a form defines a package in `packages`.
fn defines_package(document: &Document, top: &TopForm, packages: &Packages) -> bool {
    let start: String = document.text().slice(top.span.start..top.span.end).chars().take(40).collect();
    start.to_ascii_lowercase().contains("package") && {
        let form = Form::of(document, top.span);
        form.nodes.first().is_some_and(|list| defined(&form, list, packages).is_some())
    }
}

/// Returns the edits that remove the names from `:import-from` clauses, and clauses without any
/// name left.
fn removed(site: &Site, list: &Node, package: &PackageText, packages: &Packages, used: &HashSet<String>) -> Vec<Edit> {
    let passed_on = |name: &String| {
        package.exports.contains(name)
            || !package.reexports.is_empty()
            || packages.all().iter().any(|other| {
                other.imports.get(name).is_some_and(|from| packages.package_name(from, &other.name) == package.name)
            })
    };
    let mut edits = Vec::new();
    let mut before = list.start();
    for option in list.children.iter() {
        let behind = std::mem::replace(&mut before, option.end());
        let clause = option.is_list()
            && option.children.first().and_then(|head| site.form.name(head)).as_deref() == Some(":import-from")
            && option.children.iter().all(|child| !child.guarded);
        let names = option.children.get(2..).unwrap_or_default();
        if !clause || names.is_empty() {
            continue;
        }
        let unused =
            |node: &&Node| designated(site.form, node).is_some_and(|name| !used.contains(&name) && !passed_on(&name));
        let removable: Vec<&Node> = names.iter().filter(unused).collect();
        // In a package-inferred system, an empty clause still makes the other file a dependency.
        if removable.len() == names.len() && !package.name.contains('/') {
            edits.push(site.edit(behind, option.end(), ""));
            continue;
        }
        for node in removable {
            let at = option.children.iter().position(|child| std::ptr::eq(child, node)).unwrap_or_default();
            let from = option.children.get(at.wrapping_sub(1)).map_or(node.start(), Node::end);
            edits.push(site.edit(from, node.end(), ""));
        }
    }
    edits
}
