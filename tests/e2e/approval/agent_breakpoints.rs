//! An agent's own breakpoints: its evaluation stops there and waits, and each call that resumes it
//! is answered with the next stop or the result.

use std::time::{Duration, SystemTime};

use consort::config::Config;
use consort::config::Source;
use consort::config::approval::{Class, Setting};
use consort_tests::agent::{Agent, text};
use serde_json::{Value, json};

use crate::support::Guarded;

const FILE: &str = "(defpackage :shop (:use :cl))
(in-package :shop)
(defun price (item)
  (let ((net (getf item :net)))
    (+ net 1)))
(defun total (items)
  (let ((sum 0))
    (dolist (item items)
      (setf sum (+ sum (price item))))
    sum))
";
const CODE: &str = "(shop::total '((:net 1) (:net 20)))";

/// An agent that may set breakpoints, with the file's definitions in the image.
async fn begun() -> (Guarded, Agent) {
    let mut config = Config::default();
    config.approval.set(Class::ModifyRunningCode, Setting::Allow, Source::User).expect("a person may");
    let guarded = Guarded::configured(config).await;
    guarded.world.is_ready().await;
    let file = guarded.world.path("shop.lisp");
    std::fs::write(&file, FILE).expect("a file");
    let mut agent = guarded.agent("agent").await;
    let load = json!({"code": format!("(load {:?})", file.display().to_string())});
    assert_eq!(agent.call("evaluate-lisp", load).await["isError"], false);
    (guarded, agent)
}

/// The number of the stop in the answer to a call.
fn stop_of(answer: &Value) -> u64 {
    assert!(text(answer).starts_with("[STOPPED] Stop "), "{answer}");
    answer["structuredContent"]["stop"].as_u64().unwrap_or_else(|| panic!("no stop in {answer}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_evaluation_stops_at_its_breakpoints_and_goes_on() {
    let (guarded, mut agent) = begun().await;
    let set = agent
        .call("set-breakpoints", json!({"file": "shop.lisp", "lines": [9, 1], "condition": "(> (getf item :net) 5)"}))
        .await;
    assert!(text(&set).starts_with("shop.lisp:9: set\nshop.lisp:1: not set: "), "{set}");

    let stopped = agent.call("evaluate-lisp", json!({"code": CODE})).await;
    assert_eq!(stopped["structuredContent"]["status"], "stopped", "{stopped}");
    let stop = stop_of(&stopped);
    for words in ["before the form at", "shop.lisp:9:7", "SUM = 2", "ITEM = (:NET 20)"] {
        assert!(text(&stopped).contains(words), "no {words:?} in {}", text(&stopped));
    }
    // Another evaluation meanwhile runs at once, and does not stop.
    let meanwhile = agent.call("evaluate-lisp", json!({"code": CODE})).await;
    assert_eq!(text(&meanwhile), "=> 23", "{meanwhile}");
    let frames = agent.call("debug", json!({"action": "frames", "stop": stop})).await;
    assert!(text(&frames).contains("SHOP::TOTAL"), "{}", text(&frames));
    let value = agent.call("debug", json!({"action": "eval", "stop": stop, "code": "(* 20 sum)"})).await;
    assert_eq!(text(&value), "=> 40", "{value}");

    // Steps into the subforms, until one has returned its value.
    let mut second = stop;
    let mut stepped = Value::Null;
    for _ in 0..3 {
        stepped = agent.call("debug", json!({"action": "step", "stop": second})).await;
        second = stop_of(&stepped);
    }
    assert!(second > stop && text(&stepped).contains("which gave 21"), "{}", text(&stepped));
    let gone = agent.call("debug", json!({"action": "step", "stop": stop})).await;
    assert_eq!(gone["isError"], true, "{gone}");
    let ended = agent.call("debug", json!({"action": "continue", "stop": second})).await;
    assert_eq!((text(&ended), &ended["isError"]), ("=> 23", &json!(false)), "{ended}");

    // The definition is loaded again: its breakpoint is set again before the next evaluation.
    let anew = json!({"code": format!("(load {:?})", guarded.world.path("shop.lisp").display().to_string())});
    assert_eq!(agent.call("evaluate-lisp", anew).await["isError"], false);
    let again = agent.call("evaluate-lisp", json!({"code": CODE})).await;
    let stop = stop_of(&again);
    let aborted = agent.call("debug", json!({"action": "abort", "stop": stop})).await;
    assert_eq!(aborted["isError"], true, "{aborted}");

    let none = agent.call("set-breakpoints", json!({"file": "shop.lisp", "lines": []})).await;
    assert_eq!(text(&none), "There are no breakpoints of yours in shop.lisp now.");
    assert_eq!(text(&agent.call("evaluate-lisp", json!({"code": CODE})).await), "=> 23");
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_of_an_evaluation_that_stops_at_breakpoints_are_reported() {
    let (guarded, mut agent) = begun().await;
    agent.call("set-breakpoints", json!({"file": "shop.lisp", "lines": [5]})).await;
    let stopped = agent.call("evaluate-lisp", json!({"code": "(shop::total '((:cost 1)))"})).await;
    let stop = stop_of(&stopped);
    let failed = agent.call("debug", json!({"action": "continue", "stop": stop})).await;
    assert!(failed["isError"] == true && text(&failed).contains("TYPE-ERROR"), "{failed}");
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_leaves_ends_its_stop_and_its_breakpoints() {
    let (guarded, mut agent) = begun().await;
    agent.call("set-breakpoints", json!({"file": "shop.lisp", "lines": [5]})).await;
    stop_of(&agent.call("evaluate-lisp", json!({"code": CODE})).await);
    let mut events = guarded.world.image.stop_events();
    agent.vanish().await;
    while !matches!(
        consort_tests::patience::soon(events.recv()).await.expect("an event"),
        consort::model::stop::StopEvent::Left(_)
    ) {}
    let mut other = guarded.agent("other").await;
    let code = json!({"code": CODE});
    assert_eq!(text(&other.call("evaluate-lisp", code.clone()).await), "=> 23");
    // Another agent's evaluations stop only at breakpoints of its own; those of the agent that left
    // are gone.
    other.call("set-breakpoints", json!({"file": "shop.lisp", "lines": [9]})).await;
    let stopped = other.call("evaluate-lisp", code).await;
    stop_of(&stopped);
    assert!(text(&stopped).contains("shop.lisp:9:"), "{}", text(&stopped));
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn breakpoints_that_an_editors_later_settings_deny_are_taken_out_of_the_image() {
    let (guarded, mut agent) = begun().await;
    let mut editor = guarded.editor().await;
    agent.call("set-breakpoints", json!({"file": "shop.lisp", "lines": [5, 9]})).await;
    let count = json!({"code": "(length consort::*breakpoints*)"});
    assert_eq!(text(&agent.call("evaluate-lisp", count.clone()).await), "=> 2");
    let deny = json!({"settings": {"consort": {"approval": {"modify-running-code": "deny"}}}});
    editor.notify("workspace/didChangeConfiguration", deny).await;
    let mut told = false;
    consort_tests::patience::comes("the image has none of them", async || {
        let answer = agent.call("evaluate-lisp", count.clone()).await;
        told |= text(&answer).contains("approval.modify-running-code is \"deny\" now: shop.lisp, line 5, 9.");
        text(&answer).starts_with("=> 0").then_some(())
    })
    .await;
    assert!(told, "the agent is told");
    assert_eq!(text(&agent.call("evaluate-lisp", json!({"code": CODE})).await), "=> 23");
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_evaluations_at_once_one_stops_and_both_are_answered() {
    let (guarded, mut agent) = begun().await;
    let set = agent.call("set-breakpoints", json!({"file": "shop.lisp", "lines": [9]})).await;
    assert_eq!(text(&set), "shop.lisp:9: set", "{set}");
    let both = [
        agent.begin("evaluate-lisp", json!({"code": CODE})).await,
        agent.begin("evaluate-lisp", json!({"code": CODE})).await,
    ];
    let mut answers = Vec::new();
    for id in both {
        answers.push(agent.result(id).await);
    }
    answers.sort_by_key(|answer| answer["structuredContent"]["status"] == "stopped");
    assert_eq!(text(&answers[0]), "=> 23", "{answers:?}");
    let mut stop = stop_of(&answers[1]);
    // The breakpoint is met once more, for the second item.
    let again = agent.call("debug", json!({"action": "continue", "stop": stop})).await;
    stop = stop_of(&again);
    let ended = agent.call("debug", json!({"action": "continue", "stop": stop})).await;
    assert_eq!(text(&ended), "=> 23", "{ended}");
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_is_asked_before_an_agent_sets_breakpoints() {
    let guarded = Guarded::configured(Config::default()).await;
    guarded.world.is_ready().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    let call =
        agent.begin("set-breakpoints", json!({"file": "core.lisp", "lines": [1], "condition": "(launch)"})).await;
    let question = editor.press("Deny").await;
    let message = question["params"]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("core.lisp, line 1") && message.contains("(launch)"), "{message}");
    let denied = agent.result(call).await;
    assert!(denied["isError"] == true && text(&denied).contains("not allowed by the person"), "{denied}");
    // Removing breakpoints needs no approval.
    let none = agent.call("set-breakpoints", json!({"file": "core.lisp", "lines": []})).await;
    assert_eq!(none["isError"], false, "{none}");
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_breakpoint_compiles_no_text_but_the_one_that_was_loaded() {
    let mut config = Config::default();
    for class in [Class::ModifyRunningCode, Class::CompileFile] {
        config.approval.set(class, Setting::Allow, Source::User).expect("a person may");
    }
    let guarded = Guarded::configured(config).await;
    guarded.world.is_ready().await;
    let file = guarded.world.path("shop.lisp");
    let write = |text: &str, at: SystemTime| {
        std::fs::write(&file, text).expect("a file");
        std::fs::File::options().append(true).open(&file).and_then(|open| open.set_modified(at)).expect("its time");
    };
    std::fs::write(guarded.world.path("shop.asd"), "(defsystem \"shop\" :components ((:file \"shop\")))")
        .expect("a file");
    let written = SystemTime::now() - Duration::from_secs(60);
    write(FILE, written);
    let mut agent = guarded.agent("agent").await;
    let loaded = agent.call("load-system", json!({"system": "shop"})).await;
    assert_eq!(loaded["isError"], false, "{loaded}");
    let breakpoint = json!({"file": "shop.lisp", "lines": [5, 9]});
    let set = agent.call("set-breakpoints", breakpoint.clone()).await;
    assert_eq!(text(&set), "shop.lisp:5: set\nshop.lisp:9: set", "{set}");
    let described = agent.call("describe-symbol", json!({"symbol": "shop::total"})).await;
    assert!(text(&described).contains("loading the system shop"), "{described}");

    // Another text, with the same time.
    let marker = guarded.world.path("ran");
    let code = format!("#.(progn (open {:?} :direction :output) 1)", marker.display().to_string());
    write(&FILE.replace("(+ net 1)", &format!("(+ net {code})")), written);
    let set = agent.call("set-breakpoints", breakpoint).await;
    assert!(text(&set).contains("shop.lisp:5: not set: PRICE was edited since the image loaded it"), "{set}");
    assert!(text(&set).contains("shop.lisp:9: set"), "{set}");
    assert!(!marker.exists());
    guarded.end().await;
}
