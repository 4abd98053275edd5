//! Slurp and barf: a list takes in the element beside it, or gives out its first or last element.

use super::{Editor, SelectionAfter, Step, shifted};

impl Editor<'_> {
    pub(super) fn slurp_forward(&self) -> Step {
        let list = self.list()?;
        let node = self.tree.node(list);
        let next = self.sibling(self.outer(list), 1)?;
        let close = node.end - 1..node.end;
        let end = self.span(next).end;
        let between = &self.tree.text[node.end..self.span(next).start];
        let removed = if self.tree.children(list).is_empty() && between.trim().is_empty() {
            (node.inner..self.span(next).start, String::new())
        } else {
            let apart = self.blank_after(close.end) || self.blank_before(close.start);
            (close, if apart { String::new() } else { " ".to_owned() })
        };
        Some((vec![removed, (end..end, ")".to_owned())], SelectionAfter::Keep))
    }

    pub(super) fn slurp_backward(&self) -> Step {
        let list = self.list()?;
        let node = self.tree.node(list);
        let outer = self.outer(list);
        let previous = self.sibling(outer, -1)?;
        let opening = self.span(outer).start..node.inner;
        let text = self.tree.text[opening.clone()].to_owned();
        let at = self.span(previous).start;
        let removed = if self.tree.children(list).is_empty()
            && self.tree.text[self.span(previous).end..opening.start].trim().is_empty()
        {
            (self.span(previous).end..opening.end, String::new())
        } else {
            self.delete(opening)
        };
        let moved = (at..at, text);
        let selection = if self.at() < node.inner { SelectionAfter::At(at..at) } else { SelectionAfter::Keep };
        Some((vec![moved, removed], selection))
    }

    pub(super) fn barf_forward(&self) -> Step {
        let list = self.list()?;
        let node = self.tree.node(list);
        let elements = self.elements(list);
        let (last, rest) = elements.split_last()?;
        let end = rest.last().map_or(node.inner, |id| self.span(*id).end);
        let close = node.end - 1..node.end;
        let apart = end < self.span(*last).start;
        let insert = (end..end, if apart { ")".to_owned() } else { ") ".to_owned() });
        let gap = if self.blank_after(close.end) { String::new() } else { " ".to_owned() };
        Some((vec![insert, (close, gap)], SelectionAfter::Keep))
    }

    pub(super) fn barf_backward(&self) -> Step {
        let list = self.list()?;
        let node = self.tree.node(list);
        let elements = self.elements(list);
        let (first, rest) = elements.split_first()?;
        let opening = self.span(self.outer(list)).start..node.inner;
        let text = self.tree.text[opening.clone()].to_owned();
        let at = rest.first().map_or(node.end - 1, |id| self.span(*id).start);
        let apart = self.span(*first).end < at;
        let insert = (at..at, if apart { text } else { format!(" {text}") });
        let gap = if self.blank_before(opening.start) { String::new() } else { " ".to_owned() };
        let added = insert.1.len();
        let mut edits = vec![(opening, gap), insert];
        edits.sort_by_key(|(range, _)| range.start);
        // A cursor directly before the new opening parenthesis is moved behind it, so that it stays
        // in the list.
        let kept = shifted(self.at(), &edits);
        let selection = if self.at() == at { kept + added } else { kept };
        Some((edits, SelectionAfter::At(selection..selection)))
    }
}
