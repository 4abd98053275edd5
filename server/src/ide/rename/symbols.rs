//! Symbols as the texts tell of them: which one a name is, and which are the standard's.

use crate::ide::hyperspec;
use crate::ide::index::Packages;
use crate::text::names;

/// Returns true if a symbol as written in a package is the one of that name and home package.
pub(super) fn is_it(
    symbol: &names::Symbol,
    here: Option<&str>,
    packages: &Packages<'_>,
    home: &str,
    name: &str,
) -> bool {
    let here = here.unwrap_or("COMMON-LISP-USER");
    let package = symbol.package.as_deref().map_or_else(|| here.to_owned(), |prefix| packages.named(prefix, here));
    symbol.name == name && packages.home(&package, name) == home
}

/// Returns true if a name in a package is a symbol of the standard, as far as the texts tell.
pub(super) fn is_of_standard(packages: &Packages<'_>, package: &str, name: &str) -> bool {
    let sees = match packages.get(package) {
        Some(known) => {
            let uses = known.uses.iter().any(|used| matches!(used.as_str(), "CL" | "COMMON-LISP"));
            uses && !known.shadows.contains(name) && !known.imports.contains_key(name)
        }
        None => matches!(package, "COMMON-LISP-USER" | "CL-USER"),
    };
    sees && !name.contains(char::is_lowercase) && hyperspec::page_of_symbol(&name.to_lowercase()).is_some()
}
