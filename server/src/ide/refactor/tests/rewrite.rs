//! Tests of conditionals and bindings that are rewritten with another operator.

use expect_test::expect;

use super::*;

const ARROWS: &str = "(defmacro -> (x &rest s) x)\n(defmacro ->> (x &rest s) x)\n";

#[test]
fn calls_are_threaded_and_nested() {
    for (id, text, expected) in [
        (
            "thread-first",
            "(defun f (x)\n  (‸car (nth (g x) 1)))",
            "Thread with ->\n(defun f (x)\n  (-> x g (nth 1) car))",
        ),
        (
            "thread-last",
            "(defun f (x)\n  (‸apply #'+\n         (mapcar #'1+ (rest x))))",
            "Thread with ->>\n(defun f (x)\n  (->> x\n       rest\n       (mapcar #'1+)\n       (apply #'+)))",
        ),
        ("nest-threaded", "(‸-> x g (nth 1) (car))", "Write as nested calls\n(car (nth (g x) 1))"),
        ("nest-threaded", "(f (‸->> x (mapcar #'1+)))", "Write as nested calls\n(f (mapcar #'1+ x))"),
    ] {
        let text = format!("{ARROWS}{text}");
        let expected = expected.replacen('\n', &format!("\n{ARROWS}"), 1);
        assert_eq!(refactored(&[("a.lisp", &text)], id).trim_end(), expected);
    }
    // Not offered for a single call, a special form, data and a guarded argument. Refused if a
    // comment would be lost. Not offered in a package without the macros.
    for text in ["(‸car x)", "(‸if (car x) 1)", "(‸car '(g x))", "(‸car #+a (g x))"] {
        let found = refactored(&[("a.lisp", &format!("{ARROWS}{text}"))], "thread-first");
        assert!(found.starts_with("not offered"), "{text}: {found}");
    }
    let found = refactored(&[("a.lisp", &format!("{ARROWS}(‸car (g ; why\n x))"))], "thread-first");
    assert!(found.contains("refused"), "{found}");
    assert!(refactored(&[("a.lisp", "(‸car (g x))")], "thread-first").starts_with("not offered"));
    assert!(refactored(&[("a.lisp", "(‸-> x (g 1) #'h)")], "nest-threaded").starts_with("not offered"));
}

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
                    (h)
                    (g) ; g
                    )
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
            "when-to-if",
            "(‸when x (g) (h))",
            expect![[r#"
            Write as if
            (if x (progn (g) (h)))
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
                  (t (j)))
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
fn comments_of_branches_move_with_them() {
    for (text, expected) in [
        (
            "(‸if x\n    ;; it is there\n    ;; indeed\n    (eff 1)\n    ;; it is missing\n    (eff 2))",
            expect![[r#"
                Invert the condition
                (if (not x)
                    ;; it is missing
                    (eff 2)
                    ;; it is there
                    ;; indeed
                    (eff 1))
            "#]],
        ),
        (
            "(‸if x\n    (eff 1) ; there\n    (eff 2) ; missing\n    )",
            expect![[r#"
            Invert the condition
            (if (not x)
                (eff 2) ; missing
                (eff 1) ; there
                )
        "#]],
        ),
        (
            "(‸if x\n    (eff 1) ; there\n    (eff 2))",
            expect![[r#"
            Invert the condition
            (if (not x)
                (eff 2)
                (eff 1) ; there
                )
        "#]],
        ),
        (
            "(‸if x (eff 1)\n    ;; missing\n    (eff 2))",
            expect![[r#"
            Invert the condition
            (if (not x)
                ;; missing
                (eff 2)
                (eff 1))
        "#]],
        ),
        (
            "(f (‸if x #| a ; b |# (eff 1) #| c\n d |# (eff 2)) y) ; all",
            expect![[r#"
            Invert the condition
            (f (if (not x) #| c
             d |# (eff 2) #| a ; b |# (eff 1)) y) ; all
        "#]],
        ),
        (
            "(‸if ; why\n x\n #| a\n |# (eff 1) #| a |#\n (eff 2) #| b |#)",
            expect![[r#"
                Invert the condition
                (if ; why
                 (not x)
                 (eff 2) #| b |#
                 #| a
                 |# (eff 1) #| a |#)
            "#]],
        ),
        (
            "(‸if x ;; then\n    (eff 1) ;; else\n    (eff 2))",
            expect![[r#"
            Invert the condition
            refused: it is not known which branch the comment ;; then is about: move it first
        "#]],
        ),
        (
            "(‸if x\n    (eff 1)\n    (eff 2)\n    ;; end\n    )",
            expect![[r#"
            Invert the condition
            refused: it is not known which branch the comment ;; end is about: move it first
        "#]],
        ),
        (
            "(f (‸if x\n    (eff 1) ; there\n    (eff 2))) ; missing",
            expect![[r#"
            Invert the condition
            refused: it is not known which branch the comment ; missing is about: move it first
        "#]],
        ),
    ] {
        check(text, "invert-if", expected);
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
