//! Programs whose meaning a refactoring could change. The refactoring is refused with the reason,
//! or keeps the meaning.

use super::*;

/// Asserts that the refactoring `id` of each text is refused for the reason beside it.
fn assert_refused(id: &str, cases: &[(&str, &str)]) {
    let wrong: Vec<String> =
        cases.iter().filter_map(|(text, reason)| refusal_failure(&[("a.lisp", text)], id, reason)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns a message unless the refactoring `id` of the first file is refused for `reason`.
fn refusal_failure(files: &[(&str, &str)], id: &str, reason: &str) -> Option<String> {
    let found = refactored(files, id);
    let refused = found.contains("refused: ") && found.contains(reason);
    (!refused).then(|| format!("{id}: {files:?}\nwanted: {reason}\n{found}"))
}

fn assert_refused_in_files(files: &[(&str, &str)], id: &str, reason: &str) {
    assert_eq!(refusal_failure(files, id, reason), None);
}

/// Asserts that each text, after the refactoring `id`, contains the string beside it.
fn assert_results(id: &str, cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let found = refactored(&[("a.lisp", text)], id);
        if found.contains("refused: ") || !found.contains(expected) {
            wrong.push(format!("{id}: {text}\nwanted: {expected}\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn data_and_other_forms_are_not_code() {
    let data = [
        "'(a (‸if x y z))",
        "`(a (‸if x y z))",
        "(case x ((‸if y z w) 1))",
        "(defun f (‸if x y z) 1)",
        "(let ((‸if x)) 1)",
        "(defstruct s (‸if x y z))",
        "(defun f () (declare (‸if x y z)) 1)",
        "(destructuring-bind (‸if x y z) a b)",
        "(flet ((‸if (x) y z)) 1)",
        "#.(‸if x y z)",
        "(defmacro data (x) `',x)\n(data (‸if x y z))",
        "(list #+sbcl (‸if x y z))",
    ];
    for text in data {
        let found = refactored(&[("a.lisp", text)], "invert-if");
        assert!(found.contains("refused: ") || found.contains("not offered"), "{text}\n{found}");
        let text = text.replace("‸if x y z", "‸let ((x 1) (y 2)) z");
        let found = refactored(&[("a.lisp", &text)], "let-to-let-serial");
        assert!(found.contains("refused: ") || found.contains("not offered"), "{text}\n{found}");
    }
    assert_results("invert-if", &[("(defmacro m (x) (‸if x 1 2))", "(if (not x) 2 1)")]);
    // A macro of another file.
    let data = ("m.lisp", "(defmacro data (x) `',x)");
    assert_refused_in_files(&[("a.lisp", "(data (‸if x y z))"), data], "invert-if", "not known how data evaluates it");
    assert_refused_in_files(
        &[("a.lisp", "(list (data «(g x)»))"), data],
        "extract-variable",
        "not known how data evaluates it",
    );
}

#[test]
fn names_that_are_not_the_standards_are_refused() {
    let package = |options: &str| format!("(defpackage :a (:use :cl) {options})");
    let text = "(in-package :a)\n(defun f (x) (‸if x 1 2))";
    for options in ["(:shadow #:if)", "(:shadowing-import-from :b #:if)", "(:shadow \"IF\")"] {
        let package = package(options);
        assert_refused_in_files(
            &[("a.lisp", text), ("p.lisp", &package)],
            "invert-if",
            "if is not the standard's here",
        );
    }
    assert_refused_in_files(
        &[("a.lisp", text), ("p.lisp", "(defpackage :a (:use :b))")],
        "invert-if",
        "is not the standard's here",
    );
    assert_refused("invert-if", &[("(defun f (x) (b:‸if x 1 2))", "b:if is not the standard's here")]);
    assert_refused("invert-if", &[("(in-readtable :x)\n(defun f (x) (‸if x 1 2))", "in-readtable changes how")]);
    assert_refused("invert-if", &[("(defun f (x) (‸if #1=x #1# 2))", "labels")]);
    assert_results("invert-if", &[("(defun f (x) (cl:‸if x 1 2))", "(not x) 2 1)")]);
    // The current package is that of the last in-package form before the place.
    let mixed = "(in-package :b)\n(in-package :a)\n(defun f (x) (‸if x 1 2))";
    let package = package("(:shadow #:if)");
    assert_refused_in_files(&[("a.lisp", mixed), ("p.lisp", &package)], "invert-if", "if is not the standard's here");
    let mixed = "(in-package :a)\n(in-package :b)\n(defun f (x) (‸if x 1 2))";
    let found = refactored(&[("a.lisp", mixed), ("p.lisp", &package)], "invert-if");
    assert!(found.contains("(if (not x) 2 1)"), "{found}");
}

#[test]
fn extracting_a_variable_keeps_order_count_and_values() {
    assert_refused(
        "extract-variable",
        &[
            ("(defun f (x) (nth-value 1 «(floor x 2)»))", "all of its values"),
            ("(defun f (x) (incf (getf «(plist x)» :a)))", "not known how incf evaluates it"),
            ("(defun f (x) (setf (ldb (byte 1 0) «(slot x)») 1))", "not known how setf evaluates it"),
            ("(define-setf-expander last-of (x) x)\n(defun f (x) (setf (last-of «(g x)») 1))", "not known how setf"),
            ("(defun f (x) (loop (dolist (y (h «(or x (return 1))»)) y)))", "return means something only where"),
            ("(defmethod f (x) (list 1 «(call-next-method)»))", "call-next-method means something only where"),
            ("(defun f (x) (with-slots (a) x (list a «(g x)»)))", "a is evaluated before it"),
            ("(defun f (x) (list (print x) «(/ 1 x)»))", "(print x) is evaluated before it"),
            ("(defun f (x) (list *x* «(g x)»))", "*x* is evaluated before it"),
            ("(let ((*x* 1)) (let ((*x* 2)) (list *x* «(g)»)))", "*x* is evaluated before it"),
            ("(defun f (x) (case x («(g x)» 1)))", "not known how case evaluates it"),
            ("(defun f (x) (format nil `(a «(g x)»)))", "it is data"),
            ("(defun f (x) (loop for (a «(g b)») in x collect a))", "not known how loop evaluates it"),
        ],
    );
    assert_results(
        "extract-variable",
        &[
            ("(defun f (x) (incf (aref «(g x)» 1)))", "(let ((value (g x)))"),
            ("(defun f (x) (lambda (y) (list «(g y)»)))", "(lambda (y) (let ((value (g y)))"),
            ("(defun f (x) (and x (list «(g x)»)))", "(and x (let ((value (g x)))"),
            ("(defun f (x) (loop for y in x collect (list «(g y)»)))", "collect (let ((value (g y)))"),
            // The name is taken by a special variable.
            ("(defvar thing 1)\n(defun f (x) (list «(make-thing x)»))", "(let ((thing-2 (make-thing x)))"),
            ("(defun f (thing) (list «(make-thing thing)»))", "(let ((thing-2 (make-thing thing)))"),
            // Strings are kept as they are.
            ("(defun f (x)\n  (list «(g x)» \"a\n b\n   c\"))", "\"a\n b\n   c\""),
        ],
    );
    let other = ("v.lisp", "(defparameter thing 1)");
    let found = refactored(&[("a.lisp", "(defun f (x) (list «(make-thing x)»))"), other], "extract-variable");
    assert!(found.contains("(let ((thing-2 (make-thing x)))"), "{found}");
}

#[test]
fn extracting_a_function_keeps_variables_and_exits() {
    assert_refused(
        "extract-function",
        &[
            ("(defun f (n) (push «(lambda () n)» *fs*) (incf n))", "a closure in it has n"),
            ("(defun f (n) (let ((g (lambda () (incf n)))) «(list (funcall g) n)»))", "a closure assigns to n"),
            ("(defun f (xs) (loop for x in xs collect «(lambda () x)»))", "a closure in it has x"),
            ("(defun f (n) «(setf (values n m) (floor 1 2))»)", "it assigns to n"),
            ("(defun f (n) «(setf (getf n :a) 1)»)", "it assigns to n"),
            ("(defun f (n) «(setf (ldb (byte 1 0) n) 1)»)", "it assigns to n"),
            ("(defun f (n) «(check-type n fixnum)»)", "it assigns to n"),
            ("(defun f (n) «(multiple-value-setq (n m) (g))»)", "it assigns to n"),
            ("(defun f (n) «(appendf n (g))»)", "it assigns to n"),
            ("(defun f (x) (with-slots (a) x «(list a (g))»))", "a stands for a form"),
            ("(defun f (x) (symbol-macrolet ((a (g x))) «(list a)»))", "symbol-macrolet around it"),
            ("(defun f (x) (macrolet ((m () 'x)) «(list (m))»))", "macrolet around it"),
            ("(defmethod f (x) «(apply #'call-next-method (list x))»)", "call-next-method means something only where"),
            ("(defun f (x) (loop «(loop named a do (return x))»))", "it leaves the block NIL"),
            ("(defun f (x) (let ((*y* x)) «(list *y* (g))»))", "whether *y* is a special variable"),
            ("(eval-when (:compile-toplevel) (defun f (x) «(g x)»))", "eval-when around it"),
            ("(defun f (x) (aif (g x) «(list it)»))", "nothing tells what binds it"),
            ("(defun f (x) (declare (special x)) «(list y)»)", "nothing tells what binds y"),
            ("(defun f (x) (declare (special x)) «(list x)»)", "whether x is a special variable"),
        ],
    );
    assert_results(
        "extract-function",
        &[
            ("(defun f (n) (incf n) «(list n)» (incf n))", "(defun f-part (n)"),
            ("(defvar *y* 1)\n(defun f (x) (let ((*y* x)) «(list *y* (g))»))", "(defun f-part ()"),
            ("(defun f (|Odd name|) «(list |Odd name|)»)", "(defun f-part (|Odd name|)"),
            ("(defun f-part () 1)\n(defun f (x) «(list x)»)", "(defun f-part-2 (x)"),
            ("(defun f (x) «(g \"a\n b\n   c\" x #| d\n e |#)»)", "(g \"a\n b\n   c\" x #| d\n e |#)"),
            ("(defun f (x) «(g x #+sbcl x)»)", "(g x #+sbcl x)"),
        ],
    );
    let other = ("b.lisp", "(defmacro f-part (x) x)");
    let found = refactored(&[("a.lisp", "(defun f (x) «(list x)»)"), other], "extract-function");
    assert!(found.contains("(defun f-part-2 (x)"), "{found}");
}

#[test]
fn inlining_keeps_order_count_and_objects() {
    assert_refused(
        "inline-variable",
        &[
            ("(let ((*x*‸ 1)) (g *x*))", "may be a special variable"),
            ("(defvar x 2)\n(let ((x‸ 1)) (g x))", "may be a special variable"),
            ("(let ((x‸ 1)) (locally (declare (special x)) (g x)))", "may be a special variable"),
            ("(let ((x‸ '(1 2))) (eq x x))", "its value is one object"),
            ("(let ((x‸ \"a\")) (eq x x))", "its value is one object"),
            ("(let ((x‸ (/ a b))) (print 1) (list x))", "is used later or not always"),
            ("(defun f (a) (let ((x‸ (+ a 1))) (handler-case (g x) (error () 0))))", "is used later or not always"),
            ("(defun f (a) (let ((x‸ (/ a 0))) (g)))", "may have an effect or signal an error"),
            ("(let ((x‸ (g)) (*p* 2)) (list x))", "a special variable is bound beside it"),
            ("(let* ((x‸ (g)) (*p* 2)) (list x))", "a special variable is bound beside it"),
            ("(loop (let ((x‸ (or (g) (return 5)))) (dolist (y x) (h y))))", "return means something only where"),
            ("(defun f () (let ((x‸ 1)) (macrolet ((m () 'x)) (list (m) x))))", "macrolet may use x too"),
            ("(let ((x‸ 1)) (g x p::x))", "p::x may use x too"),
            ("(let ((x‸ (g))) (lambda () x))", "is used later or not always"),
            ("(let ((x‸ (g))) (dotimes (i 3) (h x)))", "is used later or not always"),
            ("(let ((x‸ (g))) (when (h) x))", "is used later or not always"),
            ("(let ((old‸ #'g)) (setf (fdefinition 'g) 1) (funcall old))", "is used later or not always"),
            ("(defun f (a) (let ((x‸ a)) (setf (getf a :k) 1) (list x)))", "is used later or not always"),
            ("(defun f (a) (let ((x‸ a)) (setf (values a b) (g)) (list x)))", "is used later or not always"),
            ("(defun f (a) (let ((x‸ a)) (check-type a fixnum) (list x)))", "is used later or not always"),
            ("(let ((*a* 1)) (let ((x‸ *a*)) (g) (list x)))", "is used later or not always"),
            ("(defun f (o) (with-slots (a) o (let ((x‸ a)) (g) (list x))))", "is used later or not always"),
            ("(let ((x‸ 1)) (defmacro m () x) 2)", "would become a top-level form"),
            ("(let ((x‸ 1)) `(a ,x))", "cannot be written"),
            ("(let ((x‸ (g))) (loop for y in (list x) do (h y)))", "is used later or not always"),
        ],
    );
    assert_results(
        "inline-variable",
        &[
            ("(defun f () (let ((x‸ (floor 7 2))) (nth-value 1 x)))", "(nth-value 1 (values (floor 7 2)))"),
            ("(defun f () (let ((x‸ 1)) \"s\" (g x)))", "(defun f () (progn \"s\" (g 1)))"),
            ("(defun f () (tagbody (let ((x‸ 1)) 5 (g x)) 5))", "(progn 5 (g 1))"),
            ("(defun f () (let ((x‸ 'a)) (eq x x)))", "(eq 'a 'a)"),
            ("(defun f (a) (let ((x‸ (+ a 1))) (list x (lambda () x))))", "(list (+ a 1) (lambda () (+ a 1)))"),
        ],
    );
}

#[test]
fn a_quote_in_a_template_does_not_end_the_code() {
    let inner = "`(list '(g ,b))";
    assert_refused(
        "inline-call",
        &[
            (&format!("(defun f () (run {inner}))\n(defun k (b) (‸f))"), "b in its body means something else"),
            ("(defun f () (run `('(,(return-from f 1)))))\n(defun k () (‸f))", "it returns from f"),
            ("(defun f (y) (run `('(,(return y)))))\n(defun k (b) (‸f b))", "it leaves the block NIL"),
        ],
    );
    assert_refused(
        "inline-local-function",
        &[(&format!("(defun k (b) (flet ((f‸ () (run {inner}))) (let ((b 2)) (f))))"), "b in its body means another")],
    );
    assert_refused(
        "extract-variable",
        &[("(loop (g «(h `('(,(return 1))))»))", "return means something only where it is")],
    );
    assert_refused(
        "extract-variable-all",
        &[("(defun f (x) (g (‸+ x 1)) (list `('(,(setf x 2)))) (g (+ x 1)))", "x may be assigned between them")],
    );
    assert_refused(
        "let-to-let-serial",
        &[("(macrolet ((c () 'a)) (‸let ((a 1) (b `('(,(c))))) (h b)))", "c may use a variable")],
    );
}

#[test]
fn conditionals_keep_values_and_what_the_reader_skips() {
    assert_results(
        "if-to-cond",
        &[
            // A clause `(x)` without forms would return the value of x.
            ("(‸if x (progn #+nil (g)) 2)", "(cond (x (progn #+nil (g)))"),
            ("(‸if x (progn #+nil (g) (h)) 2)", "#+nil (g) (h))"),
        ],
    );
    assert_results("invert-if", &[("(‸if (not #+a x) 1 2)", "(if (not (not #+a x)) 2 1)")]);
    for (id, text) in [
        ("cond-to-if", "(‸cond (x) (t 1))"),
        ("cond-to-if", "(‸cond (x 1) #+a (y 2) (t 3))"),
        ("if-to-cond", "(‸if x #+a 1 #-a 2 3)"),
        ("when-to-if", "(‸when x #+a (g))"),
    ] {
        let found = refactored(&[("a.lisp", text)], id);
        assert!(found.contains("not offered"), "{text}\n{found}");
    }
    assert_refused("invert-if", &[("(‸if (not ; why\n x) 1 2)", "the comment ; why would be lost")]);
}

#[test]
fn bindings_keep_what_their_values_see() {
    assert_refused(
        "let-to-let-serial",
        &[
            ("(‸let ((*a* 1) (b (g))) (h b))", "*a* may be a special variable"),
            ("(defvar a 1)\n(‸let ((a 1) (b (g))) (h b))", "a may be a special variable"),
            ("(‸let ((a 1) (b (g))) (declare (special a)) (h b))", "a may be a special variable"),
            ("(symbol-macrolet ((c a)) (‸let ((a 1) (b c)) (h b)))", "c may use a variable"),
            ("(macrolet ((c () 'a)) (‸let ((a 1) (b (c))) (h b)))", "c may use a variable"),
            ("(defmacro c () 'a)\n(‸let ((a 1) (b (c))) (h b))", "c may use a variable"),
            ("(‸let ((a 1) (b a)) (h b))", "a value has the name"),
        ],
    );
    assert_refused(
        "let-serial-to-let",
        &[("(‸let* ((*a* 1) (b (g))) (h b))", "special"), ("(‸let* ((a 1) (b (g a))) (h b))", "a value has the name")],
    );
    assert_refused(
        "merge-let",
        &[
            ("(‸let ((*a* 1)) (let ((b (g))) (h b)))", "special"),
            ("(‸let ((a 1)) (let ((b 2)) (declare (ignorable a)) (h b)))", "a declaration inside"),
            ("(‸let ((a 1)) (let ((b 2)) (declare (special a)) (h b)))", "special"),
            ("(‸let ((a 1)) (let ((a 2)) (h a)))", "bound twice"),
        ],
    );
    assert_refused("split-let", &[("(let ((*a* 1) (b‸ (g))) (h b))", "special")]);
    assert_results("split-let", &[("(let* ((*a* 1) (b‸ (g))) (h b))", "(let* ((*a* 1))")]);
}

#[test]
fn prefixes_leave_features_and_nicknames_alone() {
    let package = ("p.lisp", "(defpackage :app (:use :cl) (:import-from :lib #:scan))");
    let text = "(in-package :app)\n(list (sc‸an 1) #+scan 2 #-(or scan x) 3 \"scan\" :scan #:scan)";
    let found = refactored(&[("a.lisp", text), package], "add-prefix");
    let expected = "(list (lib:scan 1) #+scan 2 #-(or scan x) 3 \"scan\" :scan #:scan)";
    assert!(found.contains(expected), "{found}");
    let package = ("p.lisp", "(defpackage :app (:use :cl) (:local-nicknames (:l :lib)))");
    assert_refused_in_files(&[("a.lisp", "(in-package :app)\n(l:sc‸an 1)"), package], "drop-prefix", "a nickname");
}

#[test]
fn an_export_that_another_file_uses_stays() {
    let package = ("p.lisp", "(defpackage :app (:use :cl) (:export #:g))");
    let text = ("a.lisp", "(in-package :app)\n(defun ‸g ())");
    assert_refused_in_files(
        &[text, package, ("b.lisp", "(in-package :b)\n(app:g)")],
        "do-not-export",
        "app:g is written",
    );
    let found = refactored(&[text, package, ("b.lisp", "(in-package :b)\n(app::g)")], "do-not-export");
    assert!(found.contains("(:export))"), "{found}");
}

#[test]
fn clauses_are_no_assigned_places() {
    let clauses = "(a 1) (b 2) (c 3) (d 4) (e 5) (g 6) (h 7) (i 8) (values y)";
    for operator in ["ccase", "ctypecase"] {
        let text = format!("(defun f (x y) (let ((v‸ y)) ({operator} x {clauses}) (list v)))");
        assert_results("inline-variable", &[(&text, "(list y)")]);
        let text = format!("(defun f (x y) (let ((v‸ x)) ({operator} x {clauses}) (list v)))");
        assert_refused("inline-variable", &[(&text, "may have an effect or change")]);
    }
}

#[test]
fn a_name_of_a_package_that_nobody_knows_may_be_a_macro() {
    let text = |uses: &str| {
        format!(
            "(defpackage app-test (:use :cl {uses}) (:import-from :util #:mapped))\n(in-package app-test)\n(defun test ()\n  (is (equal (f‸oo 1) (foo 2))))"
        )
    };
    let refused = |files: &[(&str, &str)]| {
        let (cursor, selection) = place(files);
        let all = run(offers(&cursor, selection));
        all.into_iter().find(|offer| offer.id == "extract-variable").unwrap().refused
    };
    let unknown = text("fiveam");
    assert_eq!(
        refused(&[("a.lisp", &unknown)]).as_deref(),
        Some("it is not known how is, which neither the workspace nor the image defines, evaluates it")
    );
    let library = ("b.lisp", "(defpackage fiveam (:use :cl) (:export #:is))");
    assert_eq!(refused(&[("a.lisp", &unknown), library]), None);
    assert_eq!(refused(&[("a.lisp", &text(""))]), None);
    let defined = ("b.lisp", "(in-package app-test)\n(defun is (x) x)");
    assert_eq!(refused(&[("a.lisp", &unknown), defined]), None);
    for made in ["box-x", "make-box", "box-p"] {
        let calling = unknown.replace("(is (", &format!("({made} ("));
        let structure = ("b.lisp", "(in-package app-test)\n(defstruct box x)");
        assert_eq!(refused(&[("a.lisp", &calling), structure]), None, "{made}");
    }
    let prefixed = unknown.replace("(is (", "(fiveam:is (");
    assert!(refused(&[("a.lisp", &prefixed)]).is_some());
    let imported = text("").replace("(is (", "(mapped (");
    assert!(refused(&[("a.lisp", &imported)]).is_some());
}
