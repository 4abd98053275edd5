//! A refactoring that writes the `defgeneric` of a method whose generic function has no definition.

use super::site::Site;
use super::verification::Accepted;
use super::{Group, Refactoring};
use crate::ide::hyperspec::page_of_symbol;
use crate::text::datum::{Kind, Node};
use crate::text::definitions::key;
use crate::text::forms::package_at;
use crate::text::names;

/// Used packages that need no definition in the texts.
const STANDARD: [&str; 2] = ["CL", "COMMON-LISP"];

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let list = *site.nearest(&["defmethod"])?.last()?;
    let name = list.children.get(1)?;
    if site.selection.end > name.span.end {
        return None;
    }
    let at = list.children.iter().skip(2).position(|node| node.kind == Kind::List)? + 2;
    let written = site.form.text(name);
    let known = key(written);
    let bare = known.trim_start_matches("(setf ").trim_end_matches(')').to_owned();
    let defined = |file: &std::sync::Arc<crate::ide::index::FileEntry>| {
        file.definitions.iter().any(|one| one.operator == "defgeneric" && one.key == known)
    };
    if written.contains([':', '|', '\\']) || page_of_symbol(&bare).is_some() || site.index.files.iter().any(defined) {
        return None;
    }
    let qualifiers = &list.children[2..at];
    let standard = |node: &Node| matches!(site.form.name(node).as_deref(), Some(":before" | ":after" | ":around"));
    if !qualifiers.iter().all(standard) {
        return None;
    }
    let title = format!("Define the generic function {written}");
    let result = || {
        check_nowhere_else(site, &bare)?;
        let parameters = lambda_list(site, &list.children[at])?;
        let code = format!("({} {written} ({parameters})){}{}", site.cased("defgeneric"), site.newline, site.newline);
        Ok(vec![site.edit(list.start(), list.start(), code)])
    };
    let has =
        |section: &str| list.children[at].children.iter().any(|one| site.form.name(one).as_deref() == Some(section));
    let accepted = if has("&optional") && has("&key") { vec![Accepted::OptionalAndKey] } else { Vec::new() };
    Some(Refactoring::new("define-generic", Group::Rewrite, title, result()).accepting(accepted))
}

/// Refuses a name whose symbol may belong to another package, since the new definition could
/// redefine that package's generic function.
fn check_nowhere_else(site: &Site, bare: &str) -> Result<(), String> {
    let packages = site.index.packages();
    let here = package_at(site.document, site.form.span.start).ok_or("no in-package form is before it")?;
    let package = packages.get(&here).ok_or_else(|| format!("no file defines the package {here}"))?;
    let name = names::symbol(bare).map(|symbol| symbol.name).unwrap_or_default();
    let home = packages.home(&here, &name);
    if home != package.name {
        return Err(format!("{bare} is a symbol of {home}"));
    }
    let unknown = |used: &&String| !STANDARD.contains(&used.as_str()) && packages.get(used).is_none();
    match package.uses.iter().find(unknown) {
        Some(used) => Err(format!("{bare} may be a symbol of {used}, which no file of the workspace defines")),
        None => Ok(()),
    }
}

/// Returns the lambda list of the generic function: that of the method without specializers,
/// defaults and keyword names, so that methods with other keywords are congruent, too (CLHS 7.6.4).
fn lambda_list(site: &Site, list: &Node) -> Result<String, String> {
    let mut parameters: Vec<&str> = Vec::new();
    let mut section = String::new();
    for node in &list.children {
        if !node.is_plain() {
            return Err("a parameter is read only with some features (#+, #-), or has a prefix".into());
        }
        let written = site.form.text(node);
        if written.starts_with('&') {
            section = written.to_lowercase();
            if section == "&aux" {
                break;
            }
            parameters.push(written);
            continue;
        }
        let name = if node.kind == Kind::List { node.children.first() } else { Some(node) };
        match section.as_str() {
            // Each method has keywords of its own.
            "&key" => {}
            _ => parameters.extend(name.map(|name| site.form.text(name))),
        }
    }
    Ok(parameters.join(" "))
}
