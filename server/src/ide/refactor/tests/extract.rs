//! Tests of the extraction of variables and functions.

use expect_test::expect;

use super::*;

#[test]
fn a_value_is_bound_before_its_statement() {
    for (text, expected) in [
        (
            "(defun f (x)\n  (foo)\n  (bar 1\n       «(baz x)»)) ; why\n",
            expect![[r#"
                Extract variable
                (defun f (x)
                  (foo)
                  (let ((baz (baz x)))
                    (bar 1
                         baz))) ; why

            "#]],
        ),
        (
            "(defun f (x)\n  (if x (list «(g x)» 2) 3))",
            expect![[r#"
            Extract variable
            (defun f (x)
              (if x (let ((value (g x)))
                      (list value 2)) 3))
        "#]],
        ),
        (
            "(defun f (x)\n  (let* ((a 1)\n         (b (+ a «(g a)»)))\n    b))",
            expect![[r#"
            Extract variable
            (defun f (x)
              (let* ((a 1)
                     (value (g a))
                     (b (+ a value)))
                b))
        "#]],
        ),
        (
            "(defun f (x)\n  (cond ((h «(g x)»)\n         1)\n        (t 2)))",
            expect![[r#"
            Extract variable
            (defun f (x)
              (let ((value (g x)))
                (cond ((h value)
                       1)
                      (t 2))))
        "#]],
        ),
        (
            "(DEFUN F (X)\n  (H (MAKE-‸THING X)))",
            expect![[r#"
            Extract variable
            (DEFUN F (X)
              (LET ((THING (MAKE-THING X)))
                (H THING)))
        "#]],
        ),
        // The order of the effects must not change.
        (
            "(defun f (x)\n  (list (h x) «(g x)»))",
            expect![[r#"
            Extract variable
            refused: (h x) is evaluated before it, and may have an effect: extract that first
        "#]],
        ),
        (
            "(defun f (x)\n  (list (car x) «(cdr x)»))",
            expect![[r#"
                Extract variable
                (defun f (x)
                  (let ((cdr (cdr x)))
                    (list (car x) cdr)))
            "#]],
        ),
        (
            "(defun f (x)\n  (list x «(setf x 1)»))",
            expect![[r#"
            Extract variable
            refused: x is evaluated before it, and may have an effect: extract that first
        "#]],
        ),
        (
            "(defun f (x)\n  (setf x (list «(g x)»)))",
            expect![[r#"
            Extract variable
            (defun f (x)
              (let ((value (g x)))
                (setf x (list value))))
        "#]],
        ),
        (
            "(defun f (x)\n  (multiple-value-bind (a b) «(floor x 2)»\n    (list a b)))",
            expect![[r#"
            Extract variable
            refused: all of its values may be used there, of which a variable has the first
        "#]],
        ),
        // These forms cannot be replaced by a variable.
        (
            "(defun f (x)\n  «(g x)»)",
            expect![[r#"
                Extract variable
                refused: all of its values may be used there, of which a variable has the first
            "#]],
        ),
        (
            "(defun f (x)\n  '(a «(g x)»))",
            expect![[r#"
            Extract variable
            refused: it is data there, and not code
        "#]],
        ),
        (
            "(defun f (x)\n  (incf «(aref x 1)»))",
            expect![[r#"
            Extract variable
            refused: it is the place of an assignment, and not a value
        "#]],
        ),
        (
            "(defmacro m (x) (list «(g x)»))",
            expect![[r#"
            Extract variable
            refused: it is not known how defmacro evaluates it
        "#]],
        ),
        (
            "(define-thing f (x) (list «(g x)»))",
            expect![[r#"
            Extract variable
            refused: it is not known how define-thing evaluates it
        "#]],
        ),
    ] {
        check(text, "extract-variable", expected);
    }
}

#[test]
fn a_value_can_be_a_whole_statement_or_a_result() {
    for (form, expected) in [
        // Nothing uses the value of a statement before the last.
        ("(defun f (x) «(g x)» x)", "(defun f (x) (let ((value (g x)))\n               value) x)"),
        ("(dolist (x l) «(g x)»)", "(dolist (x l) (let ((value (g x)))\n                value))"),
        // The form has one value.
        ("(defun f (x) «(string-trim \" \" x)»)", "(let ((string-trim (string-trim \" \" x)))"),
        ("(defun f (x) (if x «(+ x 1)» (g x)))", "(if x (let ((value (+ x 1)))"),
        ("(defun f (x) «(if x (car x) (list 1))»)", "(let ((value (if x (car x) (list 1))))"),
        ("(defun f (x) (h «(when x (g x))»))", "(let ((value (when x (g x))))"),
        // The user's function has one value.
        ("(in-package :a)\n(defun g (x) (if x (g (cdr x)) 1))\n(defun f (x) «(g x)»)", "(let ((value (g x)))"),
        ("(in-package :a)\n(defstruct pt x)\n(defun f (p) «(pt-x p)»)", "(let ((pt-x (pt-x p)))"),
        ("(in-package :a)\n(defclass c () ((k :reader g)))\n(defun f (x) «(g x)»)", "(let ((value (g x)))"),
        // Only the first value is used.
        ("(defun f (x) (or x «(g x)» 1))", "(or x (let ((value (g x)))"),
        ("(defun f (x) (loop for y in «(g x)» collect y))", "(loop for y in (let ((value (g x)))"),
        ("(defun f (x) (cond («(g x)»)))", "(let ((value (g x)))"),
        ("(defun f (x) (let* ((y 1) (z «(g x)»)) (h y z)))", "(let* ((y 1) (value (g x))"),
        ("(defvar *x* «(g 1)»)", "(defvar *x* (let ((value (g 1)))"),
        // The form around is evaluated after another, and the one within it is not.
        ("(defun f (x) (list (h x) (k 1 «(g x)»)))", "(list (h x) (let ((value (g x)))"),
    ] {
        let found = refactored(&[("a.lisp", form)], "extract-variable");
        assert!(found.contains(expected), "{form}\n{found}");
    }
    for (form, reason) in [
        ("(defun f (x) (or x «(g x)»))", "all of its values"),
        ("(defun f (x) (list x) «(floor x 2)»)", "all of its values"),
        ("(defun f (x) (loop while x return «(g x)»))", "all of its values"),
        ("(defun f (x) (flet ((car (x) (g x))) «(car x)»))", "all of its values"),
        (
            "(in-package :a)\n(defun g (x) (h x))\n(defun h (x) (values x 1))\n(defun f (x) «(g x)»)",
            "all of its values",
        ),
        ("(in-package :a)\n(defun g (x) (return-from g (floor x)) 1)\n(defun f (x) «(g x)»)", "all of its values"),
        ("(in-package :b)\n(defun g () 1)\n(in-package :a)\n(defun f () «(g)»)", "all of its values"),
        ("(in-package :a)\n(defun g () 1)\n(define-it g () 2)\n(defun f () «(g)»)", "all of its values"),
        (
            "(in-package :a)\n(defclass c () ((k :reader g)))\n(defmethod g (x) (h))\n(defun f () «(g 1)»)",
            "all of its values",
        ),
        ("(defun f (x) «\"Doc.\"» x)", "it is no value"),
        ("(tagbody «again» (go again))", "it is no value"),
        ("(progn «(defun f (x) x)» 1)", "it is no value"),
        ("(defgeneric f (x) «(:method (x) 1)»)", "it is an option"),
        ("(defmacro each (x &body b) `(g ,x ,@b))\n(defun f (x) (each x «(g x)»))", "it is not known how each"),
        ("(defun f (x) (my-cond ((g «(h x)») 1)))", "it is not known how"),
    ] {
        let found = refactored(&[("a.lisp", form)], "extract-variable");
        assert!(found.contains(&format!("refused: {reason}")), "{form}\n{found}");
        if reason == "it is an option" {
            assert!(refactored(&[("a.lisp", form)], "extract-function").contains("refused: it is an option"), "{form}");
        }
    }
}

#[test]
fn statements_become_a_function_of_what_they_use() {
    for (text, expected) in [
        (
            ";; About f.\n(defun f (a b)\n  (dolist (x a)\n    «;; one\n    (print x)\n    (when b ; b\n      (print a))»)\n  b)\n",
            expect![[r#"
                Extract function
                (defun f-part (x b a)
                  ;; one
                  (print x)
                  (when b ; b
                    (print a)))

                ;; About f.
                (defun f (a b)
                  (dolist (x a)
                    (f-part x b a))
                  b)

            "#]],
        ),
        (
            "(defun f (a b)\n  (dolist (x a)\n    «(print x)\n    (when b ; b\n      (print a))»)\n  b)\n",
            expect![[r#"
                Extract function
                (defun f-part (x b a)
                  (print x)
                  (when b ; b
                    (print a)))

                (defun f (a b)
                  (dolist (x a)
                    (f-part x b a))
                  b)

            "#]],
        ),
        (
            "(defun f (a)\n  (let ((y (g a)))\n    (list «(h y (lambda (z) (return-from nil z)))»)))",
            expect![[r#"
            Extract function
            refused: it leaves the block NIL, which is around it (return)
        "#]],
        ),
        (
            "(defun f (a)\n  (g «(if a (return-from f 1) 2)»))",
            expect![[r#"
                Extract function
                refused: it leaves the block f, which is around it
            "#]],
        ),
        (
            "(defun f (a)\n  (dolist (x a) «(when x (return 1))»))",
            expect![[r#"
            Extract function
            refused: it leaves the block NIL, which is around it (return)
        "#]],
        ),
        (
            "(defun f (a)\n  «(dolist (x a) (when x (return 1)))»)",
            expect![[r#"
            Extract function
            (defun f-part (a)
              (dolist (x a) (when x (return 1))))

            (defun f (a)
              (f-part a))
        "#]],
        ),
        (
            "(defun f (a)\n  (g «(setf a 1)»))",
            expect![[r#"
            Extract function
            refused: it assigns to a, which is bound outside
        "#]],
        ),
        (
            "(defun f (a)\n  (g «(setf (car a) 1)»))",
            expect![[r#"
            Extract function
            (defun f-part (a)
              (setf (car a) 1))

            (defun f (a)
              (g (f-part a)))
        "#]],
        ),
        (
            "(defun f (a)\n  (flet ((h (x) x)) (list «(h a)»)))",
            expect![[r#"
            Extract function
            refused: it uses the local function h, which only this form has
        "#]],
        ),
        (
            "(defmacro set-it (place) `(setf ,place 1))\n(defun f (a)\n  (g «(list (set-it a))»))",
            expect![[r#"
            Extract function
            refused: the macro set-it may assign to a, which is bound outside
        "#]],
        ),
        (
            "(defmethod f ((a b))\n  (list «(list 1 (call-next-method))»))",
            expect![[r#"
            Extract function
            refused: call-next-method means something only where it is
        "#]],
        ),
        (
            "(defun f-part ())\n(defun f (a)\n  (tagbody x (list «(progn (go x))»))\n  a)",
            expect![[r#"
            Extract function
            refused: it goes to the tag x, which is around it
        "#]],
        ),
        (
            "(defun f (a)\n  (register-groups-bind (b) (a)\n    (list «(g b)»)))",
            expect![[r#"
            Extract function
            refused: b may be bound around it, by a macro or a declaration
        "#]],
        ),
        (
            "(defun f (a)\n  (declare (special b))\n  (list «(g b)»))",
            expect![[r#"
            Extract function
            refused: b may be bound around it, by a macro or a declaration
        "#]],
        ),
        (
            "(defun f (a)\n  (list «(g b)»))",
            expect![[r#"
            Extract function
            refused: nothing tells what binds b: a macro around it may
        "#]],
        ),
        (
            "(defun f (a)\n  (list «(g *c*)»))",
            expect![[r#"
            Extract function
            (defun f-part ()
              (g *c*))

            (defun f (a)
              (list (f-part)))
        "#]],
        ),
    ] {
        check(text, "extract-function", expected);
    }
}

#[test]
fn values_and_steps_of_do() {
    for (id, text, expected) in [
        (
            "extract-function",
            "(defun f (n)\n  (do ((i 0 «(+ i n)»))\n      ((g i) n)\n    (h i)))",
            expect![[r#"
            Extract function
            (defun f-part (i n)
              (+ i n))

            (defun f (n)
              (do ((i 0 (f-part i n)))
                  ((g i) n)
                (h i)))
        "#]],
        ),
        (
            "extract-function",
            "(defun f (n)\n  (do ((i «(g n)» (1+ i)))\n      ((g i) n)\n    (h i)))",
            expect![[r#"
                Extract function
                (defun f-part (n)
                  (g n))

                (defun f (n)
                  (do ((i (f-part n) (1+ i)))
                      ((g i) n)
                    (h i)))
            "#]],
        ),
        (
            "extract-function",
            "(defun f (n)\n  (do ((i 0 (1+ i)))\n      («(g i n)» n)\n    (h i)))",
            expect![[r#"
            Extract function
            (defun f-part (i n)
              (g i n))

            (defun f (n)
              (do ((i 0 (1+ i)))
                  ((f-part i n) n)
                (h i)))
        "#]],
        ),
        (
            "extract-variable",
            "(defun f (n)\n  (do ((i 0 (+ i «(g n)»)))\n      ((g i) n)\n    (h i)))",
            expect![[r#"
                Extract variable
                refused: i is evaluated before it, and may have an effect: extract that first
            "#]],
        ),
        (
            "extract-variable",
            "(defun f (n)\n  (do ((i 0 (1+ i)) (j «(g n)»))\n      ((g i) n)\n    (h i)))",
            expect![[r#"
                Extract variable
                (defun f (n)
                  (let ((value (g n)))
                    (do ((i 0 (1+ i)) (j value))
                        ((g i) n)
                      (h i))))
            "#]],
        ),
        (
            "extract-variable",
            "(defun f (n)\n  (do* ((i 0 (1+ i)) (j (h «(g n)»)))\n      ((g i) n)\n    (h i)))",
            expect![[r#"
                Extract variable
                (defun f (n)
                  (do* ((i 0 (1+ i)) (value (g n))
                        (j (h value)))
                      ((g i) n)
                    (h i)))
            "#]],
        ),
        (
            "extract-variable",
            "(defun f (n)\n  (do ((i 0 (1+ i)))\n      ((h «(g i)») n)\n    (h i)))",
            expect![[r#"
                Extract variable
                (defun f (n)
                  (do ((i 0 (1+ i)))
                      ((let ((value (g i)))
                         (h value)) n)
                    (h i)))
            "#]],
        ),
        (
            "extract-variable",
            "(defun f (n)\n  (do ((i 0 (1+ i)))\n      ((h i) (list «(g i)»))\n    (h i)))",
            expect![[r#"
                Extract variable
                (defun f (n)
                  (do ((i 0 (1+ i)))
                      ((h i) (let ((value (g i)))
                               (list value)))
                    (h i)))
            "#]],
        ),
    ] {
        check(text, id, expected);
    }
}

#[test]
fn a_function_is_inserted_after_a_string_whose_lines_look_like_comments() {
    check(
        "(defvar *text* \"a\n; b\n; c\")\n(defun f (x)\n  «(print (list x 1))»\n  x)",
        "extract-function",
        expect![[r#"
            Extract function
            (defvar *text* "a
            ; b
            ; c")
            (defun f-part (x)
              (print (list x 1)))

            (defun f (x)
              (f-part x)
              x)
        "#]],
    );
}

#[test]
fn the_place_of_the_invented_name_is_told() {
    let named = |text: &str, id: &str| {
        let (cursor, selection) = place(&[("a.lisp", text)]);
        let named = run(apply(&cursor, selection, id, &FakeCompiler(None))).unwrap().named?;
        let line = named.text.line(named.text.char_to_line(named.offset)).to_string();
        Some(format!("{}|{}", line.trim(), named.text.slice(named.offset..named.offset + 5)))
    };
    let text = ";; baz\n(defun g (baz) é)\n(defun f (x)\n  (bar 1 «(baz x)»))";
    assert_eq!(named(text, "extract-variable").as_deref(), Some("(let ((baz (baz x)))|baz ("));
    let text = "(in-package :a)\n(defun f (x)\n  (bar é «(baz x)»))";
    assert_eq!(named(text, "extract-function").as_deref(), Some("(defun f-part (x)|f-par"));
    assert_eq!(named("(in-package :a)\n(‸if x (g))", "if-to-when"), None);
}
