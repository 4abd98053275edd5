//! Tests of renaming back, by which a renamed name gets its old name again.

use serde_json::json;

use super::*;
use crate::ide::fake::definition;

#[test]
fn renaming_back_gives_the_same_text() {
    for (text, new, old) in [
        ("(defun f (x‸) (list x |X| X))", "width", "x"),
        (
            "(defclass c () ((na‸me)))\n(defun f (th size name) (with-slots (size name) th (list size name)))",
            "label",
            "name",
        ),
        (
            "(defclass c () ((na‸me)))\n(defun f (th) (with-slots ((size name) (tag name)) th (list size tag)))",
            "label",
            "name",
        ),
        ("(defstruct pt x‸)\n(list (pt-x p) #S(pt :X 1) (make-pt :|X| 1))", "y", "x"),
    ] {
        let there = renamed(text, new, &FixedExpander(None));
        let (_, there) = there.split_once(": ").unwrap();
        let at = text.chars().position(|char| char == '‸').unwrap();
        let start = text.chars().collect::<Vec<_>>()[..at].iter().rposition(|char| " (".contains(*char)).unwrap() + 1;
        let mut marked: Vec<char> = there.trim_end_matches('\n').chars().collect();
        marked.insert(start + 1, '‸');
        let back = renamed(&marked.into_iter().collect::<String>(), old, &FixedExpander(None));
        assert_eq!(back.split_once(": ").unwrap().1.trim_end_matches('\n'), text.replace('‸', ""), "{there}");
    }
}

#[test]
fn a_name_that_only_the_image_has_left_is_free() {
    let facts = json!({"name": "HELPER", "package": "COMMON-LISP-USER", "external": false, "printed": "HELPER",
        "kinds": ["function", "compiler macro"], "documentation": []});
    let renamed = |file: &str, text: &str| {
        let answer = json!({"found": true, "facts": facts, "definitions": [definition("function", "helper", file, 0)]});
        let cursor = cursor(FakeImage::empty().symbol("helper", answer), &[("a.lisp", text)]);
        match run(rename(&cursor, "helper", &FixedExpander(None), Options::default())) {
            Ok(renaming) => applied(&renaming),
            Err(refusal) => format!("refused: {refusal}\n"),
        }
    };
    assert_eq!(
        renamed("a.lisp", "(defun hlp‸ (x) \"As HELPER.\" x)\n(print '(helper (hlp 1)))"),
        "(defun helper (x) \"As HELPER.\" x)\n(print '(helper (?helper 1)))\n"
    );
    let refused = "refused: helper is already defined in the image as function, compiler macro.\n";
    // A macro may have made the name of another one, in the form that defined it.
    assert_eq!(renamed("a.lisp", "(defslots help)\n(defun hlp‸ (x) x)"), refused);
    assert_eq!(renamed("a.lisp", "(defun hlp‸ (x) x)\n(defslots help)"), "(defun helper (x) x)\n(defslots help)\n");
    // An edit has moved that form.
    assert_eq!(renamed("a.lisp", "(print 1)\n(defun hlp‸ (x) x)\n(defslots help)"), refused);
    // Defined in another file, and still called.
    assert_eq!(renamed("other.lisp", "(defun hlp‸ (x) x)"), refused);
    assert_eq!(renamed("a.lisp", "(defun hlp‸ (x) (helper x))"), refused);
    assert_eq!(renamed("a.lisp", "(defun hlp‸ (x) x)\n(use-it #'helper)"), refused);
}

#[test]
fn a_package_that_only_the_image_has_left_is_free() {
    let packages = json!([{"name": "OLD", "nicknames": ["OLDER"], "digest": "1", "symbols": []},
        {"name": "A", "nicknames": ["AA"], "digest": "1", "symbols": []}]);
    let renamed = |file: &str, new: &str| {
        let answer = json!({"found": true, "definitions": [definition("package", "OLD", file, 0)]});
        let image = FakeImage::empty().index(packages.clone()).symbol("old", answer);
        let cursor = cursor(image, &[("a.lisp", "(defpackage :a‸ (:use :cl))")]);
        match run(rename(&cursor, new, &FixedExpander(None), Options::default())) {
            Ok(renaming) => applied(&renaming),
            Err(refusal) => format!("refused: {refusal}\n"),
        }
    };
    assert_eq!(renamed("a.lisp", "old"), "(defpackage :old (:use :cl))\n");
    assert_eq!(renamed("other.lisp", "old"), "refused: The image has a package old already.\n");
    assert_eq!(renamed("a.lisp", "older"), "refused: The image has a package older already.\n");
    assert_eq!(renamed("a.lisp", "aa"), "(defpackage :aa (:use :cl))\n");
}

#[test]
fn the_name_of_another_slot_is_not_free() {
    let found = super::renamed("(defstruct pt x‸ y)\n(defun f (x) x)", "y", &FixedExpander(None));
    assert!(found.contains("pt has a slot y already: /no/a.lisp, line 1"), "{found}");
}

#[test]
fn a_shadowing_symbol_gets_its_name_back() {
    let package = "(defpackage :a (:use :cl :b) (:shadow #:zz))\n(defpackage :b (:export #:far))\n(in-package :a)\n";
    for new in ["search", "far"] {
        let found = renamed(&format!("{package}(defun zz‸ (x) x)"), new, &FixedExpander(None));
        let expected = format!("{package}(defun zz (x) x)").replace("zz", new);
        assert_eq!(found, format!("function: {expected}\n"));
    }
}

#[test]
fn a_macro_may_be_called_otherwise_than_with() {
    let text = "(defmacro with-it ((x) &body body) `(f ,x ,@body))\n(defun g (*y* h) (with-it (*y*) (list *y* h)))";
    for (old, new) in [("with-it", "call-it"), ("call-it", "with-it"), ("with-it", "when-let"), ("once-only", "it")] {
        let text = text.replace("with-it", old);
        let found = renamed(&text.replacen(old, &format!("{old}‸"), 1), new, &FixedExpander(None));
        assert_eq!(found, format!("macro: {}\n", text.replace(old, new)));
    }
    let caught = "(defmacro with-it‸ ((x) &body body) `(f ,x ,@body))\n(flet ((call-it (x) x)) (with-it (y) y))";
    assert!(renamed(caught, "call-it", &FixedExpander(None)).contains("caught by a local binding"));
}
