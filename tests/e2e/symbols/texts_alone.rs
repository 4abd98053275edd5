//! Requests that the texts can answer are answered while the image is busy or gone.

use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::json;

use super::{ask, labels, name_is_known, places};

const HELPERS: &str = "(in-package :cl-user)\n\n(defun helper (one two)\n  (list one two))\n";

async fn asked_of_texts(editor: &mut Editor, world: &World) {
    let uri = world.uri("use.lisp");
    let call = "(in-package :cl-user)\n(defun f (parameter)\n  (helper parameter ‸1))";
    let at = |mark: &str, with: &str| call.replace('‸', "").replace(mark, with);
    let found = ask(editor, &uri, &at("(helper", "(hel‸per"), "textDocument/definition").await;
    assert_eq!(places(&found), ["helpers.lisp:2:7"]);
    let found = ask(editor, &uri, &at("r parameter", "r para‸meter"), "textDocument/definition").await;
    assert_eq!(places(&found), ["use.lisp:1:10"]);
    let answer = ask(editor, &uri, call, "textDocument/signatureHelp").await;
    assert_eq!(answer["signatures"][0]["label"], "(helper one two)");
    let answer = ask(editor, &uri, &at("r parameter", "r para‸meter"), "textDocument/completion").await;
    assert_eq!(labels(&answer).first().map(String::as_str), Some("parameter"));
    let answer = ask(editor, &uri, "(m-v-b‸)", "textDocument/completion").await;
    assert_eq!(labels(&answer).first().map(String::as_str), Some("multiple-value-bind"));
    let answer = ask(editor, &uri, &at("(helper", "(hel‸per"), "textDocument/hover").await;
    assert!(answer["contents"]["value"].as_str().unwrap().contains("(defun helper (one two)"), "{answer}");
    let answer = editor.request("workspace/symbol", json!({"query": "help"})).await.unwrap();
    assert_eq!(answer[0]["name"], "helper");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_an_image() {
    let mut config = consort::config::Config::default();
    config.lisp.command = vec!["/nonexistent/sbcl".into()];
    let world = World::configured(&[], config).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.ignore(&["window/showMessage"]);
    editor.open(&world.uri("helpers.lisp"), HELPERS).await;
    asked_of_texts(&mut editor, &world).await;
    world.end().await;
}

/// A file of the workspace that is neither loaded nor open is known by its text.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_not_open() {
    let zoo = "(defpackage :zoo (:use :cl))\n(in-package :zoo)\n\n(defun feed (animal &key food)\n  (list animal food))\n\n\
               (defclass animal () ((name :initarg :name)))\n(defclass bird (animal) ((wings :initarg :wings)))\n";
    let world = World::ready(&[("zoo.lisp", zoo)]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("use.lisp");
    let answer = ask(&mut editor, &uri, "(zoo::fe‸ed 1)", "textDocument/hover").await;
    let value = answer["contents"]["value"].as_str().unwrap();
    assert!(value.contains("(defun feed (animal &key food)") && value.contains("zoo.lisp:4 (not loaded)"), "{value}");
    let answer = ask(&mut editor, &uri, "(in-package :zoo)\n(feed 1 ‸)", "textDocument/signatureHelp").await;
    assert_eq!(answer["signatures"][0]["label"], "(feed animal &key food)");
    let text = "(in-package :zoo)\n(make-instance 'bird :‸)";
    name_is_known(&mut editor, &uri, text, ":wings").await;
    let answer = ask(&mut editor, &uri, text, "textDocument/completion").await;
    assert_eq!(labels(&answer)[..2], [":name", ":wings"]);
    let text = "(in-package :zoo)\n(defmethod f ((x bird)) (slot-value x '‸))";
    let answer = ask(&mut editor, &uri, text, "textDocument/completion").await;
    assert_eq!(labels(&answer)[..2], ["name", "wings"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_lisp_loops_the_image_answers_too() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let id = editor.ask_command("consort.eval", json!({"code": "(princ 1) (loop)", "outputToken": 1})).await;
    editor.wait_for("consort/output", |_| true).await;
    editor.open(&world.uri("helpers.lisp"), HELPERS).await;
    let uri = world.uri("use.lisp");
    name_is_known(&mut editor, &uri, "(m-v-b‸)", "multiple-value-bind").await;
    let answer = ask(&mut editor, &uri, "(m-v-b‸)", "textDocument/completion").await;
    assert_eq!(labels(&answer).first().map(String::as_str), Some("multiple-value-bind"));
    let answer = ask(&mut editor, &uri, "(mapc‸ar)", "textDocument/hover").await;
    assert!(answer["contents"]["value"].as_str().unwrap().contains("(mapcar function list &rest more-lists)"));
    editor.notify("$/cancelRequest", json!({"id": id})).await;
    editor.answer(id).await.unwrap_err();
    world.end().await;
}
