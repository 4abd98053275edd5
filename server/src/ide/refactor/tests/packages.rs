//! Exports, prefixes and package definitions.

use expect_test::expect;

use super::*;

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
        expected.assert_eq(&refactored(&[("a.lisp", text), package], id));
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
