//! The prefix of a structure's accessors, and the parameters of its constructors.

use super::structure::Structure;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::names;

/// The names of the functions that a `defstruct` form defines, as its options give them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StructureNaming {
    /// The prefix of the accessors, in the case in which the reader interns it.
    pub prefix: String,
    /// True if the prefix is the default one: the structure's name and a hyphen.
    pub prefix_by_name: bool,
    /// The constructors, with the default one if there is one.
    pub constructors: Vec<Constructor>,
    /// The names in the options `:constructor`, `:copier` and `:predicate`, as written.
    pub named: Vec<String>,
}

/// A constructor of a structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constructor {
    /// The name as written.
    pub written: String,
    /// The number of parameters before the keywords.
    pub positional: usize,
    /// The names of the parameters whose keywords have the same names. `None` if each slot is such
    /// a parameter.
    pub keys: Option<Vec<String>>,
}

/// Returns the naming of the structure that is defined at `span`. Returns `None` for another form,
/// and for a structure whose prefix cannot be read.
pub fn structure_naming(form: &Form, span: Span) -> Option<StructureNaming> {
    let structure = form.node_at(span).and_then(Structure::of)?;
    let written = form.text(structure.name);
    let bare = &written[names::prefix_length(written)..];
    let mut naming =
        StructureNaming { prefix: structure.prefix(form)?, prefix_by_name: true, ..StructureNaming::default() };
    let of_slots = |written: String| Constructor { written, positional: 0, keys: None };
    let default = || of_slots(format!("make-{bare}"));
    let mut has_constructor = false;
    for (option, arguments) in structure.named_options(form) {
        let given = arguments.first().map(|given| form.text(given).to_owned());
        match option.as_str() {
            ":conc-name" => naming.prefix_by_name = false,
            ":constructor" => {
                has_constructor = true;
                match (given, arguments.get(1)) {
                    (None, _) => naming.constructors.push(default()),
                    (Some(none), None) if none.eq_ignore_ascii_case("nil") => {}
                    (Some(given), parameters) => {
                        naming.named.push(given.clone());
                        naming.constructors.push(match parameters {
                            Some(parameters) => by_parameters(form, given, parameters),
                            None => of_slots(given),
                        });
                    }
                }
            }
            ":predicate" | ":copier" => {
                naming.named.extend(given.filter(|given| !given.eq_ignore_ascii_case("nil")));
            }
            _ => {}
        }
    }
    if !has_constructor {
        naming.constructors.push(default());
    }
    Some(naming)
}

/// Returns the constructor with the lambda list `parameters`.
fn by_parameters(form: &Form, written: String, parameters: &Node) -> Constructor {
    let (mut positional, mut keys, mut section) = (0, Vec::new(), String::new());
    for parameter in &parameters.children {
        let name = form.name(parameter).filter(|name| name.starts_with('&') && parameter.prefix == Prefix::None);
        if let Some(name) = name {
            section = name;
            continue;
        }
        match section.as_str() {
            "" | "&optional" => positional += 1,
            "&key" => {
                let name = if parameter.kind == Kind::List { parameter.children.first() } else { Some(parameter) };
                // A parameter `((:x y))` is left out, because its keyword has another name.
                let name = name.filter(|name| name.kind == Kind::Atom).map(|name| form.text(name));
                keys.extend(name.and_then(names::symbol).map(|symbol| symbol.name));
            }
            _ => {}
        }
    }
    Constructor { written, positional, keys: Some(keys) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::text::document::Document;

    #[test]
    fn options_say_how_functions_are_made() {
        for (text, expected) in [
            ("(defstruct point x)", "POINT- make-point/0/slots"),
            ("(defstruct (a (:conc-name nil) (:copier nil) (:predicate a?)) x)", " make-a/0/slots a?"),
            (
                "(defstruct (a (:conc-name \"Q\") (:constructor new (x &optional y &key z ((:k l)) (m 1))) :constructor))",
                "Q new/2/Z,M make-a/0/slots new",
            ),
            ("(defstruct (a :conc-name (:constructor nil)) x)", ""),
            ("(defstruct (a (:constructor b) (:copier c)) x)", "A- b/0/slots b c"),
        ] {
            let document = Document::new(text, 0);
            let span = document.scan().forms()[0].span;
            let naming = structure_naming(&Form::of(&document, span), span).unwrap();
            let keys = |keys: &Option<Vec<String>>| keys.as_ref().map_or("slots".into(), |keys| keys.join(","));
            let mut all = vec![naming.prefix];
            all.extend(
                naming.constructors.iter().map(|one| format!("{}/{}/{}", one.written, one.positional, keys(&one.keys))),
            );
            all.extend(naming.named);
            assert_eq!(all.join(" "), expected, "{text}");
        }
    }
}
