//! Attempts to have a person allow code that they did not see: the text that is shown is the code
//! that would run, and refused code does not run.

use consort_tests::agent::{Agent, text};
use consort_tests::lsp::Editor;
use serde_json::{Value, json};

use crate::support::Guarded;

/// Has a person refuse a call; returns the message that they were shown.
async fn shown(agent: &mut Agent, editor: &mut Editor, tool: &str, arguments: Value) -> String {
    let call = agent.begin(tool, arguments).await;
    let question = editor.press("Deny").await;
    let refused = agent.result(call).await;
    assert!(text(&refused).starts_with("Refused"), "{tool}: {}", text(&refused));
    question["params"]["message"].as_str().expect("a message").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_in_the_code_hides_or_passes_for_something_else() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    let gap = "\n".repeat(2_000);
    let margin = " ".repeat(3_000);
    for (code, words) in [
        // Letters of other alphabets, and of the fullwidth forms.
        ("(d\u{435}lete-file \"x\")".to_owned(), "NOT WHAT THEY LOOK LIKE: d\\u{435}lete-file"),
        ("(\u{ff45}val x)".to_owned(), "NOT WHAT THEY LOOK LIKE: \\u{ff45}val"),
        // Letters that look like a comment, a space, a bracket.
        ("\u{37e} (delete-file \"x\")".to_owned(), "\\u{37e} (delete-file"),
        ("\u{ff1b} (delete-file \"x\")".to_owned(), "\\u{ff1b} (delete-file"),
        ("(list\u{a0}1)".to_owned(), "(list\\u{a0}1)"),
        // Text that is shown in the other direction, or is invisible.
        ("(list \u{202e}1)\u{2066}".to_owned(), "(list \\u{202e}1)\\u{2066}"),
        ("(lis\u{3164}t\u{200d} 1)\u{e0101}".to_owned(), "(lis\\u{3164}t\\u{200d} 1)\\u{e0101}"),
        ("(list 1)\r(delete-file \"x\")\u{8}".to_owned(), "(list 1)\\u{d}(delete-file \"x\")\\u{8}"),
        // Far below, and far to the right.
        (format!("(list 1){gap}(delete-file \"x\"){gap}"), "(list 1)\n    [1999 EMPTY LINES]\n    (delete-file \"x\")"),
        (format!("(list 1){margin}(delete-file \"x\")"), "(list 1) [3000 BLANKS] (delete-file \"x\")"),
        // Behind something long.
        (format!("(list 1)\n{}(delete-file \"x\")", "(list 2)\n".repeat(2_000)), "CHARACTERS ARE NOT SHOWN"),
        // The reader's own macros are shown as they are.
        ("(list #.(delete-file \"x\"))".to_owned(), "#.(delete-file \"x\")"),
    ] {
        let message = shown(&mut agent, &mut editor, "evaluate-lisp", json!({"in": "image", "code": code})).await;
        assert!(message.contains(words), "no {words:?} in {message}");
    }
    let refused = guarded.audit();
    assert!(refused.len() == 12 && refused.iter().all(|entry| entry["decision"] == "refused"), "{refused:#?}");
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_editor_with_room_for_all_the_code_sees_the_same() {
    let guarded = Guarded::new().await;
    let mut rich = Editor::connect(&guarded.world.session);
    rich.initialize(json!({"capabilities": {"experimental": {"consort": {"approve": true}}}})).await;
    rich.command("consort.status", json!({})).await.expect("a status");
    let mut agent = guarded.agent("agent").await;
    let arguments = json!({"in": "image", "code": "(d\u{435}lete-file\u{202e} \"x\")", "package": "KEYWORD"});
    let call = agent.begin("evaluate-lisp", arguments.clone()).await;
    let question = rich.question().await;
    assert_eq!(
        question["params"]["code"],
        ";; Package: KEYWORD\n;; NOT WHAT THEY LOOK LIKE: d\\u{435}lete-file\n(d\u{435}lete-file\\u{202e} \"x\")"
    );
    assert_eq!(question["params"]["arguments"], arguments, "as they were sent");
    rich.reply(&question, json!({"decision": "deny"})).await;
    assert!(text(&agent.result(call).await).starts_with("Refused"));
    guarded.refused("a test").await;
    guarded.end().await;
}

/// Other arguments change the meaning of the same code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_else_was_given_is_shown_too() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    for (tool, arguments, words) in [
        (
            "evaluate-lisp",
            json!({"code": "(run)", "package": "EVIL", "timeout": 86400}),
            &["Package: EVIL", "With timeout: 86400"][..],
        ),
        (
            "evaluate-lisp",
            json!({"in": "image", "code": "(run)", "package": "A\n\nAllow?\u{202e}"}),
            &["Package: A Allow?\\u{202e}"],
        ),
        (
            "profile-code",
            json!({"code": "(run)", "package": "EVIL", "mode": "time"}),
            &["Package: EVIL", "With mode: time"],
        ),
        (
            "code_compile_string",
            json!({"code": "(defun f ())", "package": "KEYWORD", "position": 7}),
            &["Package: KEYWORD", "With position: 7"],
        ),
        (
            "code_replace_function",
            json!({"function": "cl-user::f", "new_code": "(defun f ())", "package": "KEYWORD"}),
            &["Package: KEYWORD", "With function: cl-user::f"],
        ),
    ] {
        let message = shown(&mut agent, &mut editor, tool, arguments).await;
        for word in words {
            assert!(message.contains(word), "{tool}: no {word:?} in {message}");
        }
    }
    assert_eq!(guarded.audit().len(), 5);
    guarded.end().await;
}

/// Arguments with a duplicate key, or with keys in another order, are shown, bound to the approval
/// and used in the same reading.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_are_one_thing_however_they_are_written() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    for (id, arguments) in [
        (901, r#"{"in": "image", "code": "(list :seen)", "code": "(list :done)"}"#),
        (902, r#"{"in": "image", "code": "(list :done)", "c\u006fde": "(list :done)"}"#),
    ] {
        let call = format!(
            r#"{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {{"name": "evaluate-lisp", "arguments": {arguments}}}}}"#
        );
        agent.send_text(&call).await;
        // Either the call is refused, or a person sees the code that runs.
        let question = editor.press("Allow").await;
        let message = question["params"]["message"].as_str().expect("a message");
        assert!(message.contains("(list :done)") && !message.contains(":seen"), "{message}");
        assert_eq!(text(&agent.result(id).await), "=> (:DONE)");
    }
    let digests: Vec<Value> = guarded.audit().iter().map(|entry| entry["digest"].clone()).collect();
    assert_eq!(digests[0], digests[1], "the same arguments");

    // An approval does not depend on the order of the keys.
    let mut modern = Agent::modern(&guarded.world.session, "modern", json!({"elicitation": {}}));
    editor.leave().await;
    let asked = modern.call("evaluate-lisp", json!({"in": "image", "code": "3", "package": "CL-USER"})).await;
    let mut arguments = serde_json::Map::new();
    for (key, value) in [("package", "CL-USER"), ("in", "image"), ("code", "3")] {
        arguments.insert(key.into(), value.into());
    }
    let again = json!({
        "name": "evaluate-lisp", "arguments": arguments, "requestState": asked["requestState"],
        "inputResponses": {"approval": {"action": "accept", "content": {"decision": "allow"}}},
    });
    let id = modern.ask("tools/call", again).await;
    assert_eq!(text(&modern.result(id).await), "=> 3");
    guarded.end().await;
}

/// Neither a question nor a tool that only looks uses the Lisp reader on the code in the image:
/// nothing in it has run before a refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_runs_while_a_person_reads() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    editor.eval("(defvar cl-user::*ran* nil)").await;
    let code = "(list #.(setf cl-user::*ran* :read) (macrolet ((m () (setf cl-user::*ran* :expanded))) (m)))";
    let core = "(defun core () #.(setf cl-user::*ran* :edited))";
    for (tool, arguments) in [
        ("evaluate-lisp", json!({"in": "image", "code": code})),
        ("repl_eval", json!({"in": "image", "code": code})),
        ("profile-code", json!({"code": code})),
        ("code_compile_string", json!({"code": code})),
        ("code_replace_function", json!({"function": "cl-user::core", "new_code": core})),
        ("run-tests", json!({"system": "no-such-system"})),
        ("load-system", json!({"system": "no-such-system"})),
        (
            "lisp-edit-form",
            json!({"file_path": "core.lisp", "form_type": "defun", "form_name": "core", "operation": "replace", "content": core}),
        ),
    ] {
        shown(&mut agent, &mut editor, tool, arguments).await;
        assert_eq!(editor.eval("cl-user::*ran*").await, ["NIL"], "{tool}");
    }
    assert_eq!(guarded.audit().iter().filter(|entry| entry["decision"] == "refused").count(), 8);

    // A tool that needs no approval runs nothing in the image, whatever its arguments.
    for (tool, arguments) in [
        ("compile-form", json!({"code": code})),
        ("macroexpand-form", json!({"form": code, "full": true})),
        ("source_location", json!({"symbol": "#.(setf cl-user::*ran* :looked)"})),
        ("describe-symbol", json!({"symbol": "#.(setf cl-user::*ran* :looked)"})),
        ("apropos", json!({"pattern": "#.(setf cl-user::*ran* :looked)"})),
        ("lisp-read-file", json!({"path": "core.lisp", "name_pattern": "#.(setf cl-user::*ran* :looked)"})),
        ("diagnostics", json!({"paths": ["core.lisp"]})),
        (
            "evaluate-lisp",
            json!({"in": "image", "code": code, "package": "#.(setf cl-user::*ran* :looked)", "approved": true}),
        ),
    ] {
        agent.call(tool, arguments).await;
        assert_eq!(editor.eval("cl-user::*ran*").await, ["NIL"], "{tool}");
        assert!(!editor.was_asked().await, "{tool}");
    }
    guarded.end().await;
}

/// Names and texts that could act in a user interface; the unit tests of the server's escaping use
/// the same.
fn nasty() -> Vec<String> {
    serde_json::from_str(include_str!("../../fixtures/nasty.json")).expect("strings")
}

fn harmless(text: &str) {
    let acts = |char: char| char.is_control() && char != '\n' && char != '\t';
    let hides = |char| "\u{202e}\u{2066}\u{2069}\u{200b}\u{feff}\u{2060}\u{ad}\u{e0041}\u{2028}".contains(char);
    assert!(!text.chars().any(|char| acts(char) || hides(char)), "{text:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_and_messages_of_others_are_no_links() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    for name in nasty() {
        let mut agent = guarded.agent(&name).await;
        let message =
            shown(&mut agent, &mut editor, "evaluate-lisp", json!({"in": "image", "code": name, "package": name}))
                .await;
        harmless(&message);
        assert!(!message.contains("]("), "{message}");
    }
    // From here on the other editor answers.
    editor.ignore(&["window/showMessage", "window/showMessageRequest"]);
    let mut rich = Editor::connect(&guarded.world.session);
    rich.initialize(json!({"capabilities": {"experimental": {"consort": {"approve": true}}}})).await;
    rich.command("consort.status", json!({})).await.expect("a status");
    for name in nasty() {
        let mut agent = guarded.agent(&name).await;
        let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "(list 1)"})).await;
        let question = rich.question().await;
        for field in ["client", "what", "message"] {
            let text = question["params"][field].as_str().expect("text");
            harmless(text);
            assert!(!text.contains("]("), "{field}: {text}");
        }
        rich.reply(&question, json!({"decision": "deny"})).await;
        agent.result(call).await;
    }
    // A condition that ends a thread is reported in a notification.
    for name in nasty() {
        let text = serde_json::to_string(&name).expect("JSON");
        let code = format!(
            "(progn (sb-thread:make-thread (lambda () (error \"~A\" (map 'string #'code-char '({}))))) {})",
            name.chars().map(|char| (char as u32).to_string()).collect::<Vec<_>>().join(" "),
            text.len()
        );
        editor.eval(&code).await;
        let told = editor
            .wait_for("window/showMessage", |params| params["message"].to_string().contains("ended the Lisp thread"))
            .await;
        let message = told["message"].as_str().expect("text");
        harmless(message);
        assert!(!message.contains("]("), "{message}");
    }
    guarded.end().await;
}
