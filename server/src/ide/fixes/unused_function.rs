//! The fix that removes a local function that is never called.

use super::Fix;
use super::unused::{mentions, without};
use crate::model::diagnostic::Diagnostic;
use crate::text::datum::{Form, Kind};
use crate::text::document::Document;
use crate::text::forms::toplevel_form;

/// Returns the fix, if nothing else in the `flet` or `labels` mentions the name. A mention may be
/// in a declaration, or in another function that is never called.
pub(super) fn fix(document: &Document, item: &Diagnostic) -> Option<Fix> {
    let form = Form::of(document, toplevel_form(document, item.span.start)?);
    if !form.balanced {
        return None;
    }
    let chain = form.around(item.span);
    let [.., list, definitions, definition, name] = chain.as_slice() else { return None };
    let plain = name.kind == Kind::Atom && name.is_plain() && definition.elements().first() == Some(*name);
    let local = matches!(form.operator(list).as_deref(), Some("flet" | "labels")) && list.is_list();
    if !plain || !local || !definition.is_list() || list.elements().get(1) != Some(*definitions) {
        return None;
    }
    let written = form.written(name);
    let others = definitions.elements().iter().filter(|other| other != definition);
    if others.chain(&list.elements()[2..]).any(|node| mentions(&form, node, written)) {
        return None;
    }
    let change = without(&form, definitions, definition)?;
    Some(Fix::new(format!("Remove the local function {written}"), vec![change]))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::tests::{applied, marked};
    use super::*;

    fn after(source: &str) -> Option<String> {
        let (document, item) = marked(source, "unused-function");
        fix(&document, &item).map(|fix| applied(&document, &fix))
    }

    #[test]
    fn a_local_function_that_nobody_names_is_taken_away() {
        for (before, expected) in [
            ("(flet ((«f» (x) x)) 1)", "(flet () 1)"),
            ("(labels ((g () 1)\n         («f» (x) (f x)))\n  (g))", "(labels ((g () 1))\n  (g))"),
            ("(labels ((«f» (x) \"f\" x)\n         (g () 1))\n  (g))", "(labels ((g () 1))\n  (g))"),
        ] {
            assert_eq!(after(before).as_deref(), Some(expected), "{before}");
        }
    }

    #[test]
    fn what_is_named_or_not_understood_is_left_alone() {
        for source in [
            "(flet ((«f» (x) x)) (declare (inline f)) 1)",
            "(labels ((«f» (x) x) (g () (f 1))) 1)",
            "(flet ((«f» (x) x)) #+sbcl (g) 1)",
            "(flet (#+sbcl («f» (x) x)) 1)",
            "(macrolet ((«f» (x) x)) 1)",
            "(my-flet ((«f» (x) x)) 1)",
            "(flet ((g («f») f)) (g 1))",
        ] {
            assert_eq!(after(source), None, "{source}");
        }
    }
}
