//! The effects of the evaluation of a form, as far as its text shows them.

use std::collections::HashSet;

use super::site::{Operator, Site};
use crate::text::datum::{Kind, Node, Prefix};
use crate::text::scopes::BindingKind;

/// Standard functions without side effects whose value depends only on the arguments.
pub(super) const PURE: [&str; 46] = [
    "+",
    "-",
    "*",
    "/",
    "1+",
    "1-",
    "=",
    "/=",
    "<",
    ">",
    "<=",
    ">=",
    "min",
    "max",
    "abs",
    "mod",
    "rem",
    "not",
    "null",
    "eq",
    "eql",
    "zerop",
    "plusp",
    "minusp",
    "evenp",
    "oddp",
    "numberp",
    "integerp",
    "rationalp",
    "floatp",
    "symbolp",
    "stringp",
    "consp",
    "listp",
    "atom",
    "characterp",
    "functionp",
    "char=",
    "char<",
    "char-code",
    "code-char",
    "logand",
    "logior",
    "logxor",
    "ash",
    "identity",
];
/// Standard functions without side effects whose value may depend on mutable state, or is a new
/// object each time.
pub(super) const STATE_DEPENDENT: [&str; 52] = [
    "car",
    "cdr",
    "caar",
    "cadr",
    "cdar",
    "cddr",
    "caddr",
    "cdddr",
    "first",
    "second",
    "third",
    "fourth",
    "rest",
    "last",
    "nth",
    "nthcdr",
    "elt",
    "aref",
    "svref",
    "char",
    "schar",
    "length",
    "getf",
    "get",
    "assoc",
    "member",
    "endp",
    "fill-pointer",
    "array-dimension",
    "symbol-name",
    "symbol-package",
    "string=",
    "string-equal",
    "equal",
    "equalp",
    "list",
    "list*",
    "cons",
    "append",
    "reverse",
    "copy-list",
    "copy-seq",
    "subseq",
    "vector",
    "string",
    "list-length",
    "type-of",
    "class-of",
    "typep",
    "slot-boundp",
    "boundp",
    "fboundp",
];
/// The functions in [`STATE_DEPENDENT`] that return a new object.
const MAKING: [&str; 10] =
    ["list", "list*", "cons", "append", "reverse", "copy-list", "copy-seq", "subseq", "vector", "string"];
/// Standard functions that signal no error for any arguments.
const TOTAL: [&str; 17] = [
    "not",
    "null",
    "eq",
    "eql",
    "numberp",
    "integerp",
    "rationalp",
    "floatp",
    "symbolp",
    "stringp",
    "consp",
    "listp",
    "atom",
    "characterp",
    "functionp",
    "identity",
    "values",
];
/// Macros of widespread libraries that assign to their first argument.
const MODIFYING: [&str; 16] = [
    "appendf",
    "nconcf",
    "maxf",
    "minf",
    "removef",
    "deletef",
    "unionf",
    "nunionf",
    "reversef",
    "nreversef",
    "coercef",
    "mulf",
    "divf",
    "notf",
    "ensuref",
    "zapf",
];
/// Operators that assign to their arguments. With each are the index of the first assigned argument
/// and the distance to the next one, or [`ONE_ARGUMENT`] if there is no next one.
const ASSIGNING: [(&str, usize, usize); 15] = [
    ("setq", 1, 2),
    ("setf", 1, 2),
    ("psetq", 1, 2),
    ("psetf", 1, 2),
    ("incf", 1, ONE_ARGUMENT),
    ("decf", 1, ONE_ARGUMENT),
    ("pop", 1, ONE_ARGUMENT),
    ("push", 2, ONE_ARGUMENT),
    ("pushnew", 2, ONE_ARGUMENT),
    ("remf", 1, ONE_ARGUMENT),
    ("rotatef", 1, 1),
    ("shiftf", 1, 1),
    ("ccase", 1, ONE_ARGUMENT),
    ("ctypecase", 1, ONE_ARGUMENT),
    ("check-type", 1, ONE_ARGUMENT),
];
/// The distance for operators that assign to one argument.
const ONE_ARGUMENT: usize = usize::MAX;
/// Iteration forms, whose variables change from one iteration to the next.
pub(super) const ITERATION_FORMS: [&str; 10] =
    ["do", "do*", "dolist", "dotimes", "loop", "prog", "prog*", "do-symbols", "do-external-symbols", "do-all-symbols"];

/// Adds to `found` the atoms to which a form assigns. An unknown macro counts as assigning to each
/// of its arguments that is a symbol.
pub(super) fn assignments<'a>(site: &Site<'a>, node: &'a Node, found: &mut Vec<&'a Node>) {
    if node.is_data() {
        return;
    }
    if let Some(operator) = site.form.operator(node) {
        let arguments = &node.children;
        let name = |node: &&Node| node.kind == Kind::Atom && node.prefix == Prefix::None;
        if let Some((_, from, step)) = ASSIGNING.iter().find(|(name, ..)| *name == operator) {
            for place in arguments.iter().skip(*from).step_by(*step) {
                assigned_variables(site, place, found);
            }
        } else if operator == "assert" {
            let places = arguments.get(2).into_iter().flat_map(|places| &places.children);
            places.for_each(|place| assigned_variables(site, place, found));
        } else if MODIFYING.contains(&operator.as_str()) {
            arguments.iter().skip(1).take(1).for_each(|place| assigned_variables(site, place, found));
        } else if operator == "multiple-value-setq" {
            found.extend(arguments.get(1).into_iter().flat_map(|names| &names.children).filter(name));
        } else if let Some(before) = macro_arguments(site, &operator) {
            found.extend(arguments.iter().skip(1).take(before).filter(name));
        }
    }
    node.children.iter().for_each(|child| assignments(site, child, found));
}

/// Returns the number of leading arguments to which a user's macro may assign. Returns `None` for
/// operators of the standard and for functions.
fn macro_arguments(site: &Site, operator: &str) -> Option<usize> {
    if crate::ide::hyperspec::page_of_symbol(operator).is_some() {
        return None;
    }
    match site.macros.operator(operator) {
        Operator::Unknown => Some(usize::MAX),
        Operator::Body(before) => Some(before),
        Operator::Function => None,
    }
}

/// Adds to `found` the variables to which an assignment to a place assigns. For the places `x` and
/// `(getf x :a)`, it is `x`. For `(values x y)`, they are `x` and `y`.
fn assigned_variables<'a>(site: &Site, place: &'a Node, found: &mut Vec<&'a Node>) {
    if place.kind == Kind::Atom && place.prefix == Prefix::None {
        found.push(place);
        return;
    }
    let name = site.form.operator(place).unwrap_or_default();
    let arguments = place.children.iter().skip(1);
    match name.as_str() {
        "" => {}
        "values" | "apply" => arguments.for_each(|inner| assigned_variables(site, inner, found)),
        "getf" => arguments.take(1).for_each(|inner| assigned_variables(site, inner, found)),
        "ldb" | "mask-field" | "the" | "truly-the" => {
            arguments.skip(1).for_each(|inner| assigned_variables(site, inner, found))
        }
        _ if crate::ide::hyperspec::page_of_symbol(&name).is_some() => {}
        _ if site.names.is_expander(&name) || site.macros.operator(&name) != Operator::Function => {
            arguments.for_each(|inner| assigned_variables(site, inner, found));
        }
        _ => {}
    }
}

/// Returns the indices of the bindings that are assigned anywhere in the top-level form, or that an
/// iteration form changes.
pub(super) fn changing(site: &Site) -> HashSet<usize> {
    let mut found = Vec::new();
    site.form.nodes.iter().for_each(|node| assignments(site, node, &mut found));
    let assigned = found.iter().filter_map(|node| site.scopes.resolve(node.span.start));
    let iterated = site.scopes.bindings.iter().enumerate();
    let iterated =
        iterated.filter(|(_, binding)| ITERATION_FORMS.contains(&binding.by.as_str())).map(|(index, _)| index);
    assigned.chain(iterated).collect()
}

/// Returns true if the form is a constant, a local variable that is never assigned, or a call of a
/// [`PURE`] function with such arguments.
pub(super) fn is_stable(site: &Site, node: &Node, changing: &HashSet<usize>) -> bool {
    if node.guarded || site.form.written(node).starts_with("#.") {
        return false;
    }
    match node.prefix {
        Prefix::Quote => return true,
        // A global function may be redefined.
        Prefix::Function => return site.scopes.resolve(node.span.start).is_some(),
        Prefix::None => {}
        _ => return false,
    }
    match node.kind {
        Kind::String | Kind::Vector => true,
        Kind::Atom => match site.form.name(node) {
            None => true,
            Some(name) if name.starts_with(':') || name == "nil" || name == "t" => true,
            Some(_) => site.scopes.resolve(node.span.start).is_some_and(|index| {
                !changing.contains(&index)
                    && !site.is_global(&site.scopes.bindings[index].name)
                    && site.scopes.bindings[index].kind != BindingKind::SymbolMacro
            }),
        },
        Kind::List => {
            let pure = site.form.operator(node).is_some_and(|name| {
                PURE.contains(&name.as_str()) && site.scopes.resolve(node.children[0].span.start).is_none()
            });
            pure && node.children.iter().skip(1).all(|child| is_stable(site, child, changing))
        }
    }
}

/// Returns true if evaluating the form is known to have no side effects.
pub(super) fn is_harmless(site: &Site, node: &Node) -> bool {
    if node.guarded || matches!(node.prefix, Prefix::Backquote | Prefix::Comma | Prefix::Other) {
        return false;
    }
    match node.kind {
        _ if matches!(node.prefix, Prefix::Quote | Prefix::Function) => true,
        Kind::String | Kind::Vector => true,
        Kind::Atom => site.local_kind(node) != Some(BindingKind::SymbolMacro),
        Kind::List => {
            let known = site.form.operator(node).is_some_and(|name| {
                (PURE.contains(&name.as_str()) || STATE_DEPENDENT.contains(&name.as_str()))
                    && site.scopes.resolve(node.children[0].span.start).is_none()
            });
            known && node.children.iter().skip(1).all(|child| is_harmless(site, child))
        }
    }
}

/// Returns true if evaluating a stable form ([`is_stable`]) cannot signal an error.
pub(super) fn is_total(site: &Site, node: &Node) -> bool {
    match node.kind {
        _ if matches!(node.prefix, Prefix::Quote | Prefix::Function) => true,
        Kind::String | Kind::Vector | Kind::Atom => true,
        Kind::List => {
            let total = site.form.operator(node).is_some_and(|name| TOTAL.contains(&name.as_str()));
            total && node.children.iter().skip(1).all(|child| is_total(site, child))
        }
    }
}

/// Returns true if all evaluations of a stable form return `eql` objects: a number, a character or
/// a symbol, or the value of a variable.
pub(super) fn has_no_identity(site: &Site, node: &Node) -> bool {
    match (node.prefix, node.kind) {
        (Prefix::Quote, kind) => kind == Kind::Atom,
        (Prefix::None, Kind::Atom) => true,
        (Prefix::None, Kind::List) => {
            site.form.operator(node).is_some_and(|name| PURE.contains(&name.as_str()) && name != "identity")
                || node.children.iter().skip(1).all(|child| has_no_identity(site, child))
        }
        _ => false,
    }
}

/// Returns true if each evaluation of the form may make a new object that is its value or a part of
/// its value.
pub(super) fn makes_object(site: &Site, node: &Node) -> bool {
    let makes = |node: &Node| site.form.operator(node).is_some_and(|name| MAKING.contains(&name.as_str()));
    node.prefix == Prefix::Function && node.kind == Kind::List
        || node.prefix == Prefix::None && (makes(node) || node.children.iter().any(|child| makes_object(site, child)))
}

/// Returns true if two forms may be evaluated in either order.
pub(super) fn may_swap(site: &Site, one: &Node, other: &Node, changing: &HashSet<usize>) -> bool {
    is_stable(site, one, changing) && is_total(site, one)
        || is_stable(site, other, changing) && is_total(site, other)
        || is_harmless(site, one) && is_harmless(site, other)
}
