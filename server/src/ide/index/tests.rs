#![allow(clippy::unwrap_used, reason = "a test may fail")]

use super::*;
use crate::ide::texts::OpenText;
use crate::text::cancellation::{self, Cancellation};
use crate::text::document::Document;
use crate::text::thread_time::Limit;

fn open(files: &[(&str, &str)]) -> Vec<OpenText> {
    let one = |(name, text): &(&str, &str)| OpenText {
        uri: format!("file:///no/{name}"),
        own: true,
        path: Some(format!("/no/{name}").into()),
        document: Document::new(text, 1),
    };
    files.iter().map(one).collect()
}

#[test]
fn names_are_found_by_their_best_match_first() {
    let text =
        "(defun scan-all () 1) (defun scan () 2) (defun rescan () 3) (defun s-c-x-a-n () 4) (defun (setf scan) (v) v)";
    let snapshot = Snapshot::of_texts(&open(&[("a.lisp", text)]));
    let found = search(&snapshot, "Scan", Limits { most: 10 });
    let names: Vec<&str> = found.iter().map(|one| one.definition().written.as_str()).collect();
    assert_eq!(names, ["scan", "(setf scan)", "scan-all", "rescan", "s-c-x-a-n"]);
    assert_eq!(search(&snapshot, "s-a", Limits { most: 1 })[0].definition().written, "scan-all");
    assert_eq!(search(&snapshot, "", Limits { most: 10 }).len(), 5);
}

#[test]
fn a_symbol_s_home_is_told_by_the_texts() {
    let text = "(defpackage :a (:use :cl) (:export #:f \"G\") (:shadow #:h))
(uiop:define-package b (:use-reexport :a) (:import-from :c #:i) (:local-nicknames (:x :a)))
(defpackage :d (:use :b :unknown))";
    let snapshot = Snapshot::of_texts(&open(&[("p.lisp", text)]));
    let packages = snapshot.packages();
    for (package, name, home) in
        [("A", "F", "A"), ("B", "F", "A"), ("D", "G", "A"), ("D", "H", "D"), ("B", "I", "C"), ("NO", "F", "NO")]
    {
        assert_eq!(packages.home(package, name), home, "{package}::{name}");
    }
    assert_eq!(packages.package_name("X", "B"), "A");
}

#[test]
fn files_are_known_by_what_they_mention() {
    let files = [
        ("a.lisp", "(foo-bar :baz)"),
        ("b.lisp", "; Foo-Bar\n(p::|x y|)"),
        ("c.lisp", "(foo #.*x* `(,@rest))"),
        ("d.lisp", "#| |no( |# (list '|a(| \"|no(|\" lib::q\\(r #\\|)"),
    ];
    let snapshot = Snapshot::of_texts(&open(&files));
    let of = |name: &str| snapshot.mentioning(name).map(|file| file.uri.clone()).collect::<Vec<_>>();
    assert_eq!(of("FOO-BAR"), ["file:///no/a.lisp", "file:///no/b.lisp"]);
    assert_eq!(of("BAZ"), ["file:///no/a.lisp"]);
    assert_eq!(of("*X*"), ["file:///no/c.lisp"]);
    assert_eq!(of("REST"), ["file:///no/c.lisp"]);
    for (name, file) in [("a(", "d"), ("Q(R", "d"), ("x y", "b")] {
        assert_eq!(of(name), [format!("file:///no/{file}.lisp")], "{name}");
    }
    assert_eq!(of("no("), Vec::<String>::new());
}

#[test]
fn the_index_follows_the_files_and_prefers_open_texts() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    std::fs::create_dir(root.join(".git")).unwrap();
    std::fs::write(root.join(".git/x.lisp"), "(defun hidden () 1)").unwrap();
    std::fs::write(root.join("a.lisp"), "(defun one () 1)").unwrap();
    let store = Store::default();
    let names = |open: Vec<OpenText>| -> Vec<String> {
        let snapshot = store.refreshed(&root, open);
        snapshot.files.iter().flat_map(|file| &file.definitions).map(|one| one.key.clone()).collect()
    };
    assert_eq!(names(Vec::new()), ["one"]);
    std::fs::write(root.join("a.lisp"), "(defun second-one () 1)").unwrap();
    std::fs::write(root.join("b.asd"), "(defsystem \"b\")").unwrap();
    assert_eq!(names(Vec::new()), ["second-one", "b"]);
    let document = |text| OpenText {
        uri: "file:///x".into(),
        own: true,
        path: Some(root.join("a.lisp")),
        document: Document::new(text, 1),
    };
    assert_eq!(names(vec![document("(defun unsaved () 1)")]), ["unsaved", "b"]);
    assert_eq!(names(vec![document("(defun other () 1)")]), ["other", "b"], "another text of the same version");
    std::fs::remove_file(root.join("b.asd")).unwrap();
    assert_eq!(names(Vec::new()), ["second-one"]);
}

#[test]
fn an_index_that_is_ended_early_is_completed_by_the_next() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    let many: String = (0..2_000).map(|number| format!("(defun f{number} () 1)\n")).collect();
    std::fs::write(root.join("a.lisp"), &many).unwrap();
    let open = || OpenText {
        uri: "file:///x".into(),
        own: true,
        path: Some(root.join("b.lisp")),
        document: Document::new(&many, 1),
    };
    let store = Store::default();
    let ended = Cancellation::new(Some(Limit::after(std::time::Duration::ZERO)));
    let cut = cancellation::run(&ended, || store.refreshed(&root, vec![open()]));
    assert!(cut.incomplete.is_some() && cut.files.is_empty());
    let ended = Cancellation::all_or_nothing().with_deadline(Some(Limit::after(std::time::Duration::ZERO)));
    assert!(cancellation::run_all_or_nothing(&ended, || store.refreshed(&root, vec![open()])).is_none());
    let whole = store.refreshed(&root, vec![open()]);
    let numbers: Vec<usize> = whole.files.iter().map(|file| file.definitions.len()).collect();
    assert_eq!((numbers, whole.incomplete), (vec![2_000, 2_000], None));
}

#[test]
fn the_last_index_is_there_at_once_and_made_anew_by_one_caller() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.lisp"), "(in-package :a)\n(defstruct cat (age 0 :type t))").unwrap();
    let store = Store::default();
    let (empty, due) = store.last();
    assert!(empty.files.is_empty() && due);
    assert!(!store.last().1, "one caller makes it");
    store.refreshed(directory.path(), Vec::new());
    let (last, _) = store.last();
    let entry = &last.files[0];
    let functions: Vec<&str> = entry.definitions[0].functions.iter().map(|(_, name)| name.as_str()).collect();
    assert_eq!(functions, ["make-cat", "cat-p", "copy-cat", "cat-age"]);
    let keywords: Vec<&str> = entry.keywords.iter().map(|word| &**word).collect();
    assert_eq!(keywords, [":type"]);
}

#[test]
fn a_file_in_utf_16_is_read_as_its_editor_shows_it() {
    let place = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("little", &b"\xff\xfe(\0d\0e\0f\0u\0n\0 \0l\0i\0t\0t\0l\0e\0 \0(\0)\0)\0"[..]),
        ("big", b"\xfe\xff\0(\0d\0e\0f\0u\0n\0 \0b\0i\0g\0 \0(\0)\0)"),
    ] {
        std::fs::write(place.path().join(format!("{name}.lisp")), bytes).unwrap();
    }
    let snapshot = Store::default().refreshed(place.path(), Vec::new());
    for name in ["little", "big"] {
        let found = search(&snapshot, name, Limits { most: 10 });
        assert_eq!(found[0].definition().written, name);
        // The byte order mark does not count as a character of the text.
        assert_eq!(found[0].definition().form.start, 0);
    }
}

#[test]
fn an_index_without_a_large_file_is_incomplete_and_names_it() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    std::fs::write(root.join("a.lisp"), "(defun one () 1)").unwrap();
    let large = root.join("large.lisp");
    std::fs::File::create(&large).unwrap().set_len(5 << 20).unwrap();
    let store = Store::default();
    let why = store.refreshed(&root, Vec::new()).incomplete.unwrap();
    assert_eq!(
        why,
        format!("{} has more than 4 MiB and is indexed only while it is open in an editor", large.display())
    );
    let open = |path| OpenText {
        uri: "file:///x".into(),
        own: true,
        path: Some(path),
        document: Document::new("(defun two () 1)", 1),
    };
    assert_eq!(store.refreshed(&root, vec![open(large.clone())]).incomplete, None);
    std::fs::remove_file(&large).unwrap();
    assert_eq!(store.refreshed(&root, Vec::new()).incomplete, None);
}

#[test]
fn packages_that_reexport_one_another_are_searched_once() {
    let names: Vec<String> = (0..30).map(|number| format!(":p{number}")).collect();
    let all = names.join(" ");
    let define = |name: &String| format!("(uiop:define-package {name} (:use {all}) (:reexport {all}))\n");
    let text: String = names.iter().map(define).collect();
    let text = format!("{text}(defpackage :last (:use :p0))(defpackage :p29 (:use {all}) (:export #:f))");
    let snapshot = Snapshot::of_texts(&open(&[("p.lisp", &text)]));
    let packages = snapshot.packages();
    assert_eq!(packages.home("LAST", "MISSING"), "LAST");
    assert_eq!(packages.home("P0", "MISSING"), "P0");
}
