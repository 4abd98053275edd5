//! Threads that programs start, in an editor's debugger, with a real image.

use std::time::Duration;

use consort_tests::patience::PATIENCE;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::dap::{Client, fixture};
use crate::support::{kill, soon};

/// The time for which the stops of a client that has left wait, where they must not wait.
const NEVER: Duration = PATIENCE.saturating_mul(2);

/// The least number of a thread that a program started.
const FIRST: u64 = 1_000_000_001;

/// Starts threads that call `outer`, and waits for what comes of them.
const START: &str = "(progn
    (defvar *threads* (make-hash-table :test 'equal :synchronized t))
    (defun start (name x)
      (setf (gethash name *threads*) (sb-thread:make-thread (lambda () (list (outer x 7))) :name name))
      name)
    (defun result (name) (sb-thread:join-thread (gethash name *threads*) :default :ended)))";

async fn frames(client: &mut Client, thread: &Value) -> Vec<Value> {
    client.ask("stackTrace", json!({"threadId": thread})).await["stackFrames"].as_array().unwrap().clone()
}

/// The number of the frame of a function.
fn frame_of(frames: &[Value], name: &str) -> Value {
    frames.iter().find(|frame| frame["name"] == name).unwrap_or_else(|| panic!("no {name} in {frames:?}"))["id"].clone()
}

/// Waits for the stop of a thread that a program started; returns the thread's number.
async fn stopped(client: &mut Client, name: &str) -> Value {
    let named = format!("(in the thread {name}");
    let is_its = |message: &Value| {
        message["event"] == "stopped" && message["body"]["text"].as_str().is_some_and(|text| text.contains(&named))
    };
    let told = client.wait(is_its).await["body"].clone();
    assert!(told["threadId"].as_u64().unwrap() >= FIRST && told["ownEvaluation"] == false, "{told}");
    told["threadId"].clone()
}

async fn goes_on(client: &mut Client, thread: &Value) {
    client.wait(|message| message["event"] == "continued" && message["body"]["threadId"] == *thread).await;
}

async fn evaluated(client: &mut Client, code: &str) -> Value {
    client.ask("evaluate", json!({"expression": code})).await["result"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_that_programs_start_stop() {
    let (fixture, session) = fixture().await;
    fixture.eval(START).await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    assert_eq!(evaluated(&mut client, "(list (start \"one\" 1) (start \"two\" 2))").await, "(\"one\" \"two\")");
    let (one, two) = (stopped(&mut client, "one").await, stopped(&mut client, "two").await);
    assert_ne!(one, two);
    let threads = client.ask("threads", json!({})).await["threads"].clone();
    assert!(threads.as_array().unwrap().contains(&json!({"id": one, "name": "one (stopped)"})), "{threads}");

    // The console does not evaluate in a thread, and all others go on.
    assert_eq!(evaluated(&mut client, "(+ 1 2)").await, "3");
    assert_eq!(fixture.values("(+ 3 4)").await, ["7"]);
    let information = client.ask("exceptionInfo", json!({"threadId": one})).await;
    assert_eq!(information["details"], json!({"message": "boom 1", "typeName": "SIMPLE-ERROR"}));
    let shown = frames(&mut client, &one).await;
    let outer = frame_of(&shown, "OUTER");
    let product = json!({"expression": "(* 2 y)", "frameId": outer, "context": "watch"});
    assert_eq!(client.ask("evaluate", product).await["result"], "14");
    let scopes = client.ask("scopes", json!({"frameId": outer})).await["scopes"].clone();
    let locals = client.ask("variables", json!({"variablesReference": scopes[0]["variablesReference"]})).await;
    let locals = locals["variables"].as_array().unwrap();
    assert!(locals.iter().any(|local| local["name"] == "Y" && local["value"] == "7"), "{locals:?}");

    let restart = json!({"threadId": one, "index": 0, "name": "USE-OTHER", "arguments": ["(+ 40 2)"]});
    client.ask("consort/invokeRestart", restart).await;
    goes_on(&mut client, &one).await;
    assert_eq!(evaluated(&mut client, "(result \"one\")").await, "(((:USED 42) 7))");
    fixture.eval("(defun fails (x) (list :fixed x))").await;
    let shown = frames(&mut client, &two).await;
    client.ask("restartFrame", json!({"frameId": frame_of(&shown, "OUTER")})).await;
    goes_on(&mut client, &two).await;
    assert_eq!(evaluated(&mut client, "(result \"two\")").await, "(((:FIXED 2) 7))");
    client.refused("stackTrace", json!({"threadId": two})).await;
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_threads_of_a_debugger_that_vanishes_are_ended_after_a_while() {
    let (fixture, session) = fixture().await;
    fixture.eval(START).await;
    let mut client = Client::connect(&session, Duration::from_millis(10));
    client.begin().await;
    evaluated(&mut client, "(list (start \"one\" 1) (start \"two\" 2))").await;
    stopped(&mut client, "one").await;
    stopped(&mut client, "two").await;
    drop((client.read, client.write));
    soon(client.served).await.unwrap();
    assert_eq!(fixture.values("(list (result \"one\") (result \"two\"))").await, ["(:ENDED :ENDED)"]);
    // They do not wait for another debugger when the client asked for their end.
    for ends in [json!({"terminateDebuggee": true}), json!({"restart": false})] {
        let mut client = Client::connect(&session, NEVER);
        client.begin().await;
        evaluated(&mut client, "(start \"three\" 3)").await;
        let evaluation = client.send("evaluate", json!({"expression": "(outer 4 5)"})).await;
        stopped(&mut client, "three").await;
        client.wait(|message| message["body"]["ownEvaluation"] == true).await;
        if ends["terminateDebuggee"].is_null() {
            client.ask("terminate", json!({})).await;
        }
        client.ask("disconnect", ends).await;
        assert_eq!(client.answer(evaluation).await["success"], false);
        soon(client.served).await.unwrap();
        assert_eq!(fixture.values("(list (result \"three\"))").await, ["(:ENDED)"]);
    }
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stops_of_threads_end_with_the_image() {
    let (mut fixture, session) = fixture().await;
    let pid = fixture.ready().await;
    fixture.eval(START).await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    evaluated(&mut client, "(start \"one\" 1)").await;
    let one = stopped(&mut client, "one").await;
    kill(pid);
    goes_on(&mut client, &one).await;
    fixture.ready().await;
    // The new image numbers its stops and threads anew.
    let code = "(progn (sb-thread:make-thread (lambda () (break \"again\")) :name \"anew\") :begun)";
    assert_eq!(evaluated(&mut client, code).await, ":BEGUN");
    let again = stopped(&mut client, "anew").await;
    assert_eq!(again, one);
    client.ask("continue", json!({"threadId": again})).await;
    goes_on(&mut client, &again).await;
    client.leave().await;
    drop(session);
    fixture.close().await;
}

/// A server's handler fails, its thread stops, the function is replaced, the frame is restarted,
/// and the client of the server is answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fix_and_continue_in_a_server() {
    const SERVER: &str = "(progn
        (setf hunchentoot:*catch-errors-p* nil)
        (defun price () (error \"No price.\"))
        (defun page () (format nil \"The price is ~D.\" (price)))
        (hunchentoot:define-easy-handler (shop :uri \"/shop\") () (values (page)))
        (defvar *server* (hunchentoot:start (make-instance 'hunchentoot:easy-acceptor
          :address \"127.0.0.1\" :port 0 :access-log-destination nil :message-log-destination nil)))
        (hunchentoot:acceptor-port *server*))";
    let (fixture, session) = fixture().await;
    assert_eq!(fixture.values("(progn (asdf:load-system :hunchentoot) :loaded)").await, [":LOADED"]);
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let port: u16 = evaluated(&mut client, SERVER).await.as_str().unwrap().parse().unwrap();
    let mut page = soon(TcpStream::connect(("127.0.0.1", port))).await.unwrap();
    soon(page.write_all(b"GET /shop HTTP/1.0\r\n\r\n")).await.unwrap();
    let worker = stopped(&mut client, "hunchentoot-worker").await;
    assert_eq!(evaluated(&mut client, "(defun price () 42)").await, "PRICE");
    let shown = frames(&mut client, &worker).await;
    client.ask("restartFrame", json!({"frameId": frame_of(&shown, "PAGE")})).await;
    let mut answer = String::new();
    soon(page.read_to_string(&mut answer)).await.unwrap();
    let status = answer.lines().next().unwrap_or_default();
    assert!(status.contains(" 200 ") && answer.ends_with("The price is 42."), "{answer}");
    evaluated(&mut client, "(hunchentoot:stop *server*)").await;
    client.leave().await;
    drop(session);
    fixture.close().await;
}
