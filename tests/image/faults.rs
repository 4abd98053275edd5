//! Faults of a running image: each is answered clearly, and the image is kept where it can be.

use std::fs;
use std::time::Duration;

use consort::config::Config;
use consort::image::api::LoadSystemParams;
use consort::model::evaluation::{EvalOutcome, EvalStatus};
use consort::model::image::{ImageError, ImageEvent};

use consort::session::Session;
use consort_tests::agent::{Agent, text};
use consort_tests::patience::{AMPLE, comes};
use serde_json::{Value, json};

use crate::support::{Fixture, Signal, kill, lives, params, signal, soon};

/// The error's type.
fn kind(outcome: &EvalOutcome) -> &str {
    outcome.error.as_ref().map_or("", |error| error.kind.as_str())
}

fn lost(result: Result<EvalOutcome, ImageError>) -> String {
    match result {
        Err(ImageError::Lost { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

/// Evaluates code that cannot be stopped, with the shortest deadline that comes when it has begun:
/// a shorter one just ends the evaluation. Returns the deadline and why the image was lost.
async fn unstoppable(fixture: &Fixture) -> (f64, String) {
    let mut deadline = 0.5;
    loop {
        match fixture.try_eval("(sb-sys:without-interrupts (loop))", deadline).await {
            Ok(outcome) if outcome.status == EvalStatus::Timeout && deadline < AMPLE => deadline *= 4.0,
            other => return (deadline, lost(other)),
        }
    }
}

/// A system in the workspace that defines `(greet)`.
fn write_system(fixture: &Fixture, name: &str, code: &str) -> LoadSystemParams {
    let directory = fixture.workspace.path();
    let asd = directory.join(format!("{name}.asd"));
    fs::write(&asd, format!("(defsystem {name:?} :components ((:file \"{name}-source\")))")).unwrap();
    fs::write(directory.join(format!("{name}-source.lisp")), code).unwrap();
    LoadSystemParams { system: name.into(), asd_files: vec![asd], force: false, allowed: None }
}

async fn restored(fixture: &mut Fixture) -> (String, Vec<String>, Vec<(String, String)>) {
    fixture
        .event(|event| match event {
            ImageEvent::Restored { reason, restored, failed } => Some((reason, restored, failed)),
            _ => None,
        })
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_loop_meets_its_deadline_and_everything_else_answers_meanwhile() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    fixture.eval("(defvar *kept* 1)").await;
    let image = fixture.image.clone();
    let looping = tokio::spawn(async move { image.eval(params("loops", "(loop)", AMPLE), None).await });
    fixture.runs(1).await;
    assert_eq!(fixture.values("(incf *kept*)").await, ["2"]);
    fixture.runs(1).await;
    assert!(!looping.is_finished());
    assert_eq!(soon(fixture.image.interrupt(Some("loops"))).await, 1);
    assert_eq!(soon(looping).await.unwrap().unwrap().status, EvalStatus::Interrupted);
    for code in [
        "(loop)",
        "(loop (handler-case (loop) (serious-condition () nil)))",
        "(handler-bind ((condition #'muffle-warning)) (loop (ignore-errors (loop))))",
        "(loop (unwind-protect (loop) (loop)))",
        "(loop (catch 'nothing (loop (sleep 10))))",
        "(sb-ext:with-timeout 100 (loop))",
    ] {
        let outcome = fixture.try_eval(code, 0.5).await.unwrap();
        assert_eq!(outcome.status, EvalStatus::Timeout, "{code}: {outcome:?}");
    }
    assert_eq!(fixture.values("*kept*").await, ["2"]);
    assert_eq!(fixture.ready().await, pid);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_suspended_image_is_told_about_and_kept() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    fixture.eval("(defvar *kept* :kept)").await;
    signal(pid, Signal::STOP);
    // An evaluation that passes its deadline meanwhile does not cost the image.
    let error = fixture.try_eval("(list 1)", 0.5).await.unwrap_err().to_string();
    let advice = format!("kill -CONT {pid}");
    assert!(error.contains(&advice), "{error}");
    let told =
        fixture.event(|event| if let ImageEvent::Unresponsive { text } = event { Some(text) } else { None }).await;
    assert!(told.contains(&advice), "{told}");
    // A call of an agent ends long before its deadline, and does nothing.
    let (_, none) = tokio::sync::mpsc::unbounded_channel();
    let events = std::mem::replace(&mut fixture.events, none);
    let workspace = fixture.workspace.path().to_path_buf();
    let session = Session::start(Config::default(), workspace, fixture.image.clone(), events);
    let mut agent = Agent::named(&session, "agent", json!({})).await;
    let call = json!({"code": "(setf *kept* :changed)", "timeout": AMPLE});
    let answer = agent.call("evaluate-lisp", call).await;
    assert!(text(&answer).contains(&advice) && text(&answer).contains("Nothing was done"), "{answer}");
    signal(pid, Signal::CONT);
    assert_eq!(fixture.values("*kept*").await, [":KEPT"]);
    // One that runs already has it in its progress.
    agent.ignore(&["notifications/progress"]);
    let wait = json!({"code": "(loop until (eq *kept* :over) do (sleep 0.01))", "timeout": AMPLE});
    let running = json!({"name": "evaluate-lisp", "arguments": wait, "_meta": {"progressToken": 1}});
    let running = agent.ask("tools/call", running).await;
    fixture.runs(1).await;
    signal(pid, Signal::STOP);
    let tells = |message: &Value| message["params"]["message"].as_str().is_some_and(|text| text.contains(&advice));
    agent.next("the progress of the call", tells).await;
    signal(pid, Signal::CONT);
    fixture.eval("(setf *kept* :over)").await;
    agent.result(running).await;
    agent.vanish().await;
    drop(session);
    assert_eq!(fixture.ready().await, pid);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_that_cannot_be_stopped_costs_the_image_and_what_was_loaded_comes_back() {
    let mut fixture = Fixture::new();
    let first = fixture.ready().await;
    let system = write_system(&fixture, "greeter", "(defun greet () :hello)");
    assert!(soon(fixture.image.load_system(system, None)).await.unwrap().loaded);
    let image = fixture.image.clone();
    let bystander = tokio::spawn(async move { image.eval(params("other", "(sleep 1000)", AMPLE), None).await });
    fixture.runs(1).await;
    let (deadline, reason) = unstoppable(&fixture).await;
    assert!(reason.contains(&format!("could not be stopped at its deadline of {deadline} s")), "{reason}");
    assert!(reason.contains("A new image is running. Loaded again: greeter."), "{reason}");
    let second = fixture.ready().await;
    assert_ne!(first, second);
    assert!(!lives(first));
    assert_eq!(lost(soon(bystander).await.unwrap()), reason);
    let (why, loaded, failed) = restored(&mut fixture).await;
    assert!(reason.starts_with(&why) && failed.is_empty(), "{why} {failed:?}");
    assert_eq!(loaded, ["greeter"]);
    assert_eq!(fixture.values("(greet)").await, [":HELLO"]);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exhaustion_is_an_error_and_not_the_end() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    fixture.eval("(defvar *kept* 1)").await;
    for code in [
        "(labels ((f (x) (1+ (f x)))) (f 1))",
        "(make-array (expt 10 9))",
        "(make-array (expt 10 9))",
        "(defvar *hog* nil) (loop (push (make-array (expt 10 6)) *hog*))",
    ] {
        let outcome = fixture.try_eval(code, AMPLE).await.unwrap();
        assert_eq!(outcome.status, EvalStatus::Error, "{code}: {outcome:?}");
        fixture.eval("(setf *hog* nil)").await;
    }
    assert_eq!(fixture.values("*kept*").await, ["1"]);
    assert_eq!(fixture.ready().await, pid);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn much_output_and_large_values_are_clipped() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    let outcome = fixture.eval("(dotimes (i 1000000) (write-line \"0123456789\"))").await;
    assert_eq!(outcome.status, EvalStatus::Ok);
    assert!(outcome.stdout.omitted > 10_000_000 && outcome.stdout.text.len() < 120_000, "{}", outcome.stdout.omitted);
    let outcome = fixture.try_eval("(loop (write-line \"endless\"))", 1.0).await.unwrap();
    assert_eq!(outcome.status, EvalStatus::Timeout);
    assert!(outcome.stdout.text.starts_with("endless\n") && outcome.stdout.text.len() < 120_000);
    let outcome = fixture.eval("(make-string 10000000 :initial-element #\\x)").await;
    assert!(outcome.values[0].text.len() < 120_000 && outcome.values[0].omitted > 9_000_000);
    let code = "(sb-ext:run-program \"/bin/sh\" '(\"-c\" \"head -c 10000000 /dev/zero | tr '\\\\0' x\") :output t) 1";
    let outcome = fixture.eval(code).await;
    assert!(outcome.stdout.text.len() < 120_000 && outcome.stdout.omitted > 9_000_000, "{}", outcome.stdout.omitted);
    let literal = "y".repeat(20_000_000);
    assert_eq!(fixture.values(&format!("(length \"{literal}\")")).await, ["20000000"]);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leaving_asking_and_breaking_are_errors() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    for code in [
        "(sb-ext:exit)",
        "(sb-ext:quit)",
        "(sb-ext:exit :abort t)",
        "(sb-ext:exit :code 3 :timeout 1)",
        "(read-line)",
        "(abort)",
        "(break)",
        "(break \"here\")",
        "(invoke-debugger (make-condition 'error))",
        "(error \"a mistake\")",
        "(signal 'sb-sys:interactive-interrupt) (error 'sb-sys:interactive-interrupt)",
        "(throw 'nowhere 1)",
        "(sb-thread:abort-thread)",
        "(y-or-n-p \"well?\")",
    ] {
        let outcome = fixture.try_eval(code, AMPLE).await.unwrap();
        assert_eq!(outcome.status, EvalStatus::Error, "{code}: {outcome:?}");
        assert!(!kind(&outcome).is_empty(), "{code}: {outcome:?}");
    }
    assert_eq!(fixture.values("(code-char #xD800)").await.len(), 1);
    assert_eq!(fixture.values("(string (code-char #xD800))").await, ["\"\u{fffd}\""]);
    assert_eq!(fixture.ready().await, pid);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_in_another_thread_is_told_and_foreign_code_may_write_where_it_likes() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    fixture.eval("(sb-thread:make-thread (lambda () (error \"off the road\")) :name \"a wanderer\") 1").await;
    let (thread, message) = fixture
        .event(|event| match event {
            ImageEvent::ThreadError { thread, message, .. } => Some((thread, message)),
            _ => None,
        })
        .await;
    assert_eq!((thread.as_str(), message.as_str()), ("a wanderer", "off the road"));
    let write = "(sb-alien:alien-funcall (sb-alien:extern-alien \"write\" (function sb-alien:long sb-alien:int sb-alien:c-string \
                 sb-alien:long)) 1 \"{\\\"id\\\":1}\" 8)";
    let outcome = fixture.eval(write).await;
    assert_eq!((outcome.status, outcome.stdout.text.as_str()), (EvalStatus::Ok, "{\"id\":1}"));
    // Later than the evaluation that starts it, so it is nobody's.
    let fifo = fixture.workspace.path().join("fifo");
    let program = format!("read line <'{}'; echo $line", fifo.display());
    fixture.eval(&format!("(sb-posix:mkfifo {fifo:?} #o600) (sb-ext:run-program \"/bin/sh\" '(\"-c\" {program:?}) :output t :wait nil) 1")).await;
    tokio::task::spawn_blocking(move || fs::write(fifo, "later\n")).await.unwrap().unwrap();
    let printed = |event| match event {
        ImageEvent::Printed { text, stderr: false } => Some(text),
        _ => None,
    };
    assert_eq!(fixture.event(printed).await, "later");
    assert_eq!(fixture.ready().await, pid);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_image_is_started_again_with_what_it_had() {
    let mut fixture = Fixture::new();
    let first = fixture.ready().await;
    let one = write_system(&fixture, "one", "(defvar cl-user::*loads* '(1))");
    let two = write_system(&fixture, "two", "(push 2 cl-user::*loads*)");
    for system in [one, two] {
        assert!(soon(fixture.image.load_system(system, None)).await.unwrap().loaded);
    }
    let image = fixture.image.clone();
    let running = tokio::spawn(async move { image.eval(params("test", "(sleep 1000)", AMPLE), None).await });
    fixture.runs(1).await;
    kill(first);
    let reason = lost(soon(running).await.unwrap());
    assert!(reason.contains("was killed by signal 9") && reason.contains("Loaded again: one, two."), "{reason}");
    let (why, loaded, _) = restored(&mut fixture).await;
    assert!(why.contains("was killed by signal 9"), "{why}");
    assert_eq!(loaded, ["one", "two"]);
    assert_eq!(fixture.values("*loads*").await, ["(2 1)"]);
    // The image's last output explains its end, though an evaluation was running.
    let die = "(sb-ext:run-program \"/bin/sh\" '(\"-c\" \"echo a dire message >&2\") :output t) \
               (sb-posix:kill (sb-posix:getpid) sb-posix:sigabrt) (sleep 1000)";
    let reason = lost(fixture.try_eval(die, AMPLE).await);
    assert!(reason.contains("ABRT") && reason.contains("a dire message"), "{reason}");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_load_that_does_not_end_in_a_new_image_is_interrupted() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    let endless = write_system(
        &fixture,
        "endless",
        "(if (probe-file \"second\") (loop) (close (open \"second\" :direction :output)))",
    );
    let good = write_system(&fixture, "good", "(defvar cl-user::*good* t)");
    for system in [endless, good] {
        assert!(soon(fixture.image.load_system(system, None)).await.unwrap().loaded);
    }
    let image = fixture.image.clone();
    assert_eq!(image.interrupt_restoration().await, 0);
    let restart = tokio::spawn(async move { image.restart().await });
    let image = fixture.image.clone();
    comes("the load is interrupted", async || (image.interrupt_restoration().await == 1).then_some(())).await;
    soon(restart).await.unwrap().unwrap();
    let (_, loaded, failed) = restored(&mut fixture).await;
    assert_eq!(loaded, ["good"]);
    assert!(
        failed.len() == 1 && failed[0].0 == "endless" && failed[0].1.to_lowercase().contains("interrupted"),
        "{failed:?}"
    );
    assert_eq!(fixture.values("*good*").await, ["T"]);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_system_that_the_image_dies_of_is_left_out() {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    let good = write_system(&fixture, "good", "(defvar cl-user::*good* t)");
    let bad = write_system(
        &fixture,
        "bad",
        "(if (probe-file \"second\") (sb-posix:kill (sb-posix:getpid) 9) (close (open \"second\" :direction :output)))",
    );
    for system in [bad, good] {
        assert!(soon(fixture.image.load_system(system, None)).await.unwrap().loaded);
    }
    let restart = soon(fixture.image.restart()).await;
    assert!(restart.is_ok(), "{restart:?}");
    let (_, loaded, failed) = restored(&mut fixture).await;
    assert_eq!(loaded, ["good"]);
    assert!(
        failed.len() == 1 && failed[0].0 == "bad" && failed[0].1.contains("the image ended during it"),
        "{failed:?}"
    );
    assert_eq!(fixture.values("*good*").await, ["T"]);
    fixture.close().await;
}

/// Code that nothing but the end of the image stops, once it has set `*kept*`.
const UNSTOPPABLE: &str = "(sb-sys:without-interrupts (setf cl-user::*kept* 3) (loop))";

/// Waits until an evaluation has set `*kept*` to the value.
async fn has_set(fixture: &Fixture, value: &str) {
    comes("the evaluation's effect", async || {
        let kept = soon(fixture.image.eval(params("other", "cl-user::*kept*", AMPLE), None)).await.unwrap();
        (kept.values[0].text == value).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_evaluation_stops_and_its_session_goes_on_with_its_state() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    fixture.eval("(defvar *kept* 1) (defpackage :mine (:use :cl)) (in-package :mine)").await;
    for wait in [0, 0, 1, 5, 50, 300] {
        let running = fixture.image.eval(params("test", "(loop (setf cl-user::*kept* 2))", AMPLE), None);
        assert!(tokio::time::timeout(Duration::from_millis(wait), running).await.is_err());
        assert_eq!(fixture.values("(package-name *package*)").await, ["\"MINE\""]);
    }
    // And while it certainly runs.
    let image = fixture.image.clone();
    let running =
        tokio::spawn(async move { image.eval(params("test", "(loop (setf cl-user::*kept* 2))", AMPLE), None).await });
    fixture.runs(1).await;
    has_set(&fixture, "2").await;
    running.abort();
    assert_eq!(fixture.values("(package-name *package*)").await, ["\"MINE\""]);
    assert_eq!(fixture.values("cl-user::*kept*").await, ["2"]);
    fixture.runs(0).await;
    assert_eq!(fixture.ready().await, pid);
    // An evaluation that cannot be stopped is ended without anybody waiting for it.
    let image = fixture.image.clone();
    let running = tokio::spawn(async move { image.eval(params("test", UNSTOPPABLE, AMPLE), None).await });
    // An evaluation that only begins can still be stopped.
    has_set(&fixture, "3").await;
    running.abort();
    let (why, ..) = restored(&mut fixture).await;
    assert!(why.contains("cancelled"), "{why}");
    assert!(!lives(pid));
    fixture.ready().await;
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_counts_from_the_evaluations_turn_and_interrupt_finds_what_runs() {
    let mut fixture = Fixture::new();
    let pid = fixture.ready().await;
    let first = fixture.image.eval(params("test", "(sleep 6)", AMPLE), None);
    let second = fixture.image.eval(params("test", ":second", 5.0), None);
    let (first, second) = soon(async { tokio::join!(first, second) }).await;
    assert_eq!(first.unwrap().status, EvalStatus::Ok);
    assert_eq!(second.unwrap().values[0].text, ":SECOND");
    let run = |session: &str| {
        let (image, params) = (fixture.image.clone(), params(session, "(loop)", AMPLE));
        tokio::spawn(async move { image.eval(params, None).await })
    };
    let (a, b) = (run("a"), run("b"));
    fixture.runs(2).await;
    assert_eq!(soon(fixture.image.interrupt(Some("nobody"))).await, 0);
    assert_eq!(soon(fixture.image.interrupt(Some("a"))).await, 1);
    assert_eq!(soon(a).await.unwrap().unwrap().status, EvalStatus::Interrupted);
    assert!(!b.is_finished());
    assert_eq!(soon(fixture.image.interrupt(None)).await, 1);
    assert_eq!(soon(b).await.unwrap().unwrap().status, EvalStatus::Interrupted);
    let c = run("c");
    fixture.runs(1).await;
    fixture.image.close_session("c");
    assert_eq!(soon(c).await.unwrap().unwrap().status, EvalStatus::Interrupted);
    assert_eq!(fixture.ready().await, pid);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_init_file_that_the_image_dies_of_is_left_out() {
    let directory = tempfile::tempdir().unwrap();
    let init = directory.path().join("deadly.lisp");
    fs::write(&init, "(sb-posix:kill (sb-posix:getpid) 9)").unwrap();
    let mut config = crate::support::config();
    config.init_file = consort::config::InitFile::File(init);
    let mut fixture = Fixture::with(config, crate::support::cache());
    let (_, loaded, failed) = restored(&mut fixture).await;
    assert!(loaded.is_empty() && failed.len() == 1 && failed[0].0.ends_with("deadly.lisp"), "{loaded:?} {failed:?}");
    assert_eq!(fixture.values("(+ 1 2)").await, ["3"]);
    fixture.close().await;
}
