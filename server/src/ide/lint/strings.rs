//! Rules about strings in bodies whose values are unused.

use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};

/// A body of a form.
struct Body<'a> {
    forms: &'a [Node],
    /// True if the body may begin with a docstring.
    documented: bool,
    /// True if the body is that of a definition.
    defines: bool,
}

/// Returns the bodies of a list that may contain an unused string.
fn bodies<'a>(form: &Form, list: &'a Node) -> Vec<Body<'a>> {
    let operator = form.operator(list).unwrap_or_default();
    let body = |from: usize, documented: bool, defines: bool| {
        vec![Body { forms: list.children.get(from..).unwrap_or_default(), documented, defines }]
    };
    match operator.as_str() {
        "defun" | "defmacro" | "deftype" | "define-compiler-macro" => body(3, true, true),
        "defmethod" => {
            let parameters = list.children.iter().skip(2).position(|child| child.kind == Kind::List);
            parameters.map(|at| body(at + 3, true, true)).unwrap_or_default()
        }
        "lambda" => body(2, true, false),
        "progn" => body(1, false, false),
        "let" | "let*" | "when" | "unless" | "dolist" | "dotimes" => body(2, false, false),
        "multiple-value-bind" | "destructuring-bind" => body(3, false, false),
        "flet" | "labels" | "macrolet" => {
            let local = list.children.get(1).filter(|bindings| bindings.is_list()).into_iter();
            let local = local.flat_map(|bindings| &bindings.children).filter(|one| one.is_list());
            let whole = local.filter(|one| one.children.iter().all(|child| !child.guarded));
            let forms = |one: &'a Node| one.children.get(2..).unwrap_or_default();
            let mut all: Vec<Body> =
                whole.map(|one| Body { forms: forms(one), documented: true, defines: true }).collect();
            all.extend(body(2, false, false));
            all
        }
        _ => Vec::new(),
    }
}

/// Returns the strings of a body whose values are unused. With each is true if the string is
/// probably a misplaced docstring.
fn unused_strings<'a>(form: &Form, body: &Body<'a>) -> Vec<(&'a Node, bool)> {
    let Some((_, forms)) = body.forms.split_last() else { return Vec::new() };
    let (mut begins, mut documented) = (true, false);
    let mut found = Vec::new();
    for one in forms {
        let string = one.kind == Kind::String && one.is_plain();
        if string && begins && body.documented && !documented {
            documented = true;
        } else if string {
            found.push((one, body.defines && !documented));
            documented = true;
        } else if form.operator(one).as_deref() != Some("declare") {
            begins = false;
        }
    }
    found
}

/// Finds the strings in bodies whose values are unused, except misplaced docstrings.
pub(super) fn unused_string(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let found = bodies(form, list).into_iter().flat_map(|body| unused_strings(form, &body));
    let message = "The value of this string is not used.";
    found.filter(|(_, documentation)| !documentation).map(|(one, _)| (one.span, message.to_owned())).collect()
}

/// Finds strings after the first code of a definition that has no docstring.
pub(super) fn misplaced_docstring(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let found = bodies(form, list).into_iter().flat_map(|body| unused_strings(form, &body));
    let message = "This string is not documentation, and its value is not used: a docstring must come before the code.";
    found.filter(|(_, documentation)| *documentation).map(|(one, _)| (one.span, message.to_owned())).collect()
}
