//! Checks never change the image: its fingerprint is the same before and after.

use std::path::{Path, PathBuf};
use std::time::Duration;

use consort::config::Config;
use consort::model::check::CheckMode;
use consort::session::{CheckRequest, ClientInfo, Frontend};
use consort::text::document::Edit;
use consort_tests::lone_image::LoneImage;
use consort_tests::world::World;
use serde_json::Value;

/// A text with only compile-time side effects.
const SIDE_EFFECTS: &str = r#"
(defpackage :ghost-package (:use :cl) (:nicknames :gp) (:export #:ghost #:*ghost*))
(in-package :ghost-package)
(eval-when (:compile-toplevel :load-toplevel :execute)
  (defvar *ghost* 1)
  (defparameter *ghosts* (list 1 2 3))
  (setf (symbol-function 'eval-ghost) (lambda () :ghost))
  (setf (get 'ghost 'indicator) t)
  (push :ghost-feature *features*)
  (intern "GHOST-SYMBOL" :cl-user)
  (export (intern "GHOST-EXPORT" :cl-user) :cl-user)
  (set-macro-character #\! (lambda (s c) (declare (ignore s c)) nil))
  (proclaim '(optimize (debug 3) (speed 0)))
  (proclaim '(special ghost-special))
  (setf *print-base* 7 *read-default-float-format* 'double-float)
  (provide :ghost-module)
  (open "/dev/null"))
(defmacro ghost-macro () (defvar *made-by-macro* t) nil)
(ghost-macro)
(define-compiler-macro ghost-compiler-macro (x) x)
(deftype ghost-type () '(integer 0 7))
(defstruct ghost-struct a b)
(defclass ghost-class () ((slot :accessor ghost-slot)))
(define-condition ghost-condition (error) ())
(defgeneric ghost-generic (x))
(defmethod ghost-generic ((x integer)) x)
(defmethod print-object ((x ghost-class) stream) (write-string "ghost" stream))
(defsetf ghost-setf (x) (v) `(list ,x ,v))
(define-setf-expander ghost-expander (x) (get-setf-expansion x))
(define-symbol-macro ghost-symbol-macro 42)
(define-method-combination ghost-combination)
(define-modify-macro ghost-incf () 1+)
(defconstant +ghost+ 42)
(declaim (inline ghost-inline) (ftype (function (integer) integer) ghost-inline) (optimize (safety 0)))
(defun ghost-inline (x) (1+ x))
(sb-ext:defglobal **ghost-global** 1)
(sb-ext:without-package-locks (eval-when (:compile-toplevel) (defun cl-user::car-ghost () 1)))
(sb-ext:add-package-local-nickname :ghost-nick :cl :ghost-package)
(defun calls-ghost () (ghost-undefined))
"#;

async fn fingerprint(lone: &LoneImage) -> Value {
    lone.image.fingerprint().await.expect("a fingerprint")
}

fn assert_same(before: &Value, after: &Value, what: &str) {
    let parts = before["parts"].as_object().expect("a fingerprint has parts");
    let changed: Vec<&String> = parts.keys().filter(|part| before["parts"][*part] != after["parts"][*part]).collect();
    assert!(changed.is_empty() && before["digest"] == after["digest"], "{what} changed the image: {changed:?}");
}

fn sources(system: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut dirs = vec![PathBuf::from("/usr/share/common-lisp/source").join(system)];
    while let Some(dir) = dirs.pop() {
        let entries = std::fs::read_dir(&dir)
            .unwrap_or_else(|error| panic!("{}: {error}: install cl-{system} (make test does)", dir.display()));
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lisp") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "no sources of {system}");
    files
}

async fn check_file(lone: &LoneImage, path: &Path) {
    let bytes = std::fs::read(path).expect("a readable file");
    let text = String::from_utf8(bytes).unwrap_or_else(|error| error.into_bytes().iter().map(|&b| b as char).collect());
    let params = lone.params(&text, Some(path));
    lone.checker.check(params).await.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

/// The fingerprint must differ after each of these changes, or the other tests prove nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_fingerprint_sees_each_change() {
    let lone = LoneImage::start().await;
    lone.eval("(defpackage :seen (:use :cl))").await;
    let mut before = fingerprint(&lone).await;
    assert_same(&before, &fingerprint(&lone).await, "nothing");
    for change in [
        "(progn (intern \"NEW-SYMBOL\" :seen) nil)",
        "(progn (export (intern \"NEW-SYMBOL\" :seen) :seen) nil)",
        "(defun seen::f (x) x)",
        "(defun seen::f (x) (1+ x))",
        "(defmacro seen::m (x) x)",
        "(defvar seen::*v* 1)",
        "(setf seen::*v* 2)",
        "(deftype seen::ty () 'integer)",
        "(defclass seen::c () ())",
        "(defclass seen::c () (slot))",
        "(defmethod seen::g ((x seen::c)) x)",
        "(declaim (ftype (function (integer) integer) seen::later))",
        "(declaim (optimize (debug 3)))",
        "(push :seen-feature *features*)",
        "(progn (set-macro-character #\\! (lambda (s c) (declare (ignore s c)) nil)) nil)",
        "(progn (sb-posix:open \"/dev/null\" 0) nil)",
        "(progn (provide :seen-module) nil)",
        "(define-compiler-macro seen::f (x) x)",
        "(defsetf seen::f (x) (v) `(list ,x ,v))",
    ] {
        let outcome = lone.eval(change).await;
        assert!(outcome.error.is_none(), "{change}: {outcome:?}");
        let after = fingerprint(&lone).await;
        assert_ne!(before["digest"], after["digest"], "{change} is not seen");
        before = after;
    }
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checking_whole_systems_leaves_no_trace() {
    let lone = LoneImage::start().await;
    let before = fingerprint(&lone).await;
    // Every fifth file of the larger system: its files are alike. `check-real-files.lisp` compares
    // the image before and after checks of all of them.
    for path in sources("cl-ppcre").iter().chain(sources("ironclad").iter().step_by(5)) {
        check_file(&lone, path).await;
    }
    assert_same(&before, &fingerprint(&lone).await, "checking cl-ppcre and ironclad");
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checking_a_loaded_system_leaves_no_trace() {
    let lone = LoneImage::start().await;
    let loaded = lone.eval("(progn (asdf:load-system :cl-ppcre) :loaded)").await;
    assert!(loaded.error.is_none(), "{loaded:?}");
    let before = fingerprint(&lone).await;
    for path in sources("cl-ppcre") {
        check_file(&lone, &path).await;
    }
    assert_same(&before, &fingerprint(&lone).await, "checking the loaded cl-ppcre");
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn checking_side_effects_leaves_no_trace() {
    let lone = LoneImage::start().await;
    let before = fingerprint(&lone).await;
    for mode in [CheckMode::File, CheckMode::Form] {
        let path = lone.workspace().join("side-effects.lisp");
        let mut params = lone.params(SIDE_EFFECTS, Some(&path));
        params.mode = mode;
        let report = lone.checker.check(params).await.expect("a check answers");
        assert_eq!(report.forms, 25, "all were compiled: {report:?}");
    }
    assert_same(&before, &fingerprint(&lone).await, "a file of side effects");
    let ghost = lone.eval("(list (find-package :ghost-package) (find-symbol \"GHOST-SYMBOL\" :cl-user))").await;
    assert_eq!(ghost.values[0].text, "(NIL NIL)");
    lone.finish().await;
}

/// A small, reproducible random generator: a linear congruential one (Knuth's MMIX constants).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % n as u64).expect("below a usize")
    }
}

/// Half-typed symbols, packages, macros and types, as typing makes them, leave nothing in the
/// image.
#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_edits_leave_no_trace() {
    let mut config = Config::default();
    config.check.debounce = Duration::from_millis(5);
    let world = World::configured(&[], config).await;
    world.is_ready().await;
    let before = world.image.fingerprint().await.expect("a fingerprint");

    let (client, _feedback) = world.session.attach(ClientInfo { frontend: Frontend::Lsp, name: "typist".into() });
    let uri = world.uri("typed.lisp");
    let mut text: Vec<char> = SIDE_EFFECTS.chars().collect();
    world.session.open(client, uri.clone(), 0, text.iter().collect());
    let pieces = [
        "(",
        ")",
        "\"",
        "x",
        " ",
        "(defvar *typed* 1)\n",
        "(in-package :typed)\n",
        "#.(intern \"TYPED\")",
        "typed:",
        ";",
    ];
    let mut dice = Dice(1);
    let mut checks = 0;
    for version in 1..=400 {
        let at = dice.below(text.len());
        if dice.below(3) == 0 {
            text.drain(at..(at + 1 + dice.below(12)).min(text.len()));
        } else {
            text.splice(at..at, pieces[dice.below(pieces.len())].chars());
        }
        if version % 100 == 0 {
            text = SIDE_EFFECTS.chars().collect(); // or it is soon nothing but broken
        }
        world.session.change(client, &uri, version, vec![Edit { range: None, text: text.iter().collect() }]);
        if version % 20 == 0 {
            // Checks while typing are cancelled at the next edit; this one runs to its end.
            let request = CheckRequest {
                text: text.iter().collect(),
                path: Some(world.path("typed.lisp")),
                mode: CheckMode::File,
                package: None,
                timeout: None,
            };
            world.session.check(client, request).await.expect("a check answers");
            checks += 1;
        }
    }
    assert_eq!(checks, 20);
    world.session.close(client, &uri);
    let after = world.image.fingerprint().await.expect("a fingerprint");
    assert_same(&before, &after, "typing");
    world.end().await;
}
