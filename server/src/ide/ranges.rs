//! Ranges of a text: selections around a place, foldable ranges, and the occurrences of a symbol.
//! Offsets are bytes.

use std::ops::Range;

use crate::text::cancellation;
use crate::text::names::Symbol;
use crate::text::position::Lines;
use crate::text::tree::{Kind, NodeId, Path, ROOT, Tree};

/// The maximum number of ranges around a place. Each range is nested in the next when they are
/// sent, which limits their number. If there are more, the smallest ones and the largest are kept.
const MAX_AROUND: usize = 100;

/// Returns the ranges around a place, smallest first: the symbol or the string's text, the datum,
/// the contents of the list, the list, and so on.
pub fn selections(tree: &Tree, at: usize) -> Vec<Range<usize>> {
    around(tree, at, &mut Path::default())
}

/// Returns the ranges around each of several places.
pub fn all_selections(tree: &Tree, places: &[usize]) -> Vec<Vec<Range<usize>>> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_unstable_by_key(|index| places[*index]);
    let mut found = vec![Vec::new(); places.len()];
    let mut path = Path::default();
    for index in order {
        if cancellation::should_stop() {
            break;
        }
        found[index] = around(tree, places[index], &mut path);
    }
    found
}

/// Returns the ranges around a place. Moves `path` to the place.
fn around(tree: &Tree, at: usize, path: &mut Path) -> Vec<Range<usize>> {
    path.go_to(tree, at, true);
    let nodes = &path.nodes;
    // At the end of an atom, another datum may begin or end.
    let atom = atom_before(tree, at).filter(|_| nodes.last().is_none_or(|id| tree.node(*id).kind != Kind::Atom));
    let kept = atom.map_or(nodes.len(), |atom| {
        let parent = tree.node(atom).parent;
        nodes.iter().rposition(|id| *id == parent || *id == ROOT).map_or(0, |at| at + 1)
    });
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let inner = atom.into_iter().chain(nodes[..kept].iter().rev().copied());
    for id in inner.take(MAX_AROUND).chain(nodes.get(..2).unwrap_or_default().iter().rev().copied()) {
        let node = tree.node(id);
        let contents = match node.kind {
            Kind::String if node.whole => Some(node.start + 1..node.end - 1),
            Kind::List if node.whole && node.inner <= at && at < node.end => {
                let children = tree.children(id);
                let bounds = children.first().zip(children.last());
                bounds.map(|(first, last)| tree.node(*first).start..tree.node(*last).end)
            }
            _ => None,
        };
        for range in contents.into_iter().chain(std::iter::once(node.start..node.end)) {
            let holds =
                ranges.last().is_none_or(|last| range.start <= last.start && last.end <= range.end && range != *last);
            if holds && range.start <= at && at <= range.end && !range.is_empty() {
                ranges.push(range);
            }
        }
    }
    ranges
}

/// Returns the atom that contains or touches a place.
pub fn atom_at(tree: &Tree, at: usize) -> Option<NodeId> {
    let inside = *tree.path(at, true).last()?;
    if tree.node(inside).kind == Kind::Atom { Some(inside) } else { atom_before(tree, at) }
}

/// Returns the atom that ends at a place.
fn atom_before(tree: &Tree, at: usize) -> Option<NodeId> {
    // No node begins within an atom, so that the atom is the last node before its end.
    Some(tree.last_before(at)).filter(|id| tree.node(*id).kind == Kind::Atom && tree.node(*id).end == at)
}

/// A range to fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fold {
    /// The range of bytes.
    pub range: Range<usize>,
    /// True for a range of comments.
    pub comment: bool,
}

/// Returns the ranges of the forms of more than one line, block comments, and runs of line
/// comments.
pub fn folds(tree: &Tree) -> Vec<Fold> {
    let text = tree.text;
    let breaks = Lines::of(text);
    let lines = |range: &Range<usize>| breaks.break_within(range);
    let mut folds = Vec::new();
    for id in tree.ids() {
        if cancellation::should_stop() {
            break;
        }
        let node = tree.node(id);
        let range = node.start..node.end;
        match node.kind {
            Kind::List | Kind::BlockComment | Kind::String if lines(&range) => {
                folds.push(Fold { range, comment: node.kind == Kind::BlockComment });
            }
            _ => {}
        }
        let mut run: Option<Range<usize>> = None;
        for child in tree.children(id) {
            let comment = tree.node(*child);
            if comment.kind != Kind::LineComment {
                continue;
            }
            let goes_on = run.as_ref().is_some_and(|run| {
                let between = &text[run.end..comment.start];
                between.trim().is_empty() && between.matches('\n').count() == 1
            });
            let start = run.take();
            run = match start {
                Some(run) if goes_on => Some(run.start..comment.end),
                other => {
                    folds.extend(other.filter(lines).map(|range| Fold { range, comment: true }));
                    Some(comment.start..comment.end)
                }
            };
        }
        folds.extend(run.filter(lines).map(|range| Fold { range, comment: true }));
    }
    folds.sort_by_key(|fold| (fold.range.start, std::cmp::Reverse(fold.range.end)));
    folds
}

/// Returns the occurrences of the symbol at a place, including the one at the place. The value with
/// each is true for a definition. Strings and comments are skipped. Two names without package
/// prefix are the same symbol. Otherwise their packages are compared. The package of a name without
/// prefix is the package in force, which `package` returns for a place.
pub fn occurrences(tree: &Tree, at: usize, package: impl Fn(usize) -> Option<String>) -> Vec<(Range<usize>, bool)> {
    let Some(target) = atom_at(tree, at) else { return Vec::new() };
    let Some(symbol) = tree.symbol(target) else { return Vec::new() };
    let own = |id: NodeId, symbol: &Symbol| symbol.package.clone().or_else(|| package(tree.node(id).start));
    let home = own(target, &symbol);
    let same = |id: NodeId, other: &Symbol| {
        if other.name != symbol.name
            || (other.package.as_deref() == Some("")) != (symbol.package.as_deref() == Some(""))
        {
            return false;
        }
        (other.package.is_none() && symbol.package.is_none()) || own(id, other) == home
    };
    tree.ids()
        .take_while(|_| !cancellation::should_stop())
        .filter_map(|id| {
            let other = tree.symbol(id).filter(|other| same(id, other))?;
            let node = tree.node(id);
            drop(other);
            Some((node.start..node.end, is_definition(tree, id)))
        })
        .collect()
}

fn is_definition(tree: &Tree, id: NodeId) -> bool {
    let parent = tree.node(id).parent;
    let second = tree.node(parent).kind == Kind::List && tree.place(id) == 1;
    second && tree.operator(parent).is_some_and(|operator| crate::text::definitions::is_definer(&operator))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_around_grows_from_the_symbol_to_the_form() {
        let text = "(defun f (x) '(a b))";
        let tree = Tree::parse(text);
        let shown: Vec<&str> = selections(&tree, 16).into_iter().map(|range| &text[range]).collect();
        assert_eq!(shown, ["a", "a b", "(a b)", "'(a b)", "defun f (x) '(a b)", text]);
        let shown: Vec<&str> = selections(&tree, 11).into_iter().map(|range| &text[range]).collect();
        assert_eq!(shown[..2], ["x", "(x)"]);
    }

    #[test]
    fn forms_and_comments_fold() {
        let text = ";; a\n;; b\n\n;; c\n(defun f ()\n  #| x\n |#\n  (g))\n(h)";
        let tree = Tree::parse(text);
        let shown: Vec<(&str, bool)> = folds(&tree).into_iter().map(|fold| (&text[fold.range], fold.comment)).collect();
        assert_eq!(shown, [(";; a\n;; b", true), ("(defun f ()\n  #| x\n |#\n  (g))", false), ("#| x\n |#", true)]);
    }

    #[test]
    fn a_symbol_occurs_where_the_reader_reads_it() {
        let text = "(defun foo (x) (FOO |FOO| |foo| \"foo\" :foo b:foo a:foo #\\f)) ; foo\n";
        let tree = Tree::parse(text);
        let at = |at| -> Vec<&str> {
            occurrences(&tree, at, |_| Some("A".into())).into_iter().map(|(range, _)| &text[range]).collect()
        };
        assert_eq!(at(8), ["foo", "FOO", "|FOO|", "a:foo"]);
        assert_eq!(at(text.find("b:foo").unwrap_or(0)), ["b:foo"]);
        assert_eq!(at(text.find(":foo").unwrap_or(0) + 1), [":foo"]);
        assert!(occurrences(&tree, 8, |_| None)[0].1);
    }
}
