//! The place of a refactoring: the top-level form, the selection, and the known facts about macros.

use super::names::Names;
use crate::ide::index::Snapshot;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::document::Document;
use crate::text::scopes::{BindingKind, Scopes};

/// An edit of a text. Edits of the same cluster are indented together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    /// The replaced span of the document, in characters.
    pub(super) span: Span,
    /// The replacement.
    pub(super) text: String,
    /// The number of the edit's cluster.
    pub(super) cluster: usize,
    /// The changed document as an index in [`Site::others`]. `None` stands for the site's own
    /// document.
    pub(super) other: Option<usize>,
}

/// Macros by name, with the number of arguments before the body, or `None` if that is not known.
pub(super) type MacroBodies = std::collections::HashMap<String, Option<usize>>;

/// The known facts about operators that are not in the standard.
#[derive(Debug, Default)]
pub(super) struct Macros {
    /// The number of arguments before the body, by the name of the macro. The number is `None` if
    /// it is not known.
    macros: MacroBodies,
    /// The names of known functions.
    functions: std::collections::HashSet<String>,
    /// The names that have no known definition. They may be macros of packages about which nothing
    /// is known.
    undefined: std::collections::HashSet<String>,
}

/// The evaluation of the arguments of an operator that is not in the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// All arguments are evaluated.
    Function,
    /// The arguments after the first ones, of which this is the number, are a body.
    Body(usize),
    /// The evaluation of the arguments is not known.
    Unknown,
}

impl Macros {
    pub(super) fn add_macro(&mut self, name: &str, body: Option<usize>) {
        self.macros.insert(name.to_owned(), body);
    }

    pub(super) fn add_function(&mut self, name: &str) {
        self.functions.insert(name.to_owned());
    }

    pub(super) fn add_undefined(&mut self, name: &str) {
        self.undefined.insert(name.to_owned());
    }

    /// Returns the text of the reason why an argument of an operator cannot be judged. `written` is
    /// the operator as in the text.
    pub(super) fn reason(&self, written: &str) -> String {
        let is_undefined = |name: &String| self.undefined.contains(name) && !self.macros.contains_key(name);
        let undefined = crate::text::datum::symbol_name(written).filter(is_undefined).is_some();
        let why = if undefined { ", which neither the workspace nor the image defines," } else { "" };
        format!("it is not known how {written}{why} evaluates it")
    }

    /// Returns how an operator evaluates its arguments. An operator without a known definition is
    /// [`Operator::Unknown`]. Any other unlisted operator counts as a function, unless its name is
    /// that of a macro by convention: it begins with `with-` or `do-`, or is the name of a defining
    /// macro.
    pub(super) fn operator(&self, name: &str) -> Operator {
        match self.macros.get(name) {
            Some(Some(body)) => Operator::Body(*body),
            Some(None) => Operator::Unknown,
            None if self.functions.contains(name) => Operator::Function,
            None if self.undefined.contains(name) => Operator::Unknown,
            None if name.starts_with("with-") || name.starts_with("do-") => Operator::Body(1),
            None if crate::text::definitions::is_definer(name) => Operator::Unknown,
            None => Operator::Function,
        }
    }
}

/// The place of a refactoring.
pub(super) struct Site<'a> {
    pub(super) document: &'a Document,
    /// The file of the text, if the index has it.
    pub(super) path: Option<&'a std::path::Path>,
    /// The top-level form.
    pub(super) form: &'a Form,
    pub(super) scopes: Scopes,
    /// The selection without white space at its ends; empty for a cursor.
    pub(super) selection: Span,
    pub(super) macros: &'a Macros,
    pub(super) names: &'a Names,
    /// Other documents, by URI: the open ones, and those of the files that define the package in
    /// force.
    pub(super) others: &'a [(String, Document)],
    /// The texts of files that define the function named at the start of the selection, or the
    /// operator there. Files that are open in an editor are not among them.
    pub(super) closed_definers: &'a [Document],
    /// The index of the workspace's texts.
    pub(super) index: &'a Snapshot,
    /// The texts, besides `document` and `others`, that may mention certain names. A refactoring
    /// depends on the uses of these names elsewhere. They are the names that the package definition
    /// at the selection imports, and the name at the selection if it is exported or has a prefix.
    /// `None` if there are too many texts.
    pub(super) users: Option<&'a [Document]>,
    /// The line break of the text.
    pub(super) newline: &'static str,
}

/// Consecutive elements of a list, and the lists around them, outermost first.
pub(super) struct Selected<'a> {
    pub(super) parents: Vec<&'a Node>,
    pub(super) nodes: &'a [Node],
    /// The selected bytes of the form's text: the elements, and comments before and after them.
    pub(super) bytes: (usize, usize),
}

/// Returns a selection without white space at its ends.
pub(super) fn trimmed(document: &Document, selection: Span) -> Span {
    let text = document.text();
    let (mut start, mut end) = (selection.start, selection.end.min(text.len_chars()));
    while start < end && text.char(start).is_whitespace() {
        start += 1;
    }
    while end > start && text.char(end - 1).is_whitespace() {
        end -= 1;
    }
    Span { start, end: end.max(start) }
}

impl<'a> Site<'a> {
    /// Converts an offset of the document, in characters, to a byte of the form's text.
    fn byte(&self, offset: usize) -> usize {
        let chars = offset.saturating_sub(self.form.span.start);
        self.form.source.char_indices().nth(chars).map_or(self.form.source.len(), |(byte, _)| byte)
    }

    /// Returns true if the selection is not empty.
    pub(super) fn has_selection(&self) -> bool {
        self.selection.start < self.selection.end
    }

    /// Returns the data around and at the selection, outermost first.
    pub(super) fn chain(&self) -> Vec<&'a Node> {
        self.form.around(self.selection)
    }

    /// Returns the selected elements. Without a selection, returns the innermost list around the
    /// cursor. Returns `None` if only a part of an element is selected.
    pub(super) fn selected(&self) -> Option<Selected<'a>> {
        let mut chain = self.chain();
        if !self.has_selection() {
            let at = chain.iter().rposition(|node| node.kind == Kind::List)?;
            let list = chain[at];
            chain.truncate(at);
            let bytes = (list.start(), list.end());
            return Some(Selected { parents: chain, nodes: std::slice::from_ref(list), bytes });
        }
        let last = *chain.last()?;
        let (start, end) = (self.byte(self.selection.start), self.byte(self.selection.end));
        if last.start() == start && last.end() == end {
            chain.pop();
            return Some(Selected { parents: chain, nodes: std::slice::from_ref(last), bytes: (start, end) });
        }
        let all = last.elements();
        let from = all.iter().position(|node| node.start() >= start)?;
        let to = all.iter().rposition(|node| node.end() <= end)?;
        let cut =
            all[..from].iter().any(|node| node.end() > start) || all[to + 1..].iter().any(|node| node.start() < end);
        (from <= to && !cut).then(|| Selected { parents: chain, nodes: &all[from..=to], bytes: (start, end) })
    }

    /// Returns the innermost list around the cursor that has one of these operators, preceded by
    /// the nodes around that list, outermost first. Returns `None` if there is no such list, or if
    /// one of the returned nodes or an element of the list is guarded (`#+`, `#-`).
    pub(super) fn nearest(&self, operators: &[&str]) -> Option<Vec<&'a Node>> {
        let mut chain = self.chain();
        let is = |node: &&Node| {
            node.is_list() && self.form.operator(node).is_some_and(|name| operators.contains(&name.as_str()))
        };
        let at = chain.iter().rposition(is)?;
        chain.truncate(at + 1);
        let whole = chain.iter().all(|node| !node.guarded) && chain[at].children.iter().all(|node| !node.guarded);
        whole.then_some(chain)
    }

    /// Returns an edit of a range of bytes of the form's text.
    pub(super) fn edit(&self, start: usize, end: usize, text: impl Into<String>) -> Edit {
        Edit { span: self.form.span_of(start, end), text: text.into(), cluster: 0, other: None }
    }

    /// Returns an unused name: `wanted`, followed by a number if the form, its bindings or the
    /// global names already contain `wanted`. If `variable` is true, uses as an operator are
    /// ignored.
    pub(super) fn fresh(&self, wanted: &str, variable: bool) -> String {
        fn has(form: &Form, list: &[Node], name: &str, variable: bool) -> bool {
            list.iter().enumerate().any(|(index, node)| {
                let called = variable && (index == 0 && node.is_plain() || node.prefix == Prefix::Function);
                !called && form.name(node).as_deref() == Some(name) || has(form, &node.children, name, variable)
            })
        }
        let bound = |name: &str| self.scopes.bindings.iter().any(|binding| binding.name == name);
        let global = |name: &str| if variable { self.is_global(name) } else { self.names.is_operator(name) };
        let is_unused =
            |name: &String| !bound(name) && !global(name) && !has(self.form, &self.form.nodes, name, variable);
        let name = crate::text::names::numbered(wanted).find(is_unused).unwrap_or_default();
        self.cased(&name)
    }

    /// Returns the edits with an empty edit at each end of a list, so that the whole list is
    /// indented.
    pub(super) fn with_whole_list_indented(&self, list: &Node, mut edits: Vec<Edit>) -> Vec<Edit> {
        edits.insert(0, self.edit(list.start(), list.start(), ""));
        edits.push(self.edit(list.end(), list.end(), ""));
        edits
    }

    /// Returns a word in upper case if the form's operator is written in upper case, and unchanged
    /// otherwise.
    pub(super) fn cased(&self, word: &str) -> String {
        let head = self.form.nodes.first().and_then(|node| node.children.first());
        let written = head.map(|head| self.form.text(head)).unwrap_or_default();
        let upper = written.chars().any(char::is_uppercase) && !written.chars().any(char::is_lowercase);
        if upper { word.to_uppercase() } else { word.to_owned() }
    }

    /// Returns the text of the form between two byte offsets.
    pub(super) fn between(&self, start: usize, end: usize) -> &'a str {
        self.form.source.get(start..end).unwrap_or_default()
    }

    /// Returns the kind of the local binding that a name refers to.
    pub(super) fn local_kind(&self, name: &Node) -> Option<BindingKind> {
        self.scopes.resolve(name.span.start).map(|index| self.scopes.bindings[index].kind)
    }

    /// Returns true if a list may be the call of a global macro of the user.
    pub(super) fn may_call_macro(&self, list: &Node, operator: &str) -> bool {
        list.children.first().is_none_or(|head| self.local_kind(head).is_none())
            && crate::ide::hyperspec::page_of_symbol(operator).is_none()
            && self.macros.operator(operator) != Operator::Function
    }

    /// Returns true if a variable of this name may be special or constant.
    pub(super) fn is_global(&self, name: &str) -> bool {
        self.names.is_global(name)
    }

    /// Returns true if one of these bindings may be dynamic.
    pub(super) fn binds_special(&self, bindings: &[Node]) -> bool {
        bindings.iter().any(|binding| {
            let name = if binding.kind == Kind::List { binding.children.first() } else { Some(binding) };
            name.and_then(|name| self.form.name(name)).is_some_and(|name| self.is_global(&name))
        })
    }
}
