//! What a debugger asks for while its own evaluation is stopped: none of it waits for the stop.

use consort_tests::patience::PATIENCE;
use serde_json::{Value, json};

use crate::dap::{Client, fixture};

/// A new evaluation that stops at errors.
fn code(code: &str) -> Value {
    json!({"code": code, "stops": true})
}

/// Waits for the next stop of the client's own evaluations; returns its thread.
async fn stop(client: &mut Client) -> Value {
    let stopped = client.event("stopped").await;
    assert_eq!((&stopped["ownEvaluation"], &stopped["level"]), (&json!(true), &json!(1)), "{stopped}");
    stopped["threadId"].clone()
}

/// The text of the evaluation that is stopped in a thread, which must have a frame: SBCL gives one
/// to a form that binds variables.
async fn text(client: &mut Client, thread: &Value) -> String {
    let frames = client.ask("stackTrace", json!({"threadId": thread})).await["stackFrames"].clone();
    let last = frames.as_array().and_then(|frames| frames.last()).expect("a frame").clone();
    let source = client.ask("source", json!({"sourceReference": last["source"]["sourceReference"]})).await;
    source["content"].as_str().expect("the text").to_owned()
}

async fn abort(client: &mut Client, thread: &Value) {
    client.ask("terminateThreads", json!({"threadIds": [thread]})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evaluations_go_on_while_others_of_the_client_are_stopped() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    // The second is sent before the first stops.
    let first = client.send("consort/evaluate", code("(let ((k 1)) (setf *first* :there) (list (outer k 2)))")).await;
    let queued = client.send("consort/evaluate", code("(+ 40 2)")).await;
    let one = stop(&mut client).await;
    assert_eq!(client.answer(queued).await["body"]["values"][0]["value"], "42");
    // Sent at the stop. It stops too, and the next one waits for neither.
    let second = client.send("consort/evaluate", code("(let ((k 3)) (list *first* (outer k 4)))")).await;
    let two = stop(&mut client).await;
    assert_ne!(one, two);
    let third = client.ask("consort/evaluate", code("(list *first* 3)")).await;
    assert_eq!(third["values"][0]["value"], "(:THERE 3)", "{third}");
    // Each stop has the text of its own evaluation.
    assert_eq!(text(&mut client, &one).await, "(let ((k 1)) (setf *first* :there) (list (outer k 2)))");
    assert_eq!(text(&mut client, &two).await, "(let ((k 3)) (list *first* (outer k 4)))");

    // One is cancelled, and the other ones stay.
    let runs = client.send("consort/evaluate", code("(progn (princ \"begun\") (finish-output) (loop))")).await;
    assert_eq!(client.event("output").await["output"], "begun");
    client.ask("cancel", json!({"requestId": runs})).await;
    assert_eq!(client.answer(runs).await["body"]["status"], "interrupted");
    client.ask("cancel", json!({"requestId": second})).await;
    assert_eq!(client.answer(second).await["body"]["status"], "interrupted");
    let evaluated = client.ask("evaluate", json!({"expression": "*first*"})).await;
    assert_eq!(evaluated["result"], ":THERE");
    abort(&mut client, &one).await;
    assert_eq!(client.answer(first).await["body"]["error"]["message"], "boom 1");
    // The client's own session is used again, as it was.
    let last = client.ask("consort/evaluate", code("(values * *first*)")).await;
    assert_eq!(last["values"], json!([{"value": "NIL"}, {"value": ":THERE"}]), "{last}");
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_console_completes_in_its_own_package_after_an_evaluation_beside_a_stop() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let first = client.send("consort/evaluate", code("(outer 1 2)")).await;
    let thread = stop(&mut client).await;
    let beside = client.ask("consort/evaluate", code("(progn (setf *package* (find-package :keyword)) 1)")).await;
    assert_eq!(beside["package"], "KEYWORD");
    abort(&mut client, &thread).await;
    client.answer(first).await;
    let answer = client.ask("consort/evaluate", code("*package*")).await;
    assert_eq!(answer["package"], "COMMON-LISP-USER", "{answer}");
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_debugger_that_leaves_with_several_stops_leaves_none() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, std::time::Duration::ZERO);
    client.begin().await;
    for number in 0..3 {
        client.send("consort/evaluate", code(&format!("(outer {number} 2)"))).await;
        stop(&mut client).await;
    }
    client.leave().await;
    fixture.runs(0).await;
    drop(session);
    fixture.close().await;
}

/// A person chooses a restart of the stop that was shown, while somebody else has it go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_is_of_the_stop_that_was_shown() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let evaluation = client.send("consort/evaluate", code("(list (outer 1 2) (outer 3 4))")).await;
    let thread = stop(&mut client).await;
    let shown = client.ask("consort/restarts", json!({"threadId": thread})).await["restarts"][0].clone();
    let invoke =
        json!({"threadId": thread, "stop": shown["stop"], "index": 0, "name": "USE-OTHER", "arguments": [":mine"]});
    client.ask("consort/invokeRestart", invoke.clone()).await;
    assert_eq!(stop(&mut client).await, thread);
    let refused = client.refused("consort/invokeRestart", invoke).await;
    assert!(refused.contains(&format!("no stop {}", shown["stop"])), "{refused}");
    let now = client.ask("consort/restarts", json!({"threadId": thread})).await["restarts"][0].clone();
    assert_ne!(now["stop"], shown["stop"]);
    let invoke = json!({"threadId": thread, "index": 0, "name": "USE-OTHER", "arguments": [":second"]});
    client.ask("consort/invokeRestart", invoke).await;
    let answer = client.answer(evaluation).await;
    assert_eq!(answer["body"]["values"][0]["value"], "(((:USED :MINE) 2) ((:USED :SECOND) 4))", "{answer}");
    client.leave().await;
    drop(session);
    fixture.close().await;
}
