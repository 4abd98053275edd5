//! Tests of a form: whether it is evaluated, whether control may leave it (`return`, `go`), and
//! whether a closure in it may capture its variables.

use super::place::steps;
use super::site::Site;
use crate::text::Span;
use crate::text::datum::Node;
use crate::text::definitions::EXPANDER_DEFINERS;

/// Operators that have a meaning only within a certain form, such as a method's body.
pub(super) const CONTEXT_DEPENDENT: [&str; 6] =
    ["call-next-method", "next-method-p", "loop-finish", "call-method", "make-method", "once-only"];

/// Checks that a list is evaluated as code. `parents` are the nodes around it, the top-level form
/// first.
///
/// # Errors
/// The reason why it is unknown whether the list is evaluated, as the end of a sentence about the
/// list.
pub(super) fn check_code(site: &Site, parents: &[&Node], list: &Node) -> Result<(), String> {
    let (top, within) = match parents {
        [top, rest @ ..] => (top, rest),
        [] => return steps(site, parents, list).map(drop),
    };
    let operator = site.form.operator(top).unwrap_or_default();
    let next = within.first().copied().unwrap_or(list);
    let index = top.children.iter().position(|child| std::ptr::eq(child, next));
    // The operator, the name and the lambda list come before the body.
    if top.is_list() && EXPANDER_DEFINERS.contains(&operator.as_str()) && index.is_some_and(|index| index > 2) {
        if within.iter().any(|node| node.guarded) || next.guarded {
            return Err("a part of it is read only with some features (#+, #-)".into());
        }
        return steps(site, within, list).map(drop);
    }
    match steps(site, parents, list)?.last() {
        Some(step) if !std::ptr::eq(step.child, list) => Err("it is not known how it is evaluated".into()),
        _ => Ok(()),
    }
}

/// Returns the first operator in `node` that depends on the forms around `node`: `return`,
/// `return-from`, `go`, and those of [`CONTEXT_DEPENDENT`].
pub(super) fn context_dependent_operator(site: &Site, node: &Node) -> Option<String> {
    if node.is_data() {
        return None;
    }
    if let Some(name) = site.form.name(node).filter(|name| CONTEXT_DEPENDENT.contains(&name.as_str())) {
        return Some(name);
    }
    let operator = site.form.operator(node).unwrap_or_default();
    if matches!(operator.as_str(), "return" | "return-from" | "go") {
        return Some(operator);
    }
    node.children.iter().find_map(|child| context_dependent_operator(site, child))
}

/// Returns true if the span `at` is in a closure within `from`, or may be in one that a macro
/// makes. Returns true, too, if `from` is not around `at`.
pub(super) fn is_in_closure(site: &Site, from: &Node, at: Span) -> bool {
    let chain = site.form.around(at);
    let Some(first) = chain.iter().position(|node| std::ptr::eq(*node, from)) else { return true };
    chain[first..].iter().any(|node| makes_closure(site, node))
}

fn makes_closure(site: &Site, node: &Node) -> bool {
    let Some(operator) = site.form.operator(node) else { return false };
    matches!(operator.as_str(), "lambda" | "named-lambda" | "flet" | "labels" | "macrolet" | "symbol-macrolet")
        || site.may_call_macro(node, &operator)
}
