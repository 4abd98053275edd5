//! The number of values of a form, as far as its text shows it.

mod own;

use super::effects::{ITERATION_FORMS, PURE, STATE_DEPENDENT};
use super::site::Site;
use crate::text::datum::{Kind, Node, Prefix};

/// Standard functions that may have several values, or none.
const SEVERAL: [&str; 65] = [
    "apply",
    "apropos",
    "array-displacement",
    "call-next-method",
    "ceiling",
    "compile",
    "compile-file",
    "decode-float",
    "decode-universal-time",
    "describe",
    "ensure-directories-exist",
    "eval",
    "fceiling",
    "ffloor",
    "find-symbol",
    "floor",
    "fround",
    "ftruncate",
    "funcall",
    "function-keywords",
    "function-lambda-expression",
    "get-decoded-time",
    "get-macro-character",
    "get-properties",
    "get-setf-expansion",
    "gethash",
    "inspect",
    "integer-decode-float",
    "intern",
    "invoke-restart",
    "invoke-restart-interactively",
    "load-logical-pathname-translations",
    "macroexpand",
    "macroexpand-1",
    "make-load-form",
    "make-load-form-saving-slots",
    "parse-integer",
    "parse-namestring",
    "pprint",
    "pprint-dispatch",
    "read",
    "read-from-string",
    "read-line",
    "read-preserving-whitespace",
    "rename-file",
    "room",
    "round",
    "subtypep",
    "truncate",
    "values",
    "values-list",
    // Functions that do not return, or that call functions of the user.
    "abort",
    "continue",
    "error",
    "invoke-debugger",
    "muffle-warning",
    "store-value",
    "use-value",
    "no-applicable-method",
    "no-next-method",
    "slot-missing",
    "slot-unbound",
    "update-instance-for-different-class",
    "update-instance-for-redefined-class",
    "compute-restarts",
];

/// Returns true if the form is known to have exactly one value.
pub(super) fn has_one_value(site: &Site, node: &Node) -> bool {
    one_value(site, node, &mut Vec::new())
}

/// Does the same as [`has_one_value`]. `seen` contains the functions whose definitions are being
/// examined ([`own::has_one_value`]).
pub(super) fn one_value(site: &Site, node: &Node, seen: &mut Vec<String>) -> bool {
    if node.guarded {
        return false;
    }
    if node.kind != Kind::List || node.prefix != Prefix::None {
        return node.prefix != Prefix::Comma || node.kind != Kind::List;
    }
    let Some(operator) = site.form.operator(node) else { return false };
    if site.local_kind(&node.children[0]).is_some() {
        return false;
    }
    let rest = &node.children[1..];
    let mut one = |node: &Node| one_value(site, node, seen);
    let last_from = |from: usize| rest.get(from..).unwrap_or_default().last();
    match operator.as_str() {
        "quote"
        | "function"
        | "lambda"
        | "setq"
        | "incf"
        | "decf"
        | "push"
        | "pushnew"
        | "pop"
        | "prog1"
        | "prog2"
        | "multiple-value-list"
        | "nth-value" => true,
        "setf" => {
            let place = rest.len().checked_sub(2).and_then(|at| rest.get(at));
            place.is_none_or(|place| site.form.operator(place).as_deref() != Some("values"))
        }
        "progn" | "and" | "or" | "locally" => last_from(0).is_none_or(one),
        "when" | "unless" | "let" | "let*" | "flet" | "labels" => last_from(1).is_none_or(one),
        "multiple-value-bind" | "destructuring-bind" => last_from(2).is_none_or(one),
        "if" => rest.iter().skip(1).all(one),
        "cond" => rest.iter().all(|clause| clause.children.len() == 1 || clause.children.last().is_none_or(&mut one)),
        "case" | "ecase" | "typecase" | "etypecase" => {
            rest.iter().skip(1).all(|clause| clause.children.iter().skip(1).last().is_none_or(&mut one))
        }
        "the" => rest.get(1).is_some_and(one),
        name => {
            let page = crate::ide::hyperspec::page_of_symbol(name);
            // The pages recorded for `+` and `list` are those of a variable and a type of the same
            // name.
            let is_known = PURE.contains(&name) || STATE_DEPENDENT.contains(&name);
            let is_function = page.is_some_and(|page| page.starts_with("f_")) || is_known;
            match page {
                None if !is_known => own::has_one_value(site, &node.children[0], name, seen),
                _ => is_function && !SEVERAL.contains(&name),
            }
        }
    }
}

/// Returns true if an atom in a body is the body's value. An atom before the last form may instead
/// be a docstring or a tag. `list` is the form with the body.
pub(super) fn is_last_value(site: &Site, list: &Node, parents: &[&Node], node: &Node) -> bool {
    let last = parents.last().and_then(|parent| parent.children.last());
    let operator = site.form.operator(list).unwrap_or_default();
    // In a clause of `restart-case`, a string may belong to `:report`.
    let has_other_atoms =
        matches!(operator.as_str(), "tagbody" | "restart-case") || ITERATION_FORMS.contains(&operator.as_str());
    last.is_some_and(|last| std::ptr::eq(last, node)) && !has_other_atoms && !site.may_call_macro(list, &operator)
}
