//! Stops in code that is evaluated at a stop, over the Debug Adapter Protocol; the frame of a form
//! that is evaluated alone; `(step form)`.

use consort_tests::patience::PATIENCE;
use serde_json::{Value, json};

use crate::dap::{Client, fixture};

fn console(code: &str, frame: &Value) -> Value {
    json!({"expression": code, "frameId": frame, "context": "repl"})
}

/// The frames of a thread.
async fn frames(client: &mut Client, thread: &Value) -> Vec<Value> {
    client.ask("stackTrace", json!({"threadId": thread})).await["stackFrames"].as_array().unwrap().clone()
}

fn names(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["name"].as_str().unwrap()).collect()
}

fn place(frame: &Value) -> Vec<u64> {
    ["line", "column", "endLine", "endColumn"].iter().map(|key| frame[key].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_of_the_console_stops_at_a_stop() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let evaluation = client.send("evaluate", json!({"expression": "(outer 1 2)", "context": "repl"})).await;
    let stopped = client.event("stopped").await;
    let thread = stopped["threadId"].clone();
    let outer = frames(&mut client, &thread).await;
    assert_eq!(names(&outer)[..2], ["FAILS", "OUTER"]);

    // An error: a stop of the same thread, with its own frames. `continue` goes back.
    let nested = client.send("evaluate", console("(list (fails 5))", &outer[1]["id"])).await;
    let inner = client.event("stopped").await;
    assert_eq!(
        (&inner["threadId"], &inner["level"], &inner["text"]),
        (&thread, &json!(2), &json!("SIMPLE-ERROR: boom 5"))
    );
    let inside = frames(&mut client, &thread).await;
    assert_eq!(inside[0]["name"], "FAILS");
    assert_eq!(client.ask("evaluate", console("(+ 1 2)", &inside[0]["id"])).await["result"], "3");
    let restarts = client.ask("consort/restarts", json!({"threadId": thread})).await["restarts"].clone();
    let reports: Vec<_> = restarts.as_array().unwrap().iter().map(|one| one["report"].as_str().unwrap()).collect();
    assert!(reports.contains(&"Go back to the stop at level 1."), "{reports:?}");
    client.ask("continue", json!({"threadId": thread})).await;
    assert_eq!(client.answer(nested).await["message"], "SIMPLE-ERROR: boom 5");
    let back = client.event("stopped").await;
    assert_eq!((&back["threadId"], &back["level"], &back["text"]), (&thread, &json!(1), &stopped["text"]));
    // The frames of before count again.
    assert_eq!(client.ask("evaluate", console("(list x y)", &outer[1]["id"])).await["result"], "(1 2)");
    assert_eq!(names(&frames(&mut client, &thread).await), names(&outer));

    // A restart in it lets the code go on, and its value is the answer.
    let nested = client.send("evaluate", console("(list (fails 6))", &outer[1]["id"])).await;
    client.event("stopped").await;
    let use_other = json!({"threadId": thread, "index": 0, "name": "USE-OTHER", "arguments": ["7"]});
    client.ask("consort/invokeRestart", use_other.clone()).await;
    assert_eq!(client.answer(nested).await["body"]["result"], "((:USED 7))");
    assert_eq!(client.event("stopped").await["level"], 1);

    // A cancel goes back from all that stopped in the code.
    let nested = client.send("evaluate", console("(break)", &outer[1]["id"])).await;
    client.event("stopped").await;
    let inside = frames(&mut client, &thread).await;
    let deeper = client.send("evaluate", console("(fails 8)", &inside[0]["id"])).await;
    assert_eq!(client.event("stopped").await["level"], 3);
    client.ask("cancel", json!({"requestId": nested})).await;
    assert_eq!(client.answer(nested).await["message"], "cancelled");
    assert_eq!(client.answer(deeper).await["message"], "SIMPLE-ERROR: boom 8");
    let back = client.wait(|message| message["event"] == "stopped" && message["body"]["level"] == 1).await;
    assert_eq!(back["body"]["text"], stopped["text"]);

    client.ask("consort/invokeRestart", use_other).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], "((:USED 7) 2)");
    client.leave().await;
    drop(session);
    fixture.close().await;
}

/// Stops twice, one within the other. Answers the requests of both.
async fn nest(client: &mut Client) -> (u64, u64) {
    let evaluation = client.send("evaluate", json!({"expression": "(outer 1 2)", "context": "repl"})).await;
    let thread = client.event("stopped").await["threadId"].clone();
    let outer = frames(client, &thread).await;
    let nested = client.send("evaluate", console("(list (fails 5))", &outer[0]["id"])).await;
    assert_eq!(client.event("stopped").await["level"], 2);
    (evaluation, nested)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nested_stops_end_with_the_session() {
    let (fixture, session) = fixture().await;
    // `terminate` ends the evaluation, with all its stops.
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let (evaluation, nested) = nest(&mut client).await;
    client.ask("terminate", json!({})).await;
    client.event("terminated").await;
    for number in [evaluation, nested] {
        assert_eq!(client.answer(number).await["success"], false);
    }
    client.leave().await;

    // So does an adapter that is closed, at once or with the connection.
    let mut client = Client::connect(&session, std::time::Duration::ZERO);
    client.begin().await;
    nest(&mut client).await;
    client.leave().await;
    let stops = session.at_stop(consort::session::debug::DebugStops {}).await.unwrap().stops;
    assert!(stops.is_empty(), "{stops:?}");
    assert_eq!(fixture.values("(+ 1 2)").await, ["3"]);
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_alone_has_a_frame_and_is_stepped() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let code = "(list 1)\n(progn 2\n  (error \"x\"))";
    let evaluation = client.send("evaluate", json!({"expression": code, "context": "repl"})).await;
    let thread = client.event("stopped").await["threadId"].clone();
    let shown = frames(&mut client, &thread).await;
    assert_eq!(names(&shown), ["top-level form"]);
    assert_eq!(place(&shown[0]), [3, 3, 3, 14]);
    let source = client.ask("source", json!({"sourceReference": shown[0]["source"]["sourceReference"]})).await;
    assert_eq!(source["content"], code);
    assert_eq!(client.ask("evaluate", console("(+ 1 2)", &shown[0]["id"])).await["result"], "3");
    client.ask("consort/return", json!({"frameId": shown[0]["id"], "code": ":instead"})).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], ":INSTEAD");

    let code = "(defun thrice (x)\n  (list x x (list x)))\n(list (step (thrice 4)))";
    let evaluation = client.send("evaluate", json!({"expression": code, "context": "repl"})).await;
    let stopped = client.event("stopped").await;
    assert_eq!(stopped["reason"], "step");
    let thread = stopped["threadId"].clone();
    let shown = frames(&mut client, &thread).await;
    assert_eq!((names(&shown), place(&shown[0])), (vec!["top-level form"], vec![3, 13, 3, 23]));
    client.ask("next", json!({"threadId": thread})).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], "((4 4 (4)))");
    client.leave().await;
    drop(session);
    fixture.close().await;
}
