//! Checks in a second process, where the image is not to be forked.

use std::fs;
use std::time::Duration;

use consort::config::Copies;
use consort::image::api::LoadSystemParams;
use consort::image::api::expand::ExpandParams;
use consort::model::check::{CheckEnd, CheckReport};
use consort::model::expansion::{ExpandAnswer, ExpandRequest};
use consort::model::image::ImageError;

use consort_tests::patience::AMPLE;

use crate::checks::{children, codes, edited, reason, text};
use crate::support::{Fixture, cache, config, found, lives, soon, until};

fn fixture() -> Fixture {
    Fixture::with(consort::config::LispConfig { copies: Copies::Process, ..config() }, cache())
}

async fn check(fixture: &Fixture, code: &str) -> CheckReport {
    soon(fixture.checker.check(text(code))).await.unwrap()
}

/// The processes that this one started, but for the image.
fn others(image: u32) -> Vec<u32> {
    children(std::process::id()).into_iter().filter(|pid| *pid != image && is_of(*pid, image)).collect()
}

/// Returns true if two processes work in the same directory: other tests have images too.
fn is_of(pid: u32, image: u32) -> bool {
    let directory = |pid| fs::read_link(format!("/proc/{pid}/cwd")).ok();
    directory(pid).is_some() && directory(pid) == directory(image)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_finds_the_same_and_the_image_is_not_forked() {
    let mut fixture = fixture();
    let pid = fixture.ready().await;
    let code =
        "(defmacro twice (x) `(list ,x ,x))\n(defun f (y) (twice (car 1 2)) (nowhere))\n(defun g () \"é𝄞\" (lost))\n";
    let report = check(&fixture, code).await;
    assert_eq!((&report.end, report.forms), (&CheckEnd::Complete, 3), "{report:?}");
    let mut forked = Fixture::new();
    forked.ready().await;
    let expected = soon(forked.checker.check(text(code))).await.unwrap();
    assert_eq!(report.diagnostics, expected.diagnostics);
    forked.close().await;
    assert_eq!(fixture.values("(list (find-symbol \"TWICE\") (find-symbol \"NOWHERE\"))").await, ["(NIL NIL)"]);
    assert!(children(pid).is_empty());
    // A definition that is only evaluated is unknown to the worker.
    fixture.eval("(defun lost () 1)").await;
    let lost = |found: &CheckReport| codes(found).iter().filter(|(code, ..)| *code == "undefined-function").count();
    assert_eq!(lost(&check(&fixture, code).await), 2);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_has_the_systems_that_were_loaded_through_consort() {
    let mut fixture = fixture();
    let pid = fixture.ready().await;
    let code = "(defun f () (loaded-function))";
    assert_eq!(codes(&edited(&fixture, code).await), [("undefined-function", 13, 28)]);
    // A process is kept ready; it is not used once it lacks something.
    let kept = found(|| others(pid).first().copied()).await;
    let asd = fixture.workspace.path().join("loaded.asd");
    fs::write(&asd, "(defsystem \"loaded\" :components ((:file \"loaded\")))").unwrap();
    // A thread that a system leaves running is ended before the check: it would not be confined.
    let source = "(defun loaded-function () 1)\n(defvar *thread* (sb-thread:make-thread (lambda () (loop (sleep 1)))))";
    fs::write(fixture.workspace.path().join("loaded.lisp"), source).unwrap();
    let params = LoadSystemParams { system: "loaded".into(), asd_files: vec![asd], force: false, allowed: None };
    assert!(soon(fixture.image.load_system(params, None)).await.unwrap().loaded);
    assert_eq!(codes(&edited(&fixture, code).await), []);
    until(|| !lives(kept)).await;
    assert_eq!(codes(&edited(&fixture, code).await), []);
    assert_eq!(codes(&edited(&fixture, "(defun f (x) (loaded-function))").await).len(), 1);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_and_a_dropped_check_end_it() {
    let mut fixture = fixture();
    let pid = fixture.ready().await;
    let code = "(defun fine () 1)\n(defmacro endless () (sb-sys:without-interrupts (loop)))\n(defun f () (endless))";
    let mut endless = text(code);
    endless.deadline = 4.0;
    let report = soon(fixture.checker.check(endless)).await.unwrap();
    assert!(reason(&report).contains("longer than the 4 s"), "{report:?}");
    let start = code.find("(defun f ").unwrap();
    assert!(codes(&report).contains(&("out-of-time", start, code.len())), "{report:?}");
    let code =
        "(eval-when (:compile-toplevel) (let ((hog nil)) (loop (push (make-array 100000 :initial-element 1) hog))))";
    let mut hungry = text(code);
    hungry.memory = 200 << 20;
    let report = soon(fixture.checker.check(hungry)).await.unwrap();
    assert!(codes(&report).contains(&("out-of-memory", 0, code.len())), "{report:?}");
    for wait in [0, 20, 100, 400] {
        let endless = fixture.checker.check_edited(text("(eval-when (:compile-toplevel) (loop))"));
        assert!(tokio::time::timeout(Duration::from_millis(wait), endless).await.is_err());
    }
    assert_eq!(fixture.values("(+ 1 2)").await, ["3"]);
    // And the end of the image.
    let checker = fixture.checker.clone();
    let checking = tokio::spawn(async move { checker.check(text("(eval-when (:compile-toplevel) (loop))")).await });
    until(|| !others(pid).is_empty()).await;
    let seconds = others(pid);
    soon(fixture.image.shutdown()).await;
    assert!(seconds.iter().all(|second| !lives(*second)), "{seconds:?}");
    assert!(soon(checking).await.unwrap().is_err());
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn macros_are_expanded_there() {
    let mut fixture = fixture();
    fixture.ready().await;
    let text = "(macrolet ((m (x) `(list ,x 17))) (m 1))";
    let request = ExpandRequest { text: text.into(), offset: text.find("(m 1)"), ..ExpandRequest::default() };
    let params = ExpandParams { request, deadline: AMPLE, confine: true, memory: 2 << 30 };
    let expanded = soon(fixture.checker.expand(params)).await.unwrap();
    assert!(matches!(&expanded, ExpandAnswer::Done(_)) && format!("{expanded:?}").contains("17"), "{expanded:?}");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_refuses_where_a_thread_would_not_be_confined() {
    let mut fixture = fixture();
    fixture.ready().await;
    let asd = fixture.workspace.path().join("stubborn.asd");
    fs::write(&asd, "(defsystem \"stubborn\" :components ((:file \"stubborn\")))").unwrap();
    // Loaded only once the thread can no longer be ended.
    let source = r#"(let ((deaf (sb-thread:make-semaphore)))
  (sb-thread:make-thread (lambda () (sb-sys:without-interrupts (sb-thread:signal-semaphore deaf) (loop (sleep 1))))
                         :name "stubborn thread")
  (sb-thread:wait-on-semaphore deaf))"#;
    fs::write(fixture.workspace.path().join("stubborn.lisp"), source).unwrap();
    let params = LoadSystemParams { system: "stubborn".into(), asd_files: vec![asd], force: false, allowed: None };
    assert!(soon(fixture.image.load_system(params, None)).await.unwrap().loaded);
    let refused = soon(fixture.checker.check(text("(defun f () 1)"))).await;
    let Err(ImageError::Refused { kind, message }) = &refused else { panic!("{refused:?}") };
    assert!(kind == "cannot-copy" && message.contains("stubborn thread"), "{message}");
    fixture.close().await;
}
