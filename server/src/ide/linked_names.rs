//! Linked editing: the places of a local name that change together while it is typed.

use crate::text::Span;
use crate::text::datum::Form;
use crate::text::document::Document;
use crate::text::scopes::{Scopes, Shorthand};

/// The places of the local name at `offset`, in order; none for another name, for one that also
/// stands for something else (`x` behind `&key` is the keyword too), and if it is not written the
/// same everywhere.
pub fn places(document: &Document, offset: usize) -> Vec<Span> {
    let found = Form::at(document, offset).and_then(|form| {
        let scopes = Scopes::of(&form);
        let index = scopes.resolve(offset)?;
        let alone = scopes.bindings.get(index)?.shorthand == Shorthand::None;
        alone.then(|| scopes.occurrences(index))
    });
    let mut spans = found.unwrap_or_default();
    let written = |span: &Span| document.text().slice(span.start..span.end).to_string();
    let first = spans.first().map(written);
    if spans.len() < 2 || spans.iter().any(|span| Some(written(span)) != first) {
        spans.clear();
    }
    spans
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
        ] {
            let offset = source.chars().position(|char| char == '‸').unwrap_or(0);
            let document = Document::new(&source.replace('‸', ""), 0);
            let starts: Vec<String> = places(&document, offset).iter().map(|span| span.start.to_string()).collect();
            assert_eq!(starts.join(" "), expected, "{source}");
        }
    }
}
