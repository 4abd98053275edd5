//! Lookups at a place in a document: the form, the symbol, the operator, the package. Offsets and
//! spans are characters of the text.

use super::Span;
use super::document::Document;
use super::part::Part;
use super::scanner::TokenKind;

/// The operator of the innermost list around a place, and the argument that contains the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// The name as written.
    pub name: String,
    /// The span of the name.
    pub span: Span,
    /// The list that begins with the operator. A list that is not closed extends to the end of its
    /// top-level form.
    pub list: Span,
    /// The index of the argument that contains the place, 0-based. `None` if the place is in the
    /// operator.
    pub argument: Option<usize>,
}

/// Returns the top-level form at `offset`, or the nearest one before it.
pub fn toplevel_form(document: &Document, offset: usize) -> Option<Span> {
    let forms = document.scan().forms();
    let at = document.scan().form_at(offset).or_else(|| {
        let after = forms.partition_point(|form| form.span.start <= offset);
        forms[..after].last()
    });
    at.map(|form| form.span)
}

/// Returns the symbol or number around or next to `offset`, as written, including its package
/// prefix. Returns `None` in strings and comments.
pub fn symbol_at(document: &Document, offset: usize) -> Option<(Span, String)> {
    let form = document.scan().form_at(offset)?;
    let part = Part::of(document.text(), form.span);
    let at = part.byte(offset);
    let touching = part.tokens().take_while(|token| token.start <= at).filter(|token| at <= token.end);
    let token = touching.last().into_iter().find(|token| token.kind == TokenKind::Atom).or_else(|| {
        // In `(foo)` directly after `foo`, the last touching token is the parenthesis.
        part.tokens()
            .take_while(|token| token.start <= at)
            .find(|token| token.kind == TokenKind::Atom && at == token.end)
    })?;
    let text = part.text.get(token.start..token.end)?;
    if text.starts_with('#') && !text.starts_with("#:") {
        return None;
    }
    Some((part.span(token.start, token.end), text.to_owned()))
}

/// Returns the operator of the innermost list around `offset`. Returns `None` if that list is
/// quoted, or does not begin with a symbol or another atom.
pub fn operator_at(document: &Document, offset: usize) -> Option<Operator> {
    struct List {
        start: usize,
        head: Option<(usize, usize)>,
        quoted: bool,
        done: usize,
    }
    let form = document.scan().form_at(offset)?;
    let part = Part::of(document.text(), form.span);
    let at = part.byte(offset);
    let mut lists: Vec<List> = Vec::new();
    let mut quoted = false;
    let mut end = part.text.len();
    let mut depth_at = None;
    for token in part.tokens() {
        if token.start >= at && depth_at.is_none() {
            depth_at = Some(lists.len());
        }
        let before = depth_at.is_none();
        match token.kind {
            TokenKind::LineComment | TokenKind::BlockComment => continue,
            TokenKind::Prefix => {
                quoted = matches!(part.text.get(token.start..token.end), Some("'"));
                continue;
            }
            TokenKind::Open => {
                let list = List { start: token.start, head: None, quoted, done: 0 };
                lists.push(list);
            }
            TokenKind::Close => {
                if depth_at.is_some_and(|depth| depth == lists.len()) {
                    end = token.end;
                    break;
                }
                lists.pop();
                if let Some(list) = lists.last_mut().filter(|_| before) {
                    list.done += 1;
                }
            }
            TokenKind::Atom | TokenKind::String => {
                if let Some(list) = lists.last_mut().filter(|_| before || token.start == at) {
                    if list.done == 0 && list.head.is_none() && token.kind == TokenKind::Atom {
                        list.head = Some((token.start, token.end));
                    }
                    if before && token.end < at {
                        list.done += 1;
                    }
                }
            }
            TokenKind::FeatureConditional | TokenKind::Unknown => {}
        }
        quoted = false;
    }
    lists.truncate(depth_at.unwrap_or(lists.len()));
    let list = lists.pop().filter(|list| !list.quoted)?;
    let (start, head_end) = list.head?;
    Some(Operator {
        name: part.text.get(start..head_end)?.to_owned(),
        span: part.span(start, head_end),
        list: part.span(list.start, end),
        argument: if at <= head_end { None } else { list.done.checked_sub(1) },
    })
}

/// Returns the package that the last `(in-package ...)` before `offset` names. The name is
/// converted as by the reader: upper-case unless it was a string or escaped. Returns `None` before
/// the first `(in-package ...)`.
pub fn package_at(document: &Document, offset: usize) -> Option<String> {
    document.packages().at(offset).map(str::to_owned)
}

/// Returns the packages that the `(in-package ...)` forms of a text name, sorted and without
/// duplicates.
pub fn packages_named(document: &Document) -> Vec<String> {
    let all: std::collections::BTreeSet<&str> = document.packages().all().collect();
    all.into_iter().map(str::to_owned).collect()
}

/// Returns the packages that may be in force at `offset`, with that of [`package_at`] first. There
/// may be several after an `(in-package ...)` that a reader may skip (`#+`, `#-`). `None` stands
/// for the package at the start of the text.
pub fn possible_packages_at(document: &Document, offset: usize) -> Vec<Option<String>> {
    document.packages().possible_at(offset).into_iter().map(|name| name.map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text without its `‸`, and the offset at which that was.
    fn at(source: &str) -> (Document, usize) {
        let caret = source.chars().position(|char| char == '‸').expect("a caret");
        (Document::new(&source.replace('‸', ""), 0), caret)
    }

    fn text_of(document: &Document, span: Span) -> String {
        document.text().slice(span.start..span.end).to_string()
    }

    #[test]
    fn the_symbol_is_the_one_touched_on_either_side() {
        for (source, expected) in [
            ("(foo ba‸r)", Some("bar")),
            ("(fo‸o bar)", Some("foo")),
            ("(foo‸)", Some("foo")),
            ("(‸foo)", Some("foo")),
            ("(cl:ca‸r '|a b|)", Some("cl:car")),
            ("(cl:car '|a‸ b|)", Some("|a b|")),
            ("(f #'ba‸r)", Some("bar")),
            ("(f \"ba‸r\")", None),
            ("(f ; ba‸r\n)", None),
            ("(f #\\a‸)", None),
            ("(f ‸ )", None),
        ] {
            let (document, caret) = at(source);
            assert_eq!(symbol_at(&document, caret).map(|(_, name)| name).as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn the_operator_and_the_argument_under_way() {
        for (source, expected) in [
            ("(f ‸a b)", Some(("f", Some(0)))),
            ("(f a ‸b)", Some(("f", Some(1)))),
            ("(f (g x) ‸)", Some(("f", Some(1)))),
            ("(f (g ‸x) y)", Some(("g", Some(0)))),
            ("(f a‸)", Some(("f", Some(0)))),
            ("(‸f a)", Some(("f", None))),
            ("(f ‸", Some(("f", Some(0)))),
            ("(f '(g ‸x))", None),
            ("((g) ‸x)", None),
        ] {
            let (document, caret) = at(source);
            let operator = operator_at(&document, caret);
            let seen = operator.as_ref().map(|operator| (operator.name.as_str(), operator.argument));
            assert_eq!(seen, expected, "{source}");
        }
    }

    #[test]
    fn the_package_is_the_one_named_last_before() {
        for (source, expected) in [
            ("‸(in-package :a)", None),
            ("(in-package :a)‸", Some("A")),
            ("(in-package a) (f ‸)", Some("A")),
            ("(cl:in-package #:a-b)\n\n‸", Some("A-B")),
            ("(COMMON-LISP:IN-PACKAGE \"MiXed\")\n‸", Some("MiXed")),
            ("(in-package |a b|)‸", Some("a b")),
            ("(in-package :a)\n(in-package ; now b\n :b)\n(f ‸x)\n(in-package :c)", Some("B")),
            ("#+(and sbcl x) (in-package cl-user)‸", Some("CL-USER")),
            ("\"(in-package :a)\" ; (in-package :b)\n‸", None),
            ("(defun f () (in-package :a))‸", None),
            ("(in-package keyword:a)‸", Some("A")),
        ] {
            let (document, caret) = at(source);
            assert_eq!(package_at(&document, caret).as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn the_top_level_form_is_the_one_at_or_before_the_caret() {
        let (document, caret) = at("(a)\n\n#+x\n(b)  ‸\n(c)");
        let form = toplevel_form(&document, caret).map(|span| text_of(&document, span));
        assert_eq!(form.as_deref(), Some("#+x\n(b)"));
    }
}
