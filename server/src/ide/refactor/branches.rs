//! Exchange of the branches of an `if`, each with its comments.

use super::comments::first_line;
use super::site::{Edit, Site};
use crate::ide::clip::clip;
use crate::text::datum::Node;

/// A branch with the comments that belong to it, and the white space before it.
struct Branch<'a> {
    before: &'a str,
    text: &'a str,
    /// The end in the form's text.
    end: usize,
    /// True if the branch ends with a line comment, so that a line break must follow.
    open: bool,
}

/// Returns the edits that exchange the branches of `(if condition yes no)`.
///
/// # Errors
/// The list does not have two branches, or it is not known to which branch a comment belongs.
pub(super) fn exchanged(site: &Site, list: &Node) -> Result<Vec<Edit>, String> {
    let [_, condition, yes, no] = list.elements() else { return Err("it has not two branches".into()) };
    let between = |from: usize, to: usize| site.between(from, to);
    let behind_condition = between(condition.end(), yes.start());
    let line = first_line(behind_condition);
    if line < behind_condition.len() && !behind_condition[..line].trim().is_empty() {
        return unclear(&behind_condition[..line]);
    }
    let first = branch(site, condition.end(), yes, no.start(), false);
    let second = branch(site, first.end, no, list.end() - 1, true);
    let rest = between(second.end, list.end() - 1);
    if !rest.trim().is_empty() {
        return unclear(rest);
    }
    // The last comment of `(if x⏎ (a) ; there⏎ (b)) ; missing` may be about the second branch.
    let outside = comment_after_end(site, list);
    if first.end > yes.end() && second.end == no.end() && !outside.is_empty() {
        return unclear(&outside);
    }
    let broken = |white: &str, needed: bool| {
        let enough = !needed || white.contains('\n');
        if enough { white.to_owned() } else { site.newline.to_owned() }
    };
    let mut text = broken(first.before, second.text.starts_with(';'));
    text += second.text;
    text += &broken(second.before, second.open || first.text.starts_with(';'));
    text += first.text;
    if first.open && !rest.contains('\n') {
        text += site.newline;
    }
    Ok(vec![site.edit(condition.end(), second.end, text)])
}

/// Returns a branch with the comments above it, and the comment behind it on its line.
fn branch<'a>(site: &Site<'a>, from: usize, node: &Node, next: usize, last: bool) -> Branch<'a> {
    let above = site.between(from, node.start());
    let start = from + above.len() - above.trim_start().len();
    let below = site.between(node.end(), next);
    let line = first_line(below);
    // A comment between two branches on one line belongs to the second.
    let own = if line < below.len() || last { below[..line].trim_end() } else { "" };
    let end = node.end() + own.len();
    Branch { before: site.between(from, start), text: site.between(start, end), end, open: own.contains(';') }
}

/// Returns the comment on a list's last line, behind closing parentheses.
fn comment_after_end(site: &Site, list: &Node) -> String {
    let at = site.form.span_of(list.end(), list.end()).end;
    let text = site.document.text();
    let line: String = text.slice(at..).chars().take_while(|char| *char != '\n').collect();
    let rest = line.trim_start_matches([')', ' ', '\t']);
    if rest.starts_with(';') { rest.trim_end().to_owned() } else { String::new() }
}

fn unclear<T>(comment: &str) -> Result<T, String> {
    Err(format!("it is not known which branch the comment {} is about: move it first", clip(comment.trim(), 60).text))
}
