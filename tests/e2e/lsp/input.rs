//! Code that reads: the editor that runs it is asked for each line.

use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

async fn asking(world: &World) -> Editor {
    Editor::start(&world.session, json!({"experimental": {"consort": {"input": true}}})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn code_that_reads_asks_the_editor_that_runs_it() {
    let world = World::ready(&[]).await;
    let mut other = asking(&world).await;
    let mut editor = asking(&world).await;
    let code = "(progn (format t \"Hello.~%Your name? \") (list (read-line) (y-or-n-p \"Sure?\")))";
    let id = editor.ask_command("consort.eval", json!({"code": code, "timeout": 600})).await;
    let first = editor.input_wanted().await;
    assert_eq!(first["params"]["prompt"], "Your name? ");
    assert_eq!(first["params"]["command"], "consort.eval");
    // Evaluations of other clients continue meanwhile.
    assert_eq!(other.eval("(+ 1 2)").await, ["3"]);
    editor.reply(&first, json!({"text": "Ada \u{1F980}"})).await;
    let second = editor.input_wanted().await;
    assert!(second["params"]["prompt"].as_str().unwrap().contains("Sure?"), "{second}");
    editor.reply(&second, json!({"text": "y"})).await;
    let result = editor.answer(id).await.unwrap();
    assert_eq!(result["values"], json!(["(\"Ada \u{1F980}\" T)"]));
    assert!(result["stdout"].as_str().unwrap().starts_with("Hello.\nYour name? Ada \u{1F980}\n"), "{result}");
    assert!(!other.has("consort/input", |_| true));

    // A question that the person cancels is end of file, and the error says so.
    let id = editor.ask_command("consort.eval", json!({"code": "(read-line)"})).await;
    let question = editor.input_wanted().await;
    editor.reply(&question, Value::Null).await;
    let result = editor.answer(id).await.unwrap();
    assert_eq!(result["error"]["type"], "END-OF-FILE");
    assert!(result["error"]["message"].as_str().unwrap().contains("cancelled by the person"), "{result}");
    other.leave().await;
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_that_answered_is_not_told_that_the_question_is_over() {
    let world = World::ready(&[]).await;
    let mut editor = asking(&world).await;
    let id = editor.ask_command("consort.eval", json!({"code": "(loop repeat 200 collect (read-line))"})).await;
    for round in 0..200 {
        let question = editor.input_wanted().await;
        editor.reply(&question, json!({"text": round.to_string()})).await;
    }
    assert_eq!(editor.answer(id).await.unwrap()["status"], "ok");
    // The end of each question was handled before the evaluation's answer.
    assert!(!editor.has("consort/inputOver", |_| true));
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_waiting_and_the_question() {
    let world = World::ready(&[]).await;
    let mut editor = asking(&world).await;
    let id = editor.ask_command("consort.eval", json!({"code": "(read-line)"})).await;
    let question = editor.input_wanted().await;
    editor.command("consort.interrupt", json!({})).await.unwrap();
    assert_eq!(editor.answer(id).await.unwrap()["status"], "interrupted");
    let over = editor.wait_for("consort/inputOver", |_| true).await;
    assert_eq!(over["id"], question["params"]["id"]);
    editor.wait_for("$/cancelRequest", |params| params["id"] == question["id"]).await;

    // The end of the client does the same: its evaluation is stopped, and the image works for
    // others.
    editor
        .ask_command("consort.eval", json!({"code": "(unwind-protect (read-line) (defvar cl-user::*left* t))"}))
        .await;
    editor.input_wanted().await;
    editor.vanish().await;
    let mut other = asking(&world).await;
    let code = "(loop until (boundp 'cl-user::*left*) do (sleep 0.01) finally (return :left))";
    assert_eq!(other.eval(code).await, [":LEFT"]);
    other.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_and_tests_ask_too() {
    let files = [
        (
            "asks.asd",
            "(defsystem \"asks\" :components ((:file \"asks\")) :perform (test-op (o c) (print (read-line))))",
        ),
        ("asks.lisp", "(defvar cl-user::*line* (read-line))"),
    ];
    let world = World::ready(&files).await;
    let mut editor = asking(&world).await;
    let id = editor.ask_command("consort.loadSystem", json!({"system": "asks"})).await;
    let question = editor.input_wanted().await;
    editor.reply(&question, json!({"text": "loaded"})).await;
    assert_eq!(editor.answer(id).await.unwrap()["loaded"], true);
    assert_eq!(editor.eval("cl-user::*line*").await, ["\"loaded\""]);
    let id = editor.ask_command("consort.runTests", json!({"system": "asks"})).await;
    let question = editor.input_wanted().await;
    editor.reply(&question, json!({"text": "tested"})).await;
    assert_eq!(editor.answer(id).await.unwrap()["success"], true);
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_that_cannot_ask_meets_end_of_file_and_is_told_so() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let result = editor.command("consort.eval", json!({"code": "(read-line)"})).await.unwrap();
    assert_eq!(result["error"]["type"], "END-OF-FILE");
    assert!(result["error"]["message"].as_str().unwrap().contains("nobody is asked"), "{result}");
    editor.leave().await;
    world.end().await;
}
