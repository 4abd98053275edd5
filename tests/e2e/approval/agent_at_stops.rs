//! An agent at a person's stops: in odd places, and what it does with frames. A person has allowed
//! that; `stops.rs` has the questions.

use consort::config::approval::{Class, Setting};
use consort::config::{Config, Source};
use consort::model::evaluation::EvalStatus;
use consort_tests::agent::{Agent, text};
use consort_tests::stops::{FAILS, FRAMES, FULL, ODD, REPLACED, RETURNS, STOPS, UNPRINTABLE, WRONG};
use serde_json::{Value, json};

use crate::stops::Program;
use crate::support::Guarded;

async fn begun(code: &str) -> (Guarded, Agent) {
    let mut config = Config::default();
    config.approval.set(Class::Debug, Setting::Allow, Source::User).expect("a person may");
    let guarded = Guarded::configured(config).await;
    guarded.world.is_ready().await;
    let mut agent = guarded.agent("agent").await;
    for code in [FAILS, code] {
        let defined = agent.call("evaluate-lisp", json!({"code": code})).await;
        assert_eq!(defined["isError"], false, "{defined}");
    }
    (guarded, agent)
}

/// The number of the frame with this name in the frames that an agent is shown.
async fn frame(agent: &mut Agent, stop: u64, name: &str) -> u64 {
    let frames = agent.call("debug", json!({"action": "frames", "stop": stop})).await;
    let found = text(&frames).lines().find_map(|line| {
        let (number, rest) = line.trim().split_once(": ")?;
        let named = rest.strip_prefix(name)?;
        (named.is_empty() || named.starts_with("  ")).then(|| number.parse().expect("a number"))
    });
    found.unwrap_or_else(|| panic!("no {name} in {}", text(&frames)))
}

async fn sent(agent: &mut Agent, arguments: Value) {
    let answer = agent.call("debug", arguments.clone()).await;
    assert!(answer["isError"] == false && answer["structuredContent"]["status"] == "sent", "{arguments}: {answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_at_stops_in_odd_places() {
    let (guarded, mut agent) = begun(ODD).await;
    for (code, name, value) in STOPS {
        let program = Program::stopped(&guarded, code).await;
        frame(&mut agent, program.stop, name).await;
        sent(&mut agent, json!({"action": "restart", "stop": program.stop, "restart": 0, "code": "2"})).await;
        let (how, outcome) = program.ended().await;
        let values: Vec<&str> = outcome.values.iter().map(|value| value.text.as_str()).collect();
        assert_eq!((how.as_str(), values.join("\n").as_str()), ("restart", *value), "{code}");
    }

    // The error of code in a frame is its answer, and the stop stays.
    let program = Program::stopped(&guarded, "(outer 1 2)").await;
    let failing = json!({"action": "eval", "stop": program.stop, "frame": 1, "code": "(list (fails 5))"});
    let failed = agent.call("debug", failing).await;
    assert!(failed["isError"] == true && text(&failed).contains("boom 5"), "{failed}");
    sent(&mut agent, json!({"action": "restart", "stop": program.stop, "restart": 0, "code": "4"})).await;
    assert_eq!(program.ended().await.1.values[0].text, "((:USED 4) 2)");

    // A full stack and a full heap are reported.
    for (code, why) in FULL {
        let full = agent.call("evaluate-lisp", json!({"code": code})).await;
        assert!(full["isError"] == true && text(&full).to_uppercase().contains(why), "{code}: {full}");
    }
    let program = Program::stopped(&guarded, "(fails 1)").await;
    sent(&mut agent, json!({"action": "abort", "stop": program.stop})).await;
    assert_eq!(program.ended().await.1.status, EvalStatus::Error);
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_returns_from_frames_and_restarts_them() {
    let (guarded, mut agent) = begun(FRAMES).await;
    for (name, code, value) in RETURNS {
        let program = Program::stopped(&guarded, "(top 1)").await;
        let frame = frame(&mut agent, program.stop, name).await;
        // Code that fails, or that cannot be read, leaves the stop as it is.
        for (code, why) in WRONG {
            let wrong = json!({"action": "return", "stop": program.stop, "frame": frame, "code": code});
            let failed = agent.call("debug", wrong).await;
            assert!(failed["isError"] == true && text(&failed).contains(why), "{code}: {failed}");
        }
        sent(&mut agent, json!({"action": "return", "stop": program.stop, "frame": frame, "code": code})).await;
        let (how, outcome) = program.ended().await;
        assert_eq!((how.as_str(), outcome.values[0].text.as_str()), ("return", *value), "{name} {code}");
    }
    for (code, definition, name, value) in REPLACED {
        let program = Program::stopped(&guarded, code).await;
        let frame = frame(&mut agent, program.stop, name).await;
        assert_eq!(agent.call("evaluate-lisp", json!({"code": definition})).await["isError"], false);
        sent(&mut agent, json!({"action": "restart-frame", "stop": program.stop, "frame": frame})).await;
        assert_eq!(program.ended().await.1.values[0].text, *value, "{code}");
    }

    // A local whose PRINT-OBJECT does not end has its name and its class.
    let (definitions, code) = UNPRINTABLE;
    assert_eq!(agent.call("evaluate-lisp", json!({"code": definitions})).await["isError"], false);
    let program = Program::stopped(&guarded, code).await;
    let frame = frame(&mut agent, program.stop, "top-level form").await;
    let locals = agent.call("debug", json!({"action": "locals", "stop": program.stop, "frame": frame})).await;
    assert!(text(&locals).contains("\nODD = #<ODD>"), "{}", text(&locals));
    sent(&mut agent, json!({"action": "restart", "stop": program.stop, "restart": 0, "code": "2"})).await;
    assert_eq!(program.ended().await.1.values[0].text, "((:USED 2) NIL)");
    guarded.end().await;
}
