//! The outline of a document: what it defines, in sections by its `;;;;` comments. Offsets are bytes.

use std::ops::Range;

use super::outline::{Definition, definitions, normal};
use crate::text::definitions::is_definer;
use crate::text::tree::{Kind as Node, NodeId, ROOT, Tree};

/// What is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// By `defun` and the like.
    Function,
    /// By `defmacro` and the like.
    Macro,
    /// By `defgeneric`.
    Generic,
    /// By `defmethod`.
    Method,
    /// By `defvar`, `defparameter`.
    Variable,
    /// By `defconstant`.
    Constant,
    /// By `defclass`, `define-condition`.
    Class,
    /// By `defstruct`.
    Struct,
    /// A slot.
    Slot,
    /// By `defpackage`.
    Package,
    /// By `deftype`.
    Type,
    /// By `defsystem`.
    System,
    /// Begun by a `;;;;` comment.
    Section,
    /// By a macro of somebody's.
    Other,
}

/// Something in the outline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its name; of a method with qualifiers and specializers.
    pub name: String,
    /// Its operator.
    pub detail: String,
    /// What it is.
    pub kind: Kind,
    /// The whole form.
    pub range: Range<usize>,
    /// Its name in it.
    pub name_range: Range<usize>,
    /// What is in it.
    pub children: Vec<Symbol>,
}

/// The outline of a text.
pub fn symbols(tree: &Tree) -> Vec<Symbol> {
    let mut found: Vec<Symbol> = definitions(tree)
        .iter()
        .filter(|definition| is_definer(&definition.operator) && !definition.name.is_empty())
        .map(|definition| symbol(tree, definition))
        .collect();
    found.sort_by_key(|symbol| symbol.range.start);
    in_sections(found, &headings(tree), tree.text.len())
}

fn kind(operator: &str) -> Kind {
    match operator {
        "defun" | "define-compiler-macro" | "defsetf" | "define-setf-expander" => Kind::Function,
        "defmacro" | "define-modify-macro" => Kind::Macro,
        "defgeneric" => Kind::Generic,
        "defmethod" => Kind::Method,
        "defvar" | "defparameter" | "define-symbol-macro" => Kind::Variable,
        "defconstant" => Kind::Constant,
        "defclass" | "define-condition" => Kind::Class,
        "defstruct" => Kind::Struct,
        "defpackage" | "define-package" => Kind::Package,
        "deftype" => Kind::Type,
        "defsystem" => Kind::System,
        _ => Kind::Other,
    }
}

fn symbol(tree: &Tree, definition: &Definition) -> Symbol {
    let node = tree.node(definition.outer);
    let kind = kind(&definition.operator);
    let range = node.start..node.end;
    let name_range = definition.name_node.map_or(range.start..range.start, |id| span(tree, id));
    let list = tree.datum(definition.node);
    let slots = match kind {
        Kind::Class => tree.elements(list).nth(3).map(|slots| tree.elements(slots).collect()).unwrap_or_default(),
        Kind::Struct => tree.elements(list).skip(2).collect(),
        _ => Vec::new(),
    };
    let children = slots.into_iter().filter_map(|slot| slot_symbol(tree, slot)).collect();
    Symbol { name: definition.full_name(), detail: definition.operator.clone(), kind, range, name_range, children }
}

fn slot_symbol(tree: &Tree, slot: NodeId) -> Option<Symbol> {
    let datum = tree.datum(slot);
    let name = if tree.node(datum).kind == Node::List { tree.elements(datum).next()? } else { datum };
    let read = tree.symbol(name).filter(|symbol| symbol.package.as_deref() != Some(""))?;
    Some(Symbol {
        name: read.name.to_lowercase(),
        detail: "slot".into(),
        kind: Kind::Slot,
        range: span(tree, slot),
        name_range: span(tree, name),
        children: Vec::new(),
    })
}

fn span(tree: &Tree, id: NodeId) -> Range<usize> {
    let node = tree.node(id);
    node.start..node.end
}

/// The `;;;;` comments between top-level forms that say something, one for each run of lines. What a text begins with is about all of it.
fn headings(tree: &Tree) -> Vec<(String, Range<usize>)> {
    let mut headings: Vec<(String, Range<usize>)> = Vec::new();
    let mut form_seen = false;
    for child in tree.children(ROOT) {
        let node = tree.node(*child);
        if !tree.is_comment(*child) {
            form_seen = true;
            continue;
        }
        let text = tree.text_of(*child);
        if !form_seen || !text.starts_with(";;;;") {
            continue;
        }
        let words = text
            .trim_matches(|char: char| char == ';' || char.is_whitespace() || matches!(char, '-' | '=' | '*' | '#'));
        match headings.last_mut() {
            Some((name, range)) if tree.text[range.end..node.start].trim().is_empty() => {
                range.end = node.end;
                if name.is_empty() {
                    *name = words.to_owned();
                }
            }
            _ => headings.push((words.to_owned(), node.start..node.end)),
        }
    }
    headings.retain(|(name, _)| !name.is_empty());
    headings
}

fn in_sections(symbols: Vec<Symbol>, headings: &[(String, Range<usize>)], end: usize) -> Vec<Symbol> {
    let mut rest = symbols.into_iter().peekable();
    let mut outline = Vec::new();
    let before = headings.first().map_or(end + 1, |(_, range)| range.start);
    while let Some(symbol) = rest.next_if(|symbol| symbol.range.start < before) {
        outline.push(symbol);
    }
    for (index, (name, range)) in headings.iter().enumerate() {
        let until = headings.get(index + 1).map_or(end + 1, |(_, next)| next.start);
        let mut children = Vec::new();
        while let Some(symbol) = rest.next_if(|symbol| symbol.range.start < until) {
            children.push(symbol);
        }
        let last = children.iter().map(|child: &Symbol| child.range.end).max();
        if let Some(last) = last {
            let name = normal_heading(name);
            outline.push(Symbol {
                name,
                detail: String::new(),
                kind: Kind::Section,
                range: range.start..last,
                name_range: range.clone(),
                children,
            });
        }
    }
    outline
}

fn normal_heading(name: &str) -> String {
    const LONGEST: usize = 80;
    if normal(name).chars().count() <= LONGEST { name.to_owned() } else { name.chars().take(LONGEST).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(symbols: &[Symbol]) -> Vec<String> {
        symbols
            .iter()
            .map(|symbol| {
                let inner =
                    if symbol.children.is_empty() { String::new() } else { format!(" {:?}", shown(&symbol.children)) };
                format!("{:?} {}{inner}", symbol.kind, symbol.name)
            })
            .collect()
    }

    #[test]
    fn definitions_stand_in_their_sections() {
        let text = ";;;; The file\n(defpackage :a)\n(in-package :a)\n(defvar *x*)\n\n;;;; ----\n;;;; Shapes\n\n(defclass s () ((x :initarg :x) y))\n(defmethod f :after ((s s)) 1)\n(eval-when (:execute) (defmacro m ()))\n;;;; Empty\n;;;; Rest\n(defstruct (p (:copier nil)) \"Doc.\" (z 1))\n";
        let outline = symbols(&Tree::parse(text));
        assert_eq!(
            shown(&outline),
            [
                "Package a",
                "Variable *x*",
                "Section Shapes [\"Class s [\\\"Slot x\\\", \\\"Slot y\\\"]\", \"Method :after f (s)\", \"Macro m\"]",
                "Section Empty [\"Struct p [\\\"Slot z\\\"]\"]",
            ]
        );
        fn within(symbols: &[Symbol]) {
            for symbol in symbols {
                assert!(symbol.range.start <= symbol.name_range.start && symbol.name_range.end <= symbol.range.end);
                within(&symbol.children);
            }
        }
        within(&outline);
    }
}
