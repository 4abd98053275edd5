//! A definition moved to another file, a call for a REPL, `apropos`, and the evaluation of a
//! definition that the image lacks, over a real image.

use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

const ONE: &str = "(defpackage :app (:use :cl))\n(in-package :app)\n\n;;; About it.\n(defun far-away (x &optional y)\n  (list x y))\n\n(defun near () (far-away 1))\n";
const TWO: &str = "(in-package :app)\n(defun other () 1)\n";
const THREE: &str = "(in-package :cl-user)\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_moves_to_a_file_that_is_not_open() {
    let world = World::ready(&[("one.lisp", ONE), ("two.lisp", TWO), ("three.lisp", THREE)]).await;
    let literals = json!({"codeActionKind": {"valueSet": ["quickfix", "refactor.move"]}});
    let text_document = json!({"codeAction": {"codeActionLiteralSupport": literals}});
    let own = json!({"consort": {"commands": true}});
    let mut editor = Editor::start(&world.session, json!({"textDocument": text_document, "experimental": own})).await;
    editor.ignore(&["textDocument/publishDiagnostics"]);
    let uri = world.uri("one.lisp");
    editor.open(&uri, ONE).await;
    let place = json!({"uri": uri, "position": {"line": 5, "character": 4}});
    let found = editor.command("consort.moveDestinations", place.clone()).await.unwrap();
    let files = json!([{"uri": world.uri("two.lisp"), "path": "two.lisp"}]);
    assert_eq!((&found["name"], &found["files"]), (&json!("far-away"), &files));
    let offered = actions(&mut editor, &uri, (4, 9), "refactor.move").await;
    assert_eq!(offered[0]["title"], "Move far-away to another file");
    assert_eq!(offered[0]["command"]["command"], "consort.editor.moveDefinition");
    let to = |name: &str| {
        let mut argument = place.clone();
        argument["target"] = world.uri(name).into();
        argument
    };
    let moved = editor.command("consort.moveDefinition", to("two.lisp")).await.unwrap();
    assert_eq!((&moved["applied"], &moved["note"]), (&json!(false), &json!(null)));
    let changes = &moved["edit"]["changes"];
    let edit = |name: &str| &changes[&world.uri(name)][0];
    assert_eq!(edit("one.lisp")["newText"], "");
    assert_eq!(edit("one.lisp")["range"]["start"], json!({"line": 3, "character": 0}));
    assert_eq!(edit("one.lisp")["range"]["end"], json!({"line": 7, "character": 0}));
    assert_eq!(edit("two.lisp")["newText"], "\n\n;;; About it.\n(defun far-away (x &optional y)\n  (list x y))");
    assert_eq!(edit("two.lisp")["range"]["start"], json!({"line": 1, "character": 18}));
    let refused = editor.command("consort.moveDefinition", to("three.lisp")).await.unwrap_err();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("three.lisp is read in the package cl-user"), "{refused}");

    // A call of the function at the cursor, as it is read in another package.
    editor.command("consort.compileFile", json!({"uri": uri})).await.unwrap();
    let call = |package: &str| {
        let mut argument = json!({"uri": uri, "position": {"line": 7, "character": 18}});
        argument["package"] = package.into();
        argument
    };
    let here = editor.command("consort.callTemplate", call("APP")).await.unwrap();
    assert_eq!((&here["text"], &here["arguments"]), (&json!("(far-away x)"), &json!(["x"])));
    let there = editor.command("consort.callTemplate", call("COMMON-LISP-USER")).await.unwrap();
    assert_eq!(there["text"], "(app::far-away x)");
    let found = editor.command("consort.apropos", json!({"pattern": "far-aw", "package": "APP"})).await.unwrap();
    assert_eq!((&found["total"], &found["symbols"][0]["kind"]), (&json!(1), &json!("function")), "{found}");

    // OTHER is defined only in a file that was never loaded and is not open.
    let uri = world.uri("use.lisp");
    editor.open(&uri, "(in-package :app)\n(defun user () (other))\n").await;
    editor.diagnostics(&uri, |_, lines| lines.iter().any(|line| line.ends_with("undefined-function"))).await;
    let offered = actions(&mut editor, &uri, (1, 17), "quickfix").await;
    assert_eq!(offered[0]["title"], "Evaluate its definition in two.lisp", "{offered:?}");
    assert_eq!(offered[0]["isPreferred"], Value::Null, "{offered:?}");
    let command = &offered[0]["command"];
    let done = editor.command(command["command"].as_str().unwrap(), command["arguments"][0].clone()).await.unwrap();
    assert_eq!((&done["status"], &done["values"]), (&json!("ok"), &json!(["OTHER"])), "{done}");
    assert_eq!(editor.eval("(app::other)").await, ["1"]);
    editor.leave().await;
    world.end().await;
}

async fn actions(editor: &mut Editor, uri: &str, (line, character): (u32, u32), kind: &str) -> Vec<Value> {
    let place = json!({"line": line, "character": character});
    let params = json!({
        "textDocument": {"uri": uri}, "range": {"start": place, "end": place},
        "context": {"diagnostics": [], "only": [kind], "triggerKind": 1},
    });
    editor.request("textDocument/codeAction", params).await.unwrap().as_array().unwrap().clone()
}
