//! Refactorings of package prefixes. A name is imported, and its prefix is dropped throughout the
//! text, or an imported name gets the prefix.

use super::elsewhere;
use super::exports::package_definition;
use super::site::{Edit, Site};
use super::{Group, Refactoring};
use crate::ide::fixes::packages::{Clause, add, imported_from};
use crate::ide::index::PackageText;
use crate::text::Span;
use crate::text::document::Document;
use crate::text::forms::{package_at, symbol_at};
use crate::text::names;
use crate::text::tree::{Kind, NodeId, ROOT, Tree};

pub(super) fn plan(site: &Site) -> Vec<Refactoring> {
    let Some((_, written)) = symbol_at(site.document, site.selection.start) else { return Vec::new() };
    if written.contains(['|', '\\', '#']) || written.starts_with(':') {
        return Vec::new();
    }
    let here = package_at(site.document, site.form.span.start);
    let (Some(symbol), Some(here)) = (names::symbol(&written), here) else { return Vec::new() };
    let found = match &symbol.package {
        Some(package) if !package.is_empty() => {
            [without_prefix(site, &here, package, &symbol.name, &written), with_nickname(site, &here, package)]
        }
        None => [with_prefix(site, &here, &symbol.name), None],
        Some(_) => [None, None],
    };
    found.into_iter().flatten().collect()
}

/// Returns the name whose uses in other texts decide whether its prefix can be dropped.
pub(super) fn name_used_elsewhere(site: &Site) -> Option<String> {
    let (_, written) = symbol_at(site.document, site.selection.start)?;
    let here = package_at(site.document, site.form.span.start)?;
    let symbol = names::symbol(&written)?;
    let package = symbol.package.filter(|package| !package.is_empty() && *package != here)?;
    if written.contains("::") {
        return None;
    }
    let (_, definition) = package_definition(site, &here)?;
    let is_known = imported_from(&definition, &symbol.name).as_deref() == Some(package.as_str())
        || is_accessible(site, &here, &package, &symbol.name);
    (!is_known).then_some(symbol.name)
}

/// A symbol in a text that is read in a package.
struct Occurrence {
    span: Span,
    written: String,
    package: Option<String>,
}

/// Returns the symbols with a name in the parts of a text that are read in a package.
fn occurrences(document: &Document, package: &str, name: &str) -> Vec<Occurrence> {
    occurrences_of(document, package, |symbol| symbol == name)
}

/// Returns the symbols whose names are wanted in the parts of a text that are read in a package.
fn occurrences_of(document: &Document, package: &str, wanted: impl Fn(&str) -> bool) -> Vec<Occurrence> {
    let text = document.text().to_string();
    let tree = Tree::of(&text, document.scan());
    let mut found = Vec::new();
    let mut chars = (0, 0);
    for id in tree.ids().skip(1) {
        let node = tree.node(id);
        if node.kind != Kind::Atom {
            continue;
        }
        let written = tree.text_of(id);
        if written.starts_with('#') || in_feature(&tree, id) {
            continue;
        }
        let Some(symbol) = tree.symbol(id).filter(|symbol| wanted(&symbol.name)) else { continue };
        let start = chars.1 + text.get(chars.0..node.start).map_or(0, |part| part.chars().count());
        chars = (node.start, start);
        if package_at(document, start).as_deref() != Some(package) {
            continue;
        }
        let span = Span { start, end: start + written.chars().count() };
        found.push(Occurrence { span, written: written.to_owned(), package: symbol.package });
    }
    found
}

/// Returns true if a node is within a feature expression (`#+`, `#-`), which is read in the KEYWORD
/// package.
fn in_feature(tree: &Tree, id: NodeId) -> bool {
    let (mut child, mut parent) = (id, tree.node(id).parent);
    while parent != ROOT {
        if tree.node(parent).kind == Kind::Guarded && tree.elements(parent).next() == Some(child) {
            return true;
        }
        (child, parent) = (parent, tree.node(parent).parent);
    }
    false
}

fn without_prefix(site: &Site, here: &str, package: &str, name: &str, written: &str) -> Option<Refactoring> {
    // An internal name may have been renamed in the meantime, which the text does not show.
    if written.contains("::") || package == here {
        return None;
    }
    let (other, definition) = package_definition(site, here)?;
    let bare = &written[names::prefix_length(written)..];
    if is_accessible(site, here, package, name) {
        let title = format!("Drop the prefix of {bare}");
        let edits = cuts(&occurrences(site.document, here, name), package);
        return Some(Refactoring::new("drop-prefix", Group::Rewrite, title, Ok(edits)));
    }
    let title = format!("Import {bare} from {} and drop its prefix", package.to_lowercase());
    let id = "drop-prefix";
    if site.names.nicknames.iter().any(|nickname| nickname == package) {
        let why =
            format!("{} is a nickname that only this package knows: import from its own name", package.to_lowercase());
        return Some(Refactoring::new(id, Group::Rewrite, title, Err(why)));
    }
    if imported_from(&definition, name).as_deref() != Some(package)
        && let Err(why) = check_free(site, here, name, bare)
    {
        return Some(Refactoring::new(id, Group::Rewrite, title, Err(why)));
    }
    let all = occurrences(site.document, here, name);
    let mut edits = cuts(&all, package);
    if let Some(change) = add(&definition, &Clause::ImportFrom(&package.to_lowercase(), &name.to_lowercase())) {
        edits.push(Edit { span: change.span, text: change.text, cluster: usize::MAX, other });
    }
    Some(Refactoring::new(id, Group::Rewrite, title, Ok(edits)))
}

/// Refuses a name that another form in the package writes without a prefix.
fn check_free(site: &Site, here: &str, name: &str, bare: &str) -> Result<(), String> {
    let packages = site.index.packages();
    let here = packages.package_name(here, "");
    for (document, top) in elsewhere::forms(site, name)? {
        if package_at(document, top.start).is_some_and(|package| packages.package_name(&package, "") == here)
            && elsewhere::symbols(document, top, name)
                .iter()
                .any(|(written, prefix)| prefix.is_none() && !written.starts_with("#:"))
        {
            return Err(format!("{bare} without a prefix is another symbol in this package"));
        }
    }
    Ok(())
}

/// Returns true if a name without a prefix is the same symbol as with the prefix, by the package
/// definitions in the texts. The package then uses the other package, or imports the name.
fn is_accessible(site: &Site, here: &str, prefix: &str, name: &str) -> bool {
    let packages = site.index.packages();
    let home = packages.home(&packages.package_name(prefix, here), name);
    packages.get(here).is_some_and(|here| here.name != home && packages.home(&here.name, name) == home)
}

/// Returns the edits that remove the prefix `package:` from names.
fn cuts(all: &[Occurrence], package: &str) -> Vec<Edit> {
    let with = all.iter().filter(|one| one.package.as_deref() == Some(package) && !one.written.contains("::"));
    let cut = |one: &Occurrence| {
        let cut = one.written[..names::prefix_length(&one.written)].chars().count();
        let span = Span { start: one.span.start, end: one.span.start + cut };
        Edit { span, text: String::new(), cluster: span.start, other: None }
    };
    with.map(cut).collect()
}

/// Returns the refactoring that replaces a package's name by its local nickname, in the prefixes
/// throughout the text.
fn with_nickname(site: &Site, here: &str, prefix: &str) -> Option<Refactoring> {
    let packages = site.index.packages();
    let known = packages.get(here)?;
    let meant = packages.package_name(prefix, here);
    if known.local.contains_key(prefix) {
        return None;
    }
    let mut nicknames: Vec<&String> =
        known.local.keys().filter(|nickname| packages.package_name(nickname, here) == meant).collect();
    nicknames.sort();
    let nickname = names::as_written(nicknames.first()?);
    let title = format!("Write {nickname}: for {}: throughout this file", prefix.to_lowercase());
    let with = occurrences_of(site.document, here, |_| true).into_iter();
    let edits = with.filter(|one| one.package.as_deref() == Some(prefix)).map(|one| {
        let end = one.written.find(':').map_or(0, |at| one.written[..at].chars().count());
        let span = Span { start: one.span.start, end: one.span.start + end };
        Edit { span, text: nickname.clone(), cluster: span.start, other: None }
    });
    Some(Refactoring::new("use-nickname", Group::Rewrite, title, Ok(edits.collect())))
}

fn with_prefix(site: &Site, here: &str, name: &str) -> Option<Refactoring> {
    let (_, definition) = package_definition(site, here)?;
    let package = imported_from(&definition, name)?;
    let packages = site.index.packages();
    let is_internal = |package: &PackageText| !package.exports.contains(name) && package.reexports.is_empty();
    let colons = if packages.get(&packages.package_name(&package, here)).is_some_and(is_internal) { "::" } else { ":" };
    let prefix = format!("{}{colons}", package.to_lowercase());
    let title = format!("Write {prefix}{} throughout this file", name.to_lowercase());
    if site.scopes.resolve(site.selection.start).is_some() {
        return None;
    }
    let bare = occurrences(site.document, here, name).into_iter().filter(|one| one.package.is_none());
    let edits = bare.map(|one| {
        let span = Span { start: one.span.start, end: one.span.start };
        Edit { span, text: prefix.clone(), cluster: span.start, other: None }
    });
    Some(Refactoring::new("add-prefix", Group::Rewrite, title, Ok(edits.collect())))
}
