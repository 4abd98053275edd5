//! The text after a refactoring: the edits are applied, and the changed lines are indented. A
//! result that lost a comment is refused.

use std::collections::HashMap;

use super::site::{Edit, Site};
use crate::ide::format::rules::Bodies;
use crate::ide::format::{IndentRange, Options, format};
use crate::ide::rename::Change;
use crate::text::Span;
use crate::text::document::Document;
use crate::text::tree::{Kind, Tree};

/// The changed text of a document.
pub(super) struct Finished {
    /// The index in [`Site::others`]; `None` for the site's own document.
    pub(super) other: Option<usize>,
    pub(super) text: String,
    /// The changes in order, disjoint, in characters of the old text.
    pub(super) changes: Vec<Change>,
}

/// Applies edits.
///
/// # Errors
/// The reason why the result cannot be used: overlapping edits, unbalanced parentheses, a lost
/// comment.
pub(super) fn finish(site: &Site, edits: &[Edit], bodies: &Bodies) -> Result<Vec<Finished>, String> {
    let mut by_text: Vec<(Option<usize>, Vec<&Edit>)> = Vec::new();
    for edit in edits {
        match by_text.iter_mut().find(|(other, _)| *other == edit.other) {
            Some((_, own)) => own.push(edit),
            None => by_text.push((edit.other, vec![edit])),
        }
    }
    let one = |(other, edits): (Option<usize>, Vec<&Edit>)| {
        let document = match other {
            None => site.document,
            Some(index) => &site.others.get(index).ok_or("a document was closed")?.1,
        };
        finish_one(document, edits, bodies, other)
    };
    by_text.into_iter().map(one).collect()
}

/// Refuses edits that would lose a comment. Applies them to find out, but only if one of them
/// replaces text that may contain a comment.
pub(super) fn check_comments(site: &Site, edits: &[Edit], bodies: &Bodies) -> Result<(), String> {
    let touches = |edit: &Edit| {
        let document = edit.other.and_then(|other| site.others.get(other)).map_or(site.document, |(_, other)| other);
        let replaced = document.text().get_slice(edit.span.start..edit.span.end);
        replaced.is_some_and(|text| text.chars().any(|char| matches!(char, ';' | '|')))
    };
    if edits.iter().any(touches) { finish(site, edits, bodies).map(drop) } else { Ok(()) }
}

/// A part of the new text that edits of one cluster made, in bytes, and the part of the old text
/// that it replaces, in characters.
struct Part {
    cluster: usize,
    old: Span,
    new: (usize, usize),
}

fn finish_one(
    document: &Document,
    mut edits: Vec<&Edit>,
    bodies: &Bodies,
    other: Option<usize>,
) -> Result<Finished, String> {
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let old: String = document.text().to_string();
    let (mut new, mut at) = (String::with_capacity(old.len() + 256), 0);
    let mut parts: Vec<Part> = Vec::new();
    for edit in &edits {
        let (start, end) = (document.text().char_to_byte(edit.span.start), document.text().char_to_byte(edit.span.end));
        if start < at {
            return Err("two of its changes overlap".into());
        }
        new.push_str(&old[at..start]);
        let from = new.len();
        new.push_str(&edit.text);
        at = end;
        match parts.last_mut().filter(|part| part.cluster == edit.cluster) {
            Some(part) => {
                part.old.end = edit.span.end;
                part.new.1 = new.len();
            }
            None => parts.push(Part { cluster: edit.cluster, old: edit.span, new: (from, new.len()) }),
        }
    }
    new.push_str(&old[at..]);
    let (before, tree) = (Tree::of(&old, document.scan()), Tree::parse(&new));
    if broken(&tree) > broken(&before) {
        return Err("its parentheses would not balance".into());
    }
    keeps_comments(&before, &tree)?;
    // All lines of each part are indented, except the first, whose indentation does not change.
    let mut changes = Vec::new();
    for part in &parts {
        let line = |byte: usize| new[..byte].bytes().filter(|byte| *byte == b'\n').count();
        let last = line(part.new.1) + usize::from(!new[..part.new.1].ends_with('\n'));
        let wanted = IndentRange { lines: line(part.new.0) + 1..last, typing: false };
        changes.extend(format(&tree, &wanted, bodies, Options { tab_size: 8, tabs: false }));
    }
    changes.sort_by_key(|(range, _)| range.start);
    changes.dedup();
    let shift = |byte: usize| -> isize {
        let before = changes.iter().filter(|(range, _)| range.start < byte);
        before.map(|(range, by)| by.len() as isize - range.len() as isize).sum()
    };
    for part in &mut parts {
        // White space at the very end of a part belongs to a line that begins in it.
        part.new.0 = part.new.0.saturating_add_signed(shift(part.new.0));
        part.new.1 = part.new.1.saturating_add_signed(shift(part.new.1));
    }
    for (range, by) in changes.iter().rev() {
        new.replace_range(range.clone(), by);
    }
    let change = |part: &Part| shortened(document, part.old, new.get(part.new.0..part.new.1).unwrap_or_default());
    let changes: Vec<Change> = parts.iter().map(change).collect();
    let mut applied = document.text().clone();
    for change in changes.iter().rev() {
        applied.remove(change.span.start..change.span.end);
        applied.insert(change.span.start, &change.by);
    }
    if applied != new.as_str() {
        return Err("its changes cannot be told apart from the text around them".into());
    }
    Ok(Finished { other, text: new, changes })
}

/// Returns a change without the common prefix and suffix of its old and new text.
fn shortened(document: &Document, span: Span, by: &str) -> Change {
    let old: Vec<char> = document.text().slice(span.start..span.end).chars().collect();
    let new: Vec<char> = by.chars().collect();
    let head = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(one, other)| one == other).count();
    Change {
        span: Span { start: span.start + head, end: span.end - tail },
        by: new[head..new.len() - tail].iter().collect(),
        unsure: None,
    }
}

fn broken(tree: &Tree) -> usize {
    tree.ids().skip(1).filter(|id| !tree.node(*id).whole || tree.node(*id).kind == Kind::Stray).count()
}

/// Refuses a new text in which a comment of the old one is missing. The error names the first
/// such comment.
fn keeps_comments(before: &Tree, after: &Tree) -> Result<(), String> {
    fn comments<'a>(tree: &'a Tree) -> impl Iterator<Item = &'a str> {
        tree.ids().skip(1).filter(|id| tree.is_comment(*id)).map(|id| tree.text_of(id).trim_end())
    }
    let mut kept: HashMap<&str, usize> = HashMap::new();
    comments(after).for_each(|text| *kept.entry(text).or_default() += 1);
    for text in comments(before) {
        match kept.get_mut(text).filter(|count| **count > 0) {
            Some(count) => *count -= 1,
            None => {
                let text = crate::ide::clip::clip(text, 60).text;
                return Err(format!("the comment {text} would be lost: move it first"));
            }
        }
    }
    Ok(())
}
