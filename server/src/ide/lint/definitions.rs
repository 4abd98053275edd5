//! Rules about the definitions of a text: unused definitions, and local functions that hide global
//! ones.

use std::collections::{HashMap, HashSet};

use super::workspace::{Whole, WorkspaceFinding};
use crate::ide::index::Indexed;
use crate::text::datum::{Form, Kind, Node};
use crate::text::definitions::structure_functions;
use crate::text::forms::package_at;
use crate::text::tree::{Kind as TreeKind, Tree};
use crate::text::{Span, names};

/// Operators whose definitions can only be used by their names.
const DEFINERS: [&str; 14] = [
    "defun",
    "defmacro",
    "defgeneric",
    "define-modify-macro",
    "defvar",
    "defparameter",
    "defconstant",
    "defglobal",
    "define-symbol-macro",
    "deftype",
    "defclass",
    "define-condition",
    "defstruct",
    "define-method-combination",
];

/// A definition that may be unused.
struct Candidate {
    /// The name as written.
    written: String,
    /// The span of the name.
    span: Span,
    /// The names by which the definition is used.
    names: Vec<String>,
}

/// Returns the definitions that nothing in the workspace mentions outside of themselves.
/// Definitions that a package exports, or that are not in a package of the workspace, are left out.
pub(super) fn unused_definitions(whole: &Whole) -> Vec<WorkspaceFinding> {
    // Roswell calls the `main` of a script (`.ros`).
    let script = whole.path.and_then(|path| path.extension()).is_some_and(|extension| extension == "ros");
    if !whole.is_known() || script {
        return Vec::new();
    }
    let entry = whole.entry();
    let candidates: Vec<Candidate> = entry.definitions.iter().filter_map(|one| candidate(whole, one)).collect();
    let wanted: HashSet<&str> = candidates.iter().flat_map(|one| &one.names).map(String::as_str).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut used = used_here(whole, &wanted, &entry.definitions);
    used.extend(wanted.iter().filter(|name| whole.others(name).next().is_some()).map(|name| (*name).to_owned()));
    let unused = candidates.into_iter().filter(|one| one.names.iter().all(|name| !used.contains(name)));
    unused
        .map(|one| {
            let message = format!(
                "Nothing in the workspace uses {}, and its package does not export it.",
                one.written.to_lowercase()
            );
            WorkspaceFinding { span: one.span, message }
        })
        .collect()
}

fn candidate(whole: &Whole, one: &Indexed) -> Option<Candidate> {
    let package = whole.packages.get(one.package.as_deref()?)?;
    let inner = one.written.strip_prefix("(setf ").and_then(|rest| rest.strip_suffix(')'));
    let symbol = names::symbol(inner.unwrap_or(&one.written).trim())?;
    let own = symbol.package.is_none() && whole.packages.home(&package.name, &symbol.name) == package.name;
    if !DEFINERS.contains(&one.operator.as_str()) || !own || whole.exports(&package.name, &symbol.name) {
        return None;
    }
    let mut all = vec![symbol.name];
    if one.operator == "defstruct" {
        let top = whole.document.scan().form_at(one.form.start)?;
        all.extend(structure_functions(&Form::of(whole.document, top.span), one.form));
        if all.iter().any(|name| whole.exports(&package.name, name)) {
            return None;
        }
    }
    Some(Candidate { written: one.written.clone(), span: one.name, names: all })
}

/// Returns the names among `wanted` that the text mentions outside of the definitions of the same
/// name.
fn used_here(whole: &Whole, wanted: &HashSet<&str>, definitions: &[Indexed]) -> HashSet<String> {
    let text = whole.document.text().to_string();
    let tree = Tree::of(&text, whole.document.scan());
    // The spans in bytes of the definitions of each name, in the order of the text.
    let mut own: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
    for one in definitions {
        let inner = one.written.strip_prefix("(setf ").and_then(|rest| rest.strip_suffix(')'));
        if let Some(symbol) = names::symbol(inner.unwrap_or(&one.written).trim()) {
            let bytes = |at: usize| whole.document.text().char_to_byte(at);
            own.entry(symbol.name).or_default().push((bytes(one.form.start), bytes(one.form.end)));
        }
    }
    let mut used = HashSet::new();
    let mut note = |name: &str, at: usize| {
        if !wanted.contains(name) || used.contains(name) {
            return;
        }
        let forms = own.get(name).map(Vec::as_slice).unwrap_or_default();
        let before = forms.partition_point(|(start, _)| *start <= at);
        if before == 0 || forms[before - 1].1 <= at {
            used.insert(name.to_owned());
        }
    };
    for id in tree.ids().skip(1) {
        let node = tree.node(id);
        match node.kind {
            TreeKind::Atom => {
                if let Some(symbol) = names::symbol(tree.text_of(id)) {
                    note(&symbol.name, node.start);
                }
            }
            TreeKind::String => {
                let words = tree.text_of(id).split(|char: char| char.is_whitespace() || "()\"';`,|\\:#".contains(char));
                words.for_each(|word| note(&word.to_uppercase(), node.start));
            }
            _ => {}
        }
    }
    used
}

/// Returns the local functions with the name of a global function or macro that the workspace
/// defines.
pub(super) fn shadowed_functions(whole: &Whole) -> Vec<WorkspaceFinding> {
    let mut globals: HashSet<(String, String)> = HashSet::new();
    for one in whole.index.files.iter().flat_map(|file| &file.definitions) {
        if matches!(one.kind(), "function" | "generic function" | "macro")
            && let Some(symbol) = names::symbol(&one.written)
        {
            let here = one.package.as_deref().unwrap_or("COMMON-LISP-USER");
            globals.insert(resolved(whole, &symbol, here));
        }
    }
    let mut found = Vec::new();
    for top in whole.document.scan().forms().iter().filter(|top| top.fault.is_none()) {
        if top.bytes.end - top.bytes.start > crate::ide::refactor::MAX_FORM_BYTES
            || crate::text::cancellation::should_stop()
        {
            continue;
        }
        let raw = whole.document.text().slice(top.span.start..top.span.end).to_string().to_lowercase();
        if !["flet", "labels"].iter().any(|operator| raw.contains(operator)) {
            continue;
        }
        let form = Form::of(whole.document, top.span);
        let here = package_at(whole.document, top.span.start).unwrap_or_else(|| "COMMON-LISP-USER".into());
        let mut local = Vec::new();
        form.nodes.iter().for_each(|node| local_functions(&form, node, &mut local));
        for name in local {
            let symbol = names::symbol(form.text(name)).filter(|symbol| symbol.package.as_deref() != Some(""));
            if symbol.is_some_and(|symbol| globals.contains(&resolved(whole, &symbol, &here))) {
                let shown = form.text(name).to_lowercase();
                let message = format!("Within this form {shown} is not the global function of that name.");
                found.push(WorkspaceFinding { span: name.span, message });
            }
        }
    }
    found
}

/// Returns the home package and the name of a symbol.
fn resolved(whole: &Whole, symbol: &names::Symbol, here: &str) -> (String, String) {
    let package =
        symbol.package.as_deref().map_or_else(|| here.to_owned(), |prefix| whole.packages.package_name(prefix, here));
    (whole.packages.home(&package, &symbol.name), symbol.name.clone())
}

/// Adds the names that `flet` and `labels` bind in unquoted code to `found`.
fn local_functions<'a>(form: &Form, node: &'a Node, found: &mut Vec<&'a Node>) {
    if node.kind != Kind::List || !node.is_plain() && node.prefix != crate::text::datum::Prefix::Function {
        return;
    }
    if matches!(form.operator(node).as_deref(), Some("flet" | "labels"))
        && let Some(bindings) = node.children.get(1).filter(|bindings| bindings.is_list())
    {
        let names = bindings.children.iter().filter(|one| one.is_list()).filter_map(|one| one.children.first());
        found.extend(names.filter(|name| name.kind == Kind::Atom && name.is_plain()));
    }
    node.children.iter().for_each(|child| local_functions(form, child, found));
}
