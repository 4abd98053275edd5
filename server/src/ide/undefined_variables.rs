//! The places of undefined variables. SBCL names the variable and the form around it, but not which
//! of several occurrences it means. In `(dolist (item item) ...)` the first occurrence is a
//! binding. The bindings in the text decide which occurrence is marked.

use std::collections::{HashMap, HashSet};

use crate::model::diagnostic::Diagnostic;
use crate::text::Span;
use crate::text::datum::{Form, symbol_name};
use crate::text::document::Document;
use crate::text::forms::symbol_at;
use crate::text::scopes::Scopes;

/// The code of the diagnostics that [`mark_uses`] moves.
const CODE: &str = "undefined-variable";

/// Returns true if there are diagnostics that [`mark_uses`] may move.
pub fn are_among(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.code == CODE)
}

/// Moves diagnostics about undefined variables that are at a wrong occurrence of the name: at a
/// local binding or a use of one, or at a call of a function of that name. Such a diagnostic is
/// moved to the first use of the name in the same top-level form that refers to no local binding
/// and has no such diagnostic yet. If there is no such use, the diagnostic stays.
pub fn mark_uses(document: &Document, diagnostics: &mut [Diagnostic]) {
    let undefined = || diagnostics.iter().filter(|diagnostic| diagnostic.code == CODE);
    let mut marked: HashSet<Span> = undefined().map(|diagnostic| diagnostic.span).collect();
    let mut scopes: HashMap<Span, Scopes> = HashMap::new();
    for diagnostic in diagnostics.iter_mut().filter(|diagnostic| diagnostic.code == CODE) {
        let at = diagnostic.span;
        let Some(form) = document.scan().form_at(at.start) else { continue };
        let Some((_, written)) = symbol_at(document, at.start).filter(|(span, _)| *span == at) else { continue };
        let Some(name) = symbol_name(&written) else { continue };
        let scopes = scopes.entry(form.span).or_insert_with(|| Scopes::of(&Form::of(document, form.span)));
        if scopes.resolve(at.start).is_none() && !scopes.is_called(at) {
            continue;
        }
        if let Some(free) = scopes.free_uses(&name).find(|free| !marked.contains(free)) {
            marked.insert(free);
            diagnostic.span = free;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::diagnostic::Severity;

    /// Marks the first occurrences of `x`, one for each diagnostic, and shows the uses that are
    /// marked in the end.
    fn marked(text: &str, count: usize) -> String {
        let document = Document::new(text, 0);
        let places = text.match_indices('x').map(|(at, _)| at).filter(|at| {
            let around = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_alphanumeric);
            !around(at + 1) && at.checked_sub(1).is_none_or(|before| !around(before))
        });
        let mut diagnostics: Vec<Diagnostic> = places
            .take(count)
            .map(|at| Span { start: at, end: at + 1 })
            .map(|span| Diagnostic::new(span, Severity::Warning, CODE, "Undefined variable: X"))
            .collect();
        assert!(are_among(&diagnostics));
        mark_uses(&document, &mut diagnostics);
        let mut shown = text.to_owned();
        diagnostics.sort_by_key(|diagnostic| std::cmp::Reverse(diagnostic.span));
        for diagnostic in diagnostics {
            shown.replace_range(diagnostic.span.start..diagnostic.span.end, "[x]");
        }
        shown
    }

    #[test]
    fn a_binding_is_no_use() {
        let cases = [
            "(dolist (x [x]) (print x))",
            "(let ((x [x])) (print x))",
            "(let* ((a 1) (x [x])) (list a x))",
            "(do ((x [x] (1+ x))) (nil) x)",
            "(loop for x in [x] do (print x))",
            "(loop with x = [x] for i below 3 collect (list i x))",
            "(multiple-value-bind (x b) [x] (list x b))",
            "(destructuring-bind (x b) [x] (list x b))",
            "(with-open-file (x [x]) (print x))",
            "(progn (lambda (x &optional (y x)) (list x y)) [x])",
            "(flet ((g (x) x)) (g [x]))",
            "(progn (let ((x 1)) (print x)) [x])",
            "(with-slots (x) [x] x)",
            "(progn (handler-case 1 (error (x) (print x))) [x])",
        ];
        for case in cases {
            assert_eq!(marked(&case.replace("[x]", "x"), 1), case);
        }
    }

    #[test]
    fn each_use_is_marked_once() {
        assert_eq!(marked("(dolist (x x) (print x)) ", 1), "(dolist (x [x]) (print x)) ");
        assert_eq!(
            marked("(progn (dolist (x x) x) (dolist (x x) x))", 2),
            "(progn (dolist (x [x]) x) (dolist (x [x]) x))"
        );
        assert_eq!(marked("(list x x)", 2), "(list [x] [x])");
    }

    #[test]
    fn a_place_that_cannot_be_better_stays() {
        assert_eq!(marked("(let ((x 1)) x)", 1), "(let (([x] 1)) x)");
        assert_eq!(marked("(unknown (x) 1)", 1), "(unknown ([x]) 1)");
        assert_eq!(marked("\"x\"", 1), "\"[x]\"");
    }
}
