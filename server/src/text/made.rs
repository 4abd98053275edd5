//! What a text defines, by the look of it: every `(def... name` at top level or in a list that is not quoted.

use super::document::Document;
use super::forms::{designated, package_at};
use super::scanner::{Scanner, Token, TokenKind};

/// A definition in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The package of its name, as written before the colons, or in force there; `None` when the text does not say.
    pub package: Option<String>,
    /// Its name, as the reader would have it.
    pub name: String,
    /// `function`, `macro`, `variable`, ...; the defining operator's name when it is none of the language's.
    pub kind: String,
    /// Its line, 1-based.
    pub line: usize,
    /// The form as written.
    pub text: String,
}

/// Characters of a form that are kept.
const TEXT: usize = 400;

/// Lists within lists that are looked into.
const DEPTH: usize = 64;

/// Everything that a text seems to define, in order.
pub fn definitions(text: &str) -> Vec<Definition> {
    let document = Document::new(text, 0);
    let rope = document.text();
    let mut found = Vec::new();
    for form in document.scan().forms() {
        let source = rope.slice(form.span.start..form.span.end).to_string();
        let package = package_at(&document, form.span.start);
        let line = rope.char_to_line(form.span.start) + 1;
        scan(&source, line, package.as_deref(), &mut found);
    }
    found
}

struct List {
    start: usize,
    head: Option<String>,
    /// It is data, or in data.
    quoted: bool,
    named: bool,
}

fn scan(source: &str, line: usize, package: Option<&str>, found: &mut Vec<Definition>) {
    let mut lists: Vec<List> = Vec::new();
    let mut quote = false;
    let tokens = Scanner::new(source);
    let mut tokens =
        tokens.filter(|token| !matches!(token.kind, TokenKind::LineComment | TokenKind::BlockComment)).peekable();
    while let Some(token) = tokens.next() {
        let written = &source[token.start..token.end];
        match token.kind {
            TokenKind::Prefix => {
                quote |= matches!(written, "'" | "`");
                continue;
            }
            TokenKind::Open => {
                let quoted = quote || lists.last().is_some_and(|list| list.quoted) || written != "(";
                // `(defun (setf name) ...`, `(defstruct (name ...) ...`.
                if lists.last().is_some_and(|list| list.head.is_some() && !list.named) {
                    let first = tokens.peek().copied();
                    let setf = first.is_some_and(|first| source[first.start..first.end].eq_ignore_ascii_case("setf"));
                    lists.push(List { start: token.start, head: None, quoted: true, named: true });
                    let at = lists.len() - 2;
                    if setf {
                        tokens.next();
                    }
                    if let Some(name) = tokens.next_if(|token| token.kind == TokenKind::Atom) {
                        lists[at].named = true;
                        add(source, line, package, &lists[at], name, found);
                    } else if let Some(outer) = lists.get_mut(at) {
                        outer.named = true;
                    }
                } else if lists.len() < DEPTH {
                    lists.push(List { start: token.start, head: None, quoted, named: false });
                } else {
                    return;
                }
            }
            TokenKind::Close => drop(lists.pop()),
            TokenKind::Atom | TokenKind::String => {
                if let Some(list) = lists.last_mut().filter(|list| !list.quoted && !list.named) {
                    match &list.head {
                        None if token.kind == TokenKind::Atom && defines(written) => {
                            list.head = Some(written.to_ascii_lowercase())
                        }
                        None => list.named = true,
                        Some(_) => {
                            list.named = true;
                            if let Some(list) = lists.last() {
                                add(source, line, package, list, token, found);
                            }
                        }
                    }
                }
            }
            TokenKind::Guard | TokenKind::Unknown | TokenKind::LineComment | TokenKind::BlockComment => {}
        }
        quote = false;
    }
}

fn defines(operator: &str) -> bool {
    let name = operator.rsplit(':').next().unwrap_or(operator);
    let name = name.to_ascii_lowercase();
    name.starts_with("def") && !name.starts_with("default")
}

fn add(source: &str, line: usize, package: Option<&str>, list: &List, name: Token, found: &mut Vec<Definition>) {
    let Some(operator) = &list.head else { return };
    let written = &source[name.start..name.end];
    let Some(symbol) = designated(written, name.kind) else { return };
    if symbol.parse::<f64>().is_ok() {
        return;
    }
    let prefix = written
        .split_once(':')
        .map(|(prefix, _)| prefix)
        .filter(|prefix| !prefix.is_empty() && !prefix.contains(['|', '#']));
    let package = prefix.map(str::to_uppercase).or_else(|| package.map(str::to_owned));
    let before = source[..list.start].matches('\n').count();
    let text: String = source[list.start..].chars().take(TEXT).collect();
    found.push(Definition { package, name: symbol, kind: kind(operator), line: line + before, text });
}

fn kind(operator: &str) -> String {
    let name = operator.rsplit(':').next().unwrap_or(operator);
    let kind = match name {
        "defun" => "function",
        "defmacro" | "define-modify-macro" => "macro",
        "defgeneric" => "generic function",
        "defmethod" => "method",
        "defvar" | "defparameter" | "defglobal" => "variable",
        "defconstant" => "constant",
        "defclass" => "class",
        "defstruct" => "structure",
        "define-condition" => "condition",
        "deftype" => "type",
        "defpackage" => "package",
        "define-compiler-macro" => "compiler macro",
        "defsetf" | "define-setf-expander" => "setf expander",
        "define-symbol-macro" => "symbol macro",
        other => other,
    };
    kind.to_owned()
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
                 (let ((defun 1)) (default x 3)) #(defun no)"
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
