//! The symbol that a name denotes, according to the package definitions in the texts.

use crate::ide::hyperspec;
use crate::ide::index::Packages;
use crate::text::names;

/// Returns true if `written` denotes the symbol `name` of the home package `home`. The current
/// package is `current`, or CL-USER if it is not known.
pub(super) fn denotes(
    written: &names::Symbol,
    current: Option<&str>,
    packages: &Packages<'_>,
    home: &str,
    name: &str,
) -> bool {
    let current = current.unwrap_or("COMMON-LISP-USER");
    let package =
        written.package.as_deref().map_or_else(|| current.to_owned(), |prefix| packages.package_name(prefix, current));
    written.name == name && packages.home(&package, name) == home
}

/// Returns true if `name` in `package` denotes a symbol of COMMON-LISP, because the package uses
/// COMMON-LISP and does not shadow or import the name. A package that no text defines counts as not
/// using COMMON-LISP, except CL-USER.
pub(super) fn is_standard_symbol(packages: &Packages<'_>, package: &str, name: &str) -> bool {
    let inherits = match packages.get(package) {
        Some(known) => {
            let uses = known.uses.iter().any(|used| matches!(used.as_str(), "CL" | "COMMON-LISP"));
            uses && !known.shadows.contains(name) && !known.imports.contains_key(name)
        }
        None => matches!(package, "COMMON-LISP-USER" | "CL-USER"),
    };
    inherits && !name.contains(char::is_lowercase) && hyperspec::page_of_symbol(&name.to_lowercase()).is_some()
}

/// Returns the symbol of a definition's name, as written.
pub(super) fn symbol_of(written: &str) -> Option<&str> {
    written.trim_start_matches('(').trim_end_matches(')').split_whitespace().next_back()
}
