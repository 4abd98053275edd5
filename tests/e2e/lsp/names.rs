//! Hierarchies, references by kind, pages of manuals and links, over the wire.

use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

const LIB: &str = "(defpackage :lib (:use :cl) (:export #:far #:shape))\n(in-package :lib)\n\
(defclass shape () ())\n(defvar *unit* 1)\n(defun near (x) (* *unit* x))\n(defun far (x)\n  (near (near x)))\n";
const USER: &str = "(defpackage :user-of-lib (:use :cl :lib))\n(in-package :user-of-lib)\n\
(defclass circle (shape) ())\n(defun twice (x)\n  (list (far x) (far x)))\n";
const LATE: &str =
    "(in-package :user-of-lib)\n(defclass dot (circle) ())\n(defmethod print-object ((c circle) s) (far s))\n";

fn at(line: u32, character: u32) -> Value {
    json!({"line": line, "character": character})
}

async fn ask(editor: &mut Editor, method: &str, uri: &str, position: Value) -> Value {
    let params = json!({"textDocument": {"uri": uri}, "position": position});
    editor.request(&format!("textDocument/{method}"), params).await.unwrap()
}

async fn follow(editor: &mut Editor, method: &str, item: &Value) -> Value {
    editor.request(method, json!({"item": item})).await.unwrap()
}

/// `name line:character ...` for each of some calls.
fn shown(calls: &Value, other: &str) -> Vec<String> {
    let one = |call: &Value| {
        let ranges = call["fromRanges"].as_array().unwrap().iter();
        let places: Vec<String> =
            ranges.map(|range| format!("{}:{}", range["start"]["line"], range["start"]["character"])).collect();
        format!("{} {}", call[other]["name"].as_str().unwrap(), places.join(" "))
    };
    calls.as_array().unwrap().iter().map(one).collect()
}

fn names(items: &Value) -> Vec<&str> {
    items.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

/// Checks the answers that hold in every state of the image. LATE is in no image.
async fn hierarchies(world: &World, editor: &mut Editor) {
    let uri = world.uri("lib.lisp");
    let items = ask(editor, "prepareCallHierarchy", &uri, at(5, 8)).await;
    assert_eq!(names(&items), ["far"]);
    assert_eq!(items[0]["selectionRange"], json!({"start": at(5, 7), "end": at(5, 10)}), "{items}");
    assert_eq!(items[0]["range"]["end"], at(6, 18));
    let callers = follow(editor, "callHierarchy/incomingCalls", &items[0]).await;
    assert_eq!(shown(&callers, "from"), ["print-object (circle t) 2:40", "twice 4:9 4:17"]);
    let callees = follow(editor, "callHierarchy/outgoingCalls", &items[0]).await;
    assert_eq!(shown(&callees, "to"), ["near 6:3 6:9"]);
    let callers = follow(editor, "callHierarchy/incomingCalls", &callees[0]["to"]).await;
    assert_eq!(shown(&callers, "from"), ["far 6:3 6:9"]);
    let items = ask(editor, "prepareTypeHierarchy", &world.uri("user.lisp"), at(2, 18)).await;
    assert_eq!(names(&items), ["shape"]);
    let below = follow(editor, "typeHierarchy/subtypes", &items[0]).await;
    assert_eq!(names(&below), ["circle"]);
    assert_eq!(names(&follow(editor, "typeHierarchy/subtypes", &below[0]).await), ["dot"]);
    let above = follow(editor, "typeHierarchy/supertypes", &below[0]).await;
    assert_eq!(above[0]["uri"], uri, "{above}");
    let all = ask(editor, "implementation", &uri, at(2, 12)).await;
    assert_eq!(all.as_array().unwrap().len(), 2, "circle and dot: {all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hierarchies_are_told_with_and_without_an_image_and_while_it_loops() {
    let files = [("lib.lisp", LIB), ("user.lisp", USER), ("late.lisp", LATE)];
    let world = World::with(&files).await;
    let mut editor = Editor::connect(&world.session);
    let agreed = editor.initialize(json!({"capabilities": {}})).await;
    for (name, options) in [
        ("callHierarchyProvider", json!({"workDoneProgress": true})),
        ("typeHierarchyProvider", json!(true)),
        ("linkedEditingRangeProvider", json!(true)),
    ] {
        assert_eq!(agreed["capabilities"][name], options, "{name}: {agreed}");
    }
    for (name, text) in [("lib.lisp", LIB), ("user.lisp", USER)] {
        editor.open(&world.uri(name), text).await;
    }
    hierarchies(&world, &mut editor).await;
    editor.leave().await;
    world.end().await;

    let world = World::ready(&files).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    for (name, text) in [("lib.lisp", LIB), ("user.lisp", USER)] {
        editor.open(&world.uri(name), text).await;
        let loaded = editor.command("consort.evalBuffer", json!({"uri": world.uri(name)})).await.unwrap();
        assert_eq!(loaded["status"], "ok", "{loaded}");
    }
    hierarchies(&world, &mut editor).await;
    let id = editor.ask_command("consort.eval", json!({"code": "(princ 1) (loop)", "outputToken": 1})).await;
    editor.wait_for("consort/output", |_| true).await;
    hierarchies(&world, &mut editor).await;
    editor.command("consort.interrupt", json!({})).await.unwrap();
    assert_eq!(editor.answer(id).await.unwrap()["status"], "interrupted");
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_has_its_references_by_kind_its_page_and_its_linked_places() {
    let text = "(in-package :cl-user)\n(defun g (x)\n  (let ((*my-unit* 2)) (setf *my-unit* x)))\n'(~a)\n";
    let world = World::ready(&[("a.lisp", text), ("b.asd", "(defsystem \"b\" :components ((:file \"a\")))")]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, text).await;
    let asked = |kinds: Value| json!({"uri": uri, "position": at(2, 10), "kinds": kinds});
    let all = editor.command("consort.references", asked(json!([]))).await.unwrap();
    let kinds: Vec<&str> =
        all["references"].as_array().unwrap().iter().map(|one| one["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["binds", "sets"], "{all}");
    let sets = editor.command("consort.references", asked(json!(["sets"]))).await.unwrap();
    assert_eq!(sets["references"][0]["range"]["start"], at(2, 29), "{sets}");
    assert_eq!(sets["references"][0]["by"], "g");
    let wrong = editor.command("consort.references", asked(json!(["eats"]))).await.unwrap_err();
    assert!(wrong["message"].as_str().unwrap().contains("The kinds are calls"), "{wrong}");

    let page = editor.command("consort.hyperspec", json!({"name": "sb-ext:run-program"})).await.unwrap();
    assert_eq!(page["manual"], "SBCL manual");
    let page = editor.command("consort.hyperspec", json!({"uri": uri, "position": at(3, 0)})).await.unwrap();
    assert!(page["url"].as_str().unwrap().ends_with("Body/02_dc.htm"), "{page}");
    let hover = ask(&mut editor, "hover", &uri, at(2, 4)).await;
    assert!(hover["contents"]["value"].as_str().unwrap().contains("s_let_l.htm"), "{hover}");

    let linked = ask(&mut editor, "linkedEditingRange", &uri, at(1, 10)).await;
    assert_eq!(linked["ranges"].as_array().unwrap().len(), 2, "{linked}");
    let asd = world.uri("b.asd");
    editor.open(&asd, "(defsystem \"b\" :components ((:file \"a\")))").await;
    let links = editor.request("textDocument/documentLink", json!({"textDocument": {"uri": asd}})).await.unwrap();
    assert_eq!(links[0]["target"], uri, "{links}");

    let part = json!({"uri": uri, "position": at(3, 0)});
    let answer = editor.command("consort.evalToCursor", part).await.unwrap();
    assert_eq!((&answer["values"], &answer["range"]["end"]), (&json!(["G"]), &at(2, 43)), "{answer}");
    editor.leave().await;
    world.end().await;
}
