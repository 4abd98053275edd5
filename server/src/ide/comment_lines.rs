//! The lines of a document that are comments.

use std::collections::HashSet;

use crate::text::document::Document;
use crate::text::tree::{Kind, Tree};

/// Returns the lines, from 0, that begin with a wanted line comment, after white space or without
/// it. Lines in strings and block comments are none. `wanted` gets the comment with its semicolons.
pub(super) fn comment_lines(document: &Document, wanted: impl Fn(&str) -> bool) -> HashSet<usize> {
    let string = document.text().to_string();
    let tree = Tree::of(&string, document.scan());
    let comments = tree.ids().skip(1).map(|id| tree.node(id)).filter(|node| node.kind == Kind::LineComment);
    let lines = comments.filter(|node| wanted(&string[node.start..node.end])).filter_map(|node| {
        let start = string[..node.start].rfind('\n').map_or(0, |at| at + 1);
        string[start..node.start].trim().is_empty().then(|| document.text().byte_to_line(node.start))
    });
    lines.collect()
}
