//! Indentation by the conventions of Common Lisp. Changes only white space at the start of lines,
//! and never inside a string, a comment or a symbol, so the reader reads the same data.

mod columns;
mod loops;
pub mod roles;
pub mod rules;
pub mod user_rules;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use crate::text::stop;
use crate::text::tree::{Kind, NodeId, Path, ROOT, Tree};
use columns::Columns;
use loops::Clauses;
use roles::{Role, Roles};
use rules::Bodies;

/// The editor's formatting options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Columns of a tab.
    pub tab_size: usize,
    /// Indents with tabs.
    pub tabs: bool,
}

/// The range of lines to indent, 0-based.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndentRange {
    /// The lines.
    pub lines: Range<usize>,
    /// Also blank lines (for typing there), and lines of forms that do not balance.
    pub typing: bool,
}

/// White space at the start of a line (in bytes of the text), and its replacement.
pub type Change = (Range<usize>, String);

/// A comment in this column or further to the right is not moved.
const FAR: usize = 32;
/// A line that would begin further to the right is left unchanged. No real code does so, and the
/// white space of many such lines would far exceed their text.
const FARTHEST: usize = 500;

/// The changes that indent the lines.
pub fn format(tree: &Tree, wanted: &IndentRange, bodies: &Bodies, options: Options) -> Vec<Change> {
    let roles = Roles::of(tree, bodies);
    let mut lines = Lines::new(tree, &roles, options.tab_size.max(1));
    let mut changes = Vec::new();
    let mut path = Path::default();
    for line in wanted.lines.start..wanted.lines.end.min(lines.starts.len()) {
        if stop::now() {
            break;
        }
        if !lines.protected[line] {
            lines.indent[line] = match lines.column_wanted(line, wanted.typing, bodies, &mut path) {
                None => continue,
                Some(column) if column > FARTHEST => continue,
                Some(column) => column,
            };
            let range = lines.starts[line]..lines.first[line];
            let text = white(lines.indent[line], options);
            if tree.text[range.clone()] != text {
                changes.push((range, text));
            }
        }
    }
    changes
}

fn white(columns: usize, options: Options) -> String {
    if options.tabs {
        let size = options.tab_size.max(1);
        "\t".repeat(columns / size) + &" ".repeat(columns % size)
    } else {
        " ".repeat(columns)
    }
}

/// The lines of a text, as they are indented so far.
pub(super) struct Lines<'a> {
    tree: &'a Tree<'a>,
    roles: &'a Roles<'a>,
    columns: Columns<'a>,
    /// Cached data of lists whose elements span many lines.
    data: RefCell<HashMap<NodeId, Keywords>>,
    clauses: RefCell<HashMap<NodeId, Clauses>>,
    /// The first byte of each line.
    starts: Vec<usize>,
    /// The first byte of each line that is no space or tab.
    first: Vec<usize>,
    /// The column of that byte, as it will be.
    indent: Vec<usize>,
    /// A string, a comment or a symbol goes on there.
    protected: Vec<bool>,
}

/// The last `&key` or the like among the first elements of a list.
#[derive(Debug, Clone, Copy, Default)]
struct Keywords {
    /// The number of elements processed so far.
    seen: usize,
    last: Option<usize>,
}

impl<'a> Lines<'a> {
    fn new(tree: &'a Tree<'a>, roles: &'a Roles<'a>, tab_size: usize) -> Lines<'a> {
        let text = tree.text;
        let columns = Columns::new(text, tab_size);
        let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let first: Vec<usize> = starts
            .iter()
            .map(|start| start + text[*start..].bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count())
            .collect();
        let indent = starts.iter().zip(&first).map(|(start, first)| columns.width(*start, *first, 0)).collect();
        let mut protected = vec![false; starts.len()];
        for id in tree.ids().skip(1) {
            let node = tree.node(id);
            if tree.children(id).is_empty()
                && !matches!(node.kind, Kind::List | Kind::Prefixed | Kind::Guarded)
                && text[node.start..node.end].contains('\n')
            {
                let from = starts.partition_point(|start| *start <= node.start);
                let to = starts.partition_point(|start| *start <= node.end);
                protected[from..to].fill(true);
            }
        }
        let (data, clauses) = Default::default();
        Lines { tree, roles, columns, data, clauses, starts, first, indent, protected }
    }

    fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }

    /// The column of a byte, as it will be.
    pub(super) fn column(&self, at: usize) -> usize {
        let line = self.line(at);
        let (from, column) =
            if self.protected[line] { (self.starts[line], 0) } else { (self.first[line].min(at), self.indent[line]) };
        self.columns.column(from, column, at)
    }

    pub(super) fn column_of(&self, id: NodeId) -> usize {
        self.column(self.tree.node(id).start)
    }

    /// The column of a byte, as it is.
    fn old_column(&self, at: usize) -> usize {
        self.columns.width(self.starts[self.line(at)], at, 0)
    }

    /// Returns true if the second begins on the same line as the first.
    pub(super) fn same_line(&self, first: NodeId, second: NodeId) -> bool {
        self.line(self.tree.node(first).start) == self.line(self.tree.node(second).start)
    }

    /// The column of the first token of the line on which a node begins.
    pub(super) fn column_of_line(&self, id: NodeId) -> usize {
        let line = self.line(self.tree.node(id).start);
        if self.protected[line] { self.column_of(id) } else { self.indent[line] }
    }

    pub(super) fn begins_line(&self, id: NodeId) -> bool {
        let start = self.tree.node(id).start;
        self.first[self.line(start)] == start
    }

    /// The column at which a line is to begin; `None`: it is left as it is.
    fn column_wanted(&self, line: usize, typing: bool, bodies: &Bodies, path: &mut Path) -> Option<usize> {
        let first = self.first[line];
        let rest = self.tree.text[first..].split('\n').next().unwrap_or_default().trim_end_matches('\r');
        if rest.is_empty() && !typing {
            return Some(0);
        }
        if rest.starts_with('\x0c') {
            return None;
        }
        path.go_to(self.tree, first, false);
        let path = &path.nodes;
        if !typing && path.get(1).is_some_and(|top| !self.is_sound(*top)) {
            return None;
        }
        let container = *path.iter().rev().find(|id| !self.tree.is_comment(**id)).unwrap_or(&ROOT);
        if rest.starts_with(';') {
            if let Some(column) = self.comment_column(line, container, rest) {
                return Some(column);
            }
            if rest.starts_with(";;;") && container != ROOT {
                return None;
            }
        }
        Some(self.column_in(container, first, bodies))
    }

    fn is_sound(&self, top: NodeId) -> bool {
        let node = self.tree.node(top);
        node.whole || self.tree.is_comment(top) || node.kind == Kind::Stray
    }

    /// The column of a comment with one semicolon: below the comment it continues, or unchanged
    /// if it is far to the right.
    fn comment_column(&self, line: usize, container: NodeId, rest: &str) -> Option<usize> {
        if rest.starts_with(";;") {
            return None;
        }
        let column = self.old_column(self.first[line]);
        let above = line.checked_sub(1).filter(|above| !self.protected[*above]).and_then(|above| {
            let children = self.tree.children(container);
            let at = children.partition_point(|id| self.tree.node(*id).start < self.first[line]);
            let mut before = *children.get(at.checked_sub(1)?)?;
            // The comment may be inside a datum that ended on the line above.
            while self.tree.node(before).kind != Kind::LineComment {
                before = *self.tree.children(before).last()?;
            }
            (self.line(self.tree.node(before).start) == above).then_some(before)
        });
        if let Some(above) = above.filter(|above| self.old_column(self.tree.node(*above).start) == column && column > 0)
        {
            let of_code = !self.begins_line(above) || self.old_column(self.tree.node(above).start) >= FAR;
            if of_code {
                return Some(self.column_of(above));
            }
        }
        (column >= FAR).then_some(column)
    }

    fn column_in(&self, container: NodeId, at: usize, bodies: &Bodies) -> usize {
        let node = self.tree.node(container);
        match node.kind {
            Kind::Root => 0,
            Kind::List => self.column_in_list(container, at, bodies),
            _ => self.column(node.start),
        }
    }

    fn column_in_list(&self, list: NodeId, at: usize, bodies: &Bodies) -> usize {
        let tree = self.tree;
        let node = tree.node(list);
        let open = self.column(node.start);
        let elements = tree.element_list(list);
        let (before, behind) = elements.split_at(elements.partition_point(|id| tree.node(*id).start < at));
        let next = behind.first().copied().filter(|id| tree.node(*id).start == at);
        let Some(&head) = before.first() else { return open + (node.inner - node.start) };
        let role = self.roles.role(list);
        let Some(operator) = self.roles.operator(list).filter(|_| role != Role::Data) else {
            return self.column_in_data(list, before, next).unwrap_or_else(|| self.column_of(head));
        };
        let number = before.len();
        let body = |arguments: usize| if number <= arguments { open + 4 } else { open + 2 };
        // Behind a first statement that stands beside the operator.
        let statement = |arguments: usize| match before {
            [_, first, .., last] if number > arguments + 1 && self.same_line(head, *last) => self.column_of(*first),
            [_, only] if number > arguments + 1 && self.same_line(head, *only) => self.column_of(*only),
            _ => body(arguments),
        };
        match role {
            Role::Clause => return open + 1,
            Role::Binding if number == 1 => return open + 2,
            Role::Function => return body(1),
            Role::Method => return body(self.roles.lambda_list_at(list)),
            Role::Data | Role::Code | Role::Binding => {}
        }
        match operator {
            _ if bodies.is_wanted(operator) => bodies.get(operator).map_or(open + 2, body),
            _ if tree.text_of(head).starts_with(':') => self.as_call(open, before, next),
            "cond" => before.get(1).map_or(open + 2, |clause| self.column_of(*clause)),
            "unwind-protect" if number == 1 => open + 5,
            "multiple-value-bind" | "with-slots" | "with-accessors" | "defclass" | "define-condition"
                if number == 1 =>
            {
                open + 6
            }
            "loop" => loops::column(self, list, before, next),
            "defmethod" => body(self.roles.lambda_list_at(list)),
            "tagbody" | "prog" | "prog*" => {
                let arguments = usize::from(operator != "tagbody");
                let is_tag = next.is_some_and(|next| tree.node(next).kind == Kind::Atom);
                if number <= arguments {
                    open + 4
                } else if is_tag {
                    open + 1
                } else {
                    open + 3
                }
            }
            _ if number == 2 && bodies.is_guessed_definer(operator) => {
                let is_list = next.is_some_and(|next| tree.node(tree.datum(next)).kind == Kind::List);
                if is_list { open + 4 } else { open + 2 }
            }
            _ => match bodies.get(operator) {
                Some(arguments) if bodies.aligns_statements(operator) => statement(arguments),
                Some(arguments) => body(arguments),
                None => self.as_call(open, before, next),
            },
        }
    }

    /// In a lambda list, below the parameter behind the last `&key` or the like.
    fn column_in_data(&self, list: NodeId, before: &[NodeId], next: Option<NodeId>) -> Option<usize> {
        let is_keyword = |id: &NodeId| self.tree.text_of(*id).starts_with('&');
        if next.as_ref().is_some_and(is_keyword) {
            return None;
        }
        let keyword = {
            let mut data = self.data.borrow_mut();
            let known = data.entry(list).or_default();
            if let Some(at) = before.get(known.seen..).unwrap_or_default().iter().rposition(is_keyword) {
                known.last = Some(known.seen + at);
            }
            known.seen = before.len();
            known.last?
        };
        let parameter = *before.get(keyword + 1)?;
        self.same_line(before[keyword], parameter).then(|| self.column_of(parameter))
    }

    /// As a call: a keyword stands below the first one of the keywords before it.
    fn as_call(&self, open: usize, before: &[NodeId], next: Option<NodeId>) -> usize {
        let is_keyword = |id: &NodeId| self.tree.text_of(*id).starts_with(':');
        let mut pairs = before.iter().rev().skip(1).step_by(2);
        match next.filter(is_keyword) {
            Some(_) => {
                let first = pairs.by_ref().take_while(|id| is_keyword(id)).last();
                first.map_or_else(|| self.as_function(open, before), |first| self.column_of(*first))
            }
            None => self.as_function(open, before),
        }
    }

    /// Below the first argument; one column in when there is none yet.
    fn as_function(&self, open: usize, before: &[NodeId]) -> usize {
        before.get(1).map_or(open + 1, |argument| self.column_of(*argument))
    }
}

#[cfg(test)]
#[path = "format/tests.rs"]
mod tests;
