//! The sets of occurrences of a name that may belong to one binding, as the text shows them.

use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::scopes::{Binding, Scopes};

/// The maximum number of sets of occurrences that are compared.
pub(super) const VARIANTS: usize = 12;

/// A set of occurrences that may belong to one binding.
pub(super) type Spans = Vec<Span>;

/// Returns the occurrences of a name in a form, each with true if it is in quoted data.
pub(super) fn sites(form: &Form, key: &str) -> Vec<(Span, bool)> {
    fn visit(form: &Form, node: &Node, key: &str, quoted: bool, found: &mut Vec<(Span, bool)>) {
        let quoted = match node.prefix {
            Prefix::Quote | Prefix::Backquote => true,
            Prefix::Comma => false,
            _ => quoted,
        };
        if node.kind == Kind::Atom && form.name(node).is_some_and(|name| name == key) {
            found.push((node.span, quoted));
        }
        node.children.iter().for_each(|child| visit(form, child, key, quoted, found));
    }
    let mut found = Vec::new();
    form.nodes.iter().for_each(|node| visit(form, node, key, false, &mut found));
    found
}

/// Returns the sets of occurrences that each list around the cursor may bind, innermost first.
/// There are two sets for each list: without the occurrences that the scopes resolve to other
/// bindings, and with them.
pub(super) fn guesses(
    form: &Form,
    scopes: &Scopes,
    bound: Option<usize>,
    sites: &[(Span, bool)],
    offset: usize,
) -> Vec<Spans> {
    let mut found = Vec::new();
    let own = bound.map(|index| scopes.bindings[index].span);
    for node in form.path(offset).into_iter().rev().filter(|node| node.kind == Kind::List) {
        let within: Spans = sites
            .iter()
            .filter(|(span, quoted)| !quoted && node.span.start <= span.start && span.end <= node.span.end)
            .map(|(span, _)| *span)
            .collect();
        let others = |span: &Span| {
            let meant = scopes.resolve(span.start).map(|index| scopes.bindings[index].span);
            meant.is_some() && meant != own
        };
        let without: Spans = within.iter().copied().filter(|span| !others(span)).collect();
        found.extend([without, within]);
    }
    let around = |span: &Span| span.start <= offset && offset <= span.end;
    found.retain(|spans| spans.iter().any(around) && spans.len() > 1);
    found
}

/// Returns the occurrences of a binding, and those that the scopes do not resolve, as in the
/// definition of a local macro.
pub(super) fn hidden_too(scopes: &Scopes, own: Option<&Spans>, sites: &[(Span, bool)]) -> Option<Spans> {
    let own = own?;
    let mut all: Spans = own.clone();
    all.extend(sites.iter().map(|(span, _)| *span).filter(|span| scopes.resolve(span.start).is_none()));
    all.sort();
    all.dedup();
    Some(all)
}

/// Returns sets of occurrences for macros that bind like `let`: `(my-let (x value) ...)`. If the
/// cursor is at an occurrence of the macro's binding, a set has the occurrences within the call but
/// not in the value. Otherwise, it has the occurrences in `own` without these.
pub(super) fn bound_by_macros(
    form: &Form,
    around: &[String],
    sites: &[(Span, bool)],
    own: Option<&Spans>,
    offset: usize,
) -> Vec<Spans> {
    fn values(node: &Node, sites: &[(Span, bool)], found: &mut Spans) {
        let is_site = |name: &Node| sites.iter().any(|(span, _)| *span == name.span);
        match node.children.as_slice() {
            [name, value, ..] if is_site(name) => {
                found.push(Span { start: value.span.start, end: node.span.end });
            }
            children => children.iter().for_each(|child| values(child, sites, found)),
        }
    }
    fn calls<'a>(form: &Form, node: &'a Node, around: &[String], found: &mut Vec<&'a Node>) {
        if form.operator(node).is_some_and(|operator| around.contains(&operator)) {
            found.push(node);
        }
        node.children.iter().for_each(|child| calls(form, child, around, found));
    }
    let within = |outer: &Span, inner: &Span| outer.start <= inner.start && inner.end <= outer.end;
    let at_cursor = |span: &Span| span.start <= offset && offset <= span.end;
    let mut macros = Vec::new();
    form.nodes.iter().for_each(|node| calls(form, node, around, &mut macros));
    let mut found = Vec::new();
    for call in macros.into_iter().take(VARIANTS) {
        let mut outside = Vec::new();
        call.children.get(1).into_iter().for_each(|bindings| values(bindings, sites, &mut outside));
        if outside.is_empty() {
            continue;
        }
        let code = sites.iter().filter(|(_, quoted)| !quoted).map(|(span, _)| *span);
        let inner: Spans =
            code.filter(|span| within(&call.span, span) && !outside.iter().any(|value| within(value, span))).collect();
        if inner.iter().any(at_cursor) {
            found.push(inner);
        } else if let Some(own) = own {
            found.push(own.iter().copied().filter(|span| !inner.contains(span)).collect());
        }
    }
    found.retain(|spans: &Spans| spans.len() > 1);
    found.truncate(VARIANTS / 2);
    found
}

/// Returns the form that makes a binding: the smallest list with the binding and all of its scopes.
pub(super) fn binder(form: &Form, binding: &Binding) -> Option<Span> {
    let scopes = || binding.scopes.iter().chain(binding.shared.as_deref().unwrap_or_default());
    let holds = |node: &&Node| {
        node.kind == Kind::List && scopes().all(|one| node.span.start <= one.start && one.end <= node.span.end)
    };
    form.path(binding.span.start).into_iter().rev().find(holds).map(|node| node.span)
}
