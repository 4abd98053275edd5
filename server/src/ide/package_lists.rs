//! The lists of names in the clauses of a package definition: sorting them, and removing a name.

use super::index::designated;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};

/// Clauses in which the order of names does not matter, with the number of elements before the
/// names.
const CLAUSES: [(&str, usize); 6] = [
    (":export", 1),
    (":import-from", 2),
    (":shadowing-import-from", 2),
    (":shadow", 1),
    (":intern", 1),
    (":unexport", 1),
];

/// A span of the document, and its replacement.
pub type Replacement = (Span, String);

/// Returns true for a list that defines a package.
pub fn is_definition(form: &Form, list: &Node) -> bool {
    list.is_list() && matches!(form.operator(list).as_deref(), Some("defpackage" | "define-package"))
}

/// Returns the names of a clause in `CLAUSES`, or none for another clause.
pub fn names<'a>(form: &Form, clause: &'a Node) -> &'a [Node] {
    if !clause.is_list() {
        return &[];
    }
    let head = clause.elements().first().and_then(|head| form.name(head)).unwrap_or_default();
    let known = CLAUSES.iter().find(|(name, _)| *name == head);
    known.and_then(|(_, before)| clause.elements().get(*before..)).unwrap_or_default()
}

/// Returns the replacements that sort names. Each name takes the place of another, so that the
/// lines stay as they are.
///
/// # Errors
/// The reason why the order of the names is not changed.
pub fn sorted(form: &Form, names: &[Node]) -> Result<Vec<Replacement>, String> {
    let (Some(first), Some(last)) = (names.first(), names.last()) else { return Ok(Vec::new()) };
    let mut keyed: Vec<(String, &Node)> = Vec::new();
    for node in names {
        let name = designated(form, node).filter(|_| node.is_plain() && node.kind != Kind::List);
        let Some(name) = name else { return Err("a name is read only with some features, or is no name".into()) };
        keyed.push((name, node));
    }
    keyed.sort_by(|(one, _), (other, _)| one.cmp(other));
    let moved: Vec<(&Node, &Node)> = names
        .iter()
        .zip(keyed.into_iter().map(|(_, node)| node))
        .filter(|(one, other)| !std::ptr::eq(*one, *other))
        .collect();
    let between = form.source.get(first.start()..last.end()).unwrap_or_default();
    if !moved.is_empty() && (between.contains(';') || between.contains("#|")) {
        return Err("comments stand between the names, and it is not known which they are about".into());
    }
    Ok(moved.into_iter().map(|(one, other)| (one.span, form.written(other).to_owned())).collect())
}

/// Returns the removal of a name from its clause, with the space before it, or `None` if a comment
/// would be removed.
pub fn without(form: &Form, clause: &Node, name: &Node) -> Option<Replacement> {
    let at = clause.children.iter().position(|child| std::ptr::eq(child, name))?;
    let before = clause.children.get(at.checked_sub(1)?)?;
    let between = form.source.get(before.end()..name.start())?;
    between.trim().is_empty().then(|| (Span { start: before.span.end, end: name.span.end }, String::new()))
}
