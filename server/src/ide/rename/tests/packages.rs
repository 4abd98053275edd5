//! Tests of the renaming of packages, nicknames and local nicknames.

use expect_test::expect;

use super::*;

const LIB: &str = "(defpackage #:lib (:use :cl) (:nicknames #:l) (:export #:lib #:f))";

#[test]
fn a_package_is_renamed_wherever_it_is_named() {
    global(
        &[
            (
                "a.lisp",
                "(defpackage #:li‸b (:use :cl) (:nicknames #:l) (:export #:lib #:f))\n(in-package #:lib)\n(defun f (lib) lib)",
            ),
            (
                "b.lisp",
                "(uiop:define-package :app (:use :cl :lib) (:import-from \"LIB\" #:f) (:local-nicknames (:o :lib) (:lib2 :l)) (:export #:lib))\n\
                 (in-package :app)\n\
                 (list (lib:f 'LIB::g) #'lib:f l:f (find-package :lib) (find-package lib) (find-package 'lib) (intern \"X\" \"LIB\")\n\
                 :lib \"LIB\" \"lib\" lib #\\l #+lib (lib:f) #-(or lib::x x) 1 (uiop:symbol-call '#:lib :f) `(lib:f ,lib::g)\n\
                 (loop for s being each external-symbol in :lib collect s)) ; lib:f",
            ),
            ("c.asd", "(defsystem :lib :depends-on (:lib) :perform (test-op (o c) (symbol-call :lib :run)))"),
        ],
        "library",
        Options::default(),
        expect![[r#"
            package
            (defpackage #:library (:use :cl) (:nicknames #:l) (:export #:lib #:f))
            (in-package #:library)
            (defun f (lib) lib)
            (uiop:define-package :app (:use :cl :library) (:import-from "LIBRARY" #:f) (:local-nicknames (:o :library) (:lib2 :l)) (:export #:lib))
            (in-package :app)
            (list (library:f 'LIBRARY::g) #'library:f l:f (find-package :library) (find-package lib) (find-package 'library) (intern "X" "LIBRARY")
            :?library "?LIBRARY" "lib" lib #\l #+lib (library:f) #-(or library::x x) 1 (uiop:symbol-call '#:library :f) `(library:f ,library::g)
            (loop for s being each external-symbol in :library collect s)) ; lib:f
            (defsystem :lib :depends-on (:lib) :perform (test-op (o c) (symbol-call :library :run)))
        "#]],
    );
}

#[test]
fn a_prefix_and_a_designator_name_the_package_too() {
    let places = [
        "(in-package :a)\n(li‸b:f 1)",
        "(in-package :a)\n(lib‸::f 1)",
        "(in-package :a)\n(‸LIB:f 1)",
        "(in-package :li‸b)",
        "(in-package \"LIB‸\")",
        "(defpackage :a (:use #:li‸b))",
        "(defpackage :a (:import-from :‸lib #:f))",
        "(defpackage :a (:local-nicknames (#:x #:lib‸)))",
        "(in-package :a)\n(find-package '‸lib)",
    ];
    for text in places {
        let cursor = cursor(FakeImage::absent(), &[("a.lisp", text), ("p.lisp", LIB)]);
        let named = named(&cursor.document, cursor.offset).unwrap();
        assert!(named.name.eq_ignore_ascii_case("lib"), "{text}: {named:?}");
        let renaming = run(rename(&cursor, "new", &FixedExpander(None), Options::default())).unwrap();
        assert_eq!((renaming.kind.as_str(), renaming.files.len()), ("package", 2), "{text}");
        assert!(applied(&renaming).ends_with("(defpackage #:new (:use :cl) (:nicknames #:l) (:export #:lib #:f))\n"));
    }
    // The name after a prefix is a symbol, and so is an exported name.
    for (text, kind) in [("(in-package :a)\n(lib:f‸ 1)", "function"), ("(defpackage :lib (:export #:f‸))", "function")]
    {
        let files = [("a.lisp", text), ("p.lisp", LIB), ("f.lisp", "(in-package :lib)\n(defun f () 1)")];
        let cursor = cursor(FakeImage::absent(), &files);
        match run(rename(&cursor, "new", &FixedExpander(None), Options::default())) {
            Ok(renaming) => assert_eq!(renaming.kind, kind),
            Err(refusal) => assert!(refusal.0.contains("of no package"), "{refusal}"),
        }
    }
}

#[test]
fn nicknames_are_renamed_by_themselves() {
    global(
        &[("a.lisp", "(in-package :app)\n(list (l‸:f) (lib:f) :l)"), ("p.lisp", LIB)],
        "li",
        Options::default(),
        expect![[r#"
            nickname
            (in-package :app)
            (list (li:f) (lib:f) :?li)
            (defpackage #:lib (:use :cl) (:nicknames #:li) (:export #:lib #:f))
        "#]],
    );
    global(
        &[
            ("a.lisp", "(in-package :app)\n(list (x‸:f) (lib:f) (find-package :x) :x)"),
            ("b.lisp", "(in-package :other)\n(x:f)"),
            (
                "p.lisp",
                "(defpackage :app (:local-nicknames (#:x #:lib)))\n(defpackage :lib)\n(defpackage :other (:local-nicknames (:x :lib)))",
            ),
        ],
        "lb",
        Options::default(),
        expect![[r#"
            local nickname
            (in-package :app)
            (list (lb:f) (lib:f) (find-package :lb) :x)
            (defpackage :app (:local-nicknames (#:lb #:lib)))
            (defpackage :lib)
            (defpackage :other (:local-nicknames (:x :lib)))
        "#]],
    );
    global(
        &[
            (
                "p.lisp",
                "(defpackage :app (:local-nicknames (:lib :other)))\n(defpackage :li‸b)\n(defpackage :other)\n(in-package :other)\n(lib:f)",
            ),
            ("a.lisp", "(in-package :app)\n(lib:f (find-package :lib))"),
        ],
        "new",
        Options::default(),
        expect![[r#"
            package
            (defpackage :app (:local-nicknames (:lib :other)))
            (defpackage :new)
            (defpackage :other)
            (in-package :other)
            (new:f)
        "#]],
    );
}

#[test]
fn words_in_comments_and_strings_are_renamed_when_asked() {
    global(
        &[("a.lisp", "(defpackage :li‸b (:documentation \"The lib.\"))\n;; lib:f, library\n(in-package :lib)")],
        "new",
        Options { texts: true },
        expect![[r#"
            package
            (defpackage :new (:documentation "The ?new."))
            ;; ?new:f, library
            (in-package :new)
        "#]],
    );
}

#[test]
fn a_package_that_must_keep_its_name_is_refused() {
    for (text, new, why) in [
        ("(in-package :c‸l)", "new", "cl is no package that a Lisp file of the workspace defines"),
        ("(defpackage :a‸)", "A", "A is its name already"),
        ("(defpackage :a‸)", "keyword", "is a package of Lisp itself"),
        ("(defpackage :a‸)", "sb-ext", "is a package of Lisp itself"),
        ("(defpackage :a‸)\n(defpackage :b)", "b", "defines a package b already: B"),
        ("(defpackage :a‸)\n(defpackage :b (:nicknames :c))", "c", "defines a package c already: B"),
        (
            "(defpackage :a‸)\n(defpackage :b (:local-nicknames (:x :a)))",
            "x",
            "The package B calls another one x already",
        ),
        ("(defpackage :a‸)", "loaded", "The image has a package loaded already"),
        ("(defpackage :a‸)", "p:q", "The new name has a package prefix"),
        ("(defpackage :no/a‸)", "b", "is found by its package's name (no/a)"),
    ] {
        let image = FakeImage::absent().index(serde_json::json!([{"name": "LOADED", "digest": "1", "symbols": []}]));
        let cursor = cursor(image, &[("a.lisp", text)]);
        let refusal = run(rename(&cursor, new, &FixedExpander(None), Options::default())).unwrap_err();
        assert!(refusal.0.contains(why), "{text}: {refusal}");
    }
}
