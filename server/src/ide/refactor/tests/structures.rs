//! Tests of structures that are converted to classes.

use expect_test::expect;

use super::*;

#[test]
fn a_structure_is_made_a_class_with_its_functions() {
    check(
        "(in-package :a)\n(defstruct po‸int\n  \"A place.\"\n  x ; across\n  (y 1 :type fixnum :read-only t)) ; a point\n(defun f (p)\n  (and (point-p p) (copy-point p)))",
        "structure-to-class",
        expect![[r#"
            Make point a class
            (in-package :a)
            (defclass point ()
              ((x :initarg :x :initform nil :accessor point-x) ; across
               (y :initarg :y :initform 1 :type fixnum :reader point-y))
              (:documentation "A place.")) ; a point

            (defun make-point (&rest initargs &key x y)
              (declare (ignore x y))
              (apply #'make-instance 'point initargs))

            (defun point-p (object)
              (typep object 'point))

            (defun copy-point (object)
              (make-instance 'point
                             :x (point-x object)
                             :y (point-y object)))
            (defun f (p)
              (and (point-p p) (copy-point p)))
        "#]],
    );
    check(
        "(DEFSTRUCT (A‸ (:CONC-NAME NIL) (:COPIER NIL) (:PREDICATE A?) (:CONSTRUCTOR NEW-A (X &OPTIONAL Y &KEY (Z 3))) (:CONSTRUCTOR) (:PRINT-OBJECT SHOW)) X (Y :NONE) Z)",
        "structure-to-class",
        expect![[r#"
            Make A a class
            (DEFCLASS A ()
              ((X :INITARG :X :INITFORM NIL :ACCESSOR X)
               (Y :INITARG :Y :INITFORM :NONE :ACCESSOR Y)
               (Z :INITARG :Z :INITFORM NIL :ACCESSOR Z)))

            (DEFUN NEW-A (X &OPTIONAL (Y :NONE) &KEY (Z 3))
              (MAKE-INSTANCE 'A :X X :Y Y :Z Z))

            (DEFUN MAKE-A (&REST INITARGS &KEY X Y Z)
              (DECLARE (IGNORE X Y Z))
              (APPLY #'MAKE-INSTANCE 'A INITARGS))

            (DEFUN A? (OBJECT)
              (TYPEP OBJECT 'A))

            (DEFMETHOD PRINT-OBJECT ((OBJECT A) STREAM)
              (FUNCALL #'SHOW OBJECT STREAM))
        "#]],
    );
    check(
        "(defstruct ‸a)",
        "structure-to-class",
        expect![[r#"
        Make a a class
        (defclass a ()
          ())

        (defun make-a ()
          (make-instance 'a))
    "#]],
    );
}

#[test]
fn the_default_constructor_beside_another_is_kept() {
    check(
        "(defstruct (‸a :constructor (:constructor new (x))) x)",
        "structure-to-class",
        expect![[r#"
            Make a a class
            (defclass a ()
              ((x :initarg :x :initform nil :accessor a-x)))

            (defun make-a (&rest initargs &key x)
              (declare (ignore x))
              (apply #'make-instance 'a initargs))

            (defun new (x)
              (make-instance 'a :x x))
        "#]],
    );
}

#[test]
fn the_functions_of_a_loaded_structure_are_defined_anew() {
    let text = [("a.lisp", "(defstruct ‸pt x)\n(defun f (p) (pt-p p))")];
    let with = |all| refactored_with(&text, "structure-to-class", &FakeCompiler(Some(all)));
    let done = with(&[
        ("defclass", "redefinition of APP::MAKE-PT clobbers structure constructor"),
        ("defclass", "redefinition of PT-P clobbers structure predicate"),
        ("defclass", "redefinition of PT-X clobbers structure accessor"),
    ]);
    assert!(!done.contains("refused"), "{done}");
    let other = with(&[("defclass", "redefinition of MAKE-OTHER clobbers structure constructor")]);
    assert!(other.contains("refused: the result would not compile as before: redefinition of MAKE-OTHER"), "{other}");
}

#[test]
fn a_structure_that_a_class_cannot_stand_for_is_refused() {
    for (text, why) in [
        ("(defstruct (‸a (:include b)) x)", "it includes b"),
        ("(defstruct (‸a (:type list)) x)", "nothing like the option :type"),
        ("(defstruct (‸a :named) x)", "nothing like the option :named"),
        ("(defstruct ‸a x)\n(defstruct (b (:include a)) y)", "the structure b includes it"),
        ("(defstruct ‸a x)\n(defvar *a* #S(A :x 1))", "a structure's syntax"),
        ("(defstruct ‸a x)\n(defvar *a* #s( app::a :x 1))", "a structure's syntax"),
        ("(defstruct ‸a x)\n(read-from-string \"#S(a)\")", "a structure's syntax"),
        ("(defstruct ‸a pi)", "pi is a special variable"),
        ("(defstruct ‸a (x #+sbcl 1))", "not understood here"),
        ("(defstruct ‸a (x 1 :initarg 2))", "options that are not a structure's"),
        ("(defstruct (‸a (:constructor new (&optional x))) (x (f)))", "gives x the value (f)"),
        ("(defstruct (‸a (:constructor new (y &optional x))) (x y) y)", "gives x the value y"),
        ("(defstruct (‸a (:constructor new (x &aux (y 1)))) x y)", "has &aux"),
        ("(defstruct (‸a (:conc-name \"x\")) x)", "lower-case letters"),
        ("(defstruct ‸a x #| not to lose |# (y ; why\n 1 :read-only ; this\n t))", "the comment ; this would be lost"),
        ("(defclass ‸a () (x))", "not offered"),
        ("(defstruct ‸|a| x)", "not offered"),
    ] {
        let found = refactored(&[("a.lisp", text)], "structure-to-class");
        assert!(found.contains(why), "{text}: {found}");
    }
}

#[test]
fn a_literal_in_a_closed_file_keeps_a_structure() {
    let of = |text: &str| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("user.lisp");
        std::fs::write(&path, text).unwrap();
        let image = FakeImage::absent().closed_file(&path, text);
        let cursor = Cursor::new(context(image, &[("a.lisp", "(defstruct pt x)")]), "file:///no/a.lisp", |_| 11);
        let compiler = FakeCompiler(Some(&[]));
        run(apply(&cursor.unwrap(), Span { start: 11, end: 11 }, "structure-to-class", &compiler)).map_err(|why| why.0)
    };
    assert!(of("(defvar *p* #S(ptt :x 1)) (list 'pt)").is_ok());
    assert!(of("(defvar *p* #S(pt :x 1))").unwrap_err().contains("a structure's syntax"));
}
