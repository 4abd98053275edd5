//! Exception filters over the Debug Adapter Protocol, and results whose parts are looked at.

use consort_tests::patience::PATIENCE;
use serde_json::json;

use crate::dap::{Client, fixture};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_that_is_handled_stops_where_it_is_signalled() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let wanted =
        json!({"filters": ["error"], "filterOptions": [{"filterId": "condition", "condition": "no-such-type"}]});
    let set = client.ask("setExceptionBreakpoints", wanted).await;
    let verified: Vec<_> = set["breakpoints"].as_array().unwrap().iter().map(|one| one["verified"].clone()).collect();
    assert_eq!(verified, [json!(true), json!(false)], "{set}");
    assert!(set["breakpoints"][1]["message"].as_str().unwrap().contains("is no type"), "{set}");

    let code = "(handler-case (fails 3) (error () :handled))";
    let evaluation = client.send("evaluate", json!({"expression": code, "context": "repl"})).await;
    let stopped = client.event("stopped").await;
    assert_eq!((&stopped["reason"], &stopped["text"]), (&json!("exception"), &json!("SIMPLE-ERROR: boom 3")));
    assert!(stopped["description"].as_str().unwrap().contains("signalled"), "{stopped}");
    let thread = json!({"threadId": stopped["threadId"]});
    let frames = client.ask("stackTrace", thread.clone()).await;
    assert_eq!(frames["stackFrames"][0]["name"], "FAILS", "{frames}");
    client.ask("continue", thread).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], ":HANDLED");

    // Without a filter it is handled and nothing else.
    client.ask("setExceptionBreakpoints", json!({"filters": []})).await;
    let result = client.ask("evaluate", json!({"expression": code, "context": "repl"})).await;
    assert_eq!(result["result"], ":HANDLED");
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_parts_of_a_result_in_the_console() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let result = client.ask("evaluate", json!({"expression": "(list 1 (list 2))", "context": "repl"})).await;
    assert_eq!(result["result"], "(1 (2))");
    let parts = client.ask("variables", json!({"variablesReference": result["variablesReference"]})).await;
    let values: Vec<_> = parts["variables"].as_array().unwrap().iter().map(|part| part["value"].clone()).collect();
    assert_eq!(values, [json!("1"), json!("(2)")], "{parts}");
    let number = client.ask("evaluate", json!({"expression": "42", "context": "repl"})).await;
    assert_eq!(number["variablesReference"], 0, "{number}");
    client.leave().await;
    drop(session);
    fixture.close().await;
}
