//! The macros around a name that may bind the name, if the text does not show whether they do.

use std::collections::HashSet;

use crate::ide::context::{Backend, Cursor};
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};
use crate::text::definitions;
use crate::text::scopes::{Namespace, Scopes};

/// Well-known operators with names like those of a user's macros (`with-`, `do-`, `def`). Their
/// expansions are not needed.
const STANDARD: [&str; 43] = [
    "with-open-file",
    "with-open-stream",
    "with-input-from-string",
    "with-output-to-string",
    "with-slots",
    "with-accessors",
    "with-simple-restart",
    "with-condition-restarts",
    "with-standard-io-syntax",
    "with-compilation-unit",
    "do-symbols",
    "do-external-symbols",
    "do-all-symbols",
    "defun",
    "defmacro",
    "defmethod",
    "defgeneric",
    "deftype",
    "defvar",
    "defparameter",
    "defconstant",
    "defclass",
    "define-condition",
    "defstruct",
    "define-compiler-macro",
    "define-setf-expander",
    "define-modify-macro",
    "define-symbol-macro",
    "defglobal",
    "with-gensyms",
    "with-unique-names",
    "with-mutex",
    "with-lock-held",
    "with-timeout",
    "with-package-iterator",
    "with-hash-table-iterator",
    "with-recursive-lock",
    "with-recursive-lock-held",
    "with-locked-hash-table",
    "with-pinned-objects",
    "defsetf",
    "defpackage",
    "define-load-time-global",
];

/// Returns the operators of those lists containing the name that may be macros unknown to the text.
/// `within` is the form that binds the name, if it is known. Lists around that form are left out,
/// because they contain all of it and cannot separate its occurrences.
pub(super) async fn possible_macros<B: Backend>(
    cursor: &Cursor<B>,
    form: &Form,
    key: &str,
    within: Option<Span>,
) -> Vec<String> {
    fn visit(form: &Form, node: &Node, key: &str, within: Option<Span>, found: &mut Vec<String>) -> bool {
        if node.kind == Kind::Atom {
            return form.name(node).is_some_and(|name| name == key);
        }
        let mut has = false;
        for child in &node.children {
            has |= visit(form, child, key, within, found);
        }
        let inside = within.is_none_or(|within| within.start <= node.span.start && node.span.end <= within.end);
        if has
            && inside
            && let Some(operator) = form.operator(node).filter(|operator| !found.contains(operator))
        {
            found.push(operator);
        }
        has
    }
    let mut found: Vec<String> = Vec::new();
    for node in &form.nodes {
        visit(form, node, key, within, &mut found);
    }
    let mut texts = cursor.context.texts();
    let defined: HashSet<String> = texts
        .known()
        .await
        .flat_map(|text| found.iter().flat_map(|name| definitions::named(&text.document, name)))
        .filter(|one| one.operator == "defmacro")
        .map(|one| one.key)
        .collect();
    let named_so = |name: &String| {
        (name.starts_with("with-") || name.starts_with("do-") || name.starts_with("def"))
            && !STANDARD.contains(&name.as_str())
            && !name.starts_with("default")
    };
    found.retain(|name| named_so(name) || defined.contains(name));
    found
}

/// Returns true if one of the macros in `around` may bind the name at the cursor, which has no
/// binding in the scopes. This is the case if the name is used as a variable, or is where such
/// macros have their bindings.
pub(super) fn may_bind(form: &Form, scopes: &Scopes, key: &str, around: &[String], offset: usize) -> bool {
    fn reads(form: &Form, scopes: &Scopes, node: &Node, key: &str, depth: usize) -> bool {
        let is_it = node.kind == Kind::Atom && form.name(node).is_some_and(|name| name == key);
        is_it && depth > 1 && scopes.namespace_at(node.span) == Some(Namespace::Variable)
            || node.children.iter().any(|child| reads(form, scopes, child, key, depth + 1))
    }
    fn count(form: &Form, node: &Node, key: &str) -> usize {
        let is_it = node.kind == Kind::Atom && form.name(node).is_some_and(|name| name == key);
        usize::from(is_it) + node.children.iter().map(|child| count(form, child, key)).sum::<usize>()
    }
    let path = form.path(offset);
    path.iter().enumerate().any(|(at, list)| {
        let Some(operator) = form.operator(list).filter(|operator| around.contains(operator)) else { return false };
        let Some(inside) = path.get(at + 1) else { return false };
        // The first argument of `(define-thing name (x) ...)` is the defined name.
        if operator.starts_with("def") {
            let named = list.children.get(1).is_some_and(|name| name.span == inside.span);
            return !named && count(form, list, key) > 1 && reads(form, scopes, list, key, 0);
        }
        let first = list.children.get(1).is_some_and(|first| first.span == inside.span && first.kind == Kind::List);
        let last = path.last().is_some_and(|last| scopes.namespace_at(last.span) == Some(Namespace::Variable));
        first || last
    })
}
