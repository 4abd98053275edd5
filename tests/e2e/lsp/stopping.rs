//! Evaluations of an editor that stop at errors: `debug.on_error`.

use std::time::Duration;

use consort::config::Config;
use consort::image::api::debug::{DebugRestart, DebugRestartFrame, DebugStops};
use consort::model::action_outcome::ActionStatus;
use consort_tests::lsp::Editor;
use consort_tests::patience::comes;
use consort_tests::world::World;
use serde_json::{Value, json};

const FAILS: &str = "(restart-case (error \"No price.\") (use-other (value) (list :used value)))";
const QUESTION: &str = "window/showMessageRequest";

/// An editor that shows stops.
async fn editor(world: &World, on_error: &str) -> Editor {
    let mut editor = Editor::connect(&world.session);
    editor
        .initialize(
            json!({"capabilities": {}, "initializationOptions": {"stops": true, "debug": {"on_error": on_error}}}),
        )
        .await;
    editor
}

/// Evaluates code; returns the request's id, and the stop.
async fn stop(editor: &mut Editor, code: &str) -> (i64, Value) {
    let id = editor.ask_command("consort.eval", json!({"code": code})).await;
    let told = editor.wait_for("consort/stopped", |_| true).await;
    (id, told)
}

async fn use_other(world: &World, stop: &Value, value: &str) {
    let restart = DebugRestart {
        stop: stop["stop"].as_u64().unwrap(),
        index: 0,
        name: Some("USE-OTHER".into()),
        arguments: vec![value.into()],
        input: None,
    };
    assert_eq!(world.session.at_stop(restart).await.unwrap().status, ActionStatus::Sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_stops_and_goes_on_by_a_restart() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world, "stop").await;
    let (id, told) = stop(&mut editor, FAILS).await;
    assert_eq!((&told["reason"], &told["text"]), (&json!("error"), &json!("SIMPLE-ERROR: No price.")));
    use_other(&world, &told, "42").await;
    assert_eq!(editor.answer(id).await.unwrap()["values"], json!(["(:USED 42)"]));
    assert!(!editor.has(QUESTION, |_| true));
    world.end().await;
}

/// The next image numbers its stops anew: an answer about a stop of this one is for none of them.
#[tokio::test(flavor = "multi_thread")]
async fn the_question_about_a_stop_ends_with_its_image() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world, "ask").await;
    let id = editor.ask_command("consort.eval", json!({"code": FAILS})).await;
    let question = editor.question().await;
    world.kill_image().await;
    editor.wait_for("$/cancelRequest", |params| params["id"] == question["id"]).await;
    editor.answer(id).await.unwrap_err();
    for part in ["is being started", "A new image is running"] {
        let told = |params: &Value| params["message"].as_str().is_some_and(|text| text.contains(part));
        editor.wait_for("window/showMessage", told).await;
    }
    let id = editor.ask_command("consort.eval", json!({"code": FAILS})).await;
    let second = editor.question().await;
    assert_ne!(second["id"], question["id"]);
    editor.reply(&question, json!({"title": "Report"})).await;
    editor.reply(&second, json!({"title": "Debug"})).await;
    let told = editor.wait_for("consort/stopped", |_| true).await;
    use_other(&world, &told, "42").await;
    assert_eq!(editor.answer(id).await.unwrap()["values"], json!(["(:USED 42)"]));
    world.end().await;
}

/// The editor's own session waits; the corrected function is defined without waiting for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_function_is_mended_while_its_caller_is_stopped() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world, "stop").await;
    editor.eval("(defun price (x) (list :price (the-price-of x)))").await;
    let (id, told) = stop(&mut editor, "(list (price 7))").await;
    let mended =
        editor.command("consort.eval", json!({"code": "(defun price (x) (list :price (* 2 x)))"})).await.unwrap();
    assert_eq!(mended["status"], "ok", "{mended}");
    let stop = told["stop"].as_u64().unwrap();
    let frames = consort::image::api::debug::DebugFrames { stop, start: 0, count: 20 };
    let frames = world.session.at_stop(frames).await.unwrap().frames;
    let frame = frames.iter().find(|frame| frame.name == "PRICE").expect("the frame").number;
    assert_eq!(world.session.at_stop(DebugRestartFrame { stop, frame }).await.unwrap().status, ActionStatus::Sent);
    assert_eq!(editor.answer(id).await.unwrap()["values"], json!(["((:PRICE 14))"]));
    // The session can be used again.
    assert_eq!(editor.eval("*").await, ["((:PRICE 14))"]);
    world.end().await;
}

/// What an editor asks for beside a stop of its own evaluation.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_an_editor_waits_for_its_stopped_evaluation() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world, "stop").await;
    editor.open("file:///w/a.lisp", "(defun price (x) (* 2 x))\n(mapca").await;
    // The second was sent before the first stopped.
    let first = editor.ask_command("consort.eval", json!({"code": FAILS})).await;
    let queued = editor.ask_command("consort.eval", json!({"code": "(list :queued 1)"})).await;
    let one = editor.wait_for("consort/stopped", |_| true).await;
    assert_eq!(editor.answer(queued).await.unwrap()["values"], json!(["(:QUEUED 1)"]));
    // One that stops beside it, and one beside both.
    let (second, two) = stop(&mut editor, FAILS).await;
    assert_eq!(editor.eval("(list :third 3)").await, ["(:THIRD 3)"]);
    let place = json!({"textDocument": {"uri": "file:///w/a.lisp"}, "position": {"line": 1, "character": 6}});
    let completed = editor.request("textDocument/completion", place).await.unwrap();
    let items = completed["items"].as_array().or_else(|| completed.as_array()).unwrap();
    assert!(items.iter().any(|item| item["label"] == "mapcar"), "{completed}");
    let place = json!({"textDocument": {"uri": "file:///w/a.lisp"}, "position": {"line": 0, "character": 19}});
    assert!(editor.request("textDocument/hover", place).await.unwrap()["contents"].is_object());
    // A profile is of the session that is stopped.
    let profiled = editor.command("consort.profileForm", json!({"code": "(+ 1 2)"})).await.unwrap_err();
    assert!(profiled.to_string().contains("is stopped in the debugger"), "{profiled}");
    use_other(&world, &two, "2").await;
    use_other(&world, &one, "1").await;
    assert_eq!(editor.answer(second).await.unwrap()["values"], json!(["(:USED 2)"]));
    assert_eq!(editor.answer(first).await.unwrap()["values"], json!(["(:USED 1)"]));
    assert_eq!(editor.eval("*").await, ["(:USED 1)"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_person_is_asked_once() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world, "ask").await;
    // Without an answer the error is reported, and the question comes again.
    let id = editor.ask_command("consort.eval", json!({"code": FAILS})).await;
    let question = editor.question().await;
    assert!(
        question["params"]["message"].as_str().unwrap().contains("SIMPLE-ERROR: No price. Stop at errors"),
        "{question}"
    );
    // VS Code hides a warning after some seconds, while the evaluation waits.
    assert_eq!(question["params"]["type"], 1);
    editor.reply(&question, Value::Null).await;
    assert_eq!(editor.answer(id).await.unwrap()["error"]["message"], "No price.");

    let id = editor.ask_command("consort.eval", json!({"code": FAILS})).await;
    let question = editor.question().await;
    editor.reply(&question, json!({"title": "Report"})).await;
    assert_eq!(editor.answer(id).await.unwrap()["error"]["message"], "No price.");
    let failed = editor.command("consort.eval", json!({"code": FAILS})).await.unwrap();
    assert_eq!(failed["error"]["message"], "No price.");
    assert!(!editor.has(QUESTION, |_| true) && !editor.has("consort/stopped", |_| true));

    let mut other = self::editor(&world, "ask").await;
    let id = other.ask_command("consort.eval", json!({"code": FAILS})).await;
    let question = other.question().await;
    other.reply(&question, json!({"title": "Debug"})).await;
    let told = other.wait_for("consort/stopped", |_| true).await;
    use_other(&world, &told, "1").await;
    assert_eq!(other.answer(id).await.unwrap()["values"], json!(["(:USED 1)"]));
    let (id, told) = stop(&mut other, FAILS).await;
    use_other(&world, &told, "2").await;
    assert_eq!(other.answer(id).await.unwrap()["values"], json!(["(:USED 2)"]));
    world.end().await;
}

/// A cancelled evaluation leaves its stop, and its question is withdrawn.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_a_stopped_evaluation() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world, "ask").await;
    let id = editor.ask_command("consort.eval", json!({"code": FAILS})).await;
    editor.question().await;
    editor.command("consort.interrupt", json!({})).await.unwrap();
    assert_eq!(editor.answer(id).await.unwrap()["status"], "interrupted");
    assert_eq!(editor.eval("(+ 1 2)").await, ["3"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_that_shows_no_stops_has_the_report() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::connect(&world.session);
    editor.initialize(json!({"capabilities": {}, "initializationOptions": {"debug": {"on_error": "stop"}}})).await;
    let failed = editor.command("consort.eval", json!({"code": FAILS})).await.unwrap();
    assert_eq!(failed["error"]["message"], "No price.");
    world.end().await;
}

const THREAD: &str = "(progn (defvar cl-user::*worker*
    (sb-thread:make-thread (lambda () (list (restart-case (error \"No price.\") (use-other (value) (list :used value))))) :name \"worker\"))
  :started)";

/// Waits until an editor is told that an error ended the thread of `THREAD`.
async fn ended_by_an_error(editor: &mut Editor) {
    let told = |params: &Value| {
        params["message"].as_str().is_some_and(|text| text.contains("ended the Lisp thread \"worker\""))
    };
    editor.wait_for("window/showMessage", told).await;
}

/// A thread that an evaluation started stops, and the editor's own session continues.
#[tokio::test(flavor = "multi_thread")]
async fn a_thread_of_an_evaluation_stops() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world, "stop").await;
    assert_eq!(editor.eval(THREAD).await, [":STARTED"]);
    let told = editor.wait_for("consort/stopped", |_| true).await;
    assert_eq!(told["text"], "SIMPLE-ERROR: No price. (in the thread worker)");
    assert!(told["thread"].as_u64().unwrap() > 1_000_000_000, "{told}");
    // The session does not wait for the thread.
    assert_eq!(editor.eval("*").await, [":STARTED"]);
    use_other(&world, &told, "42").await;
    assert_eq!(editor.eval("(sb-thread:join-thread cl-user::*worker*)").await, ["((:USED 42))"]);
    world.end().await;
}

/// The person's answer is for errors of threads too.
#[tokio::test(flavor = "multi_thread")]
async fn an_error_of_a_thread_is_asked_about_and_reported() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world, "ask").await;
    assert_eq!(editor.eval(THREAD).await, [":STARTED"]);
    let question = editor.question().await;
    let text = question["params"]["message"].as_str().unwrap();
    assert!(text.contains("SIMPLE-ERROR: No price. (in the thread worker)"), "{text}");
    editor.reply(&question, json!({"title": "Report"})).await;
    ended_by_an_error(&mut editor).await;
    assert_eq!(editor.eval("(values (sb-thread:join-thread cl-user::*worker* :default :ended))").await, [":ENDED"]);
    assert!(!editor.has("consort/stopped", |_| true));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_threads_of_an_editor_that_left_are_ended_after_a_while() {
    let config = Config { abandoned_stop_timeout: Duration::from_millis(10), ..Config::default() };
    let world = World::configured(&[], config).await;
    world.is_ready().await;
    let mut leaving = editor(&world, "stop").await;
    assert_eq!(leaving.eval(THREAD).await, [":STARTED"]);
    let told = leaving.wait_for("consort/stopped", |_| true).await;
    // The second editor is there before the thread ends, so that it is told of the error.
    let mut other = editor(&world, "stop").await;
    leaving.leave().await;
    comes("the end of the stop", async || {
        let stops = world.session.at_stop(DebugStops {}).await.unwrap().stops;
        stops.iter().all(|stop| told["stop"] != stop.number).then_some(())
    })
    .await;
    ended_by_an_error(&mut other).await;
    assert_eq!(other.eval("(values (sb-thread:join-thread cl-user::*worker* :default :ended))").await, [":ENDED"]);
    world.end().await;
}
