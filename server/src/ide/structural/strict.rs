//! Deletion that leaves every list, string and comment whole, and the commands split, join and
//! convolute.

use std::ops::Range;

use super::{Editor, SelectionAfter, Step};
use crate::text::line_break;
use crate::text::scanner::{Scanner, TokenKind};
use crate::text::toplevel::Scan;
use crate::text::tree::{Kind, NodeId, ROOT};

/// The numbers from which it is decided whether a deletion unbalances a text.
#[derive(Debug, Clone, Copy)]
struct Shape {
    broken: usize,
    lists: usize,
    strings: usize,
}

impl Shape {
    fn of(text: &str) -> Shape {
        let mut shape = Shape { broken: Scan::of(text).broken().count(), lists: 0, strings: 0 };
        for token in Scanner::new(text) {
            match token.kind {
                TokenKind::Open => shape.lists += 1,
                TokenKind::String => shape.strings += 1,
                _ => {}
            }
        }
        shape
    }

    /// Returns true if a text of this shape is less broken than one of shape `before`, or is
    /// equally broken and has at least as many lists and strings.
    fn keeps(self, before: Shape) -> bool {
        let whole = self.lists >= before.lists && self.strings >= before.strings;
        self.broken < before.broken || self.broken == before.broken && whole
    }
}

impl Editor<'_> {
    fn without(&self, range: &Range<usize>, by: &str) -> String {
        [&self.tree.text[..range.start], by, &self.tree.text[range.end..]].concat()
    }

    /// Returns the edit of a deletion, with the cursor at the start of the deleted range.
    fn deletion(range: Range<usize>, by: String) -> Step {
        let at = range.start;
        Some((vec![(range, by)], SelectionAfter::At(at..at)))
    }

    /// Deletes the selection, or the character after the cursor or before it.
    pub(super) fn delete_one(&self, forward: bool) -> Step {
        if !self.selection.is_empty() {
            return self.delete_region();
        }
        let (text, at) = (self.tree.text, self.at());
        let range = if forward {
            let length = if text[at..].starts_with("\r\n") { 2 } else { text[at..].chars().next()?.len_utf8() };
            at..at + length
        } else {
            let length = if text[..at].ends_with("\r\n") { 2 } else { text[..at].chars().next_back()?.len_utf8() };
            at - length..at
        };
        if self.would_comment_out(&range) {
            return None;
        }
        let range = self.escape(&range).unwrap_or(range);
        let before = Shape::of(text);
        let plain = |range: &Range<usize>| Shape::of(&self.without(range, "")).keeps(before);
        if plain(&range) {
            return Self::deletion(range, String::new());
        }
        // In an empty list or string, both delimiters are deleted.
        if let Some(around) = self.empty_around() {
            return Self::deletion(around, String::new());
        }
        // The name of a character is deleted as a whole.
        let around = |at: usize| self.tree.path(at, false).pop().map(|id| self.tree.node(id));
        let atom = [range.start, range.end].into_iter().filter_map(around).find(|node| node.kind == Kind::Atom);
        let pair = atom.map(|node| node.start..node.end).filter(plain);
        match pair {
            Some(pair) => Self::deletion(pair, String::new()),
            // A delimiter is kept, and the cursor moves over it.
            None if forward => self.move_to(Some(range.end)),
            None => self.move_to(Some(range.start)),
        }
    }

    /// Returns the range of a backslash in a string and the character after it, if one of them is
    /// the deleted one.
    fn escape(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let text = self.tree.text;
        let inside = self.tree.path(range.start, false).pop()?;
        let node = self.tree.node(inside);
        if node.kind != Kind::String || range.start <= node.start {
            return None;
        }
        let before = text[node.start + 1..range.start].bytes().rev().take_while(|byte| *byte == b'\\').count();
        if before % 2 == 1 {
            return Some(range.start - 1..range.end);
        }
        let next = text[range.end..].chars().next().filter(|_| text[range.clone()] == *"\\")?;
        Some(range.start..range.end + next.len_utf8())
    }

    /// Returns the list or string around the cursor if it is empty.
    fn empty_around(&self) -> Option<Range<usize>> {
        let (text, at) = (self.tree.text, self.at());
        let inside = *self.tree.path(at, false).last()?;
        let node = self.tree.node(inside);
        let empty = matches!(node.kind, Kind::List | Kind::String)
            && node.whole
            && text[node.start..node.end].ends_with(if node.kind == Kind::List { "()" } else { "\"\"" })
            && at + 1 == node.end;
        // A prefix needs a datum, so it is deleted, too.
        empty.then(|| self.span(self.outer(inside)).start..node.end)
    }

    /// Returns true if a deleted line break ends a comment and code is on the next line.
    fn would_comment_out(&self, range: &Range<usize>) -> bool {
        let text = self.tree.text;
        let broken = text[range.clone()].contains('\n');
        let comment = || {
            let around = self.tree.path(range.start, true);
            around.into_iter().any(|id| self.tree.node(id).kind == Kind::LineComment)
        };
        let next = text[range.end..].lines().next().unwrap_or_default().trim_start();
        broken && !next.is_empty() && !next.starts_with(';') && comment()
    }

    /// Deletes the selection except for the delimiters whose partners are outside of it.
    pub(super) fn delete_region(&self) -> Step {
        let (text, region) = (self.tree.text, self.selection.clone());
        let within = |at: usize| region.start <= at && at < region.end;
        let mut kept: Vec<Range<usize>> = Vec::new();
        for id in self.tree.ids().skip(1) {
            let node = self.tree.node(id);
            if node.end <= region.start
                || region.end <= node.start
                || region.start <= node.start && node.end <= region.end
            {
                continue;
            }
            let ends: [Range<usize>; 2] = match node.kind {
                Kind::List => [node.start..node.inner, node.end.saturating_sub(1)..node.end],
                Kind::String => [node.start..node.start + 1, node.end.saturating_sub(1)..node.end],
                Kind::BlockComment => [node.start..node.start + 2, node.end.saturating_sub(2)..node.end],
                Kind::LineComment => [node.start..node.start + 1, node.end..node.end],
                _ => continue,
            };
            let [open, close] = ends;
            kept.extend(Some(open).filter(|open| within(open.start)));
            kept.extend(Some(close).filter(|close| node.whole && within(close.start) && !close.is_empty()));
        }
        kept.sort_by_key(|range| range.start);
        let mut by: String = kept.iter().map(|range| &text[range.clone()]).collect();
        let new = self.without(&region, &by);
        let comment =
            self.tree.path(region.start, true).into_iter().any(|id| self.tree.node(id).kind == Kind::LineComment);
        let next = text[region.end..].lines().next().unwrap_or_default().trim_start();
        if comment && text[region.clone()].contains('\n') && !next.is_empty() && !next.starts_with(';') {
            by.insert_str(0, line_break::of(text));
        } else if Scan::of(&new).broken().count() > Scan::of(text).broken().count() {
            return None;
        }
        Self::deletion(region, by)
    }

    /// Deletes to the end of the line, or of a form that continues below, within the list.
    pub(super) fn kill_line(&self) -> Step {
        let (text, at) = (self.tree.text, self.at());
        let rest = text[at..].split('\n').next().unwrap_or_default().trim_end_matches('\r');
        let line_end = at + rest.len();
        let around = self.tree.path(at, false);
        let inside = self.tree.node(*around.last()?);
        let end = match inside.kind {
            Kind::String => line_end.min(inside.end.saturating_sub(1)),
            Kind::BlockComment => line_end.min(inside.end.saturating_sub(2)),
            Kind::LineComment => line_end,
            _ => {
                let list = self.container();
                let node = self.tree.node(list);
                let limit = if list == ROOT || !node.whole { text.len() } else { node.end - 1 };
                let begun = self.tree.children(list).iter().map(|id| self.span(*id));
                let begun = begun.filter(|span| span.end > at && span.start < line_end);
                begun.map(|span| span.end).max().unwrap_or(line_end).max(line_end).min(limit)
            }
        };
        let range = if end > at {
            at..end
        } else {
            // At the end of the line, only the line break is deleted.
            let length = if text[at..].starts_with("\r\n") { 2 } else { usize::from(text[at..].starts_with('\n')) };
            at..at + length
        };
        let broken = |text: &str| Scan::of(text).broken().count();
        let sound =
            !range.is_empty() && !self.would_comment_out(&range) && broken(&self.without(&range, "")) <= broken(text);
        if sound { Self::deletion(range, String::new()) } else { None }
    }

    /// Splits the list or string around the cursor in two.
    pub(super) fn split(&self) -> Step {
        let (text, at) = (self.tree.text, self.at());
        let inside = *self.tree.path(at, false).last()?;
        let node = self.tree.node(inside);
        let cursor = |at: usize| SelectionAfter::At(at..at);
        match node.kind {
            Kind::String if node.whole => {
                let escapes = text[node.start..at].bytes().rev().take_while(|byte| *byte == b'\\').count();
                (escapes % 2 == 0).then(|| (vec![(at..at, "\" \"".to_owned())], cursor(at + 1)))
            }
            Kind::List if node.whole => {
                let elements = self.elements(inside);
                let before = elements.iter().rev().map(|id| self.span(*id)).find(|span| span.end <= at);
                let behind = elements.iter().map(|id| self.span(*id)).find(|span| span.start >= at);
                let first = before.map_or(node.inner, |span| span.end);
                let second = behind.map_or(at, |span| span.start);
                let gap = if first == second { " " } else { "" };
                let edits = vec![(first..first, format!("){gap}")), (second..second, "(".to_owned())];
                Some((edits, cursor(first + 1)))
            }
            _ => None,
        }
    }

    /// Joins the two lists or strings beside the cursor.
    pub(super) fn join(&self) -> Step {
        let text = self.tree.text;
        let elements = self.elements(self.container());
        let before = elements.iter().rev().copied().find(|id| self.span(*id).end <= self.at())?;
        let behind = elements.iter().copied().find(|id| self.span(*id).start >= self.at())?;
        let (inner, right) = (self.tree.node(self.tree.datum(before)), self.tree.node(behind));
        if !inner.whole || !right.whole {
            return None;
        }
        let close = inner.end - 1..inner.end;
        let edits = match (inner.kind, right.kind) {
            (Kind::List, Kind::List) if text[right.start..].starts_with('(') => {
                let apart = inner.end < right.start || self.tree.children(behind).is_empty();
                let gap = if apart { "" } else { " " };
                vec![(close, gap.to_owned()), (right.start..right.inner, String::new())]
            }
            (Kind::String, Kind::String) => vec![(close.start..right.start + 1, String::new())],
            _ => return None,
        };
        let at = inner.end - 1;
        Some((edits, SelectionAfter::At(at..at)))
    }

    /// Swaps the two lists around the cursor: `(a (b ‸c))` becomes `(b (a c))`.
    pub(super) fn convolute(&self) -> Step {
        let list = self.list()?;
        let outer: NodeId = self.outer(list);
        let around = self.tree.node(outer).parent;
        let (node, whole) = (self.tree.node(list), self.tree.node(around));
        if outer != list || whole.kind != Kind::List || !whole.whole {
            return None;
        }
        let text = self.tree.text;
        // The elements before the cursor move out.
        let elements = self.elements(list);
        let behind = elements.iter().map(|id| self.span(*id)).find(|span| span.end > self.at());
        let cut = behind.map_or(node.end - 1, |span| span.start);
        let head = text[node.inner..cut].trim_end();
        if head.is_empty() || text[node.inner..cut].contains(';') {
            return None;
        }
        let target = self.outer(around);
        let start = self.span(target).start;
        let opening = format!("({head} ");
        let at = start + opening.len();
        let edits = vec![
            (start..start, opening),
            (node.start..cut, String::new()),
            (node.end - 1..node.end, String::new()),
            (whole.end..whole.end, ")".to_owned()),
        ];
        Some((edits, SelectionAfter::At(at..at)))
    }
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
