mod places;
mod unloaded;

use expect_test::{Expect, expect};
use serde_json::json;

use super::*;
use crate::ide::fake::{FakeImage, cursor, run};

fn check(image: FakeImage, text: &str, expected: Expect) {
    let cursor = cursor(image, &[("a.lisp", text)]);
    let line = |item: &Item| {
        let package = item.package.as_ref().map_or(String::new(), |package| format!(", {package}"));
        let import = item.import.as_ref().map_or(String::new(), |(_, text)| format!(" +{text}"));
        format!("{} ({}{package}){import}\n", item.label, item.detail)
    };
    let shown = match run(complete(&cursor, Path::new("/no"))) {
        Some(completed) => completed.items.iter().take(4).map(line).collect(),
        None => "no completion\n".to_owned(),
    };
    expected.assert_eq(&shown);
}

fn image() -> FakeImage {
    FakeImage::empty().index(json!([
        {"name": "COMMON-LISP", "digest": "system", "system": true, "symbols": [
            "Em--MULTIPLE-VALUE-BIND\t\tvars value-form &body", "Em--DESTRUCTURING-BIND", "Ef-sLIST", "Ef--LISTEN",
            "Ef--LIST-LENGTH", "E--cSTREAM", "Em--WITH-OPEN-FILE\t\t()", "Ef--OPEN\t\tfilename &key direction if-exists"]},
        {"name": "COMMON-LISP-USER", "digest": "1", "nicknames": ["CL-USER"], "uses": ["COMMON-LISP"],
         "local": [["A", "ALEXANDRIA"]],
         "symbols": ["If--HELP\t\ttopic", "I-v-HEIGHT", "If--SCAN\t\tregex target &key start end",
                     "I--cANIMAL\t\t\tname age &initargs :name :age", "I---HEARD", "Iv--|Mixed|"]},
        {"name": "APP", "digest": "1", "uses": ["COMMON-LISP"], "symbols": []},
        {"name": "ALEXANDRIA", "digest": "1", "nicknames": ["ALEX"], "uses": ["COMMON-LISP"],
         "symbols": ["Ef--FLATTEN\t\ttree", "Ef--ENSURE-LIST", "If--FLATTER"]},
    ]))
}

#[test]
fn a_name_at_hand_that_fits_word_by_word_comes_before_one_of_another_package() {
    let image = FakeImage::empty().index(json!([
        {"name": "COMMON-LISP", "digest": "system", "system": true, "symbols": ["Ef--COPY-SEQ\t\tsequence"]},
        {"name": "INTERNALS", "digest": "system", "system": true, "symbols": ["Ef--C-STRING-DECODER\t\tstring"]},
        {"name": "BUILD", "digest": "1", "symbols": ["E--cC-SOURCE-FILE", "Ef--C-SUITE"]},
        {"name": "APP", "digest": "1", "uses": ["COMMON-LISP"], "symbols": ["Ef--CREATE-SCANNER\t\tregex"]},
    ]));
    check(
        image,
        "(in-package :app)\n(c-s‸)",
        expect![[r#"
        copy-seq (function, COMMON-LISP)
        create-scanner (function, APP)
        build:c-suite (function, BUILD)
        internals:c-string-decoder (function, INTERNALS)
    "#]],
    );
}

#[test]
fn completions_say_that_the_index_is_incomplete() {
    let cursor = cursor(image().incomplete("/no/c.lisp is large"), &[("a.lisp", "(he‸)")]);
    let completed = run(complete(&cursor, Path::new("/no"))).unwrap();
    assert_eq!(completed.left_out.as_deref(), Some("/no/c.lisp is large"));
}

#[test]
fn names_of_the_text_come_before_those_of_the_image() {
    let text = "(defun helper (x) x)\n(defun f (height) (g he‸))";
    check(
        image(),
        text,
        expect![[r#"
        height (parameter (defun))
        helper (defun)
        help (function, COMMON-LISP-USER)
        heard (symbol, COMMON-LISP-USER)
    "#]],
    );
    check(
        FakeImage::absent(),
        "(defun helper (x) x)\n(he‸)",
        expect![[r#"
        helper (defun)
    "#]],
    );
    check(
        image(),
        "(f \"he‸\")",
        expect![[r#"
        no completion
    "#]],
    );
}

#[test]
fn a_local_name_is_told_as_local() {
    let first = |text: &str| {
        let completed = run(complete(&cursor(image(), &[("a.lisp", text)]), Path::new("/no"))).unwrap();
        let one = &completed.items[0];
        format!("{}: {} ({}) {:?} {:?}", one.label, one.kind, one.detail, one.symbol, one.parameters)
    };
    // LISTEN is a function of the image, which ranks before a variable where an operator is
    // expected.
    for (text, expected) in [
        ("(defun f (list) (g li‸))", "list: variable (parameter (defun)) None \"\""),
        ("(flet ((help (x) x)) (he‸))", "help: function (local function (flet)) None \"\""),
        ("(defun f (help) (he‸))", "help: function (function) Some(\"|COMMON-LISP-USER|::|HELP|\") \"topic\""),
        ("(flet ((height () 1)) (g hei‸))", "height: variable (variable) Some(\"|COMMON-LISP-USER|::|HEIGHT|\") \"\""),
        ("(defun f (listen-x) (listen‸))", "listen: function (function) Some(\"|COMMON-LISP|::|LISTEN|\") \"\""),
        ("(flet ((aa () 1)) (let ((aa 2)) (aa‸)))", "aa: function (local function (flet)) None \"\""),
        ("(defun aaa () 1) (defun f (aaa) (aaa‸))", "aaa: function (defun) None \"\""),
    ] {
        assert_eq!(first(text), expected, "{text}");
    }
    // Where an operator is expected, a variable with an operator's name is not offered as one.
    check(
        image(),
        "(defun f (scan) (let ((animal 1)) (scan‸)))",
        expect![[r#"
            scan (function, COMMON-LISP-USER)
        "#]],
    );
}

#[test]
fn systems_that_asdf_knows_are_offered() {
    let known =
        |text: &str| FakeImage::empty().answer("system-names", text, json!({"systems": ["sb-posix", "far-lib"]}));
    check(
        known("sb-po"),
        "(defsystem a :depends-on (:sb-po‸))",
        expect![[r#"
            :sb-posix (system that ASDF knows)
        "#]],
    );
    check(
        known("far"),
        "(defsystem a :depends-on (\"far‸\"))",
        expect![[r#"
            far-lib (system that ASDF knows)
        "#]],
    );
}

#[test]
fn initials_parts_and_parts_of_words_find_names() {
    check(
        image(),
        "(mvb‸)",
        expect![[r#"
        multiple-value-bind (macro, COMMON-LISP)
    "#]],
    );
    check(
        image(),
        "(de-bi‸)",
        expect![[r#"
        destructuring-bind (macro, COMMON-LISP)
    "#]],
    );
    check(
        image(),
        "(MULT‸)",
        expect![[r#"
        MULTIPLE-VALUE-BIND (macro, COMMON-LISP)
    "#]],
    );
    check(
        image(),
        "(lnth‸)",
        expect![[r#"
        list-length (function, COMMON-LISP)
    "#]],
    );
}

#[test]
fn the_place_decides_the_order() {
    check(
        image(),
        "(defmethod f ((x st‸)) 1)",
        expect![[r#"
        stream (class, COMMON-LISP)
    "#]],
    );
    check(
        image(),
        "(lis‸)",
        expect![[r#"
        list (function, COMMON-LISP)
        listen (function, COMMON-LISP)
        list-length (function, COMMON-LISP)
        a:ensure-list (function, ALEXANDRIA)
    "#]],
    );
    check(
        image(),
        "(defvar *listing* 1)\n(f lis‸)",
        expect![[r#"
        *listing* (defvar)
        list (function, COMMON-LISP)
        listen (function, COMMON-LISP)
        list-length (function, COMMON-LISP)
    "#]],
    );
    check(
        image(),
        "(defmethod f ((x animal)) (with-slots (a‸) x 1))",
        expect![[r#"
        age (slot of animal)
        animal (class, COMMON-LISP-USER)
    "#]],
    );
    check(
        image(),
        "(loop for x i‸)",
        expect![[r#"
        in (loop keyword)
        if (loop keyword)
        it (loop keyword)
        into (loop keyword)
    "#]],
    );
    check(
        image(),
        "(defun f (&o‸) 1)",
        expect![[r#"
        &optional (lambda list keyword)
        &allow-other-keys (lambda list keyword)
    "#]],
    );
    check(
        image(),
        "(defun f (x) (declare (ig‸ x)) 1)",
        expect![[r#"
        ignore (declaration)
        ignorable (declaration)
    "#]],
    );
}

#[test]
fn names_of_other_packages_come_with_their_prefix_or_an_import() {
    check(
        image(),
        "(flat‸)",
        expect![[r#"
        a:flatten (function, ALEXANDRIA)
    "#]],
    );
    check(
        image(),
        "(defpackage :app (:use :cl))\n(in-package :app)\n(flat‸)",
        expect![[r#"
        alexandria:flatten (function, ALEXANDRIA)
        flatten (function, imported from alexandria, ALEXANDRIA) +
          (:import-from :alexandria :flatten)
    "#]],
    );
    check(
        image(),
        "(a:fl‸)",
        expect![[r#"
        a:flatten (function, ALEXANDRIA)
    "#]],
    );
    check(
        image(),
        "(alexandria::fl‸)",
        expect![[r#"
        alexandria::flatten (function, ALEXANDRIA)
        alexandria::flatter (function, ALEXANDRIA)
    "#]],
    );
    // Where nothing that is exported matches, what matches is told to be internal.
    check(
        image(),
        "(a:flatte‸)",
        expect![[r#"
        a:flatten (function, ALEXANDRIA)
    "#]],
    );
    check(
        image(),
        "(a:flatter‸)",
        expect![[r#"
        a::flatter (function, not exported, ALEXANDRIA)
    "#]],
    );
    check(image(), "(nowhere:fl‸)", expect![[""]]);
    // In a package that the image has, another word of the text is not a name.
    check(
        image(),
        "(a:flattne x)\n(a:fl‸)",
        expect![[r#"
        a:flatten (function, ALEXANDRIA)
    "#]],
    );
}

#[test]
fn a_prefix_of_a_package_stays() {
    check(
        image(),
        "(use-package :al‸)",
        expect![[r#"
        :alexandria (package ALEXANDRIA)
        :alex (package ALEXANDRIA)
    "#]],
    );
    check(
        image(),
        "(use-package #:al‸)",
        expect![[r#"
        #:alexandria (package ALEXANDRIA)
        #:alex (package ALEXANDRIA)
    "#]],
    );
}

#[test]
fn keywords_are_those_that_the_call_still_accepts() {
    check(
        image(),
        "(scan x y :‸)",
        expect![[r#"
        :end (keyword argument)
        :start (keyword argument)
    "#]],
    );
    check(
        image(),
        "(scan x y :end 1 :‸)",
        expect![[r#"
        :start (keyword argument)
        :end (keyword)
    "#]],
    );
    check(
        image(),
        "(with-open-file (s f :d‸))",
        expect![[r#"
        :direction (option of with-open-file)
    "#]],
    );
    check(
        image(),
        "(make-instance 'animal :name 1 :‸)",
        expect![[r#"
        :age (initialization argument of animal)
        :name (keyword)
    "#]],
    );
    let text = "(defclass dog (animal) ((tail :initarg :tail)))\n(make-instance 'dog :‸)";
    check(
        image(),
        text,
        expect![[r#"
        :tail (initialization argument of dog)
        :age (initialization argument of dog)
        :name (initialization argument of dog)
        :initarg (keyword)
    "#]],
    );
    check(
        FakeImage::absent(),
        "(defclass dog () ((tail :inita‸)))",
        expect![[r#"
        :initarg (option of defclass)
        :default-initargs (option of defclass)
    "#]],
    );
}

#[test]
fn names_of_a_package_complete_what_its_definition_exports_and_imports() {
    let text = "(defpackage :alexandria (:use :cl) (:export #:fla‸ #:flatten))";
    check(
        image(),
        text,
        expect![[r#"
        #:flatter (symbol of ALEXANDRIA)
    "#]],
    );
    check(
        image(),
        "(defpackage :b (:use :cl) (:import-from :alexandria :fla‸))",
        expect![[r#"
        :flatten (exported by ALEXANDRIA)
    "#]],
    );
    let workspace = FakeImage::absent().file("b.lisp", "(in-package :b)\n(defun flash () 1)");
    check(
        workspace,
        "(defpackage :b (:use :cl) (:export #:fla‸))",
        expect![[r#"
        #:flash (symbol of B)
    "#]],
    );
}

#[test]
fn required_arguments_come_along_where_a_call_begins() {
    let of = |text: &str| {
        let found = run(complete(&cursor(image(), &[("a.lisp", text)]), Path::new("/no"))).unwrap();
        found.items[0].required.join(" ")
    };
    assert_eq!(of("(sca‸)"), "regex target");
    assert_eq!(of("(f #'list sca‸)"), "");
}

#[test]
fn a_completion_is_described_by_the_image() {
    let image = FakeImage::empty().function("|APP|::|HELP|", &["topic"], "Tells of `topic`.");
    expect![[r#"
        Some(
            Description {
                detail: Some(
                    "(help topic)",
                ),
                documentation: Some(
                    "```lisp\n(|APP|::|HELP| topic)\n```\n\nfunction · `APP` (internal)\n\n```text\nTells of `topic`.\n```",
                ),
            },
        )
    "#]].assert_debug_eq(&run(describe(&image, "app:help", "|APP|::|HELP|")));
    expect![[r#"
        None
    "#]]
    .assert_debug_eq(&run(describe(&FakeImage::absent(), "help", "|APP|::|HELP|")));
}

#[test]
fn constructors_of_structures_in_texts_have_their_slots_as_keywords() {
    let text = "(defstruct stt aa bb)\n(defstruct (sub (:include stt) :constructor (:constructor new (x &key ac ((:d e))))) ab)";
    for (call, expected) in [
        (
            "(make-stt :a‸)",
            expect![[r#"
            :aa (keyword argument)
        "#]],
        ),
        (
            "(make-sub :ab 1 :‸)",
            expect![[r#"
            :aa (keyword argument)
            :bb (keyword argument)
            :ab (keyword)
            :include (keyword)
        "#]],
        ),
        (
            "(new 1 :a‸)",
            expect![[r#"
            :ac (keyword argument)
        "#]],
        ),
    ] {
        check(FakeImage::empty().file("s.lisp", text), call, expected);
    }
}
