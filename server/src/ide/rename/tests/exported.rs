//! Tests of renamings from the places where a string designator or a quoted symbol names the
//! symbol.

use expect_test::expect;

use super::*;
use crate::ide::definition::definitions;
use crate::ide::fake::shown;
use crate::ide::references;

const FILES: &str = r##"(defpackage :lib (:use :cl) (:export #:far "FAR" :far far FAR |FAR|) (:intern #:near))
(defpackage "ALONE" (:use :cl) (:import-from #:lib #:far "FAR" :far) (:shadow #:near))
(uiop:define-package :mixed (:mix :lib :cl) (:reexport :lib) (:shadowing-import-from "LIB" far))
(defpackage :other (:use :cl) (:export #:far) (:shadow "FAR"))
(in-package :lib)
(defun far (x) (if x (far 1) #'far))
(export 'far) (export '(far near) :lib) (import (list 'far) :other) (unexport 'far :lib)
(shadow "FAR" :lib) (shadow '(:far "FAR" far) '#:lib) (shadow :far)
(find-symbol "FAR" :lib) (uiop:symbol-call :lib '#:far 1) (intern "FAR" "OTHER") (print "FAR")
(in-package :alone)
(far 2)
(export 'lib:far)
"##;

/// Returns the offsets of the name in [`FILES`] that denote LIB::FAR.
fn places() -> Vec<usize> {
    let all = FILES.to_lowercase();
    let line = |at: usize| all[..at].rsplit('\n').next().unwrap_or_default().to_owned();
    let other = |at: usize| {
        let before = line(at);
        before.starts_with("(defpackage :other") || before.ends_with("(print \"") || before.ends_with("(intern \"")
    };
    all.match_indices("far").map(|(at, _)| at).filter(|at| !other(*at)).collect()
}

fn at(place: usize) -> crate::ide::context::Cursor<FakeImage> {
    let mut text = FILES.to_owned();
    text.insert(place, '‸');
    cursor(FakeImage::absent(), &[("a.lisp", &text)])
}

#[test]
fn a_symbol_is_renamed_alike_from_all_places_that_name_it() {
    let result = |place| run(rename(&at(place), "away", &FixedExpander(None), Options::default())).unwrap();
    let places = places();
    let definition = result(FILES.find("(defun far").unwrap() + 7);
    expect![[r##"
        (defpackage :lib (:use :cl) (:export #:away "AWAY" :away away AWAY |AWAY|) (:intern #:near))
        (defpackage "ALONE" (:use :cl) (:import-from #:lib #:away "AWAY" :away) (:shadow #:near))
        (uiop:define-package :mixed (:mix :lib :cl) (:reexport :lib) (:shadowing-import-from "LIB" away))
        (defpackage :other (:use :cl) (:export #:far) (:shadow "FAR"))
        (in-package :lib)
        (defun away (x) (if x (away 1) #'away))
        (export 'away) (export '(away near) :lib) (import (list 'away) :other) (unexport 'away :lib)
        (shadow "AWAY" :lib) (shadow '(:away "AWAY" away) '#:lib) (shadow :away)
        (find-symbol "AWAY" :lib) (uiop:symbol-call :lib '#:away 1) (intern "FAR" "OTHER") (print "FAR")
        (in-package :alone)
        (away 2)
        (export 'lib:away)

    "##]]
    .assert_eq(&applied(&definition));
    for place in places {
        let found = result(place);
        assert_eq!((found.kind.as_str(), applied(&found)), ("function", applied(&definition)), "{}", &FILES[place..]);
    }
}

#[test]
fn the_name_is_offered_without_its_designator() {
    for (text, expected) in [
        ("(defpackage :lib (:export #:f‸ar))", "far 28"),
        ("(defpackage :lib (:export \"F‸AR\"))", "far 27"),
        ("(defpackage :lib (:export \"‸far\"))", "|far| 27"),
        ("(defpackage :lib (:import-from :x :far‸))", "far 35"),
        ("(shadow :f‸ar)", "far 9"),
        ("(export 'p::far‸)", "far 12"),
        ("(find-symbol \"F‸AR\" :lib)", "far 14"),
    ] {
        let found = cursor(FakeImage::absent(), &[("a.lisp", text)]);
        let named = named(&found.document, found.offset).unwrap();
        assert_eq!(format!("{} {}", named.name, named.span.start), expected, "{text}");
    }
}

#[test]
fn references_and_definitions_are_the_same_from_all_places() {
    let references = |place| {
        let mut found = run(references::at(&at(place), true)).unwrap_or_default().targets;
        found.sort_by_key(|target| target.span.start);
        found.iter().map(|target| target.span.start).collect::<Vec<usize>>()
    };
    let definition = FILES.find("(defun far").unwrap() + 7;
    let expected = references(definition);
    let begin = |place: &usize| {
        let before = &FILES[..*place];
        if before.ends_with("lib:") { place - 4 } else { place - usize::from(before.ends_with('|')) }
    };
    assert_eq!(expected, places().iter().map(begin).collect::<Vec<usize>>());
    for place in places() {
        assert_eq!(references(place), expected, "{}", &FILES[place..]);
        let found = run(definitions(&at(place)));
        assert_eq!(
            shown(&found),
            "a.lisp:6\n(defun far (x) (if x (far 1) #'far))\n       ^^^\n",
            "{}",
            &FILES[place..]
        );
    }
}
