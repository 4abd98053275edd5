//! Requests other than for editing: profiles, tests, traces, descriptions, and the code lenses for
//! some of them.

use consort_tests::lsp::Editor;
use consort_tests::patience::comes;
use consort_tests::world::World;
use serde_json::{Value, json};

const CODE: &str = "(in-package :cl-user)
(defun burn (n) (declare (fixnum n)) (let ((s 0)) (declare (fixnum s)) (dotimes (i n s) (setf s (logxor i (logand s 1023))))))
(burn-a-while)
";

/// Keeps a processor busy for half a second of its time, however fast it is.
const WHILE: &str =
    "(defun burn-a-while (&aux (end (+ (get-internal-run-time) (floor internal-time-units-per-second 2))))
  (loop while (< (get-internal-run-time) end) do (burn 1000000)))";

/// The part of Rove's API that running a test needs, as short as possible.
const ROVE: &str = include_str!("../../../lisp/tests/stand-ins.lisp");

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_profiled_where_it_stands() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, CODE).await;
    editor.eval(CODE.rsplit_once("(burn").unwrap().0).await;
    editor.eval(WHILE).await;
    let place = json!({"uri": uri, "position": {"line": 2, "character": 3}});
    let result = editor.command("consort.profileForm", place).await.unwrap();
    assert_eq!(result["profile"]["rows"][0]["function"], "BURN", "{result}");
    assert!(result["text"].as_str().unwrap().starts_with("Statistical Profile (CPU mode)"), "{result}");
    assert!(!result["profile"]["folded"].as_array().unwrap().is_empty());
    let graph = json!({"code": "(burn-a-while)", "report": "graph", "mode": "time"});
    let result = editor.command("consort.profileForm", graph).await.unwrap();
    assert!(result["text"].as_str().unwrap().contains("Call Graph"), "{result}");
    let wrong = editor.command("consort.profileForm", json!({})).await.unwrap_err();
    assert_eq!(wrong["code"], -32602);
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_described_and_disassembled_where_they_stand() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, CODE).await;
    editor.eval(CODE.rsplit_once("(burn").unwrap().0).await;
    editor.eval(WHILE).await;
    let place = json!({"uri": uri, "position": {"line": 2, "character": 3}});
    let described = editor.command("consort.describe", place.clone()).await.unwrap();
    assert!(described["text"].as_str().unwrap().contains("BURN-A-WHILE"), "{described}");
    let disassembled = editor.command("consort.disassemble", place).await.unwrap();
    assert!(disassembled["text"].as_str().unwrap().contains("disassembly for BURN-A-WHILE"), "{disassembled}");
    let unknown = editor.command("consort.describe", json!({"name": "no-such-name"})).await.unwrap_err();
    assert_eq!((&unknown["code"], &unknown["data"]["kind"]), (&json!(-32803), &json!("not-found")));
    let missing = editor.command("consort.disassemble", json!({})).await.unwrap_err();
    assert_eq!(missing["code"], -32602);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_is_seen_by_its_asker_also_when_another_calls() {
    let world = World::ready(&[]).await;
    let mut tracer = Editor::start(&world.session, json!({})).await;
    let mut other = Editor::start(&world.session, json!({})).await;
    tracer.eval("(defun traced-here (x) (* 2 x))").await;
    let traced = tracer.command("consort.trace", json!({"name": "traced-here"})).await.unwrap();
    assert!(traced["text"].as_str().unwrap().contains("TRACED-HERE is traced"), "{traced}");
    let own = tracer.command("consort.eval", json!({"code": "(traced-here 1)"})).await.unwrap();
    assert!(own["stderr"].as_str().unwrap().contains("(TRACED-HERE 1)"), "{own}");
    let others = other.command("consort.eval", json!({"code": "(traced-here 21)"})).await.unwrap();
    assert!(others["stderr"].as_str().unwrap().contains("returned 42"), "{others}");
    let told =
        tracer.wait_for("window/logMessage", |params| params["message"].as_str().unwrap().contains("returned")).await;
    assert!(told["message"].as_str().unwrap().contains("TRACED-HERE returned 42"), "{told}");
    tracer.command("consort.untrace", json!({})).await.unwrap();
    let quiet = other.command("consort.eval", json!({"code": "(traced-here 3)"})).await.unwrap();
    assert_eq!(quiet["stderr"], "");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_are_run_from_their_lenses() {
    let text = "(defpackage :lens-tests (:use :cl :rove))
(in-package :lens-tests)
(defun helper () 1)
(deftest right (ok (= 1 (helper))))
(deftest wrong (ok (= 2 (helper))))
";
    let world = World::ready(&[("stand-ins.lisp", ROVE), ("tests.lisp", text)]).await;
    let settings = json!({"capabilities": {}, "initializationOptions": {"lenses": {"references": true}}});
    let mut editor = Editor::connect(&world.session);
    editor.ignore(&["window/showMessage"]);
    editor.initialize(settings).await;
    let load = format!("(progn (load {:?}) (load {:?}) 1)", world.path("stand-ins.lisp"), world.path("tests.lisp"));
    assert_eq!(editor.eval(&load).await, ["1"]);
    let uri = world.uri("tests.lisp");
    editor.open(&uri, text).await;
    let lenses = editor.request("textDocument/codeLens", json!({"textDocument": {"uri": uri}})).await.unwrap();
    let lenses = lenses.as_array().unwrap();
    let lines: Vec<&Value> = lenses.iter().map(|lens| &lens["range"]["start"]["line"]).collect();
    assert_eq!(lines, [&json!(2), &json!(3), &json!(4)], "{lenses:?}");
    // The title is empty while the image does not answer in time.
    let title = comes("the number of references", async || {
        let counted = editor.request("codeLens/resolve", lenses[0].clone()).await.unwrap();
        Some(counted["command"]["title"].as_str().unwrap().to_owned()).filter(|title| !title.is_empty())
    })
    .await;
    assert!(title.ends_with("references"), "{title}");

    let mut run = Vec::new();
    for lens in &lenses[1..] {
        assert_eq!(
            (&lens["command"]["title"], &lens["command"]["command"]),
            (&json!("Run test"), &json!("consort.runTestAtPoint"))
        );
        run.push(editor.command("consort.runTestAtPoint", lens["command"]["arguments"][0].clone()).await.unwrap());
    }
    assert_eq!(
        (&run[0]["success"], &run[0]["tests"][0]["name"]),
        (&json!(true), &json!("LENS-TESTS::RIGHT")),
        "{run:?}"
    );
    assert_eq!((&run[1]["success"], &run[1]["failed"]), (&json!(false), &json!(1)), "{run:?}");
    let shown =
        editor.wait_for("window/showMessage", |params| params["message"].as_str().unwrap().contains("FAILED")).await;
    assert!(shown["message"].as_str().unwrap().contains("LENS-TESTS::WRONG"), "{shown}");
    let all = editor.command("consort.runTests", json!({"package": "lens-tests"})).await.unwrap();
    assert_eq!((&all["passed"], &all["failed"]), (&json!(1), &json!(1)), "{all}");
    // A test that was corrected in the editor is run as it stands there, though nobody has
    // evaluated it.
    editor.change(&uri, 2, [4, 22, 4, 23], "1").await;
    let lens = lenses[2]["command"]["arguments"][0].clone();
    let corrected = editor.command("consort.runTestAtPoint", lens.clone()).await.unwrap();
    assert_eq!(corrected["success"], true, "{corrected}");
    // A test that cannot be evaluated says why, and no older one is run.
    editor.change(&uri, 3, [4, 14, 4, 14], " . wrong").await;
    let broken = editor.command("consort.runTestAtPoint", lens).await.unwrap();
    assert_eq!((&broken["success"], &broken["tests"]), (&json!(false), &json!([])), "{broken}");
    assert!(broken["text"].as_str().unwrap().contains("wrong: "), "{broken}");
    let nowhere = json!({"uri": uri, "position": {"line": 2, "character": 0}});
    assert_eq!(editor.command("consort.runTestAtPoint", nowhere).await.unwrap_err()["code"], -32602);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lenses_follow_the_settings() {
    let world = World::with(&[]).await;
    let uri = world.uri("a.lisp");
    for (lenses, wanted) in
        [(json!({"tests": false}), 0), (json!({"tests": true}), 1), (json!({"tests": true, "references": true}), 2)]
    {
        let mut editor = Editor::connect(&world.session);
        editor.initialize(json!({"capabilities": {}, "initializationOptions": {"lenses": lenses}})).await;
        editor.open(&uri, "(test one 1)\n(defun f () 1)\n(print 1)\n").await;
        let found = editor.request("textDocument/codeLens", json!({"textDocument": {"uri": uri}})).await.unwrap();
        assert_eq!(found.as_array().unwrap().len(), wanted, "{found}");
        editor.leave().await;
    }
    world.end().await;
}
