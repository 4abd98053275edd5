//! Tests of extracting a variable for all equal forms.

use expect_test::expect;

use super::*;

#[test]
fn all_equal_forms_become_one_variable() {
    for (text, expected) in [
        (
            "(defun f (x)\n  (let ((n 1))\n    (when (> (length x) 3)\n      (g n (LENGTH  x)))\n    (list «(length x)»)))",
            expect![[r#"
                Extract variable (all 3 equal forms)
                refused: (g n (LENGTH  x)) may change its value
            "#]],
        ),
        // A function is called after its arguments are evaluated.
        (
            "(defun f (x)\n  (when (> (length x) 3)\n    (g (‸length x) ())\n    (h)))",
            expect![[r#"
                Extract variable (all 2 equal forms)
                (defun f (x)
                  (let ((length (length x)))
                    (when (> length 3)
                      (g length ())
                      (h))))
            "#]],
        ),
        (
            "(defun f (x)\n  (a)\n  (b (+ x 1))\n  ;; two\n  (c ‸(+ x 1)) ; three\n  (d))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            (defun f (x)
              (a)
              (let ((value (+ x 1)))
                (b value)
                ;; two
                (c value)) ; three
              (d))
        "#]],
        ),
        (
            "(defun f (x)\n  (let* ((a 1)\n         (b (* x 2))\n         (c (h (‸* x 2))))\n    (list a b c (* x 2))))",
            expect![[r#"
                Extract variable (all 3 equal forms)
                (defun f (x)
                  (let* ((a 1)
                         (value (* x 2))
                         (b value)
                         (c (h value)))
                    (list a b c value)))
            "#]],
        ),
        (
            "(defun f (x)\n  (g (‸+ x 1) (+ x 1))\n  (let ((x 2)) (g (+ x 1))))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            (defun f (x)
              (let ((value (+ x 1)))
                (g value value))
              (let ((x 2)) (g (+ x 1))))
        "#]],
        ),
        (
            "(defun f (x)\n  (if (null x) (g (‸car x)) (h (car x))))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: the first of them is not always evaluated, and may signal an error
        "#]],
        ),
        (
            "(defun f (x)\n  (if x (g (‸not x)) (h (not x))))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            (defun f (x)
              (let ((value (not x)))
                (if x (g value) (h value))))
        "#]],
        ),
        (
            "(defun f (x)\n  (g (‸car x))\n  (h (car x)))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: (g (car x)) may change its value
        "#]],
        ),
        (
            "(defun f (x)\n  (list (‸car x) (list 1 (car x))))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            (defun f (x)
              (let ((car (car x)))
                (list car (list 1 car))))
        "#]],
        ),
        (
            "(defun f (x)\n  (g (‸+ x 1))\n  (setf x 2)\n  (h (+ x 1)))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: x may be assigned between them
        "#]],
        ),
        (
            "(defun f (x)\n  (setf x 2)\n  (g (‸+ x 1))\n  (h (+ x 1)))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            (defun f (x)
              (setf x 2)
              (let ((value (+ x 1)))
                (g value)
                (h value)))
        "#]],
        ),
        (
            "(defun f (x)\n  (flet ((up () (incf x)))\n    (list (‸+ x 1) (up) (+ x 1))))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: x may be assigned between them
        "#]],
        ),
        (
            "(defun f (x)\n  (list (‸make-thing x) (make-thing x)))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: (make-thing x) may have a side effect, and is evaluated at each of the 2 places
        "#]],
        ),
        (
            "(defun f (x)\n  (g (‸list x) (list x)))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: it makes a new object each time
        "#]],
        ),
        (
            "(defun f (l)\n  (dolist (x l)\n    (g (‸+ x 1))\n    (push (lambda () (+ x 1)) *all*)))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: x may be assigned between them
        "#]],
        ),
        (
            "(defun f (l)\n  (dolist (x l)\n    (g (‸+ x 1))\n    (h (+ x 1))))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            (defun f (l)
              (dolist (x l)
                (let ((value (+ x 1)))
                  (g value)
                  (h value))))
        "#]],
        ),
        (
            "(defun f ()\n  (do ((i 0 (‸+ i 1)))\n      ((> i 3))\n    (g (+ i 1))))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: the first of them is not always evaluated, and may signal an error
        "#]],
        ),
        (
            "(defun f ()\n  (do* ((i 0 (1+ i)) (j (‸+ i 1)))\n       ((> j 3))\n    (g (+ i 1))))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: i is bound in between
        "#]],
        ),
        (
            "(defun f (x)\n  (loop do (g (‸+ x 1))\n        while (h) do (g (+ x 1))))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: the first of them is not always evaluated, and may signal an error
        "#]],
        ),
        (
            "(defun f (x)\n  (tagbody (g (‸+ x 1))\n   again (g (+ x 1)) (go again)))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: the first of them is not always evaluated, and may signal an error
        "#]],
        ),
        (
            "(defun f (x)\n  (g (‸+ x 1) '(+ x 1)))",
            expect![[r#"
            not offered: ["extract-variable", "extract-function"]
        "#]],
        ),
        (
            "(defun f ()\n  (g «86400» (* 2 86400)))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            (defun f ()
              (let ((value 86400))
                (g value (* 2 value))))
        "#]],
        ),
        (
            "(defun f ()\n  (let ((*x* 1)) (g (‸+ *x* 1)) (h (+ *x* 1))))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: (g (+ *x* 1)) may change its value
        "#]],
        ),
    ] {
        check(text, "extract-variable-all", expected);
    }
}

#[test]
fn the_values_of_earlier_bindings_stay_before_the_first() {
    for (text, expected) in [
        (
            "(defun f (x)\n  (let* ((a (or (numberp x) (return-from f nil)))\n         (b (‸/ 10 x)))\n    (g a b))\n  (h (/ 10 x)))",
            expect![[r#"
                Extract variable (all 2 equal forms)
                refused: (or (numberp x) (return-from f nil)) is evaluated before the first of them, and may have an effect
            "#]],
        ),
        (
            "(defun f (x)\n  (do* ((a (read-it x) (1+ a))\n        (b (‸/ 10 x)))\n       ((> a 3))\n    (g (/ 10 x))))",
            expect![[r#"
                Extract variable (all 2 equal forms)
                refused: (read-it x) is evaluated before the first of them, and may have an effect
            "#]],
        ),
        (
            "(defun f (x)\n  (let* (y\n         (a (+ x 1))\n         (b (‸/ 10 x)))\n    (g y a b))\n  (h (/ 10 x)))",
            expect![[r#"
                Extract variable (all 2 equal forms)
                (defun f (x)
                  (let ((value (/ 10 x)))
                    (let* (y
                           (a (+ x 1))
                           (b value))
                      (g y a b))
                    (h value)))
            "#]],
        ),
    ] {
        check(text, "extract-variable-all", expected);
    }
}

#[test]
fn tags_docstrings_and_options_are_no_values() {
    for (text, expected) in [
        (
            "(defun f ()\n  (tagbody 10\n    (g «10»)\n    (go 10)))",
            expect![[r#"
            not offered: ["extract-variable"]
        "#]],
        ),
        (
            "(defun f ()\n  (dotimes (i 3)\n    (g «10»)\n    10))",
            expect![[r#"
            not offered: ["extract-variable"]
        "#]],
        ),
        (
            "(defun f ()\n  (tagbody 10\n    (g «10» 10)\n    (go 10)))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            (defun f ()
              (tagbody 10
                (let ((value 10))
                  (g value value))
                (go 10)))
        "#]],
        ),
        (
            "(defun k ()\n  (flet ((f () \"usage\" (g «\"usage\"»)))\n    (f)))",
            expect![[r#"
            not offered: ["extract-variable"]
        "#]],
        ),
        (
            "(defun f ()\n  (restart-case (g «\"Use it.\"»)\n    (use () :report \"Use it.\")))",
            expect![[r#"
            not offered: ["extract-variable"]
        "#]],
        ),
        (
            "(defun f (x)\n  (ecase x\n    (:day «86400»)\n    (:week (* 7 86400))))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            (defun f (x)
              (let ((value 86400))
                (ecase x
                  (:day value)
                  (:week (* 7 value)))))
        "#]],
        ),
        (
            "(defgeneric s (x)\n  (:method ((x day)) (* 2 «86400»))\n  (:method ((x night)) (* 3 86400)))",
            expect![[r#"
                Extract variable (all 2 equal forms)
                refused: nothing is around them that a variable could be bound before
            "#]],
        ),
        (
            "(defgeneric s (x)\n  (:method ((x day)) (g «86400») (defun h ()) (h 86400)))",
            expect![[r#"
            Extract variable (all 2 equal forms)
            refused: nothing is around them that a variable could be bound before
        "#]],
        ),
    ] {
        check(text, "extract-variable-all", expected);
    }
}
