//! Tests of inlining functions, and of giving functions a name or a wider scope.

use expect_test::expect;

use super::*;

#[test]
fn the_body_of_a_function_takes_the_place_of_a_call() {
    for (text, expected) in [
        (
            "(defun f (x y)\n  \"Doc.\"\n  (g x)\n  (h y))\n(defun k (a)\n  (list (‸f (car a) 2)))",
            expect![[r#"
                Inline this call of f
                (defun f (x y)
                  "Doc."
                  (g x)
                  (h y))
                (defun k (a)
                  (list (let ((x (car a))
                              (y 2))
                          (g x)
                          (h y))))
            "#]],
        ),
        (
            "(defun f (x) (g x))\n(defun k (x)\n  (‸f x))",
            expect![[r#"
                Inline this call of f
                (defun f (x) (g x))
                (defun k (x)
                  (g x))
            "#]],
        ),
        (
            "(defun f () (g) (h))\n(defun k ()\n  (list (‸f)))",
            expect![[r#"
                Inline this call of f
                (defun f () (g) (h))
                (defun k ()
                  (list (progn
                          (g) (h))))
            "#]],
        ),
        (
            "(defun f (x) (g x))\n(defun k (x) (‸f x x))",
            expect![[r#"
                Inline this call of f
                refused: it takes 1 arguments, and the call has 2
            "#]],
        ),
        (
            "(defun f (x) (list x y))\n(defun k (y) (‸f y))",
            expect![[r#"
                Inline this call of f
                refused: y in its body means something else around the call
            "#]],
        ),
        (
            "(defun f (x) (g x))\n(defun k (x) (flet ((g (y) y)) (‸f x)))",
            expect![[r#"
                Inline this call of f
                refused: g in its body means something else around the call
            "#]],
        ),
        (
            "(defun f (x) (if x (return-from f 1) (g)))\n(defun k (x) (‸f x))",
            expect![[r#"
                Inline this call of f
                refused: it returns from f
            "#]],
        ),
        (
            "(defun f (x) (f (1- x)))\n(defun k (x) (‸f x))",
            expect![[r#"
                Inline this call of f
                refused: f is named in its own body
            "#]],
        ),
        (
            "(defun f (x &optional y) \"Doc.\" (declare (fixnum x) (ignore y)) (g x))\n(defun k (x) (‸f x))",
            expect![[r#"
                Inline this call of f
                (defun f (x &optional y) "Doc." (declare (fixnum x) (ignore y)) (g x))
                (defun k (x) (let ((x x)
                                   (y nil))
                               (declare (fixnum x) (ignore y))
                               (g x)))
            "#]],
        ),
        (
            "(defun f () (declare (optimize speed)) ; fast\n  (declare (inline g)) (g) (g))\n(defun k (x) (list (‸f)))",
            expect![[r#"
                Inline this call of f
                (defun f () (declare (optimize speed)) ; fast
                  (declare (inline g)) (g) (g))
                (defun k (x) (list (locally (declare (optimize speed)) ; fast
                                     (declare (inline g))
                                     (g) (g))))
            "#]],
        ),
        (
            "(defun f (x) (declare (special x)) (g))\n(defun k (x) (list (‸f x)))",
            expect![[r#"
                Inline this call of f
                refused: it declares a variable special
            "#]],
        ),
        (
            "(let ((n 0)) (defun f () (incf n)))\n(defun k () (‸f))",
            expect![[r#"
                Inline this call of f
                refused: its definition is in another form, whose bindings it may use
            "#]],
        ),
        (
            "(defmacro f (x) x)\n(defun k () (‸f 1))",
            expect![[r#"
                not offered: ["extract-variable", "extract-function"]
            "#]],
        ),
        (
            "(defun f (x) x)\n(in-package :b)\n(defun k () (‸f 1))",
            expect![[r#"
                Inline this call of f
                refused: f is defined in another package, where names mean other symbols
            "#]],
        ),
        (
            "(defun f (x) (setf x (g x)) x)\n(defun k (x) (list (‸f x) x))",
            expect![[r#"
                Inline this call of f
                (defun f (x) (setf x (g x)) x)
                (defun k (x) (list (let ((x x))
                                     (setf x (g x)) x) x))
            "#]],
        ),
        (
            "(defun f (x) x)\n(defun k () '(‸f 1))",
            expect![[r#"
                not offered: ["extract-variable", "extract-function"]
            "#]],
        ),
    ] {
        check(text, "inline-call", expected);
    }
}

#[test]
fn a_local_function_takes_the_place_of_its_calls() {
    for (text, expected) in [
        (
            "(defun k (a)\n  (flet ((f (x) (list a x)))\n    (g (‸f 1))\n    (f 2)))",
            expect![[r#"
                Inline the local function f
                (defun k (a)
                  (g (let ((x 1))
                       (list a x)))
                  (let ((x 2))
                    (list a x)))
            "#]],
        ),
        (
            "(defun k (a)\n  (labels ((f‸ (x) (list a x))\n           (h (y) (f y)))\n    (h 1)))",
            expect![[r#"
                Inline the local function f
                (defun k (a)
                  (labels ((h (y) (let ((x y))
                                    (list a x))))
                    (h 1)))
            "#]],
        ),
        (
            "(defun k (a)\n  (flet ((f‸ (x) (list a x)))\n    (mapcar #'f a)))",
            expect![[r#"
                Inline the local function f
                refused: f is also used as a value (#')
            "#]],
        ),
        (
            "(defun k (a)\n  (flet ((f‸ (x) (list a x)))\n    (let ((a 2)) (f a))))",
            expect![[r#"
                Inline the local function f
                refused: a in its body means another binding around a call
            "#]],
        ),
        (
            "(defun k (a)\n  (labels ((f‸ (x) (f (1- x))))\n    (f a)))",
            expect![[r#"
                Inline the local function f
                refused: f is named in its own body
            "#]],
        ),
    ] {
        check(text, "inline-local-function", expected);
    }
}

#[test]
fn a_lambda_gets_a_name() {
    for (text, expected) in [
        (
            "(defun k (a)\n  (let ((b 1))\n    (mapcar (‸lambda (x)\n              (list a b x))\n            a)))",
            expect![[r#"
                Name the function with flet
                (defun k (a)
                  (let ((b 1))
                    (flet ((local-function (x)
                             (list a b x)))
                      (mapcar #'local-function
                              a))))
            "#]],
        ),
        (
            "(defun k (a)\n  (setf *f* #'(lambda‸ () a)))",
            expect![[r#"
                Name the function with flet
                (defun k (a)
                  (flet ((local-function () a))
                    (setf *f* #'local-function)))
            "#]],
        ),
        (
            "(defun k (a)\n  ((lambda‸ (x) x) a))",
            expect![[r#"
                Name the function with flet
                refused: it is called where it is: write a let
            "#]],
        ),
    ] {
        check(text, "lambda-to-flet", expected);
    }
}

#[test]
fn a_local_function_becomes_a_definition() {
    for (text, expected) in [
        (
            "(defun k (a b)\n  (flet ((helper‸ (x)\n           (list a x)))\n    (list (helper 1) b)))",
            expect![[r#"
                Make a definition of the local function helper
                (defun helper (a x)
                  (list a x))

                (defun k (a b)
                  (list (helper a 1) b))
            "#]],
        ),
        (
            "(defun k (a)\n  (flet ((helper‸ (x) (list x)))\n    (mapcar #'helper a)))",
            expect![[r#"
                Make a definition of the local function helper
                (defun helper (x) (list x))

                (defun k (a)
                  (mapcar #'helper a))
            "#]],
        ),
        (
            "(defun k (a)\n  (labels ((helper‸ (x) (helper (1- x))))\n    (helper a)))",
            expect![[r#"
                Make a definition of the local function helper
                (defun helper (x) (helper (1- x)))

                (defun k (a)
                  (helper a))
            "#]],
        ),
        (
            "(defun helper () 1)\n(defun k (a)\n  (flet ((helper‸ (x) (list x)))\n    (helper a)))",
            expect![[r#"
                Make a definition of the local function helper
                (defun helper () 1)
                (defun helper-2 (x) (list x))

                (defun k (a)
                  (helper-2 a))
            "#]],
        ),
        (
            "(defun k (a)\n  (flet ((helper‸ (x) (setf a x)))\n    (helper a)))",
            expect![[r#"
                Make a definition of the local function helper
                refused: it assigns to a, which is bound outside
            "#]],
        ),
        (
            "(defun k (a)\n  (flet ((helper‸ (x) (return-from k x)))\n    (helper a)))",
            expect![[r#"
                Make a definition of the local function helper
                refused: it leaves the block k, which is around it
            "#]],
        ),
        (
            "(defun k (a)\n  (flet ((helper‸ (x) (list a x)))\n    (mapcar #'helper a)))",
            expect![[r#"
                Make a definition of the local function helper
                refused: helper is also used as a value, and needs variables of this form
            "#]],
        ),
        (
            "(defun k (a)\n  (flet ((helper‸ (x) (list a x)))\n    (let ((a 2)) (helper a))))",
            expect![[r#"
                Make a definition of the local function helper
                refused: a variable that helper uses is another one where it is called
            "#]],
        ),
    ] {
        check(text, "local-to-definition", expected);
    }
}
