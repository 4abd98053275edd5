//! Exporting the name of a definition, and no longer exporting it.

use super::site::{Edit, Site};
use super::{Group, Refactoring};
use crate::ide::fixes::Change;
use crate::ide::fixes::packages::{Clause, Definition, add, without_export};
use crate::text::definitions;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::names;
use crate::text::tree::{Kind, Tree};

/// Operators whose definitions have a name that a package can export.
const EXPORTED: [&str; 12] = [
    "defun",
    "defmacro",
    "defgeneric",
    "defvar",
    "defparameter",
    "defconstant",
    "defglobal",
    "defclass",
    "defstruct",
    "define-condition",
    "deftype",
    "define-symbol-macro",
];

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let at = site.selection;
    let touches = |one: &definitions::Defined| one.name.start <= at.start && at.end <= one.name.end;
    let defined = definitions::in_form(site.form).into_iter().find(touches)?;
    if !EXPORTED.contains(&defined.operator.as_str()) || defined.written.starts_with(['(', '"']) {
        return None;
    }
    let symbol = names::symbol(&defined.written).filter(|symbol| symbol.package.is_none())?;
    if defined.written.contains(['|', '\\']) {
        return None;
    }
    let package = package_at(site.document, site.form.span.start)?;
    let (other, definition) = package_definition(site, &package)?;
    let shown = package.to_lowercase();
    let edit = |change: Change| Edit { span: change.span, text: change.text, cluster: 0, other };
    let written = defined.written.to_lowercase();
    if let Some(change) = add(&definition, &Clause::Export(&written)) {
        let title = format!("Export {written} from {shown}");
        return Some(Refactoring::new("export", Group::Rewrite, title, Ok(vec![edit(change)])));
    }
    let change = without_export(&definition, &symbol.name)?;
    let title = format!("Do not export {written} from {shown}");
    let mut texts = std::iter::once(site.document).chain(site.others.iter().map(|(_, other)| other));
    let result = match texts.any(|text| has_external(text, &package, &symbol.name)) {
        true => Err(format!("{shown}:{written} is written in an open file, which could not be read any more")),
        false => Ok(vec![edit(change)]),
    };
    Some(Refactoring::new("do-not-export", Group::Rewrite, title, result))
}

/// Returns true if a text mentions `package:name`, with one colon.
fn has_external(document: &Document, package: &str, name: &str) -> bool {
    let text = document.text().to_string();
    let tree = Tree::of(&text, document.scan());
    tree.ids().skip(1).filter(|id| tree.node(*id).kind == Kind::Atom && !tree.text_of(*id).contains("::")).any(|id| {
        let symbol = names::symbol(tree.text_of(id));
        symbol.is_some_and(|symbol| symbol.name == name && symbol.package.as_deref() == Some(package))
    })
}

/// The definition of a package: in this text (`None`), or in another one (its index in
/// [`Site::others`]).
pub(super) fn package_definition(site: &Site, package: &str) -> Option<(Option<usize>, Definition)> {
    if let Some(here) = Definition::find(site.document, package) {
        return Some((None, here));
    }
    let mut others = site.others.iter().enumerate();
    others.find_map(|(index, (_, other))| Some((Some(index), Definition::find(other, package)?)))
}
