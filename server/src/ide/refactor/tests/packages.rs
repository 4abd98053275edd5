//! Tests of exports, prefixes and package definitions.

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

#[test]
fn a_text_is_compiled_with_the_package_that_another_text_defines_anew() {
    let files = [("a.lisp", "(in-package :app)\n(list (lib:sp‸lit 1))"), ("p.lisp", "(defpackage :app (:use :cl))")];
    let (cursor, selection) = place(&files);
    let done = run(apply(&cursor, selection, "drop-prefix", &NeedsImport)).unwrap();
    assert_eq!((done.files.len(), done.not_compiled), (2, None));
}

#[test]
fn texts_that_are_not_open_keep_an_export_and_a_name_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let written = |text: &str| {
        let path = directory.path().join("other.lisp");
        std::fs::write(&path, text).unwrap();
        FakeImage::absent().closed_file(&path, text)
    };
    let package = "(defpackage :app (:use :cl) (:nicknames :ap) (:export #:g))\n(defpackage :user (:use :cl :app))
(defpackage :api (:use :cl :app) (:export #:g))\n(defpackage :own (:use :cl) (:import-from :app #:g) (:export #:g))
(defpackage :via (:use :cl) (:import-from :api #:g))\n(in-package :app)\n";
    let asked = |other: &str, text: &str, id: &str| {
        let text = format!("{package}{text}");
        let at = text.chars().position(|char| char == '‸').unwrap();
        let text = text.replace('‸', "");
        let cursor = Cursor::new(context(written(other), &[("a.lisp", &text)]), "file:///no/a.lisp", |_| at).unwrap();
        let all = run(offers(&cursor, Span { start: at, end: at }));
        all.into_iter().find(|offer| offer.id == id).map(|offer| offer.refused)
    };
    let definition = "(defun ‸g ())";
    for (other, refused) in [
        ("(in-package :user)\n(g)", Some("g is written in user, where it would be another symbol or none")),
        ("(in-package :cl-user)\n(ap:g)", Some("ap:g is written in cl-user, where it would be another symbol or none")),
        (
            "(in-package :cl-user)\n(api:g)",
            Some("api:g is written in cl-user, where it would be another symbol or none"),
        ),
        (
            "(in-package :cl-user)\n(api::g)",
            Some("api::g is written in cl-user, where it would be another symbol or none"),
        ),
        ("(in-package :via)\n(g)", Some("g is written in via, where it would be another symbol or none")),
        ("(in-package :cl-user)\n(list (own:g) (own::g))", None),
        ("(in-package :own)\n(g)", None),
        ("(in-package :cl-user)\n(list (g) (app::g))", None),
        ("(in-package :app)\n(g)", None),
    ] {
        assert_eq!(asked(other, definition, "do-not-export"), Some(refused.map(str::to_owned)), "{other}");
    }
    let call = "(list (lib:spl‸it 1))";
    let refused = Some("split without a prefix is another symbol in this package".to_owned());
    assert_eq!(asked("(in-package :app)\n(defun split ())", call, "drop-prefix"), Some(refused));
    assert_eq!(asked("(in-package :user)\n(defun split ())", call, "drop-prefix"), Some(None));
}

#[test]
fn other_texts_are_read_only_for_a_refactoring_that_depends_on_them() {
    let definition = "(defpackage :app (:use :cl) (:import-from :lib #:scan) (:export #:g))";
    let user = ("b.lisp", "(in-package :app)\n(list (f) (g) (lib:split 1) (lib:scan 1))");
    for (text, read) in [
        ("(in-package :app)\n(defun ‸f ())", 0),
        ("(in-package :app)\n(defun f (‸x) x)", 0),
        ("(in-package :app)\n(list (app:‸g))", 0),
        ("(in-package :app)\n(list (lib:sca‸n 1))", 0),
        ("(in-package :lib)\n(defun split‸ ())", 0),
        // Texts that a site already has are not read again.
        ("(in-package :app)\n(defun ‸g ())", 1),
        ("(in-package :app)\n(list (lib:sp‸lit 1))", 1),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let image = FakeImage::absent()
            .closed_file(&file("package.lisp", definition), definition)
            .closed_file(&file("user.lisp", user.1), user.1);
        let at = text.chars().position(|char| char == '‸').unwrap();
        let plain = text.replace('‸', "");
        let cursor = Cursor::new(context(image, &[("a.lisp", &plain)]), "file:///no/a.lisp", |_| at).unwrap();
        let facts = run(Facts::gather(&cursor, Span { start: at, end: at }, IMAGE_TIMEOUT)).unwrap();
        assert_eq!(facts.site().users.map(<[_]>::len), Some(read), "{text}");
    }
}

#[test]
fn an_internal_name_gets_two_colons() {
    check(
        "(defpackage :lib (:use :cl))\n(defpackage :app (:use :cl) (:import-from :lib #:scan))\n(in-package :app)\n(sc‸an 1)",
        "add-prefix",
        expect![[r#"
            Write lib::scan throughout this file
            (defpackage :lib (:use :cl))
            (defpackage :app (:use :cl) (:import-from :lib #:scan))
            (in-package :app)
            (lib::scan 1)
        "#]],
    );
}
