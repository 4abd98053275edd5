//! Tests of functions of classes, and of generic functions of methods.

use expect_test::expect;

use super::*;

const POINT: &str = "(in-package :a)\n(defclass po‸int ()\n  ((x :initarg :x :initform 0)\n   name\n   (y :initarg :y :reader y-of))) ; a point\n(f)";

#[test]
fn classes_get_their_functions() {
    check(
        POINT,
        "define-print-object",
        expect![[r#"
        Define print-object for point
        (in-package :a)
        (defclass point ()
          ((x :initarg :x :initform 0)
           name
           (y :initarg :y :reader y-of))) ; a point

        (defmethod print-object ((object point) stream)
          (print-unreadable-object (object stream :type t :identity t)
            (when (slot-boundp object 'name)
              (prin1 (slot-value object 'name) stream))))
        (f)
    "#]],
    );
    check(
        POINT,
        "define-constructor",
        expect![[r#"
        Define the constructor make-point
        (in-package :a)
        (defclass point ()
          ((x :initarg :x :initform 0)
           name
           (y :initarg :y :reader y-of))) ; a point

        (defun make-point (&rest initargs &key x y &allow-other-keys)
          (declare (ignore x y))
          (apply #'make-instance 'point initargs))
        (f)
    "#]],
    );
    check(
        POINT,
        "define-accessors",
        expect![[r#"
        Give the slots without one an accessor
        (in-package :a)
        (defclass point ()
          ((x :accessor point-x :initarg :x :initform 0)
           (name :accessor point-name)
           (y :initarg :y :reader y-of))) ; a point
        (f)
    "#]],
    );
    check(
        "(defclass a ()\n  ((x :initarg :x)\n   (‸y)))",
        "define-accessors",
        expect![[r#"
        Give the slot y an accessor
        (defclass a ()
          ((x :initarg :x)
           (y :accessor a-y)))
    "#]],
    );
    check(
        "(defclass a ()\n  (x ‸y z))",
        "define-accessors",
        expect![[r#"
        Give the slot y an accessor
        (defclass a ()
          (x (y :accessor a-y) z))
    "#]],
    );
    check(
        "(DEFCLASS P:A (B) ())‸",
        "define-print-object",
        expect![[r#"
        Define print-object for P:A
        (DEFCLASS P:A (B) ())

        (DEFMETHOD PRINT-OBJECT ((OBJECT P:A) STREAM)
          (PRINT-UNREADABLE-OBJECT (OBJECT STREAM :TYPE T :IDENTITY T)))
    "#]],
    );
}

#[test]
fn structures_are_printed_by_their_accessors() {
    check(
        "(defstruct ‸point \"Words.\" (x 0) y)",
        "define-print-object",
        expect![[r#"
        Define print-object for point
        (defstruct point "Words." (x 0) y)

        (defmethod print-object ((object point) stream)
          (print-unreadable-object (object stream :type t :identity t)
            (prin1 (point-x object) stream)))
    "#]],
    );
    check(
        "(defstruct (‸point (:conc-name p/) (:include thing)) id y)",
        "define-print-object",
        expect![[r#"
        Define print-object for point
        (defstruct (point (:conc-name p/) (:include thing)) id y)

        (defmethod print-object ((object point) stream)
          (print-unreadable-object (object stream :type t :identity t)
            (prin1 (p/id object) stream)))
    "#]],
    );
    check(
        "(defstruct (‸point :conc-name))",
        "define-print-object",
        expect![[r#"
        Define print-object for point
        (defstruct (point :conc-name))

        (defmethod print-object ((object point) stream)
          (print-unreadable-object (object stream :type t :identity t)))
    "#]],
    );
    let not = |text: &str| assert!(refactored(&[("a.lisp", text)], "define-print-object").starts_with("not offered"));
    not("(defstruct (poi‸nt (:type list)) x)");
    not("(defstruct (poi‸nt (:print-function f)) x)");
    not("(defstruct poi‸nt x)\n(defmethod print-object ((p point) stream) 1)");
}

#[test]
fn functions_of_a_class_that_cannot_be_are_refused() {
    for (text, id, why) in [
        ("(defclass ‸a () (x))\n(defun make-a () 1)", "define-constructor", "not offered"),
        ("(defclass ‸a () (x))", "define-constructor", "no slot has an initialization argument"),
        ("(defclass ‸a () ((x :initarg :pi)))", "define-constructor", "pi is a special variable or a constant"),
        ("(defclass ‸a () ((x :initarg :v)))\n(defvar v)", "define-constructor", "v is a special variable"),
        ("(defclass ‸a () (x))\n(defun a-x (a) a)", "define-accessors", "a-x is defined already"),
        ("(defclass ‸a () ((x :accessor x)))", "define-accessors", "not offered"),
        ("(defclass ‸a () (#+sbcl x))", "define-accessors", "not offered"),
        ("(defclass ‸|a| () (x))", "define-print-object", "not offered"),
    ] {
        let found = refactored(&[("a.lisp", text)], id);
        assert!(found.contains(why), "{text}: {found}");
    }
}

#[test]
fn a_generic_function_agrees_with_all_methods() {
    let package = "(defpackage :a (:use :cl))\n(in-package :a)\n";
    let check = |text: &str, expected| check(&format!("{package}{text}"), "define-generic", expected);
    check(
        "(defmethod dr‸aw :around ((s shape) (n (eql 1)) color &optional (x 1) &rest all &key (k 1) &allow-other-keys &aux (b 1))\n  (list s))",
        expect![[r#"
            Define the generic function draw
            (defpackage :a (:use :cl))
            (in-package :a)
            (defgeneric draw (s n color &optional x &rest all &key &allow-other-keys))

            (defmethod draw :around ((s shape) (n (eql 1)) color &optional (x 1) &rest all &key (k 1) &allow-other-keys &aux (b 1))
              (list s))
        "#]],
    );
    check(
        "(defmethod (setf ‸size) (new (s shape)) new)",
        expect![[r#"
        Define the generic function (setf size)
        (defpackage :a (:use :cl))
        (in-package :a)
        (defgeneric (setf size) (new s))

        (defmethod (setf size) (new (s shape)) new)
    "#]],
    );
    check(
        "(defmethod f‸ (#+sbcl a b) b)",
        expect![[r#"
        Define the generic function f
        refused: a parameter is read only with some features (#+, #-), or has a prefix
    "#]],
    );
    let compiler = FakeCompiler(Some(&[("defgeneric", "&OPTIONAL and &KEY found in the same lambda list: (A)")]));
    let with = |parameters: &str| {
        let text = format!("{package}(defmethod f‸ ({parameters}) a)");
        refactored_with(&[("a.lisp", &text)], "define-generic", &compiler)
    };
    assert!(with("a &optional b &key c").contains("(defgeneric f (a &optional b &key))"));
    assert!(with("a &key c").contains("refused: "));
    let refused = |text: &str, why: &str| {
        let found = refactored(&[("a.lisp", text)], "define-generic");
        assert!(found.contains(why), "{text}: {found}");
    };
    refused("(defmethod f‸ (a) 1)", "no in-package form is before it");
    refused("(in-package :b)\n(defmethod f‸ (a) 1)", "no file defines the package B");
    refused("(defpackage :b (:use :cl :lib))\n(in-package :b)\n(defmethod f‸ (a) 1)", "f may be a symbol of LIB");
    refused(
        "(defpackage :b (:use :cl) (:import-from :lib :f))\n(in-package :b)\n(defmethod f‸ (a) 1)",
        "f is a symbol of LIB",
    );
    for text in [
        "(defgeneric f (a))\n(defmethod f‸ (a) 1)",
        "(defmethod print-object‸ (a b) 1)",
        "(defmethod lib:f‸ (a b) 1)",
        "(defmethod f‸ + (a b) 1)",
        "(defmethod f (a b) (g‸))",
    ] {
        refused(&format!("{package}{text}"), "not offered");
    }
}
