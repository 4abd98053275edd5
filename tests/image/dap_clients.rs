//! The requests of nvim-dap and of dape, in the order and with the arguments in which their sources
//! send them, with a real image. Each answer has the fields that these clients read.

use consort::session::recordings::RecordRequest;
use consort::session::{ClientInfo, Frontend};
use consort_tests::patience::{AMPLE, PATIENCE, comes};
use serde_json::{Value, json};

use crate::dap::{Client, fixture};

/// Looks at a stop as a client does that focuses it; returns the frames.
async fn looked_at(client: &mut Client, thread: &Value, frames: Value) -> Vec<Value> {
    let threads = client.ask("threads", Value::Null).await["threads"].clone();
    assert!(threads.as_array().unwrap().iter().any(|one| one["id"] == *thread && one["name"].is_string()), "{threads}");
    let frames = client.ask("stackTrace", frames).await["stackFrames"].as_array().unwrap().clone();
    for frame in &frames {
        assert!(frame["name"].is_string() && frame["line"].is_u64() && frame["column"].is_u64(), "{frame}");
    }
    let scopes = client.ask("scopes", json!({"frameId": frames[0]["id"]})).await["scopes"].clone();
    for scope in scopes.as_array().unwrap() {
        let reference = json!({"variablesReference": scope["variablesReference"]});
        for variable in client.ask("variables", reference).await["variables"].as_array().unwrap() {
            // A missing number would be taken for parts.
            let is_whole = variable["name"].is_string() && variable["value"].is_string();
            assert!(is_whole && variable["variablesReference"].is_u64(), "{variable}");
        }
    }
    frames
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requests_of_nvim_dap() {
    let (fixture, session) = fixture().await;
    let file = fixture.workspace.path().join("shop.lisp");
    std::fs::write(&file, "(defun price (n)\n  (list (* n 2)))\n").unwrap();
    fixture.eval(&format!("(load {:?})", file.display().to_string())).await;
    let mut client = Client::connect(&session, PATIENCE);
    let own = json!({
        "clientID": "neovim", "clientName": "neovim", "adapterID": "nvim-dap", "pathFormat": "path",
        "columnsStartAt1": true, "linesStartAt1": true, "supportsRunInTerminalRequest": true, "supportsVariableType": true,
        "supportsProgressReporting": true, "supportsStartDebuggingRequest": true, "locale": "en_US.UTF-8",
    });
    let capabilities = client.ask("initialize", own).await;
    // The whole configuration is sent.
    let config = json!({"type": "consort", "request": "attach", "name": "Lisp: attach to the image"});
    client.ask("attach", config).await;
    client.event("initialized").await;
    let points = |path: Value, line: u64| json!({"source": {"path": path, "name": "shop.lisp"}, "sourceModified": false, "breakpoints": [{"line": line}], "lines": [line]});
    let set = client.ask("setBreakpoints", points(json!(file), 2)).await["breakpoints"].clone();
    assert_eq!((&set[0]["verified"], &set[0]["line"]), (&json!(true), &json!(2)));
    // A function breakpoint stays when one is set in a buffer without a name.
    let named = json!({"breakpoints": [{"name": "cl-user::price"}]});
    assert_eq!(client.ask("setFunctionBreakpoints", named.clone()).await["breakpoints"][0]["verified"], true);
    let unset = client.ask("setBreakpoints", points(json!(""), 1)).await["breakpoints"].clone();
    assert_eq!(unset, json!([{"verified": false, "message": "There are breakpoints only in files."}]));
    assert!(capabilities["exceptionBreakpointFilters"].is_array());
    client.ask("setExceptionBreakpoints", json!({"filters": []})).await;
    client.ask("configurationDone", Value::Null).await;
    let idle = client.event("thread").await["threadId"].clone();
    assert_eq!(client.refused("pause", json!({"threadId": idle})).await, "Nothing runs that could be paused.");

    let in_console = |code: &str| json!({"expression": code, "context": "repl"});
    // The client asks for the threads at a stop only, and so knows the idle one alone.
    let evaluation = client.send("evaluate", in_console("(loop (sleep 0.01))")).await;
    comes("the pause of the console's evaluation", async || {
        let seq = client.send("pause", json!({"threadId": idle})).await;
        (client.answer(seq).await["success"] == true).then_some(())
    })
    .await;
    let stopped = client.event("stopped").await;
    assert_eq!((&stopped["reason"], &stopped["ownEvaluation"]), (&json!("pause"), &json!(true)));
    client.ask("terminateThreads", json!({"threadIds": [stopped["threadId"]]})).await;
    assert_eq!(client.answer(evaluation).await["success"], false);
    // The client shows a value with a reference once it has got a variable of it.
    let empty = client.ask("evaluate", in_console("(make-hash-table)")).await["variablesReference"].clone();
    let parts = client.ask("variables", json!({"variablesReference": empty})).await;
    assert_eq!(parts["variables"], json!([{"name": "(empty)", "value": "", "variablesReference": 0}]));
    let evaluation = client.send("evaluate", in_console("(price 4)")).await;
    let stopped = client.event("stopped").await;
    assert_eq!(stopped["hitBreakpointIds"].as_array().unwrap().len(), 2, "{stopped}");
    let thread = stopped["threadId"].clone();
    let frames = looked_at(&mut client, &thread, json!({"threadId": thread, "startFrame": 0})).await;
    assert_eq!((&frames[0]["source"]["path"], &frames[0]["line"]), (&json!(file), &json!(2)));
    let typed = json!({"expression": "n", "context": "repl", "frameId": frames[0]["id"]});
    assert_eq!(client.ask("evaluate", typed).await, json!({"result": "4", "variablesReference": 0}));
    let wanted = json!({"frameId": frames[0]["id"], "text": "(list n", "column": 8});
    assert_eq!(client.ask("completions", wanted).await["targets"][0]["label"], "n");
    client.ask("next", json!({"threadId": thread, "granularity": "statement"})).await;
    assert_eq!(client.event("stopped").await["reason"], "step");
    client.ask("continue", json!({"threadId": thread, "granularity": "statement"})).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], "(8)");

    // A way on that is refused: the client asks whether the thread is stopped still.
    let evaluation = client.send("evaluate", in_console("(outer 1 2)")).await;
    let thread = client.event("stopped").await["threadId"].clone();
    let error = client.ask("exceptionInfo", json!({"threadId": thread})).await;
    assert!(error["breakMode"].is_string() && error["description"].is_string(), "{error}");
    assert_eq!(error["details"]["typeName"], "SIMPLE-ERROR");
    looked_at(&mut client, &thread, json!({"threadId": thread, "startFrame": 0})).await;
    client.refused("continue", json!({"threadId": thread, "granularity": "statement"})).await;
    client.ask("consort/restarts", json!({"threadId": thread})).await;
    client.ask("terminate", json!({})).await;
    assert_eq!(client.answer(evaluation).await["success"], false);
    client.event("terminated").await;
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requests_of_dape() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    let own = json!({"clientID": "dape", "adapterID": "consort", "pathFormat": "path", "linesStartAt1": true,
        "columnsStartAt1": true, "locale": "en-US", "supportsRunInTerminalRequest": true,
        "supportsStartDebuggingRequest": true});
    let capabilities = client.ask("initialize", own.clone()).await;
    client.event("initialized").await;
    client.ask("attach", json!({"type": "consort", "request": "attach"})).await;
    client.ask("setExceptionBreakpoints", json!({"filters": []})).await;
    // After an error it would not go on: a text that no file has is known by its reference.
    let in_text = json!({"source": {"sourceReference": 3}, "breakpoints": [{"line": 1}], "lines": [1]});
    assert_eq!(client.ask("setBreakpoints", in_text).await["breakpoints"][0]["verified"], false);
    client.ask("configurationDone", Value::Null).await;
    let evaluation = client.send("evaluate", json!({"expression": "(outer 1 2)", "context": "repl"})).await;
    let stopped = client.event("stopped").await;
    assert!(stopped["text"].is_string() && stopped["description"].is_string(), "{stopped}");
    let thread = stopped["threadId"].clone();
    let page = |from: u64, count: u64| json!({"threadId": thread, "startFrame": from, "levels": count});
    let mut frames = looked_at(&mut client, &thread, page(0, 1)).await;
    let rest = client.ask("stackTrace", page(1, 19)).await;
    frames.extend(rest["stackFrames"].as_array().unwrap().clone());
    assert_eq!((json!(frames.len()), &frames[1]["name"]), (rest["totalFrames"].clone(), &json!("OUTER")));
    let scopes = client.ask("scopes", json!({"frameId": frames[1]["id"]})).await["scopes"].clone();
    let set = json!({"variablesReference": scopes[0]["variablesReference"], "name": "Y", "value": "8"});
    // What is answered replaces the fields of the variable.
    assert!(client.ask("setVariable", set).await["value"].is_string());
    client.ask("terminate", Value::Null).await;
    assert_eq!(client.answer(evaluation).await["success"], false);
    client.leave().await;

    // An event with capabilities is taken for all that there are.
    let (asking, _feedback) = session.attach(ClientInfo { frontend: Frontend::Cli, name: "test".into() });
    let request = RecordRequest { code: "(list 1 (+ 2 3))".into(), timeout: Some(AMPLE), ..RecordRequest::default() };
    let (recording, _) = session.record(asking, request).await.unwrap();
    session.detach(asking);
    let mut client = Client::connect(&session, PATIENCE);
    client.ask("initialize", own).await;
    client.ask("attach", json!({"type": "consort", "request": "attach", "recording": recording.number})).await;
    let now = client.event("capabilities").await["capabilities"].clone();
    let missing: Vec<_> =
        capabilities.as_object().unwrap().keys().filter(|name| now[name.as_str()].is_null()).collect();
    assert_eq!(missing, Vec::<&String>::new());
    client.leave().await;
    drop(session);
    fixture.close().await;
}
