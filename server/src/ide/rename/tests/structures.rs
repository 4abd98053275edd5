//! Tests of the renaming of slots of structures, and of the names derived from them.

use expect_test::expect;

use super::*;

#[test]
fn a_slot_is_renamed_with_its_accessors_and_keywords() {
    global(
        &[
            (
                "a.lisp",
                "(in-package :ga)\n(defstruct (shape (:conc-name sh-) (:constructor make-shape (w &optional h)) (:constructor shape* (a &key w ((:h h)) (u w)))) w‸ (h 2) u)
(defun f (s) (setf (sh-w s) (sh-h s)) (mapcar #'sh-w (list (make-shape :w 1) (shape* :w :w :w :h :w))) (slot-value s 'w))",
            ),
            ("b.lisp", "(in-package :gb)\n(ga::sh-w (ga::shape* 1 :w 2)) (sh-w s)"),
            ("p.lisp", "(defpackage :ga (:use :cl) (:export #:sh-w))\n(defpackage :gb (:use :cl))"),
        ],
        "width",
        Options::default(),
        expect![[r#"
            slot
            (in-package :ga)
            (defstruct (shape (:conc-name sh-) (:constructor make-shape (width &optional h)) (:constructor shape* (a &key width ((:h h)) (u width)))) width (h 2) u)
            (defun f (s) (setf (sh-width s) (sh-h s)) (mapcar #'sh-width (list (make-shape :w 1) (shape* :w :width :w :h :w))) (slot-value s 'width))
            (in-package :gb)
            (ga::sh-width (ga::shape* 1 :width 2)) (sh-w s)
            (defpackage :ga (:use :cl) (:export #:sh-width))
            (defpackage :gb (:use :cl))
        "#]],
    );
    global(
        &[(
            "a.lisp",
            "(defstruct pt (x‸ 0) y)\n(defstruct (pt3 (:include pt (x 1))) z)\n(defstruct (pt4 (:include pt3) (:conc-name q) (:constructor)))\n(defstruct other x)
(list (make-pt :x 1 :y :x) (make-pt3 :X 1) (make-pt4 :x 1) (pt-x a) (pt3-x b) (qx c) (other-x (make-other :x 1)) (make-px :x 1))
(list #S(pt :x 1 :y 2) '(pt :x 1) '(make-pt :x 1) (apply #'make-pt :x 1 more) (funcall 'make-pt :y 1 :x 2))
(defmacro pt-at (x &rest more) `(make-pt ,@more :x ,x))
(flet ((make-pt (&key x) x)) (make-pt :x 1))",
        )],
        "xx",
        Options::default(),
        expect![[r#"
            slot
            (defstruct pt (xx 0) y)
            (defstruct (pt3 (:include pt (xx 1))) z)
            (defstruct (pt4 (:include pt3) (:conc-name q) (:constructor)))
            (defstruct other xx)
            (list (make-pt :xx 1 :y :x) (make-pt3 :XX 1) (make-pt4 :xx 1) (pt-xx a) (pt3-xx b) (qxx c) (other-xx (make-other :xx 1)) (make-px :x 1))
            (list #S(pt :xx 1 :y 2) '(pt :x 1) '(make-pt ?:xx 1) (apply #'make-pt :xx 1 more) (funcall 'make-pt :y 1 :xx 2))
            (defmacro pt-at (x &rest more) `(make-pt ,@more :xx ,x))
            (flet ((make-pt (&key x) x)) (make-pt :x 1))
        "#]],
    );
    // The accessor is the slot's own symbol.
    global(
        &[(
            "a.lisp",
            "(defstruct (pt (:conc-name nil)) x‸)\n(defun f (p) (list (x p) (mapcar #'x p) (make-pt :x (x p))))",
        )],
        "xx",
        Options::default(),
        expect![[r#"
            slot
            (defstruct (pt (:conc-name nil)) xx)
            (defun f (p) (list (xx p) (mapcar #'xx p) (make-pt :xx (xx p))))
        "#]],
    );
}

#[test]
fn a_structure_is_renamed_with_inherited_accessors() {
    global(
        &[(
            "a.lisp",
            "(defstruct pt x)\n(defstruct (pt3‸ (:include pt) (:copier nil) :constructor) z)\n(defstruct (pt4 (:include pt3)) z)\n(list (make-pt3 :x 1) (pt3-x b) (pt3-z b) (copy-pt3 b) (pt4-x c) #S(pt3 :x 1))",
        )],
        "pd",
        Options::default(),
        expect![[r#"
            structure
            (defstruct pt x)
            (defstruct (pd (:include pt) (:copier nil) :constructor) z)
            (defstruct (pt4 (:include pd)) z)
            (list (make-pd :x 1) (pd-x b) (pd-z b) (copy-pt3 b) (pt4-x c) #S(pd :x 1))
        "#]],
    );
    // The names in an option stay, but can be renamed themselves.
    global(
        &[("a.lisp", "(defstruct (pt (:predicate is-pt‸) (:constructor new-pt (x))) x)\n(is-pt (new-pt 1))")],
        "pt?",
        Options::default(),
        expect![[r#"
            function
            (defstruct (pt (:predicate pt?) (:constructor new-pt (x))) x)
            (pt? (new-pt 1))
        "#]],
    );
}

#[test]
fn an_accessor_is_renamed_with_its_slot() {
    let text = |accessor: &str| {
        format!("(defstruct pt x y)\n(defstruct (pt3 (:include pt)) z)\n(list ({accessor} p) (pt3-x q) (make-pt :x 1))")
    };
    let renamed = |accessor: &str, new| super::renamed(&text(accessor), new, &FixedExpander(None));
    assert_eq!(
        renamed("pt-x‸", "pt-left"),
        "slot: (defstruct pt left y)\n(defstruct (pt3 (:include pt)) z)\n(list (pt-left p) (pt3-left q) (make-pt :left 1))\n"
    );
    let inherited = text("pt-x").replace("pt3-x", "pt3-x‸");
    assert_eq!(
        super::renamed(&inherited, "pt3-left", &FixedExpander(None)),
        "slot: (defstruct pt left y)\n(defstruct (pt3 (:include pt)) z)\n(list (pt-left p) (pt3-left q) (make-pt :left 1))\n"
    );
    assert_eq!(
        renamed("pt-x‸", "left"),
        "refused: pt-x gets its name from the slot x of the structure pt: a new name begins with pt-.\n"
    );
    assert_eq!(
        renamed("copy-pt‸", "copied"),
        "refused: copy-pt gets its name from the structure pt: rename that, or name it in the definition.\n"
    );
    let shared = format!("{}\n(defclass other () (x))", text("pt-x‸"));
    let refused = super::renamed(&shared, "pt-left", &FixedExpander(None));
    assert!(
        refused.starts_with("refused: pt-x gets its name from the slot x, a name that slots of other"),
        "{refused}"
    );
}
