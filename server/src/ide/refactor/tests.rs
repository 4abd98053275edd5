use expect_test::{Expect, expect};

use super::*;
use crate::ide::fake::{FakeImage, context, run};
use crate::model::check::{CheckEnd, CheckReport};
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::model::image::ImageError;

/// A compiler that finds these messages in a text that has the word before each.
struct Finds(Option<&'static [(&'static str, &'static str)]>);

impl Compiler for Finds {
    async fn findings(&self, _: &str, _: &Document) -> Option<Vec<Diagnostic>> {
        None
    }

    async fn compile(&self, _: Option<std::path::PathBuf>, text: String) -> Result<CheckReport, ImageError> {
        let all = self.0.ok_or_else(|| ImageError::Unavailable("There is no image.".into()))?;
        let found = all.iter().filter(|(word, _)| text.contains(word));
        let span = Span { start: 0, end: 0 };
        let diagnostics =
            found.map(|(_, message)| Diagnostic::new(span, Severity::StyleWarning, "style", *message)).collect();
        Ok(CheckReport { diagnostics, forms: 1, unloaded_system: None, end: CheckEnd::Complete })
    }
}

/// A cursor, and the selection between `«` and `»` or at `‸` of the first file.
fn place(files: &[(&str, &str)]) -> (Cursor<FakeImage>, Span) {
    let marked = files[0].1;
    let at = |mark| marked.chars().position(|char| char == mark);
    let (start, end) = match at('‸') {
        Some(at) => (at, at),
        None => (at('«').unwrap(), at('»').unwrap() - 1),
    };
    let plain: Vec<(&str, String)> =
        files.iter().map(|(name, text)| (*name, text.replace(['‸', '«', '»'], ""))).collect();
    let plain: Vec<(&str, &str)> = plain.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let context = context(FakeImage::absent(), &plain);
    let cursor = Cursor::new(context, &format!("file:///no/{}", files[0].0), |_| start).unwrap();
    (cursor, Span { start, end })
}

/// The texts after a refactoring; its refusal; or what else is offered.
fn after(files: &[(&str, &str)], id: &str, compiler: &Finds) -> String {
    let (cursor, selection) = place(files);
    let all = run(offers(&cursor, selection));
    let Some(offer) = all.iter().find(|offer| offer.id == id) else {
        return format!("not offered: {:?}\n", all.iter().map(|offer| offer.id).collect::<Vec<_>>());
    };
    let done = match run(carry_out(&cursor, selection, id, compiler)) {
        Ok(done) => done,
        Err(refusal) => return format!("{}\nrefused: {refusal}\n", offer.title),
    };
    let mut out = format!("{}\n", offer.title);
    for file in &done.files {
        let mut text = file.document.text().clone();
        for change in file.changes.iter().rev() {
            text.remove(change.span.start..change.span.end);
            text.insert(change.span.start, &change.by);
        }
        out.push_str(&text.to_string());
        out.push('\n');
    }
    out
}

fn check(text: &str, id: &str, expected: Expect) {
    expected.assert_eq(&after(&[("a.lisp", text)], id, &Finds(Some(&[]))));
}

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
        // The order of effects stays.
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
        // What is no value of its own.
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
            "(defun f (a)\n  (list «(g b *c*)»))",
            expect![[r#"
            Extract function
            (defun f-part ()
              (g b *c*))

            (defun f (a)
              (list (f-part)))
        "#]],
        ),
    ] {
        check(text, "extract-function", expected);
    }
}

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

#[test]
fn names_are_exported_imported_and_sorted() {
    let package = ("package.lisp", "(defpackage :app\n  (:use :cl)\n  (:import-from :lib #:scan)\n  (:export #:g))\n");
    for (id, text, expected) in [
        (
            "export",
            "(in-package :app)\n(defun ‸f ())",
            expect![[r#"
            Export f from app
            (defpackage :app
              (:use :cl)
              (:import-from :lib #:scan)
              (:export #:g #:f))

        "#]],
        ),
        (
            "do-not-export",
            "(in-package :app)\n(defun ‸g ())",
            expect![[r#"
            Do not export g from app
            (defpackage :app
              (:use :cl)
              (:import-from :lib #:scan)
              (:export))

        "#]],
        ),
        (
            "drop-prefix",
            "(in-package :app)\n(list (lib:sp‸lit 1)\n      (lib:split 2) lib::split)",
            expect![[r#"
            Import split from lib and drop its prefix
            (in-package :app)
            (list (split 1)
                  (split 2) lib::split)
            (defpackage :app
              (:use :cl)
              (:import-from :lib #:scan #:split)
              (:export #:g))

        "#]],
        ),
        (
            "drop-prefix",
            "(in-package :app)\n(list (lib:sp‸lit 1) (split 2))",
            expect![[r#"
            Import split from lib and drop its prefix
            refused: split without a prefix is another symbol in this package
        "#]],
        ),
        (
            "add-prefix",
            "(in-package :app)\n(list (sc‸an 1) 'scan scan-it)",
            expect![[r#"
            Write lib:scan throughout this file
            (in-package :app)
            (list (lib:scan 1) 'lib:scan scan-it)
        "#]],
        ),
    ] {
        expected.assert_eq(&after(&[("a.lisp", text), package], id, &Finds(Some(&[]))));
    }
    check(
        "(‸defpackage :a\n  (:export #:c #:a\n           #:b))",
        "sort-package",
        expect![[r#"
            Sort the names of the package definition
            (defpackage :a
              (:export #:a #:b
                       #:c))
        "#]],
    );
    check(
        "(‸defpackage :a\n  (:export #:c ; c\n           #:b))",
        "sort-package",
        expect![[r#"
        Sort the names of the package definition
        refused: comments stand between the names, and it is not known which they are about
    "#]],
    );
}

#[test]
fn what_the_compiler_newly_finds_is_a_refusal() {
    let text = [("a.lisp", "(in-package :a)\n(‸if x (g))")];
    let finds = |all| Finds(Some(all));
    let refused = expect![[r#"
        Write as when
        refused: the result would not compile as before: WHEN is wrong here
    "#]];
    refused.assert_eq(&after(&text, "if-to-when", &finds(&[("when", "WHEN is wrong here")])));
    let fine = expect![[r#"
        Write as when
        (in-package :a)
        (when x (g))
    "#]];
    fine.assert_eq(&after(&text, "if-to-when", &finds(&[("(g)", "undefined function: G")])));
    let (cursor, selection) = place(&text);
    let done = run(carry_out(&cursor, selection, "if-to-when", &Finds(None))).unwrap();
    assert!(done.unproved.unwrap().contains("There is no image."));
}

#[test]
fn line_breaks_stay_as_the_text_has_them() {
    let (cursor, selection) = place(&[("a.lisp", "(defun f (x)\r\n  (bar «(baz x)»))\r\n")]);
    let done = run(carry_out(&cursor, selection, "extract-variable", &Finds(Some(&[])))).unwrap();
    assert_eq!(done.files[0].changes[0].by, "let ((baz (baz x)))\r\n    (bar baz");
}
