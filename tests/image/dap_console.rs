//! The console of an editor's debugger, with a real image: completions and evaluations.

use consort_tests::patience::{PATIENCE, comes};
use serde_json::{Value, json};

use crate::dap::{Client, fixture};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_console_completes_in_its_package_and_with_the_variables_of_a_frame() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    fixture.eval("(defpackage :cons-ole (:use :cl) (:export #:exported))").await;
    client.ask("evaluate", json!({"expression": "(progn (in-package :cons-ole) (intern \"OWN-NAME\"))"})).await;
    let labels = |answer: &Value| -> Vec<String> {
        answer["targets"].as_array().unwrap().iter().map(|one| one["label"].as_str().unwrap().to_owned()).collect()
    };
    let wanted = json!({"text": "(list 1)\n(multiple-value-b", "line": 2, "column": 18});
    // A busy machine may not have the index at the first try.
    let answer = comes("the name in a completion", async || {
        let answer = client.ask("completions", wanted.clone()).await;
        labels(&answer).contains(&"multiple-value-bind".to_owned()).then_some(answer)
    })
    .await;
    assert_eq!((&answer["targets"][0]["start"], &answer["targets"][0]["length"]), (&json!(11), &json!(16)));
    assert_eq!(client.ask("completions", json!({"text": "\"(ca", "column": 5})).await["targets"], json!([]));

    client.send("evaluate", json!({"expression": "(cl-user::outer 1 2)"})).await;
    let thread = client.event("stopped").await["threadId"].clone();
    let frames = client.ask("stackTrace", json!({"threadId": thread})).await["stackFrames"].clone();
    let answer = client.ask("completions", json!({"text": "(+ ", "column": 4, "frameId": frames[1]["id"]})).await;
    assert_eq!(labels(&answer)[..2], ["x".to_owned(), "y".to_owned()]);
    // Clients that sort show the same order.
    let sorted: Vec<&str> =
        answer["targets"].as_array().unwrap().iter().map(|one| one["sortText"].as_str().unwrap()).collect();
    assert!(sorted.len() > 2 && sorted.is_sorted_by(|one, next| one < next), "{sorted:?}");
    client.ask("terminateThreads", json!({"threadIds": [thread]})).await;
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evaluations_are_cancelled_one_by_one_and_told_whole() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let loops = "(progn (princ \"begun\") (finish-output) (loop))";
    let number = client.send("consort/evaluate", json!({"code": loops, "stops": true})).await;
    assert_eq!(client.event("output").await["output"], "begun");
    client.ask("cancel", json!({"requestId": number})).await;
    assert_eq!(client.answer(number).await["body"]["status"], "interrupted");

    // For code in a frame, that code alone.
    let number = client.send("consort/evaluate", json!({"code": "(outer 1 2)", "stops": true})).await;
    let stopped = client.event("stopped").await;
    assert_eq!((&stopped["ownEvaluation"], &stopped["level"]), (&json!(true), &json!(1)));
    let code = client.send("evaluate", json!({"expression": loops})).await;
    assert_eq!(client.event("output").await["output"], "begun");
    client.ask("cancel", json!({"requestId": code})).await;
    assert_eq!(client.answer(code).await["message"], "cancelled");
    // Output of code in a frame is told before its value.
    let code = client.send("evaluate", json!({"expression": "(progn (princ \"printed\") 3)"})).await;
    let first = client.wait(|message| message["event"] == "output" || message["request_seq"] == code).await;
    assert_eq!(first["body"]["output"], "printed", "{first}");
    assert_eq!(client.answer(code).await["body"]["result"], "3");
    client.ask("terminateThreads", json!({"threadIds": [stopped["threadId"]]})).await;
    let body = client.answer(number).await["body"].clone();
    assert_eq!((&body["status"], &body["error"]["message"]), (&json!("error"), &json!("boom 1")));
    assert!(body["error"]["frames"].as_array().is_some_and(|frames| !frames.is_empty()), "{body}");

    let code = "(progn (warn \"careful\") (setf *package* (find-package :keyword)) (values 1 2))";
    let body = client.ask("consort/evaluate", json!({"code": code})).await;
    assert_eq!((&body["status"], &body["package"]), (&json!("ok"), &json!("KEYWORD")));
    assert_eq!(body["warnings"][0], json!({"typeName": "WARNING", "message": "careful"}));
    assert_eq!((&body["values"][0]["value"], body["values"].as_array().unwrap().len()), (&json!("1"), 2));
    let missing = client.refused("consort/evaluate", json!({"code": "1", "package": "no-such"})).await;
    assert!(missing.contains("no-such") || missing.contains("NO-SUCH"), "{missing}");
    client.leave().await;
    drop(session);
    fixture.close().await;
}
