//! Indentation by the conventions of Common Lisp. It changes only white space at the start of
//! lines, and none inside a string, a comment or a symbol. The reader thus reads the same data.

mod around;
mod columns;
mod guarded_pairs;
mod if_star;
mod loops;
pub mod roles;
pub mod rules;
mod specs;
pub mod user_rules;

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use crate::text::cancellation;
use crate::text::tree::{Kind, NodeId, Path, ROOT, Tree};
use columns::Columns;
use roles::Roles;
use rules::Bodies;

/// The editor's formatting options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The number of columns of a tab.
    pub tab_size: usize,
    /// True to indent with tabs.
    pub tabs: bool,
}

/// The range of lines to indent, 0-based.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndentRange {
    /// The lines.
    pub lines: Range<usize>,
    /// True to indent also blank lines, for typing there, and lines of forms that are not balanced.
    pub typing: bool,
}

/// A range of white space at the start of a line, in bytes of the text, and its replacement.
pub type Change = (Range<usize>, String);

/// The smallest column at which comments are not moved.
const MIN_FIXED_COMMENT_COLUMN: usize = 32;
/// The maximum column at which a line may begin. A line that would begin further to the right is
/// left unchanged. No real code is indented so far, and the white space of many such lines would be
/// much longer than their text.
const MAX_COLUMN: usize = 500;

/// Returns the changes that indent the lines.
pub fn format(tree: &Tree, wanted: &IndentRange, bodies: &Bodies, options: Options) -> Vec<Change> {
    let roles = Roles::of(tree, bodies);
    let mut lines = Lines::new(tree, &roles, options.tab_size.max(1));
    let mut changes = Vec::new();
    let mut path = Path::default();
    for line in wanted.lines.start..wanted.lines.end.min(lines.starts.len()) {
        if cancellation::should_stop() {
            break;
        }
        if !lines.protected[line] {
            lines.indent[line] = match lines.column_wanted(line, wanted.typing, bodies, &mut path) {
                None => continue,
                Some(column) if column > MAX_COLUMN => continue,
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

/// The lines of a text, with the indentation computed so far.
pub(super) struct Lines<'a> {
    pub(super) tree: &'a Tree<'a>,
    pub(super) roles: &'a Roles<'a>,
    columns: Columns<'a>,
    /// The last lambda-list keywords of lists whose elements span many lines.
    last_keywords: RefCell<HashMap<NodeId, Keywords>>,
    pairs: RefCell<HashMap<NodeId, Pairs>>,
    /// The first byte of each line.
    pub(super) starts: Vec<usize>,
    /// The first byte of each line that is neither space nor tab.
    pub(super) first: Vec<usize>,
    /// The column of that byte after the changes.
    indent: Vec<usize>,
    /// True for a line that begins inside a string, a comment or a symbol.
    protected: Vec<bool>,
}

/// The last lambda-list keyword, such as `&key`, among the first elements of a list.
#[derive(Debug, Clone, Copy, Default)]
struct Keywords {
    /// The number of elements processed so far.
    seen: usize,
    last: Option<NodeId>,
}

/// The first keywords of a list at even and at odd indices.
#[derive(Debug, Clone, Copy, Default)]
struct Pairs {
    /// The number of elements processed so far.
    seen: usize,
    first: [Option<NodeId>; 2],
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
        let (last_keywords, pairs) = Default::default();
        Lines { tree, roles, columns, last_keywords, pairs, starts, first, indent, protected }
    }

    pub(super) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }

    /// Returns the column of a byte after the changes.
    pub(super) fn column(&self, at: usize) -> usize {
        let line = self.line(at);
        let (from, column) =
            if self.protected[line] { (self.starts[line], 0) } else { (self.first[line].min(at), self.indent[line]) };
        self.columns.column(from, column, at)
    }

    /// Returns the column of a byte before the changes.
    fn old_column(&self, at: usize) -> usize {
        self.columns.width(self.starts[self.line(at)], at, 0)
    }

    /// Returns true if both nodes begin on the same line.
    pub(super) fn same_line(&self, first: NodeId, second: NodeId) -> bool {
        self.line(self.tree.node(first).start) == self.line(self.tree.node(second).start)
    }

    fn begins_line(&self, id: NodeId) -> bool {
        let start = self.tree.node(id).start;
        self.first[self.line(start)] == start
    }

    /// Returns the column at which a line is to begin. Returns `None` if the line is left
    /// unchanged.
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

    /// Returns the column of a comment with one semicolon: below the comment that it continues, or
    /// unchanged if it is far to the right. Returns `None` for other comments.
    fn comment_column(&self, line: usize, container: NodeId, rest: &str) -> Option<usize> {
        if rest.starts_with(";;") {
            return None;
        }
        let column = self.old_column(self.first[line]);
        let above = line.checked_sub(1).filter(|above| !self.protected[*above]).and_then(|above| {
            let children = self.tree.children(container);
            let at = children.partition_point(|id| self.tree.node(*id).start < self.first[line]);
            let mut before = *children.get(at.checked_sub(1)?)?;
            // The previous comment may be inside a datum that ended on the line above.
            while self.tree.node(before).kind != Kind::LineComment {
                before = *self.tree.children(before).last()?;
            }
            (self.line(self.tree.node(before).start) == above).then_some(before)
        });
        if let Some(above) = above.filter(|above| self.old_column(self.tree.node(*above).start) == column && column > 0)
        {
            let of_code =
                !self.begins_line(above) || self.old_column(self.tree.node(above).start) >= MIN_FIXED_COMMENT_COLUMN;
            if of_code {
                return Some(self.column(self.tree.node(above).start));
            }
        }
        (column >= MIN_FIXED_COMMENT_COLUMN).then_some(column)
    }

    fn column_in(&self, container: NodeId, at: usize, bodies: &Bodies) -> usize {
        // The container of a guarded datum is the list around it.
        let mut container = container;
        while self.tree.node(container).kind == Kind::Guarded {
            container = self.tree.node(container).parent;
        }
        let node = self.tree.node(container);
        match node.kind {
            Kind::Root => 0,
            Kind::List => around::column(self, container, at, bodies),
            _ => self.column(node.start),
        }
    }

    /// Returns the comment after an element of a list, on the line on which the element ends.
    pub(super) fn comment_behind(&self, list: NodeId, element: NodeId) -> Option<NodeId> {
        let children = self.tree.children(list);
        let next = *children.get(children.partition_point(|id| *id <= element))?;
        let (end, comment) = (self.tree.node(element).end, self.tree.node(next));
        (comment.kind == Kind::LineComment && self.line(end) == self.line(comment.start)).then_some(next)
    }

    /// Returns the last lambda-list keyword, such as `&key`, among the first elements of a list.
    pub(super) fn lambda_keyword(&self, list: NodeId, before: &[NodeId]) -> Option<NodeId> {
        let mut last_keywords = self.last_keywords.borrow_mut();
        let known = last_keywords.entry(list).or_default();
        if let Some(behind) = before.get(known.seen..) {
            let is_keyword = |id: &&NodeId| around::is_keyword(self.tree.text_of(**id));
            known.last = behind.iter().rfind(is_keyword).copied().or(known.last);
            known.seen = before.len();
        }
        known.last
    }

    /// Returns the first keyword among the elements `before` a line that has an even distance to
    /// the line, counted in elements.
    pub(super) fn first_keyword(&self, list: NodeId, before: &[NodeId]) -> Option<NodeId> {
        let mut pairs = self.pairs.borrow_mut();
        let known = pairs.entry(list).or_default();
        for (index, id) in before.iter().enumerate().skip(known.seen) {
            let first = &mut known.first[index % 2];
            if first.is_none() && self.tree.text_of(self.tree.unguarded(*id)).starts_with(':') {
                *first = Some(*id);
            }
        }
        known.seen = known.seen.max(before.len());
        known.first[before.len() % 2].filter(|first| before.last().is_some_and(|last| first <= last))
    }
}

#[cfg(test)]
#[path = "format/tests.rs"]
mod tests;
