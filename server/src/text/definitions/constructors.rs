//! The prefix of a structure's accessors, and how its constructors are called.

use super::structure::Structure;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::names;

/// The names by which the functions of a structure are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Made {
    /// The prefix of its accessors, upper-case where the reader has it so.
    pub prefix: String,
    /// True if the prefix is made of the structure's own name.
    pub prefix_by_name: bool,
    /// The constructors.
    pub constructors: Vec<Constructor>,
    /// The functions that an option names, as written.
    pub named: Vec<String>,
}

/// A constructor of a structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constructor {
    /// The name as written.
    pub written: String,
    /// The number of parameters before the keywords.
    pub positional: usize,
    /// The parameters whose keywords have their names; `None`: each slot is one.
    pub keys: Option<Vec<String>>,
}

/// Returns the names by which the structure that is defined at `span` makes its functions.
pub fn made(form: &Form, span: Span) -> Option<Made> {
    fn find(nodes: &[Node], span: Span) -> Option<&Node> {
        nodes.iter().find_map(|node| if node.span == span { Some(node) } else { find(&node.children, span) })
    }
    let structure = find(&form.nodes, span).and_then(Structure::of)?;
    let written = form.text(structure.name);
    let bare = &written[names::prefix_length(written)..];
    let mut made = Made { prefix: structure.prefix(form)?, prefix_by_name: true, ..Made::default() };
    let of_slots = |written: String| Constructor { written, positional: 0, keys: None };
    let default = || of_slots(format!("make-{bare}"));
    let mut has_constructor = false;
    for (option, arguments) in structure.named_options(form) {
        let given = arguments.first().map(|given| form.text(given).to_owned());
        match option.as_str() {
            ":conc-name" => made.prefix_by_name = false,
            ":constructor" => {
                has_constructor = true;
                match (given, arguments.get(1)) {
                    (None, _) => made.constructors.push(default()),
                    (Some(none), None) if none.eq_ignore_ascii_case("nil") => {}
                    (Some(given), parameters) => {
                        made.named.push(given.clone());
                        made.constructors.push(match parameters {
                            Some(parameters) => by_parameters(form, given, parameters),
                            None => of_slots(given),
                        });
                    }
                }
            }
            ":predicate" | ":copier" => {
                made.named.extend(given.filter(|given| !given.eq_ignore_ascii_case("nil")));
            }
            _ => {}
        }
    }
    if !has_constructor {
        made.constructors.push(default());
    }
    Some(made)
}

/// A constructor with a lambda list of its own.
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
                // `((:x y))` has a keyword of its own.
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
            let made = made(&Form::of(&document, span), span).unwrap();
            let keys = |keys: &Option<Vec<String>>| keys.as_ref().map_or("slots".into(), |keys| keys.join(","));
            let mut all = vec![made.prefix];
            all.extend(
                made.constructors.iter().map(|one| format!("{}/{}/{}", one.written, one.positional, keys(&one.keys))),
            );
            all.extend(made.named);
            assert_eq!(all.join(" "), expected, "{text}");
        }
    }
}
