//! A person's stopped program: an agent looks at it without a question, and acts on it only as a
//! person allows.

use consort::config::Config;
use consort::image::api::EvalParams;
use consort::model::evaluation::{EvalOutcome, EvalStatus};
use consort::model::image::ImageError;
use consort::model::stop::StopEvent;
use consort_tests::agent::{Agent, text};
use consort_tests::lone_image::evaluation;
use consort_tests::lsp::Editor;
use consort_tests::patience::soon;
use consort_tests::stops::FAILS;
use serde_json::{Value, json};
use tokio::sync::broadcast::Receiver;
use tokio::task::JoinHandle;

use crate::support::Guarded;

/// A person's evaluation, begun for debugging.
pub(crate) struct Program {
    work: JoinHandle<Result<EvalOutcome, ImageError>>,
    events: Receiver<StopEvent>,
    pub(crate) stop: u64,
}

impl Program {
    pub(crate) async fn stopped(guarded: &Guarded, code: &str) -> Program {
        let image = guarded.world.image.clone();
        let mut events = image.stop_events();
        let params = EvalParams { debug: true, ..evaluation("person", code) };
        let work = tokio::spawn(async move { image.eval(params, None).await });
        let stop = loop {
            if let StopEvent::Stopped(stop) = soon(events.recv()).await.expect("an event") {
                break stop.number;
            }
        };
        Program { work, events, stop }
    }

    /// Waits for the end: how the stop was left, and the outcome of the evaluation.
    pub(crate) async fn ended(mut self) -> (String, EvalOutcome) {
        let how = loop {
            if let StopEvent::Left(left) = soon(self.events.recv()).await.expect("an event") {
                break left.how;
            }
        };
        (how, soon(self.work).await.expect("no panic").expect("an outcome"))
    }
}

async fn begun() -> (Guarded, Editor, Agent) {
    let guarded = Guarded::configured(Config::default()).await;
    guarded.world.is_ready().await;
    let mut editor = guarded.editor().await;
    editor.eval(FAILS).await;
    let agent = guarded.agent("agent").await;
    (guarded, editor, agent)
}

/// A call about which a person is asked: its result, and the question.
async fn decided(editor: &mut Editor, agent: &mut Agent, arguments: Value, title: &str) -> (Value, String) {
    let call = agent.begin("debug", arguments).await;
    let question = editor.press(title).await;
    let message = question["params"]["message"].as_str().expect("a message").to_owned();
    (agent.result(call).await, message)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_is_looked_at_freely_and_left_when_a_person_allows_it() {
    let (guarded, mut editor, mut agent) = begun().await;
    assert_eq!(text(&agent.call("debug", json!({})).await), "Nothing is stopped.");
    let program = Program::stopped(&guarded, "(let ((k (list 1 2 3))) (list (outer k 7) k))").await;
    let stop = program.stop;

    let listed = agent.call("debug", json!({"action": "stops"})).await;
    let shown = text(&listed);
    assert!(
        shown.starts_with(&format!("Stop {stop}: SIMPLE-ERROR: boom (1 2 3)\n  error of person, waiting")),
        "{shown}"
    );
    assert!(shown.contains("restart 0: [USE-OTHER] Use another."), "{shown}");
    let frames = agent.call("debug", json!({"action": "frames", "stop": stop})).await;
    assert!(text(&frames).contains("0: FAILS") && text(&frames).contains("1: OUTER"), "{}", text(&frames));
    assert!(text(&frames).contains("2: top-level form  in (outer k 7)"), "{}", text(&frames));
    let locals = agent.call("debug", json!({"action": "locals", "stop": stop, "frame": 2})).await;
    assert!(text(&locals).contains("\nK = (1 2 3)"), "{}", text(&locals));
    let status = agent.call("image", json!({"action": "status"})).await;
    assert!(text(&status).contains("boom (1 2 3)"), "{}", text(&status));
    // Looking has asked nobody.
    assert!(!editor.was_asked().await);

    let eval = json!({"action": "eval", "stop": stop, "frame": 1, "code": "(setf y (* 2 y))"});
    let (denied, question) = decided(&mut editor, &mut agent, eval.clone(), "Deny").await;
    for words in [
        "evaluate code in frame 1, OUTER, at stop",
        "of person (SIMPLE-ERROR: boom (1 2 3))",
        "Tool: debug",
        "(setf y (* 2 y))",
    ] {
        assert!(question.contains(words), "no {words:?} in {question}");
    }
    assert!(denied["isError"] == true && text(&denied).contains("not allowed by the person"), "{denied}");
    let locals = agent.call("debug", json!({"action": "eval", "stop": stop, "frame": 9, "code": "1"})).await;
    assert!(text(&locals).contains("there is no frame 9"), "a call that cannot work asks nobody: {locals}");
    let (allowed, _) = decided(&mut editor, &mut agent, eval, "Allow").await;
    assert_eq!((text(&allowed), &allowed["isError"]), ("=> 14", &json!(false)));

    let restart = json!({"action": "restart", "stop": stop, "restart": 0, "code": "(+ 40 2)"});
    let (denied, question) = decided(&mut editor, &mut agent, restart.clone(), "Deny").await;
    assert!(question.contains("invoke the restart 0, [USE-OTHER] Use another., at stop"), "{question}");
    assert!(question.contains("Code: (+ 40 2)"), "{question}");
    assert_eq!(denied["isError"], true);
    let (sent, _) = decided(&mut editor, &mut agent, restart.clone(), "Allow").await;
    assert!(sent["isError"] == false && sent["structuredContent"]["status"] == "sent", "{sent}");
    let (how, outcome) = program.ended().await;
    assert_eq!(how, "restart");
    assert_eq!(outcome.values[0].text, "(((:USED 42) 14) (1 2 3))", "the evaluation in the frame counted");

    // A call for a stop that was left is an error of type `stale`, and asks nobody.
    let stale = agent.call("debug", restart).await;
    assert_eq!((&stale["isError"], &stale["structuredContent"]["error"]["type"]), (&json!(true), &json!("stale")));
    assert!(!editor.was_asked().await);
    let decisions: Vec<Value> = guarded
        .audit()
        .iter()
        .filter(|entry| entry["tool"] == "debug")
        .map(|entry| entry["decision"].clone())
        .collect();
    assert_eq!(decisions, ["refused", "allowed", "refused", "allowed"]);
    assert!(guarded.audit().iter().filter(|entry| entry["tool"] == "debug").all(|entry| entry["class"] == "debug"));
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_is_returned_from_continued_or_aborted_and_a_person_may_be_quicker() {
    let (guarded, mut editor, mut agent) = begun().await;
    let program = Program::stopped(&guarded, "(outer 1 2)").await;
    let returns = json!({"action": "return", "stop": program.stop, "frame": 1, "code": "(list :instead y)"});
    let (sent, question) = decided(&mut editor, &mut agent, returns, "Allow").await;
    assert!(question.contains("return the values of code from frame 1, OUTER, at stop"), "{question}");
    assert_eq!(sent["isError"], false, "{sent}");
    let (how, outcome) = program.ended().await;
    assert_eq!((how.as_str(), outcome.values[0].text.as_str()), ("return", "(:INSTEAD 2)"));

    let program = Program::stopped(&guarded, "(progn (break \"here\") :went-on)").await;
    let goes_on = json!({"action": "continue", "stop": program.stop});
    let (denied, _) = decided(&mut editor, &mut agent, goes_on.clone(), "Deny").await;
    assert_eq!(denied["isError"], true);
    let (sent, question) = decided(&mut editor, &mut agent, goes_on, "Allow").await;
    assert!(question.contains("continue the program at stop") && question.contains("here"), "{question}");
    assert_eq!(sent["isError"], false, "{sent}");
    let (how, outcome) = program.ended().await;
    assert_eq!((how.as_str(), outcome.values[0].text.as_str()), ("continue", ":WENT-ON"));

    // While the question is open, the stop is left by another client.
    let program = Program::stopped(&guarded, "(outer 3 4)").await;
    let abort = json!({"action": "abort", "stop": program.stop});
    let call = agent.begin("debug", abort).await;
    let question = editor.question().await;
    let quicker = consort::image::api::debug::DebugAbort { stop: program.stop };
    soon(guarded.world.image.at_stop(&quicker)).await.expect("it is stopped");
    let (how, outcome) = program.ended().await;
    assert_eq!((how.as_str(), outcome.status), ("abort", EvalStatus::Error));
    editor.reply(&question, json!({"title": "Allow"})).await;
    let late = agent.result(call).await;
    assert_eq!(
        (&late["isError"], &late["structuredContent"]["error"]["type"]),
        (&json!(true), &json!("stale")),
        "{late}"
    );

    let program = Program::stopped(&guarded, "(outer 5 6)").await;
    let abort = json!({"action": "abort", "stop": program.stop});
    let (sent, question) = decided(&mut editor, &mut agent, abort, "Allow").await;
    assert!(question.contains("abort the evaluation at stop"), "{question}");
    assert_eq!(sent["isError"], false, "{sent}");
    let (how, outcome) = program.ended().await;
    assert_eq!((how.as_str(), outcome.error.expect("its error").kind.as_str()), ("abort", "SIMPLE-ERROR"));
    guarded.end().await;
}

/// A program that stops under the same number, in a new image.
async fn replaced(guarded: &Guarded, first: Program) -> Program {
    soon(guarded.world.image.restart()).await.expect("a new image");
    assert!(soon(first.work).await.expect("no panic").is_err(), "its image has gone");
    let second = Program::stopped(guarded, "(error \"another\")").await;
    assert_eq!(second.stop, first.stop, "stops are numbered anew");
    second
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_for_the_stop_that_was_shown_not_for_its_number() {
    let guarded = Guarded::configured(Config::default()).await;
    guarded.world.is_ready().await;
    // Without an editor the agent's client asks, and repeats the call with the answer.
    let mut modern = Agent::modern(&guarded.world.session, "modern", json!({"elicitation": {}}));
    let program = Program::stopped(&guarded, "(error \"one\")").await;
    let abort = json!({"action": "abort", "stop": program.stop});
    let asked = modern.call("debug", abort.clone()).await;
    assert!(
        asked["inputRequests"]["approval"]["params"]["message"].to_string().contains("SIMPLE-ERROR: one"),
        "{asked}"
    );
    let second = replaced(&guarded, program).await;
    let retry = json!({
        "name": "debug", "arguments": abort, "requestState": asked["requestState"],
        "inputResponses": {"approval": {"action": "accept", "content": {"decision": "allow"}}},
    });
    let id = modern.ask("tools/call", retry).await;
    let refused = modern.result(id).await;
    assert!(refused["isError"] == true && text(&refused).contains("not what was asked about"), "{refused}");

    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    let call = agent.begin("debug", abort).await;
    let question = editor.question().await;
    soon(guarded.world.image.restart()).await.expect("a new image");
    assert!(soon(second.work).await.expect("no panic").is_err(), "its image has gone");
    let third = Program::stopped(&guarded, "(error \"a third\")").await;
    editor.reply(&question, json!({"title": "Allow"})).await;
    let stale = agent.result(call).await;
    assert!(
        stale["isError"] == true && text(&stale).contains("no longer the one for which approval was requested"),
        "{stale}"
    );
    // The program still waits.
    let listed = agent.call("debug", json!({})).await;
    assert!(text(&listed).contains("SIMPLE-ERROR: a third"), "{}", text(&listed));
    let quicker = consort::image::api::debug::DebugAbort { stop: third.stop };
    soon(guarded.world.image.at_stop(&quicker)).await.expect("it is stopped");
    assert_eq!(third.ended().await.0, "abort");
    guarded.end().await;
}

/// A thread that a person's evaluation started is the person's program too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_at_the_stop_of_a_thread() {
    let (guarded, mut editor, mut agent) = begun().await;
    let image = guarded.world.image.clone();
    let mut events = image.stop_events();
    let code = "(defvar *worker* (sb-thread:make-thread (lambda () (list (outer 1 2))) :name \"worker\"))";
    let params = EvalParams { debug: true, threads: true, ..evaluation("person", code) };
    let outcome = soon(image.eval(params, None)).await.expect("an outcome");
    assert_eq!(outcome.status, EvalStatus::Ok, "{outcome:?}");
    let stop = loop {
        if let StopEvent::Stopped(stop) = soon(events.recv()).await.expect("an event") {
            break stop.number;
        }
    };
    let listed = agent.call("debug", json!({})).await;
    let shown = text(&listed);
    assert!(
        shown.contains("SIMPLE-ERROR: boom 1\n  error of the thread worker, started by person, waiting"),
        "{shown}"
    );
    assert_eq!(listed["structuredContent"]["stops"][0]["started_by"], "person");
    let locals = agent.call("debug", json!({"action": "locals", "stop": stop, "frame": 1})).await;
    assert!(text(&locals).contains("\nY = 2"), "{}", text(&locals));
    assert!(!editor.was_asked().await);
    let restart = json!({"action": "restart", "stop": stop, "restart": 0, "code": "42"});
    let (sent, question) = decided(&mut editor, &mut agent, restart, "Allow").await;
    assert!(question.contains(&format!("at stop {stop} of the thread worker, started by person")), "{question}");
    assert_eq!(sent["structuredContent"]["status"], "sent", "{sent}");
    assert_eq!(editor.eval("(sb-thread:join-thread *worker*)").await, ["(((:USED 42) 2))"]);
    guarded.end().await;
}
