//! An evaluation in a copy of the image: everything that is loaded can be used, no change is kept,
//! and operations that a copy may not do are reported.

use std::path::Path;

use consort::config::Copies;
use consort::image::api::Operation;
use consort::image::api::eval_copy::{EvalInCopyParams, WorkInCopyParams};
use consort::image::api::profile::ProfileParams;
use consort::image::api::testing::RunTestsParams;
use consort::model::evaluation::{EvalOutcome, EvalStatus};
use consort::model::profile::ProfileMode;
use consort::model::testing::TestSelection;
use consort_tests::lone_image::LoneImage;
use consort_tests::patience::AMPLE;

async fn in_copy(lone: &LoneImage, code: &str, timeout: f64) -> EvalOutcome {
    evaluate(lone, code, timeout, false).await
}

/// Evaluates with `eval.in_copy` set to `"threads"`.
async fn under_test(lone: &LoneImage, code: &str) -> EvalOutcome {
    evaluate(lone, code, AMPLE, true).await
}

async fn evaluate(lone: &LoneImage, code: &str, timeout: f64, threads: bool) -> EvalOutcome {
    let params = EvalInCopyParams {
        session: "test".into(),
        code: code.into(),
        package: None,
        capture_time: false,
        timeout,
        deadline: timeout + 2.0,
        confine: true,
        threads,
        memory: 2048 << 20,
    };
    lone.checker.evaluate(params).await.expect("an evaluation answers")
}

fn values(outcome: &EvalOutcome) -> Vec<&str> {
    assert_eq!(outcome.status, EvalStatus::Ok, "{outcome:?}");
    outcome.values.iter().map(|value| value.text.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_loaded_is_there_and_nothing_is_kept() {
    let lone = LoneImage::start().await;
    let made = lone
        .eval("(defpackage :app (:use :cl)) (in-package :app) (defvar *count* 1) (defun f (x) (* 2 x)) (f 21)")
        .await;
    assert_eq!(values(&made), ["42"]);
    // The session's package and REPL variables are there too.
    assert_eq!(values(&in_copy(&lone, "(values (f 4) * *count*)", AMPLE).await), ["8", "42", "1"]);
    let outcome =
        in_copy(&lone, "(defun f (x) (- x)) (incf *count*) (defvar *new* t) (format t \"hello~%\") (f 4)", AMPLE).await;
    assert_eq!(values(&outcome), ["-4"]);
    assert_eq!(outcome.stdout.text, "hello\n");
    assert_eq!(outcome.package, "APP");
    assert_eq!(values(&lone.eval("(list (f 4) *count* (boundp '*new*))").await), ["(8 1 NIL)"]);
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_has_its_backtrace_and_a_refusal_its_reason() {
    let lone = LoneImage::start().await;
    lone.eval("(defun broken (x) (list (/ x 0)))").await;
    let outcome = in_copy(&lone, "(print 1) (broken 1)", AMPLE).await;
    let error = outcome.error.as_ref().expect("an error");
    assert_eq!((outcome.status, error.kind.as_str()), (EvalStatus::Error, "DIVISION-BY-ZERO"), "{outcome:?}");
    assert!(error.backtrace.iter().any(|frame| frame.name.as_deref() == Some("BROKEN")), "{outcome:?}");
    assert!(outcome.stdout.text.contains('1') && !error.message.contains("confined"), "{outcome:?}");
    let victim = lone.workspace().join("victim.txt");
    std::fs::write(&victim, "precious").expect("a file");
    for code in [
        format!("(delete-file {:?})", victim.display().to_string()),
        "(sb-ext:run-program \"/bin/true\" nil)".into(),
        "(sb-thread:join-thread (sb-thread:make-thread (lambda () 1)))".into(),
    ] {
        let outcome = in_copy(&lone, &code, AMPLE).await;
        let error = outcome.error.as_ref().expect("an error");
        assert!(error.message.contains("copy of the image, which is confined"), "{code}: {outcome:?}");
    }
    assert_eq!(std::fs::read_to_string(Path::new(&victim)).expect("it is still there"), "precious");
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_never_ends_is_left_and_one_that_cannot_be_left_is_ended() {
    let lone = LoneImage::start().await;
    // A busy machine may take longer than a short deadline until the loop has begun.
    let mut deadline = 1.0;
    let outcome = loop {
        let outcome = in_copy(&lone, "(print :before) (loop)", deadline).await;
        assert_eq!(outcome.status, EvalStatus::Timeout, "{outcome:?}");
        if outcome.stdout.text.contains(":BEFORE") || deadline > AMPLE {
            break outcome;
        }
        deadline *= 4.0;
    };
    assert!(outcome.stdout.text.contains(":BEFORE"), "{outcome:?}");
    let outcome = in_copy(&lone, "(sb-sys:without-interrupts (loop))", 1.0).await;
    assert_eq!(outcome.status, EvalStatus::Timeout, "{outcome:?}");
    let outcome = in_copy(&lone, "(sb-ext:exit :code 3 :abort t)", AMPLE).await;
    assert_eq!(outcome.status, EvalStatus::Error, "{outcome:?}");
    assert_eq!(values(&lone.eval("(+ 1 2)").await), ["3"]);
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_evaluates_too() {
    let lone = LoneImage::with(Copies::Process).await;
    assert_eq!(values(&in_copy(&lone, "(+ 1 2)", AMPLE).await), ["3"]);
    let outcome = in_copy(&lone, "(sb-ext:run-program \"/bin/true\" nil)", AMPLE).await;
    let error = outcome.error.as_ref().expect("an error");
    assert!(error.message.contains("confined"), "{outcome:?}");
    lone.finish().await;
}

async fn work_in_copy<O: Operation>(lone: &LoneImage, operation: O) -> O::Answer {
    let params = WorkInCopyParams {
        work: O::NAME,
        operation,
        timeout: AMPLE,
        deadline: AMPLE + 2.0,
        confine: true,
        threads: false,
        memory: 2048 << 20,
    };
    lone.checker.work(params).await.expect("work in a copy answers")
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_run_in_a_copy_and_say_what_was_refused() {
    let lone = LoneImage::start().await;
    let victim = lone.workspace().join("victim.txt");
    std::fs::write(&victim, "precious").expect("a file");
    let asd = lone.workspace().join("thing.asd");
    let test = format!("(print :tested) (delete-file {:?})", victim.display().to_string());
    let definition =
        format!("(asdf:defsystem \"thing\" :components ((:file \"thing\")) :perform (asdf:test-op (o c) {test}))");
    std::fs::write(&asd, definition).expect("a definition");
    std::fs::write(lone.workspace().join("thing.lisp"), "(defvar cl-user::*thing* 1)").expect("a source");
    let params = RunTestsParams {
        selection: TestSelection { system: Some("thing".into()), ..TestSelection::default() },
        timeout: AMPLE,
        asd_files: vec![asd],
        ..RunTestsParams::default()
    };
    let answer = work_in_copy(&lone, params).await;
    assert_eq!((answer.outcome.status, answer.framework.as_deref()), (EvalStatus::Ok, Some("asdf")), "{answer:?}");
    let test = &answer.tests[0];
    assert!(test.status == "error" && test.output.text.contains(":TESTED"), "{answer:?}");
    assert!(test.failures[0].message.contains("copy of the image, which is confined"), "{answer:?}");
    assert_eq!(std::fs::read_to_string(&victim).expect("it is still there"), "precious");
    assert_eq!(values(&lone.eval("(list (boundp '*thing*) (asdf:component-loaded-p \"thing\"))").await), ["(NIL NIL)"]);
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_is_profiled_in_a_copy() {
    let lone = LoneImage::start().await;
    let code = "(defvar *kept* (loop with end = (+ (get-internal-real-time) internal-time-units-per-second)
                                     until (> (get-internal-real-time) end) count t))";
    let answer = work_in_copy(
        &lone,
        ProfileParams {
            session: "test".into(),
            code: code.into(),
            package: None,
            mode: ProfileMode::Time,
            interval: 0.01,
            max_samples: 1000,
            timeout: AMPLE,
        },
    )
    .await;
    assert_eq!(answer.outcome.status, EvalStatus::Ok, "{answer:?}");
    assert!(!answer.profile.stacks.is_empty(), "{answer:?}");
    assert_eq!(values(&lone.eval("(boundp '*kept*)").await), ["NIL"]);
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_answer_is_cut_and_not_lost() {
    let lone = LoneImage::start().await;
    let code = "(values-list (loop repeat 30 collect (make-string 90000 :initial-element (code-char 233))))";
    let outcome = in_copy(&lone, code, AMPLE).await;
    assert_eq!(values(&outcome).len(), 30);
    assert!(outcome.values[0].omitted > 0 && outcome.values[0].text.contains("characters left out"));
    lone.finish().await;
}

/// Threads that allocate while others collect, wait for locks and conditions, and end with errors.
const THREADS: &str = r#"
(defvar *lock* (sb-thread:make-mutex))
(defvar *ready* (sb-thread:make-waitqueue))
(defvar *sum* 0)
(defvar *done* nil)
(let ((threads (loop for i below 8
                     collect (let ((i i))
                               (sb-thread:make-thread
                                (lambda ()
                                  (dotimes (k 20)
                                    (make-list 10000)
                                    (when (= i k) (sb-ext:gc :full t))
                                    (sb-thread:with-mutex (*lock*) (incf *sum*)))
                                  (funcall (compile nil `(lambda () (list ,i))))))))))
  (sb-thread:make-thread (lambda () (error "this thread fails")))
  (sb-thread:make-thread (lambda () (sb-thread:with-mutex (*lock*) (setf *done* t) (sb-thread:condition-notify *ready*))))
  (sb-thread:with-mutex (*lock*) (loop until *done* do (sb-thread:condition-wait *ready* *lock*)))
  (list (mapcar #'first (mapcar #'sb-thread:join-thread threads)) *sum*))"#;

/// A server and a client on the copy's own loopback interface.
const SOCKETS: &str = r#"
(require :sb-bsd-sockets)
(in-package :sb-bsd-sockets)
(let ((listener (make-instance 'inet-socket :type :stream :protocol :tcp)))
  (socket-bind listener #(127 0 0 1) 0)
  (socket-listen listener 5)
  (let ((port (nth-value 1 (socket-name listener))))
    (sb-thread:make-thread (lambda ()
                             (let ((stream (socket-make-stream (socket-accept listener) :input t :output t)))
                               (format stream "you said ~A~%" (read-line stream))
                               (finish-output stream))))
    (let ((socket (make-instance 'inet-socket :type :stream :protocol :tcp)))
      (socket-connect socket #(127 0 0 1) port)
      (let ((stream (socket-make-stream socket :input t :output t)))
        (format stream "hello~%")
        (finish-output stream)
        (values (read-line stream))))))"#;

/// Returns true if the system lets this user make network namespaces. Otherwise sockets are
/// refused.
fn has_namespaces() -> bool {
    let made = std::process::Command::new("unshare").args(["-Urn", "true"]).output();
    made.is_ok_and(|output| output.status.success())
}

#[tokio::test(flavor = "multi_thread")]
async fn code_under_test_has_threads_and_a_loopback_of_its_own_where_the_person_says_so() {
    let lone = LoneImage::start().await;
    let outcome = under_test(&lone, THREADS).await;
    assert_eq!(values(&outcome), ["((0 1 2 3 4 5 6 7) 160)"]);
    let outcome = under_test(&lone, SOCKETS).await;
    if has_namespaces() {
        assert_eq!(values(&outcome), ["\"you said hello\""]);
        // Services of the machine cannot be reached.
        let service = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        service.set_nonblocking(true).expect("a listener");
        let port = service.local_addr().expect("an address").port();
        let connect = format!(
            "(require :sb-bsd-sockets) (sb-bsd-sockets:socket-connect
               (make-instance 'sb-bsd-sockets:inet-socket :type :stream :protocol :tcp) #(127 0 0 1) {port})"
        );
        let outcome = under_test(&lone, &connect).await;
        assert_eq!(outcome.status, EvalStatus::Error, "{outcome:?}");
        assert!(service.accept().is_err(), "nobody has connected");
    } else {
        let error = outcome.error.as_ref().expect("it is refused");
        assert!(error.message.contains("use sockets ("), "{outcome:?}");
    }
    // Other operations are refused as in every copy.
    let victim = lone.workspace().join("victim.txt");
    std::fs::write(&victim, "precious").expect("a file");
    for code in [
        format!("(delete-file {:?})", victim.display().to_string()),
        format!("(sb-thread:join-thread (sb-thread:make-thread (lambda () (delete-file {victim:?}))))"),
        "(sb-ext:run-program \"/bin/true\" nil)".into(),
        "(require :sb-bsd-sockets) (make-instance 'sb-bsd-sockets:local-socket :type :stream)".into(),
    ] {
        let outcome = under_test(&lone, &code).await;
        let error = outcome.error.as_ref().expect("an error");
        assert!(
            code.contains("join-thread") || error.message.contains("outside its temporary directory"),
            "{code}: {outcome:?}"
        );
    }
    assert_eq!(std::fs::read_to_string(&victim).expect("it is still there"), "precious");
    assert_eq!(values(&lone.eval("(boundp '*sum*)").await), ["NIL"]);
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn threads_of_a_copy_end_with_it_and_are_limited() {
    let lone = LoneImage::start().await;
    let busy = "(dotimes (i 3) (sb-thread:make-thread (lambda () (loop)))) (loop)";
    let outcome = evaluate(&lone, busy, 2.0, true).await;
    assert_eq!(outcome.status, EvalStatus::Timeout, "{outcome:?}");
    let many = "(loop (sb-thread:make-thread (lambda () (sleep 1000))))";
    let outcome = under_test(&lone, many).await;
    let error = outcome.error.as_ref().expect("an error");
    assert!(error.message.contains("512 threads") || error.message.contains("memory"), "{outcome:?}");
    // Data in the buffers of sockets counts as memory too.
    if has_namespaces() {
        let sockets = "(require :sb-bsd-sockets) (in-package :sb-bsd-sockets)
            (let ((listener (make-instance 'inet-socket :type :stream :protocol :tcp)))
              (socket-bind listener #(127 0 0 1) 0)
              (socket-listen listener 4096)
              (loop (let ((socket (make-instance 'inet-socket :type :stream :protocol :tcp)))
                      (setf (non-blocking-mode socket) t)
                      (handler-case (socket-connect socket #(127 0 0 1) (nth-value 1 (socket-name listener))) (error ()))
                      (ignore-errors (socket-send socket (make-array 100000 :element-type '(unsigned-byte 8)) nil))
                      (socket-close socket))))";
        let outcome = under_test(&lone, sockets).await;
        let error = outcome.error.as_ref().expect("an error");
        assert!(error.message.contains("MB of memory"), "{outcome:?}");
    }
    assert_eq!(values(&lone.eval("(+ 1 2)").await), ["3"]);
    lone.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_has_threads_too() {
    let lone = LoneImage::with(Copies::Process).await;
    let outcome = under_test(&lone, THREADS).await;
    assert_eq!(values(&outcome), ["((0 1 2 3 4 5 6 7) 160)"]);
    lone.finish().await;
}
