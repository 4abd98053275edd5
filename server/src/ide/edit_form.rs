//! `lisp-edit-form` on a text: replaces one top-level form, or inserts a form before or after it.
//! All other bytes are unchanged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outline::{Definition, DefinitionSelector, definitions, operator_of, selectors};
use crate::text::names;
use crate::text::toplevel::Scan;
use crate::text::tree::{Kind, NodeId, ROOT, Tree};

/// The operation on the form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// The form becomes the content.
    Replace,
    /// The content comes before it, and before the comment that belongs to it.
    InsertBefore,
    /// The content comes behind it.
    InsertAfter,
}

/// The reason why nothing was edited: a stable kind, and a message with advice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The kind: `content-unreadable`, `form-not-found`, `form-ambiguous` or `form-broken`.
    pub kind: &'static str,
    /// The message, with advice for an agent or a person.
    pub message: String,
}

/// An edit of a text. Offsets are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The start of the replaced range.
    pub start: usize,
    /// The end of the replaced range.
    pub end: usize,
    /// The replacement text.
    pub by: String,
    /// The text after the edit.
    pub text: String,
    /// The selected form, as `form_type form_name`.
    pub title: String,
    /// The first and the last line of the content in the new text, 1-based.
    pub lines: (usize, usize),
}

fn refusal<T>(kind: &'static str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { kind, message: message.into() })
}

/// Edits `text` at the one form that `operator` and `name` select.
///
/// The content is not one form. No form, or more than one, is selected. The surrounding text is not
/// balanced.
pub fn edit(text: &str, operator: &str, name: &str, operation: Operation, content: &str) -> Result<Edit, Refusal> {
    let content = one_form(content)?;
    edit_as_written(text, operator, name, operation, with_line_breaks_of(text, content))
}

/// Edits as [`edit`] does, but keeps the line breaks of `content`.
///
/// # Errors
/// As [`edit`].
pub fn edit_as_written(
    text: &str,
    operator: &str,
    name: &str,
    operation: Operation,
    content: String,
) -> Result<Edit, Refusal> {
    one_form(&content)?;
    let scan = Scan::of(text);
    let tree = Tree::of(text, &scan);
    let all = definitions(&tree);
    let target = target(&all, operator, name, &tree)?;
    let outer = tree.node(target.outer);
    if scan
        .forms()
        .iter()
        .any(|form| form.fault.is_some() && form.bytes.start <= outer.start && outer.start < form.bytes.end)
    {
        return refusal(
            "form-broken",
            format!(
                "`{}` on line {} is not balanced, so its end is not known. Nothing was changed. Repair its parentheses first.",
                target.title(),
                line(text, outer.start)
            ),
        );
    }
    let (start, end, by, skip) = match operation {
        Operation::Replace => replacement(&tree, target.node, content),
        Operation::InsertBefore => before(&tree, target.outer, &content),
        Operation::InsertAfter => after(&tree, target.outer, &content),
    };
    let edited = [&text[..start], &by, &text[end..]].concat();
    check_rest_unchanged(&scan, text, &edited, operation, target)?;
    let first = start + skip.0;
    let last = (start + by.len()).saturating_sub(skip.1).max(first);
    let lines = (line(&edited, first), line(&edited, last));
    Ok(Edit { start, end, by, text: edited, title: target.title(), lines })
}

/// Returns the text of the one form that `operator` and `name` select.
///
/// # Errors
/// No form, or more than one, is selected.
pub fn form_text(text: &str, operator: &str, name: &str) -> Result<String, Refusal> {
    let scan = Scan::of(text);
    let tree = Tree::of(text, &scan);
    let all = definitions(&tree);
    Ok(tree.text_of(target(&all, operator, name, &tree)?.node).to_owned())
}

/// Returns the 1-based line of the byte at `at`.
pub fn line(text: &str, at: usize) -> usize {
    text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// Returns the one form in `content`, with the comments around it.
fn one_form(content: &str) -> Result<&str, Refusal> {
    let scan = Scan::of(content);
    let tree = Tree::of(content, &scan);
    let problem = match scan.forms() {
        [] => Some("it has no form".to_owned()),
        [form] if form.fault.is_some() => Some(format!("its form is broken ({})", fault_text(form.fault))),
        [_] => unreadable(&tree),
        forms if forms.iter().any(|form| form.fault.is_some()) => {
            Some("its parentheses or strings do not balance".to_owned())
        }
        forms => Some(format!("it has {} forms", forms.len())),
    };
    if let Some(problem) = problem {
        return refusal(
            "content-unreadable",
            format!("`content` must be exactly one form, and {problem}. Nothing was changed."),
        );
    }
    let children = tree.children(ROOT);
    let start = children.first().map_or(0, |first| tree.node(*first).start);
    let end = children.last().map_or(0, |last| tree.node(*last).end);
    Ok(&content[start..end])
}

fn fault_text(fault: Option<crate::text::toplevel::Unreadable>) -> &'static str {
    use crate::text::toplevel::Unreadable;
    match fault {
        Some(Unreadable::UnclosedList) => "a list is never closed",
        Some(Unreadable::ExtraClose) => "a `)` closes nothing",
        Some(Unreadable::UnterminatedString) => "a string is never closed",
        Some(Unreadable::UnterminatedBar) => "a `|` is never closed",
        Some(Unreadable::UnterminatedComment) => "a `#|` is never closed",
        Some(Unreadable::DanglingEscape) => "it ends after a `\\`",
        Some(Unreadable::DanglingPrefix) => "a `'`, `#'`, `#+` or the like has nothing after it",
        None => "it is whole",
    }
}

/// Describes the first balanced construct that the reader refuses.
fn unreadable(tree: &Tree) -> Option<String> {
    // The backquote depth of each node: the backquotes minus the commas around it, including its
    // own prefix.
    let mut backquotes: Vec<i32> = Vec::with_capacity(tree.len());
    for id in tree.ids() {
        let node = tree.node(id);
        let text = tree.text_of(id);
        let own = match text.as_bytes().first() {
            Some(b'`') if node.kind == Kind::Prefixed => 1,
            Some(b',') if node.kind == Kind::Prefixed => -1,
            _ => 0,
        };
        backquotes.push(own + backquotes.get(node.parent as usize).copied().unwrap_or(0));
        let at = |what: &str| Some(format!("{what} on its line {}", line(tree.text, node.start)));
        match node.kind {
            Kind::Prefixed if tree.text[node.start..node.inner].starts_with("#<") => {
                return at("there is a `#<`, which cannot be read,");
            }
            Kind::Prefixed if text.starts_with(',') && backquotes.last().is_some_and(|depth| *depth < 0) => {
                return at("there is a comma outside of any backquote");
            }
            Kind::Prefixed | Kind::Guarded if !node.whole => return at("a prefix has nothing after it"),
            Kind::Atom if !text.is_empty() && text.bytes().all(|byte| byte == b'.') && !is_dot_of_pair(tree, id) => {
                return at("there is a dot that makes no pair");
            }
            Kind::Atom if matches!(text, "#" | "#<") || text.starts_with("#<") => {
                return at("there is a `#` with nothing it could mean");
            }
            Kind::Atom if !text.starts_with('#') && bad_colons(text) => {
                return at(&format!("`{text}` has too many or misplaced colons"));
            }
            _ => {}
        }
    }
    None
}

fn bad_colons(text: &str) -> bool {
    let prefix = names::prefix_length(text);
    if prefix == 0 {
        return false;
    }
    let (package, name) = text.split_at(prefix);
    name.is_empty()
        || names::prefix_length(name) > 0
        || package.ends_with(":::")
        || (package.len() == 2 && package == "::")
}

fn is_dot_of_pair(tree: &Tree, id: NodeId) -> bool {
    let parent = tree.node(id).parent;
    let (elements, place) = (tree.element_list(parent), tree.place(id));
    let list = tree.node(parent).kind == Kind::List;
    // Several elements may follow the dot, as the reader may skip guarded ones.
    list && tree.text_of(id) == "." && place > 0 && place + 2 <= elements.len()
}

fn target<'a>(all: &'a [Definition], operator: &str, name: &str, tree: &Tree) -> Result<&'a Definition, Refusal> {
    let found = DefinitionSelector::new(name).among(all, operator, tree);
    match found.as_slice() {
        [one] => Ok(one),
        [] => {
            let wanted = operator_of(all, operator);
            let same = |definition: &&Definition| definition.operator == wanted;
            let bare = name.trim().rsplit(':').next().unwrap_or_default().to_lowercase();
            let mut near: Vec<&Definition> =
                all.iter().filter(|definition| !bare.is_empty() && definition.name.contains(&bare)).collect();
            if near.is_empty() {
                near = all.iter().filter(same).collect();
            }
            let hint = if near.is_empty() {
                "Read the file with lisp-read-file to see what it has.".to_owned()
            } else {
                format!("There are:\n{}", listed(&near, all, tree))
            };
            refusal(
                "form-not-found",
                format!("The file has no `{operator} {}`. Nothing was changed. {hint}", name.trim()),
            )
        }
        several => refusal(
            "form-ambiguous",
            format!(
                "{} forms are called `{operator} {}`. Nothing was changed. Say which, by form_name:\n{}",
                several.len(),
                name.trim(),
                listed(several, all, tree)
            ),
        ),
    }
}

fn listed(definitions: &[&Definition], all: &[Definition], tree: &Tree) -> String {
    const MAX_LISTED: usize = 30;
    let selectors = selectors(all, tree);
    let mut lines: Vec<String> = definitions
        .iter()
        .take(MAX_LISTED)
        .map(|definition| {
            let selector = all
                .iter()
                .zip(&selectors)
                .find(|(one, _)| one.node == definition.node)
                .map_or("", |(_, name)| name.as_str());
            let guard = &tree.text[tree.node(definition.outer).start..tree.node(definition.node).start];
            let guard = if guard.trim().is_empty() { String::new() } else { format!(", behind {}", guard.trim()) };
            let at = line(tree.text, tree.node(definition.node).start);
            format!("  form_type {}, form_name {selector} (line {at}{guard})", definition.operator)
        })
        .collect();
    if definitions.len() > MAX_LISTED {
        lines.push(format!("  and {} more", definitions.len() - MAX_LISTED));
    }
    lines.join("\n")
}

/// Returns true if most lines end in CRLF.
fn is_crlf(text: &str) -> bool {
    let all = text.matches('\n').count();
    let crlf = text.matches("\r\n").count();
    crlf > 0 && crlf * 2 > all
}

/// Returns the content with the kind of line breaks that most lines of the text have.
pub fn with_line_breaks_of(text: &str, content: &str) -> String {
    let plain = content.replace("\r\n", "\n");
    if is_crlf(text) { plain.replace('\n', "\r\n") } else { plain }
}

/// The start and the end of the replaced bytes, the new text, and the numbers of bytes at the start
/// and the end of the new text that are not content.
type Change = (usize, usize, String, (usize, usize));

fn replacement(tree: &Tree, target: NodeId, content: String) -> Change {
    let node = tree.node(target);
    let old = tree.text_of(target);
    if old == content || old.replace("\r\n", "\n") == content.replace("\r\n", "\n") {
        // The content differs at most in line breaks, of which a file may have both kinds.
        return (node.start, node.end, old.to_owned(), (0, 0));
    }
    let content = guarded_end(tree, content, node.end);
    (node.start, node.end, content, (0, 0))
}

/// Returns the content. If the content ends in a comment that would include the following text, a
/// line break is appended.
fn guarded_end(tree: &Tree, content: String, at: usize) -> String {
    let parsed = Tree::parse(&content);
    let ends_in_comment = parsed.children(ROOT).last().is_some_and(|last| parsed.node(*last).kind == Kind::LineComment);
    let rest = tree.text[at..].split('\n').next().unwrap_or_default();
    if ends_in_comment && !rest.trim().is_empty() { content + line_break(tree.text) } else { content }
}

fn line_break(text: &str) -> &'static str {
    if is_crlf(text) { "\r\n" } else { "\n" }
}

/// Returns the white space between the start of a line and a place in it, or nothing if code
/// precedes the place.
fn indentation(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let before = &text[start..at];
    if before.trim().is_empty() { before } else { "" }
}

fn before(tree: &Tree, outer: NodeId, content: &str) -> Change {
    let text = tree.text;
    let mut at = tree.node(outer).start;
    let siblings = tree.children(tree.node(outer).parent);
    let place = siblings.iter().position(|sibling| *sibling == outer).unwrap_or(0);
    for comment in siblings[..place].iter().rev() {
        let node = tree.node(*comment);
        let between = &text[node.end..at];
        let own_line = node.start == 0 || text[..node.start].trim_end_matches([' ', '\t']).ends_with('\n');
        let attached =
            tree.is_comment(*comment) && between.trim().is_empty() && between.matches('\n').count() == 1 && own_line;
        if !attached || tree.text_of(*comment).starts_with(";;;;") {
            break;
        }
        at = node.start;
    }
    let gap = line_break(text).repeat(2) + indentation(text, at);
    (at, at, format!("{content}{gap}"), (0, gap.len()))
}

fn after(tree: &Tree, outer: NodeId, content: &str) -> Change {
    let text = tree.text;
    let node = tree.node(outer);
    let gap = line_break(text).repeat(2) + indentation(text, node.start);
    let mut at = node.end;
    let siblings = tree.children(node.parent);
    let place = siblings.iter().position(|sibling| *sibling == outer).unwrap_or(0);
    if let Some(comment) = siblings.get(place + 1).map(|next| tree.node(*next))
        && comment.kind == Kind::LineComment
        && !text[at..comment.start].contains('\n')
    {
        at = comment.end;
    }
    let content = guarded_end(tree, content.to_owned(), at);
    (at, at, format!("{gap}{content}"), (gap.len(), 0))
}

/// Checks that the new text has all other forms unchanged and is as balanced as the old text.
fn check_rest_unchanged(
    scan: &Scan,
    old: &str,
    new: &str,
    operation: Operation,
    target: &Definition,
) -> Result<(), Refusal> {
    fn forms<'a>(scan: &Scan, text: &'a str) -> Vec<&'a str> {
        scan.forms().iter().map(|form| &text[form.bytes.start..form.bytes.end]).collect()
    }
    let after = Scan::of(new);
    let (old_forms, new_forms) = (forms(scan, old), forms(&after, new));
    let more = usize::from(operation != Operation::Replace && target.depth == 0);
    let head = old_forms.iter().zip(&new_forms).take_while(|(a, b)| a == b).count();
    let tail = old_forms.iter().rev().zip(new_forms.iter().rev()).take_while(|(a, b)| a == b).count();
    let kept = new_forms.len() == old_forms.len() + more && head + tail + 1 >= old_forms.len() + more.min(1);
    if kept && after.broken().count() == scan.broken().count() {
        return Ok(());
    }
    refusal(
        "content-unreadable",
        "With this content in its place the rest of the file would be read differently. Nothing was changed. Check the content's strings, `|` and comments.",
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const TEXT: &str = ";;;; A file.\n\n(in-package :a)\n\n;; About f.\n(defun f (x)\n  x) ; trailing\n\n(defmethod m ((x a)) 1)\n(defmethod m ((x b)) 2)\n#+sbcl (defun g () 1) #-sbcl (defun g () 2)\n(progn\n  (defun h () 1))\n";

    fn edited(text: &str, operator: &str, name: &str, operation: Operation, content: &str) -> String {
        edit(text, operator, name, operation, content).unwrap().text
    }

    #[test]
    fn the_form_alone_is_replaced() {
        let new = edited(TEXT, "defun", "f", Operation::Replace, "\n(defun f (y) y)\n");
        assert_eq!(new, TEXT.replace("(defun f (x)\n  x)", "(defun f (y) y)"));
        let new = edited(TEXT, "defmethod", "m (b)", Operation::Replace, "(defmethod m ((x b)) 3)");
        assert_eq!(new, TEXT.replace("2)\n#+", "3)\n#+"));
        let new = edited(TEXT, "defun", "g[2]", Operation::Replace, "(defun g () 3) ; three");
        assert_eq!(new, TEXT.replace("(defun g () 2)", "(defun g () 3) ; three"));
        let new = edited(TEXT, "defun", "g[1]", Operation::Replace, "(defun g () 3) ; three");
        assert_eq!(new, TEXT.replace("(defun g () 1)", "(defun g () 3) ; three\n"), "a comment swallows nothing");
        let new = edited(TEXT, "defun", "h", Operation::Replace, "(defun h () 2)");
        assert_eq!(new, TEXT.replace("(defun h () 1)", "(defun h () 2)"));
    }

    #[test]
    fn a_form_goes_before_comments_that_belong_and_behind_those_on_the_line() {
        let new = edited(TEXT, "defun", "f", Operation::InsertBefore, "(new)");
        assert_eq!(new, TEXT.replace(";; About f.", "(new)\n\n;; About f."));
        let new = edited(TEXT, "defun", "f", Operation::InsertAfter, "(new)");
        assert_eq!(new, TEXT.replace("; trailing", "; trailing\n\n(new)"));
        let new = edited(TEXT, "defun", "g[1]", Operation::InsertBefore, "(new)");
        assert_eq!(new, TEXT.replace("#+sbcl", "(new)\n\n#+sbcl"), "before the guard");
        let new = edited(TEXT, "defun", "h", Operation::InsertAfter, "(new)");
        assert_eq!(new, TEXT.replace("h () 1))", "h () 1)\n\n  (new))"));
    }

    #[test]
    fn line_breaks_are_the_file_s() {
        let crlf = TEXT.replace('\n', "\r\n");
        let new = edited(&crlf, "defun", "f", Operation::Replace, "(defun f (y)\n  y)");
        assert_eq!(new, TEXT.replace("(defun f (x)\n  x)", "(defun f (y)\n  y)").replace('\n', "\r\n"));
        assert_eq!(edited(&crlf, "defun", "f", Operation::Replace, "(defun f (x)\n  x)"), crlf);
    }

    #[test]
    fn what_is_no_single_form_is_refused() {
        for content in [
            "", "; only", "(a) (b)", "(a", "(a))", "\"a", "(a '|b)", "(a ')", "(a . )", "(. a)", "(a ,b)", "(a:::b)",
            "(a:b:c)", "#<x>", "(foo: 1)",
        ] {
            let refused = edit(TEXT, "defun", "f", Operation::Replace, content).unwrap_err();
            assert_eq!(refused.kind, "content-unreadable", "{content}: {refused}");
        }
        for content in [
            "(a . b)",
            "`(a ,@b)",
            "'a",
            "#+x (a)",
            "; c\n(a)",
            "(a . ,b)".replace("(a", "`(a").as_str(),
            "(#\\( |a:b| :k cl:car)",
        ] {
            assert!(edit(TEXT, "defun", "f", Operation::Replace, content).is_ok(), "{content}");
        }
    }

    #[test]
    fn one_that_is_missing_or_not_alone_is_answered_with_those_there_are() {
        let refused = edit(TEXT, "defmethod", "m", Operation::Replace, "(x)").unwrap_err();
        assert_eq!(refused.kind, "form-ambiguous");
        assert!(refused.message.contains("form_name m (a) (line 9)"), "{refused}");
        let refused = edit(TEXT, "defun", "g", Operation::Replace, "(x)").unwrap_err();
        assert!(refused.message.contains("form_name g[2] (line 11, behind #-sbcl)"), "{refused}");
        let refused = edit(TEXT, "defun", "nothing", Operation::Replace, "(x)").unwrap_err();
        assert_eq!(refused.kind, "form-not-found");
        assert!(refused.message.contains("form_name h"), "{refused}");
        let broken = "(defun a () 1)\n(defun b (\n(defun c () 1)\n";
        assert_eq!(edit(broken, "defun", "b", Operation::Replace, "(x)").unwrap_err().kind, "form-broken");
        assert_eq!(edited(broken, "defun", "c", Operation::Replace, "(x)"), broken.replace("(defun c () 1)", "(x)"));
    }
}
