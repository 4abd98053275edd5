//! Conditionals and bindings written as others.

use expect_test::expect;

use super::*;

#[test]
fn conditionals_become_others() {
    for (id, text, expected) in [
        (
            "if-to-when",
            "(defun f (x)\n  (‸if x\n      (progn\n        ;; one\n        (g)\n        (h))))",
            expect![[r#"
                Write as when
                (defun f (x)
                  (when x
                    ;; one
                    (g)
                    (h)))
            "#]],
        ),
        (
            "if-to-unless",
            "(‸if (not x)\n    (g))",
            expect![[r#"
                Write as unless
                (unless x
                  (g))
            "#]],
        ),
        (
            "if-to-unless",
            "(‸if x\n    nil\n    (progn (g) (h)))",
            expect![[r#"
            Write as unless
            (unless x
              (g) (h))
        "#]],
        ),
        (
            "if-to-when",
            "(‸if x (g) nil)",
            expect![[r#"
            Write as when
            (when x (g))
        "#]],
        ),
        (
            "invert-if",
            "(‸if (not x)\n    (g) ; g\n    (h))",
            expect![[r#"
            Invert the condition
            (if x
                (h) ; g
                (g))
        "#]],
        ),
        (
            "when-to-if",
            "(‸when x\n  (g)\n  (h))",
            expect![[r#"
            Write as if
            (if x
                (progn
                  (g)
                  (h)))
        "#]],
        ),
        (
            "unless-to-when",
            "(‸unless (foo)\n  (g))",
            expect![[r#"
            Write as when
            (when (not (foo))
              (g))
        "#]],
        ),
        (
            "unless-to-if",
            "(‸unless (not x)\n  (g))",
            expect![[r#"
                Write as if
                (if x
                    (g))
            "#]],
        ),
        (
            "if-to-cond",
            "(‸if x\n    (g)\n    ;; other\n    (if y\n        (progn (h) (i))\n        (j)))",
            expect![[r#"
            Write as cond
            (cond (x
                   (g))
                  ;; other
                  (y
                   (h) (i))
                  (t
                   (j)))
        "#]],
        ),
        (
            "cond-to-if",
            "(‸cond (x (g))\n      ((y) ; y\n       (h)\n       (i))\n      (t (j)))",
            expect![[r#"
            Write as if
            (if x (g)
                (if (y) ; y
                    (progn
                      (h)
                      (i))
                    (j)))
        "#]],
        ),
        (
            "cond-to-if",
            "(‸cond (x) (t 1))",
            expect![[r#"
            not offered: []
        "#]],
        ),
        (
            "if-to-when",
            "(‸if x #+sbcl (g))",
            expect![[r#"
            not offered: []
        "#]],
        ),
    ] {
        check(text, id, expected);
    }
}

#[test]
fn bindings_are_merged_split_and_made_serial() {
    for (id, text, expected) in [
        (
            "merge-let",
            "(‸let ((a 1)\n      (b 2))\n  (let ((c a)) ; c\n    (g a b c)\n    c))",
            expect![[r#"
            Merge with the let inside
            (let* ((a 1)
                   (b 2)
                   (c a)) ; c
              (g a b c)
              c)
        "#]],
        ),
        (
            "merge-let",
            "(‸let ((a 1)) (let ((c 2)) (g a c)))",
            expect![[r#"
            Merge with the let inside
            (let ((a 1)
                  (c 2)) (g a c))
        "#]],
        ),
        (
            "merge-let",
            "(‸let ((a 1)) (let ((a 2)) (g a)))",
            expect![[r#"
            Merge with the let inside
            refused: a name is bound twice
        "#]],
        ),
        (
            "split-let",
            "(let* ((a 1)\n       (b‸ a)\n       (c b))\n  (g c))",
            expect![[r#"
            Split the let here
            (let* ((a 1))
              (let* ((b a)
                     (c b))
                (g c)))
        "#]],
        ),
        (
            "split-let",
            "(let* ((a 1)\n       (b‸ a))\n  (declare (fixnum a))\n  (g b))",
            expect![[r#"
            Split the let here
            refused: the variables have declarations, which belong to one of the two
        "#]],
        ),
        (
            "let-serial-to-let",
            "(‸let* ((a 1)\n       (b 2))\n  (g a b))",
            expect![[r#"
                Write as let
                (let ((a 1)
                      (b 2))
                  (g a b))
            "#]],
        ),
        (
            "let-serial-to-let",
            "(‸let* ((a 1) (b a)) (g b))",
            expect![[r#"
            Write as let
            refused: a value has the name of a variable that is bound before it
        "#]],
        ),
        (
            "let-to-let-serial",
            "(‸let ((a 1) (b 2)) (g b))",
            expect![[r#"
            Write as let*
            (let* ((a 1) (b 2)) (g b))
        "#]],
        ),
    ] {
        check(text, id, expected);
    }
}
