//! Slots whose symbol also names a function, variable or class.

use expect_test::expect;

use super::*;

#[test]
fn a_slot_is_renamed_without_what_shares_its_symbol() {
    global(
        &[(
            "a.lisp",
            "(defclass c () ((name‸ :initarg :name :initform (name 1) :type name) (other :initform 1)))
(defclass d (c) ((name :accessor d-name)))
(defclass name () ())
(defvar name 1)
(defun name (x) (list name x))
(defmethod f ((c c)) (setf (slot-value c 'name) (name c)) (with-slots (name (n name)) c (list name n #'name)))
(list 'name (make-instance 'name))
(let ((name 1)) name)",
        )],
        "title",
        Options::default(),
        expect![[r#"
            slot
            (defclass c () ((title :initarg :name :initform (?title 1) :type ?title) (other :initform 1)))
            (defclass d (c) ((title :accessor d-name)))
            (defclass ?title () ())
            (defvar ?title 1)
            (defun ?title (x) (list ?title x))
            (defmethod f ((c c)) (setf (slot-value c 'title) (?title c)) (with-slots ((name title) (n title)) c (list name n #'?title)))
            (list '?title (make-instance '?title))
            (let ((name 1)) name)
        "#]],
    );
}

#[test]
fn what_shares_the_symbol_of_a_slot_is_renamed_without_it() {
    global(
        &[(
            "a.lisp",
            "(defclass c () ((name :initform (name 1))))
(defun name‸ (x) x)
(defmethod f ((c c)) (with-slots (name (n name)) c (list (slot-value c 'name) name n (name c))))",
        )],
        "title",
        Options::default(),
        expect![[r#"
            function
            (defclass c () ((?title :initform (title 1))))
            (defun title (x) x)
            (defmethod f ((c c)) (with-slots (name (n ?title)) c (list (slot-value c '?title) name n (title c))))
        "#]],
    );
}

#[test]
fn an_accessor_of_the_same_name_goes_with_its_slot() {
    for (text, expected) in [
        (
            "(defclass c () ((name‸ :accessor name)))\n(defvar name 1)\n(defmethod f ((c c)) (setf (name c) (slot-value c 'name)) name)",
            expect![[r#"
                slot
                (defclass c () ((title :accessor title)))
                (defvar ?title 1)
                (defmethod f ((c c)) (setf (title c) (slot-value c 'title)) ?title)
            "#]],
        ),
        (
            "(defclass c () ((name :accessor name‸)))\n(defmethod f ((c c)) (setf (name c) (slot-value c 'name)))\n(defmethod (setf name) (v (c d)) 1)",
            expect![[r#"
                method
                (defclass c () ((title :accessor title)))
                (defmethod f ((c c)) (setf (title c) (slot-value c 'title)))
                (defmethod (setf title) (v (c d)) 1)
            "#]],
        ),
        (
            "(defstruct (c (:conc-name nil)) name‸)\n(defun f (c) (setf (name c) (make-c :name name)))\n(defvar name 1)",
            expect![[r#"
                slot
                (defstruct (c (:conc-name nil)) title)
                (defun f (c) (setf (title c) (make-c :title ?title)))
                (defvar ?title 1)
            "#]],
        ),
    ] {
        global(&[("a.lisp", text)], "title", Options::default(), expected);
    }
}

#[test]
fn a_name_in_a_users_definition_may_be_a_slot_a_type_or_code() {
    for (text, expected) in [
        (
            "(defclass c () ((name‸ :accessor name)))
(deftype name () 'string)
(define-thing point (name x) ((name y)) (size (name c)))
(defun/inline f (c) (name c))",
            expect![[r#"
                slot
                (defclass c () ((title :accessor title)))
                (deftype ?title () 'string)
                (define-thing point (?title x) ((?title y)) (size (title c)))
                (defun/inline f (c) (title c))
            "#]],
        ),
        (
            "(defclass c () ((name)))
(defun name‸ (x) x)
(defvar name 1)
(define-thing point name (name x) (size (name name)))",
            expect![[r#"
                function
                (defclass c () ((?title)))
                (defun title (x) x)
                (defvar title 1)
                (define-thing point ?title (?title x) (size (title title)))
            "#]],
        ),
        // Nothing keeps the name.
        (
            "(defclass c () ((name‸ :accessor name)))\n(define-handler h (c) (name c))",
            expect![[r#"
                slot
                (defclass c () ((title :accessor title)))
                (define-handler h (c) (title c))
            "#]],
        ),
    ] {
        global(&[("a.lisp", text)], "title", Options::default(), expected);
    }
}

#[test]
fn package_definitions_name_both_symbols() {
    let texts = |user: &'static str| {
        [
            ("a.lisp", "(in-package :pa)\n(defclass c () ((name‸ :initarg :name)))\n(defun name (x) x)"),
            ("b.lisp", user),
            ("p.lisp", "(defpackage :pa (:use :cl) (:export #:name))\n(defpackage :pb (:use :cl :pa))"),
        ]
    };
    global(
        &texts("(in-package :pb)\n(name 1)"),
        "title",
        Options::default(),
        expect![[r#"
        slot
        (in-package :pa)
        (defclass c () ((title :initarg :name)))
        (defun ?title (x) x)
        (in-package :pb)
        (?title 1)
        (defpackage :pa (:use :cl) (:export ?#:name #:title))
        (defpackage :pb (:use :cl :pa))
    "#]],
    );
    global(
        &texts("(in-package :pb)\n(list (name 1) (slot-value c 'name))"),
        "title",
        Options::default(),
        expect![[r#"
            slot
            (in-package :pa)
            (defclass c () ((title :initarg :name)))
            (defun ?title (x) x)
            (in-package :pb)
            (list (?title 1) (slot-value c 'title))
            (defpackage :pa (:use :cl) (:export #:name #:title))
            (defpackage :pb (:use :cl :pa))
        "#]],
    );
}

#[test]
fn a_slot_can_be_called_as_a_function_is_but_not_as_another_slot_of_its_class() {
    let text = "(defclass c () ((name‸)))\n(defclass d (c) ((size)))\n(defclass e () ((width)))\n(defun width () 1)";
    for (new, expected) in [("width", "slot: "), ("size", "refused: d has a slot size already")] {
        let found = renamed(text, new, &FixedExpander(None));
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn a_slot_that_only_a_users_macro_makes_is_refused_with_the_reason() {
    for text in
        ["(define-model user (name‸))", "(define-model user () ((name‸ :type string)))", "(define-model user name‸)"]
    {
        let found = renamed(text, "title", &FixedExpander(None));
        assert!(found.starts_with("refused: name is an argument of define-model, a macro that may make"), "{found}");
    }
    let found = renamed("(define-model user () (list name‸))", "title", &FixedExpander(None));
    assert!(found.starts_with("refused: name is neither a local name nor defined"), "{found}");
}
