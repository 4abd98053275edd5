//! The definitions of a text: its top-level forms, and those within `progn`, `eval-when` and the
//! like. Each has its operator, its name and, for a method, its qualifiers and specializers.
//! Offsets are bytes of the text.

mod selector;

pub use selector::{DefinitionSelector, DefinitionsByKey, operator_of, operators_meant, selectors};

use crate::text::definitions::is_definer;
use crate::text::tree::{Kind, NodeId, ROOT, Tree};

/// A top-level form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The operator in lower case, without its package: `defun`, `defmethod`, `in-package`, ...
    pub operator: String,
    /// The name or subject: the second element, such as `foo` or `(setf foo)`. A symbol is in lower
    /// case and without a package prefix.
    pub name: String,
    /// The qualifiers of a method, such as `:after`.
    pub qualifiers: Vec<String>,
    /// The specializers of a method: the class of each required parameter, `t` if it has none.
    pub specializers: Option<Vec<String>>,
    /// The node of the name.
    pub name_node: Option<NodeId>,
    /// The form, without its guards.
    pub node: NodeId,
    /// The form with its guards (`#+sbcl (defun ...)`).
    pub outer: NodeId,
    /// The depth within `progn` and the like; 0 at top level.
    pub depth: usize,
}

/// Forms whose bodies are, or are commonly used as, top-level forms, with the number of arguments
/// before the body.
const WRAPPERS: [(&str, usize); 10] = [
    ("progn", 0),
    ("eval-when", 1),
    ("locally", 0),
    ("macrolet", 1),
    ("symbol-macrolet", 1),
    ("let", 1),
    ("let*", 1),
    ("flet", 1),
    ("labels", 1),
    ("handler-bind", 1),
];

/// Returns all top-level forms in order, each before the forms within it.
pub fn definitions(tree: &Tree) -> Vec<Definition> {
    let mut found = Vec::new();
    for child in tree.elements(ROOT) {
        collect(tree, child, 0, &mut found);
    }
    found
}

fn collect(tree: &Tree, outer: NodeId, depth: usize, found: &mut Vec<Definition>) {
    const MAX_DEPTH: usize = 8;
    let Some(definition) = definition(tree, outer, depth) else { return };
    let body = WRAPPERS.iter().find(|(operator, _)| *operator == definition.operator).map(|(_, before)| before + 1);
    let node = tree.datum(definition.node);
    found.push(definition);
    if let Some(body) = body.filter(|_| depth < MAX_DEPTH) {
        for child in tree.elements(node).skip(body).collect::<Vec<_>>() {
            if tree.operator(tree.datum(child)).is_some_and(|operator| is_definer(&operator) || is_wrapper(&operator)) {
                collect(tree, child, depth + 1, found);
            }
        }
    }
}

fn is_wrapper(operator: &str) -> bool {
    WRAPPERS.iter().any(|(wrapper, _)| *wrapper == operator)
}

fn definition(tree: &Tree, outer: NodeId, depth: usize) -> Option<Definition> {
    let node = tree.unguarded(outer);
    let list = tree.datum(node);
    let unnamed = |operator: String| Definition {
        operator,
        name: String::new(),
        qualifiers: Vec::new(),
        specializers: None,
        name_node: None,
        node,
        outer,
        depth,
    };
    // Quoted data defines nothing.
    let Some(operator) = tree.operator(list).filter(|_| tree.node(node).kind != Kind::Prefixed) else {
        let kind = tree.node(outer).kind;
        return (kind != Kind::Stray).then(|| unnamed(short(tree.text_of(node))));
    };
    let mut definition = unnamed(operator);
    let second = tree.elements(list).nth(1);
    let Some(second) = second else { return Some(definition) };
    definition.name = name(tree, second, is_definer(&definition.operator));
    definition.name_node = Some(name_node(tree, second, is_definer(&definition.operator)));
    if definition.operator == "defmethod" {
        for id in tree.elements(list).skip(2) {
            if tree.node(id).kind == Kind::List {
                definition.specializers = Some(specializers(tree, id));
                break;
            }
            definition.qualifiers.push(tree.text_of(id).to_lowercase());
        }
    }
    Some(definition)
}

/// Returns the text in one line, at most `MAX_CHARS` characters of it.
fn short(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let line = single_spaced_lowercase(text);
    if line.chars().count() <= MAX_CHARS { line } else { line.chars().take(MAX_CHARS).chain("...".chars()).collect() }
}

/// Returns the text with single spaces, in lower case.
pub fn single_spaced_lowercase(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

fn name_node(tree: &Tree, id: NodeId, definer: bool) -> NodeId {
    let datum = tree.datum(id);
    if definer
        && tree.node(datum).kind == Kind::List
        && tree.operator(datum).is_none_or(|head| head != "setf" && head != "cas")
    {
        // `(defstruct (name ...))` and the like.
        return tree.elements(datum).next().unwrap_or(datum);
    }
    datum
}

fn name(tree: &Tree, id: NodeId, definer: bool) -> String {
    let id = name_node(tree, id, definer);
    let text = tree.text_of(id);
    match (tree.node(id).kind, tree.symbol(id)) {
        (_, Some(symbol)) => symbol.name.to_lowercase(),
        (Kind::String, _) => text.trim_matches('"').to_owned(),
        (Kind::List, _) if definer => match tree.elements(id).nth(1).and_then(|of| tree.symbol(of)) {
            Some(of) => format!("({} {})", tree.operator(id).unwrap_or_default(), of.name.to_lowercase()),
            None => short(text),
        },
        _ => short(text),
    }
}

/// Returns the specializers that a method's lambda list names.
fn specializers(tree: &Tree, lambda_list: NodeId) -> Vec<String> {
    let required = tree.elements(lambda_list).take_while(|id| !tree.text_of(*id).starts_with('&'));
    required
        .map(|id| {
            let class = (tree.node(id).kind == Kind::List).then(|| tree.elements(id).nth(1)).flatten();
            class.map_or_else(|| "t".to_owned(), |class| specializer(tree, class))
        })
        .collect()
}

fn specializer(tree: &Tree, id: NodeId) -> String {
    tree.symbol(id).map_or_else(|| single_spaced_lowercase(tree.text_of(id)), |symbol| symbol.name.to_lowercase())
}

impl Definition {
    /// Returns the name, and for a method, its qualifiers and specializers, such as
    /// `:after area (square t)`.
    pub fn full_name(&self) -> String {
        let mut words: Vec<String> = self.qualifiers.clone();
        words.push(self.name.clone());
        if let Some(specializers) = &self.specializers {
            words.push(format!("({})", specializers.join(" ")));
        }
        words.join(" ")
    }

    /// Returns the heading of the definition in a list: `defmethod :after area (square t)`.
    pub fn title(&self) -> String {
        let name = self.full_name();
        if name.is_empty() { self.operator.clone() } else { format!("{} {name}", self.operator) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "(in-package :a)
(defun foo (x) x)
(defun (setf foo) (v x) v)
(defmethod area ((s square) y) 1)
(defmethod area :after ((s square) y) 1)
(defmethod area ((s (eql :x)) (y cl:integer) &key z) 1)
(defstruct (point (:conc-name p-)) x y)
(eval-when (:compile-toplevel) (defmacro a:m (x) x) (foo))
#+sbcl (defun g () 1)
#-sbcl (defun g () 2)
(cl:defpackage #:b)
(let ((x 1)) (defun closure () x))
(foo 1)
";

    /// Returns the definitions that an operator and a name select.
    fn found<'a>(all: &'a [Definition], tree: &Tree, operator: &str, name: &str) -> Vec<&'a Definition> {
        let found = DefinitionsByKey::new(all, tree).selected(&DefinitionSelector::new(name), operator);
        found.into_iter().map(|index| &all[index]).collect()
    }

    #[test]
    fn a_form_without_an_operator_is_found_by_its_text_with_colons() {
        let text = "#.(loop for mode in (crypto:modes) collect `(rtest:deftest ,mode))\n\
                    #.(loop for mode in (crypto:modes) collect `(rtest:deftest ,mode))\n'(a:b c)\n(b c)\n";
        let tree = Tree::parse(text);
        let all = definitions(&tree);
        for (definition, name) in all.iter().zip(selectors(&all, &tree)) {
            assert_eq!(found(&all, &tree, &definition.operator, &name), [definition], "{name}");
        }
    }

    #[test]
    fn every_form_has_its_name() {
        let tree = Tree::parse(TEXT);
        let titles: Vec<String> = definitions(&tree).iter().map(Definition::title).collect();
        assert_eq!(
            titles,
            [
                "in-package a",
                "defun foo",
                "defun (setf foo)",
                "defmethod area (square t)",
                "defmethod :after area (square t)",
                "defmethod area ((eql :x) integer)",
                "defstruct point",
                "eval-when (:compile-toplevel)",
                "defmacro m",
                "defun g",
                "defun g",
                "defpackage b",
                "let ((x 1))",
                "defun closure",
                "foo 1",
            ]
        );
    }

    #[test]
    fn names_find_what_they_name() {
        let tree = Tree::parse(TEXT);
        let all = definitions(&tree);
        for (operator, name, found) in [
            ("defun", "foo", 1),
            ("DEFUN", "FOO", 1),
            ("defun", "a::foo", 1),
            ("defun", "(setf foo)", 1),
            ("defun", "(setf a:foo)", 1),
            ("defmethod", "area", 3),
            ("defmethod", "area (square t)", 1),
            ("defmethod", "area ((s square) y)", 1),
            ("defmethod", "area :after ((s square) y)", 1),
            ("defmethod", ":after area", 1),
            ("defmethod", "area ((eql :x) integer)", 1),
            ("defmethod", "area ((a (eql :x)) (b integer))", 1),
            ("defmethod", "area (circle)", 0),
            ("defun", "g", 2),
            ("defun", "g[2]", 1),
            ("defun", "g[3]", 0),
            ("cl:defpackage", ":b", 1),
            ("let", "((x 1))", 1),
            ("defmacro", "foo", 0),
        ] {
            assert_eq!(self::found(&all, &tree, operator, name).len(), found, "{operator} {name}");
        }
    }

    #[test]
    fn each_is_found_by_its_selector() {
        let tree = Tree::parse(TEXT);
        let all = definitions(&tree);
        for (definition, selector) in all.iter().zip(selectors(&all, &tree)) {
            assert_eq!(found(&all, &tree, &definition.operator, &selector), [definition], "{selector}");
        }
    }
}
