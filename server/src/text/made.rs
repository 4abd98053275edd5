//! The definitions of a text, by their shape: every `(def... name` at top level or in a list that
//! is not quoted.

use std::hash::{Hash, Hasher};

use super::Span;
use super::datum::{Form, Kind, Node, Prefix};
use super::definitions::{Defined, everywhere, kind_of};
use super::designator::designated;
use super::document::Document;
use super::forms::package_at;
use super::names;
use super::scanner::TokenKind;

/// A definition in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The package of the name, as written before the colons, or in force there; `None` if the
    /// text does not name it.
    pub package: Option<String>,
    /// The name, as the reader converts it.
    pub name: String,
    /// `function`, `macro`, `variable`, ...; the defining operator's name if it is none of the
    /// language's.
    pub kind: String,
    /// The line, 1-based.
    pub line: usize,
    /// The form as written, clipped.
    pub text: String,
    /// The top-level form that contains it.
    pub top: Span,
    /// A digest of that form's whole text, whatever its white space.
    pub digest: u64,
}

/// Characters of a form that are kept.
pub const TEXT: usize = 400;

/// Everything that a text seems to define, in order.
pub fn definitions(text: &str) -> Vec<Definition> {
    let document = Document::new(text, 0);
    let mut found = Vec::new();
    for top in document.scan().forms() {
        let form = Form::of(&document, top.span);
        let package = package_at(&document, top.span.start);
        let is_code =
            |node: &Node| node.kind != Kind::Vector && !matches!(node.prefix, Prefix::Quote | Prefix::Backquote);
        let mut defined = Vec::new();
        form.nodes.iter().for_each(|node| everywhere(&form, node, is_code, &mut defined));
        if defined.is_empty() {
            continue;
        }
        let digest = digest(&document.text().slice(top.span.start..top.span.end).to_string());
        let whole = (top.span, digest);
        found.extend(defined.iter().filter_map(|one| made(&document, one, package.as_deref(), whole)));
    }
    found
}

/// A digest of a text, whatever its white space; never 0.
fn digest(text: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    for word in text.split_whitespace() {
        word.hash(&mut hasher);
    }
    hasher.finish().max(1)
}

fn made(document: &Document, one: &Defined, package: Option<&str>, (top, digest): (Span, u64)) -> Option<Definition> {
    // A quoted name is the argument of a call, as in `(definitions-of 'f)`.
    if one.name.start > 0 && document.text().char(one.name.start - 1) == '\'' {
        return None;
    }
    // For `(setf name)`, the name.
    let written = match one.written.strip_prefix('(') {
        Some(list) => list.trim_end_matches(')').split_whitespace().nth(1)?,
        None => one.written.as_str(),
    };
    let name = designated(written, if written.starts_with('"') { TokenKind::String } else { TokenKind::Atom })?;
    if names::is_number(written) {
        return None;
    }
    let prefix = written
        .split_once(':')
        .map(|(prefix, _)| prefix)
        .filter(|prefix| !prefix.is_empty() && !prefix.contains(['|', '#']));
    let text = document.text();
    Some(Definition {
        package: prefix.map(str::to_uppercase).or_else(|| package.map(str::to_owned)),
        name,
        kind: kind_of(&one.operator).to_owned(),
        line: text.char_to_line(one.span.start) + 1,
        text: text.slice(one.span.start..one.span.end.min(one.span.start + TEXT)).to_string(),
        top,
        digest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let line = |d: Definition| format!("{} {}:{} {}", d.line, d.package.as_deref().unwrap_or("-"), d.name, d.kind);
        definitions(text).into_iter().map(line).collect()
    }

    #[test]
    fn definitions_are_found_where_they_are_code() {
        assert_eq!(
            found(
                "(defun f (x) x)\n(in-package :app)\n(progn\n  (defvar *a* 1)\n  (eval-when (:execute) (defmacro |m x| ())))\n\
                 (defun (setf f) (v) v) (defstruct (point (:conc-name p-)) x)\n\
                 '(defun no ()) `(defun ,no ()) (list \"(defun no ())\") ; (defun no ())\n\
                 (cl:defmethod other::area :before ((s shape)) 1) (defpackage #:new (:use :cl)) (deftest \"one\" 1)\n\
                 (let ((defun 1)) (default x 3)) #(defun no) (definitions-of 'no) (definer #'no)"
            ),
            [
                "1 -:F function",
                "4 APP:*A* variable",
                "5 APP:m x macro",
                "6 APP:F function",
                "6 APP:POINT structure",
                "8 OTHER:AREA method",
                "8 APP:NEW package",
                "8 APP:one deftest"
            ]
        );
    }

    #[test]
    fn broken_and_deep_texts_end() {
        assert_eq!(found("(defun f (x"), ["1 -:F function"]);
        assert_eq!(found("(defun"), [] as [&str; 0]);
        assert_eq!(found(&"(".repeat(100_000)), [] as [&str; 0]);
        assert_eq!(found("(defun () 1) (defun)"), [] as [&str; 0]);
    }
}
