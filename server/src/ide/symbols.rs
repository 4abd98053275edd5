//! The outline of a document: its definitions, in sections that begin with `;;;;` comments. Offsets
//! are bytes.

use std::ops::Range;

use super::outline::{Definition, definitions, single_spaced_lowercase};
use crate::text::cancellation;
use crate::text::definitions::is_definer;
use crate::text::scanner::{Scanner, TokenKind};
use crate::text::toplevel::{Scan, TopForm};
use crate::text::tree::{Kind as Node, NodeId, Tree};

/// The kind of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Defined by `defun` or a similar operator.
    Function,
    /// Defined by `defmacro` or a similar operator.
    Macro,
    /// Defined by `defgeneric`.
    Generic,
    /// Defined by `defmethod`.
    Method,
    /// Defined by `defvar` or `defparameter`.
    Variable,
    /// Defined by `defconstant`.
    Constant,
    /// Defined by `defclass` or `define-condition`.
    Class,
    /// Defined by `defstruct`.
    Struct,
    /// A slot.
    Slot,
    /// Defined by `defpackage`.
    Package,
    /// Defined by `deftype`.
    Type,
    /// Defined by `defsystem`.
    System,
    /// A section that a `;;;;` comment begins.
    Section,
    /// Defined by a macro that is not in the standard.
    Other,
}

/// An entry of the outline: a definition, a slot or a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The name. For a method, the name with qualifiers and specializers.
    pub name: String,
    /// The operator of the definition.
    pub detail: String,
    /// The kind of the definition.
    pub kind: Kind,
    /// The range of the whole form.
    pub range: Range<usize>,
    /// The range of the name in the form.
    pub name_range: Range<usize>,
    /// The nested definitions.
    pub children: Vec<Symbol>,
}

/// The maximum number of definitions in an outline. Each takes some kilobytes in a message to an
/// editor.
pub const MAX_DEFINITIONS: usize = 10_000;
/// The size of a large form, in bytes. A larger top-level form is reported without its contents.
const LARGE_FORM_BYTES: usize = 4 << 20;
/// The number of bytes at the beginning of a large form that are parsed.
const PARSED_BEGINNING_BYTES: usize = 4096;
/// The maximum size of a group of forms that are parsed together, in bytes.
const MAX_GROUP_BYTES: usize = 256 << 10;

/// The outline of a text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outline {
    /// The definitions, in their sections.
    pub symbols: Vec<Symbol>,
    /// True if the outline is incomplete, because of [`MAX_DEFINITIONS`] or because the computation
    /// was cancelled.
    pub cut: bool,
}

/// Returns the outline of a text. The forms are parsed in groups, so that only a part of a large
/// text is in memory as a tree.
pub fn outline(text: &str, scan: &Scan) -> Outline {
    let mut found: Vec<Symbol> = Vec::new();
    let mut cut = false;
    let mut forms = scan.forms();
    while let Some(first) = forms.first().copied() {
        if found.len() >= MAX_DEFINITIONS || cancellation::should_stop() {
            cut = true;
            break;
        }
        let bytes = first.bytes.start..first.bytes.end;
        if bytes.len() > LARGE_FORM_BYTES {
            found.extend(large(text, bytes));
            forms = &forms[1..];
            continue;
        }
        let near = |form: &TopForm| form.bytes.end <= bytes.start + MAX_GROUP_BYTES;
        let count = forms.partition_point(near).max(1);
        let (here, rest) = forms.split_at(count);
        found.extend(defined(&Tree::of_forms(text, here)));
        forms = rest;
    }
    cut |= found.len() > MAX_DEFINITIONS;
    found.truncate(MAX_DEFINITIONS);
    found.sort_by_key(|symbol| symbol.range.start);
    let symbols = in_sections(found, &headings(text, scan), text.len());
    Outline { symbols, cut }
}

/// Returns the definitions in a text that was not scanned yet.
pub fn symbols(text: &str) -> Vec<Symbol> {
    outline(text, &Scan::of(text)).symbols
}

fn defined(tree: &Tree) -> Vec<Symbol> {
    let all = definitions(tree);
    let named = all.iter().filter(|definition| is_definer(&definition.operator) && !definition.name.is_empty());
    named.map(|definition| symbol(tree, definition)).collect()
}

/// Returns the definition of a large form. Only the beginning of the form is parsed.
fn large(text: &str, bytes: Range<usize>) -> Option<Symbol> {
    let mut end = (bytes.start + PARSED_BEGINNING_BYTES).min(bytes.end);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut found = defined(&Tree::of_form(&text[bytes.start..end])).into_iter().next()?;
    found.name_range = found.name_range.start + bytes.start..found.name_range.end + bytes.start;
    found.range = bytes;
    found.children = Vec::new();
    Some(found)
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

/// Returns the non-empty `;;;;` comments between top-level forms, one for each run of lines. A
/// comment at the start of a text concerns the whole text and is left out.
fn headings(text: &str, scan: &Scan) -> Vec<(String, Range<usize>)> {
    let mut headings: Vec<(String, Range<usize>)> = Vec::new();
    let ends = scan.forms().iter().map(|form| form.bytes.end);
    let starts = scan.forms().iter().skip(1).map(|form| form.bytes.start).chain([text.len()]);
    for (from, to) in ends.zip(starts) {
        let between = &text[from..to];
        if headings.len() >= MAX_DEFINITIONS || cancellation::should_stop() {
            break;
        }
        if between.contains(";;;;") {
            headings_in(text, from, between, &mut headings);
        }
    }
    headings.retain(|(name, _)| !name.is_empty());
    headings
}

/// Adds the headings between two forms.
fn headings_in(whole: &str, from: usize, between: &str, headings: &mut Vec<(String, Range<usize>)>) {
    for token in Scanner::inside(between).filter(|token| token.kind == TokenKind::LineComment) {
        let range =
            from + token.start..from + token.start + between[token.start..token.end].trim_end_matches('\r').len();
        let text = &whole[range.clone()];
        if !text.starts_with(";;;;") {
            continue;
        }
        let words = text
            .trim_matches(|char: char| char == ';' || char.is_whitespace() || matches!(char, '-' | '=' | '*' | '#'));
        match headings.last_mut() {
            Some((name, last)) if whole[last.end..range.start].trim().is_empty() => {
                last.end = range.end;
                if name.is_empty() {
                    *name = words.to_owned();
                }
            }
            _ => headings.push((words.to_owned(), range)),
        }
    }
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
    const MAX_CHARS: usize = 80;
    if single_spaced_lowercase(name).chars().count() <= MAX_CHARS {
        name.to_owned()
    } else {
        name.chars().take(MAX_CHARS).collect()
    }
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
        let outline = symbols(text);
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
