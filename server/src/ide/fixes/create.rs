//! A function that a call names and nothing defines: its definition, for a person to write.

use super::{Change, Fix};
use crate::model::diagnostic::Diagnostic;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};
use crate::text::document::Document;

/// The definition of the function that the marked name calls, behind the form of the call.
pub(super) fn fix(document: &Document, item: &Diagnostic) -> Option<Fix> {
    let form = Form::at(document, item.span.start).filter(|form| form.balanced)?;
    let chain = form.around(item.span);
    let [.., call, name] = chain.as_slice() else { return None };
    let written = form.written(name);
    let called = call.is_list() && call.elements().first() == Some(name) && name.span == item.span;
    if !called || written.contains([':', '|', '\\', '#']) || call.children.iter().any(|node| node.guarded) {
        return None;
    }
    let parameters = parameters(&form, &call.elements()[1..]);
    let names: Vec<&str> = parameters.iter().map(String::as_str).filter(|name| *name != "&key").collect();
    let newline = if form.source.contains("\r\n") { "\r\n" } else { "\n" };
    let mut text = format!("{newline}{newline}(defun {written} ({})", parameters.join(" "));
    if !names.is_empty() {
        text += &format!("{newline}  (declare (ignore {}))", names.join(" "));
    }
    text += &format!("{newline}  (error \"~S is not written yet.\" '{written}))");
    let at = end_of_line(document, form.span.end);
    Some(Fix::new(format!("Define the function {written}"), vec![Change { span: Span { start: at, end: at }, text }]))
}

/// Parameters for the arguments of a call: variables give their names, keywords are `&key`.
fn parameters(form: &Form, arguments: &[Node]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let name = form.name(argument).filter(|_| argument.kind == Kind::Atom && argument.is_plain());
        if let Some(key) = name.as_deref().and_then(|name| name.strip_prefix(':'))
            && let Some(value) = rest.clone().next()
            && !form.written(value).starts_with(':')
            && !found.iter().any(|one| one == key)
        {
            if !found.iter().any(|one| one == "&key") {
                found.push("&key".into());
            }
            found.push(key.to_owned());
            rest.next();
            continue;
        }
        let usable = name.filter(|name| {
            !name.contains([':', '*', '+', '|', '&'])
                && !matches!(name.as_str(), "nil" | "t" | "pi")
                && !found.contains(name)
        });
        let number = found.iter().filter(|one| *one != "&key").count() + 1;
        let parameter = usable.unwrap_or_else(|| format!("argument-{number}"));
        // Behind `&key` it would be a keyword's.
        match found.iter().position(|one| one == "&key") {
            Some(key) => found.insert(key, parameter),
            None => found.push(parameter),
        }
    }
    found
}

/// The end of the line, behind a comment that ends it; `at` where more code follows.
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
            ("(«g»)", "(g)\n\n(defun g ()\n  (error \"~S is not written yet.\" 'g))"),
        ] {
            let (document, item) = marked(source, "undefined-function");
            assert_eq!(applied(&document, &fix(&document, &item).unwrap()), expected, "{source}");
        }
        for source in ["(mapcar #'«g» x)", "(«a:g» 1)", "(list «g»)"] {
            let (document, item) = marked(source, "undefined-function");
            assert!(fix(&document, &item).is_none(), "{source}");
        }
    }
}
