//! Evaluation in a real image: values, evaluation sessions, output, queueing.

use consort::image::api::LoadSystemParams;
use consort::model::evaluation::EvalStatus;
use consort::model::image::{ImageError, ImageState};
use tokio::sync::mpsc;

use consort_tests::patience::AMPLE;

use crate::support::{Fixture, lives, params, soon};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_output_and_the_package_come_back() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    let outcome = fixture.eval("(princ \"hello\") (values 1 :two \"three\")").await;
    assert_eq!(outcome.status, EvalStatus::Ok);
    assert_eq!(outcome.stdout.text, "hello");
    let values: Vec<_> = outcome.values.iter().map(|value| value.text.as_str()).collect();
    assert_eq!(values, ["1", ":TWO", "\"three\""]);
    assert_eq!(outcome.package, "COMMON-LISP-USER");
    let outcome = fixture.eval("(defpackage :p (:use :cl)) (in-package :p)").await;
    assert_eq!(outcome.package, "P");
    assert_eq!(fixture.values("(package-name *package*)").await, ["\"P\""]);
    let other = soon(fixture.image.eval(params("other", "(package-name *package*)", AMPLE), None)).await.unwrap();
    assert_eq!(other.values[0].text, "\"COMMON-LISP-USER\"");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contribs_load_and_the_directory_is_the_workspaces() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    assert_eq!(fixture.values("(require :sb-md5) (null (find-package :sb-md5))").await, ["NIL"]);
    let facts = soon(fixture.image.facts()).await.unwrap();
    assert_eq!(facts.pid, pid);
    assert!(facts.lisp.starts_with("SBCL "));
    let workspace = fixture.workspace.path().canonicalize().unwrap();
    let cwd = fixture.values("(sb-posix:getcwd)").await;
    assert_eq!(cwd, [format!("{workspace:?}")]);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_keep_their_kind() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    let mut unknown = params("test", "1", AMPLE);
    unknown.package = Some("no-such-package".into());
    match soon(fixture.image.eval(unknown, None)).await {
        Err(ImageError::Refused { kind, message }) => {
            assert_eq!(kind, "package-not-found");
            assert!(message.starts_with("Package no-such-package not found"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    for timeout in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refused = soon(fixture.image.eval(params("test", "1", timeout), None)).await;
        assert!(matches!(refused, Err(ImageError::Refused { ref kind, .. }) if kind == "bad-arguments"), "{refused:?}");
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sessions_run_at_once_and_one_session_queues() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    fixture.eval("(defvar *go* (sb-thread:make-semaphore)) (defvar *log* nil)").await;
    // `waiting` waits for `signal`, of another session: both must run at once. `queued`, of the
    // same session, must not have begun.
    let waiting =
        fixture.image.eval(params("a", "(sb-thread:wait-on-semaphore *go*) (push :a *log*) :waited", AMPLE), None);
    let queued = fixture.image.eval(params("a", "(push :queued *log*) (length *log*)", AMPLE), None);
    let signal = fixture.image.eval(params("b", "(push :b *log*) (sb-thread:signal-semaphore *go*)", AMPLE), None);
    let (waiting, queued, signal) = soon(async { tokio::join!(waiting, queued, signal) }).await;
    assert_eq!(waiting.unwrap().values[0].text, ":WAITED");
    assert_eq!(signal.unwrap().status, EvalStatus::Ok);
    assert_eq!(queued.unwrap().values[0].text, "3");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_streams_while_it_runs_and_descriptors_belong_to_their_evaluation() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    let (sender, mut output) = mpsc::unbounded_channel();
    let mut streaming =
        params("test", "(princ \"one\") (finish-output) (read-line *in* nil) (princ \"two\") :end", AMPLE);
    streaming.stream = true;
    let fifo = fixture.workspace.path().join("fifo");
    fixture.values(&format!("(defvar *in*) (sb-posix:mkfifo {fifo:?} #o600)")).await;
    fixture.values(&format!("(setf *in* (open {fifo:?} :direction :io :if-exists :append)) t")).await;
    let image = fixture.image.clone();
    let running = tokio::spawn(async move { image.eval(streaming, Some(sender)).await });
    let first = soon(output.recv()).await.unwrap();
    assert_eq!((first.text.as_str(), first.stderr), ("one", false));
    assert!(!running.is_finished());
    std::fs::write(&fifo, "go\n").unwrap();
    let outcome = soon(running).await.unwrap().unwrap();
    assert_eq!(outcome.stdout.text, "onetwo");
    let code = "(princ \"lisp\") (sb-ext:run-program \"/bin/sh\" '(\"-c\" \"echo child; echo error >&2\") :output t) 1";
    let outcome = fixture.eval(code).await;
    assert_eq!((outcome.stdout.text.as_str(), outcome.stderr.text.as_str()), ("lisp\nchild\n", "error\n"));
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_system_is_an_outcome_and_the_image_ends_with_its_last_handle() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    let params = LoadSystemParams {
        system: "no-such-system-anywhere".into(),
        asd_files: Vec::new(),
        force: false,
        allowed: None,
    };
    let outcome = soon(fixture.image.load_system(params, None)).await.unwrap();
    assert!(!outcome.loaded);
    assert!(outcome.outcome.error.is_some(), "{outcome:?}");
    let mut watch = fixture.image.watch();
    drop((fixture.image, fixture.checker));
    soon(watch.wait_for(|state| matches!(state, ImageState::Dead { is_final: true, .. }))).await.unwrap();
    assert!(!lives(pid));
}
