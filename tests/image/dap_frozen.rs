//! A frozen failure in an editor's debugger, with a real image.

use consort::session::{ClientInfo, EvalRequest, Frontend, Session};
use consort_tests::patience::PATIENCE;
use serde_json::{Value, json};

use crate::dap::{Client, fixture};
use crate::support::soon;

/// Evaluates code that fails, as an agent does, until its failure is frozen; returns the number. A
/// busy machine may not let the image be copied at once.
async fn frozen(session: &Session, code: &str) -> u64 {
    let (client, _feedback) = session.attach(ClientInfo { frontend: Frontend::Cli, name: "agent".into() });
    let again = async {
        loop {
            let request = EvalRequest { code: code.into(), capture_time: true, ..EvalRequest::default() };
            let outcome = session.evaluate(client, request).await.unwrap();
            if let Some(frozen) = outcome.frozen.filter(|frozen| frozen.number > 0) {
                return frozen.number;
            }
        }
    };
    let number = soon(again).await;
    session.detach(client);
    number
}

async fn attached(session: &Session, failure: u64) -> Client {
    let mut client = Client::connect(session, PATIENCE);
    client.ask("initialize", json!({"adapterID": "consort", "linesStartAt1": true})).await;
    client.event("initialized").await;
    client.ask("attach", json!({"failure": failure})).await;
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_failure_in_an_editors_debugger() {
    let (fixture, session) = fixture().await;
    let failure = frozen(&session, "(outer '(1 2) 7)").await;
    fixture.eval("(defun outer (x y) (list :redefined x y))").await;
    let mut client = attached(&session, failure).await;
    let unset =
        client.ask("setBreakpoints", json!({"source": {"path": "/x.lisp"}, "breakpoints": [{"line": 1}]})).await;
    assert_eq!(unset["breakpoints"][0]["verified"], false, "{unset}");
    client.ask("configurationDone", Value::Null).await;
    let stopped = client.event("stopped").await;
    assert_eq!((&stopped["reason"], &stopped["text"]), (&json!("exception"), &json!("SIMPLE-ERROR: boom (1 2)")));
    let threads = client.ask("threads", json!({})).await["threads"].clone();
    let thread = stopped["threadId"].clone();
    assert!(threads.as_array().unwrap().len() == 1 && threads[0]["id"] == thread, "{threads}");
    let told = client.ask("exceptionInfo", json!({"threadId": thread})).await;
    assert!(told["description"].as_str().unwrap().contains("0: [USE-OTHER] Use another."), "{told}");

    let frames = client.ask("stackTrace", json!({"threadId": thread})).await["stackFrames"].clone();
    assert_eq!((&frames[0]["name"], &frames[1]["name"]), (&json!("FAILS"), &json!("OUTER")), "{frames}");
    let scopes = client.ask("scopes", json!({"frameId": frames[1]["id"]})).await["scopes"].clone();
    let inside = async |client: &mut Client, scope: usize| {
        let reference = json!({"variablesReference": scopes[scope]["variablesReference"]});
        client.ask("variables", reference).await["variables"].clone()
    };
    let locals = inside(&mut client, 0).await;
    let local = locals.as_array().unwrap().iter().find(|local| local["name"] == "X").unwrap();
    assert_eq!((&local["value"], &local["variablesReference"]), (&json!("(1 2)"), &json!(0)));
    assert_eq!(inside(&mut client, 1).await[0]["value"], "Use another.");
    let seen = json!({"expression": "(progn (princ \"seen\") (* 2 y))", "frameId": frames[1]["id"]});
    assert_eq!(client.ask("evaluate", seen).await["result"], "14");
    assert_eq!(client.event("output").await["output"], "seen");
    let hovered = json!({"expression": "y", "frameId": frames[1]["id"], "context": "hover"});
    assert_eq!(client.ask("evaluate", hovered).await["result"], "7");
    let wrong = client.refused("evaluate", json!({"expression": "(car 1)", "frameId": frames[1]["id"]})).await;
    assert!(wrong.contains("TYPE-ERROR"), "{wrong}");

    // The result that would have come, as often as it is asked for.
    let restarts = client.ask("consort/restarts", json!({"threadId": thread})).await["restarts"].clone();
    assert_eq!(restarts[0]["name"], "USE-OTHER");
    for value in ["42", "43"] {
        let invoked = json!({"threadId": thread, "index": 0, "name": "USE-OTHER", "arguments": [value]});
        let tried = client.ask("consort/invokeRestart", invoked).await["tried"].clone();
        let told = tried["result"].as_str().unwrap();
        assert!(told.ends_with(&format!("=> ((:USED {value}) 7)")) && tried["failed"] == false, "{tried}");
        let shown = client.event("output").await;
        assert!(shown["output"].as_str().unwrap().contains("Tried in a copy"), "{shown}");
    }
    let back = json!({"frameId": frames[1]["id"], "code": ":mine"});
    assert!(client.ask("consort/return", back).await["tried"]["result"].as_str().unwrap().ends_with("=> :MINE"));
    for request in ["continue", "next", "pause", "consort/evaluate"] {
        let why = client.refused(request, json!({"threadId": thread, "code": "1"})).await;
        assert!(why.contains("the program itself has continued"), "{why}");
    }
    client.leave().await;

    // The failure is left as it is; one that is gone is refused.
    let kept: Vec<u64> = session.failures().iter().map(|one| one.number).collect();
    assert_eq!(kept, [failure]);
    let mut client = Client::connect(&session, PATIENCE);
    client.ask("initialize", json!({})).await;
    let why = client.refused("attach", json!({"failure": failure + 1})).await;
    assert!(why.contains("no frozen failure"), "{why}");
    client.leave().await;
    drop(session);
    fixture.close().await;
}
