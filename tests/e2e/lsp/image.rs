//! The image's life, as an editor sees it.

use consort::model::check::{CheckEnd, CheckMode};
use consort::model::image::ImageState;
use consort::session::{CheckRequest, ClientInfo, Frontend};
use consort_tests::lsp::Editor;
use consort_tests::world::World;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_is_killed_is_replaced_and_everybody_is_told() {
    let files = [
        ("toy.asd", "(defsystem \"toy\" :components ((:file \"toy\")))"),
        ("toy.lisp", "(defun cl-user::played () :played)"),
    ];
    let world = World::ready(&files).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.ignore(&["window/showMessage"]);
    let mut other = Editor::start(&world.session, json!({})).await;
    other.ignore(&["window/showMessage"]);
    let first = editor.wait_for("consort/imageState", |params| params["state"] == "ready").await;
    assert_eq!(editor.command("consort.loadSystem", json!({"system": "toy"})).await.unwrap()["loaded"], true);
    let id = editor.ask_command("consort.eval", json!({"code": "(princ 1) (loop)", "outputToken": 1})).await;
    editor.wait_for("consort/output", |_| true).await;

    let pid = i32::try_from(first["pid"].as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    // Without an image the structure is still checked. The new image checks the text again, before
    // or after the test ends.
    editor.open(&world.uri("x.lisp"), "(a").await;
    editor.diagnostics(&world.uri("x.lisp"), |_, lines| lines.len() == 1).await;

    assert_eq!(editor.answer(id).await.unwrap_err()["data"]["kind"], "image-lost");
    for editor in [&mut editor, &mut other] {
        editor.wait_for("consort/imageState", |params| params["state"] == "dead").await;
        let is_new = |params: &serde_json::Value| params["state"] == "ready" && params["image"] != first["image"];
        editor.wait_for("consort/imageState", is_new).await;
        let restored =
            editor.wait_for("window/showMessage", |params| params["message"].to_string().contains("toy")).await;
        assert!(restored["message"].to_string().contains("new image"), "{restored}");
        assert_eq!(editor.eval("(played)").await, [":PLAYED"]);
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pulled_diagnostics_wait_for_the_image_that_replaces_a_lost_one() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.ignore(&["window/showMessage"]);
    let uri = world.uri("pulled.lisp");
    editor.open(&uri, "").await;
    for round in 1..=4 {
        world.kill_image().await;
        let change = json!({"text": format!("(defun f{round} () (no-such-function))\n(")});
        let document = json!({"uri": uri, "version": round + 1});
        editor.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": [change]})).await;
        let pulled = editor.request("textDocument/diagnostic", json!({"textDocument": {"uri": uri}})).await.unwrap();
        let codes: Vec<&str> =
            pulled["items"].as_array().unwrap().iter().map(|item| item["code"].as_str().unwrap()).collect();
        assert!(codes.contains(&"undefined-function") && codes.contains(&"unbalanced-list"), "{round}: {pulled}");
    }
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sources_of_a_system_are_asked_of_the_image_that_replaces_a_lost_one() {
    let world = World::ready(&[("toy.asd", "(defsystem \"toy\" :components ((:file \"a\")))"), ("a.lisp", "1")]).await;
    for round in 1..=4 {
        let lost = world.is_ready().await;
        let mut image = world.session.watch_image();
        kill_process(Pid::from_raw(i32::try_from(lost).unwrap()).unwrap(), Signal::KILL).unwrap();
        image.wait_for(|state| !matches!(state, ImageState::Ready { pid, .. } if *pid == lost)).await.unwrap();
        let found = world.session.system_sources("toy", true).await;
        assert!(found.is_ok(), "{round}: {found:?}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn both_editors_are_on_one_image_and_a_restart_makes_a_new_one() {
    let world = World::ready(&[]).await;
    let mut one = Editor::connect(&world.session);
    one.ignore(&["window/showMessage"]);
    let answer = one.initialize(json!({"capabilities": {}})).await;
    let image = answer["capabilities"]["experimental"]["consort"]["image"]["image"].clone();
    let mut two = Editor::start(&world.session, json!({})).await;
    two.ignore(&["window/showMessage"]);
    let status = two.command("consort.status", json!({})).await.unwrap();
    assert_eq!(status["image"]["image"], image);
    one.eval("(defun shared () :seen)").await;
    assert_eq!(two.eval("(shared)").await, [":SEEN"]);
    let restarted = two.command("consort.restartImage", json!({})).await.unwrap();
    assert_eq!(restarted["state"], "ready");
    assert_ne!(restarted["image"], image);
    assert_eq!(one.eval("(fboundp 'shared)").await, ["NIL"]);
    one.leave().await;
    two.leave().await;
    world.end().await;
}

/// Has a thread hold the compiler's lock until the variable `*go*` is true.
const HOLDER: &str = "(defvar *go* nil)
(defvar *held* nil)
(sb-thread:make-thread (lambda ()
                         (sb-kernel::with-world-lock () (setf *held* t) (loop until *go* do (sleep 0.01))))
                       :name \"the holder\")
(loop until *held* do (sleep 0.01))";

#[tokio::test(flavor = "multi_thread")]
async fn who_keeps_a_text_from_being_checked_is_told_before_other_checks_give_up() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.ignore(&["window/showMessage"]);
    editor.eval(HOLDER).await;
    // The check of another client asks the image several times.
    let (client, _feedback) = world.session.attach(ClientInfo { frontend: Frontend::Cli, name: "other".into() });
    let request =
        CheckRequest { text: "(list 1)".into(), path: None, mode: CheckMode::File, package: None, timeout: None };
    let other = tokio::spawn(world.session.check(client, request));
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(defun f () (no-such-function))\n").await;
    let told = editor
        .wait_for("textDocument/publishDiagnostics", |published| {
            published["diagnostics"].to_string().contains("out of date")
        })
        .await;
    assert!(!other.is_finished(), "{told}");
    let told = told["diagnostics"].to_string();
    assert!(told.contains("the holder") && told.contains("compiler's lock"), "{told}");

    // Setting a variable compiles nothing.
    editor.eval("(setq *go* t)").await;
    editor.diagnostics(&uri, |_, lines| lines.len() == 1 && lines[0].ends_with(" undefined-function")).await;
    assert_eq!(other.await.unwrap().unwrap().end, CheckEnd::Complete);
    world.end().await;
}
