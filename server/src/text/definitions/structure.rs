//! The functions that the definition of a structure makes.

use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};
use crate::text::names;

/// Returns the names of the constructors, the predicate, the copier and the accessors of the
/// structure that is defined at `span`, upper-case where the reader has them so. Accessors of
/// included slots are not among them.
pub fn structure_functions(form: &Form, span: Span) -> Vec<String> {
    let Some(node) = form.around(span).into_iter().find(|node| node.span == span) else { return Vec::new() };
    let Some(named) = node.children.get(1) else { return Vec::new() };
    let (name, options) = match named.kind {
        Kind::List => (named.children.first(), named.children.get(1..).unwrap_or_default()),
        _ => (Some(named), Default::default()),
    };
    let Some(name) = name.and_then(|name| read(form, name)) else { return Vec::new() };
    let mut functions = Vec::new();
    let mut defaults = Defaults { prefix: format!("{name}-"), ..Defaults::default() };
    for option in options {
        let of_list = option.kind == Kind::List;
        let head = if of_list { option.children.first() } else { Some(option) };
        let given = option.children.get(1).filter(|_| of_list);
        let made = given.and_then(|given| read(form, given)).filter(|made| made != "NIL");
        match head.and_then(|head| form.name(head)).as_deref() {
            Some(":conc-name") => defaults.prefix = made.unwrap_or_default(),
            Some(":constructor") if given.is_some() => {
                defaults.constructor = false;
                functions.extend(made);
            }
            Some(":predicate") if given.is_some() => {
                defaults.predicate = false;
                functions.extend(made);
            }
            Some(":copier") if given.is_some() => {
                defaults.copier = false;
                functions.extend(made);
            }
            _ => {}
        }
    }
    functions.extend(defaults.constructor.then(|| format!("MAKE-{name}")));
    functions.extend(defaults.predicate.then(|| format!("{name}-P")));
    functions.extend(defaults.copier.then(|| format!("COPY-{name}")));
    for slot in node.children.get(2..).unwrap_or_default() {
        let slot = if slot.kind == Kind::List { slot.children.first() } else { Some(slot) };
        let slot = slot.filter(|slot| slot.kind == Kind::Atom && !form.text(slot).starts_with('"'));
        functions.extend(slot.and_then(|slot| read(form, slot)).map(|slot| format!("{}{slot}", defaults.prefix)));
    }
    functions
}

/// The functions that have the names which they get by default.
struct Defaults {
    prefix: String,
    constructor: bool,
    predicate: bool,
    copier: bool,
}

impl Default for Defaults {
    fn default() -> Defaults {
        Defaults { prefix: String::new(), constructor: true, predicate: true, copier: true }
    }
}

/// A symbol's name as the reader has it, or the characters of a string.
fn read(form: &Form, node: &Node) -> Option<String> {
    let written = form.text(node);
    match written.strip_prefix('"') {
        Some(string) => Some(string.trim_end_matches('"').to_owned()),
        None => names::symbol(written).map(|symbol| symbol.name),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::text::document::Document;

    #[test]
    fn a_structure_makes_functions_by_its_options() {
        for (text, expected) in [
            ("(defstruct point \"Words.\" x (y 1 :type fixnum))", "MAKE-POINT POINT-P COPY-POINT POINT-X POINT-Y"),
            ("(defstruct (a (:conc-name nil) (:copier nil) (:predicate a?)) x)", "A? MAKE-A X"),
            (
                "(defstruct (a (:conc-name \"Q\") (:constructor new-a (x)) (:constructor %a) :copier) x)",
                "NEW-A %A A-P COPY-A QX",
            ),
            ("(defstruct (a (:constructor) (:constructor b)) |x|)", "B A-P COPY-A A-x"),
            ("(defstruct)", ""),
        ] {
            let document = Document::new(text, 0);
            let span = document.scan().forms()[0].span;
            assert_eq!(structure_functions(&Form::of(&document, span), span).join(" "), expected, "{text}");
        }
    }
}
