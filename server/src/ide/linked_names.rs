//! Linked editing: the places of a local name that change together while it is typed.

use super::refactor::OwnMacros;
use super::refactor::mentions::Hidden;
use super::refactor::names;
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::definitions;
use crate::text::document::Document;
use crate::text::scopes::{Namespace, Scopes, Shorthand};

/// Returns the places of the local name at `offset`, in order. Returns none for a special variable,
/// and for a name that also names something else (`x` after `&key`). Also returns none if a macro
/// may use the name without the text showing it, or if the name is not spelled the same everywhere.
pub fn places(document: &Document, offset: usize) -> Vec<Span> {
    let mut spans = linked_spans(document, offset).unwrap_or_default();
    let written = |span: &Span| document.text().slice(span.start..span.end);
    let first = spans.first().map(written);
    if spans.len() < 2 || spans.iter().any(|span| Some(written(span)) != first) {
        spans.clear();
    }
    spans
}

fn linked_spans(document: &Document, offset: usize) -> Option<Vec<Span>> {
    let form = Form::at(document, offset)?;
    let scopes = Scopes::of(&form);
    let index = scopes.resolve(offset)?;
    let binding = scopes.bindings.get(index)?;
    if binding.shorthand != Shorthand::None || names::may_read_differently(document, &form) {
        return None;
    }
    if binding.kind.namespace() == Namespace::Variable && is_special(document, &form, &binding.name) {
        return None;
    }
    let spans = scopes.occurrences(index);
    let macros = OwnMacros::from_document(document);
    let unknown = |operator: &str| macros.is_unknown(operator);
    let hidden = Hidden { form: &form, name: &binding.name, known: &spans, unknown: &unknown };
    form.nodes.iter().all(|node| hidden.first(node).is_none()).then_some(spans)
}

/// Returns true if a variable is special, as far as the text shows.
fn is_special(document: &Document, form: &Form, name: &str) -> bool {
    let defined = || definitions::named(document, name);
    names::is_marked(name)
        || names::is_standard_variable(name)
        || names::is_declared_special(form, name)
        || defined().iter().any(|one| names::is_variable_kind(definitions::kind_of(&one.operator)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_name_is_linked_to_its_other_places() {
        for (source, expected) in [
            ("(defun f (x‸ y)\n  (let ((x y)) x)\n  (g x))", "10 38"),
            ("(flet ((g (x) x)) (g‸ 1))", "8 19"),
            ("(defun f (&key x‸) x)", ""),
            ("(with-slots (x‸) y x)", ""),
            ("(let ((x‸ 1)) X)", ""),
            ("(let ((x‸ 1)) y)", ""),
            ("(f x‸)", ""),
            ("\"x‸\"", ""),
            // Special variables are not local.
            ("(let ((*x*‸ 1)) *x*)", ""),
            ("(let ((x‸ 1)) (declare (special x)) (g x))", ""),
            ("(defvar x 1)\n(let ((x‸ 1)) (g x))", ""),
            // Macros may use the name in places that the text does not show.
            ("(let ((x‸ 1)) (macrolet ((m () 'x)) (list x (m))))", ""),
            ("(let ((x‸ 1)) (foo:let ((x 2)) x) x)", ""),
            ("(let ((x‸ 1)) (g x p::x))", ""),
            ("(defmacro m (a) `(list ,a))\n(let ((x‸ 1)) (m 'x) x)", ""),
            // Strings, comments and other symbols do not matter.
            ("(let ((x‸ 1)) (g \"x\" 'x :x #'x x) ; x\n)", "7 30"),
        ] {
            let offset = source.chars().position(|char| char == '‸').unwrap_or(0);
            let document = Document::new(&source.replace('‸', ""), 0);
            let starts: Vec<String> = places(&document, offset).iter().map(|span| span.start.to_string()).collect();
            assert_eq!(starts.join(" "), expected, "{source}");
        }
    }

    #[test]
    fn many_places_are_found() {
        let text = format!("(let ((x 1))\n{})", "  (g x)\n".repeat(20_000));
        assert_eq!(places(&Document::new(&text, 0), 7).len(), 20_001);
    }
}
