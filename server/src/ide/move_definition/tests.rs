//! Tests of definitions that are moved between texts.

use expect_test::{Expect, expect};

use super::*;
use crate::ide::fake::{FakeImage, cursor, run};

/// Returns both texts after the definition at the cursor was moved to the second file.
fn after(files: &[(&str, &str)]) -> String {
    let cursor = cursor(FakeImage::absent(), files);
    let target = format!("file:///no/{}", files[1].0);
    match run(moved(&cursor, &target)) {
        Err(refusal) => format!("refused: {refusal}\n"),
        Ok(moved) => {
            let mut out = String::new();
            for file in &moved.files {
                let mut text = file.document.text().clone();
                for change in file.changes.iter().rev() {
                    text.remove(change.span.start..change.span.end);
                    text.insert(change.span.start, &change.by);
                }
                out.push_str(&format!("{text}----\n"));
            }
            moved.note.into_iter().for_each(|note| out.push_str(&format!("{note}\n")));
            out
        }
    }
}

fn check(from: &str, to: &str, expected: Expect) {
    expected.assert_eq(&after(&[("a.lisp", from), ("b.lisp", to)]));
}

#[test]
fn a_definition_goes_with_its_comments() {
    check(
        "(in-package :app)\n\n;;;; Section\n;;; About é\n; both\n(defun é‸ (x)\n  x) ; why\n\n(defun g () 1)\n",
        "(in-package #:app)\n\n(defun h () 1) ; here\n\n",
        expect![[r#"
            (in-package :app)

            ;;;; Section

            (defun g () 1)
            ----
            (in-package #:app)

            (defun h () 1) ; here

            ;;; About é
            ; both
            (defun é (x)
              x) ; why

            ----
        "#]],
    );
}

#[test]
fn the_last_definition_leaves_no_blank_lines() {
    check(
        "(in-package :app)\n(defun g () 1)\n\n#+x\n(defmacro f‸ (x) x)",
        "(in-package :app)",
        expect![[r#"
            (in-package :app)
            (defun g () 1)
            ----
            (in-package :app)

            #+x
            (defmacro f (x) x)
            ----
            Code that uses f must be compiled after b.lisp: check the order of the files in the system.
        "#]],
    );
}

#[test]
fn it_stands_where_its_package_is_in_force() {
    check(
        "(in-package :app)\n(defun g () 1) (defun f‸ () 1) (defun h () 1)\n",
        "(in-package :app)\n(defun k () 1) (defun l () 1)\n\n(in-package :other)\n(defun m () 1)\n",
        expect![[r#"
            (in-package :app)
            (defun g () 1)  (defun h () 1)
            ----
            (in-package :app)
            (defun k () 1) (defun l () 1)

            (defun f () 1)

            (in-package :other)
            (defun m () 1)
            ----
        "#]],
    );
}

#[test]
fn what_would_not_be_the_same_is_refused() {
    let app = "(in-package :app)\n(defun f‸ () 1)";
    for (from, to, why) in [
        (app, "(in-package :other)\n(defun g () 1)", "b.lisp is read in the package other, and the definition in app."),
        (app, "(defun g () 1)", "b.lisp has no (in-package app)."),
        (app, "#+x (in-package :app)\n(defun g () 1)", "b.lisp is read in the package app"),
        (app, "(in-package :app)\n(defun f () 2)", "f is defined in b.lisp already, line 2."),
        (app, "(in-package :app)\n(defun f", "b.lisp has a form that does not balance."),
        (app, "(in-package :app)\n(in-readtable :x)", "in-readtable changes how b.lisp is read."),
        ("(in-package :app)\n(in-readtable :x)\n(defun f‸ () 1)", "(in-package :app)", "in-readtable changes how its"),
        ("(defun f‸ () 1)", "(in-package :app)", "No (in-package ...) before it"),
        ("(in-package :a)\n#+x (in-package :app)\n(defun f‸ () 1)", "(in-package :app)", "The features"),
        ("(in-package :app)\n(pri‸nt 1)", "(in-package :app)", "The top-level form here is no definition."),
        ("(in-package :app)\n(let () (defun f‸ () 1))", "(in-package :app)", "is no definition"),
        ("(in-package :app)\n(defpackage :x‸)", "(in-package :app)", "A defpackage stays in its file"),
        ("(in-package :app)\n(defun f‸ (", "(in-package :app)", "does not balance"),
        ("(in-package :app)\n\n‸", "(in-package :app)", "There is no definition here"),
    ] {
        let shown = after(&[("a.lisp", from), ("b.lisp", to)]);
        assert!(shown.starts_with("refused: ") && shown.contains(why), "{from}\n{to}\n{shown}");
    }
    let cursor = cursor(FakeImage::absent(), &[("a.lisp", app)]);
    assert!(run(moved(&cursor, "file:///no/a.lisp")).unwrap_err().0.contains("in that file already"));
    assert!(run(moved(&cursor, "file:///no/none.lisp")).unwrap_err().0.contains("must both be Lisp files"));
}

#[test]
fn files_of_the_package_are_offered() {
    let files = [
        ("a/a.lisp", "(in-package :app)\n(defun f‸ () 1)"),
        ("b.lisp", "(in-package :app)"),
        ("a/c.lisp", "(in-package \"APP\")"),
        ("a/d.lisp", "(in-package :other)"),
        ("a/e.asd", "(in-package :app)"),
    ];
    let found = run(destinations(&cursor(FakeImage::absent(), &files))).unwrap();
    let paths: Vec<&str> = found.files.iter().filter_map(|file| file.path.to_str()).collect();
    assert_eq!((found.name.as_str(), paths), ("f", vec!["/no/a/c.lisp", "/no/b.lisp"]));
    let alone = cursor(FakeImage::absent(), &files[..1]);
    assert_eq!(
        run(destinations(&alone)).unwrap_err().0,
        "No other Lisp file of the workspace has (in-package app). Make one that begins with it, and move the definition then."
    );
}

#[test]
fn a_definition_is_moved_at_its_name() {
    let name = |text: &str| {
        let cursor = cursor(FakeImage::absent(), &[("a.lisp", text)]);
        name_at(&cursor.document, cursor.offset)
    };
    assert_eq!(name("(in-package :app)\n(defun (setf pri‸ce) (v) v)").as_deref(), Some("(setf price)"));
    assert_eq!(name("(in-package :app)\n(defun price‸ (v) v)").as_deref(), Some("price"));
    assert_eq!(name("(in-package :app)\n(de‸fun price (v) v)"), None);
    assert_eq!(name("(in-package :a‸pp)\n(defun price (v) v)"), None);
}

#[test]
fn a_moved_definition_gets_the_line_breaks_of_its_file() {
    for (from, to) in [("\r\n", "\n"), ("\n", "\r\n")] {
        let text = |line_break: &str, rest: &str| format!("(in-package :app)\n{rest}").replace('\n', line_break);
        let source = text(from, ";; About f.\n(defun f‸ (x)\n  x)\n");
        let moved = after(&[("a.lisp", &source), ("b.lisp", &text(to, "(defun g () 1)\n"))]);
        let (_, moved) = moved.split_once("----\n").unwrap();
        let expected = text(to, "(defun g () 1)\n\n;; About f.\n(defun f (x)\n  x)\n");
        assert_eq!(moved, format!("{expected}----\n"));
    }
}
