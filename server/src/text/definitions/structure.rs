//! The parts of a structure's definition, and the functions that it defines.

use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};
use crate::text::names;

/// The parts of `(defstruct name slot ...)` or `(defstruct (name option ...) "..." slot ...)`.
pub struct Structure<'a> {
    /// The name.
    pub name: &'a Node,
    /// The options: lists, or keywords without an argument.
    pub options: &'a [Node],
    /// The documentation.
    pub documentation: Option<&'a Node>,
    /// The slots: names, or lists that begin with a name.
    pub slots: &'a [Node],
}

impl<'a> Structure<'a> {
    /// Reads the definition `node`. Returns `None` if it has no name.
    pub fn of(node: &'a Node) -> Option<Structure<'a>> {
        let named = node.children.get(1)?;
        let (name, options) = match named.kind {
            Kind::List => (named.children.first()?, &named.children[1..]),
            _ => (named, [].as_slice()),
        };
        let rest = node.children.get(2..).unwrap_or_default();
        let documentation = rest.first().filter(|first| first.kind == Kind::String);
        Some(Structure { name, options, documentation, slots: &rest[usize::from(documentation.is_some())..] })
    }

    /// Returns the options in order. Each consists of the keyword, in lower case with its colon,
    /// and the arguments.
    pub fn named_options(&self, form: &Form) -> impl Iterator<Item = (String, &'a [Node])> {
        self.options.iter().filter_map(|option| {
            let (head, arguments) = match option.kind {
                Kind::List => option.children.split_first()?,
                _ => (option, [].as_slice()),
            };
            Some((form.name(head)?, arguments))
        })
    }

    /// Returns the prefix of the accessors, as the reader converts it.
    pub fn prefix(&self, form: &Form) -> Option<String> {
        let given = self.named_options(form).find(|(option, _)| option == ":conc-name");
        match given {
            None => Some(format!("{}-", read(form, self.name)?)),
            Some((_, arguments)) => {
                let prefix = arguments.first().and_then(|given| read(form, given));
                Some(prefix.filter(|prefix| prefix != "NIL").unwrap_or_default())
            }
        }
    }
}

/// Returns the names of the constructors, the predicate, the copier and the accessors of the
/// structure that is defined at `span`. The names are as the reader converts them. Accessors of
/// included slots are left out.
pub fn structure_functions(form: &Form, span: Span) -> Vec<String> {
    let node = form.around(span).into_iter().find(|node| node.span == span);
    let Some(structure) = node.and_then(Structure::of) else { return Vec::new() };
    let (Some(name), Some(prefix)) = (read(form, structure.name), structure.prefix(form)) else { return Vec::new() };
    let mut functions = Vec::new();
    let mut defaults = vec![
        (":constructor", format!("MAKE-{name}")),
        (":predicate", format!("{name}-P")),
        (":copier", format!("COPY-{name}")),
    ];
    for (option, arguments) in structure.named_options(form) {
        if let Some(given) = arguments.first().filter(|_| names_function(&option)) {
            defaults.retain(|(default, _)| *default != option);
            functions.extend(read(form, given).filter(|made| made != "NIL"));
        }
    }
    functions.extend(defaults.into_iter().map(|(_, function)| function));
    for slot in structure.slots {
        let slot = if slot.kind == Kind::List { slot.children.first() } else { Some(slot) };
        let slot = slot.filter(|slot| slot.kind == Kind::Atom).and_then(|slot| read(form, slot));
        functions.extend(slot.map(|slot| format!("{prefix}{slot}")));
    }
    functions
}

/// Returns true if an option names a function that has a default name.
fn names_function(option: &str) -> bool {
    matches!(option, ":constructor" | ":predicate" | ":copier")
}

/// Returns a symbol's name as the reader converts it, or the characters of a string.
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
