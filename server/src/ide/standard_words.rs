//! The words of the standard that are not symbols of COMMON-LISP: loop keywords, options of
//! definitions, and names of characters. Each has a page in the HyperSpec.

use super::completion::{loops, vocabulary};
use super::hyperspec::page_of_symbol;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node};
use crate::text::document::Document;
use crate::text::loop_keywords;

/// A word at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StandardWord {
    /// The kind of word: `loop keyword`, `option of defclass`, `character`.
    pub(super) what: String,
    /// The word as written.
    pub(super) written: String,
    /// The span of the word.
    pub(super) span: Span,
    /// The name of the page in the HyperSpec.
    pub(super) page: &'static str,
}

/// The definitions whose options have a page, with the number of lists between the definition and
/// an option.
const DEFINITIONS: [(&str, usize); 8] = [
    ("defclass", 2),
    ("define-condition", 2),
    ("defgeneric", 1),
    ("defmethod", 0),
    ("defpackage", 1),
    ("defstruct", 2),
    ("eval-when", 1),
    ("restart-case", 1),
];

/// Returns the standard word at `offset`.
pub(super) fn at(document: &Document, offset: usize) -> Option<StandardWord> {
    let form = Form::at(document, offset)?;
    let path = form.path(offset);
    let (atom, lists) = path.split_last()?;
    if atom.kind != Kind::Atom {
        return None;
    }
    let written = form.text(atom);
    let word = |what: String, page| Some(StandardWord { what, written: written.to_owned(), span: atom.span, page });
    if written.strip_prefix("#\\").is_some_and(|name| name.chars().count() > 1) {
        return word("character".into(), "13_ag");
    }
    let list = *lists.last()?;
    let lower = written.to_lowercase();
    if let Some(page) = loop_page(lower.trim_start_matches(':')).filter(|_| is_loop_keyword(&form, list, atom)) {
        return word("loop keyword".into(), page);
    }
    if !lower.starts_with(':') {
        return None;
    }
    let operator = lists.iter().rev().enumerate().find_map(|(between, list)| {
        let operator = form.operator(list)?;
        let known = DEFINITIONS.iter().find(|(known, most)| *known == operator && between <= *most);
        known.map(|(known, _)| *known)
    })?;
    vocabulary::options(operator).split_whitespace().any(|option| option == lower).then_some(())?;
    match operator {
        "defmethod" => word("method qualifier".into(), "07_ffb"),
        _ => word(format!("option of {operator}"), page_of_symbol(operator)?),
    }
}

/// Returns true if an element of an extended `loop` is a loop keyword.
fn is_loop_keyword(form: &Form, list: &Node, atom: &Node) -> bool {
    let extended = list.children.get(1).is_some_and(|first| first.kind != Kind::List);
    let at = list.children.iter().position(|one| std::ptr::eq(one, atom));
    extended
        && form.operator(list).is_some_and(|operator| operator == "loop")
        && at.is_some_and(|at| at > 0 && matches!(loops::next(form, list, at), loops::Next::Keyword(..)))
}

/// Returns the page about a loop keyword (CLHS 6.1).
fn loop_page(keyword: &str) -> Option<&'static str> {
    let is = |group| loop_keywords::is_in(keyword, group);
    is(loop_keywords::ALL).then_some(match keyword {
        "for" | "as" => "06_aba",
        _ if is(loop_keywords::ARITHMETIC) => "06_abaa",
        "in" => "06_abab",
        "on" => "06_abac",
        "=" | "then" => "06_abad",
        "across" => "06_abae",
        "being" | "the" | "each" | "of" | "using" => "06_abaf",
        _ if is(loop_keywords::HASH_TABLES) => "06_abaf",
        _ if is(loop_keywords::PACKAGES) => "06_abag",
        "with" => "06_abb",
        "collect" | "collecting" => "06_aca",
        "append" | "appending" | "nconc" | "nconcing" => "06_acb",
        "count" | "counting" => "06_acc",
        "maximize" | "maximizing" | "minimize" | "minimizing" => "06_acd",
        "sum" | "summing" => "06_ace",
        "into" => "06_ac",
        _ if is(loop_keywords::TESTS) => "06_ad",
        "do" | "doing" | "return" => "06_ae",
        "if" | "when" | "unless" | "else" | "end" | "it" => "06_af",
        "named" => "06_aga",
        "initially" | "finally" => "06_agb",
        _ => "06_a",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_by_their_place() {
        for (source, expected) in [
            ("(loop f‸or x in y)", Some("loop keyword: 06_aba")),
            ("(loop :for x :i‸n y)", Some("loop keyword: 06_abab")),
            ("(loop for x in y coun‸t x)", Some("loop keyword: 06_acc")),
            ("(loop for coun‸t in y)", None),
            ("(loop for x in y collect coun‸t)", None),
            ("(loop (cou‸nt x y))", None),
            ("(list fo‸r)", None),
            ("(defmethod f :aro‸und (x) x)", Some("method qualifier: 07_ffb")),
            ("(defmethod f (x) (g :aro‸und))", None),
            ("(eval-when (:compile-top‸level) 1)", Some("option of eval-when: s_eval_w")),
            ("(defclass a () ((x :init‸arg :x)))", Some("option of defclass: m_defcla")),
            ("(defclass a () ((x :initform (f :ty‸pe 1))))", None),
            ("(defstruct (a (:conc-na‸me b)) x)", Some("option of defstruct: m_defstr")),
            ("(list #\\Spa‸ce)", Some("character: 13_ag")),
            ("(list #\\‸a)", None),
        ] {
            let offset = source.chars().position(|char| char == '‸').expect("a caret");
            let document = Document::new(&source.replace('‸', ""), 0);
            let found = at(&document, offset).map(|word| format!("{}: {}", word.what, word.page));
            assert_eq!(found.as_deref(), expected, "{source}");
        }
    }
}
