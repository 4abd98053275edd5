//! The definition that contains a place of a text. Outside of definitions, the top-level form.

use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};
use crate::text::definitions::{self, Defined};
use crate::text::document::Document;
use crate::text::forms::package_at;

/// A definition, or another top-level form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enclosing {
    /// The name as shown to the user, such as `area :around (circle t)`. For a form that defines
    /// nothing, the beginning of the form.
    pub name: String,
    /// The name as written, if the form is a definition.
    pub defined: Option<String>,
    /// The kind in the image's terms. For a form that defines nothing, its operator.
    pub kind: String,
    /// The package in force at the form.
    pub package: Option<String>,
    /// The span of the form.
    pub form: Span,
    /// The span of the name in the form.
    pub selection: Span,
}

/// Returns the innermost definition around a place, or else the top-level form.
pub fn at(document: &Document, offset: usize) -> Option<Enclosing> {
    Finder::default().at(document, offset)
}

/// Finds the definitions around many places. The data of the last top-level form is kept. Places in
/// the same form are therefore best looked up in succession.
#[derive(Debug, Default)]
pub struct Finder {
    last: Option<(Document, Form, Vec<Defined>)>,
}

impl Finder {
    /// Returns the innermost definition around a place, or else the top-level form.
    pub fn at(&mut self, document: &Document, offset: usize) -> Option<Enclosing> {
        let span = document.scan().form_at(offset)?.span;
        let same = |(of, form, _): &(Document, Form, Vec<Defined>)| {
            form.span == span && of.text().is_instance(document.text())
        };
        if !self.last.as_ref().is_some_and(same) {
            let form = Form::of(document, span);
            let defined = definitions::in_form(&form);
            self.last = Some((document.clone(), form, defined));
        }
        let (_, form, defined) = self.last.as_ref()?;
        let package = package_at(document, form.span.start);
        // Definitions are in order and disjoint.
        let before = defined.partition_point(|one| one.span.start <= offset);
        if let Some(one) = defined[..before].last().filter(|one| offset <= one.span.end) {
            return Some(of_definition(one, package));
        }
        let node = form.nodes.first()?;
        let operator = form.operator(node).unwrap_or_default();
        let second = node.children.get(1).filter(|second| second.kind != Kind::List);
        let selection = second.map_or(node.span, |second| second.span);
        let name = beginning(form, node);
        Some(Enclosing { name, defined: None, kind: operator, package, form: node.span, selection })
    }
}

/// Returns a definition with the name that is shown to the user.
pub fn of_definition(one: &Defined, package: Option<String>) -> Enclosing {
    let mut name = one.written.clone();
    for qualifier in &one.qualifiers {
        name.push(' ');
        name.push_str(qualifier);
    }
    if one.operator == "defmethod" {
        name.push_str(&format!(" ({})", one.specializers.join(" ")));
    }
    let kind = definitions::kind_of(&one.operator).to_owned();
    Enclosing { name, defined: Some(one.written.clone()), kind, package, form: one.span, selection: one.name }
}

/// Returns the atoms among the first two elements: `test far-away` for `(test far-away ...)`.
fn beginning(form: &Form, node: &Node) -> String {
    const MAX_CHARS: usize = 60;
    let atoms = node.children.iter().take(2).take_while(|child| child.kind != Kind::List);
    let words: Vec<&str> = atoms.map(|child| form.text(child)).collect();
    let name = if words.is_empty() { "(...)".to_owned() } else { words.join(" ") };
    name.chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_stands_in_the_innermost_definition_or_in_a_form() {
        for (source, expected) in [
            ("(defun f (x)\n  (g ‸x))", "f function f"),
            ("(progn (defun f () 1) (defun (setf g) (v) ‸v))", "(setf g) function (setf g)"),
            ("(defmethod area :around ((c circle) (n (eql 1)))\n  ‸c)", "area :around (circle (eql 1)) method area"),
            ("(test far-away (is (= 1 ‸2)))", "test far-away test far-away"),
            ("(progn (f ‸1))", "progn progn (progn (f 1))"),
            ("((lambda () ‸1))", "(...)  ((lambda () 1))"),
        ] {
            let offset = source.chars().position(|char| char == '‸').unwrap_or(0);
            let document = Document::new(&source.replace('‸', ""), 0);
            let found = at(&document, offset).map(|one| {
                let selected = document.text().slice(one.selection.start..one.selection.end);
                format!("{} {} {selected}", one.name, one.kind)
            });
            assert_eq!(found.as_deref(), Some(expected), "{source}");
        }
    }
}
