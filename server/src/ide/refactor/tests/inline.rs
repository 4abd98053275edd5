//! Tests of inlining variables.

use expect_test::expect;

use super::*;

#[test]
fn a_value_takes_the_place_of_its_variable() {
    for (text, expected) in [
        (
            "(defun f (a)\n  (let ((x‸ (+ a 1))\n        (y 2))\n    (list x\n          x y)))",
            expect![[r#"
            Inline the variable x
            (defun f (a)
              (let ((y 2))
                (list (+ a 1)
                      (+ a 1) y)))
        "#]],
        ),
        (
            "(defun f (a)\n  (let ((x (g a)))\n    (list a ‸x)\n    (h)))",
            expect![[r#"
            Inline the variable x
            (defun f (a)
              (list a (g a))
              (h))
        "#]],
        ),
        (
            "(defun f ()\n  (let ((x (g)))\n    (multiple-value-list ‸x)))",
            expect![[r#"
            Inline the variable x
            (defun f ()
              (multiple-value-list (values (g))))
        "#]],
        ),
        (
            "(defun f (a)\n  (let ((x (g a)))\n    ‸x))",
            expect![[r#"
            Inline the variable x
            (defun f (a)
              (values (g a)))
        "#]],
        ),
        (
            "(defun f (a)\n  (let ((x (g a)))\n    (h)\n    (list ‸x)))",
            expect![[r#"
            Inline the variable x
            refused: its value may have an effect or change, and is used later or not always
        "#]],
        ),
        (
            "(defun f (a)\n  (let ((x (g a)))\n    (list ‸x x)))",
            expect![[r#"
            Inline the variable x
            refused: x is used 2 times, and its value may have an effect or change
        "#]],
        ),
        (
            "(defun f (a)\n  (let ((x a))\n    (setf a 1)\n    (list ‸x)))",
            expect![[r#"
            Inline the variable x
            refused: its value may have an effect or change, and is used later or not always
        "#]],
        ),
        (
            "(defun f (a)\n  (let ((x a))\n    (let ((a 2))\n      (list ‸x a))))",
            expect![[r#"
            Inline the variable x
            refused: a means another binding where it is used
        "#]],
        ),
        (
            "(defun f (a)\n  (let ((x‸ (car a))) ; why\n    (list x)))",
            expect![[r#"
            Inline the variable x
            refused: the comment ; why would be lost: move it first
        "#]],
        ),
        (
            "(defun f (a)\n  (let ((x (car a)))\n    (declare (fixnum x))\n    (list ‸x)))",
            expect![[r#"
            Inline the variable x
            refused: the variables have declarations, which would be lost
        "#]],
        ),
        (
            "(defun f (a)\n  (when a\n    (let* ((x‸ 1))\n      (g x)\n      (h))))",
            expect![[r#"
            Inline the variable x
            (defun f (a)
              (when a
                (g 1)
                (h)))
        "#]],
        ),
        (
            "(defun f (a)\n  (if a (let ((x‸ 1)) (g x) (h)) 2))",
            expect![[r#"
            Inline the variable x
            (defun f (a)
              (if a (progn (g 1) (h)) 2))
        "#]],
        ),
    ] {
        check(text, "inline-variable", expected);
    }
}
