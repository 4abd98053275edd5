//! Answers from the text, and the evaluation of code in it.

use consort_tests::lsp::Editor;
use consort_tests::patience::comes;
use consort_tests::world::World;
use serde_json::{Value, json};

const TEXT: &str = "(in-package :cl-user)\n(defun f (x)\n(* x 2)) ; é𝄞 f\n(f 21)\n";

fn at(line: u32, character: u32) -> Value {
    json!({"line": line, "character": character})
}

async fn ask(editor: &mut Editor, method: &str, uri: &str, mut params: Value) -> Value {
    params["textDocument"] = json!({"uri": uri});
    editor.request(&format!("textDocument/{method}"), params).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_answers_without_an_image() {
    let world = World::with(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, TEXT).await;
    let symbols = ask(&mut editor, "documentSymbol", &uri, json!({})).await;
    assert_eq!(symbols[0]["name"], "f");
    assert_eq!(symbols[0]["selectionRange"], json!({"start": at(1, 7), "end": at(1, 8)}));
    let places = ask(&mut editor, "documentHighlight", &uri, json!({"position": at(3, 1)})).await;
    assert_eq!(places.as_array().unwrap().len(), 2, "{places}");
    assert_eq!(places[0]["kind"], 3, "written where it is defined");
    let folds = ask(&mut editor, "foldingRange", &uri, json!({})).await;
    assert_eq!((&folds[0]["startLine"], &folds[0]["endLine"]), (&json!(1), &json!(2)));
    let around = ask(&mut editor, "selectionRange", &uri, json!({"positions": [at(2, 3)]})).await;
    assert_eq!(around[0]["range"], json!({"start": at(2, 3), "end": at(2, 4)}));
    assert_eq!(around[0]["parent"]["parent"]["range"], json!({"start": at(2, 0), "end": at(2, 7)}));
    let tokens = ask(&mut editor, "semanticTokens/full", &uri, json!({})).await;
    // `in-package`, a macro at 0:1.
    assert_eq!(tokens["data"].as_array().unwrap()[..5], [json!(0), json!(1), json!(10), json!(4), json!(0)]);
    assert_eq!(tokens["data"].as_array().unwrap().len() % 5, 0);
    let delta = json!({"previousResultId": tokens["resultId"]});
    let same = ask(&mut editor, "semanticTokens/full/delta", &uri, delta.clone()).await;
    assert_eq!(same["edits"], json!([]), "{same}");
    let all = ask(&mut editor, "semanticTokens/full/delta", &uri, delta).await;
    assert_eq!(all["data"], tokens["data"], "one who does not have the last tokens is told all");
    let options = json!({"tabSize": 8, "insertSpaces": true});
    let edits = ask(&mut editor, "formatting", &uri, json!({"options": options})).await;
    assert_eq!(edits, json!([{"range": {"start": at(2, 0), "end": at(2, 0)}, "newText": "  "}]));
    let typed =
        ask(&mut editor, "onTypeFormatting", &uri, json!({"options": options, "position": at(3, 0), "ch": "\n"})).await;
    assert_eq!(typed, json!([]));

    let structure = |action: &str| json!({"uri": uri, "position": at(3, 2), "action": action});
    let raised = editor.command("consort.structure", structure("barfForward")).await.unwrap();
    assert_eq!(raised["edits"][0]["newText"], ")");
    assert_eq!(raised["selection"], json!({"start": at(3, 2), "end": at(3, 2)}));
    let nothing = editor.command("consort.structure", structure("slurpForward")).await.unwrap();
    assert_eq!(nothing["edits"], json!([]));
    let error = editor.command("consort.structure", json!({"uri": uri, "action": "slurpForward"})).await.unwrap_err();
    assert_eq!(error["code"], -32602);
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_live_macros_are_indented_as_bodies() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.eval("(defmacro cl-user::around (a b &body body) (list* 'progn a b body))").await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(in-package :cl-user)\n(around 1 2\n(print 3))\n(list 1\n2)\n").await;
    // Formatting does not wait long for an image that is slow to answer about its macros, so it is
    // repeated.
    comes("the body of a live macro indented as one", async || {
        let options = json!({"options": {"tabSize": 8, "insertSpaces": true}});
        let edits = ask(&mut editor, "formatting", &uri, options).await;
        let texts: Vec<&str> = edits.as_array().unwrap().iter().map(|edit| edit["newText"].as_str().unwrap()).collect();
        (texts == ["  ", "      "]).then_some(())
    })
    .await;
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_in_a_document_is_evaluated_and_remembered_to_stand_there() {
    let world = World::ready(&[("a.lisp", TEXT)]).await;
    let mut editor =
        Editor::start(&world.session, json!({"workspace": {"workspaceEdit": {"documentChanges": true}}})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, TEXT).await;
    let form = json!({"uri": uri, "position": at(2, 3), "topLevel": true});
    let defined = editor.command("consort.evalForm", form).await.unwrap();
    assert_eq!(defined["values"], json!(["F"]), "{defined}");
    assert_eq!(defined["range"], json!({"start": at(1, 0), "end": at(2, 8)}));
    let source = editor
        .eval("(let ((s (sb-introspect:find-definition-source #'cl-user::f))) (file-namestring (sb-introspect:definition-source-pathname s)))")
        .await;
    assert_eq!(source, ["\"a.lisp\""]);
    let called = editor
        .command("consort.evalForm", json!({"uri": uri, "position": at(3, 6), "captureTime": true}))
        .await
        .unwrap();
    assert_eq!((&called["values"], called["timing"].is_null()), (&json!(["42"]), false));
    let inner = editor.command("consort.evalForm", json!({"uri": uri, "position": at(3, 5)})).await.unwrap();
    assert_eq!(inner["values"], json!(["21"]));
    let region = json!({"uri": uri, "range": {"start": at(2, 3), "end": at(2, 4)}});
    let failed = editor.command("consort.evalRegion", region).await.unwrap();
    assert_eq!(failed["error"]["type"], "UNBOUND-VARIABLE", "{failed}");
    let whole = editor.command("consort.evalBuffer", json!({"uri": uri})).await.unwrap();
    assert_eq!(whole["values"], json!(["42"]));

    let comment = json!({"uri": uri, "position": at(3, 6)});
    let written = editor.command("consort.evalToComment", comment).await.unwrap();
    assert_eq!((&written["values"], &written["applied"]), (&json!(["42"]), &json!(true)));
    let asked = editor.wait_for("workspace/applyEdit", |_| true).await;
    let change = &asked["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"]["version"], 1);
    assert_eq!(change["edits"], json!([{"range": {"start": at(3, 6), "end": at(3, 6)}, "newText": "\n; => 42"}]));

    let closed = editor.command("consort.evalForm", json!({"uri": world.uri("b.lisp"), "position": at(0, 0)})).await;
    assert_eq!(closed.unwrap_err()["code"], -32602);
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_with_unsaved_changes_is_edited_through_its_editor() {
    let world = World::with(&[("a.lisp", "(a)\n(é)\n")]).await;
    let mut editor =
        Editor::start(&world.session, json!({"workspace": {"workspaceEdit": {"documentChanges": true}}})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(a)\n(é)\n").await;
    let clean = world.session.source_file("a.lisp").await.unwrap();
    assert!(clean.editor.is_none());
    editor.change(&uri, 2, [0, 0, 0, 0], "(new)\n").await;
    // A request behind the change is waited for.
    ask(&mut editor, "foldingRange", &uri, json!({})).await;
    let dirty = world.session.source_file("a.lisp").await.unwrap();
    assert_eq!((dirty.text.as_str(), dirty.editor.is_some()), ("(new)\n(a)\n(é)\n", true));
    let start = dirty.text.find("(é)").unwrap();
    let edited = world.session.edit_source_file(&dirty, start..start + "(é)".len(), "(b)");
    // The editor answers the request while the edit waits for it.
    let (edited, asked) = tokio::join!(edited, editor.wait_for("workspace/applyEdit", |_| true));
    edited.unwrap();
    let change = &asked["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"], json!({"uri": uri, "version": 2}));
    assert_eq!(change["edits"], json!([{"range": {"start": at(2, 0), "end": at(2, 3)}, "newText": "(b)"}]));
    assert_eq!(std::fs::read_to_string(world.path("a.lisp")).unwrap(), "(a)\n(é)\n", "never behind its back");

    editor.change(&uri, 3, [0, 0, 0, 0], "x").await;
    ask(&mut editor, "foldingRange", &uri, json!({})).await;
    let late = world.session.edit_source_file(&dirty, 0..0, "y").await.unwrap_err();
    assert_eq!(late.kind, "editor", "{late}");
    editor.leave().await;
    world.end().await;
}
