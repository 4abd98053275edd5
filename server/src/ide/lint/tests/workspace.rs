//! Tests of rules that need the other texts of the workspace.

use super::*;

const PACKAGES: &str = "(defpackage :lib (:use :cl) (:export #:public #:*public* #:open #:make-open))
(defpackage :user (:use :cl :lib))";

#[test]
fn definitions_that_nothing_uses_are_told() {
    let text = r#"(in-package :lib)
(defun public () 1)
(defun lonely () (lonely))
(defun helper () 1)
(defun caller () (helper))
(caller)
(defvar *lonely* 1)
(defmacro in-string () 1)
(print "see LIB::IN-STRING")
(defun elsewhere () 1)
(defun (setf place) (v) v)
(defun (setf used-place) (v) v)
(setf (used-place) 1)
(defclass lonely-class () ())
(defstruct dot x)
(defstruct line from)
(print (line-from 1))
(defstruct open x)
(defmethod a-method ((x t)) 1)
(deftest a-test 1)
(defun lib2::other () 1)
(define-symbol-macro lonely-too 1) ; lonely-too
#+(or) (defun guarded () 1)
#+(or) (defun called-behind-a-guard () 1)
#+clisp (called-behind-a-guard)
(let ((x 1)) (defun closed () x))
(defun silenced () 1) ; consort: ignore unused-definition
"#;
    let files =
        [("/no/a.lisp", text), ("/no/b.lisp", "(in-package :user)\n(lib::elsewhere)"), ("/no/p.lisp", PACKAGES)];
    let expected = [
        "3 lint-unused-definition lonely",
        "7 lint-unused-definition *lonely*",
        "11 lint-unused-definition (setf place)",
        "14 lint-unused-definition lonely-class",
        "15 lint-unused-definition dot",
        "22 lint-unused-definition lonely-too",
        "23 lint-unused-definition guarded",
        "26 lint-unused-definition closed",
    ];
    let rules = wanted(&["unused-definition"]);
    assert_eq!(among(&files, &rules), expected);
    // A package that no text defines may export everything.
    assert_eq!(among(&files[..2], &rules), Vec::<String>::new());
    assert_eq!(among(&[("/no/a.ros", text), files[2]], &rules), Vec::<String>::new());
    let mut index = snapshot(&files);
    index.incomplete = Some("a file cannot be read".into());
    let document = Document::new(text, 0);
    assert_eq!(check(&document, Some(Path::new("/no/a.lisp")), &rules, &index), []);
    assert_eq!(check(&document, None, &rules, &snapshot(&files)), []);
}

#[test]
fn local_functions_with_the_name_of_a_global_one_are_told() {
    let text = "(in-package :user)
(defun local () 1)
(defun f () (flet ((local () 1) (public () 1) (other () 1)) (local)))
(labels ((private () 1)) '(flet ((local () 1))))
";
    let files = [
        ("/no/a.lisp", text),
        ("/no/b.lisp", "(in-package :lib)\n(defun public () 1)\n(defun private () 1)\n(defvar other 1)"),
        ("/no/p.lisp", PACKAGES),
    ];
    let expected = ["3 lint-shadowed-function local", "3 lint-shadowed-function public"];
    assert_eq!(among(&files, &wanted(&["shadowed-function"])), expected);
}

const PACKAGE: &str = r#"(defpackage :app
  (:use :cl)
  (:import-from :lib #:used #:unused #:handed-on #:tested #:prefixed)
  (:import-from :gone #:one #:two)
  (:export #:handed-on #:outside "STRING" #:inside #:nothing #:qualified))
(defpackage :test (:use :cl :app) (:import-from :app #:tested))
(in-package :app)
(defun inside () (inside))
"#;

#[test]
fn names_of_packages_that_nothing_uses_are_told() {
    let files = [
        ("/no/p.lisp", PACKAGE),
        ("/no/a.lisp", "(in-package :app)\n(defun f () (used) (nothing)) ; two"),
        ("/no/t.lisp", "(in-package :test)\n(print '(outside app:qualified))\n(app::prefixed)"),
        ("/no/u.lisp", "(in-package :test)\n(unused \"string\")"),
    ];
    assert_eq!(
        among(&files, &wanted(&["unused-export", "unused-import"])),
        [
            "3 lint-unused-import #:unused",
            "4 lint-unused-import #:one",
            "5 lint-unused-export #:handed-on",
            "5 lint-unused-export #:inside",
            "5 lint-unused-export #:nothing",
        ]
    );
    // The exports of a package that the workspace does not use are for users outside of the
    // workspace.
    assert_eq!(among(&files[..2], &wanted(&["unused-export"])).len(), 0);
    // A text without `in-package` may belong to any package.
    let loose = [files[0], files[1], files[2], files[3], ("/no/l.lisp", "(unused) (one) (nothing)")];
    assert_eq!(
        among(&loose, &wanted(&["all"]))
            .into_iter()
            .filter(|one| one.contains("export") || one.contains("import"))
            .collect::<Vec<_>>(),
        ["5 lint-unused-export #:handed-on", "5 lint-unused-export #:inside"]
    );
}

#[test]
fn long_lists_without_order_are_told() {
    let names = |names: &str| format!("(defpackage :p (:use :z :a) (:export {names}))");
    let long = "#:b #:a #:c #:d #:e #:f #:g #:h #:i #:j";
    let rules = ["unsorted-names"];
    assert_eq!(found(&names(long), &rules), ["1 lint-unsorted-names :export"]);
    assert_eq!(found(&names(&long.replace("#:b #:a", "#:a #:b")), &rules).len(), 0);
    assert_eq!(found(&names("#:b #:a"), &rules).len(), 0);
    assert_eq!(found(&names(&long.replace("#:c", "; these\n #:c")), &rules).len(), 0);
}

#[test]
fn packages_that_use_each_other_are_told() {
    let text = "(defpackage :a (:use :cl :b :e))
(defpackage :b (:use :cl :c))
(defpackage :c (:use :cl :a-nick))
(defpackage :d (:use :d :a))
(defpackage :e (:use :cl))
";
    let other = "(defpackage :a (:nicknames :a-nick) (:use :cl :b :e))";
    let files = [("/no/p.lisp", text), ("/no/q.lisp", other)];
    let messages = |files: &[(&str, &str)]| -> Vec<String> {
        let document = Document::new(text, 0);
        let found = check(&document, Some(Path::new("/no/p.lisp")), &wanted(&["package-cycle"]), &snapshot(files));
        found.into_iter().map(|one| one.message).collect()
    };
    assert_eq!(
        messages(&files),
        [
            "b uses a too, by way of other packages.",
            "c uses b too, by way of other packages.",
            "a uses c too, by way of other packages.",
            "d uses itself.",
        ]
    );
    assert_eq!(messages(&files[..1]), ["d uses itself."]);
    let both = found("(defpackage :x (:use :y))\n(defpackage :y (:use :x))", &["package-cycle"]);
    assert_eq!(both, ["1 lint-package-cycle :y", "2 lint-package-cycle :x"]);
}
