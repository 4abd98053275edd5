//! Tests of mentions that are certain by their position, and of uncertain ones (`?`), which a
//! person must decide.

use expect_test::expect;

use super::*;

#[test]
fn types_at_the_heads_of_clauses() {
    global(
        &[(
            "a.lisp",
            "(define-condition oo‸ps (error) ())\n(define-condition worse (oops) ())
(defun f (x) (declare (oops x)) (handler-case (g) (oops (c) c) ((or oops worse) () 1)))
(handler-bind ((oops #'g) (error (lambda (oops) oops))) (signal 'oops))
(typecase x (oops 1) (t 2))\n(typep x '(or null oops))\n(restart-case (g) (oops () 1))\n(assert x () 'oops)
(deftype failure () '(or null oops))\n(list 'oops '(oops) (make-array 3 :element-type 'oops :initial-element 'oops))",
        )],
        "mishap",
        Options::default(),
        expect![[r#"
            condition
            (define-condition mishap (error) ())
            (define-condition worse (mishap) ())
            (defun f (x) (declare (mishap x)) (handler-case (g) (mishap (c) c) ((or mishap worse) () 1)))
            (handler-bind ((mishap #'g) (error (lambda (oops) oops))) (signal 'mishap))
            (typecase x (mishap 1) (t 2))
            (typep x '(or null mishap))
            (restart-case (g) (?mishap () 1))
            (assert x () 'mishap)
            (deftype failure () '(or null mishap))
            (list '?mishap '(?mishap) (make-array 3 :element-type 'mishap :initial-element '?mishap))
        "#]],
    );
}

#[test]
fn a_variable_at_the_head_of_a_clause() {
    for text in [
        "(defvar *x‸* nil)\n(defun f () (cond (*x* 1) ((g) *x*)))",
        "(defvar *x‸* nil)\n(defmacro m () '(cond (*x* 1)))\n(defmacro n (y) `(cond (*x* ,y)))",
    ] {
        let found = renamed(text, "*new*", &FixedExpander(None));
        assert_eq!(found, format!("variable: {}\n", text.replace('‸', "").replace("*x*", "*new*")));
    }
}

#[test]
fn code_that_macros_return() {
    global(
        &[(
            "a.lisp",
            "(defvar *un‸it* 1)\n(defmacro with-unit ((u) &body body) (let ((v (list '*unit*))) (when u `(let ((*unit* ,u)) (list '*unit* *unit* ,*unit*) ,@body))))
(defun code (x) `(let ((*unit* ,x)) *unit*))\n(macrolet ((m () '(list *unit*))) (m))\n(boundp '*unit*)\n(progv '(*unit*) '(1) *unit*)",
        )],
        "*einheit*",
        Options::default(),
        expect![[r#"
            variable
            (defvar *einheit* 1)
            (defmacro with-unit ((u) &body body) (let ((v (list '?*einheit*))) (when u `(let ((*einheit* ,u)) (list '?*einheit* *einheit* ,*einheit*) ,@body))))
            (defun code (x) `(let ((?*einheit* ,x)) ?*einheit*))
            (macrolet ((m () '(list *einheit*))) (m))
            (boundp '*einheit*)
            (progv '(*einheit*) '(1) *einheit*)
        "#]],
    );
    global(
        &[(
            "a.lisp",
            "(defun ar‸ea (x) x)\n(defmacro m (x) `(progn (area ,x) (let ((area ,x)) area) #'area (mapcar 'area '(area)) (cons area 1)))
(defmacro clauses (area) (list 'cond `(area ,area)))\n(defsetf area (x) (v) `(set-area ,x ,v))\n(defsetf area area)
(define-modify-macro areaf () area)\n(deftype sized () '(satisfies area))\n(sort x 'area :key 'area)\n(f x :key 'area)",
        )],
        "size",
        Options::default(),
        expect![[r#"
            function
            (defun size (x) x)
            (defmacro m (x) `(progn (size ,x) (let ((?size ,x)) ?size) #'size (mapcar 'size '(?size)) (cons ?size 1)))
            (defmacro clauses (area) (list 'cond `(?size ,area)))
            (defsetf size (x) (v) `(set-area ,x ,v))
            (defsetf size size)
            (define-modify-macro areaf () size)
            (deftype sized () '(satisfies size))
            (sort x 'size :key 'size)
            (f x :key '?size)
        "#]],
    );
}

#[test]
fn the_block_of_a_function_and_its_setf_function() {
    global(
        &[(
            "a.lisp",
            "(defun fa‸r (x) (when x (return-from far 1)) (block far (return-from far 2)))
(defun (setf far) (v x) (return-from far (list v x)))
(defmethod near (x) (return-from near x))\n(defmethod far ((x (eql 'far))) (return-from far x))
(declaim (ftype (function (t) t) far) (inline far))\n(define-compiler-macro far (x) x)
(defgeneric far (x) (:method ((x t)) (return-from far x)))
(setf (far 1) 2 (far 3) 4)\n(incf (far 1))\n(push 1 (far 2))\n#'(setf far)\n(trace far)\n(fdefinition '(setf far))
(documentation 'far 'function)\n(compile 'far)\n(handler-bind ((error #'far) (warning 'far)) (far 1))",
        )],
        "away",
        Options::default(),
        expect![[r##"
            compiler macro
            (defun away (x) (when x (return-from away 1)) (block far (return-from far 2)))
            (defun (setf away) (v x) (return-from away (list v x)))
            (defmethod near (x) (return-from near x))
            (defmethod away ((x (eql '?away))) (return-from away x))
            (declaim (ftype (function (t) t) away) (inline away))
            (define-compiler-macro away (x) x)
            (defgeneric away (x) (:method ((x t)) (return-from away x)))
            (setf (away 1) 2 (away 3) 4)
            (incf (away 1))
            (push 1 (away 2))
            #'(setf away)
            (trace away)
            (fdefinition '(setf away))
            (documentation 'away 'function)
            (compile 'away)
            (handler-bind ((error #'away) (warning 'away)) (away 1))
        "##]],
    );
}

#[test]
fn a_special_variable_within_a_macro_call() {
    for text in ["(defvar *x* 1)\n(with-thing (y) (list *x‸*))", "(defvar *x* 1)\n(deftest t1 (list *x*‸))"] {
        let found = renamed(text, "*new*", &FixedExpander(None));
        assert_eq!(found, format!("variable: {}\n", text.replace('‸', "").replace("*x*", "*new*")));
    }
}
