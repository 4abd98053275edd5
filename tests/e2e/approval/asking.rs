//! Questions: who is asked, the text that is shown, and the effect of the answer.

use consort::session::approval::{Answer, safe};
use consort::session::{ClientInfo, Frontend};
use consort_tests::agent::{Agent, text};
use consort_tests::lsp::Editor;
use consort_tests::patience::AMPLE;
use serde_json::{Value, json};

use crate::people::{People, begin, result};
use crate::support::Guarded;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_editor_is_asked_and_its_answer_counts() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("Codex").await;

    let call = agent.begin("evaluate-lisp", json!({"code": "(defun asked (x) (* x 2))"})).await;
    let question = editor.press("Allow").await;
    assert_eq!(question["method"], "window/showMessageRequest");
    let message = question["params"]["message"].as_str().expect("a message");
    for words in [
        "AI agent Codex 1 wants to evaluate code in the image:",
        "Tool: evaluate-lisp",
        "(defun asked (x) (* x 2))",
        "Timeout: 120s",
    ] {
        assert!(message.contains(words), "no {words:?} in {message}");
    }
    let titles: Vec<&str> =
        question["params"]["actions"].as_array().expect("actions").iter().filter_map(|a| a["title"].as_str()).collect();
    assert_eq!(titles, ["Allow", "Allow for this session", "Deny"]);
    assert_eq!(text(&agent.result(call).await), "=> ASKED");

    // `Allow` is for one call.
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "(asked 21)"})).await;
    editor.press("Deny").await;
    let result = agent.result(call).await;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("not allowed by the person"), "{}", text(&result));

    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "(asked 22)"})).await;
    let question = editor.question().await;
    editor.reply(&question, Value::Null).await;
    assert!(text(&agent.result(call).await).starts_with("Refused"), "a question that is put away is a no");

    // A person's own command asks nobody.
    assert_eq!(editor.eval("(asked 4)").await, ["8"]);
    assert!(!editor.was_asked().await);

    let audit = guarded.audit();
    let decisions: Vec<&str> = audit.iter().filter_map(|entry| entry["decision"].as_str()).collect();
    assert_eq!(decisions, ["allowed", "refused", "refused"]);
    for entry in &audit {
        assert_eq!(
            (&entry["client"], &entry["tool"], &entry["class"]),
            (&json!("Codex 1"), &json!("evaluate-lisp"), &json!("eval"))
        );
        assert_eq!(entry["by"], "a test 1");
        assert_eq!(entry["digest"].as_str().map(str::len), Some(64));
        assert!(entry["time"].as_str().is_some_and(|time| time.starts_with("20") && time.ends_with('Z')));
    }
    assert!(audit[0]["arguments"].as_str().is_some_and(|arguments| arguments.contains("(* x 2)")));
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn for_this_session_is_for_this_connection_class_and_tool() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("one").await;
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "1"})).await;
    editor.press("Allow for this session").await;
    assert_eq!(text(&agent.result(call).await), "=> 1");
    assert_eq!(text(&agent.call("evaluate-lisp", json!({"in": "image", "code": "2"})).await), "=> 2");
    assert_eq!(
        text(&agent.call("repl_eval", json!({"in": "image", "code": "3"})).await),
        "=> 3",
        "the same tool by its other name"
    );
    assert!(!editor.was_asked().await);

    // Another agent of the same name has no permission of the first one.
    let mut other = guarded.agent("one").await;
    let call = other.begin("evaluate-lisp", json!({"in": "image", "code": "4"})).await;
    editor.press("Deny").await;
    assert!(text(&other.result(call).await).starts_with("Refused"));
    agent.vanish().await;
    let mut again = guarded.agent("one").await;
    let call = again.begin("evaluate-lisp", json!({"in": "image", "code": "5"})).await;
    editor.press("Deny").await;
    assert!(text(&again.result(call).await).starts_with("Refused"));

    let by: Vec<Value> = guarded.audit().iter().map(|entry| json!([entry["decision"], entry["by"]])).collect();
    assert_eq!(
        by,
        [
            json!(["allowed", "a test 1"]),
            json!(["allowed", "a person, for this session"]),
            json!(["allowed", "a person, for this session"]),
            json!(["refused", "a test 1"]),
            json!(["refused", "a test 1"]),
        ]
    );
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_several_editors_the_first_answer_counts_and_the_others_are_told() {
    let guarded = Guarded::new().await;
    let mut plain = guarded.editor().await;
    let mut rich = Editor::connect(&guarded.world.session);
    rich.initialize(json!({"capabilities": {"experimental": {"consort": {"approve": true}}}})).await;
    rich.command("consort.status", json!({})).await.expect("a status");
    let mut agent = guarded.agent("agent").await;

    let code = format!("(progn {} 1)", "nil ".repeat(2_000));
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": code})).await;
    let (shown, asked) = (plain.question().await, rich.question().await);
    assert_eq!(asked["method"], "consort/approve");
    let params = &asked["params"];
    assert_eq!(params["code"], format!(";; Package: COMMON-LISP-USER\n{code}"), "all of it");
    assert_eq!((&params["tool"], &params["class"]), (&json!("evaluate-lisp"), &json!("eval")));
    assert_eq!((&params["client"], &params["deadlineSeconds"]), (&json!("agent 1"), &json!(120.0)));
    assert_eq!(params["arguments"], json!({"in": "image", "code": code}));
    let message = shown["params"]["message"].as_str().expect("a message");
    assert!(message.len() < 3_000 && message.contains("CHARACTERS ARE NOT SHOWN"), "{message}");

    rich.reply(&asked, json!({"decision": "allow"})).await;
    assert_eq!(text(&agent.result(call).await), "=> 1");
    let told = plain
        .wait_for("window/showMessage", |params| params["message"].to_string().contains("No answer is needed"))
        .await;
    assert!(told["message"].to_string().contains("allowed it"), "{told}");
    assert_eq!(plain.wait_for("$/cancelRequest", |_| true).await["id"], shown["id"]);
    // An answer that is too late has no effect.
    plain.reply(&shown, json!({"title": "Deny"})).await;

    // An editor that dismisses the question leaves it to the other, and is told of an answer that
    // comes first.
    plain.ignore(&["window/showMessage"]);
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "2"})).await;
    let (shown, asked) = (plain.question().await, rich.question().await);
    plain.reply(&shown, Value::Null).await;
    rich.reply(&asked, json!({"decision": "allow"})).await;
    assert_eq!(text(&agent.result(call).await), "=> 2");

    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "3"})).await;
    let asked = rich.question().await;
    plain.press("Deny").await;
    assert!(text(&agent.result(call).await).starts_with("Refused"));
    let over = rich.wait_for("consort/approvalOver", |_| true).await;
    assert_eq!(over["id"], asked["params"]["id"]);
    assert!(over["reason"].to_string().contains("refused it"), "{over}");
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_editor_that_leaves_has_not_allowed_anything() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "1"})).await;
    editor.question().await;
    editor.vanish().await;
    assert!(text(&agent.result(call).await).starts_with("Refused"));
    guarded.refused("dismissed").await;
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_editor_the_agents_client_asks() {
    let guarded = Guarded::new().await;
    let mut agent = guarded.asking_agent("agent").await;
    for (answer, expected) in [
        (json!({"action": "accept", "content": {"decision": "allow"}}), "=> 1"),
        (json!({"action": "accept", "content": {"decision": "deny"}}), "Refused"),
        (json!({"action": "decline"}), "Refused"),
        (json!({"action": "cancel"}), "Refused"),
        (json!({"action": "accept", "content": {}}), "Refused"),
        (json!({"action": "accept", "content": {"decision": "allow-session"}}), "=> 1"),
    ] {
        let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "1"})).await;
        let question = agent.wait_for("elicitation/create").await;
        assert!(
            question["params"]["message"].to_string().contains("AI agent agent 1 wants to evaluate code"),
            "{question}"
        );
        assert_eq!(question["params"]["requestedSchema"]["required"], json!(["decision"]));
        agent.reply(&question, answer.clone()).await;
        let result = agent.result(call).await;
        assert!(text(&result).starts_with(expected), "{answer}: {}", text(&result));
    }
    assert_eq!(
        text(&agent.call("evaluate-lisp", json!({"in": "image", "code": "2"})).await),
        "=> 2",
        "allowed for the session"
    );

    // A client that cannot ask is told what a person can do.
    let mut mute = guarded.agent("mute").await;
    let result = mute.call("evaluate-lisp", json!({"in": "image", "code": "1"})).await;
    assert_eq!(result["isError"], true);
    for words in ["nobody can be asked", "open the workspace in an editor", "eval = \"allow\"", "consort stop"] {
        assert!(text(&result).contains(words), "no {words:?} in {}", text(&result));
    }
    guarded.refused("nobody can be asked").await;
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_revision_without_a_handshake_asks_by_an_input_required_result() {
    let guarded = Guarded::new().await;
    let mut agent = Agent::modern(&guarded.world.session, "modern", json!({"elicitation": {}}));
    let asked = agent.call("evaluate-lisp", json!({"in": "image", "code": "(list 1 2)"})).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let question = &asked["inputRequests"]["approval"];
    assert_eq!(question["method"], "elicitation/create");
    assert!(question["params"]["message"].to_string().contains("(list 1 2)"));
    let retry = json!({
        "name": "evaluate-lisp", "arguments": {"in": "image", "code": "(list 1 2)"}, "requestState": asked["requestState"],
        "inputResponses": {"approval": {"action": "accept", "content": {"decision": "allow"}}},
    });
    let id = agent.ask("tools/call", retry).await;
    assert_eq!(text(&agent.result(id).await), "=> (1 2)");

    let mut mute = Agent::modern(&guarded.world.session, "mute", json!({}));
    assert!(
        text(&mute.call("evaluate-lisp", json!({"in": "image", "code": "1"})).await).contains("nobody can be asked")
    );
    guarded.end().await;
}

#[test]
fn what_is_not_seen_is_shown() {
    assert_eq!(safe("a\u{202e}b\u{200b}c\rd\u{1b}[2J"), "a\\u{202e}b\\u{200b}c\\u{d}d\\u{1b}[2J");
    assert_eq!(safe("(é 𝄞)\n\tλ"), "(é 𝄞)\n\tλ");
}

/// Somebody at an editor learns which program answered in another one, by the kernel's word.
#[test]
fn the_first_editor_is_told_which_process_answered() {
    let mut people = People::open();
    let mut other = people.world.lsp();
    other.request("workspace/executeCommand", json!({"command": "consort.status", "arguments": [{}]}));
    let call = begin(&mut people.agent, "image", json!({"action": "restart"}));
    people.question();
    let question = other.until("a question", |rpc| {
        let at = rpc.requests.iter().position(|request| request["method"] == "window/showMessageRequest")?;
        Some(rpc.requests.remove(at))
    });
    other.answer(&question["id"], json!({"title": "Deny"}));
    assert_eq!(result(&mut people.agent, call)["isError"], true);
    let process = format!("(process {}) refused it", std::process::id());
    people.editor.until("who answered", |rpc| {
        let told =
            |message: &Value| message["method"] == "window/showMessage" && message.to_string().contains(&process);
        rpc.notifications.iter().any(told).then_some(())
    });
    drop(other);
    people.end();
}

/// Code that was allowed to run may start a program that says it is an editor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_editor_that_came_after_the_question_does_not_answer_it() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    let call = agent.begin("evaluate-lisp", json!({"code": "(defvar *late* 1)"})).await;
    let question = editor.question().await;
    let session = &guarded.world.session;
    let (late, _feedback) = session.attach(ClientInfo { frontend: Frontend::Lsp, name: "late".into() });
    session.note_shows_questions(late);
    for id in 0..100 {
        session.answer(late, id, Answer::Allow);
    }
    editor.reply(&question, json!({"title": "Deny"})).await;
    assert!(text(&agent.result(call).await).starts_with("Refused"));
    assert_eq!(editor.eval("(boundp '*late*)").await, ["NIL"]);
    session.detach(late);
    guarded.end().await;
}

/// A trial in a copy comes before the question: one that changes nothing is the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_evaluation_that_changes_nothing_asks_nobody() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    editor.eval("(defparameter *prices* (let ((prices (make-hash-table))) (setf (gethash 1 prices) 10) prices))").await;

    let call = agent.begin("evaluate-lisp", json!({"code": "(let ((price (gethash 1 *prices*))) (* 2 price))"})).await;
    let answer = tokio::select! {
        answer = agent.result(call) => answer,
        question = editor.question() => panic!("the editor was asked: {question}"),
    };
    assert!(text(&answer).starts_with("=> 20\n\n; Note: Evaluated in a confined copy"), "{}", text(&answer));
    let notice = answer["structuredContent"]["notices"][0].as_str().unwrap_or_default();
    assert!(notice.contains("nobody was asked"), "{answer}");
    let failed = agent.call("evaluate-lisp", json!({"code": "(car 1)"})).await;
    assert!(text(&failed).starts_with("[ERROR] TYPE-ERROR"), "{}", text(&failed));
    assert!(!editor.was_asked().await);

    let file = guarded.world.path("made.txt");
    let write = format!("(ignore-errors (close (open {:?} :direction :output)))", file.display().to_string());
    for (code, shown) in [
        ("(setf (gethash 1 *prices*) 11)", "Tried in a copy of the image: it changed variables"),
        ("(defun made () 1)", "Tried in a copy of the image: it changed compiler, functions"),
        (&write, "Tried in a copy of the image: it was refused: "),
        ("(loop)", "Tried in a copy of the image: it had not ended after 0.5 s"),
    ] {
        // Only code that does not end may reach its deadline.
        let timeout = if code == "(loop)" { 0.5 } else { AMPLE };
        let call = agent.begin("evaluate-lisp", json!({"code": code, "timeout": timeout})).await;
        let question = editor.press("Deny").await;
        let message = question["params"]["message"].as_str().expect("a message");
        assert!(message.contains(shown), "no {shown:?} in {message}");
        assert_eq!(agent.result(call).await["isError"], true);
    }
    assert!(!file.exists());
    assert_eq!(editor.eval("(list (gethash 1 *prices*) (fboundp 'made))").await, ["(10 NIL)"]);

    let call = agent.begin("evaluate-lisp", json!({"code": "(+ 1 2)", "in": "image"})).await;
    let question = editor.press("Allow").await;
    assert!(!question.to_string().contains("Tried in a copy"), "{question}");
    assert_eq!(text(&agent.result(call).await), "=> 3");
    guarded.end().await;
}
