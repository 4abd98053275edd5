//! The keyword arguments of lists with feature expressions, counted as slime-cl-indent.el does.

use crate::text::tree::{Kind, NodeId, Tree};

/// A part of a list that Emacs counts as one datum.
#[derive(Debug, Clone, Copy)]
struct Part {
    start: usize,
    /// True for a feature expression with its `#+` or `#-`.
    feature: bool,
    /// True for a keyword, or for a feature expression before a keyword.
    keyword: bool,
}

/// Returns the start of the first keyword of the pairs before a line. `before` are the elements of
/// the list before the line.
pub(super) fn first_keyword(tree: &Tree, before: &[NodeId]) -> Option<usize> {
    let mut parts = Vec::new();
    before.iter().for_each(|id| add(tree, *id, &mut parts));
    let (mut at, mut first) = (parts.len(), None);
    while let Some(next) = pair_before(&parts, at) {
        if parts[next].keyword {
            first = Some(parts[next].start);
        }
        at = next;
    }
    first
}

fn add(tree: &Tree, id: NodeId, parts: &mut Vec<Part>) {
    let node = tree.node(id);
    let (Kind::Guarded, [_, datum]) = (node.kind, tree.element_list(id)) else {
        let keyword = tree.text_of(id).starts_with(':');
        parts.push(Part { start: node.start, feature: false, keyword });
        return;
    };
    let guard = parts.len();
    parts.push(Part { start: node.start, feature: true, keyword: false });
    add(tree, *datum, parts);
    parts[guard].keyword = parts[guard + 1].keyword;
}

/// Returns the index of the pair before a part. If the pair's value for some features only is
/// preceded by a keyword, returns the index of the keyword.
fn pair_before(parts: &[Part], at: usize) -> Option<usize> {
    let pair = at.checked_sub(2)?;
    if !parts[pair].feature {
        return Some(pair);
    }
    if pair.checked_sub(2).is_some_and(|other| parts[other].feature) {
        return pair_before(parts, pair);
    }
    let value = pair.checked_sub(1).filter(|key| parts[*key].keyword && !parts[*key].feature);
    Some(value.unwrap_or(pair))
}
