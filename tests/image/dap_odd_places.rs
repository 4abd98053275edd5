//! Stops in odd places over the Debug Adapter Protocol: while a form is read, in a macro, beside
//! inlined code, in a cleanup form; and what is reported without a stop.

use consort_tests::patience::PATIENCE;
use consort_tests::stops::{FULL, ODD, STOPS};
use serde_json::json;

use crate::dap::{Client, fixture};

/// The hints of a frame by its name: the frame's own, and that of its source.
type Hints = (&'static str, Option<&'static str>, Option<&'static str>);

/// Code with functions of SBCL between the program's.
const OWN_FRAMES: &[(&str, &[Hints])] = &[
    (
        "(list (funcall 'reduce (lambda (a b) (list (fails a) b)) (list 1 2)))",
        &[("FAILS", None, None), ("(LAMBDA (A B))", None, None), ("REDUCE", None, Some("deemphasize"))],
    ),
    (
        "(list (funcall 'sort (list 3 1) (lambda (a b) (not (fails (list a b))))))",
        &[("(LAMBDA (A B))", None, None), ("SB-IMPL::STABLE-SORT-LIST", Some("subtle"), Some("deemphasize"))],
    ),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stops_in_odd_places() {
    let (fixture, session) = fixture().await;
    fixture.eval(ODD).await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    for (code, frame, value) in STOPS {
        let evaluation = client.send("evaluate", json!({"expression": code, "context": "repl"})).await;
        let thread = client.event("stopped").await["threadId"].clone();
        let frames = client.ask("stackTrace", json!({"threadId": thread})).await["stackFrames"].clone();
        assert!(frames.as_array().unwrap().iter().any(|each| each["name"] == *frame), "{code}: {frames}");
        let use_other = json!({"threadId": thread, "index": 0, "name": "USE-OTHER", "arguments": ["2"]});
        client.ask("consort/invokeRestart", use_other).await;
        assert_eq!(client.answer(evaluation).await["body"]["result"], *value, "{code}");
    }

    // SBCL's own frames are de-emphasized, with their sources: a client goes to the program's.
    for (code, expected) in OWN_FRAMES {
        let evaluation = client.send("evaluate", json!({"expression": code, "context": "repl"})).await;
        let thread = client.event("stopped").await["threadId"].clone();
        let frames = client.ask("stackTrace", json!({"threadId": thread})).await["stackFrames"].clone();
        for (name, hint, source_hint) in *expected {
            let frame = frames.as_array().unwrap().iter().find(|frame| frame["name"] == *name);
            let frame = frame.unwrap_or_else(|| panic!("{code}: {name} in {frames}"));
            let found = (frame["presentationHint"].as_str(), frame["source"]["presentationHint"].as_str());
            assert_eq!(found, (*hint, *source_hint), "{code}: {frame}");
        }
        client.ask("terminateThreads", json!({"threadIds": [thread]})).await;
        assert_eq!(client.answer(evaluation).await["success"], false);
    }

    // The error of a watched expression is its answer, and the stop stays.
    let evaluation = client.send("evaluate", json!({"expression": "(outer 1 2)", "context": "repl"})).await;
    let thread = client.event("stopped").await["threadId"].clone();
    let frames = client.ask("stackTrace", json!({"threadId": thread})).await["stackFrames"].clone();
    let code = json!({"expression": "(list (fails 5))", "frameId": frames[1]["id"], "context": "watch"});
    assert_eq!(client.refused("evaluate", code).await, "SIMPLE-ERROR: boom 5");
    let use_other = |thread: &serde_json::Value, value: &str| json!({"threadId": thread, "index": 0, "name": "USE-OTHER", "arguments": [value]});
    client.ask("consort/invokeRestart", use_other(&thread, "4")).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], "((:USED 4) 2)");

    // A program that waits is paused.
    let code = "(list (break) (sleep 1000))";
    let evaluation = client.send("evaluate", json!({"expression": code, "context": "repl"})).await;
    let thread = json!({"threadId": client.event("stopped").await["threadId"]});
    client.ask("continue", thread.clone()).await;
    client.ask("pause", thread.clone()).await;
    assert_eq!(client.event("stopped").await["reason"], "pause");
    client.ask("terminateThreads", json!({"threadIds": [thread["threadId"]]})).await;
    assert!(client.answer(evaluation).await["message"].as_str().unwrap().starts_with("INTERRUPTED"));

    // A full stack and a full heap are reported, and what comes next stops as ever.
    for (code, why) in FULL {
        let message = client.refused("evaluate", json!({"expression": code, "context": "repl"})).await;
        assert!(message.to_uppercase().contains(why), "{code}: {message}");
    }
    let evaluation = client.send("evaluate", json!({"expression": "(fails 1)", "context": "repl"})).await;
    let thread = client.event("stopped").await["threadId"].clone();
    client.ask("consort/invokeRestart", use_other(&thread, "5")).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], "(:USED 5)");
    client.leave().await;
    drop(session);
    fixture.close().await;
}
