//! `workspace/executeCommand`.

use consort_tests::lsp::Editor;
use consort_tests::patience::comes;
use consort_tests::world::World;
use serde_json::{Value, json};

const SYSTEM: [(&str, &str); 3] = [
    ("toy.asd", "(defsystem \"toy\" :components ((:file \"package\") (:file \"toy\")))"),
    ("package.lisp", "(defpackage :toy (:use :cl) (:export #:play))"),
    ("toy.lisp", "(in-package :toy)\n(defun play () :played)\n"),
];

#[tokio::test(flavor = "multi_thread")]
async fn an_evaluation_answers_with_everything_and_its_session_lasts() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let result = editor
        .command("consort.eval", json!({"code": "(princ 1) (warn \"w\") (values 2 :three)", "captureTime": true}))
        .await
        .unwrap();
    assert_eq!(result["status"], "ok");
    assert_eq!(result["values"], json!(["2", ":THREE"]));
    assert_eq!(result["stdout"], "1");
    assert_eq!(result["warnings"][0]["message"], "w");
    assert!(result["timing"]["bytes"].is_number(), "{result}");

    editor.eval("(defpackage :mine (:use :cl)) (in-package :mine) (defvar *x* 41)").await;
    assert_eq!(editor.eval("(1+ *x*)").await, ["42"]);
    assert_eq!(editor.eval("(list * (package-name *package*))").await, ["(42 \"MINE\")"]);
    let elsewhere =
        editor.command("consort.eval", json!({"code": "(package-name *package*)", "package": "CL-USER"})).await;
    assert_eq!(elsewhere.unwrap()["values"], json!(["\"COMMON-LISP-USER\""]));

    let failed = editor.command("consort.eval", json!({"code": "(/ 1 0)"})).await.unwrap();
    assert_eq!((&failed["status"], &failed["error"]["type"]), (&json!("error"), &json!("DIVISION-BY-ZERO")));
    let unknown = editor.command("consort.eval", json!({"code": "1", "package": "NO-SUCH"})).await.unwrap_err();
    assert_eq!((&unknown["code"], &unknown["data"]["kind"]), (&json!(-32803), &json!("package-not-found")));
    assert_eq!(editor.eval("(+ 1 2)").await, ["3"]);
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_arguments_are_answered_with_what_is_expected() {
    let world = World::with(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    for (command, argument, expected) in [
        ("consort.eval", json!({}), "missing field `code`"),
        ("consort.eval", json!({"code": "1", "timeout": 0}), "greater than 0"),
        ("consort.loadSystem", json!({"sytem": "x"}), "unknown field `sytem`"),
        ("consort.interrupt", json!(1), "not an object"),
        ("consort.nothing", json!({}), "consort.eval, consort.loadSystem"),
    ] {
        let error = editor.command(command, argument).await.unwrap_err();
        assert_eq!(error["code"], -32602);
        assert!(error["message"].as_str().unwrap().contains(expected), "{error}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_evaluation_stops_in_lisp_and_what_it_had_made_stays() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let argument = json!({"code": "(defvar *kept* 0) (princ :begun) (loop (incf *kept*))", "outputToken": "t"});
    let id = editor.ask_command("consort.eval", argument).await;
    let output = editor.wait_for("consort/output", |params| params["token"] == "t").await;
    assert_eq!(output["text"], "BEGUN");
    // The host answers while Lisp loops.
    // A status does not list the requests for itself.
    let (first, second) = (world.session.status(), world.session.status());
    for status in [first.await, second.await] {
        assert!(!status.work.iter().any(|work| work.contains("status")), "{:?}", status.work);
    }
    let status = editor.command("consort.status", json!({})).await.unwrap();
    assert!(status["work"].to_string().contains("(defvar *kept* 0)"), "{status}");
    editor.notify("$/cancelRequest", json!({"id": id})).await;
    assert_eq!(editor.answer(id).await.unwrap_err()["code"], -32800);
    assert_eq!(editor.eval("(plusp *kept*)").await, ["T"]);
    let counted = editor.eval("*kept*").await;
    assert_eq!(editor.eval("*kept*").await, counted, "it still counts");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_that_vanishes_stops_what_it_evaluates() {
    let world = World::ready(&[]).await;
    let mut gone = Editor::start(&world.session, json!({})).await;
    gone.ask_command(
        "consort.eval",
        json!({"code": "(defvar *n* 0) (princ :begun) (loop (incf *n*))", "outputToken": 1}),
    )
    .await;
    gone.wait_for("consort/output", |_| true).await;
    gone.vanish().await;

    let mut editor = Editor::start(&world.session, json!({})).await;
    comes("the end of what the editor that has gone evaluated", async || {
        let status = editor.command("consort.status", json!({})).await.unwrap();
        let alone = status["clients"].as_array().is_some_and(|clients| clients.len() == 1);
        (alone && status["image"]["facts"]["running"].as_array().is_some_and(Vec::is_empty)).then_some(())
    })
    .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupt_answers_the_interrupted() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let id = editor.ask_command("consort.eval", json!({"code": "(princ 1) (loop)", "outputToken": 1})).await;
    let queued = editor.ask_command("consort.eval", json!({"code": "1", "outputToken": 2})).await;
    editor.wait_for("consort/output", |_| true).await;
    editor.wait_for("consort/begun", |params| params["token"] == 1).await;
    assert_eq!(editor.command("consort.interrupt", json!({})).await.unwrap(), json!({"interrupted": 2}));
    assert_eq!(editor.answer(id).await.unwrap()["status"], "interrupted");
    assert_eq!(editor.answer(queued).await.unwrap_err()["data"]["kind"], "interrupted");
    assert!(!editor.has("consort/begun", |_| true), "an evaluation that waited was said to have begun");
    assert_eq!(editor.command("consort.eval", json!({"code": "2", "outputToken": 3})).await.unwrap()["values"][0], "2");
    editor.wait_for("consort/begun", |params| params["token"] == 3).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn code_in_a_document_is_read_in_its_package_and_found_there() {
    let text = "(defpackage :d (:use :cl))\n(in-package :d)\n\n  (defun here () 1)\n";
    let world = World::ready(&[("d.lisp", text)]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.eval("(defpackage :d (:use :cl))").await;
    editor.open(&world.uri("d.lisp"), text).await;
    let argument =
        json!({"code": "(defun here () 1)", "uri": world.uri("d.lisp"), "position": {"line": 3, "character": 2}});
    let result = editor.command("consort.eval", argument).await.unwrap();
    assert_eq!(result["values"], json!(["HERE"]));
    let code = "(sb-introspect:definition-source-pathname (first (sb-introspect:find-definition-sources-by-name 'd::here :function)))";
    let found = editor.eval(&format!("(require :sb-introspect) (eval (read-from-string {code:?}))")).await;
    assert!(found[0].contains("d.lisp"), "{found:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_system_is_loaded_with_progress_and_for_everybody() {
    let world = World::ready(&SYSTEM).await;
    let mut editor = Editor::start(&world.session, json!({"window": {"workDoneProgress": true}})).await;
    let result = editor.command("consort.loadSystem", json!({"system": "toy"})).await.unwrap();
    assert_eq!(result["loaded"], true, "{result}");
    let kinds = ["begin", "end"];
    for kind in kinds {
        editor.wait_for("$/progress", |params| params["value"]["kind"] == kind).await;
    }
    let mut other = Editor::start(&world.session, json!({})).await;
    assert_eq!(other.eval("(toy:play)").await, [":PLAYED"]);

    let failed = editor.command("consort.loadSystem", json!({"system": "no-such-system"})).await.unwrap();
    assert_eq!(failed["loaded"], false, "{failed}");
    editor.wait_for("window/showMessage", |params| params["message"].to_string().contains("no-such-system")).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_is_replaced_and_put_back() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.eval("(defpackage :rep (:use :cl))").await;
    editor.eval("(progn (defgeneric rep::run (x)) (defmethod rep::run ((x integer)) :old))").await;
    let replace = |code: &str| json!({"function": "rep::run", "code": code});
    let done = editor.command("consort.replaceFunction", replace("(defmethod run ((n integer)) :new)")).await.unwrap();
    assert_eq!(done["redefined"], json!(["method (REP::RUN (INTEGER))"]));
    assert_eq!(editor.eval("(rep::run 1)").await, [":NEW"]);
    for (code, kind) in [
        ("(defmethod run ((n string)) :new)", "METHOD_NOT_FOUND"),
        ("(defun run (n) n)", "WRONG_DEFINITION"),
        ("(defmethod run ((n integer)) (+ n nowhere))", "COMPILATION_ERROR"),
    ] {
        let error = editor.command("consort.replaceFunction", replace(code)).await.unwrap_err();
        assert_eq!((&error["code"], &error["data"]["type"]), (&json!(-32000), &json!(kind)), "{code}");
    }
    assert_eq!(editor.eval("(rep::run 1)").await, [":NEW"]);
    let undone = editor.command("consort.undoReload", json!({})).await.unwrap();
    assert_eq!(undone["not_undone"], json!([]));
    assert_eq!(editor.eval("(rep::run 1)").await, [":OLD"]);
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_of_a_macro_are_compiled_again_as_one_change() {
    let text = "(defpackage :users (:use :cl))\n(in-package :users)\n(defmacro m (x) `(list ,x))\n\
                (defun f (y) (m y))\n(defun g () (m 1))\n(defvar *v* (m 2))\n(defun takes-two () (m 1))";
    let other = "(in-package :users)\n(defun not-loaded () (m 1))\n  (defun h (unused) (m 3))";
    let world = World::ready(&[("m.lisp", text), ("o.lisp", other)]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.ignore(&["textDocument/publishDiagnostics"]);
    let uri = world.uri("m.lisp");
    editor.open(&uri, text).await;
    editor.command("consort.compileFile", json!({"uri": uri})).await.unwrap();
    editor.eval("(in-package :users) (defun h (unused) (m 3))").await;
    let now = "(list (users::f 0) (users::g) (users::h 0) users::*v*)";
    assert_eq!(editor.eval(now).await, ["((0) (1) (3) (2))"]);
    // The macro refuses one of its callers from now on.
    let changed = "(defmacro users::m (x) (if (eql x 1) (error \"not one\") `(vector ,x)))";
    editor.eval(changed).await;
    let place = json!({"uri": uri, "position": {"line": 2, "character": 4}});
    let done = editor.command("consort.recompileCallers", place).await.unwrap();
    let names = |list: &str| {
        let one = |one: &Value| one["name"].as_str().unwrap().to_owned();
        done[list].as_array().unwrap().iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(names("compiled"), ["f", "h"], "{done}");
    assert_eq!(names("left"), ["*v*", "not-loaded", "g", "takes-two"], "{done}");
    let reason = |at: usize| done["left"][at]["reason"].as_str().unwrap();
    assert!(reason(0).contains("value of a variable"), "{done}");
    assert_eq!(reason(1), "it is not loaded");
    assert!(reason(2).contains("does not compile") && reason(2).contains("not one"), "{done}");
    let finding = &done["compiled"][1]["findings"][0];
    assert_eq!(
        (&finding["code"], &finding["range"]["start"]),
        (&json!("unused-variable"), &json!({"line": 2, "character": 12}))
    );
    assert_eq!(done["compiled"][1]["range"]["start"], json!({"line": 2, "character": 9}));
    assert_eq!(done["report"]["redefined"].as_array().unwrap().len(), 2, "{done}");
    assert!(done["text"].as_str().unwrap().contains("o.lisp:3: function h"), "{done}");
    assert_eq!(editor.eval(now).await, ["(#(0) (1) #(3) (2))"]);
    let undone = editor.command("consort.undoReload", json!({})).await.unwrap();
    assert_eq!(undone["not_undone"], json!([]));
    assert_eq!(editor.eval(now).await, ["((0) (1) (3) (2))"]);
    let none = editor.command("consort.recompileCallers", json!({"name": "no-such-name"})).await.unwrap();
    assert_eq!((&none["compiled"], &none["report"]), (&json!([]), &Value::Null));
    let missing = editor.command("consort.recompileCallers", json!({})).await.unwrap_err();
    assert_eq!(missing["code"], -32602);
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_name_stands_for_is_removed_and_put_back() {
    let text = "(defpackage :gone (:use :cl))\n(in-package :gone)\n(defun f (x) (car x))\n\
                (defgeneric run (x))\n(defmethod run ((x integer)) 1)\n(defmethod run :around ((x t)) (call-next-method))";
    let world = World::ready(&[("g.lisp", text)]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.ignore(&["textDocument/publishDiagnostics"]);
    let uri = world.uri("g.lisp");
    editor.open(&uri, text).await;
    editor.command("consort.compileFile", json!({"uri": uri})).await.unwrap();
    let at = |line: u32, character: u32| json!({"uri": uri, "position": {"line": line, "character": character}});
    let asked = editor.command("consort.removable", at(2, 7)).await.unwrap();
    assert_eq!((&asked["name"], &asked["parts"][0]["text"]), (&json!("GONE::F"), &json!("function GONE::F")));
    let remove = json!({"name": asked["name"], "parts": ["function"]});
    let done = editor.command("consort.undefine", remove).await.unwrap();
    assert_eq!(done["gone"], json!(["function GONE::F"]));
    assert_eq!(editor.eval("(fboundp 'gone::f)").await, ["NIL"]);
    let undone = editor.command("consort.undoReload", json!({})).await.unwrap();
    assert_eq!(undone["not_undone"], json!([]));
    assert_eq!(editor.eval("(gone::f '(1))").await, ["1"]);
    let asked = editor.command("consort.removable", at(5, 12)).await.unwrap();
    assert_eq!(asked["parts"][0]["text"], "method (GONE::RUN :AROUND (T))", "{asked}");
    let remove = json!({"name": asked["name"], "method": asked["method"], "parts": ["method"]});
    let done = editor.command("consort.undefine", remove).await.unwrap();
    assert_eq!(done["gone"], json!(["method (GONE::RUN :AROUND (T))"]));
    // A call of the standard.
    let refused = editor.command("consort.removable", at(2, 15)).await.unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("locked"), "{refused}");
    editor.leave().await;
    world.end().await;
}
