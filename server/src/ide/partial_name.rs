//! A partial name in a text: its context, and the names of the text that complete it.

use crate::text::Span;
use crate::text::datum::Form;
use crate::text::document::Document;
use crate::text::forms::{operator_at, package_at, symbol_at};
use crate::text::scanner::{Scanner, Token, TokenKind};
use crate::text::scopes::Scopes;

/// The context of a partial name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialName {
    /// The part typed so far.
    pub typed: String,
    /// The span that a completion replaces.
    pub replace: Span,
    /// The package in force.
    pub package: Option<String>,
    /// True if an operator is expected.
    pub operator: bool,
    /// True if the name of a package is expected.
    pub packages: bool,
}

/// A completion that the text provides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Local {
    /// The text to insert.
    pub label: String,
    /// True for the name of an operator, false for that of a variable.
    pub operator: bool,
    /// The kind of the name.
    pub detail: String,
}

/// Returns the completion context at `offset`, or `None` in strings and comments.
pub fn context(document: &Document, offset: usize) -> Option<PartialName> {
    if in_text(document, offset) {
        return None;
    }
    let text = document.text();
    let at = symbol_at(document, offset).filter(|(span, _)| span.start < offset);
    let start = at.map_or(offset, |(span, _)| span.start);
    let before = |n: usize| start.checked_sub(n).map(|at| text.char(at));
    let called = before(1) == Some('(') && !matches!(before(2), Some('\'' | '`' | '('));
    let named = before(1) == Some('\'') && before(2) == Some('#');
    let operator = operator_at(document, offset);
    let packages = operator.is_some_and(|operator| {
        let name = operator.name.to_lowercase();
        let name = name.rsplit(':').next().unwrap_or_default();
        match name {
            "use" | "mix" | "reexport" | "use-reexport" => operator.argument.is_some(),
            "in-package" | "find-package" | "import-from" | "shadowing-import-from" | "use-package" | "do-symbols" => {
                operator.argument == Some(0)
            }
            _ => false,
        }
    });
    Some(PartialName {
        typed: text.slice(start..offset).to_string(),
        replace: Span { start, end: offset },
        package: package_at(document, offset),
        operator: called || named,
        packages,
    })
}

/// Returns true if `offset` is inside a string or a comment.
pub(super) fn in_text(document: &Document, offset: usize) -> bool {
    let part = Part::around(document, offset);
    let at = part.at;
    part.tokens_before().any(|token| match token.kind {
        TokenKind::LineComment => at <= token.end,
        TokenKind::String | TokenKind::BlockComment => {
            at < token.end || token.unterminated != crate::text::scanner::Unterminated::No
        }
        _ => false,
    })
}

/// The text that decides what the reader expects at an offset: the top-level form there, or the
/// part of the line before it.
pub(super) struct Part {
    /// The start in the document, in characters.
    pub(super) start: usize,
    pub(super) text: String,
    /// The offset in `text`, in bytes.
    pub(super) at: usize,
}

impl Part {
    pub(super) fn around(document: &Document, offset: usize) -> Part {
        let (start, text) = part_at(document, offset);
        let at = text.char_indices().nth(offset - start).map_or(text.len(), |(byte, _)| byte);
        Part { start, text, at }
    }

    /// Returns the tokens that begin before the offset.
    pub(super) fn tokens_before(&self) -> impl Iterator<Item = Token> {
        let scanner = if self.start == 0 { Scanner::new(&self.text) } else { Scanner::inside(&self.text) };
        scanner.take_while(|token| token.start < self.at)
    }
}

/// Returns the start and the text of the top-level form at `offset`, or of the part of the line
/// before it.
fn part_at(document: &Document, offset: usize) -> (usize, String) {
    let text = document.text();
    match document.scan().form_at(offset) {
        Some(form) => (form.span.start, text.slice(form.span.start..form.span.end).to_string()),
        None => {
            let line = text.line_to_char(text.char_to_line(offset.min(text.len_chars())));
            (line, text.slice(line..offset.min(text.len_chars())).to_string())
        }
    }
}

/// Returns the local bindings in force and the names defined in this text that match the typed
/// part, best first.
pub fn locals(document: &Document, offset: usize, context: &PartialName) -> Vec<Local> {
    let mut found = Vec::new();
    if context.typed.contains(':') {
        return found;
    }
    if let Some(form) = Form::at(document, offset) {
        found = bindings(document, &form, offset);
    }
    found.extend(toplevel_names(document, Some(context.replace.start)));
    found.retain(|one| fits(&context.typed, &one.label));
    found.sort_by_key(|one| one.operator != context.operator);
    let mut seen = std::collections::HashSet::new();
    found.retain(|one| seen.insert(one.label.to_lowercase()));
    found
}

/// Returns the local bindings in force at `offset`, innermost first.
pub fn bindings(document: &Document, form: &Form, offset: usize) -> Vec<Local> {
    let text = document.text();
    let local = |binding: &crate::text::scopes::Binding| Local {
        label: text.slice(binding.span.start..binding.span.end).to_string(),
        operator: binding.kind.is_operator(),
        detail: format!("{} ({})", binding.kind.words(), binding.by),
    };
    Scopes::of(form).visible(offset).into_iter().map(local).collect()
}

/// Returns true if a name begins with the typed text, or if each of its words begins with a typed
/// word.
pub fn fits(typed: &str, name: &str) -> bool {
    let (typed, name) = (typed.to_lowercase(), name.to_lowercase());
    if name.starts_with(&typed) {
        return true;
    }
    let mut words = name.split('-');
    typed.contains('-') && typed.split('-').all(|part| words.next().is_some_and(|word| word.starts_with(part)))
}

/// Returns the names defined at top level, without the one that begins at `begun`. Reads only the
/// beginning of each form.
pub fn toplevel_names(document: &Document, begun: Option<usize>) -> Vec<Local> {
    const BEGINNING: usize = 160;
    let text = document.text();
    let mut names = Vec::new();
    for form in document.scan().forms() {
        if text.get_char(form.span.start) != Some('(') {
            continue;
        }
        let head = text.slice(form.span.start..form.span.end.min(form.span.start + BEGINNING)).to_string();
        let mut tokens = Scanner::inside(&head).skip(1);
        let (Some(operator), Some(name)) = (tokens.next(), tokens.next()) else { continue };
        let written = |token: crate::text::scanner::Token| head.get(token.start..token.end).unwrap_or_default();
        let operator = written(operator).to_lowercase();
        let chars = |byte: usize| head.get(..byte).map_or(0, |before| before.chars().count());
        if begun.is_some_and(|begun| begun == form.span.start + chars(name.start)) {
            continue;
        }
        if operator.starts_with("def")
            && name.kind == TokenKind::Atom
            && name.end < head.len()
            && !written(name).starts_with([':', '#'])
        {
            let called = matches!(operator.as_str(), "defun" | "defmacro" | "defgeneric" | "defmethod");
            names.push(Local { label: written(name).to_owned(), operator: called, detail: operator });
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(source: &str) -> (Document, usize) {
        let caret = source.chars().position(|char| char == '‸').expect("a caret");
        (Document::new(&source.replace('‸', ""), 0), caret)
    }

    #[test]
    fn the_context_of_a_name_that_is_begun() {
        for (source, typed, operator, packages) in [
            ("(in-package :x) (fo‸", "fo", true, false),
            ("(f fo‸o)", "fo", false, false),
            ("(f #'fo‸)", "fo", true, false),
            ("(f '(fo‸))", "fo", false, false),
            ("(f ‸)", "", false, false),
            ("(in-package :cl-p‸)", ":cl-p", false, true),
            ("(defpackage :a (:use :c‸))", ":c", false, true),
            ("(f cl:ca‸)", "cl:ca", false, false),
        ] {
            let (document, offset) = at(source);
            let context = context(&document, offset).expect(source);
            assert_eq!(
                (context.typed.as_str(), context.operator, context.packages),
                (typed, operator, packages),
                "{source}"
            );
        }
        for source in ["(f \"a‸b\")", "; a‸b", "(f ; a‸b\n)", "(f #| a‸b |# c)", "x ;a‸"] {
            let (document, offset) = at(source);
            assert_eq!(context(&document, offset), None, "{source}");
        }
    }

    #[test]
    fn locals_and_what_the_text_defines() {
        let (document, offset) =
            at("(defun helper (x) x)\n(defvar *hidden* 1)\n(defun f (height &aux (hue 1)) (let ((h2 1)) (g h‸)))");
        let context = context(&document, offset).expect("a context");
        let labels: Vec<String> = locals(&document, offset, &context).into_iter().map(|one| one.label).collect();
        assert_eq!(labels, ["h2", "hue", "height", "helper"]);
    }
}
