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

#[test]
fn a_name_that_is_inherited_needs_no_import() {
    let packages = "(defpackage shop (:use :cl) (:export #:price))\n(defpackage shop-user (:use :cl :shop))\n";
    check(
        &format!("{packages}(in-package shop-user)\n(list (shop:pri‸ce x) (price x))"),
        "drop-prefix",
        expect![[r#"
            Drop the prefix of price
            (defpackage shop (:use :cl) (:export #:price))
            (defpackage shop-user (:use :cl :shop))
            (in-package shop-user)
            (list (price x) (price x))
        "#]],
    );
    let other = refactored(
        &[("a.lisp", &format!("{packages}(in-package shop-user)\n(list (shop:co‸st x) (cost x))"))],
        "drop-prefix",
    );
    assert!(other.contains("refused: cost without a prefix is another symbol"), "{other}");
}

#[test]
fn a_prefix_is_changed_to_the_local_nickname() {
    check(
        "(defpackage a (:use :cl) (:local-nicknames (:s :shop)))\n(in-package a)\n(list (shop:pri‸ce x) 'shop::cost (s:price y))",
        "use-nickname",
        expect![[r#"
            Write s: for shop: throughout this file
            (defpackage a (:use :cl) (:local-nicknames (:s :shop)))
            (in-package a)
            (list (s:price x) 's::cost (s:price y))
        "#]],
    );
}

#[test]
fn a_package_definition_that_is_not_open_is_changed_too() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("package.lisp");
    let definition = "(defpackage :app\n  (:use :cl))\n";
    std::fs::write(&path, definition).unwrap();
    let image = FakeImage::absent().closed_file(&path, definition);
    let text = [("a.lisp", "(in-package :app)\n(defun f ())")];
    let cursor = Cursor::new(context(image, &text), "file:///no/a.lisp", |_| 25).unwrap();
    let done = run(apply(&cursor, Span { start: 25, end: 25 }, "export", &FakeCompiler(Some(&[])))).unwrap();
    let file = &done.files[0];
    assert_eq!((file.path.as_deref(), file.open), (Some(path.as_path()), false));
    assert_eq!(file.changes[0].by, "\n  (:export :f)");
}
