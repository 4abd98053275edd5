#![allow(clippy::unwrap_used, reason = "a test may fail")]

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::ide::fake::{FakeImage, cursor, definition, run, shown};

fn check(image: FakeImage, text: &str, with_declaration: bool, expected: Expect) {
    let other = "(defun user (y)\n  (far y))\n(defun far (x) x)";
    let cursor = cursor(image, &[("a.lisp", text), ("b.lisp", other)]);
    let mut found = run(at(&cursor, with_declaration)).unwrap_or_default().targets;
    // The order of open texts is not defined.
    found.sort_by_key(|target| (target.uri.clone(), target.span.start));
    expected.assert_eq(&shown(&found));
}

fn image() -> FakeImage {
    let by = json!({"kind": "calls", "by": "user", "by_kind": "function", "file": "/no/b.lisp", "form": 0});
    let answer =
        json!({"found": true, "definitions": [definition("function", "far", "b.lisp", 1)], "references": [by]});
    FakeImage::empty().symbol("far", answer)
}

/// Returns the references in these files without the declaration, in order.
fn references(image: FakeImage, files: &[(&str, &str)]) -> String {
    let mut found = run(at(&cursor(image, files), false)).expect("there is a name").targets;
    found.sort_by_key(|target| (target.uri.clone(), target.span.start));
    shown(&found)
}

/// Checks for the calls in LIB, in a package that uses it, and with its prefix.
fn check_users_of_lib(found: &str) {
    expect![[r#"
        a.lisp:2
        (far 1)
         ^^^
        b.lisp:2
        (far 2)
         ^^^
        c.lisp:3
        (lib:far 4)
         ^^^^^^^
    "#]]
    .assert_eq(found);
}

#[test]
fn a_local_name_has_its_occurrences() {
    check(
        image(),
        "(defun f (far)\n  (g f‸ar)\n  (far far))",
        true,
        expect![[r#"
        a.lisp:1
        (defun f (far)
                  ^^^
        a.lisp:2
          (g far)
             ^^^
        a.lisp:3
          (far far))
               ^^^
    "#]],
    );
    check(
        image(),
        "(defun f (far)\n  (g f‸ar))",
        false,
        expect![[r#"
        a.lisp:2
          (g far))
             ^^^
    "#]],
    );
}

#[test]
fn a_name_with_a_parenthesis_is_found_in_a_file_that_is_not_open() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("b.lisp");
    let text = "(defpackage :app (:use :cl))\n(in-package :app)\n(list (|a(| 1) (\\a\\( 2))\n";
    std::fs::write(&file, text).unwrap();
    let image = FakeImage::absent().closed_file(&file, text);
    expect![[r#"
        b.lisp:3
        (list (|a(| 1) (\a\( 2))
               ^^^^
        b.lisp:3
        (list (|a(| 1) (\a\( 2))
                        ^^^^
    "#]]
    .assert_eq(&references(image, &[("a.lisp", "(in-package :app)\n(defun |‸a(| (x) x)")]));
}

#[test]
fn references_of_global_names_say_that_the_index_is_incomplete() {
    let why = |text: &str| {
        let cursor = cursor(image().incomplete("/no/c.lisp is large"), &[("a.lisp", text)]);
        run(at(&cursor, true)).unwrap().incomplete
    };
    assert_eq!(why("(fa‸r 1)").as_deref(), Some("/no/c.lisp is large"));
    assert_eq!(why("(defun f (far‸) far)"), None);
}

#[test]
fn a_global_name_has_those_of_the_image_and_of_the_open_texts() {
    check(
        image(),
        "(fa‸r 1)\n(let ((far 1)) far)",
        true,
        expect![[r#"
        a.lisp:1
        (far 1)
         ^^^
        b.lisp:2
          (far y))
           ^^^
        b.lisp:3
        (defun far (x) x)
               ^^^
    "#]],
    );
    check(
        image(),
        "(fa‸r 1)",
        false,
        expect![[r#"
        a.lisp:1
        (far 1)
         ^^^
        b.lisp:2
          (far y))
           ^^^
    "#]],
    );
    check(
        FakeImage::absent(),
        "(fa‸r 1)",
        false,
        expect![[r#"
        a.lisp:1
        (far 1)
         ^^^
        b.lisp:2
          (far y))
           ^^^
    "#]],
    );
}

#[test]
fn names_without_a_prefix_count_in_packages_that_use_the_symbols() {
    let facts = |package: &str| {
        json!({"found": true, "facts": {
            "name": "FAR", "package": package, "external": true, "printed": "far", "kinds": ["function"],
            "lambda_list": null, "type": null, "value": null, "class": null, "documentation": [],
        }})
    };
    let image = FakeImage::empty()
        .symbol("LIB::far", facts("LIB"))
        .symbol("USER-OF-LIB::far", facts("LIB"))
        .symbol("OTHER::far", facts("OTHER"));
    let files = [
        ("a.lisp", "(in-package :lib)\n(fa‸r 1)"),
        ("b.lisp", "(in-package :user-of-lib)\n(far 2)"),
        ("c.lisp", "(in-package :other)\n(far 3)\n(lib:far 4)"),
    ];
    check_users_of_lib(&references(image, &files));
}

/// A test's body has no name of its own, so that the compiler records none of its references.
#[test]
fn bodies_of_tests_refer_too() {
    let tests = "(in-package :lib)\n(test far-away (is (= 1 (far 1))))\n(define-test there (is = 2 (lib:far 2)))\n\
                 (deftest here (ok (far 3)))\n(let ((far 1)) far)\n";
    let facts = json!({"name": "FAR", "package": "LIB", "external": true, "printed": "far",
        "kinds": ["function"], "lambda_list": ["x"], "type": null, "value": null, "class": null, "documentation": []});
    let image = FakeImage::empty().symbol("far", json!({"found": true, "facts": facts}));
    let files = [
        ("a.lisp", "(in-package :lib)\n(fa‸r 0)"),
        ("tests.lisp", tests),
        ("none.lisp", "(in-package :lib)\n(near 1)"),
    ];
    let found = references(image, &files);
    expect![[r#"
        a.lisp:2
        (far 0)
         ^^^
        tests.lisp:2
        (test far-away (is (= 1 (far 1))))
                                 ^^^
        tests.lisp:3
        (define-test there (is = 2 (lib:far 2)))
                                    ^^^^^^^
        tests.lisp:4
        (deftest here (ok (far 3)))
                           ^^^
    "#]]
    .assert_eq(&found);
}

#[test]
fn without_an_image_the_texts_packages_tell_who_means_the_symbol() {
    let files = [
        ("a.lisp", "(in-package :lib)\n(fa‸r 1)"),
        ("b.lisp", "(in-package :user-of-lib)\n(far 2)"),
        ("c.lisp", "(in-package :other)\n(far 3)\n(lib:far 4)"),
        ("p.lisp", "(defpackage :lib (:export :far))\n(defpackage :user-of-lib (:use :lib))\n(defpackage :other)"),
    ];
    let found = references(FakeImage::absent(), &files);
    let (users, exports) = found.split_at(found.find("p.lisp").expect("a mention in p.lisp"));
    check_users_of_lib(users);
    expect![[r#"
        p.lisp:1
        (defpackage :lib (:export :far))
                                   ^^^
    "#]]
    .assert_eq(exports);
}
