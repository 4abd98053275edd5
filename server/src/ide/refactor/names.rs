//! Global names: the names of special variables, the names in use, and whether the standard's names
//! in a form are the standard's symbols.

use std::collections::HashSet;

use super::readtables::first_reader;
use crate::ide::hyperspec::page_of_symbol;
use crate::ide::index::{Packages, Snapshot};
use crate::text::datum::{Form, Kind, Node};
use crate::text::document::Document;
use crate::text::names;

/// The packages in which the standard's names are the standard's symbols.
pub(super) const STANDARD: [&str; 6] =
    ["CL", "COMMON-LISP", "CLOSER-COMMON-LISP", "C2CL", "COMMON-LISP-USER", "CL-USER"];

/// The known global names.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Names that are special variables, constants or symbol macros in some package.
    variables: HashSet<String>,
    /// Names that are operators in some package.
    operators: HashSet<String>,
    /// Names with a setf expander.
    expanders: HashSet<String>,
    /// Names that the form declares special.
    declared: HashSet<String>,
    /// The local nicknames of packages where the form is read.
    pub(super) nicknames: Vec<String>,
    /// The reason why the form cannot be understood by the standard's syntax and names.
    pub(super) not_standard_reason: Option<String>,
}

impl Names {
    /// Collects the names that the workspace's texts define, for a form that is read in `package`.
    pub(super) fn of(index: &Snapshot, document: &Document, form: &Form, package: Option<&str>) -> Names {
        let mut names =
            Names { not_standard_reason: not_standard_reason(index, document, form, package), ..Names::default() };
        for one in index.files.iter().flat_map(|file| &file.definitions) {
            match one.kind() {
                kind if is_variable_kind(kind) => names.add_variable(&one.key),
                "setf expander" => {
                    names.expanders.insert(one.key.clone());
                }
                _ => names.add_operator(&one.key),
            }
            one.accessors.iter().for_each(|accessor| names.add_operator(&crate::text::definitions::key(accessor)));
        }
        special_declarations(form, &form.nodes, &mut names.declared);
        let packages = index.packages();
        if let Some(here) = package.and_then(|package| packages.get(package)) {
            names.nicknames = here.local.keys().cloned().collect();
        }
        names
    }

    pub(super) fn add_variable(&mut self, name: &str) {
        self.variables.insert(name.to_owned());
    }

    pub(super) fn add_operator(&mut self, name: &str) {
        self.operators.insert(name.to_owned());
    }

    /// Returns true if a variable with this name may be special or constant.
    pub(super) fn is_global(&self, name: &str) -> bool {
        is_marked(name) || self.is_declared(name) || self.is_known_global(name)
    }

    /// Returns true if the form declares a variable of this name special.
    pub(super) fn is_declared(&self, name: &str) -> bool {
        self.declared.contains(name)
    }

    /// Returns true if a variable of this name is known to be special or constant.
    pub(super) fn is_known_global(&self, name: &str) -> bool {
        self.variables.contains(name) || is_standard_variable(name)
    }

    /// Returns true if a name has a setf expander, so that a place with this name may not evaluate
    /// its arguments.
    pub(super) fn is_expander(&self, name: &str) -> bool {
        self.expanders.contains(name)
    }

    /// Returns true if an operator or a standard symbol has this name, so that a new function must
    /// not be given it.
    pub(super) fn is_operator(&self, name: &str) -> bool {
        self.operators.contains(name) || page_of_symbol(name).is_some()
    }
}

/// Returns true for the standard's variables and constants.
pub(in crate::ide) fn is_standard_variable(name: &str) -> bool {
    matches!(name, "t" | "nil") || page_of_symbol(name).is_some_and(|page| page.starts_with("v_"))
}

/// Returns true if a symbol is written with the prefix of a package that is not the standard's.
pub(in crate::ide) fn has_other_prefix(written: &str) -> bool {
    names::other_package(written).is_some()
}

/// Adds the names in lists such as `(special x y)` to `found`, also outside of declarations.
fn special_declarations(form: &Form, nodes: &[Node], found: &mut HashSet<String>) {
    for node in nodes {
        if form.operator(node).as_deref() == Some("special") {
            found.extend(node.children.iter().skip(1).filter_map(|name| form.name(name)));
        }
        special_declarations(form, &node.children, found);
    }
}

/// Returns the reason why a form cannot be understood by the standard's syntax and names: labels, a
/// changed readtable, or a symbol of another package with a standard name.
fn not_standard_reason(index: &Snapshot, document: &Document, form: &Form, package: Option<&str>) -> Option<String> {
    let mut written = Vec::new();
    atoms(form, &form.nodes, &mut written);
    if written.iter().any(|atom| is_label(atom)) || form.nodes.iter().any(|node| node_has_labels(form, node)) {
        return Some("the form has labels (#1=), which tie its parts together".into());
    }
    if let Some((_, reader)) = first_reader(document, form.span.start) {
        return Some(format!("{reader} changes how the text is read"));
    }
    other_names(&index.packages(), &written, package).map(|name| format!("{name} is not the standard's here"))
}

fn other_names(packages: &Packages, written: &[&str], package: Option<&str>) -> Option<String> {
    let here = package.and_then(|package| packages.get(package));
    let mut seen = HashSet::new();
    written.iter().filter(|atom| seen.insert(**atom)).find_map(|atom| {
        let symbol = names::symbol(atom)?;
        let standard = page_of_symbol(&symbol.name.to_lowercase()).is_some();
        let other = match (&symbol.package, here) {
            _ if !standard => false,
            (Some(_), _) => has_other_prefix(atom),
            (None, Some(here)) => {
                let imported = here.imports.get(&symbol.name);
                let foreign = |from: &String| !STANDARD.contains(&packages.package_name(from, &here.name).as_str());
                let home = packages.home(&here.name, &symbol.name);
                let inherits = here.uses.iter().any(|used| STANDARD.contains(&used.as_str()));
                match imported {
                    Some(from) => foreign(from),
                    None => !inherits || here.shadows.contains(&symbol.name) || home != here.name && foreign(&home),
                }
            }
            (None, None) => false,
        };
        other.then(|| (*atom).to_owned())
    })
}

fn atoms<'a>(form: &'a Form, nodes: &[Node], found: &mut Vec<&'a str>) {
    for node in nodes {
        if node.kind == Kind::Atom {
            found.push(form.text(node));
        }
        atoms(form, &node.children, found);
    }
}

/// Returns true for a reference to a label, such as `#1#`.
fn is_label(written: &str) -> bool {
    let digits = written.strip_prefix('#').and_then(|rest| rest.strip_suffix('#'));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns true if a node or a node in it has a label, such as `#1=(...)`.
fn node_has_labels(form: &Form, node: &Node) -> bool {
    let before = form.written(node);
    let before = &before[..before.len() - form.text(node).len()];
    let labelled = before.split('#').skip(1).any(|part| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && matches!(part.as_bytes().get(digits), Some(b'=' | b'#'))
    });
    labelled || node.children.iter().any(|child| node_has_labels(form, child))
}

/// Returns true if a text of the workspace defines a variable or constant of this name.
pub(in crate::ide) fn defines_variable(index: &Snapshot, name: &str) -> bool {
    index.mentioning(name).flat_map(|file| &file.definitions).any(|one| one.key == name && is_variable_kind(one.kind()))
}

/// Returns true if a kind of [`crate::text::definitions::kind_of`] is that of variables, constants
/// or symbol macros.
pub(in crate::ide) fn is_variable_kind(kind: &str) -> bool {
    matches!(kind, "variable" | "constant" | "symbol macro" | "define-constant")
}

/// Returns true if a name is written like that of a special variable or constant: `*x*`, `+x+`.
pub(in crate::ide) fn is_marked(name: &str) -> bool {
    ['*', '+'].iter().any(|mark| name.len() > 2 && name.starts_with(*mark) && name.ends_with(*mark))
}

/// Returns true if a form declares a variable of this name special.
pub(in crate::ide) fn is_declared_special(form: &Form, name: &str) -> bool {
    let mut found = HashSet::new();
    special_declarations(form, &form.nodes, &mut found);
    found.contains(name)
}

/// Returns the first name that looks like a standard name but is another symbol in `package`. The
/// names are those of the nodes, and of the operators of those nodes that are lists.
pub(in crate::ide) fn first_other<'a>(
    packages: &Packages,
    form: &'a Form,
    nodes: impl Iterator<Item = &'a Node>,
    package: Option<&str>,
) -> Option<String> {
    let head = |node: &'a Node| if node.kind == Kind::List { node.children.first() } else { Some(node) };
    let written: Vec<&str> =
        nodes.filter_map(head).filter(|node| node.kind == Kind::Atom).map(|node| form.text(node)).collect();
    other_names(packages, &written, package)
}

/// Returns true if a form may not be read as it is written, because the readtable was changed
/// before it, or because it has labels.
pub(in crate::ide) fn may_read_differently(document: &Document, form: &Form) -> bool {
    first_reader(document, form.span.start).is_some() || has_labels(form)
}

/// Returns true if a form has labels (`#1=`).
pub(in crate::ide) fn has_labels(form: &Form) -> bool {
    form.nodes.iter().any(|node| node_has_labels(form, node))
}
