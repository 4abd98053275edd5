//! A fix for a call of an undefined function: a stub of its definition.

use super::{Change, Fix};
use crate::ide::hyperspec::page_of_symbol;
use crate::model::diagnostic::Diagnostic;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::document::Document;
use crate::text::line_break;
use crate::text::names;

/// Returns the fix that inserts a stub of the marked function after the top-level form of the call.
pub(super) fn fix(document: &Document, item: &Diagnostic) -> Option<Fix> {
    let form = Form::at(document, item.span.start).filter(|form| form.balanced)?;
    let chain = form.around(item.span);
    let name = *chain.last().filter(|name| name.kind == Kind::Atom && name.span == item.span && !name.guarded)?;
    let symbol = form.text(name);
    // The packages of the standard's symbols are locked.
    if symbol.contains([':', '|', '\\', '#']) || page_of_symbol(&symbol.to_lowercase()).is_some() {
        return None;
    }
    let call = chain.len().checked_sub(2).map(|at| chain[at]);
    let call = call.filter(|call| call.is_list() && call.elements().first() == Some(name) && name.is_plain());
    let mut parameters = match call {
        Some(call) if call.children.iter().any(|node| node.guarded) => return None,
        Some(call) => parameters(&form, &call.elements()[1..]),
        None if name.prefix == Prefix::Function => vec!["&rest".to_owned(), "arguments".to_owned()],
        None => return None,
    };
    let mut written = symbol.to_owned();
    // The undefined function is the setf function of the place.
    if item.message.to_uppercase().contains(&format!("(SETF {})", symbol.to_uppercase())) {
        written = format!("(setf {symbol})");
        parameters.insert(0, unused_name("new-value", &parameters));
    }
    let names: Vec<&str> = parameters.iter().map(|name| variable(name)).filter(|name| !name.starts_with('&')).collect();
    let newline = line_break::of_document(document);
    let mut text = format!("{newline}{newline}(defun {written} ({})", parameters.join(" "));
    if !names.is_empty() {
        text += &format!("{newline}  (declare (ignore {}))", names.join(" "));
    }
    text += &format!("{newline}  (error \"~S is not written yet.\" '{written}))");
    let at = end_of_line(document, form.span.end);
    Some(Fix::new(format!("Define the function {written}"), vec![Change { span: Span { start: at, end: at }, text }]))
}

/// Returns the variable of a parameter, such as `y` of `((:x y))`.
fn variable(parameter: &str) -> &str {
    parameter.rsplit(' ').next().unwrap_or(parameter).trim_matches(['(', ')'])
}

/// Returns `wanted`, followed by a number if a parameter has that name.
fn unused_name(wanted: &str, parameters: &[String]) -> String {
    let is_unused = |name: &String| !parameters.iter().any(|one| variable(one) == name);
    names::numbered(wanted).find(is_unused).unwrap_or_default()
}

/// Returns true if a variable can have the name.
fn is_usable(name: &str) -> bool {
    !name.contains([':', '*', '+', '|', '&']) && !matches!(name, "nil" | "t" | "pi")
}

/// Returns the parameters for the arguments of a call. The parameter for a variable has the
/// variable's name. Pairs of a keyword and a value at the end become `&key` parameters.
fn parameters(form: &Form, arguments: &[Node]) -> Vec<String> {
    let keyword = |node: &Node| {
        let name = form.name(node).filter(|_| node.kind == Kind::Atom && node.is_plain())?;
        name.strip_prefix(':').filter(|name| !name.is_empty()).map(str::to_owned)
    };
    // The index from which on all arguments are pairs of a keyword and a value. Each keyword occurs
    // once.
    let (mut from, mut keys) = (arguments.len(), Vec::new());
    while from >= 2
        && let Some(key) = keyword(&arguments[from - 2]).filter(|key| !keys.contains(key))
        && keyword(&arguments[from - 1]).is_none()
    {
        keys.insert(0, key);
        from -= 2;
    }
    let mut found: Vec<String> = Vec::new();
    for (at, argument) in arguments[..from].iter().enumerate() {
        let name = form.name(argument).filter(|_| argument.kind == Kind::Atom && argument.is_plain());
        let usable = name.filter(|name| is_usable(name) && !found.contains(name) && !keys.contains(name));
        found.push(usable.unwrap_or_else(|| format!("argument-{}", at + 1)));
    }
    if !keys.is_empty() {
        found.push("&key".into());
    }
    for key in &keys {
        let parameter =
            if is_usable(key) { key.clone() } else { format!("((:{key} {}))", unused_name("value", &found)) };
        found.push(parameter);
    }
    found
}

/// Returns the end of the line if only blanks or a comment follow `at`, else `at`.
fn end_of_line(document: &Document, at: usize) -> usize {
    let text = document.text();
    let rest: String = text.slice(at..).chars().take_while(|char| !matches!(char, '\n' | '\r')).collect();
    let blank = rest.trim_start();
    if blank.is_empty() || blank.starts_with(';') { at + rest.chars().count() } else { at }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{applied, marked};
    use super::*;

    #[test]
    fn the_arguments_of_a_call_become_parameters() {
        for (source, expected) in [
            (
                "(f («g» x 1 x)) ; c\n(h)",
                "(f (g x 1 x)) ; c\n\n(defun g (x argument-2 argument-3)\n  (declare (ignore x argument-2 argument-3))\n  (error \"~S is not written yet.\" 'g))\n(h)",
            ),
            (
                "(«g» a :key 1 :test 'b)",
                "(g a :key 1 :test 'b)\n\n(defun g (a &key key test)\n  (declare (ignore a key test))\n  (error \"~S is not written yet.\" 'g))",
            ),
            // A keyword with other arguments after it is a positional argument.
            (
                "(«g» x :key 1 (car x) 5 #'car \"s\" 'sym)",
                "(g x :key 1 (car x) 5 #'car \"s\" 'sym)\n\n(defun g (x argument-2 argument-3 argument-4 argument-5 argument-6 argument-7 argument-8)\n  (declare (ignore x argument-2 argument-3 argument-4 argument-5 argument-6 argument-7 argument-8))\n  (error \"~S is not written yet.\" 'g))",
            ),
            (
                "(«g» x :a 1 y :x 2 :t 3)",
                "(g x :a 1 y :x 2 :t 3)\n\n(defun g (argument-1 argument-2 argument-3 y &key x ((:t value)))\n  (declare (ignore argument-1 argument-2 argument-3 y x value))\n  (error \"~S is not written yet.\" 'g))",
            ),
            (
                "(mapcar #'«g» x)",
                "(mapcar #'g x)\n\n(defun g (&rest arguments)\n  (declare (ignore arguments))\n  (error \"~S is not written yet.\" 'g))",
            ),
            ("(«g»)", "(g)\n\n(defun g ()\n  (error \"~S is not written yet.\" 'g))"),
        ] {
            let (document, item) = marked(source, "undefined-function");
            assert_eq!(applied(&document, &fix(&document, &item).unwrap()), expected, "{source}");
        }
        for source in
            ["(mapcar #'«a:g» x)", "(mapcar '«g» x)", "(«a:g» 1)", "(list «g»)", "(f («T» 1))", "(«sequence» x)"]
        {
            let (document, item) = marked(source, "undefined-function");
            assert!(fix(&document, &item).is_none(), "{source}");
        }
    }

    #[test]
    fn a_place_that_is_assigned_gets_a_setf_function() {
        let (document, mut item) = marked("(defun a1 (x) (setf («newplace» x) 3))", "undefined-function");
        item.message = "Undefined function: (SETF NEWPLACE)".into();
        let found = fix(&document, &item).unwrap();
        assert_eq!(found.title, "Define the function (setf newplace)");
        assert!(
            applied(&document, &found).ends_with(
                "\n\n(defun (setf newplace) (new-value x)\n  (declare (ignore new-value x))\n  (error \"~S is not written yet.\" '(setf newplace)))"
            ),
            "{found:?}"
        );
    }
}
