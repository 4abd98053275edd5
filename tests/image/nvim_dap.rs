//! Two debug sessions of nvim-dap, which were recorded in a Neovim with the plugin: the messages
//! that it sent, and what it was answered, in this order. In the first one a form stops at
//! breakpoints, is stepped through and goes on to its end. In the second one a variable is set at
//! an error, the frame is restarted, and a loop is paused.
//!
//! A line of `nvim-dap/session.jsonl` is a message. A string `@7/a/0` stands for what the message
//! of line 7 has there, and `$FILE` for the program's file.

use consort_tests::patience::PATIENCE;
use serde_json::{Value, json};

use crate::dap::{Client, fixture};

const PROGRAM: &str = include_str!("nvim-dap/till.lisp");
const MESSAGES: &str = include_str!("nvim-dap/session.jsonl");

/// Returns the arguments of a request, with the values of the messages before it.
fn filled(arguments: &Value, file: &str, bodies: &[Value]) -> Value {
    match arguments {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), filled(value, file, bodies))).collect()
        }
        Value::Array(values) => values.iter().map(|value| filled(value, file, bodies)).collect(),
        Value::String(text) if text.starts_with('@') => {
            let (line, pointer) = text[1..].split_at(text.find('/').unwrap() - 1);
            let body = &bodies[line.parse::<usize>().unwrap() - 1];
            body.pointer(pointer).unwrap_or_else(|| panic!("{text}: {body}")).clone()
        }
        Value::String(text) => json!(text.replace("$FILE", file)),
        other => other.clone(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recorded_sessions_of_nvim_dap() {
    let (fixture, session) = fixture().await;
    let file = fixture.workspace.path().join("till.lisp");
    std::fs::write(&file, PROGRAM).unwrap();
    let file = file.display().to_string();
    fixture.eval(&format!("(load {file:?})")).await;
    let mut client: Option<(u64, Client)> = None;
    // What each message had in it, and the numbers of the requests.
    let (mut bodies, mut requests) = (Vec::<Value>::new(), Vec::<u64>::new());
    for (at, line) in MESSAGES.lines().enumerate() {
        let message: Value = serde_json::from_str(line).unwrap();
        let number = message["session"].as_u64().unwrap();
        if client.as_ref().is_none_or(|(current, _)| *current != number) {
            if let Some((_, before)) = client.take() {
                before.leave().await;
            }
            client = Some((number, Client::connect(&session, PATIENCE)));
        }
        let client = &mut client.as_mut().unwrap().1;
        let context = || format!("line {}: {line}", at + 1);
        requests.push(0);
        bodies.push(if let Some(command) = message["send"].as_str() {
            requests[at] = client.send(command, filled(&message["arguments"], &file, &bodies)).await;
            Value::Null
        } else if let Some(name) = message["event"].as_str() {
            let body = client.event(name).await;
            for (field, value) in message["body"].as_object().unwrap() {
                assert_eq!(&body[field], value, "{}: {body}", context());
            }
            body
        } else {
            let request = usize::try_from(message["answer"].as_u64().unwrap()).unwrap();
            let answer = client.answer(requests[request - 1]).await;
            assert_eq!(answer["success"], message["success"], "{}: {answer}", context());
            assert_eq!(
                message.get("message"),
                answer.get("message").filter(|_| message["success"] == false),
                "{}",
                context()
            );
            if let Some(result) = message.get("result") {
                assert_eq!(&answer["body"]["result"], result, "{}", context());
            }
            answer["body"].clone()
        });
    }
    // The last message is the answer to `disconnect`.
    drop(client);
    drop(session);
    fixture.close().await;
}
