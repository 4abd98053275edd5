//! A recording that is stepped through in an editor's debugger, with a real image.

use consort::session::recordings::RecordRequest;
use consort::session::{ClientInfo, Frontend, Session};
use consort_tests::patience::{AMPLE, PATIENCE, comes};
use consort_tests::recorded_exits::{CODE, NAME, STEPS, TEXT};
use serde_json::{Value, json};

use crate::dap::{Client, fixture};
use crate::support::Fixture;

const FILE: &str = "(defpackage :shop (:use :cl))
(in-package :shop)
(defun price (item)
  (getf item :price))
(defun total (items)
  (let ((sum 0))
    (dolist (item items sum)
      (setf sum
            (+ sum (price item))))))
";

/// Loads the file and records a form; returns the number of the recording and the file.
async fn recorded(fixture: &Fixture, session: &Session, code: &str) -> (u64, Value) {
    recorded_in(fixture, session, ("shop.lisp", FILE), code).await
}

/// [`recorded`] with a file of this name and text.
async fn recorded_in(fixture: &Fixture, session: &Session, (name, text): (&str, &str), code: &str) -> (u64, Value) {
    let file = fixture.workspace.path().join(name);
    std::fs::write(&file, text).unwrap();
    fixture.eval(&format!("(load {:?})", file.display().to_string())).await;
    let (client, _feedback) = session.attach(ClientInfo { frontend: Frontend::Cli, name: "test".into() });
    let request = RecordRequest { code: code.into(), timeout: Some(AMPLE), ..RecordRequest::default() };
    let (recording, _) = session.record(client, request).await.unwrap();
    session.detach(client);
    assert_ne!(recording.number, 0, "{recording:?}");
    (recording.number, json!(file))
}

/// Begins as an editor does that has a breakpoint already; returns the first stop.
async fn begin(client: &mut Client, recording: u64, file: &Value, line: u64) -> Value {
    client.ask("initialize", json!({"adapterID": "consort"})).await;
    client.event("initialized").await;
    let points = json!({"source": {"path": file}, "breakpoints": [{"line": line}]});
    client.ask("setBreakpoints", points).await;
    client.ask("attach", json!({"recording": recording})).await;
    let capabilities = client.event("capabilities").await["capabilities"].clone();
    assert_eq!(
        (&capabilities["supportsStepBack"], &capabilities["supportsSetVariable"]),
        (&json!(true), &json!(false))
    );
    client.ask("configurationDone", Value::Null).await;
    client.event("stopped").await
}

/// Goes on with a request; returns the stop.
async fn step(client: &mut Client, how: &str) -> Value {
    client.ask(how, json!({"threadId": 1})).await;
    client.event("stopped").await
}

async fn frames(client: &mut Client) -> Vec<Value> {
    client.ask("stackTrace", json!({"threadId": 1})).await["stackFrames"].as_array().unwrap().clone()
}

/// The names and values of a scope of a frame.
async fn values(client: &mut Client, frame: &Value, scope: usize) -> Vec<(String, String, u64)> {
    let scopes = client.ask("scopes", json!({"frameId": frame["id"]})).await["scopes"].clone();
    parts(client, scopes[scope]["variablesReference"].as_u64().unwrap()).await
}

async fn parts(client: &mut Client, reference: u64) -> Vec<(String, String, u64)> {
    let shown = client.ask("variables", json!({"variablesReference": reference})).await["variables"].clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let part = |one: &Value| (text(&one["name"]), text(&one["value"]), one["variablesReference"].as_u64().unwrap());
    shown.as_array().unwrap().iter().map(part).collect()
}

/// An editor may set its breakpoints while the recording is still being opened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_breakpoint_that_comes_while_a_recording_is_opened_is_kept() {
    let (fixture, session) = fixture().await;
    let (number, file) = recorded(&fixture, &session, "(shop::total '((:price 3) (:cost 5)))").await;
    let mut client = Client::connect(&session, PATIENCE);
    client.ask("initialize", json!({"adapterID": "consort"})).await;
    client.event("initialized").await;
    let attach = client.send("attach", json!({"recording": number})).await;
    let points = json!({"source": {"path": file}, "breakpoints": [{"line": 4}]});
    let points = client.send("setBreakpoints", points).await;
    client.answer(attach).await;
    client.event("capabilities").await;
    assert_eq!(client.answer(points).await["body"]["breakpoints"][0]["verified"], true);
    client.ask("configurationDone", Value::Null).await;
    client.event("stopped").await;
    assert_eq!(step(&mut client, "reverseContinue").await["text"], "(getf item :price) => nil");
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_is_stepped_back_from_its_error() {
    let (fixture, session) = fixture().await;
    let (number, file) = recorded(&fixture, &session, "(shop::total '((:price 3) (:cost 5)))").await;
    let mut client = Client::connect(&session, PATIENCE);
    let stopped = begin(&mut client, number, &file, 4).await;
    assert_eq!((&stopped["reason"], &stopped["threadId"]), (&json!("exception"), &json!(1)));
    assert!(stopped["text"].as_str().unwrap().starts_with("TYPE-ERROR: "), "{stopped}");
    let error = client.ask("exceptionInfo", json!({"threadId": 1})).await;
    assert_eq!(error["details"]["typeName"], "TYPE-ERROR");
    // The breakpoint that came before the recording was known is taken over, and has no probe.
    let taken = client.event("breakpoint").await["breakpoint"].clone();
    assert_eq!((&taken["verified"], &taken["line"], &taken["column"]), (&json!(true), &json!(4), &json!(3)));

    let threads = client.ask("threads", json!({})).await["threads"].clone();
    assert_eq!(threads, json!([{"id": 1, "name": format!("recording {number}")}]));
    let shown = frames(&mut client).await;
    let place = |frame: &Value| (frame["source"]["path"].clone(), frame["line"].clone(), frame["column"].clone());
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert_eq!(place(&shown[0]), (file.clone(), json!(9), json!(13)));
    // The recorded form is in no file.
    let source = client.ask("source", json!({"sourceReference": shown[1]["source"]["sourceReference"]})).await;
    assert_eq!(source["content"], "(shop::total '((:price 3) (:cost 5)))");

    // A step back: the wrong value, and what the variables were.
    let back = step(&mut client, "stepBack").await;
    assert_eq!((&back["reason"], &back["text"]), (&json!("step"), &json!("(price item) => nil")));
    let shown = frames(&mut client).await;
    assert_eq!(place(&shown[0]), (file.clone(), json!(9), json!(20)));
    let variables = values(&mut client, &shown[0], 0).await;
    let named = |name: &str| variables.iter().find(|(known, ..)| known.ends_with(name)).cloned().unwrap();
    assert_eq!((named("=>").1, named("SUM").1), ("nil".into(), "3".into()), "{variables:?}");
    let item = parts(&mut client, named("ITEM").2).await;
    assert_eq!((item[0].1.as_str(), item[1].1.as_str(), item[1].2), (":cost", "5", 0));
    let last = values(&mut client, &shown[0], 1).await;
    assert!(last.iter().any(|(form, value, _)| form.starts_with("(setf sum") && value == "3"), "{last:?}");

    // Variables by their names; an expression over copies; a pointer evaluates nothing.
    let asked = |code: &str, context: &str| json!({"expression": code, "frameId": shown[0]["id"], "context": context});
    assert_eq!(client.ask("evaluate", asked("sum", "hover")).await["result"], "3");
    assert_eq!(client.ask("evaluate", asked("(list :now (1+ sum))", "watch")).await["result"], "(:now 4)");
    let refused = client.refused("evaluate", asked("(1+ sum)", "hover")).await;
    assert!(refused.contains("No value of (1+ sum) is recorded"), "{refused}");
    let refused = client.refused("evaluate", asked("(error \"no\")", "watch")).await;
    assert!(refused.contains("SIMPLE-ERROR: no"), "{refused}");
    let refused = client.refused("setVariable", json!({"variablesReference": 1, "name": "SUM", "value": "1"})).await;
    assert!(refused.contains("does not run"), "{refused}");

    // Backwards to the breakpoint in the function that gave the value, to that before it, and to
    // the begin.
    let hit = step(&mut client, "reverseContinue").await;
    assert_eq!((&hit["reason"], &hit["text"]), (&json!("breakpoint"), &json!("(getf item :price) => nil")));
    assert_eq!(hit["hitBreakpointIds"], json!([taken["id"]]));
    let shown = frames(&mut client).await;
    assert_eq!(shown.iter().map(|frame| frame["line"].as_u64().unwrap()).collect::<Vec<_>>(), [4, 9, 1]);
    assert_eq!(shown[0]["name"], "(shop::price (:cost 5))");
    let out = step(&mut client, "stepOut").await;
    assert_eq!(out["text"], "(shop::price (:cost 5)) => nil");
    assert_eq!(step(&mut client, "stepOut").await["text"], "(price item) => nil");
    step(&mut client, "reverseContinue").await;
    assert_eq!(step(&mut client, "reverseContinue").await["text"], "(getf item :price) => 3");
    assert_eq!(step(&mut client, "reverseContinue").await["reason"], "entry");
    // At the begin there is no step back, and the step forth is into the call.
    assert_eq!(step(&mut client, "stepBack").await["reason"], "entry");
    assert_eq!(step(&mut client, "stepIn").await["text"], "(shop::total ((:price 3) (:cost 5)))");

    // Forwards: the breakpoint twice, the error, the end.
    for (reason, text) in [("breakpoint", "(getf item :price) => 3"), ("breakpoint", "(getf item :price) => nil")] {
        let stopped = step(&mut client, "continue").await;
        assert_eq!((&stopped["reason"], &stopped["text"]), (&json!(reason), &json!(text)));
    }
    assert_eq!(step(&mut client, "continue").await["reason"], "exception");
    let end = step(&mut client, "continue").await;
    assert!(end["description"].as_str().unwrap().starts_with("At the end of the recording"), "{end}");
    assert_eq!(step(&mut client, "next").await["description"], end["description"]);

    // A line without a form.
    let points = json!({"source": {"path": file}, "breakpoints": [{"line": 1}]});
    let unverified = client.ask("setBreakpoints", points).await["breakpoints"][0].clone();
    assert_eq!(unverified["verified"], false, "{unverified}");
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_recording_that_ended_well_begins_at_its_first_event_and_one_that_is_gone_is_said() {
    let (mut fixture, session) = fixture().await;
    let pid = fixture.ready().await;
    let (number, file) = recorded(&fixture, &session, "(shop::total '((:price 3) (:price 5)))").await;
    let mut client = Client::connect(&session, PATIENCE);
    let stopped = begin(&mut client, number, &file, 3).await;
    assert_eq!((&stopped["reason"], &stopped["text"]), (&json!("entry"), &json!("the form")));
    // The first line of a function is the beginning of its calls.
    assert_eq!(step(&mut client, "continue").await["text"], "(shop::price (:price 3))");
    // The image ends, and the recording with it.
    crate::support::kill(pid);
    comes("another image", async || (fixture.ready().await != pid).then_some(())).await;
    let refused = client.refused("next", json!({"threadId": 1})).await;
    assert!(refused.contains("Record again"), "{refused}");
    client.event("terminated").await;
    client.leave().await;

    let mut client = Client::connect(&session, PATIENCE);
    client.ask("initialize", json!({"adapterID": "consort"})).await;
    let refused = client.refused("launch", json!({"recording": 99})).await;
    assert!(refused.contains("There is no recording 99"), "{refused}");
    client.event("terminated").await;
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exits_and_handled_conditions_are_stepped_through() {
    let (fixture, session) = fixture().await;
    let (number, file) = recorded_in(&fixture, &session, (NAME, TEXT), CODE).await;
    let mut client = Client::connect(&session, PATIENCE);
    let mut stopped = begin(&mut client, number, &file, 1).await;
    for (depth, line, text) in STEPS {
        let frames = frames(&mut client).await;
        let here = (frames.len(), frames[0]["line"].as_u64().unwrap(), stopped["text"].as_str().unwrap());
        assert_eq!(here, (*depth, *line, *text));
        stopped = step(&mut client, "stepIn").await;
    }
    // The whole form, and its end; then back into the call before.
    while !stopped["description"].as_str().unwrap().starts_with("At the end of the recording") {
        stopped = step(&mut client, "stepIn").await;
    }
    let points = json!({"source": {"path": file}, "breakpoints": [{"line": 4}]});
    client.ask("setBreakpoints", points).await;
    for n in [4, 1] {
        let hit = step(&mut client, "reverseContinue").await;
        assert_eq!(hit["text"], format!("(list :thrown n) => (:thrown {n})"));
    }
    client.leave().await;
    drop(session);
    fixture.close().await;
}
