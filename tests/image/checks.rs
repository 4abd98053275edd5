//! Checks in copies of a real image.

use std::fs;
use std::time::Duration;

use consort::image::api::CheckParams;
use consort::model::check::{CheckEnd, CheckMode, CheckReport};
use consort::model::evaluation::EvalStatus;
use consort::model::image::ImageError;

use consort_tests::patience::AMPLE;

use crate::support::{Fixture, found, lives, params, soon, until};

pub(crate) fn text(code: &str) -> CheckParams {
    CheckParams {
        text: code.into(),
        path: None,
        mode: CheckMode::File,
        package: None,
        withheld: Vec::new(),
        expected: Default::default(),
        asd_files: Vec::new(),
        notes: false,
        unreachable: false,
        confine: true,
        deadline: AMPLE,
        memory: 2 << 30,
    }
}

async fn check(fixture: &Fixture, code: &str) -> CheckReport {
    soon(fixture.checker.check(text(code))).await.unwrap()
}

pub(crate) fn codes(report: &CheckReport) -> Vec<(&str, usize, usize)> {
    report.diagnostics.iter().map(|found| (found.code.as_str(), found.span.start, found.span.end)).collect()
}

pub(crate) fn reason(report: &CheckReport) -> &str {
    match &report.end {
        CheckEnd::Stopped { reason } => reason,
        CheckEnd::Complete => "complete",
    }
}

/// The children of a process, whichever of its threads made them.
pub(crate) fn children(pid: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    threads
        .map(of_thread)
        .flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn findings_come_back_and_the_image_knows_nothing_of_them() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    fixture.eval("(defun live (x) x)").await;
    let code = "(defmacro twice (x) `(list ,x ,x))\n(defun f (y) (twice (live 1 2)) (nowhere))\n";
    let report = check(&fixture, code).await;
    assert_eq!(report.end, CheckEnd::Complete, "{report:?}");
    assert_eq!(report.forms, 2);
    let found = codes(&report);
    for name in ["y", "nowhere", "live"] {
        let here = |(_, start, end): &(&str, usize, usize)| {
            &code[*start..*end] == name || code[*start..].starts_with(&format!("({name}"))
        };
        assert!(found.iter().any(here), "{name}: {found:?}");
    }
    assert_eq!(fixture.values("(list (find-symbol \"TWICE\") (find-symbol \"NOWHERE\"))").await, ["(NIL NIL)"]);
    // The last finding may be here before the copy's end.
    until(|| children(pid).is_empty()).await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_does_not_end_or_takes_too_much_is_told_at_its_form() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    let code = "(defun fine () 1)\n(defmacro endless () (sb-sys:without-interrupts (loop)))\n(defun f () (endless))\n(defun after () 2)";
    let mut endless = text(code);
    endless.deadline = 4.0;
    let report = soon(fixture.checker.check(endless)).await.unwrap();
    assert!(reason(&report).contains("longer than the 4 s"), "{report:?}");
    let start = code.find("(defun f ").unwrap();
    assert!(codes(&report).contains(&("out-of-time", start, start + "(defun f () (endless))".len())), "{report:?}");
    let code =
        "(eval-when (:compile-toplevel) (let ((hog nil)) (loop (push (make-array 100000 :initial-element 1) hog))))";
    let mut hungry = text(code);
    hungry.memory = 200 << 20;
    let report = soon(fixture.checker.check(hungry)).await.unwrap();
    assert!(codes(&report).contains(&("out-of-memory", 0, code.len())), "{report:?}");
    let report = check(&fixture, "(eval-when (:compile-toplevel) (sb-posix:kill (sb-posix:getpid) 9))").await;
    assert!(reason(&report) != "complete" || !report.diagnostics.is_empty(), "{report:?}");
    until(|| children(pid).is_empty()).await;
    assert_eq!(fixture.values("(+ 1 2)").await, ["3"]);
    assert_eq!(fixture.ready().await, pid);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_go_on_while_code_runs_and_a_dropped_one_leaves_nothing() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    let image = fixture.image.clone();
    let looping = tokio::spawn(async move { image.eval(params("loops", "(loop (make-list 100))", AMPLE), None).await });
    fixture.runs(1).await;
    assert_eq!(reason(&check(&fixture, "(defun f () 1)").await), "complete");
    for wait in [0, 5, 20, 100] {
        let endless = fixture.checker.check(text("(eval-when (:compile-toplevel) (loop))"));
        assert!(tokio::time::timeout(Duration::from_millis(wait), endless).await.is_err());
    }
    // And one that certainly has its copy.
    until(|| children(pid).is_empty()).await;
    let checker = fixture.checker.clone();
    let endless = tokio::spawn(async move { checker.check(text("(eval-when (:compile-toplevel) (loop))")).await });
    until(|| !children(pid).is_empty()).await;
    endless.abort();
    let many = (0..6).map(|_| fixture.checker.check(text("(defun f (unused) 1)")));
    let many: Vec<_> = many.collect();
    for report in many {
        assert_eq!(soon(report).await.unwrap().diagnostics.len(), 1);
    }
    soon(fixture.image.interrupt(None)).await;
    assert_eq!(soon(looping).await.unwrap().unwrap().status, EvalStatus::Interrupted);
    until(|| children(pid).is_empty()).await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_do_not_outlive_their_image() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    let checker = fixture.checker.clone();
    let checking = tokio::spawn(async move { checker.check(text("(eval-when (:compile-toplevel) (loop))")).await });
    let copy = found(|| children(pid).first().copied()).await;
    soon(fixture.image.shutdown()).await;
    assert!(!lives(pid) && !lives(copy));
    let ended = soon(checking).await.unwrap();
    assert!(matches!(ended, Err(ImageError::Lost { .. } | ImageError::Unavailable(_))), "{ended:?}");
    fixture.close().await;
}

/// The copy that is kept ready, once it is there.
async fn kept_ready(pid: u32, other_than: &[u32]) -> u32 {
    found(|| children(pid).into_iter().find(|copy| !other_than.contains(copy))).await
}

/// The check of a text that is being edited.
pub(crate) async fn edited(fixture: &Fixture, code: &str) -> CheckReport {
    soon(fixture.checker.check_edited(text(code))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_kept_ready_is_used_only_while_the_image_is_the_same() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    let code = "(defun f () (later))";
    assert_eq!(codes(&edited(&fixture, code).await), [("undefined-function", 13, 18)]);
    let first = kept_ready(pid, &[]).await;
    // The copy serves the next check, whatever its text, and another is made.
    assert_eq!(codes(&edited(&fixture, "(defun f (x) (later))").await).len(), 2);
    until(|| !lives(first)).await;
    let second = kept_ready(pid, &[first]).await;
    // The image changes behind its back.
    fixture.eval("(defun later () 1)").await;
    assert_eq!(codes(&edited(&fixture, code).await), []);
    until(|| !lives(second)).await;
    // A check that leaves, or is killed, costs nothing.
    let third = kept_ready(pid, &[first, second]).await;
    let killed = rustix::process::Pid::from_raw(third.cast_signed()).unwrap();
    // It may be the one of the check before, which is just ending.
    let _ = rustix::process::kill_process(killed, rustix::process::Signal::KILL);
    assert_eq!(codes(&edited(&fixture, code).await), []);
    // Also after one that was given up.
    let fourth = kept_ready(pid, &[first, second, third]).await;
    let endless = fixture.checker.check_edited(text("(eval-when (:compile-toplevel) (loop))"));
    assert!(tokio::time::timeout(Duration::from_millis(100), endless).await.is_err());
    until(|| !lives(fourth)).await;
    let fourth = kept_ready(pid, &[first, second, third, fourth]).await;
    // The copy cannot refuse, so it gets no request that would be refused.
    let mut nowhere = text(code);
    nowhere.package = Some("NO-SUCH-PACKAGE".into());
    let refused = soon(fixture.checker.check_repeated(nowhere)).await;
    assert!(matches!(&refused, Err(ImageError::Refused { kind, .. }) if kind == "package-not-found"), "{refused:?}");
    until(|| !lives(fourth)).await;
    let fourth = kept_ready(pid, &[first, second, third, fourth]).await;
    soon(fixture.image.shutdown()).await;
    assert!(!lives(pid) && !lives(fourth));
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_thread_of_the_user_does_is_seen_by_the_next_check() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    let directory = tempfile::tempdir().unwrap();
    let (go, gone) = (directory.path().join("go"), directory.path().join("gone"));
    fixture
        .eval(&format!(
            "(sb-thread:make-thread (lambda ()
               (loop until (probe-file {go:?}) do (sleep 0.01))
               (setf (fdefinition 'later) (lambda () 1))
               (with-open-file (out {gone:?} :direction :output))
               (loop (sleep 1))))"
        ))
        .await;
    let edited = || edited(&fixture, "(defun f () (later))");
    assert_eq!(codes(&edited().await).len(), 1);
    fs::write(&go, "").unwrap();
    until(|| gone.exists()).await;
    assert_eq!(codes(&edited().await), []);
    until(|| children(pid).is_empty()).await;
    fixture.close().await;
}
