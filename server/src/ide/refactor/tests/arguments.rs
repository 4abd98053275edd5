//! Tests of inlining functions with optional and keyword parameters.

use expect_test::expect;

use super::*;

#[test]
fn arguments_are_bound_as_the_lambda_list_says() {
    for (text, expected) in [
        (
            "(defun f (x &optional y) (list x y))\n(defun k (x) (‸f x))",
            expect![[r#"
            Inline this call of f
            (defun f (x &optional y) (list x y))
            (defun k (x) (let ((y nil))
                           (list x y)))
        "#]],
        ),
        (
            "(defun f (x &optional (y (g x) y-p) &aux (n (h y))) (list x y y-p n))\n(defun k (a) (‸f a))",
            expect![[r#"
            Inline this call of f
            (defun f (x &optional (y (g x) y-p) &aux (n (h y))) (list x y y-p n))
            (defun k (a) (let* ((x a)
                                (y (g x))
                                (y-p nil)
                                (n (h y)))
                           (list x y y-p n)))
        "#]],
        ),
        (
            "(defun f (x &optional (y 1 y-p) (z 2 z-p)) (list x y y-p z))\n(defun k (a) (‸f a (g)))",
            expect![[r#"
            Inline this call of f
            (defun f (x &optional (y 1 y-p) (z 2 z-p)) (list x y y-p z))
            (defun k (a) (let ((x a)
                               (y (g))
                               (y-p t)
                               (z 2))
                           (list x y y-p z)))
        "#]],
        ),
        (
            "(defun f (x &key (test #'eql) ((:from start) 0) end) (g x test start end))\n(defun k (x) (‸f (a) :end (b) :FROM (c)))",
            expect![[r#"
                Inline this call of f
                (defun f (x &key (test #'eql) ((:from start) 0) end) (g x test start end))
                (defun k (x) (let ((x (a))
                                   (end (b))
                                   (start (c))
                                   (test #'eql))
                               (g x test start end)))
            "#]],
        ),
        (
            "(defun f (x &key (y (g x)) z) (list x y z))\n(defun k (x) (‸f (car x) :z (cdr x)))",
            expect![[r#"
            Inline this call of f
            (defun f (x &key (y (g x)) z) (list x y z))
            (defun k (x) (let ((x (car x))
                               (z (cdr x)))
                           (let ((y (g x)))
                             (list x y z))))
        "#]],
        ),
        (
            "(defun f (x &rest more) (g x more))\n(defun k (a) (list (‸f a 1 (h)) a))",
            expect![[r#"
            Inline this call of f
            (defun f (x &rest more) (g x more))
            (defun k (a) (list (let ((x a)
                                     (more (list 1 (h))))
                                 (g x more)) a))
        "#]],
        ),
        (
            "(defun f (&rest more) (g more))\n(defun k () (‸f))",
            expect![[r#"
            Inline this call of f
            (defun f (&rest more) (g more))
            (defun k () (let ((more nil))
                          (g more)))
        "#]],
        ),
        (
            "(defun f (&key a &allow-other-keys) (g a))\n(defun k () (‸f :a 1))",
            expect![[r#"
            Inline this call of f
            (defun f (&key a &allow-other-keys) (g a))
            (defun k () (let ((a 1))
                          (g a)))
        "#]],
        ),
        (
            "(defun f (&key a &allow-other-keys) (g a))\n(defun k () (‸f :a 1 :b 2))",
            expect![[r#"
            Inline this call of f
            refused: it has no parameter for :b
        "#]],
        ),
        (
            "(defun f (&key a) (g a))\n(defun k (b) (‸f b 1))",
            expect![[r#"
            Inline this call of f
            refused: b is no keyword that the text tells
        "#]],
        ),
        (
            "(defun f (&key a) (g a))\n(defun k () (‸f :a))",
            expect![[r#"
            Inline this call of f
            refused: :a has no value in the call
        "#]],
        ),
        (
            "(defun f (&key a) (g a))\n(defun k () (‸f :a 1 :a 2))",
            expect![[r#"
            Inline this call of f
            refused: the call has :a twice
        "#]],
        ),
        (
            "(defun f (&rest all &key a) (g all a))\n(defun k () (‸f :a 1))",
            expect![[r#"
            Inline this call of f
            refused: its lambda list has &rest and &key, which share arguments
        "#]],
        ),
        (
            "(defun f (x &optional y) (list x y))\n(defun k (x) (‸f x 1 2))",
            expect![[r#"
            Inline this call of f
            refused: it takes 1 to 2 arguments, and the call has 3
        "#]],
        ),
        (
            "(defun f (&key (a b) b) (list a b))\n(defun k () (‸f :b 1))",
            expect![[r#"
            Inline this call of f
            refused: a default value has the name of b, which is bound after it
        "#]],
        ),
        (
            "(defun f (&optional (a (return-from f 1))) a)\n(defun k () (‸f))",
            expect![[r#"
            Inline this call of f
            refused: it returns from f
        "#]],
        ),
        (
            "(defun f (&optional (a b)) a)\n(defun k (b) (‸f))",
            expect![[r#"
            Inline this call of f
            refused: b in its body means something else around the call
        "#]],
        ),
        (
            "(defun f (&optional (*a* 1)) (g))\n(defun k () (‸f))",
            expect![[r#"
            Inline this call of f
            refused: its parameter *a* may be a special variable
        "#]],
        ),
        (
            "(defun f (&optional #+x a) a)\n(defun k () (‸f))",
            expect![[r#"
            Inline this call of f
            refused: a part of it is read only with some features (#+, #-)
        "#]],
        ),
        (
            "(defun f (x &key (form `(list '(g ,x)))) (run form))\n(defun k (x) (‸f (car x)))",
            expect![[r#"
            Inline this call of f
            (defun f (x &key (form `(list '(g ,x)))) (run form))
            (defun k (x) (let* ((x (car x))
                                (form `(list '(g ,x))))
                           (run form)))
        "#]],
        ),
    ] {
        check(text, "inline-call", expected);
    }
}

#[test]
fn each_call_of_a_local_function_has_its_own_defaults() {
    check(
        "(defun k (a)\n  (flet ((f‸ (x &optional (y a) &key (z y)) (list x y z)))\n    (f 1)\n    (f 2 3 :z a)))",
        "inline-local-function",
        expect![[r#"
            Inline the local function f
            (defun k (a)
              (let* ((x 1)
                     (y a)
                     (z y))
                (list x y z))
              (let ((x 2)
                    (y 3)
                    (z a))
                (list x y z)))
        "#]],
    );
    check(
        "(defun k (a)\n  (flet ((f‸ (x &optional (y a)) (list x y)))\n    (f 1)\n    (let ((a 2)) (f a))))",
        "inline-local-function",
        expect![[r#"
            Inline the local function f
            refused: a in its body means another binding around a call
        "#]],
    );
}
