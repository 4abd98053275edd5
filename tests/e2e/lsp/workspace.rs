//! The workspace's files that no editor has open: with `check.workspace` their findings are
//! published, and follow what the files depend on.

use consort::config::Config;
use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

async fn world(files: &[(&str, &str)]) -> World {
    let mut config = Config::default();
    config.check.workspace = true;
    World::configured(files, config).await
}

/// Writes a file as another program does.
async fn write(world: &World, editor: &mut Editor, name: &str, text: &str) {
    std::fs::write(world.path(name), text).unwrap();
    let change = json!({"changes": [{"uri": world.uri(name), "type": 2}]});
    editor.notify("workspace/didChangeWatchedFiles", change).await;
}

/// The next findings of a file that is not open.
async fn found(editor: &mut Editor, uri: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
    editor.diagnostics(uri, |version, lines| version == -1 && wanted(lines)).await.1
}

const USER: &str = "(defun user (b) (twice b))\n(defun other () (no-such-thing))\n";

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_not_open_are_checked_again_when_what_they_depend_on_changes() {
    let world = world(&[("clean.lisp", "(defun clean () 1)\n"), ("user.lisp", USER)]).await;
    world.is_ready().await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("user.lisp");
    let lines = found(&mut editor, &uri, |lines| !lines.is_empty()).await;
    assert_eq!(lines, ["0:17-0:22 undefined-function", "1:17-1:30 undefined-function"]);

    // The image gets the missing definition.
    editor.eval("(defun no-such-thing ())").await;
    let lines = found(&mut editor, &uri, |lines| lines.len() == 1).await;
    assert_eq!(lines, ["0:17-0:22 undefined-function"]);
    editor.eval("(defmacro twice (x) `(list ,x ,x))").await;
    found(&mut editor, &uri, <[String]>::is_empty).await;
    // A macro that the file uses is redefined, when the file has no unknown names any more.
    editor.eval("(defmacro twice (x) (declare (ignore x)) 1)").await;
    let lines = found(&mut editor, &uri, |lines| !lines.is_empty()).await;
    assert_eq!(lines, ["0:13-0:14 unused-variable"]);

    // Another program writes it.
    write(&world, &mut editor, "user.lisp", "\n(defun user (c) (twice c))\n").await;
    let lines = found(&mut editor, &uri, |lines| lines.iter().any(|line| line.starts_with("1:"))).await;
    assert_eq!(lines, ["1:13-1:14 unused-variable"]);

    // Open, it is a document like any other; closed, it is the file again.
    editor.open(&uri, "(defun user (d e) (twice d))\n").await;
    editor.diagnostics(&uri, |version, lines| version >= 0 && lines.len() == 2).await;
    editor.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}})).await;
    let lines = found(&mut editor, &uri, |lines| !lines.is_empty()).await;
    assert_eq!(lines, ["1:13-1:14 unused-variable"]);

    // Opened and closed again at once: the editor has discarded the findings, so they are published
    // again.
    editor.open(&uri, "(defun user (d e) (twice d))\n").await;
    editor.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}})).await;
    let lines = found(&mut editor, &uri, |lines| !lines.is_empty()).await;
    assert_eq!(lines, ["1:13-1:14 unused-variable"]);

    // A file that was removed has no findings.
    std::fs::remove_file(world.path("user.lisp")).unwrap();
    write(&world, &mut editor, "clean.lisp", "(defun clean () 2)\n").await;
    found(&mut editor, &uri, <[String]>::is_empty).await;
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_system_that_is_not_loaded_are_checked_with_each_other() {
    let world = world(&[
        ("app.asd", "(defsystem \"app\" :components ((:file \"base\") (:file \"use\" :depends-on (\"base\"))))\n"),
        ("base.lisp", "(defpackage :app (:use :cl))\n(in-package :app)\n(defmacro twice (x) `(list ,x ,x))\n"),
        ("use.lisp", "(in-package :app)\n(defun use (a) (twice 1))\n"),
    ])
    .await;
    world.is_ready().await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("use.lisp");
    let lines = found(&mut editor, &uri, |lines| !lines.is_empty()).await;
    assert_eq!(lines, ["1:12-1:13 unused-variable"]);
    let base = |parameters: &str| {
        format!("(defpackage :app (:use :cl))\n(in-package :app)\n(defmacro twice ({parameters}) `(list ,x ,x))\n")
    };
    let fails = |lines: &[String]| lines.iter().any(|line| line.starts_with("1:") && line.contains("macro-expansion"));
    write(&world, &mut editor, "base.lisp", &base("x y")).await;
    found(&mut editor, &uri, fails).await;
    write(&world, &mut editor, "base.lisp", &base("x")).await;
    let lines = found(&mut editor, &uri, |lines| !fails(lines)).await;
    assert_eq!(lines, ["1:12-1:13 unused-variable"]);

    // After the load the file is changed: the image has the old macro, but the file is checked with
    // the new one.
    let result = editor.command("consort.loadSystem", json!({"system": "app"})).await.expect("a result");
    assert_eq!(result["loaded"], true, "{result}");
    write(&world, &mut editor, "base.lisp", &base("x y")).await;
    found(&mut editor, &uri, fails).await;
    write(&world, &mut editor, "base.lisp", &base("x")).await;
    let lines = found(&mut editor, &uri, |lines| !fails(lines)).await;
    assert_eq!(lines, ["1:12-1:13 unused-variable"]);
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_pulls_gets_the_whole_workspace() {
    let world = world(&[("user.lisp", "(defun user (b) 1)\n"), ("open.lisp", "(defun open-one (a) 1)\n")]).await;
    world.is_ready().await;
    let mut editor = Editor::start(&world.session, json!({"textDocument": {"diagnostic": {}}})).await;
    editor.open(&world.uri("open.lisp"), "(defun open-one (a) 1)\n").await;
    let pull = async |editor: &mut Editor, previous: Value| -> Vec<Value> {
        let answer = editor.request("workspace/diagnostic", json!({"previousResultIds": previous})).await;
        serde_json::from_value(answer.expect("diagnostics")["items"].take()).expect("items")
    };
    let items = pull(&mut editor, json!([])).await;
    let mut uris: Vec<&str> = items.iter().filter_map(|item| item["uri"].as_str()).collect();
    uris.sort_unstable();
    assert_eq!(uris, [world.uri("open.lisp"), world.uri("user.lisp")]);
    for item in &items {
        assert_eq!((&item["kind"], item["items"].as_array().map(Vec::len)), (&json!("full"), Some(1)), "{item}");
    }
    // No report has changed.
    let ids: Vec<Value> = items.iter().map(|item| json!({"uri": item["uri"], "value": item["resultId"]})).collect();
    let again = pull(&mut editor, json!(ids)).await;
    assert!(again.iter().all(|item| item["kind"] == json!("unchanged")) && again.len() == 2, "{again:?}");
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_check_of_a_file_that_fails_keeps_no_other_from_being_checked() {
    let exits = "(eval-when (:compile-toplevel) (sb-ext:exit :abort t))\n";
    let world = world(&[("a.lisp", exits), ("b.lisp", "(defun b (x) 1)\n")]).await;
    world.is_ready().await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let lines = found(&mut editor, &world.uri("b.lisp"), |lines| !lines.is_empty()).await;
    assert_eq!(lines, ["0:10-0:11 unused-variable"]);
    let lines = found(&mut editor, &world.uri("a.lisp"), |lines| !lines.is_empty()).await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsaved_text_wins_over_the_file() {
    let user = "(in-package :app)\n(defun use (a) (twice a))\n";
    let base = "(defpackage :app (:use :cl))\n(in-package :app)\n(defmacro twice (x) `(list ,x ,x))\n";
    let world = world(&[
        ("app.asd", "(defsystem \"app\" :components ((:file \"base\") (:file \"use\" :depends-on (\"base\"))))\n"),
        ("base.lisp", base),
        ("use.lisp", user),
        ("alone.lisp", "(defun alone (x) 1)\n"),
    ])
    .await;
    world.is_ready().await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    // The first pass is over.
    found(&mut editor, &world.uri("alone.lisp"), |lines| !lines.is_empty()).await;
    let result = editor.command("consort.loadSystem", json!({"system": "app"})).await.expect("a result");
    assert_eq!(result["loaded"], true, "{result}");
    editor.open(&world.uri("base.lisp"), base).await;
    // Neither saved nor evaluated: a file that uses the macro is checked with it as it is typed.
    editor.change(&world.uri("base.lisp"), 2, [2, 20, 2, 34], "(declare (ignore x)) 1)").await;
    let lines = found(&mut editor, &world.uri("use.lisp"), |lines| !lines.is_empty()).await;
    assert_eq!(lines, ["1:12-1:13 unused-variable"]);
    assert_eq!(std::fs::read_to_string(world.path("base.lisp")).unwrap(), base);
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pass_that_is_cancelled_waits_for_the_next_change() {
    let endless = "(eval-when (:compile-toplevel) (loop))\n";
    let world = world(&[("a.lisp", "(defun a (x) 1)\n"), ("b.lisp", endless)]).await;
    world.is_ready().await;
    let mut editor = Editor::start(&world.session, json!({"window": {"workDoneProgress": true}})).await;
    let begun = |params: &Value| params["value"]["title"] == "Checking the workspace";
    let token = editor.wait_for("$/progress", begun).await["token"].take();
    // The other file is never checked to its end.
    let one_is_done = |params: &Value| params["value"]["message"].as_str().is_some_and(|it| it.starts_with("1 of 2 "));
    editor.wait_for("$/progress", one_is_done).await;
    editor.notify("window/workDoneProgress/cancel", json!({"token": token})).await;
    editor.wait_for("$/progress", |params| params["token"] == token && params["value"]["kind"] == "end").await;
    // The findings up to then are published, and other work is not delayed.
    found(&mut editor, &world.uri("a.lisp"), |lines| lines == ["0:10-0:11 unused-variable"]).await;
    assert_eq!(editor.eval("(+ 1 2)").await, ["3"]);
    // A change of a file: the pass begins again, and ends.
    write(&world, &mut editor, "b.lisp", "(defun b (x) 1)\n").await;
    found(&mut editor, &world.uri("b.lisp"), |lines| lines == ["0:10-0:11 unused-variable"]).await;
    editor.leave().await;
    world.end().await;
}
