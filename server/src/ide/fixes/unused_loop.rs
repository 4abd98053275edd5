//! Fixes for a variable of `loop` that is never used. NIL can replace it in a destructuring
//! pattern. A `with` clause can be removed.

use super::unused::{is_inert, mentions};
use super::{Change, Fix};
use crate::model::diagnostic::Diagnostic;
use crate::text::datum::{Form, Kind, Node};
use crate::text::document::Document;
use crate::text::forms::toplevel_form;
use crate::text::loop_keywords::{self, CLAUSES};

pub(super) fn fix(document: &Document, item: &Diagnostic) -> Option<Fix> {
    let form = Form::of(document, toplevel_form(document, item.span.start)?);
    if !form.balanced {
        return None;
    }
    let chain = form.around(item.span);
    let variable = chain.last().filter(|node| node.kind == Kind::Atom && node.is_plain())?;
    let name = form.written(variable);
    let at = chain.iter().rposition(|node| node.is_list() && form.operator(node).as_deref() == Some("loop"))?;
    let (list, inner) = (chain[at], *chain.get(at + 1)?);
    let parts = list.elements();
    let index = parts.iter().position(|part| part == inner)?;
    let word = |index: usize| word(&form, parts.get(index)?);
    // Nothing is offered for a declared variable, nor for one with a type that is written in the
    // same shape, because the text does not show the needed edit.
    if word(index + 1).as_deref() != Some("=") || parts.iter().map(|part| count(&form, part, name)).sum::<usize>() != 1
    {
        return None;
    }
    let before = word(index.checked_sub(1)?)?;
    if inner.is_list() {
        let binds = matches!(before.as_str(), "with" | "for" | "as" | "and");
        let within = chain[at + 1..chain.len() - 1].iter().all(|node| node.is_list());
        let change = Change { span: form.span_of(variable.start(), variable.end()), text: "nil".into() };
        return (binds && within).then(|| Fix::new(format!("Write nil for {name}"), vec![change]).with_preference());
    }
    // The clause is `with NAME = VALUE`, without `and`.
    let value = parts.get(index + 2).filter(|value| is_inert(&form, value))?;
    let next = parts.get(index + 3)?;
    let clause = word(index + 3).is_some_and(|word| loop_keywords::is_in(&word, CLAUSES));
    let start = parts[index - 1].start();
    let blank = form.source[value.end()..next.start()].chars().all(char::is_whitespace);
    if before != "with" || !clause || !blank {
        return None;
    }
    let change = Change { span: form.span_of(start, next.start()), text: String::new() };
    Some(Fix::new(format!("Remove the variable {name}"), vec![change]))
}

/// Returns a loop keyword in lower case, without its colon.
fn word(form: &Form, node: &Node) -> Option<String> {
    let plain = node.kind == Kind::Atom && node.is_plain();
    plain.then(|| form.written(node).trim_start_matches(':').to_lowercase())
}

/// Returns the number of occurrences of the symbol in a node. A part guarded by a reader
/// conditional counts as 2, because it may contain further occurrences.
fn count(form: &Form, node: &Node, name: &str) -> usize {
    match node.kind {
        _ if node.guarded => 2,
        Kind::List | Kind::Vector => node.children.iter().map(|element| count(form, element, name)).sum(),
        _ => usize::from(mentions(form, node, name)),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{applied, marked};
    use super::*;

    fn after(source: &str) -> Option<String> {
        let (document, item) = marked(source, "unused-variable");
        fix(&document, &item).map(|fix| applied(&document, &fix))
    }

    #[test]
    fn nil_stands_for_what_is_destructured_and_with_goes() {
        for (before, expected) in [
            ("(loop with (p «q») = list collect p)", "(loop with (p nil) = list collect p)"),
            ("(loop for (a (b . «c»)) = (f) do (g a b))", "(loop for (a (b . nil)) = (f) do (g a b))"),
            ("(loop with x = 1 and (p «q») = l collect p)", "(loop with x = 1 and (p nil) = l collect p)"),
            ("(loop with «q» = 1\n      for a in list\n      collect a)", "(loop for a in list\n      collect a)"),
        ] {
            assert_eq!(after(before).as_deref(), Some(expected), "{before}");
        }
    }

    #[test]
    fn what_may_do_something_or_is_named_again_is_left_alone() {
        for source in [
            "(loop with «q» = (read) for a in list collect a)",
            "(loop with «q» = 1 and r = 2 for a in list collect r)",
            "(loop with r = 2 and «q» = 1 for a in list collect r)",
            "(loop with («q» r) of-type (fixnum fixnum) = list collect r)",
            "(loop with (p «q») = list do (setf q 1) collect p)",
            "(loop with (p «q») = list #+sbcl #+sbcl do (f q) collect p)",
            "(loop with p = («q» 1) collect p)",
            "(my-loop with (p «q») = list collect p)",
        ] {
            assert_eq!(after(source), None, "{source}");
        }
    }
}
