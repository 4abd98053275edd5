//! Status is answered whatever requests do, and hostile texts delay nobody else.

use std::sync::mpsc;

use consort::image::api::name_operations::{Named, ReferenceCount};
use consort_tests::agent::Agent;
use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

fn all_features(uri: &str) -> Vec<(&'static str, Value)> {
    let at = json!({"line": 0, "character": 3});
    let options = json!({"tabSize": 8, "insertSpaces": true});
    let whole = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1_000_000, "character": 0}});
    let of = |mut params: Value| {
        params["textDocument"] = json!({"uri": uri});
        params
    };
    vec![
        ("semanticTokens/full", of(json!({}))),
        ("formatting", of(json!({"options": options}))),
        ("foldingRange", of(json!({}))),
        ("documentSymbol", of(json!({}))),
        ("documentHighlight", of(json!({"position": at}))),
        ("selectionRange", of(json!({"positions": [at, at]}))),
        ("hover", of(json!({"position": at}))),
        ("completion", of(json!({"position": at}))),
        ("signatureHelp", of(json!({"position": at}))),
        ("definition", of(json!({"position": at}))),
        ("codeLens", of(json!({}))),
        ("codeAction", of(json!({"range": whole, "context": {"diagnostics": []}}))),
    ]
}

/// Status is answered even while the session's actor itself is stuck.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_is_told_while_the_session_is_stuck() {
    let world = World::with(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let mut agent = Agent::named(&world.session, "an agent", json!({})).await;
    let (release, stuck) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel::<()>();
    let (client, _feedback) = world
        .session
        .attach(consort::session::ClientInfo { frontend: consort::session::Frontend::Cli, name: "a test".into() });
    // This function is called where the session handles its events.
    let operation = move |session: String| {
        begun.send(()).unwrap();
        let _ = stuck.recv();
        ReferenceCount(Named { name: None, package: None, session })
    };
    let work = world.session.run(client, "nothing".into(), operation, None, None);
    tokio::task::spawn_blocking(move || begins.recv()).await.unwrap().unwrap();
    let status = world.session.status().await;
    assert!(status.work.iter().any(|work| work.contains("not answering")), "{status:?}");
    let told = editor.command("consort.status", json!({})).await.unwrap();
    assert!(told.to_string().contains("not answering"), "{told}");
    let told = agent.call("image", json!({"action": "status"})).await;
    assert!(told.to_string().contains("not answering"), "{told}");
    drop(release);
    drop(work);
    let status = world.session.status().await;
    assert!(!status.work.iter().any(|work| work.contains("not answering")), "{status:?}");
    drop((editor, agent));
    world.end().await;
}

/// Every feature answers for hostile texts, and status meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_texts_are_answered() {
    let world = World::with(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.ignore(&["window/showMessage"]);
    const N: usize = 20_000;
    let texts = [
        format!("({})", "a ".repeat(N)),
        format!("(list{})", "\n 1".repeat(N)),
        "(".repeat(N),
        "'".repeat(N) + "x",
        "(defun f (x) x)\n".repeat(N),
        ")".repeat(N),
    ];
    let mut ids = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let uri = world.uri(&format!("hostile-{index}.lisp"));
        editor.open(&uri, text).await;
        for (method, params) in all_features(&uri) {
            ids.push((method, editor.ask(&format!("textDocument/{method}"), params).await));
        }
    }
    let status = editor.command("consort.status", json!({})).await;
    assert!(status.is_ok(), "{status:?}");
    for (method, id) in ids {
        let answer = editor.answer(id).await;
        assert!(answer.is_ok(), "{method}: {answer:?}");
    }
    drop(editor);
    world.end().await;
}

/// A text that is too large for a feature gets one message about it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_told_of_a_large_text_is_said_once() {
    let world = World::with(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("large.lisp");
    editor.open(&uri, &"(defun f (x) x)\n".repeat(300_000)).await;
    for _ in 0..2 {
        let tokens =
            editor.request("textDocument/semanticTokens/full", json!({"textDocument": {"uri": uri}})).await.unwrap();
        assert_eq!(tokens["data"], json!([]));
    }
    let symbols = editor.request("textDocument/documentSymbol", json!({"textDocument": {"uri": uri}})).await.unwrap();
    assert_eq!(symbols.as_array().unwrap().len(), 10_000);
    let said = editor.wait_for("window/showMessage", |params| params["message"].to_string().contains("4 MB")).await;
    assert_eq!(said["type"], 3, "{said}");
    let cut = editor.wait_for("window/showMessage", |params| params["message"].to_string().contains("outline")).await;
    assert!(cut["message"].as_str().unwrap().contains("10000"), "{cut}");
    // All messages come before the answer to the last request.
    editor.request("shutdown", Value::Null).await.unwrap();
    assert!(!editor.has("window/showMessage", |params| params["message"].to_string().contains("4 MB")));
    drop(editor);
    world.end().await;
}
