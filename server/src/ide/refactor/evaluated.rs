//! The test that a form is code that is evaluated, and the effects that are possible there: jumps
//! out of it, and closures that keep its variables.

use super::place::{Step, steps};
use super::site::Site;
use crate::text::Span;
use crate::text::datum::{Node, Prefix};

/// Definitions whose bodies are code that runs when a program is compiled.
pub(super) const EXPANDERS: [&str; 4] = ["defmacro", "define-compiler-macro", "deftype", "define-setf-expander"];
/// Operators that leave a form, or mean something only where they are.
pub(super) const BOUND_TO_PLACE: [&str; 6] =
    ["call-next-method", "next-method-p", "loop-finish", "call-method", "make-method", "once-only"];

/// Checks that a list is code.
///
/// # Errors
/// The reason why that is not known.
pub(super) fn check_code(site: &Site, parents: &[&Node], list: &Node) -> Result<(), String> {
    let (top, within) = match parents {
        [top, rest @ ..] => (top, rest),
        [] => return steps(site, parents, list).map(drop),
    };
    let operator = site.form.operator(top).unwrap_or_default();
    let next = within.first().copied().unwrap_or(list);
    let index = top.children.iter().position(|child| std::ptr::eq(child, next));
    if top.is_list() && EXPANDERS.contains(&operator.as_str()) && index.is_some_and(|index| index > 2) {
        if within.iter().any(|node| node.guarded) || next.guarded {
            return Err("a part of it is read only with some features (#+, #-)".into());
        }
        return steps(site, within, list).map(drop);
    }
    let all: Vec<Step> = steps(site, parents, list)?;
    match all.last() {
        Some(step) if std::ptr::eq(step.child, list) => Ok(()),
        Some(_) => Err("it is not known how it is evaluated".into()),
        None => Ok(()),
    }
}

/// The operator by which control may leave a form for a place that its surroundings tell.
pub(super) fn jump(site: &Site, node: &Node) -> Option<String> {
    if node.prefix == Prefix::Quote {
        return None;
    }
    if let Some(name) = site.form.name(node).filter(|name| BOUND_TO_PLACE.contains(&name.as_str())) {
        return Some(name);
    }
    let operator = site.form.operator(node).unwrap_or_default();
    if matches!(operator.as_str(), "return" | "return-from" | "go") {
        return Some(operator);
    }
    node.children.iter().find_map(|child| jump(site, child))
}

/// Returns true if a place within `from` is in a closure, or may be in one that a macro makes.
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
