//! An interrupt ends requests that its client sent before it, and none that were sent after it.

use consort::config::approval::{Class, Setting};
use consort::config::{Config, Source};
use consort_tests::agent::{Agent, text};
use consort_tests::lsp::Editor;
use consort_tests::patience::comes;
use consort_tests::world::World;
use serde_json::{Value, json};

/// The deadline of code that only an interrupt ends.
const AMPLE: f64 = 86_400.0;
/// A text whose compilation does not end.
const ENDLESS: &str = "(eval-when (:compile-toplevel :load-toplevel :execute) (loop))\n";

/// Sends a call and, in the next line, an interrupt; returns the results of both.
async fn pair(agent: &mut Agent, tool: &str, arguments: Value) -> (Value, Value) {
    let call = agent.begin(tool, arguments).await;
    let interrupt = agent.begin("image", json!({"action": "interrupt"})).await;
    let interrupt = agent.result(interrupt).await;
    assert_eq!(interrupt["structuredContent"]["interrupted"], 1, "{tool}: {interrupt}");
    (agent.result(call).await, interrupt)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_reaches_the_call_of_the_line_before() {
    let world = World::ready(&[]).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    for _ in 0..20 {
        let (called, _) = pair(&mut agent, "evaluate-lisp", json!({"code": "(loop)", "timeout": AMPLE})).await;
        assert!(text(&called).contains("nterrupted"), "{called}");
    }
    for (tool, arguments) in endless() {
        let (called, _) = pair(&mut agent, tool, arguments).await;
        assert!(text(&called).contains("nterrupted"), "{tool}: {called}");
    }
    agent.vanish().await;
    world.end().await;
}

/// Calls that do not end by themselves.
fn endless() -> [(&'static str, Value); 6] {
    [
        ("evaluate-lisp", json!({"code": "(loop)", "timeout": AMPLE})),
        ("evaluate-lisp", json!({"code": "(loop)", "in": "copy", "timeout": 600})),
        (
            "try-code",
            json!({"candidates": [{"label": "one", "code": "(defun f () (loop))"}], "code": "(f)", "timeout": 600}),
        ),
        ("profile-code", json!({"code": "(loop)", "in": "copy", "timeout": 600})),
        ("record", json!({"code": "(loop)", "timeout": 600})),
        ("compile-form", json!({"code": ENDLESS, "timeout": 600})),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_ends_what_runs() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    for (tool, arguments) in endless() {
        let call = agent.begin(tool, arguments).await;
        comes("the work to run", async || {
            let status = editor.command("consort.status", json!({})).await.expect("a status");
            status["work"].as_array().is_some_and(|work| !work.is_empty()).then_some(())
        })
        .await;
        let interrupted = agent.call("image", json!({"action": "interrupt"})).await;
        assert_eq!(interrupted["structuredContent"]["interrupted"], 1, "{tool}: {interrupted}");
        let called = agent.result(call).await;
        assert!(text(&called).contains("nterrupted"), "{tool}: {called}");
    }
    agent.vanish().await;
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_spares_the_call_of_the_line_after() {
    let world = World::ready(&[]).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    for number in 0..10 {
        let before = agent.begin("evaluate-lisp", json!({"code": "(loop)", "timeout": AMPLE})).await;
        let interrupt = agent.begin("image", json!({"action": "interrupt"})).await;
        let after = agent.begin("evaluate-lisp", json!({"code": format!("(+ {number} 1)")})).await;
        assert_eq!(text(&agent.result(after).await), format!("=> {}", number + 1));
        assert!(text(&agent.result(before).await).contains("nterrupted"));
        assert_eq!(text(&agent.result(interrupt).await), "Interrupted: 1.");
    }
    agent.vanish().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_reaches_a_call_that_waits_for_approval() {
    let mut config = Config::default();
    config.approval.set(Class::Eval, Setting::Ask, Source::User).expect("a person may");
    let world = World::configured(&[], config).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    let call = agent.begin("evaluate-lisp", json!({"code": "(defvar *ran* t)"})).await;
    let question = editor.question().await;
    let interrupted = agent.call("image", json!({"action": "interrupt"})).await;
    assert_eq!(text(&interrupted), "Interrupted: 1.");
    assert_eq!(text(&agent.result(call).await), "Interrupted before it began.");
    editor.withdrawn(&question).await;
    assert_eq!(editor.eval("(boundp '*ran*)").await, ["NIL"]);

    // The trial in a copy, after which the person would be asked.
    let call = agent.begin("evaluate-lisp", json!({"code": "(loop)"})).await;
    comes("the trial to run", async || {
        let status = editor.command("consort.status", json!({})).await.expect("a status");
        status["work"].to_string().contains("trying an evaluation").then_some(())
    })
    .await;
    assert_eq!(text(&agent.call("image", json!({"action": "interrupt"})).await), "Interrupted: 1.");
    let called = agent.result(call).await;
    assert!(text(&called).contains("nterrupted"), "{called}");
    assert!(!editor.was_asked().await);
    agent.vanish().await;
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_editors_interrupt_ends_a_load_whose_compilation_does_not_end() {
    let world = World::ready(&[("endless.lisp", ENDLESS)]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("endless.lisp");
    for command in ["consort.loadFile", "consort.compileFile"] {
        for begun in [false, true] {
            let load = editor.ask_command(command, json!({"uri": uri})).await;
            if begun {
                comes("the check of the file to run", async || {
                    let status = editor.command("consort.status", json!({})).await.expect("a status");
                    status["work"].to_string().contains("endless.lisp").then_some(())
                })
                .await;
            }
            let interrupted = editor.command("consort.interrupt", json!({})).await.expect("an answer");
            assert_eq!(interrupted, json!({"interrupted": 1}), "{command}, begun: {begun}");
            let error = editor.answer(load).await.expect_err("nothing was loaded");
            assert!(error["message"].to_string().contains("nterrupted"), "{command}: {error}");
        }
    }
    assert_eq!(editor.eval("(+ 1 2)").await, ["3"]);
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_reaches_an_expansion_and_an_edit_that_waits_for_approval() {
    let world = World::ready(&[("a.lisp", "(defun a () 1)\n")]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    for _ in 0..5 {
        let endless = json!({"text": "(macrolet ((m () (loop))) (m))", "how": "full", "timeout": 600});
        let expansion = editor.ask_command("consort.macroexpand", endless).await;
        let interrupted = editor.command("consort.interrupt", json!({})).await.expect("an answer");
        assert_eq!(interrupted, json!({"interrupted": 1}));
        let answered = editor.answer(expansion).await;
        assert!(format!("{answered:?}").contains("nterrupted"), "{answered:?}");
    }
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    let edit = json!({"file_path": "a.lisp", "form_type": "defun", "form_name": "a", "operation": "replace",
        "content": "(defun a () 2)"});
    let call = agent.begin("lisp-edit-form", edit).await;
    let question = editor.question().await;
    assert_eq!(text(&agent.call("image", json!({"action": "interrupt"})).await), "Interrupted: 1.");
    assert_eq!(text(&agent.result(call).await), "Interrupted before it began.");
    editor.withdrawn(&question).await;
    assert_eq!(world.session.source_file("a.lisp").await.expect("the file").text, "(defun a () 1)\n");
    agent.vanish().await;
    editor.leave().await;
    world.end().await;
}
