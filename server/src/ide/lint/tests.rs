//! Tests of the rules, each with texts in which it has findings and texts in which it has none.

mod own;
mod workspace;

use super::*;

/// Returns each finding as its line, rule and marked text.
fn found(text: &str, rules: &[&str]) -> Vec<String> {
    among(&[("/no/a.lisp", text)], &wanted(rules))
}

fn wanted(rules: &[&str]) -> EnabledRules {
    EnabledRules { names: rules.iter().map(|rule| (*rule).to_owned()).collect(), own: Vec::new() }
}

/// Returns the findings in the first of some files.
fn among(files: &[(&str, &str)], wanted: &EnabledRules) -> Vec<String> {
    let (path, text) = files[0];
    let document = Document::new(text, 0);
    let shown = |one: Diagnostic| {
        let line = document.text().char_to_line(one.span.start) + 1;
        format!("{line} {} {}", one.code, document.text().slice(one.span.start..one.span.end))
    };
    check(&document, Some(Path::new(path)), wanted, &snapshot(files)).into_iter().map(shown).collect()
}

#[test]
fn each_rule_tells_of_what_it_is_about_and_of_nothing_else() {
    let text = r#"(defun f (x)
  "Documented."
  (when (eq x 1) (eq #\a x) (eq x "s") (eq x 'a) (eq x y) (eql x 1))
  "lost"
  (if x t nil) (if x nil t) (if x t) (if x t 1)
  (when (not x) (g)) (unless (not x) (g)) (when (null x) (g))
  "value")
(defun g (x) (declare (ignore x)) "Documented." 1)
'(eq x 1)
(defmacro m () (list (eq x 1)))
(define-it (eq x 1))
(flet ((eq (a b) a b)) (eq x 1))
(case x ((eq y 1) 2))
(lambda () "value")
(let () "lost" (list #'(lambda (x) (eq x 2.0))))
"#;
    assert_eq!(
        found(text, &["all"]),
        [
            "3 lint-eq-literal eq",
            "3 lint-eq-literal eq",
            "3 lint-eq-literal eq",
            "4 lint-unused-string \"lost\"",
            "5 lint-boolean-if if",
            "5 lint-boolean-if if",
            "6 lint-negated-when when",
            "6 lint-negated-when unless",
            "10 lint-eq-literal eq",
            "13 lint-missing-otherwise case",
            "15 lint-unused-string \"lost\"",
            "15 lint-eq-literal eq",
        ]
    );
    assert_eq!(found(text, &[]), Vec::<String>::new());
    assert_eq!(found(text, &["all", "-eq-literal", "-unused-string", "-negated-when", "-missing-otherwise"]).len(), 2);
}

fn snapshot(files: &[(&str, &str)]) -> Snapshot {
    let open = files.iter().map(|(path, text)| crate::ide::texts::OpenText {
        uri: format!("file://{path}"),
        own: true,
        path: Some((*path).into()),
        document: Document::new(text, 0),
    });
    Snapshot::of_texts(&open.collect::<Vec<_>>())
}

#[test]
fn names_that_a_package_shadows_are_not_the_standards() {
    let text = "(in-package :a)\n(defun f (x) (if x t nil) (eq x 1) (when (not x) (g)))";
    let rules = wanted(&["all", "-unused-definition"]);
    let codes = |package: &str, text: &str| -> Vec<String> {
        let index = snapshot(&[("/no/package.lisp", package), ("/no/a.lisp", text)]);
        let found = check(&Document::new(text, 0), Some(Path::new("/no/a.lisp")), &rules, &index);
        found.into_iter().map(|one| one.code).collect()
    };
    let all = ["lint-boolean-if", "lint-eq-literal", "lint-negated-when"];
    assert_eq!(codes("(defpackage :a (:use :cl))", text), all);
    assert_eq!(codes("(defpackage :a (:use :cl) (:shadow #:if))", text), all[1..]);
    assert_eq!(codes("(defpackage :a (:use :cl) (:shadow #:not))", text), all[..2]);
    assert_eq!(codes("(defpackage :a (:use :cl) (:shadowing-import-from :b #:eq #:when))", text), all[..1]);
    assert_eq!(codes("(defpackage :a (:use :cl) (:import-from :cl #:if))", text), all);
    assert_eq!(codes("(defpackage :a (:use :b))", text).len(), 0);
    assert_eq!(codes("(defpackage :a (:use :cl) (:shadow #:defun))", text).len(), 0);
    // The texts have a macro of another file, a prefix, a changed readtable, labels, data, or a
    // reader conditional.
    let quotes = "(defpackage :a (:use :cl))\n(in-package :a)\n(defmacro data (x) `',x)";
    for text in [
        "(in-package :a)\n(data (if x t nil))",
        "(in-package :a)\n(b:if x t nil)",
        "(in-package :a)\n(in-readtable :b)\n(if x t nil)",
        "(in-package :a)\n(if #1=x t nil)",
        "(in-package :a)\n`(if ,x t nil)",
        "(in-package :a)\n(when (not #+a x) 1)",
    ] {
        assert_eq!(codes(quotes, text).len(), 0, "{text}");
    }
}

#[test]
fn clauses_of_case_are_looked_into() {
    let text = r#"(defun f (x)
  (case x ('a 1) ('(b c) 2) ((d) 3) (t 4))
  (ecase x (nil 1) ((nil) 2) ('a 3))
  (case x (a 1))
  (typecase x (nil 1) (symbol 2))
  (etypecase x (symbol 2))
  (case x (a 1) (otherwise 2))
  (case x)
  (case x (a 1) #+sbcl (t 2))
  '(case x ('a 1))
  (case x (T 1)))
"#;
    assert_eq!(
        found(text, &["quoted-key", "nil-key", "missing-otherwise"]),
        [
            "2 lint-quoted-key 'a",
            "2 lint-quoted-key '(b c)",
            "3 lint-nil-key nil",
            "3 lint-quoted-key 'a",
            "4 lint-missing-otherwise case",
            "5 lint-missing-otherwise typecase",
        ]
    );
}

#[test]
fn code_within_definitions_is_looked_into() {
    let text = r#"(defmacro m (x &optional (y (eq x 1))) (if x t nil) `(f ,(eq y 1) (eq y 1) ,@(list (eq y 1))))
(defclass c () ((a :initform (eq x 1)) (b :type (eq x 1))))
(defstruct s (a (eq x 1)) b)
(defun f (a &key (b (eq a 1)) &aux (c (eq a 1))) (macrolet ((m (x) (eq x 1))) (m b)))
(defmethod g ((a (eql 1)) &optional (b (eq a 1))) (flet ((h (&key (x (eq a 1))) x)) (h)))
'(defmacro m (x) (eq x 1))
`(f `(g ,(eq x 1)))
(list '(f ,(eq x 1)))
(unless (null x) (g)) (when (null x) (g))
"#;
    assert_eq!(
        found(text, &["eq-literal", "boolean-if", "negated-when"]),
        [
            "1 lint-eq-literal eq",
            "1 lint-boolean-if if",
            "1 lint-eq-literal eq",
            "1 lint-eq-literal eq",
            "2 lint-eq-literal eq",
            "3 lint-eq-literal eq",
            "4 lint-eq-literal eq",
            "4 lint-eq-literal eq",
            "4 lint-eq-literal eq",
            "5 lint-eq-literal eq",
            "5 lint-eq-literal eq",
            "9 lint-negated-when unless",
        ]
    );
}

#[test]
fn comments_silence_rules() {
    let text = "(defun f (x)\n  (eq x 1) ; consort: ignore\n  ;; consort: ignore boolean-if\n  (eq x 2)\n\n  (eq x 3) ; consort: ignore eq-literal, boolean-if\n  x)";
    assert_eq!(found(text, &["all"]), ["4 lint-eq-literal eq"]);
}

#[test]
fn strings_that_are_no_documentation_are_told() {
    let text = r#"(defun f (x)
  (declare (ignore x))
  (g)
  "after"
  "again"
  1)
(defun g () "value")
(defun h () "doc" "twice" 1)
(defmacro m (x) (f) "after" x)
(defmethod n :before ((x t)) (f) "after" x)
(flet ((f () (g) "after" 1)
       (g () "doc" 1))
  "lost"
  (f))
(lambda () (f) "lost" 1)
(defmacro m () `(defun f () (g) "data" 1))
"#;
    assert_eq!(
        found(text, &["misplaced-docstring", "unused-string"]),
        [
            "4 lint-misplaced-docstring \"after\"",
            "5 lint-unused-string \"again\"",
            "8 lint-unused-string \"twice\"",
            "9 lint-misplaced-docstring \"after\"",
            "10 lint-misplaced-docstring \"after\"",
            "11 lint-misplaced-docstring \"after\"",
            "13 lint-unused-string \"lost\"",
            "15 lint-unused-string \"lost\"",
        ]
    );
}
