//! Refactorings that export the name of a definition, or remove its export.

use super::elsewhere;
use super::site::{Edit, Site};
use super::{Group, Refactoring};
use crate::ide::fixes::Change;
use crate::ide::fixes::packages::{Clause, Definition, add, without_export};
use crate::text::definitions;
use crate::text::forms::package_at;
use crate::text::names;

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

/// A definition whose name a package can export.
struct Exportable {
    written: String,
    /// The symbol name.
    name: String,
    package: String,
    /// The document with the package's definition, as [`Edit::other`] names it.
    other: Option<usize>,
    definition: Definition,
}

impl Exportable {
    /// Returns the definition whose name is selected.
    fn at(site: &Site) -> Option<Exportable> {
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
        Some(Exportable { written: defined.written.to_lowercase(), name: symbol.name, package, other, definition })
    }

    fn add(&self) -> Option<Change> {
        add(&self.definition, &Clause::Export(&self.written))
    }

    fn remove(&self) -> Option<Change> {
        without_export(&self.definition, &self.name)
    }
}

/// Returns the selected name, if it is exported. Its uses in other texts decide whether the export
/// can be removed.
pub(super) fn name_used_elsewhere(site: &Site) -> Option<String> {
    let one = Exportable::at(site)?;
    (one.add().is_none() && one.remove().is_some()).then_some(one.name)
}

pub(super) fn plan(site: &Site) -> Option<Refactoring> {
    let one = Exportable::at(site)?;
    let (written, shown) = (&one.written, one.package.to_lowercase());
    let edit = |change: Change| Edit { span: change.span, text: change.text, cluster: 0, other: one.other };
    if let Some(change) = one.add() {
        let title = format!("Export {written} from {shown}");
        return Some(Refactoring::new("export", Group::Rewrite, title, Ok(vec![edit(change)])));
    }
    let change = one.remove()?;
    let title = format!("Do not export {written} from {shown}");
    let result = check_not_needed(site, &one.package, &one.name).map(|()| vec![edit(change)]);
    Some(Refactoring::new("do-not-export", Group::Rewrite, title, result))
}

/// Checks that no text of the workspace needs the export of `name`. A text needs it if it writes
/// the name with the package's prefix and one colon, or if the name would be another symbol without
/// the export, as in a package that uses this one.
fn check_not_needed(site: &Site, package: &str, name: &str) -> Result<(), String> {
    let packages = site.index.packages();
    let package = packages.package_name(package, "");
    let mut changed = packages.get(&package).cloned().unwrap_or_default();
    changed.exports.remove(name);
    let after = packages.with_replaced(&changed);
    let changes = |from: &str| packages.home(from, name) != after.home(from, name);
    for (document, top) in elsewhere::forms(site, name)? {
        let here = package_at(document, top.start).map(|here| packages.package_name(&here, ""));
        let here = here.as_deref().unwrap_or_default();
        for (written, prefix) in elsewhere::symbols(document, top, name) {
            let needed = match prefix.as_deref() {
                Some("") => false,
                Some(prefix) => {
                    let named = packages.package_name(prefix, here);
                    (named == package && !written.contains("::")) || changes(&named)
                }
                None => !written.starts_with("#:") && changes(here),
            };
            if needed {
                let inside = if here.is_empty() { String::new() } else { format!(" in {}", here.to_lowercase()) };
                return Err(format!("{written} is written{inside}, where it would be another symbol or none"));
            }
        }
    }
    Ok(())
}

/// Returns the definition of a package, and the text in which it is: `None` for this text, or the
/// index of another one in [`Site::others`].
pub(super) fn package_definition(site: &Site, package: &str) -> Option<(Option<usize>, Definition)> {
    if let Some(here) = Definition::find(site.document, package) {
        return Some((None, here));
    }
    let mut others = site.others.iter().enumerate();
    others.find_map(|(index, (_, other))| Some((Some(index), Definition::find(other, package)?)))
}
