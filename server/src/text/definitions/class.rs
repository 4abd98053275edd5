//! The superclasses and slots of a class, condition or structure, from the form that defines it.

use super::structure::Structure;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};

/// The parts of a definition, as written.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClassParts {
    /// The superclasses of a class or condition, or the structure that a structure includes.
    pub supers: Vec<String>,
    /// The slots, in order.
    pub slots: Vec<Slot>,
}

/// A slot.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The name.
    pub name: String,
    /// The initialization arguments, which a structure's slot does not have.
    pub initargs: Vec<String>,
    /// The names of readers, writers and accessors, which a structure's slot does not have.
    pub accessors: Vec<String>,
}

/// Returns the parts of the definition at `span` in a form. Returns no parts for operators other
/// than `defclass`, `define-condition` and `defstruct`.
pub fn class_parts(form: &Form, span: Span, operator: &str) -> ClassParts {
    let node = match operator {
        "defclass" | "define-condition" | "defstruct" => form.node_at(span),
        _ => None,
    };
    match node {
        Some(node) if operator == "defstruct" => structure(form, node),
        Some(node) => class(form, node),
        None => ClassParts::default(),
    }
}

/// Returns the parts of `(defclass name (super ...) (slot ...) ...)`, and likewise of a condition.
fn class(form: &Form, node: &Node) -> ClassParts {
    let list = |at: usize| node.children.get(at).map(|list| list.children.as_slice()).unwrap_or_default();
    let supers = list(2).iter().map(|one| form.text(one).to_owned()).collect();
    let slots = list(3).iter().filter_map(|node| {
        let mut slot = slot(form, node)?;
        for pair in node.children.get(1..).unwrap_or_default().chunks_exact(2) {
            let value = form.text(&pair[1]);
            match form.name(&pair[0]).as_deref() {
                Some(":initarg") => slot.initargs.push(value.to_owned()),
                Some(":accessor" | ":reader" | ":writer") => {
                    slot.accessors.push(value.trim_start_matches("(setf ").trim_end_matches(')').to_owned());
                }
                _ => {}
            }
        }
        Some(slot)
    });
    ClassParts { supers, slots: slots.collect() }
}

/// Returns the parts of a structure's definition.
fn structure(form: &Form, node: &Node) -> ClassParts {
    let mut parts = ClassParts::default();
    let Some(structure) = Structure::of(node) else { return parts };
    for (option, arguments) in structure.named_options(form) {
        if option == ":include" {
            parts.supers.extend(arguments.first().map(|included| form.text(included).to_owned()));
        }
    }
    parts.slots = structure.slots.iter().filter_map(|node| slot(form, node)).collect();
    parts
}

/// Returns a slot with only its name, or `None` for a documentation string or a node that is not a
/// slot.
fn slot(form: &Form, node: &Node) -> Option<Slot> {
    let name = if node.kind == Kind::List { node.children.first()? } else { node };
    (name.kind == Kind::Atom).then(|| Slot { name: form.text(name).to_owned(), ..Slot::default() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::text::definitions;
    use crate::text::document::Document;

    fn shown(text: &str) -> String {
        let document = Document::new(text, 0);
        let span = document.scan().forms()[0].span;
        let form = Form::of(&document, span);
        let one = definitions::in_form(&form).into_iter().next().unwrap();
        let parts = class_parts(&form, one.span, &one.operator);

        let slots: Vec<String> = parts
            .slots
            .iter()
            .map(|slot| format!("\n{} {:?} {:?}", slot.name, slot.initargs, slot.accessors))
            .collect();
        format!("{:?}{}", parts.supers, slots.concat())
    }

    #[test]
    fn a_class_has_superclasses_and_slots_with_options() {
        let text = "(progn (defclass a (b p:c) (x (y :initarg :y :initarg :why :accessor y-of :reader z)\n\
                    (w :writer (setf w-of) :initform) \"no slot\") (:documentation \"\")))";
        expect![[r#"
            ["b", "p:c"]
            x [] []
            y [":y", ":why"] ["y-of", "z"]
            w [] ["w-of"]"#]]
        .assert_eq(&shown(text));
    }

    #[test]
    fn a_structure_has_an_included_one_and_names_of_slots() {
        let text = "(defstruct (a (:include b) :named (:conc-name nil)) \"Words.\" x (y 1 :type fixnum))";
        expect![[r#"
            ["b"]
            x [] []
            y [] []"#]]
        .assert_eq(&shown(text));
        assert_eq!(shown("(defstruct a)"), "[]");
    }

    #[test]
    fn another_definition_has_no_parts() {
        assert_eq!(shown("(defun a (b) (c))"), "[]");
    }
}
