//! The Debug Adapter Protocol, with a real image.

use std::collections::VecDeque;
use std::time::Duration;

use consort::config::Config;
use consort::dap;
use consort::model::stop::StopEvent;
use consort::session::Session;
use consort_tests::framing::{Framing, framed};
use consort_tests::patience::PATIENCE;
use consort_tests::stops::FAILS;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

use crate::support::{Fixture, params, soon};

/// A client that is connected.
pub(crate) struct Client {
    pub(crate) read: BufReader<ReadHalf<DuplexStream>>,
    pub(crate) write: WriteHalf<DuplexStream>,
    seq: u64,
    /// Messages that nobody has asked for yet.
    waiting: Unread,
    pub(crate) served: JoinHandle<()>,
}

/// The messages that nothing has waited for yet, which a test that fails prints.
#[derive(Default)]
struct Unread(VecDeque<Value>);

impl Drop for Unread {
    #[allow(clippy::print_stderr)] // with what else a test that fails says
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.iter().for_each(|message| eprintln!("unread message of the adapter: {message}"));
        }
    }
}

impl Client {
    pub(crate) fn connect(session: &Session, abandoned: Duration) -> Client {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (their_read, their_write) = tokio::io::split(theirs);
        let served = tokio::spawn(dap::serve(session.clone(), their_read, their_write, abandoned));
        let (read, write) = tokio::io::split(ours);
        Client { read: BufReader::new(read), write, seq: 0, waiting: Unread::default(), served }
    }

    pub(crate) async fn send(&mut self, command: &str, arguments: Value) -> u64 {
        self.seq += 1;
        let body = json!({"seq": self.seq, "type": "request", "command": command, "arguments": arguments}).to_string();
        soon(self.write.write_all(&framed(&body, Framing::Headers))).await.unwrap();
        self.seq
    }

    async fn receive(&mut self) -> Value {
        let mut header = String::new();
        let mut length = 0;
        loop {
            header.clear();
            assert!(soon(self.read.read_line(&mut header)).await.unwrap() > 0, "the adapter has ended");
            match header.trim_end().strip_prefix("Content-Length: ") {
                Some(number) => length = number.parse().unwrap(),
                None => break,
            }
        }
        let mut body = vec![0; length];
        soon(self.read.read_exact(&mut body)).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// The first message, in the order of arrival, that is wanted.
    pub(crate) async fn wait(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.waiting.0.iter().position(&wanted) {
            return self.waiting.0.remove(at).unwrap();
        }
        loop {
            let message = self.receive().await;
            if wanted(&message) {
                return message;
            }
            self.waiting.0.push_back(message);
        }
    }

    pub(crate) async fn event(&mut self, name: &str) -> Value {
        self.wait(|message| message["event"] == name).await["body"].clone()
    }

    /// The next event of any name, whole.
    pub(crate) async fn next_event(&mut self) -> Value {
        self.wait(|message| message["type"] == "event").await
    }

    pub(crate) async fn answer(&mut self, seq: u64) -> Value {
        self.wait(|message| message["type"] == "response" && message["request_seq"] == seq).await
    }

    /// The answer to a request that must work.
    pub(crate) async fn ask(&mut self, command: &str, arguments: Value) -> Value {
        let seq = self.send(command, arguments).await;
        let answer = self.answer(seq).await;
        assert_eq!(answer["success"], true, "{command}: {answer}");
        answer["body"].clone()
    }

    /// The message of a request that must fail.
    pub(crate) async fn refused(&mut self, command: &str, arguments: Value) -> String {
        let seq = self.send(command, arguments).await;
        let answer = self.answer(seq).await;
        assert_eq!(answer["success"], false, "{command}: {answer}");
        answer["message"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn begin(&mut self) {
        let capabilities = self.ask("initialize", json!({"adapterID": "consort", "linesStartAt1": true})).await;
        assert_eq!(capabilities["supportsRestartFrame"], true);
        self.event("initialized").await;
        self.ask("attach", json!({})).await;
        self.ask("configurationDone", Value::Null).await;
    }

    /// Disconnects, and waits for what the adapter does after that.
    pub(crate) async fn leave(mut self) {
        self.ask("disconnect", json!({})).await;
        soon(self.served).await.unwrap();
    }
}

/// An image with a session.
pub(crate) async fn fixture() -> (Fixture, Session) {
    let mut fixture = Fixture::new();
    fixture.ready().await;
    fixture.eval(FAILS).await;
    let (_, none) = tokio::sync::mpsc::unbounded_channel();
    let events = std::mem::replace(&mut fixture.events, none);
    let workspace = fixture.workspace.path().to_path_buf();
    let session = Session::start(Config::default(), workspace, fixture.image.clone(), events);
    (fixture, session)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_in_an_editors_debugger() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    // Some clients evaluate only where there is a thread.
    let idle = client.event("thread").await;
    assert_eq!(idle["reason"], "started");
    let threads = client.ask("threads", json!({})).await;
    assert_eq!(threads["threads"], json!([{"id": idle["threadId"], "name": "console"}]));
    let code = "(let ((k (list 1 2 3)))\n  (list (outer k 7) k))";
    let evaluation = client.send("evaluate", json!({"expression": code, "context": "repl"})).await;
    let stopped = client.event("stopped").await;
    assert_eq!((&stopped["reason"], &stopped["text"]), (&json!("exception"), &json!("SIMPLE-ERROR: boom (1 2 3)")));
    let thread = stopped["threadId"].clone();
    let threads = client.ask("threads", json!({})).await;
    assert!(threads["threads"].as_array().unwrap().iter().any(|each| each["id"] == thread), "{threads}");

    let frames =
        client.ask("stackTrace", json!({"threadId": thread, "startFrame": 0, "levels": 20})).await["stackFrames"]
            .clone();
    let names: Vec<_> = frames.as_array().unwrap().iter().map(|frame| frame["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["FAILS", "OUTER", "top-level form"]);
    let place: Vec<_> =
        ["line", "column", "endLine", "endColumn"].iter().map(|key| frames[2][key].as_u64().unwrap()).collect();
    assert_eq!(place, [2, 9, 2, 20]);
    let source = client.ask("source", json!({"sourceReference": frames[2]["source"]["sourceReference"]})).await;
    assert_eq!(source["content"], code);

    let scopes = client.ask("scopes", json!({"frameId": frames[2]["id"]})).await["scopes"].clone();
    let locals =
        client.ask("variables", json!({"variablesReference": scopes[0]["variablesReference"]})).await["variables"]
            .clone();
    assert_eq!((&locals[0]["name"], &locals[0]["value"]), (&json!("K"), &json!("(1 2 3)")));
    let parts =
        client.ask("variables", json!({"variablesReference": locals[0]["variablesReference"]})).await["variables"]
            .clone();
    assert_eq!((parts.as_array().unwrap().len(), &parts[2]["value"]), (3, &json!("3")));
    let restarts =
        client.ask("variables", json!({"variablesReference": scopes[1]["variablesReference"]})).await["variables"]
            .clone();
    assert_eq!(restarts[0], json!({"name": "0: USE-OTHER", "value": "Use another.", "variablesReference": 0}));

    let evaluated =
        client.ask("evaluate", json!({"expression": "(* 2 y)", "frameId": frames[1]["id"], "context": "watch"})).await;
    assert_eq!(evaluated["result"], "14");
    let hovered =
        client.ask("evaluate", json!({"expression": "y", "frameId": frames[1]["id"], "context": "hover"})).await;
    assert_eq!(hovered["result"], "7");
    client
        .refused("evaluate", json!({"expression": "(setf y 8)", "frameId": frames[1]["id"], "context": "hover"}))
        .await;
    let message = client.refused("evaluate", json!({"expression": "no-such-thing", "frameId": frames[1]["id"]})).await;
    assert!(message.starts_with("UNBOUND-VARIABLE"), "{message}");

    let information = client.ask("exceptionInfo", json!({"threadId": thread})).await;
    assert!(information["description"].as_str().unwrap().contains("0: [USE-OTHER] Use another."), "{information}");
    let refused = client.refused("continue", json!({"threadId": thread})).await;
    assert!(refused.contains("CONTINUE"), "{refused}");
    let listed = client.ask("consort/restarts", json!({"threadId": thread})).await;
    assert_eq!(listed["restarts"][0]["name"], "USE-OTHER");
    client
        .ask(
            "consort/invokeRestart",
            json!({"threadId": thread, "index": 0, "name": "USE-OTHER", "arguments": ["(+ 40 2)"]}),
        )
        .await;
    assert_eq!(client.event("continued").await["threadId"], thread);
    assert_eq!(client.answer(evaluation).await["body"]["result"], "(((:USED 42) 7) (1 2 3))");
    client.refused("stackTrace", json!({"threadId": thread})).await;
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pause_continue_and_fix() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let looping = client
        .send(
            "evaluate",
            json!({"expression": "(let ((n 0)) (loop (incf n) (when (eql *go* n) (return :went)) (setf n 0)))"}),
        )
        .await;
    let stopped = client.event("stopped").await; // *GO* is unbound
    let thread = stopped["threadId"].clone();
    soon(fixture.image.eval(params("other", "(defvar cl-user::*go* nil)", 60.0), None)).await.unwrap();
    client.ask("continue", json!({"threadId": thread})).await;
    client.event("continued").await;
    client.ask("pause", json!({"threadId": thread})).await;
    assert_eq!(client.event("stopped").await["reason"], "pause");
    soon(fixture.image.eval(params("other", "(setf cl-user::*go* 1)", 60.0), None)).await.unwrap();
    client.ask("continue", json!({"threadId": thread})).await;
    assert_eq!(client.answer(looping).await["body"]["result"], ":WENT");

    let fixed = client.send("evaluate", json!({"expression": "(outer 5 6)"})).await;
    let thread = client.event("stopped").await["threadId"].clone();
    soon(fixture.image.eval(params("other", "(defun cl-user::fails (x) (list :fixed x))", 60.0), None)).await.unwrap();
    let frames = client.ask("stackTrace", json!({"threadId": thread})).await["stackFrames"].clone();
    assert_eq!((&frames[1]["name"], &frames[1]["canRestart"]), (&json!("OUTER"), &json!(true)));
    client.ask("restartFrame", json!({"frameId": frames[1]["id"]})).await;
    assert_eq!(client.answer(fixed).await["body"]["result"], "((:FIXED 5) 6)");
    client.leave().await;
    drop(session);
    fixture.close().await;
}

/// The next event of one of these names.
async fn next_of(client: &mut Client, names: &[&str]) -> Value {
    client.wait(|message| message["event"].as_str().is_some_and(|name| names.contains(&name))).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_printed_before_a_stop_or_the_end_is_shown_before_it() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let code = "(list (progn (format t \"before~%\") (fails 1)))";
    let evaluation = client.send("evaluate", json!({"expression": code})).await;
    let first = next_of(&mut client, &["output", "stopped"]).await;
    assert_eq!((&first["event"], &first["body"]["output"]), (&json!("output"), &json!("before\n")));
    let thread = client.event("stopped").await["threadId"].clone();
    let use_other = json!({"threadId": thread, "index": 0, "name": "USE-OTHER", "arguments": ["2"]});
    client.ask("consort/invokeRestart", use_other).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], "((:USED 2))");

    let code = "(unwind-protect (progn (format t \"begun~%\") (loop (sleep 0.01))) (format t \"cleanup~%\"))";
    let evaluation = client.send("evaluate", json!({"expression": code})).await;
    // An evaluation counts as running while its form is compiled.
    assert_eq!(client.event("output").await["output"], "begun\n");
    let ended = client.send("terminate", json!({})).await;
    let first = next_of(&mut client, &["output", "terminated"]).await;
    assert_eq!((&first["event"], &first["body"]["output"]), (&json!("output"), &json!("cleanup\n")));
    client.event("terminated").await;
    assert_eq!(
        (client.answer(ended).await["success"].clone(), client.answer(evaluation).await["success"].clone()),
        (json!(true), json!(false))
    );
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_that_follows_at_once_is_told_after_the_answer() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let done = client.send("evaluate", json!({"expression": "(dotimes (n 60 :done) (break))"})).await;
    for round in 0..60 {
        let thread = client.event("stopped").await["threadId"].clone();
        client.ask("continue", json!({"threadId": thread})).await;
        // A client takes the thread for running now.
        let early = client.waiting.0.iter().find(|message| message["event"] == "stopped");
        assert_eq!(early, None, "round {round}");
    }
    assert_eq!(client.answer(done).await["body"]["result"], ":DONE");
    client.leave().await;
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stops_of_a_debugger_that_vanishes_are_aborted_after_a_while() {
    let (fixture, session) = fixture().await;
    let mut client = Client::connect(&session, Duration::from_millis(10));
    client.begin().await;
    client.send("evaluate", json!({"expression": "(unwind-protect (outer 5 6) (defvar cl-user::*left* t))"})).await;
    client.event("stopped").await;
    drop((client.read, client.write));
    soon(client.served).await.unwrap();
    assert_eq!(fixture.values("(list cl-user::*left* (+ 1 2))").await, ["(T 3)"]);
    // A client that attaches while something is stopped is told of it.
    let mut events = session.stop_events();
    let mut first = Client::connect(&session, PATIENCE);
    first.begin().await;
    let evaluation = first.send("evaluate", json!({"expression": "(progn (break \"here\") :after)"})).await;
    // The end of the stop before may be told here too.
    while !matches!(soon(events.recv()).await.unwrap(), StopEvent::Stopped(_)) {}
    let mut second = Client::connect(&session, PATIENCE);
    second.begin().await;
    let stopped = second.event("stopped").await;
    assert_eq!((&stopped["reason"], &stopped["text"]), (&json!("breakpoint"), &json!("SIMPLE-CONDITION: here")));
    second.ask("continue", json!({"threadId": stopped["threadId"]})).await;
    assert_eq!(first.answer(evaluation).await["body"]["result"], ":AFTER");
    first.leave().await;
    second.leave().await;
    drop(session);
    fixture.close().await;
}

const SHOP: &str = "(in-package :cl-user)
(defun price (item)
  (let ((base (length item)))
    (* base 3)))
(defun total (items)
  (let ((sum 0))
    (dolist (item items)
      (setf sum (+ sum
                   (price item))))
    (list :total sum)))
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn breakpoints_and_steps() {
    let (fixture, session) = fixture().await;
    let file = fixture.workspace.path().join("shop.lisp");
    std::fs::write(&file, SHOP).unwrap();
    fixture.eval(&format!("(load (compile-file {:?}))", file.to_str().unwrap())).await;
    fixture.eval("(defvar *plain* #'price)").await;
    let source = json!({"path": file});
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;

    let set = client.ask("setBreakpoints", json!({"source": source, "breakpoints": [{"line": 9}, {"line": 99}]})).await;
    let set = &set["breakpoints"];
    assert_eq!((&set[0]["verified"], &set[0]["line"], &set[0]["column"]), (&json!(true), &json!(9), &json!(20)));
    assert_eq!((&set[1]["verified"], &set[1]["line"]), (&json!(false), &json!(99)));
    let places = client.ask("breakpointLocations", json!({"source": source, "line": 3})).await;
    assert_eq!(places["breakpoints"].as_array().unwrap().len(), 2);

    let evaluation = client.send("evaluate", json!({"expression": "(total '(\"ab\" \"cde\"))"})).await;
    let stopped = client.event("stopped").await;
    assert_eq!((&stopped["reason"], &stopped["hitBreakpointIds"]), (&json!("breakpoint"), &json!([set[0]["id"]])));
    let thread = stopped["threadId"].clone();
    let in_thread = json!({"threadId": thread});
    let frames = client.ask("stackTrace", in_thread.clone()).await["stackFrames"].clone();
    let top = &frames[0];
    assert_eq!(
        (&top["line"], &top["column"], &top["endLine"], &top["endColumn"], &top["source"]["path"]),
        (&json!(9), &json!(20), &json!(9), &json!(32), &json!(file))
    );
    let scopes = client.ask("scopes", json!({"frameId": top["id"]})).await["scopes"].clone();
    let locals = client.ask("variables", json!({"variablesReference": scopes[0]["variablesReference"]})).await;
    let locals: Vec<_> =
        locals["variables"].as_array().unwrap().iter().map(|local| (&local["name"], &local["value"])).collect();
    assert!(locals.contains(&(&json!("ITEM"), &json!("\"ab\""))), "{locals:?}");
    let length = json!({"expression": "(length item)", "frameId": top["id"], "context": "watch"});
    assert_eq!(client.ask("evaluate", length).await["result"], "2");

    client.ask("next", in_thread.clone()).await;
    client.event("continued").await;
    let stepped = client.event("stopped").await;
    assert_eq!((&stepped["reason"], &stepped["text"]), (&json!("step"), &json!("=> 6")));

    // Replaced while it runs: the client is told, and what runs goes on without stops.
    fixture.eval("(defun total (items) (list :new items))").await;
    let changed = client.event("breakpoint").await;
    assert_eq!((&changed["reason"], &changed["breakpoint"]["id"]), (&json!("changed"), &set[0]["id"]));
    assert_eq!(changed["breakpoint"]["verified"], false);
    client.ask("continue", in_thread).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], "(:TOTAL 15)");
    assert_eq!(fixture.values("(total 1)").await, ["(:NEW 1)"]);

    let named = json!({"breakpoints": [{"name": "price", "condition": "(equal item \"c\")"}]});
    assert_eq!(client.ask("setFunctionBreakpoints", named).await["breakpoints"][0]["line"], 3);
    let evaluation = client.send("evaluate", json!({"expression": "(mapcar 'price '(\"ab\" \"c\"))"})).await;
    let thread = client.event("stopped").await["threadId"].clone();
    client.ask("stepIn", json!({"threadId": thread})).await;
    let inside = client.event("stopped").await["threadId"].clone();
    client.ask("stepOut", json!({"threadId": inside})).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], "(6 3)");

    // Breakpoints that a debugger sets are gone with it.
    client.leave().await;
    assert_eq!(fixture.values("(list (eq *plain* #'price) (length consort::*breakpoints*))").await, ["(T 0)"]);
    drop(session);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn breakpoints_survive_a_restart_of_the_image() {
    let (fixture, session) = fixture().await;
    let file = fixture.workspace.path().join("shop.lisp");
    std::fs::write(&file, SHOP).unwrap();
    let load = format!("(load (compile-file {:?}))", file.to_str().unwrap());
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let source = json!({"path": file});
    // Set before the file is loaded: in force when it is.
    let set = client.ask("setBreakpoints", json!({"source": source, "breakpoints": [{"line": 4}]})).await;
    assert_eq!(set["breakpoints"][0]["verified"], false);
    fixture.eval(&load).await;
    assert_eq!(client.event("breakpoint").await["breakpoint"]["verified"], true);
    soon(fixture.image.restart()).await.unwrap();
    assert_eq!(client.event("breakpoint").await["breakpoint"]["verified"], false);
    fixture.eval(&load).await;
    assert_eq!(client.event("breakpoint").await["breakpoint"]["verified"], true);
    let evaluation = client.send("evaluate", json!({"expression": "(price \"abc\")"})).await;
    let stopped = client.event("stopped").await;
    assert_eq!(stopped["hitBreakpointIds"], json!([set["breakpoints"][0]["id"]]));
    client.ask("continue", json!({"threadId": stopped["threadId"]})).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], "9");
    client.leave().await;
    drop(session);
    fixture.close().await;
}

/// Variables and parts are set, a frame is returned from, and the stops of threads are aborted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_at_a_frame() {
    let (_house, session) = fixture().await;
    let mut client = Client::connect(&session, PATIENCE);
    client.begin().await;
    let code = "(let ((k (list 1 2 3))) (list (outer k 7) k))";
    let evaluation = client.send("evaluate", json!({"expression": code, "context": "repl"})).await;
    let thread = client.event("stopped").await["threadId"].clone();
    let frames = client.ask("stackTrace", json!({"threadId": thread})).await["stackFrames"].as_array().unwrap().clone();
    let named = |name: &str| frames.iter().find(|frame| frame["name"] == name).expect("the frame")["id"].clone();
    let scopes = client.ask("scopes", json!({"frameId": named("top-level form")})).await;
    let locals = scopes["scopes"][0]["variablesReference"].clone();
    let set = |name: &str, value: &str| json!({"variablesReference": locals, "name": name, "value": value});
    let now = client.ask("setVariable", set("K", "(list :a :b)")).await;
    assert_eq!(now["value"], "(:A :B)");
    let part = json!({"variablesReference": now["variablesReference"], "name": "1", "value": "(length *)"});
    assert_eq!(client.ask("setVariable", part).await["value"], "2");
    let refused = client.refused("setVariable", set("NO", "1")).await;
    assert!(refused.contains("no variable NO"), "{refused}");
    let part = json!({"variablesReference": now["variablesReference"], "name": "9", "value": "1"});
    assert!(client.refused("setVariable", part).await.contains("no part 9"));
    client.ask("consort/return", json!({"frameId": named("OUTER"), "code": "(list :instead)"})).await;
    assert_eq!(client.answer(evaluation).await["body"]["result"], "((:INSTEAD) (:A 2))");

    let evaluation = client.send("evaluate", json!({"expression": "(outer 1 2)", "context": "repl"})).await;
    let thread = client.wait(|message| message["event"] == "stopped").await["body"]["threadId"].clone();
    client.ask("terminateThreads", json!({"threadIds": [thread]})).await;
    let ended = client.answer(evaluation).await;
    assert_eq!(ended["message"], "SIMPLE-ERROR: boom 1");
    client.leave().await;
}
