//! Fixes for the findings of lint rules.

use super::{Change, Fix};
use crate::ide::package_lists;
use crate::ide::predicates::is_predicate;
use crate::model::diagnostic::Diagnostic;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};
use crate::text::document::Document;
use crate::text::line_break;

pub(super) fn fix(document: &Document, item: &Diagnostic) -> Option<Fix> {
    let form = Form::at(document, item.span.start).filter(|form| form.balanced)?;
    let chain = form.around(item.span);
    let [.., list, marked] = chain.as_slice() else { return None };
    let upper = form.text(marked).chars().all(|char| !char.is_lowercase());
    let cased = |word: &str| if upper { word.to_uppercase() } else { word.to_owned() };
    let replace = |start: usize, end: usize, text: String| Change { span: form.span_of(start, end), text };
    let head = |word: &str| replace(marked.start(), marked.end(), cased(word));
    let (title, changes) = match item.code.as_str() {
        "lint-eq-literal" => {
            let string = list.children.iter().any(|node| node.kind == Kind::String);
            let word = if string { "equal" } else { "eql" };
            (format!("Write {word}"), vec![head(word)])
        }
        "lint-boolean-if" => {
            let [_, condition, yes, _] = list.elements() else { return None };
            let not = form.text(yes).eq_ignore_ascii_case("nil");
            if !not && is_predicate(&form, condition) {
                let mut around = [(list.start(), condition.start()), (condition.end(), list.end())].into_iter();
                let comment = |(start, end)| form.source.get(start..end).is_none_or(|text| text.contains([';', '|']));
                let text = form.written(condition).to_owned();
                let change = (!around.any(comment)).then_some(Change { span: list.span, text })?;
                return Some(Fix::new("Write the condition alone".to_owned(), vec![change]));
            }
            let word = if not { "not" } else { "and" };
            let end = if not { ")".to_owned() } else { format!(" {})", cased("t")) };
            let kept = form.source.get(condition.end()..list.end()).is_some_and(|rest| !rest.contains([';', '|']));
            kept.then_some(())?;
            (format!("Write {word}"), vec![head(word), replace(condition.end(), list.end(), end)])
        }
        "lint-negated-when" => {
            let condition = list.elements().get(1)?;
            let inner = condition.elements().get(1).filter(|inner| !inner.guarded)?;
            let around = [(condition.start(), inner.start()), (inner.end(), condition.end())];
            let comments = |(start, end)| form.source.get(start..end).is_none_or(|text| text.contains([';', '|']));
            if around.into_iter().any(comments) {
                return None;
            }
            let word = if form.operator(list).as_deref() == Some("when") { "unless" } else { "when" };
            let changes = vec![head(word), replace(condition.start(), condition.end(), form.written(inner).to_owned())];
            (format!("Write {word}"), changes)
        }
        "lint-quoted-key" => {
            let bare = form.text(marked);
            (format!("Write {bare}"), vec![replace(marked.start(), marked.end(), bare.to_owned())])
        }
        "lint-nil-key" => {
            let key = format!("({})", form.text(marked));
            (format!("Write {key}"), vec![replace(marked.start(), marked.end(), key)])
        }
        "lint-missing-otherwise" => {
            let last = list.elements().last()?;
            form.source.get(last.end()..list.end() - 1).filter(|rest| rest.trim().is_empty())?;
            let clause = format!("({} {})", cased("otherwise"), cased("nil"));
            let line = form.source.get(..last.start())?.rsplit('\n').next().unwrap_or_default();
            let own_line = line.trim().is_empty() && form.source[..last.start()].contains('\n');
            let newline = line_break::of_document(document);
            let before = if own_line { format!("{newline}{line}") } else { " ".into() };
            (format!("Add {clause}"), vec![replace(last.end(), list.end() - 1, format!("{before}{clause}"))])
        }
        "lint-unused-string" => ("Remove the string".into(), vec![without_string(&form, list, marked)]),
        "lint-unused-definition" => {
            let whole = chain.len() == 2;
            (format!("Remove the definition of {}", form.text(marked)), vec![whole.then(|| removed(document, &form))?])
        }
        "lint-misplaced-docstring" => ("Move it before the code".into(), moved(&form, list, marked)?),
        "lint-unused-export" | "lint-unused-import" => {
            let (span, text) = package_lists::without(&form, list, marked)?;
            let title = if item.code == "lint-unused-export" { "Do not export it" } else { "Do not import it" };
            (title.into(), vec![Change { span, text }])
        }
        "lint-unsorted-names" => {
            let sorted = package_lists::sorted(&form, package_lists::names(&form, list)).ok()?;
            ("Sort them".into(), sorted.into_iter().map(|(span, text)| Change { span, text }).collect())
        }
        _ => return None,
    };
    Some(Fix::new(title, changes))
}

/// Returns the change that removes a string from its list, with the white space before it.
fn without_string(form: &Form, list: &Node, string: &Node) -> Change {
    let before = list.children.iter().rfind(|one| one.end() <= string.start()).map(Node::end);
    let blank = |from: &usize| form.source.get(*from..string.start()).is_some_and(|text| text.trim().is_empty());
    let start = before.filter(blank).unwrap_or(string.start());
    Change { span: form.span_of(start, string.end()), text: String::new() }
}

/// Returns the change that removes a top-level form, with the rest of its last line and one blank
/// line.
fn removed(document: &Document, form: &Form) -> Change {
    let text = document.text();
    let mut end = form.span.end;
    let line_break = |from: usize| {
        let rest = text.slice(from..text.len_chars());
        let at = rest.chars().position(|char| !matches!(char, ' ' | '\t' | '\r'))?;
        (rest.char(at) == '\n').then_some(from + at + 1)
    };
    let line = text.slice(text.line_to_char(text.char_to_line(form.span.start))..form.span.start);
    if line.chars().all(char::is_whitespace)
        && let Some(next) = line_break(end)
    {
        end = line_break(next).unwrap_or(next);
    }
    Change { span: Span { start: form.span.start, end }, text: String::new() }
}

/// Returns the changes that move a string in a body before the code of the body, so that it becomes
/// the docstring.
fn moved(form: &Form, list: &Node, string: &Node) -> Option<Vec<Change>> {
    let elements = list.elements();
    let definer = form.operator(list).is_some_and(|operator| crate::text::definitions::is_definer(&operator));
    let first = if definer { 2 } else { 1 };
    let parameters = elements.iter().skip(first).position(|one| one.kind == Kind::List)? + first;
    let (before, at) = (elements.get(parameters)?, elements.iter().position(|one| std::ptr::eq(one, string))?);
    let (code, previous) = (elements.get(parameters + 1)?, elements.get(at.checked_sub(1)?)?);
    let space = |from: &Node, to: &Node| form.source.get(from.end()..to.start()).filter(|text| text.trim().is_empty());
    let (between, _) = (space(before, code)?, space(previous, string)?);
    // If the code begins with a string, the moved string would be a second docstring.
    (code.kind != Kind::String).then(|| {
        let text = format!("{between}{}", form.written(string));
        let insert = Change { span: form.span_of(before.end(), before.end()), text };
        vec![insert, Change { span: form.span_of(previous.end(), string.end()), text: String::new() }]
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{applied, marked};
    use super::*;

    #[test]
    fn what_is_meant_takes_the_place() {
        for (source, code, expected) in [
            ("(«eq» x 1)", "lint-eq-literal", "(eql x 1)"),
            ("(«EQ» x \"s\")", "lint-eq-literal", "(EQUAL x \"s\")"),
            ("(«if» (f x)\n    t nil)", "lint-boolean-if", "(and (f x) t)"),
            ("(«if» (f x) nil\n  t)", "lint-boolean-if", "(not (f x))"),
            ("(g («if» (null x) t nil))", "lint-boolean-if", "(g (null x))"),
            ("(g ,(«if» (null x) t nil))", "lint-boolean-if", "(g ,(null x))"),
            ("(«unless» (null x) (g))", "lint-negated-when", "(when x (g))"),
            ("(«when» (not x) (g))", "lint-negated-when", "(unless x (g))"),
            ("(case x («'a» 1))", "lint-quoted-key", "(case x (a 1))"),
            ("(case x («'(a b)» 1))", "lint-quoted-key", "(case x ((a b) 1))"),
            ("(case x («NIL» 1))", "lint-nil-key", "(case x ((NIL) 1))"),
            ("(«case» x (a 1))", "lint-missing-otherwise", "(case x (a 1) (otherwise nil))"),
            (
                "(«case» x\r\n  (a 1)\r\n  (b 2))",
                "lint-missing-otherwise",
                "(case x\r\n  (a 1)\r\n  (b 2)\r\n  (otherwise nil))",
            ),
            (
                "(«CASE» x\n  (a 1)\n  (b 2)\n  )",
                "lint-missing-otherwise",
                "(CASE x\n  (a 1)\n  (b 2)\n  (OTHERWISE NIL))",
            ),
            ("(«unless» (not x) (g))", "lint-negated-when", "(when x (g))"),
            (
                "(defun f (x)\n  (g)\n  «\"é (\"»\n  x)",
                "lint-misplaced-docstring",
                "(defun f (x)\n  \"é (\"\n  (g)\n  x)",
            ),
            (
                "(defmethod (setf f) :after (x y) (g) «\"s\"» x)",
                "lint-misplaced-docstring",
                "(defmethod (setf f) :after (x y) \"s\" (g) x)",
            ),
            ("(flet ((f (x) (g) «\"s\"» x)) 1)", "lint-misplaced-docstring", "(flet ((f (x) \"s\" (g) x)) 1)"),
            ("(let ((x 1))\n  «\"s\"»\n  x)", "lint-unused-string", "(let ((x 1))\n  x)"),
            ("(progn ; why\n  «\"s\"» x)", "lint-unused-string", "(progn ; why\n   x)"),
            ("(f)\n\n(defun «g» () 1)\n\n(h)", "lint-unused-definition", "(f)\n\n(h)"),
            ("(f) (defun «g» () 1) ; g\n(h)", "lint-unused-definition", "(f)  ; g\n(h)"),
            ("(defpackage :p (:export #:a «#:b» #:c))", "lint-unused-export", "(defpackage :p (:export #:a #:c))"),
            ("(defpackage :p (:import-from :q\n «b»))", "lint-unused-import", "(defpackage :p (:import-from :q))"),
            (
                "(defpackage :p («:export» #:c\n \"B\" :a))",
                "lint-unsorted-names",
                "(defpackage :p (:export :a\n \"B\" #:c))",
            ),
        ] {
            let (document, item) = marked(source, code);
            assert_eq!(applied(&document, &fix(&document, &item).unwrap()), expected);
        }
        for (source, code) in [
            ("(«if» x ; why\n t nil)", "lint-boolean-if"),
            ("(«when» (not ; why\n x) (g))", "lint-negated-when"),
            ("(«when» (not #+a x) (g))", "lint-negated-when"),
            ("(defun f (x) (g) ; why\n «\"s\"» x)", "lint-misplaced-docstring"),
            ("(defun f (x) \"d\" (g) «\"s\"» x)", "lint-misplaced-docstring"),
            ("(defpackage :p (:export #:a ; why\n «#:b»))", "lint-unused-export"),
            ("(«case» x (a 1) ; all\n )", "lint-missing-otherwise"),
        ] {
            let (document, item) = marked(source, code);
            assert!(fix(&document, &item).is_none(), "{source}");
        }
    }
}
