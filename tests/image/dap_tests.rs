//! A test run with a debugger over the Debug Adapter Protocol, by its name and by its place.

use consort_tests::patience::PATIENCE;
use serde_json::{Value, json};

use crate::dap::{Client, fixture};

const STAND_INS: &str = include_str!("../../lisp/tests/stand-ins.lisp");
const TESTS: &str = "(defpackage :shop/tests (:use :cl :rove))
(in-package :shop/tests)
(defun price (n) (* 2 n))
(deftest broken
  (ok (= 4 (price 2)))
  (ok (error \"no price\")))
(deftest good
  (ok (= 4 (price 2))))
";

/// Begins a session with `launch`.
async fn launch(client: &mut Client, arguments: Value) {
    client.ask("initialize", json!({"adapterID": "consort", "linesStartAt1": true})).await;
    client.event("initialized").await;
    client.ask("launch", arguments).await;
    client.ask("configurationDone", Value::Null).await;
}

/// What the session shows until it ends.
async fn shown(client: &mut Client) -> String {
    let mut shown = String::new();
    loop {
        let message = client.next_event().await;
        match message["event"].as_str() {
            Some("output") => shown += message["body"]["output"].as_str().unwrap(),
            Some("terminated") => return shown,
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_stops_in_a_debugger() {
    let (fixture, session) = fixture().await;
    let stand_ins = fixture.workspace.path().join("stand-ins.lisp");
    let tests = fixture.workspace.path().join("tests.lisp");
    std::fs::write(&stand_ins, STAND_INS).unwrap();
    std::fs::write(&tests, TESTS).unwrap();
    fixture.eval(&format!("(progn (load {stand_ins:?}) (load {tests:?}) (values))")).await;

    // By its name: its error stops, and CONTINUE has the framework go on.
    let mut client = Client::connect(&session, PATIENCE);
    launch(&mut client, json!({"test": "broken", "package": "shop/tests"})).await;
    let stopped = client.event("stopped").await;
    assert_eq!(stopped["text"], "SIMPLE-ERROR: no price", "{stopped}");
    let thread = json!({"threadId": stopped["threadId"]});
    let restarts = client.ask("consort/restarts", thread.clone()).await;
    assert_eq!(restarts["restarts"][0]["name"], "CONTINUE", "{restarts}");
    client.ask("continue", thread).await;
    let text = shown(&mut client).await;
    assert!(text.contains("SHOP/TESTS::BROKEN: error, "), "{text}");
    client.leave().await;

    // By its line, as the file has it now: the definition is evaluated first.
    std::fs::write(&tests, TESTS.replace("(= 4 (price 2))))", "(= 4 (price 2)))\n  (ok (cl-user::fails 7)))")).unwrap();
    let mut client = Client::connect(&session, PATIENCE);
    launch(&mut client, json!({"file": tests, "line": 9, "code": "(error \"not the test\")"})).await;
    let stopped = client.event("stopped").await;
    assert_eq!(stopped["text"], "SIMPLE-ERROR: boom 7", "{stopped}");
    let frames = client.ask("stackTrace", json!({"threadId": stopped["threadId"]})).await;
    assert_eq!(frames["stackFrames"][0]["name"], "FAILS", "{frames}");
    client.ask("terminateThreads", json!({"threadIds": [stopped["threadId"]]})).await;
    let text = shown(&mut client).await;
    assert!(text.contains("SIMPLE-ERROR: boom 7"), "{text}");
    client.leave().await;

    // Where there is no test, the code is evaluated; without code that is told.
    for (arguments, expected) in [
        (json!({"file": tests, "line": 3, "code": "(price 4)", "package": "shop/tests"}), "8"),
        (json!({"file": tests, "line": 3}), "There is no test at "),
        (json!({"test": "none-such"}), "No test is found called none-such"),
        (json!({"test": "good", "package": "shop/tests"}), "SHOP/TESTS::GOOD: "),
        (json!({"file": "/nonexistent/x.lisp", "line": 1}), "cannot be read"),
        (json!({"file": tests}), "`file` and `line` are given together"),
        (json!({"line": 3}), "`file` and `line` are given together"),
    ] {
        let mut client = Client::connect(&session, PATIENCE);
        launch(&mut client, arguments.clone()).await;
        if arguments["test"] == "good" {
            // The last definition of it fails.
            let stopped = client.event("stopped").await;
            client.ask("continue", json!({"threadId": stopped["threadId"]})).await;
        }
        let text = shown(&mut client).await;
        assert!(text.contains(expected), "{arguments}: {text}");
        client.leave().await;
    }
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_launch_that_is_terminated_at_once_runs_nothing() {
    let (fixture, session) = fixture().await;
    let stand_ins = fixture.workspace.path().join("stand-ins.lisp");
    let tests = fixture.workspace.path().join("noted.lisp");
    std::fs::write(&stand_ins, STAND_INS).unwrap();
    let noted = "(defpackage :noted/tests (:use :cl :rove))
(in-package :noted/tests)
(defvar *ran* nil)
(deftest noted (setf *ran* t))
";
    std::fs::write(&tests, noted).unwrap();
    fixture.eval(&format!("(progn (load {stand_ins:?}) (load {tests:?}) (values))")).await;

    for arguments in [json!({"file": tests, "line": 4}), json!({"test": "noted", "package": "noted/tests"})] {
        let mut client = Client::connect(&session, PATIENCE);
        client.ask("initialize", json!({"adapterID": "consort", "linesStartAt1": true})).await;
        client.event("initialized").await;
        client.ask("launch", arguments.clone()).await;
        client.send("configurationDone", Value::Null).await;
        client.ask("terminate", json!({})).await;
        client.event("terminated").await;
        // A test that were run in spite of it would be meanwhile.
        for _ in 0..20 {
            let ran = client.ask("evaluate", json!({"expression": "noted/tests::*ran*", "context": "repl"})).await;
            assert_eq!(ran["result"], "NIL", "{arguments}");
        }
        client.leave().await;
    }
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_of_a_file_stops_in_the_file() {
    let (fixture, session) = fixture().await;
    let file = fixture.workspace.path().join("forms.lisp");
    let form = "(list 1\n      (error \"no\"))";
    std::fs::write(&file, format!("{form}\n\n\n{form}\n\n(list 3)\n")).unwrap();
    // The same text is evaluated at the nearer place; a text that is not in the file, in none.
    for (line, code, wanted) in [(1, form, json!(2)), (5, form, json!(6)), (6, "(list (error \"no\"))", Value::Null)] {
        let mut client = Client::connect(&session, PATIENCE);
        launch(&mut client, json!({"code": code, "file": file, "line": line})).await;
        let stopped = client.event("stopped").await;
        let frames = client.ask("stackTrace", json!({"threadId": stopped["threadId"]})).await;
        let frame = &frames["stackFrames"][0];
        let shown = if frame["source"]["path"] == json!(file) { frame["line"].clone() } else { Value::Null };
        assert_eq!(shown, wanted, "{line} {frame}");
        client.ask("terminate", json!({})).await;
        client.event("terminated").await;
        client.leave().await;
    }
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_test_that_was_loaded_stops_at_its_breakpoints() {
    let (fixture, session) = fixture().await;
    let stand_ins = fixture.workspace.path().join("stand-ins.lisp");
    let tests = fixture.workspace.path().join("tests.lisp");
    std::fs::write(&stand_ins, STAND_INS).unwrap();
    std::fs::write(&tests, TESTS).unwrap();
    for arguments in [
        json!({"test": "SHOP/TESTS::GOOD"}),
        json!({"test": "good", "package": "shop/tests"}),
        json!({"file": tests, "line": 7}),
    ] {
        fixture.eval(&format!("(progn (load {stand_ins:?}) (load {tests:?}) (values))")).await;
        let mut client = Client::connect(&session, PATIENCE);
        client.ask("initialize", json!({"adapterID": "consort", "linesStartAt1": true})).await;
        client.event("initialized").await;
        client.ask("launch", arguments.clone()).await;
        // The one in the other test waits on.
        let lines = json!([{"line": 5}, {"line": 8}]);
        let set = client.ask("setBreakpoints", json!({"source": {"path": tests}, "breakpoints": lines})).await;
        assert_eq!(set["breakpoints"][1]["verified"], false, "{arguments}: {set}");
        client.ask("configurationDone", Value::Null).await;
        let stopped = client.event("stopped").await;
        assert_eq!(
            (&stopped["reason"], &stopped["hitBreakpointIds"]),
            (&json!("breakpoint"), &json!([2])),
            "{stopped}"
        );
        let frames = client.ask("stackTrace", json!({"threadId": stopped["threadId"]})).await;
        let frame = &frames["stackFrames"][0];
        assert_eq!((&frame["line"], &frame["source"]["path"]), (&json!(8), &json!(tests)), "{frame}");
        client.ask("continue", json!({"threadId": stopped["threadId"]})).await;
        let text = shown(&mut client).await;
        assert!(text.contains("SHOP/TESTS::GOOD: passed"), "{arguments}: {text}");
        client.leave().await;
    }
    drop(session);
    fixture.close().await;
}
