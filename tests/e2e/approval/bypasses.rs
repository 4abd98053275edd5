//! Attempts to bypass approval. Each fails, and is in the audit log.

use std::time::Duration;

use consort::config::approval::{Class, Setting};
use consort::config::trust::TrustStore;
use consort::config::{Config, Source};
use consort::session::approval::{ApprovalRequest, Subject, Verdict};
use consort::session::{ClientInfo, Frontend};
use consort_tests::agent::{Agent, text};
use consort_tests::patience::comes;
use serde_json::{Value, json};

use crate::support::{Guarded, asking};

/// A retry of a call with an answer that allows it.
fn retry(arguments: Value, state: &Value) -> Value {
    json!({
        "name": "evaluate-lisp", "arguments": arguments, "requestState": state,
        "inputResponses": {"approval": {"action": "accept", "content": {"decision": "allow"}}},
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_is_for_these_arguments_this_client_and_once() {
    let guarded = Guarded::new().await;
    let session = &guarded.world.session;
    let mut agent = Agent::modern(session, "modern", json!({"elicitation": {}}));
    let mut other = Agent::modern(session, "modern", json!({"elicitation": {}}));
    let state = |result: Value| result["requestState"].clone();

    // Approved for one text, used with another.
    let shown = state(agent.call("evaluate-lisp", json!({"in": "image", "code": "(list 1)"})).await);
    let id = agent.ask("tools/call", retry(json!({"in": "image", "code": "(delete-file \"/x\")"}), &shown)).await;
    let result = agent.result(id).await;
    assert!(text(&result).contains("the arguments are not those"), "{}", text(&result));
    guarded.refused("the arguments are not those").await;
    // The token is spent, also for the right call.
    let id = agent.ask("tools/call", retry(json!({"in": "image", "code": "(list 1)"}), &shown)).await;
    assert!(text(&agent.result(id).await).contains("there is no such question"));

    // The same text with another deadline or in another package is not the same call.
    for changed in [
        json!({"in": "image", "code": "1", "timeout": 86400}),
        json!({"in": "image", "code": "1", "package": "KEYWORD"}),
    ] {
        let shown = state(agent.call("evaluate-lisp", json!({"in": "image", "code": "1"})).await);
        let id = agent.ask("tools/call", retry(changed, &shown)).await;
        assert!(text(&agent.result(id).await).starts_with("Refused"));
    }

    // Another connection, of the same name.
    let shown = state(agent.call("evaluate-lisp", json!({"in": "image", "code": "2"})).await);
    let id = other.ask("tools/call", retry(json!({"in": "image", "code": "2"}), &shown)).await;
    assert!(text(&other.result(id).await).contains("there is no such question"));
    // The call that was asked about keeps its approval.
    let id = agent.ask("tools/call", retry(json!({"in": "image", "code": "2"}), &shown)).await;
    assert_eq!(text(&agent.result(id).await), "=> 2");
    // Used twice.
    let id = agent.ask("tools/call", retry(json!({"in": "image", "code": "2"}), &shown)).await;
    assert!(text(&agent.result(id).await).contains("there is no such question"));

    // Made up.
    for state in [json!(""), json!("0".repeat(32)), json!("allow")] {
        let id = agent.ask("tools/call", retry(json!({"in": "image", "code": "3"}), &state)).await;
        assert!(text(&agent.result(id).await).starts_with("Refused"));
    }
    // An answer nobody was asked for.
    let call = json!({"name": "evaluate-lisp", "arguments": {"in": "image", "code": "4"}, "inputResponses": {"approval": {"action": "accept", "content": {"decision": "allow"}}}});
    let id = agent.ask("tools/call", call).await;
    assert_eq!(agent.result(id).await["resultType"], "input_required");
    assert_eq!(guarded.audit().iter().filter(|entry| entry["decision"] == "allowed").count(), 1);
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approval_that_comes_too_late_is_none() {
    let guarded = Guarded::hasty().await;
    let session = &guarded.world.session;
    // By an input-required result: once the time is up, the log has the refusal, and an answer is
    // refused.
    let mut modern = Agent::modern(session, "modern", json!({"elicitation": {}}));
    let shown = modern.call("evaluate-lisp", json!({"in": "image", "code": "1"})).await;
    guarded.audited(|entry| entry["client"] == "modern 1" && entry["why"] == "no answer in time").await;
    let id = modern.ask("tools/call", retry(json!({"in": "image", "code": "1"}), &shown["requestState"])).await;
    assert!(text(&modern.result(id).await).starts_with("Refused"));

    // By elicitation.
    let mut agent = guarded.asking_agent("legacy").await;
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "2"})).await;
    let question = agent.wait_for("elicitation/create").await;
    let result = agent.result(call).await;
    assert!(text(&result).contains("nobody answered"), "{}", text(&result));
    agent.reply(&question, json!({"action": "accept", "content": {"decision": "allow-session"}})).await;
    guarded.audited(|entry| entry["client"] == "legacy 1" && entry["why"] == "no answer in time").await;

    // By the editor: `Allow for this session` that comes too late allows no later call either.
    let mut editor = guarded.editor().await;
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "3"})).await;
    let question = editor.question().await;
    assert!(text(&agent.result(call).await).contains("nobody answered"));
    editor.withdrawn(&question).await;
    editor.reply(&question, json!({"title": "Allow for this session"})).await;
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "4"})).await;
    let question = editor.question().await;
    assert!(text(&agent.result(call).await).contains("nobody answered"));
    editor.withdrawn(&question).await;
    assert!(guarded.audit().iter().all(|entry| entry["decision"] == "refused"), "{:#?}", guarded.audit());
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_done_for_an_agent_that_has_gone() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let file = guarded.world.path("done");
    let code = format!("(with-open-file (s {:?} :direction :output) (print 1 s))", file.display().to_string());

    let mut agent = guarded.agent("gone").await;
    agent.begin("evaluate-lisp", json!({"in": "image", "code": code})).await;
    let question = editor.question().await;
    agent.vanish().await;
    editor.withdrawn(&question).await;
    editor.reply(&question, json!({"title": "Allow"})).await;
    guarded.audited(|entry| entry["client"] == "gone 1" && entry["why"].to_string().contains("withdrawn")).await;

    // An answer does not allow a call that its agent has cancelled.
    let mut agent = guarded.agent("cancels").await;
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": code})).await;
    let question = editor.question().await;
    agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}})).await;
    editor.withdrawn(&question).await;
    editor.reply(&question, json!({"title": "Allow"})).await;
    guarded.audited(|entry| entry["client"] == "cancels 1" && entry["why"].to_string().contains("withdrawn")).await;

    // Nor one of an agent whose own client is asked and has disconnected.
    editor.leave().await;
    let mut agent = guarded.asking_agent("vanishes").await;
    agent.begin("evaluate-lisp", json!({"in": "image", "code": code})).await;
    agent.wait_for("elicitation/create").await;
    agent.vanish().await;
    guarded.audited(|entry| entry["client"] == "vanishes 1" && entry["why"].to_string().contains("withdrawn")).await;
    assert!(!file.exists());
    assert!(guarded.audit().iter().all(|entry| entry["decision"] == "refused"));
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_alias_or_other_tool_evaluates_unasked() {
    let guarded = Guarded::new().await;
    let mut agent = guarded.agent("agent").await;
    // `repl_eval` is an alias of `evaluate-lisp`, and the question names that.
    assert!(
        text(&agent.call("repl_eval", json!({"in": "image", "code": "1"})).await).starts_with("Refused: evaluate-lisp")
    );
    for name in ["evaluate_lisp", "Evaluate-Lisp", "evaluate-lisp ", "evaluate\u{2010}lisp", "repl-eval", "eval", ""] {
        let answer =
            agent.request("tools/call", json!({"name": name, "arguments": {"in": "image", "code": "1"}})).await;
        assert!(answer["error"]["message"].to_string().contains("Unknown tool"), "{name:?}: {answer}");
    }
    // Arguments that are refused are not asked about, and do not run.
    assert!(
        text(&agent.call("evaluate-lisp", json!({"in": "image", "code": "1", "approved": true})).await)
            .contains("`approved` is not an argument")
    );
    // A check runs no code in the image, whatever the code says.
    let checked = agent.call("compile-form", json!({"code": "(eval-when (:compile-toplevel :load-toplevel :execute) (defparameter cl-user::*sneaked* 1))"})).await;
    assert_eq!(checked["isError"], false, "{checked}");
    let mut editor = guarded.editor().await;
    assert_eq!(editor.eval("(boundp (quote cl-user::*sneaked*))").await, ["NIL"]);
    editor.leave().await;

    // Two calls in a batch (2025-03-26): each is asked about.
    let mut batch = Agent::of_revision(&guarded.world.session, "2025-03-26", "batch", json!({})).await;
    let call = |id: i64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "evaluate-lisp", "arguments": {"in": "image", "code": "1"}}});
    batch.send(&json!([call(71), call(72)])).await;
    for id in [71, 72] {
        assert!(text(&batch.result(id).await).starts_with("Refused"));
    }
    // Nobody was asked, so the log may have it after the answer.
    let of_batch = |entry: &&Value| entry["client"] == "batch 1" && entry["decision"] == "refused";
    comes("both refusals in the audit log", async || {
        (guarded.audit().iter().filter(of_batch).count() == 2).then_some(())
    })
    .await;
    let audit = guarded.audit();
    assert!(audit.iter().all(|entry| entry["tool"] == "evaluate-lisp" && entry["decision"] == "refused"), "{audit:#?}");
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_argument_that_nobody_could_read_is_not_asked_about() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    let code = format!("{}(list 1)", "\n".repeat(200_000));
    let result = agent.call("evaluate-lisp", json!({"in": "image", "code": code})).await;
    assert!(text(&result).contains("too many for a person to judge"), "{}", text(&result));
    assert!(!editor.was_asked().await);
    let entry = guarded.refused("too many for a person to judge").await;
    assert!(entry["omitted"].as_u64().is_some_and(|omitted| omitted > 100_000) && entry.to_string().len() < 10_000);

    // A message says that text was left out.
    let code = format!("(list 1)\n{}(delete-file \"x\")\n{}", "(list 2)\n".repeat(300), "(list 3)\n".repeat(300));
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": code})).await;
    let question = editor.press("Deny").await;
    assert!(question["params"]["message"].to_string().contains("CHARACTERS ARE NOT SHOWN"), "{question}");
    agent.result(call).await;

    // The number of questions of one agent at once is limited.
    let mut calls = Vec::new();
    for number in 0..20 {
        calls.push(agent.begin("evaluate-lisp", json!({"in": "image", "code": number.to_string()})).await);
    }
    comes("four refusals", async || {
        let refused = |entry: &&Value| entry.to_string().contains("16 questions of this agent");
        (guarded.audit().iter().filter(refused).count() == 4).then_some(())
    })
    .await;
    for _ in 0..16 {
        editor.press("Deny").await;
    }
    for call in calls {
        assert!(text(&agent.result(call).await).starts_with("Refused"));
    }
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn code_cannot_change_what_is_asked() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    let settings = guarded.world.path("consort.toml");
    // Everything is allowed once: it writes the workspace's settings, and rebinds what answers the
    // host in the image.
    let code = format!(
        "(progn (with-open-file (s {:?} :direction :output :if-exists :supersede) (write-string \"[approval]
eval = \\\"allow\\\"\" s))
           (sb-ext:without-package-locks
             (do-symbols (s :consort) (when (search \"APPRO\" (string s)) (unintern s :consort)))
             (defun consort::approved-p (&rest x) (declare (ignore x)) t)
             (defun cl-user::evaluate-lisp (x) (eval x)))
           :done)",
        settings.display().to_string()
    );
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": code})).await;
    editor.press("Allow").await;
    assert!(text(&agent.result(call).await).contains("=> :DONE"));
    assert!(settings.exists());
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "1"})).await;
    editor.press("Deny").await;
    assert!(text(&agent.result(call).await).starts_with("Refused"));
    guarded.audited(|entry| entry["decision"] == "refused" && entry["by"] == "a test 1").await;

    // A host that reads the settings takes from the workspace only stricter ones.
    let mine = settings.with_file_name("config.toml");
    std::fs::write(&mine, "[approval]\neval = \"ask\"\n").expect("a file");
    let workspace = settings.parent().expect("it is in the workspace");
    let store = TrustStore::within(workspace.join("trust"));
    let config = Config::load_from(Some(&mine), workspace, &store);
    assert_eq!(config.approval.in_force(Class::Eval, []).0, Setting::Ask);
    assert!(
        config.problems.iter().any(|problem| problem.to_string().contains("only make approval stricter")),
        "{:?}",
        config.problems
    );
    std::fs::write(&settings, "[approval]\neval = \"deny\"\n").expect("a file");
    assert_eq!(Config::load_from(Some(&mine), workspace, &store).approval.in_force(Class::Eval, []).0, Setting::Deny);
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn evaluation_in_a_copy_asks_nobody_and_is_confined_whatever_the_settings() {
    for setting in [Setting::Ask, Setting::Copy, Setting::Deny] {
        let mut config = Config::default();
        config.approval.set(Class::Eval, setting, Source::User).expect("a person may");
        config.check.confine = false;
        let guarded = Guarded::configured(config).await;
        let mut editor = guarded.editor().await;
        let mut agent = guarded.agent("agent").await;
        let result = agent.call("evaluate-lisp", json!({"code": "(defvar *kept* 1) (1+ *kept*)", "in": "copy"})).await;
        assert_eq!(text(&result), "=> 2", "{setting:?}");
        let file = guarded.world.path("core.lisp");
        let code = format!("(delete-file {:?})", file.display().to_string());
        let result = agent.call("evaluate-lisp", json!({"code": code, "in": "copy"})).await;
        assert!(text(&result).contains("which is confined") && file.exists(), "{setting:?}: {}", text(&result));
        for (tool, arguments, word) in [
            ("run-tests", json!({"test": "none-such"}), "No test is found"),
            ("profile-code", json!({"code": format!("(progn (defvar *kept* 2) {code})")}), "which is confined"),
            ("macroexpand-form", json!({"form": "(when a b)"}), "(if a"),
        ] {
            let mut arguments = arguments;
            arguments["in"] = "copy".into();
            let result = agent.call(tool, arguments).await;
            assert!(text(&result).contains(word) && file.exists(), "{setting:?}, {tool}: {}", text(&result));
        }
        assert!(!editor.was_asked().await, "{setting:?}");
        // In the image itself the setting is in force.
        if setting != Setting::Ask {
            let result = agent.call("evaluate-lisp", json!({"code": "(boundp '*kept*)", "in": "image"})).await;
            assert!(text(&result).starts_with("Refused"), "{setting:?}: {}", text(&result));
            assert_eq!(text(&result).contains(r#""in": "copy""#), setting == Setting::Copy, "{}", text(&result));
        }
        guarded.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_of_an_editor_count_and_are_not_loosened_behind_its_back() {
    let guarded = Guarded::new().await;
    let session = &guarded.world.session;
    let mut agent = guarded.agent("agent").await;
    let settings = |value: &str| json!({"settings": {"consort": {"approval": {"eval": value}}}});
    let mut editor = consort_tests::lsp::Editor::connect(session);
    let own = json!({"experimental": {"consort": {"ownSettings": true}}});
    editor.initialize(json!({"capabilities": own, "initializationOptions": {"approval": {"eval": "deny"}}})).await;
    editor.command("consort.status", json!({})).await.expect("a status");
    let result = agent.call("evaluate-lisp", json!({"in": "image", "code": "1"})).await;
    assert!(text(&result).contains("the editor's settings denies"), "{}", text(&result));
    guarded.refused("the editor's settings").await;

    // The first settings after `initialize` are the editor's own, which may be looser.
    editor.notify("workspace/didChangeConfiguration", settings("ask")).await;
    // A notification has no answer, and the agent has a connection of its own; a request behind it
    // has.
    editor.command("consort.status", json!({})).await.expect("a status");
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "2"})).await;
    editor.press("Allow").await;
    assert_eq!(text(&agent.result(call).await), "=> 2");
    // Later ones may come from a file that an agent wrote.
    editor.notify("workspace/didChangeConfiguration", settings("allow")).await;
    editor
        .wait_for("window/showMessage", |params| {
            params["message"].to_string().contains("Looser settings of `approval.eval`")
        })
        .await;
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "3"})).await;
    editor.press("Deny").await;
    assert!(text(&agent.result(call).await).starts_with("Refused"));
    editor.notify("workspace/didChangeConfiguration", settings("deny")).await;
    assert!(editor.command("consort.status", json!({})).await.is_ok());
    assert!(text(&agent.call("evaluate-lisp", json!({"in": "image", "code": "4"})).await).starts_with("Refused"));

    // No editor allows an operation that the person's own file denies.
    let mut config = Config::default();
    config.approval.set(Class::Eval, Setting::Deny, Source::User).expect("a person may");
    let denying = Guarded::configured(config).await;
    let mut lax = consort_tests::lsp::Editor::connect(&denying.world.session);
    lax.initialize(json!({"capabilities": {}, "initializationOptions": {"approval": {"eval": "allow"}}})).await;
    let mut agent = denying.asking_agent("agent").await;
    let result = agent.call("evaluate-lisp", json!({"in": "image", "code": "1"})).await;
    assert!(text(&result).contains("config.toml or the default denies"), "{}", text(&result));
    denying.refused("denied").await;
    denying.end().await;
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_audit_log_nothing_is_approved() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    std::fs::create_dir_all(guarded.audit_file()).expect("a directory where the log should be");
    let call = agent.begin("evaluate-lisp", json!({"code": "(defparameter cl-user::*ran* t)"})).await;
    editor.press("Allow for this session").await;
    let result = agent.result(call).await;
    assert!(
        text(&result).contains("the audit log") && text(&result).contains("cannot be written"),
        "{}",
        text(&result)
    );
    assert!(
        text(&agent.call("evaluate-lisp", json!({"in": "image", "code": "1"})).await).contains("cannot be written")
    );
    assert_eq!(editor.eval("(boundp (quote cl-user::*ran*))").await, ["NIL"]);
    guarded.end().await;

    // Operations that need no approval still run.
    let mut config = Config::default();
    config.approval.audit = None;
    let free = Guarded::configured(config).await;
    std::fs::create_dir_all(free.audit_file()).expect("a directory where the log should be");
    let mut agent = free.agent("agent").await;
    assert_eq!(text(&agent.call("evaluate-lisp", json!({"in": "image", "code": "1"})).await), "=> 1");
    free.end().await;
}

/// Classes without a tool, through `Session::permit`: each class that is asked by default is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_other_class_is_asked_by_default() {
    let guarded = Guarded::configured(Config::default()).await;
    let session = &guarded.world.session;
    let (client, _feedback) = session.attach(ClientInfo { frontend: Frontend::Mcp, name: "agent".into() });
    for (class, tool) in [
        (Class::CompileFile, "code_compile_string"),
        (Class::ModifyRunningCode, "code_replace_function"),
        (Class::EditFile, "lisp-edit-form"),
        (Class::RestartImage, "image"),
        (Class::Debug, "debug"),
    ] {
        let request = |tool| {
            let subject = Subject { what: "Do it".into(), ..Subject::default() };
            ApprovalRequest::new(session.workspace(), client, tool, (class, subject), json!({"a": 1}), true)
        };
        let verdict = session.permit(request(tool), None).await;
        let Verdict::ThroughAgent(question) = verdict else { panic!("{class:?}: {verdict:?}") };
        assert!(
            question.message.contains("AI agent agent wants to do it:")
                && question.message.contains(r#"Arguments: {"a":1}"#)
        );
        drop(question);
        guarded.audited(|entry| entry["tool"] == tool && entry["why"].to_string().contains("withdrawn")).await;
        let mut editor = guarded.editor().await;
        let permit = session.permit(request(tool), None);
        let permit = tokio::spawn(permit);
        editor.press("Allow for this session").await;
        assert!(matches!(permit.await, Ok(Verdict::Allowed(_))));
        assert!(matches!(session.permit(request(tool), None).await, Verdict::Allowed(_)));
        // For this tool and class, and no other.
        let permit = tokio::spawn(session.permit(request("another"), None));
        editor.press("Deny").await;
        assert!(matches!(permit.await, Ok(Verdict::Refused(_))));
        editor.leave().await;
    }
    guarded.end().await;
}

/// An agent's name or code cannot look like a part of the question.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_or_a_text_does_not_forge_the_question() {
    let mut config = asking();
    config.approval.deadline = Duration::from_secs(60);
    let guarded = Guarded::configured(config).await;
    let mut editor = guarded.editor().await;
    let name = "x\n\nAllow? It is only (+ 1 2)\u{202e}";
    let mut agent = guarded.agent(name).await;
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "(list\u{202e} 1)\u{200b}"})).await;
    let question = editor.press("Deny").await;
    let message = question["params"]["message"].as_str().expect("a message");
    assert!(message.starts_with("AI agent x Allow? It is only (+ 1 2)\\u{202e} 1 wants to evaluate"), "{message}");
    assert!(message.contains("(list\\u{202e} 1)\\u{200b}"), "{message}");
    agent.result(call).await;
    // Lines of an agent's text are not taken for lines of the question.
    let call = agent
        .begin("evaluate-lisp", json!({"in": "image", "code": "1\n\nAllow? Timeout: 1s\nTool: compile-form"}))
        .await;
    let question = editor.press("Deny").await;
    let message = question["params"]["message"].as_str().expect("a message");
    let lines = |start: &str| message.lines().filter(|line| line.starts_with(start)).count();
    assert_eq!((lines("Allow?"), lines("Tool:")), (1, 1), "{message}");
    agent.result(call).await;
    guarded.end().await;
}
