//! One edit of `lisp-edit-form`: replaces a top-level form, or inserts a form before or behind it,
//! and keeps every other byte.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::outline::{Definition, DefinitionSelector, DefinitionsByKey, operator_of, selectors};
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

/// An edit of a text. Offsets are bytes of the text that the previous edits produced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The start of the replaced range.
    pub start: usize,
    /// The replaced text.
    pub old: String,
    /// The replacement text.
    pub by: String,
    /// The selected form, as `form_type form_name`.
    pub title: String,
    /// The first and the last line of the content in the new text, 1-based.
    pub lines: (usize, usize),
    /// The package in force at the form.
    pub package: String,
}

fn refusal<T>(kind: &'static str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { kind, message: message.into() })
}

/// A parsed text, from which changes of its forms are computed.
pub(super) struct Source<'t> {
    scan: &'t Scan,
    pub(super) tree: &'t Tree<'t>,
    pub(super) all: &'t [Definition],
    keys: DefinitionsByKey<'t>,
    /// True if most lines end in CRLF.
    crlf: bool,
}

impl<'t> Source<'t> {
    /// Creates the source of a text from its parts.
    pub(super) fn new(scan: &'t Scan, tree: &'t Tree<'t>, all: &'t [Definition]) -> Source<'t> {
        Source { scan, tree, all, keys: DefinitionsByKey::new(all, tree), crlf: is_crlf(tree.text) }
    }

    /// Returns the index of the definition that `operator` and `selector` select.
    ///
    /// # Errors
    /// No form, or more than one, is selected.
    pub(super) fn target(&self, operator: &str, selector: &DefinitionSelector, name: &str) -> Result<usize, Refusal> {
        let found = self.keys.selected(selector, operator);
        match found.as_slice() {
            [one] => Ok(*one),
            found => Err(self.not_found_or_ambiguous(found, operator, name)),
        }
    }

    /// Checks that the form of a definition balances.
    ///
    /// # Errors
    /// The form does not balance.
    pub(super) fn check_whole(&self, target: &Definition) -> Result<(), Refusal> {
        let start = self.tree.node(target.outer).start;
        let forms = self.scan.forms();
        let after = forms.partition_point(|form| form.bytes.start <= start);
        match forms[..after].last() {
            Some(form) if form.fault.is_some() && start < form.bytes.end => refusal(
                "form-broken",
                format!(
                    "`{}` on line {} is not balanced, and its end is not known. Nothing was changed. Repair its parentheses first.",
                    target.title(),
                    line(self.tree.text, start)
                ),
            ),
            _ => Ok(()),
        }
    }

    /// Returns the change that an operation with a content makes at a definition.
    pub(super) fn change(&self, operation: Operation, target: &Definition, content: String) -> Change {
        match operation {
            Operation::Replace => self.replacement(target.node, content),
            Operation::InsertBefore => self.before(target.outer, &content),
            Operation::InsertAfter => self.after(target.outer, &content),
        }
    }

    /// Returns the content with the line breaks that most lines of the text have.
    pub(super) fn with_line_breaks(&self, content: &str) -> String {
        let plain = content.replace("\r\n", "\n");
        if self.crlf { plain.replace('\n', "\r\n") } else { plain }
    }
}

/// Returns the 1-based line of the byte at `at`.
pub fn line(text: &str, at: usize) -> usize {
    text[..at].bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// Returns the only form in `content`, with the comments around it.
///
/// # Errors
/// The content is not one form that can be read.
pub(super) fn one_form(content: &str) -> Result<&str, Refusal> {
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
    // The backquote depth of each node: the number of backquotes minus the number of commas in its
    // own prefix and those of the nodes around it.
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

impl Source<'_> {
    /// Returns the refusal for the case that no definition or several were `found`.
    fn not_found_or_ambiguous(&self, found: &[usize], operator: &str, name: &str) -> Refusal {
        let (all, tree) = (self.all, self.tree);
        if found.is_empty() {
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
            let message = format!("The file has no `{operator} {}`. Nothing was changed. {hint}", name.trim());
            return Refusal { kind: "form-not-found", message };
        }
        let several: Vec<&Definition> = found.iter().map(|index| &all[*index]).collect();
        let message = format!(
            "{} forms are called `{operator} {}`. Nothing was changed. Say which, by form_name:\n{}",
            several.len(),
            name.trim(),
            listed(&several, all, tree)
        );
        Refusal { kind: "form-ambiguous", message }
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

/// A change of a text: the replaced range of bytes, and the replacement.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) range: std::ops::Range<usize>,
    pub(super) by: String,
    /// The numbers of bytes at the start and at the end of `by` that are not content.
    pub(super) padding: (usize, usize),
}

impl Source<'_> {
    fn replacement(&self, target: NodeId, content: String) -> Change {
        let node = self.tree.node(target);
        let old = self.tree.text_of(target);
        // The content may differ from the old form only in line breaks, because a file may have
        // both kinds.
        let same = old == content || old.replace("\r\n", "\n") == content.replace("\r\n", "\n");
        let by = if same { old.to_owned() } else { self.guarded_end(content, node.end) };
        Change { range: node.start..node.end, by, padding: (0, 0) }
    }

    /// Returns the content. If it ends in a comment that would include the following text, a line
    /// break is appended.
    fn guarded_end(&self, content: String, at: usize) -> String {
        let parsed = Tree::parse(&content);
        let last = parsed.children(ROOT).last();
        let ends_in_comment = last.is_some_and(|last| parsed.node(*last).kind == Kind::LineComment);
        if !ends_in_comment {
            return content;
        }
        let rest = self.tree.text[at..].split('\n').next().unwrap_or_default();
        if rest.trim().is_empty() { content } else { content + self.line_break() }
    }

    fn line_break(&self) -> &'static str {
        if self.crlf { "\r\n" } else { "\n" }
    }

    /// Returns the children of a node's parent, comments included, and the index of the node among
    /// them.
    fn siblings(&self, id: NodeId) -> (&[NodeId], usize) {
        let start = self.tree.node(id).start;
        let siblings = self.tree.children(self.tree.node(id).parent);
        (siblings, siblings.partition_point(|sibling| self.tree.node(*sibling).start < start))
    }

    fn before(&self, outer: NodeId, content: &str) -> Change {
        let (tree, text) = (self.tree, self.tree.text);
        let mut at = tree.node(outer).start;
        let (siblings, place) = self.siblings(outer);
        for comment in siblings[..place].iter().rev() {
            let node = tree.node(*comment);
            let between = &text[node.end..at];
            let own_line = node.start == 0 || text[..node.start].trim_end_matches([' ', '\t']).ends_with('\n');
            let attached = tree.is_comment(*comment)
                && between.trim().is_empty()
                && between.matches('\n').count() == 1
                && own_line;
            if !attached || tree.text_of(*comment).starts_with(";;;;") {
                break;
            }
            at = node.start;
        }
        let gap = self.line_break().repeat(2) + indentation(text, at);
        Change { range: at..at, by: format!("{content}{gap}"), padding: (0, gap.len()) }
    }

    fn after(&self, outer: NodeId, content: &str) -> Change {
        let (tree, text) = (self.tree, self.tree.text);
        let node = tree.node(outer);
        let gap = self.line_break().repeat(2) + indentation(text, node.start);
        let mut at = node.end;
        let (siblings, place) = self.siblings(outer);
        if let Some(comment) = siblings.get(place + 1).map(|next| tree.node(*next))
            && comment.kind == Kind::LineComment
            && !text[at..comment.start].contains('\n')
        {
            at = comment.end;
        }
        let content = self.guarded_end(content.to_owned(), at);
        Change { range: at..at, by: format!("{gap}{content}"), padding: (gap.len(), 0) }
    }

    /// Returns the range of the text on which an operation at a form depends. Edits whose ranges
    /// are disjoint may be made in any order.
    pub(super) fn touched(&self, operation: Operation, outer: NodeId) -> std::ops::Range<usize> {
        let node = self.tree.node(outer);
        let (siblings, place) = self.siblings(outer);
        let form = |id: &&NodeId| !self.tree.is_comment(**id);
        match operation {
            Operation::Replace => node.start..node.end,
            Operation::InsertBefore => {
                let before = siblings[..place].iter().rev().find(form);
                before.map_or(0, |before| self.tree.node(*before).end)..node.end
            }
            Operation::InsertAfter => {
                let after = siblings[place..].iter().skip(1).find(form);
                // One byte more than the form, because an insertion before the next form may be at
                // the same place.
                let end = after.map_or(self.tree.text.len(), |after| self.tree.node(*after).start);
                node.start..end.max(node.end + 1)
            }
        }
    }
}

/// Returns the white space between the start of a line and a place in it, or nothing if code
/// precedes the place.
fn indentation(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let before = &text[start..at];
    if before.trim().is_empty() { before } else { "" }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ide::edit_forms::{FormEdit, edit_all};

    const TEXT: &str = ";;;; A file.\n\n(in-package :a)\n\n;; About f.\n(defun f (x)\n  x) ; trailing\n\n(defmethod m ((x a)) 1)\n(defmethod m ((x b)) 2)\n#+sbcl (defun g () 1) #-sbcl (defun g () 2)\n(progn\n  (defun h () 1))\n";

    fn edit(text: &str, operator: &str, name: &str, operation: Operation, content: &str) -> Result<String, Refusal> {
        let (form_type, form_name) = (operator.into(), name.into());
        let (operation, content) = (Some(operation), Some(content.into()));
        let one = FormEdit { form_type, form_name, operation, content, ..FormEdit::default() };
        Ok(edit_all(text, &[one])?.text)
    }

    fn edited(text: &str, operator: &str, name: &str, operation: Operation, content: &str) -> String {
        edit(text, operator, name, operation, content).unwrap()
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
            "", "; only", "(a) (b)", "\"a", "(a '|b)", "(a ')", "(a . )", "(. a)", "(a ,b)", "(a:::b)", "(a:b:c)",
            "#<x>", "(foo: 1)",
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
