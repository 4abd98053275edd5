//! Structural editing: the effect of one command on the lists around a place. The result is the
//! edits and the new selection. Offsets are bytes.
//!
//! A command that would leave the text less balanced, or would join two tokens, does nothing.

mod slurp;
mod strict;

use std::ops::Range;

use serde::Deserialize;

use super::ranges::selections;
use crate::text::scanner::{Scanner, TokenKind};
use crate::text::toplevel::Scan;
use crate::text::tree::{Kind, NodeId, ROOT, Tree};

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Action {
    /// Expands the selection to the node around it.
    Select,
    /// Shrinks the selection to the first node in it.
    SelectContract,
    /// Moves the datum after the list into it.
    SlurpForward,
    /// Moves the datum before the list into it.
    SlurpBackward,
    /// Moves the last datum of the list out of it, after its end.
    BarfForward,
    /// Moves the first datum of the list out of it, before its start.
    BarfBackward,
    /// Replaces the list around the datum by the datum.
    Raise,
    /// Wraps the datum or the selection in parentheses.
    Wrap,
    /// Wraps the datum or the selection in square brackets.
    WrapSquare,
    /// Removes the surrounding parentheses.
    Splice,
    /// Swaps the datum with the next one.
    DragForward,
    /// Swaps the datum with the previous one.
    DragBackward,
    /// Deletes up to the end of the datum at or after the cursor.
    KillSexp,
    /// Swaps the datums before and after the cursor.
    Transpose,
    /// Moves to the end of the datum at or after the cursor, or out of the list.
    MoveForward,
    /// Moves to the start of the datum at or before the cursor, or out of the list.
    MoveBackward,
    /// Moves to the start of the surrounding list.
    MoveUp,
    /// Moves into the next list.
    MoveDown,
    /// Deletes the character after the cursor, or the selection. Lists, strings and comments stay
    /// whole.
    DeleteForward,
    /// Deletes the character before the cursor, or the selection. Lists, strings and comments stay
    /// whole.
    DeleteBackward,
    /// Deletes to the end of the line, but not beyond the end of the list.
    KillLine,
    /// Splits the list or string around the cursor in two.
    Split,
    /// Joins the two lists or strings next to the cursor.
    Join,
    /// Swaps the two lists around the cursor: `(a (b ‸c))` becomes `(b (a c))`.
    Convolute,
}

impl Action {
    /// All commands.
    pub const ALL: [Action; 24] = [
        Action::Select,
        Action::SelectContract,
        Action::SlurpForward,
        Action::SlurpBackward,
        Action::BarfForward,
        Action::BarfBackward,
        Action::Raise,
        Action::Wrap,
        Action::WrapSquare,
        Action::Splice,
        Action::DragForward,
        Action::DragBackward,
        Action::KillSexp,
        Action::Transpose,
        Action::MoveForward,
        Action::MoveBackward,
        Action::MoveUp,
        Action::MoveDown,
        Action::DeleteForward,
        Action::DeleteBackward,
        Action::KillLine,
        Action::Split,
        Action::Join,
        Action::Convolute,
    ];
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The replaced ranges and their new text, in order, disjoint.
    pub edits: Vec<(Range<usize>, String)>,
    /// The selection in the new text.
    pub selection: Range<usize>,
}

/// Applies a command. Returns `None` if there is nothing to apply it to.
pub fn act(text: &str, selection: Range<usize>, action: Action) -> Option<Outcome> {
    let scan = Scan::of(text);
    let tree = Tree::of(text, &scan);
    let editor = Editor { tree: &tree, selection: selection.clone() };
    let (mut edits, wanted) = editor.act(action)?;
    edits.retain(|(range, by)| text[range.clone()] != *by);
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    let new = applied(text, &edits);
    let selection = match wanted {
        SelectionAfter::Keep => shifted(selection.start, &edits)..shifted(selection.end, &edits),
        SelectionAfter::At(range) => range,
    };
    let outcome = Outcome { edits, selection };
    let killed = matches!(
        action,
        Action::KillSexp
            | Action::Raise
            | Action::DeleteForward
            | Action::DeleteBackward
            | Action::KillLine
            | Action::Split
            | Action::Join
    );
    is_sound(&scan, text, &new, killed).then_some(outcome)
}

/// Applies edits to a text, and returns the new text.
pub fn applied(text: &str, edits: &[(Range<usize>, String)]) -> String {
    let mut new = text.to_owned();
    for (range, by) in edits.iter().rev() {
        new.replace_range(range.clone(), by);
    }
    new
}

/// Returns the position of a place after the edits. If text is inserted exactly at the place, the
/// position is before that text.
fn shifted(at: usize, edits: &[(Range<usize>, String)]) -> usize {
    let mut shifted = at;
    for (range, by) in edits.iter().rev() {
        if range.end <= at && range.start < at {
            shifted = shifted - (range.end - range.start) + by.len();
        } else if range.start < at {
            shifted = range.start + by.len();
        }
    }
    shifted
}

/// Returns true if the new text has no more faults than the old one, and the same tokens apart from
/// parentheses and comments. Tokens may be missing if `killed` is true.
fn is_sound(before: &Scan, old: &str, new: &str, killed: bool) -> bool {
    fn tokens(text: &str) -> Vec<&str> {
        let mut tokens: Vec<&str> = Scanner::new(text)
            .filter(|token| {
                !matches!(
                    token.kind,
                    TokenKind::Open | TokenKind::Close | TokenKind::LineComment | TokenKind::BlockComment
                )
            })
            .map(|token| text[token.start..token.end].trim_matches(['[', ']']))
            .collect();
        tokens.sort_unstable();
        tokens
    }
    if new != old && Scan::of(new).broken().count() > before.broken().count() {
        return false;
    }
    new == old || killed || tokens(old) == tokens(new)
}

enum SelectionAfter {
    /// The old selection, moved with the text.
    Keep,
    /// A given range of the new text.
    At(Range<usize>),
}

type Step = Option<(Vec<(Range<usize>, String)>, SelectionAfter)>;

struct Editor<'a> {
    tree: &'a Tree<'a>,
    selection: Range<usize>,
}

impl Editor<'_> {
    fn act(&self, action: Action) -> Step {
        match action {
            Action::Select => self.select(),
            Action::SelectContract => self.contract(),
            Action::SlurpForward => self.slurp_forward(),
            Action::SlurpBackward => self.slurp_backward(),
            Action::BarfForward => self.barf_forward(),
            Action::BarfBackward => self.barf_backward(),
            Action::Raise => self.raise(),
            Action::Wrap => self.wrap("(", ")"),
            Action::WrapSquare => self.wrap("[", "]"),
            Action::Splice => self.splice(),
            Action::DragForward => self.drag(1),
            Action::DragBackward => self.drag(-1),
            Action::KillSexp => self.kill(),
            Action::Transpose => self.transpose(),
            Action::MoveForward => self.move_to(self.forward()),
            Action::MoveBackward => self.move_to(self.backward()),
            Action::MoveUp => self.move_to(self.list().map(|list| self.tree.node(list).start)),
            Action::MoveDown => self.move_to(self.down()),
            Action::DeleteForward => self.delete_one(true),
            Action::DeleteBackward => self.delete_one(false),
            Action::KillLine => self.kill_line(),
            Action::Split => self.split(),
            Action::Join => self.join(),
            Action::Convolute => self.convolute(),
        }
    }

    fn at(&self) -> usize {
        self.selection.start
    }

    fn move_to(&self, at: Option<usize>) -> Step {
        at.map(|at| (Vec::new(), SelectionAfter::At(at..at)))
    }

    /// Returns the innermost list around the cursor, or the root.
    fn container(&self) -> NodeId {
        let path = self.tree.path(self.at(), false);
        path.into_iter().rev().find(|id| matches!(self.tree.node(*id).kind, Kind::List | Kind::Root)).unwrap_or(ROOT)
    }

    /// Returns the list around the cursor, if it is whole.
    fn list(&self) -> Option<NodeId> {
        Some(self.container()).filter(|id| *id != ROOT && self.tree.node(*id).whole)
    }

    /// Returns the comment that contains the cursor.
    fn comment(&self) -> Option<NodeId> {
        self.tree.path(self.at(), false).pop().filter(|id| self.tree.is_comment(*id))
    }

    /// Returns a list with its prefixes and guards.
    fn outer(&self, list: NodeId) -> NodeId {
        let mut id = list;
        while matches!(self.tree.node(self.tree.node(id).parent).kind, Kind::Prefixed | Kind::Guarded) {
            id = self.tree.node(id).parent;
        }
        id
    }

    fn elements(&self, container: NodeId) -> Vec<NodeId> {
        self.tree.elements(container).filter(|id| self.tree.node(*id).kind != Kind::Stray).collect()
    }

    fn span(&self, id: NodeId) -> Range<usize> {
        let node = self.tree.node(id);
        node.start..node.end
    }

    fn sibling(&self, id: NodeId, step: isize) -> Option<NodeId> {
        let siblings = self.elements(self.tree.node(id).parent);
        let at = siblings.iter().position(|sibling| *sibling == id)?;
        siblings.get(at.checked_add_signed(step)?).copied().filter(|id| self.tree.node(*id).whole)
    }

    /// Returns the datum that contains the cursor or begins at it, or else the datum that ends at
    /// it.
    fn current(&self) -> Option<NodeId> {
        let at = self.at();
        let elements = self.elements(self.container());
        let around = elements.iter().find(|id| self.span(**id).start <= at && at < self.span(**id).end);
        around.or_else(|| elements.iter().find(|id| self.span(**id).end == at)).copied()
    }

    fn next(&self) -> Option<NodeId> {
        self.elements(self.container()).into_iter().find(|id| self.span(*id).end > self.at())
    }

    fn previous(&self) -> Option<NodeId> {
        self.elements(self.container()).into_iter().rev().find(|id| self.span(*id).start < self.at())
    }

    /// Returns true if text inserted at `at` begins a new token. A blank or parenthesis after a
    /// backslash may belong to the token before `at`, as in `#\(`.
    fn blank_before(&self, at: usize) -> bool {
        let mut before = self.tree.text[..at].chars().rev();
        before.next().is_none_or(|char| char.is_ascii_whitespace() || char == '(') && before.next() != Some('\\')
    }

    fn blank_after(&self, at: usize) -> bool {
        self.tree.text[at..].chars().next().is_none_or(|char| char.is_ascii_whitespace() || char == ')')
    }

    /// Returns the replacement of a deleted range, which keeps the tokens on both sides separate.
    fn gap(&self, range: &Range<usize>) -> String {
        let apart = self.blank_before(range.start) || self.blank_after(range.end);
        if apart { String::new() } else { " ".to_owned() }
    }

    fn delete(&self, range: Range<usize>) -> (Range<usize>, String) {
        let gap = self.gap(&range);
        (range, gap)
    }

    fn select(&self) -> Step {
        let around = selections(self.tree, self.at());
        let larger = |range: &Range<usize>| {
            range.start <= self.selection.start && self.selection.end <= range.end && *range != self.selection
        };
        Some((Vec::new(), SelectionAfter::At(around.into_iter().find(larger)?)))
    }

    fn contract(&self) -> Step {
        let Range { start, end } = self.selection;
        if start == end {
            return None;
        }
        let inner = |id: NodeId| -> Option<Range<usize>> {
            let node = self.tree.node(id);
            let children = self.elements(id);
            let (first, last) = (*children.first()?, *children.last()?);
            match node.kind {
                Kind::List | Kind::Root => Some(self.span(first).start..self.span(last).end),
                _ => Some(self.span(last)),
            }
        };
        let exact = self.tree.ids().skip(1).find(|id| self.span(*id) == self.selection);
        let target = match exact {
            Some(id) => inner(id),
            // The selection is the contents of a list, or several of its elements. The first is
            // selected.
            None => self
                .tree
                .ids()
                .skip(1)
                .find(|id| self.span(*id).start == start && self.span(*id).end < end)
                .map(|id| self.span(id)),
        };
        let target = target.filter(|target| *target != self.selection).unwrap_or(start..start);
        Some((Vec::new(), SelectionAfter::At(target)))
    }

    /// Returns the range of the completely selected datums, or of the one at the cursor.
    fn chosen(&self) -> Option<Range<usize>> {
        if self.selection.is_empty() {
            return self.current().or_else(|| self.next()).map(|id| self.span(id));
        }
        let touched =
            |id: &NodeId| self.span(*id).start < self.selection.end && self.selection.start < self.span(*id).end;
        let container = self.container();
        let elements: Vec<NodeId> = self.elements(container).into_iter().filter(touched).collect();
        let inside = |at: usize| {
            container == ROOT || self.tree.node(container).inner <= at && at < self.tree.node(container).end
        };
        let (first, last) = (elements.first()?, elements.last()?);
        inside(self.selection.end).then(|| self.span(*first).start..self.span(*last).end)
    }

    fn raise(&self) -> Step {
        let list = self.list()?;
        let chosen = self.chosen()?;
        let node = self.tree.node(list);
        let mut by = self.tree.text[chosen.clone()].to_owned();
        let mut offset = self.at().saturating_sub(chosen.start).min(chosen.len());
        if !self.blank_before(node.start) && node.start == self.span(self.outer(list)).start {
            by.insert(0, ' ');
            offset += 1;
        }
        if !self.blank_after(node.end) {
            by.push(' ');
        }
        let at = node.start + offset;
        Some((vec![(node.start..node.end, by)], SelectionAfter::At(at..at)))
    }

    fn wrap(&self, open: &str, close: &str) -> Step {
        if self.comment().is_some() {
            return None;
        }
        let Some(chosen) = self.chosen() else {
            let at = self.at() + open.len();
            return Some((vec![(self.at()..self.at(), format!("{open}{close}"))], SelectionAfter::At(at..at)));
        };
        let text = &self.tree.text[chosen.clone()];
        let at = chosen.start + open.len();
        Some((vec![(chosen, format!("{open}{text}{close}"))], SelectionAfter::At(at..at)))
    }

    fn splice(&self) -> Step {
        let list = self.list()?;
        let node = self.tree.node(list);
        let (open, close) = (node.start..node.inner, node.end - 1..node.end);
        let prefixed = self.outer(list) != list;
        let before =
            if self.blank_before(open.start) || prefixed || self.tree.children(list).is_empty() { "" } else { " " };
        let after = if self.blank_after(close.end) { "" } else { " " };
        Some((vec![(open, before.to_owned()), (close, after.to_owned())], SelectionAfter::Keep))
    }

    fn drag(&self, step: isize) -> Step {
        let current = self.current()?;
        let other = self.sibling(current, step)?;
        let offset = self.at().saturating_sub(self.span(current).start);
        let (edits, start) = self.swapped(current, other);
        let at = start + offset;
        Some((edits, SelectionAfter::At(at..at)))
    }

    /// Returns the edits that swap two datums, and the offset of `a` in the new text.
    fn swapped(&self, a: NodeId, b: NodeId) -> (Vec<(Range<usize>, String)>, usize) {
        let (a_span, b_span) = (self.span(a), self.span(b));
        let (a_text, b_text) = (self.tree.text_of(a).to_owned(), self.tree.text_of(b).to_owned());
        let start = if a_span.start < b_span.start { b_span.end - a_text.len() } else { b_span.start };
        (vec![(a_span, b_text), (b_span, a_text)], start)
    }

    fn transpose(&self) -> Step {
        let at = self.at();
        let elements = self.elements(self.container());
        let index = elements.iter().rposition(|id| self.span(*id).start < at)?;
        let (a, b) = (elements[index], *elements.get(index + 1)?);
        let end = self.span(b).end;
        Some((self.swapped(a, b).0, SelectionAfter::At(end..end)))
    }

    fn kill(&self) -> Step {
        let at = self.at();
        let end = if let Some(comment) = self.comment() {
            let node = self.tree.node(comment);
            if node.kind == Kind::BlockComment { node.end.checked_sub(2)? } else { node.end }
        } else {
            let next = self.next()?;
            let inside = self.tree.path(at, false).pop()?;
            let node = self.tree.node(inside);
            if node.kind == Kind::String {
                let end = node.end.checked_sub(1).filter(|end| *end > at)?;
                return Some((vec![(at..end, String::new())], SelectionAfter::At(at..at)));
            }
            self.span(next).end
        };
        if end <= at {
            return None;
        }
        Some((vec![self.delete(at..end)], SelectionAfter::At(at..at)))
    }

    fn forward(&self) -> Option<usize> {
        let end = self.next().map(|id| self.span(id).end);
        end.or_else(|| self.list().map(|list| self.tree.node(list).end))
    }

    fn backward(&self) -> Option<usize> {
        let start = self.previous().map(|id| self.span(id).start);
        start.or_else(|| self.list().map(|list| self.tree.node(list).start))
    }

    fn down(&self) -> Option<usize> {
        let current = self.current();
        let lists = self
            .elements(self.container())
            .into_iter()
            .filter(|id| self.span(*id).start >= self.at() || current == Some(*id));
        let datum = |id: NodeId| self.tree.datum(id);
        lists.map(datum).find(|id| self.tree.node(*id).kind == Kind::List).map(|id| self.tree.node(id).inner)
    }
}

#[cfg(test)]
#[path = "structural/tests.rs"]
mod tests;
