//! Scenes of breakpoints, steps and frames over the Debug Adapter Protocol.

use consort_tests::patience::PATIENCE;
use consort_tests::scenes::{NAME, SCENES, TEXT, WAITING, place};
use consort_tests::stops::{FRAMES, REPLACED, RETURNS, UNPRINTABLE, WRONG};
use serde_json::{Value, json};

use crate::dap::{Client, fixture};

/// The next stop's thread, and the line and the column of its innermost frame; or the value.
async fn next(client: &mut Client, evaluation: u64) -> Result<(Value, (u64, u64)), Value> {
    let came = client.wait(|message| message["event"] == "stopped" || message["request_seq"] == evaluation).await;
    if came["event"] != "stopped" {
        return Err(came["body"]["result"].clone());
    }
    let thread = json!({"threadId": came["body"]["threadId"]});
    let top = client.ask("stackTrace", thread.clone()).await["stackFrames"][0].clone();
    Ok((thread, (top["line"].as_u64().unwrap(), top["column"].as_u64().unwrap())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn breakpoints_and_steps_in_many_places() {
    let (fixture, session) = fixture().await;
    let file = fixture.workspace.path().join(NAME);
    std::fs::write(&file, TEXT).unwrap();
    fixture.eval(&format!("(load (compile-file {:?}))", file.to_str().unwrap())).await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let points = |points: Value| json!({"source": {"path": file}, "breakpoints": points});
    for (part, definer) in WAITING {
        let (line, column) = place(part);
        let set = client.ask("setBreakpoints", points(json!([{"line": line, "column": column}]))).await;
        let message = set["breakpoints"][0]["message"].as_str().unwrap_or_default();
        assert!(message.contains(&format!("Evaluate this {definer} form")), "{part}: {set}");
    }
    for scene in SCENES {
        let (line, column) = place(scene.at);
        let set = client.ask("setBreakpoints", points(json!([{"line": line, "column": column}]))).await;
        assert_eq!(set["breakpoints"][0]["column"], column, "{scene:?}: {set}");
        let evaluation = client.send("evaluate", json!({"expression": scene.code, "context": "repl"})).await;
        let (mut thread, at) = next(&mut client, evaluation).await.expect("it stops");
        assert_eq!(at, (line as u64, column as u64), "{scene:?}");
        client.ask("setBreakpoints", points(json!([]))).await;
        for (how, begins) in scene.steps {
            let request = match *how {
                "into" => "stepIn",
                "out" => "stepOut",
                _ => "next",
            };
            client.ask(request, thread.clone()).await;
            let (line, column) = place(begins);
            let at;
            (thread, at) = next(&mut client, evaluation).await.unwrap_or_else(|value| panic!("{scene:?}: {value}"));
            assert_eq!(at, (line as u64, column as u64), "{begins} of {scene:?}");
        }
        client.ask("continue", thread).await;
        assert_eq!(next(&mut client, evaluation).await.expect_err("it ends"), scene.value, "{scene:?}");
    }
    client.leave().await;
    drop(session);
    fixture.close().await;
}

/// The stack of the next stop: its thread and the frames' numbers by their names.
async fn stack(client: &mut Client) -> (Value, impl Fn(&str) -> Value + use<>) {
    let thread = client.event("stopped").await["threadId"].clone();
    let frames = client.ask("stackTrace", json!({"threadId": thread})).await["stackFrames"].as_array().unwrap().clone();
    let frame = move |name: &str| {
        let found = frames.iter().find(|frame| frame["name"] == name);
        json!({"frameId": found.unwrap_or_else(|| panic!("{name} in {frames:?}"))["id"]})
    };
    (thread, frame)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_are_returned_from_and_restarted() {
    let (fixture, session) = fixture().await;
    fixture.eval(FRAMES).await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let top = json!({"expression": "(top 1)", "context": "repl"});
    for (name, code, value) in RETURNS {
        let evaluation = client.send("evaluate", top.clone()).await;
        let (_, frame) = stack(&mut client).await;
        let mut wanted = frame(name);
        // Code that fails, or that cannot be read, leaves the stop as it is.
        for (code, why) in WRONG {
            wanted["code"] = json!(code);
            assert!(client.refused("consort/return", wanted.clone()).await.contains(why));
        }
        wanted["code"] = json!(code);
        client.ask("consort/return", wanted).await;
        assert_eq!(client.answer(evaluation).await["body"]["result"], *value, "{name} {code}");
    }

    // A frame whose function, or method, was replaced meanwhile.
    for (code, definition, name, value) in REPLACED {
        let evaluation = client.send("evaluate", json!({"expression": code, "context": "repl"})).await;
        let (_, frame) = stack(&mut client).await;
        client.ask("evaluate", json!({"expression": definition, "context": "repl"})).await;
        client.ask("restartFrame", frame(name)).await;
        assert_eq!(client.answer(evaluation).await["body"]["result"], *value, "{code}");
    }

    // A local whose PRINT-OBJECT fails or does not end has its name and its class.
    let (definitions, code) = UNPRINTABLE;
    client.ask("evaluate", json!({"expression": definitions, "context": "repl"})).await;
    let evaluation = client.send("evaluate", json!({"expression": code, "context": "repl"})).await;
    let (thread, frame) = stack(&mut client).await;
    let scopes = client.ask("scopes", frame("top-level form")).await;
    let locals = json!({"variablesReference": scopes["scopes"][0]["variablesReference"]});
    let locals = client.ask("variables", locals).await["variables"].clone();
    assert_eq!((&locals[0]["name"], &locals[0]["value"]), (&json!("ODD"), &json!("#<ODD>")), "{locals}");
    let use_other = json!({"threadId": thread, "index": 0, "name": "USE-OTHER", "arguments": ["2"]});
    client.ask("consort/invokeRestart", use_other).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], "((:USED 2) NIL)");
    client.leave().await;
    drop(session);
    fixture.close().await;
}
