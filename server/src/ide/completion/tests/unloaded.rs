//! Tests of names in files that are not loaded, and of the standard's names without an image.

use super::*;

#[test]
fn files_of_the_workspace_tell_what_is_not_loaded() {
    let workspace = || {
        FakeImage::absent()
            .file("p.lisp", "(defpackage :zoo (:use :cl :paws))\n(defpackage :paws (:use :cl) (:export #:wash-paw))")
            .file(
                "b.lisp",
                "(in-package :zoo)\n(defstruct walrus tusks)\n(defun wash (x &key soap) x)\n(defvar *water* 1)",
            )
            .file("c.lisp", "(in-package :paws)\n(defun wash-paw (paw) paw)\n(defun wash-claw (claw) claw)")
            .file("d.lisp", "(in-package :other)\n(defun waste () 1)\n(f :waxed 1)")
    };
    check(
        workspace(),
        "(in-package :zoo)\n(was‸)",
        expect![[r#"
        wash (defun)
        wash-paw (defun)
        walrus-p (structure walrus)
        walrus-tusks (structure walrus)
    "#]],
    );
    check(
        workspace(),
        "(in-package :zoo)\n(make-wal‸)",
        expect![[r#"
        make-walrus (structure walrus)
    "#]],
    );
    check(
        workspace(),
        "(in-package :zoo)\n(defmethod f ((x wal‸)) 1)",
        expect![[r#"
        walrus (defstruct)
        walrus-p (structure walrus)
        walrus-tusks (structure walrus)
        copy-walrus (structure walrus)
    "#]],
    );
    check(
        workspace(),
        "(paws:was‸)",
        expect![[r#"
        paws:wash-paw (symbol of PAWS)
    "#]],
    );
    check(
        workspace(),
        "(in-package :pa‸)",
        expect![[r#"
        :paws (package PAWS)
    "#]],
    );
}

#[test]
fn classes_of_files_that_are_not_open_tell_initargs_and_slots() {
    let zoo = || {
        FakeImage::absent()
            .file("b.lisp", "(in-package :zoo)\n(defclass bird (animal) ((wings :initarg :wings)))")
            .file("c.lisp", "(in-package :zoo)\n(defclass animal () ((legs :initarg :legs)))")
            .file("d.lisp", "(in-package :other)\n(defclass bird () ((gears :initarg :gears)))")
    };
    check(
        zoo(),
        "(in-package :zoo)\n(make-instance 'bird :‸)",
        expect![[r#"
        :legs (initialization argument of bird)
        :wings (initialization argument of bird)
        :zoo (keyword)
        :gears (keyword)
    "#]],
    );
    check(
        zoo(),
        "(in-package :zoo)\n(defmethod f ((x bird)) (slot-value x '‸))",
        expect![[r#"
        legs (slot of bird)
        wings (slot of bird)
        x (parameter (defmethod))
        bird (defclass)
    "#]],
    );
}

#[test]
fn the_image_describes_what_a_file_of_the_workspace_defines() {
    check(
        image().file("b.lisp", "(defun help (topic) topic)"),
        "(hel‸)",
        expect![[r#"
        help (function, COMMON-LISP-USER)
    "#]],
    );
}

#[test]
fn the_standard_is_known_without_an_image() {
    check(
        FakeImage::absent(),
        "(multiple-value-b‸)",
        expect![[r#"
        multiple-value-bind (macro, COMMON-LISP)
    "#]],
    );
    check(
        FakeImage::absent(),
        "(find x y :from‸)",
        expect![[r#"
        :from-end (keyword argument)
    "#]],
    );
    check(
        FakeImage::absent(),
        "(defun f (x) (declare (optimize (compil‸ 0))) x)",
        expect![[r#"
        compilation-speed (declaration)
        compiled-function (class, COMMON-LISP)
        compile (function, COMMON-LISP)
        compile-file (function, COMMON-LISP)
    "#]],
    );
}

/// Returns an image with the functions TOTAL and TOTAL-COST, which came from `/no/a.lisp`.
fn image_with_total() -> FakeImage {
    FakeImage::empty()
        .index(json!([
            {"name": "COMMON-LISP", "digest": "system", "system": true, "symbols": ["Ef--TRUNCATE\t\tnumber"]},
            {"name": "APP", "digest": "1", "uses": ["COMMON-LISP"], "symbols": ["If--TOTAL\t\titem", "If--TOTAL-COST\t\titem"]},
        ]))
        .made_of("function", "(defun total (item) item)")
}

#[test]
fn a_name_whose_definition_is_gone_from_its_file_comes_last() {
    let image = image_with_total;
    let text = "(in-package :app)\n(tot‸)";
    check(
        image().file("a.lisp", "(in-package :app)\n(defun cost (x) x)\n(defun total-cost (x) x)\n"),
        text,
        expect![[r#"
            total-cost (function, APP)
            total (function, not in a.lisp any more, APP)
        "#]],
    );
    check(
        image().file("a.lisp", "(in-package :app)\n(defun total (x) x)\n(defun total-cost (x) x)\n"),
        text,
        expect![[r#"
            total (function, APP)
            total-cost (function, APP)
        "#]],
    );
}

#[test]
fn a_name_that_a_text_newer_than_the_index_defines_is_not_gone() {
    let gone = |image: FakeImage, text: &str| -> Vec<String> {
        let found = run(complete(&cursor(image, &[("a.lisp", text)]), Path::new("/no"))).unwrap();
        found.items.into_iter().filter(|one| one.detail.contains("any more")).map(|one| one.label).collect()
    };
    let old = "(in-package :app)\n(defun cost (x) x)\n(defun total-cost (x) x)\n";
    for (newer, expected) in [
        ("(list '(defun total (x) x))", &["total"][..]),
        ("(progn (defun total (x) x))", &[]),
        ("(progn (defgeneric (setf total) (value x)))", &[]),
        ("(defstruct (sum (:conc-name nil)) total)", &[]),
    ] {
        let text = format!("(in-package :app)\n{newer}\n(tot‸)");
        assert_eq!(gone(image_with_total().file("a.lisp", old), &text), expected, "{newer}");
    }
    // The file on the disk has changed since it was indexed.
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("b.lisp");
    let image = || image_with_total().made_at_line(&file.to_string_lossy(), 1).closed_file(&file, old);
    let text = "(in-package :app)\n(tot‸)";
    assert_eq!(gone(image(), text), ["total"]);
    std::fs::write(&file, "(in-package :app)\n(defun total (x) x)\n").unwrap();
    assert_eq!(gone(image(), text), [""; 0]);
}
