//! Both front ends: an agent's operations are in the editor's log, and an editor's documents are in
//! the agent's answers, without a request to refresh.

use std::time::Duration;

use consort::config::approval::{Class, Setting};
use consort::config::{Config, Source};
use consort_tests::agent::{Agent, text};
use consort_tests::lsp::Editor;
use consort_tests::patience::{comes, soon};
use consort_tests::world::World;
use serde_json::{Value, json};

/// The one text of a resource, read as JSON.
async fn read(agent: &mut Agent, uri: &str) -> Value {
    let answer = agent.request("resources/read", json!({"uri": uri})).await;
    let contents = &answer["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "application/json", "{answer}");
    serde_json::from_str(contents["text"].as_str().expect("a text")).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_is_in_the_log_of_both_doors() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.ignore(&["consort/logEntry"]);
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    assert_eq!(editor.eval("(+ 1 2)").await, ["3"]);
    let known = editor.command("consort.log", json!({"follow": true})).await.expect("a log");
    let entry = &known["entries"][0];
    assert_eq!(
        (&entry["tool"], &entry["client"], &entry["frontend"]),
        (&json!("consort.eval"), &json!("a test 1"), &json!("lsp"))
    );
    assert_eq!(
        (&entry["code"], &entry["outcome"], &entry["status"]),
        (&json!("(+ 1 2)"), &json!("=> 3"), &json!("ok"))
    );

    assert_eq!(text(&agent.call("evaluate-lisp", json!({"code": "(list 4)"})).await), "=> (4)");
    agent.call("evaluate-lisp", json!({"code": "(/ 1 0)"})).await;
    let told = editor.wait_for("consort/logEntry", |entry| entry["code"] == "(list 4)").await;
    assert_eq!(
        (&told["tool"], &told["client"], &told["frontend"]),
        (&json!("evaluate-lisp"), &json!("agent 1"), &json!("mcp"))
    );
    let told = editor.wait_for("consort/logEntry", |entry| entry["code"] == "(/ 1 0)").await;
    assert_eq!(told["status"], "error");
    assert!(told["outcome"].to_string().contains("DIVISION-BY-ZERO"), "{told}");
    assert!(told["ms"].as_f64().is_some_and(|ms| ms >= 0.0));

    // A cancelled call is in the log too; a call that only reads is not.
    let call = agent.begin("evaluate-lisp", json!({"code": "(loop)"})).await;
    // A call that is cancelled before it has begun never ran.
    let begun = |status: &Value| status["work"].to_string().contains("(loop)");
    comes("the loop to run", async || {
        begun(&editor.command("consort.status", json!({})).await.expect("a status")).then_some(())
    })
    .await;
    agent.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call}})).await;
    assert_eq!(editor.wait_for("consort/logEntry", |entry| entry["code"] == "(loop)").await["status"], "cancelled");
    agent.call("compile-form", json!({"code": "(list 1)"})).await;
    assert_eq!(editor.eval("(list 5)").await, ["(5)"]);
    editor.wait_for("consort/logEntry", |entry| entry["code"] == "(list 5)").await;
    let log = read(&mut agent, "consort://log").await;
    let codes: Vec<&str> =
        log["entries"].as_array().expect("entries").iter().filter_map(|entry| entry["code"].as_str()).collect();
    assert_eq!(codes, ["(+ 1 2)", "(list 4)", "(/ 1 0)", "(loop)", "(list 5)"]);
    let later = editor
        .command("consort.log", json!({"since": known["last"], "limit": 2, "follow": false}))
        .await
        .expect("a log");
    assert_eq!(later["entries"].as_array().map(Vec::len), Some(2));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_knows_who_made_it() {
    let world = World::ready(&[
        ("lib.asd", "(asdf:defsystem \"lib\" :components ((:file \"lib\")))"),
        ("lib.lisp", "(defpackage :lib (:use :cl) (:export #:area))\n(in-package :lib)\n\n(defun area (r) (* r r))\n"),
    ])
    .await;
    let session = &world.session;
    let mut editor = Editor::start(session, json!({})).await;
    editor.ignore(&["window/showMessage"]);
    let mut agent = Agent::named(session, "agent", json!({})).await;
    let code = "(defpackage :app (:use :cl)) (in-package :app) (defun process (x) x) (progn (defvar *level* 1))";
    agent.call("evaluate-lisp", json!({"code": code})).await;
    let made = session.provenance("APP", "PROCESS");
    assert_eq!(made.len(), 1, "{made:?}");
    assert_eq!(
        (made[0].kind.as_str(), made[0].by.as_str(), made[0].how.as_str()),
        ("function", "agent 1", "evaluate-lisp")
    );
    assert_eq!(made[0].text, "(defun process (x) x)");
    assert_eq!(session.provenance("APP", "*LEVEL*").len(), 1);
    assert_eq!(session.provenance("KEYWORD", "APP")[0].kind, "package");
    // The agent's session keeps its package, so the next definition is known to be of the same
    // function; a nickname or a prefix makes no difference.
    agent.call("evaluate-lisp", json!({"code": "(defun process (x) (* 2 x))"})).await;
    editor.eval("(defun app::other () 1)").await;
    assert!(session.provenance("APP", "PROCESS")[0].text.contains("(* 2 x)"));
    assert_eq!(session.provenance("APP", "OTHER")[0].by, "a test 1");

    // A definition from a document has its file and line.
    editor.open(&world.uri("core.lisp"), "(in-package :app)\n\n(defun core () 3)\n").await;
    let place =
        json!({"code": "(defun core () 3)", "uri": world.uri("core.lisp"), "position": {"line": 2, "character": 0}});
    editor.command("consort.eval", place).await.expect("an outcome");
    let made = session.provenance("APP", "CORE");
    assert_eq!((made[0].file.clone(), made[0].line), (Some(world.path("core.lisp")), Some(3)), "{made:?}");

    // A definition from a file of a system.
    editor.command("consort.loadSystem", json!({"system": "lib"})).await.expect("an outcome");
    let made =
        comes("who made LIB:AREA", async || Some(session.provenance("LIB", "AREA")).filter(|made| !made.is_empty()))
            .await;
    assert_eq!(
        (made[0].how.as_str(), made[0].line, made[0].by.as_str()),
        ("loading the system lib", Some(4), "a test 1")
    );

    // Provenance says that an evaluation did not end; and an agent can read all of it.
    agent.call("evaluate-lisp", json!({"code": "(defun process (x) x 3) (error \"after\")"})).await;
    let facts = read(&mut agent, "consort://symbol/app%3A%3Aprocess").await;
    let maker = &facts["symbols"][0]["provenance"][0];
    assert!(maker["how"].to_string().contains("did not come to its end"), "{facts}");
    assert_eq!(facts["symbols"][0]["lambda_list"], "(x)");
    let package = read(&mut agent, "consort://package/lib").await;
    assert_eq!((&package["name"], &package["exports"][0]["name"]), (&json!("LIB"), &json!("AREA")));

    // A new image has no definitions that were only evaluated.
    editor.command("consort.restartImage", json!({})).await.expect("an image");
    assert!(session.provenance("APP", "PROCESS").is_empty());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_is_told_when_a_resource_is_another() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    // Whether updates are joined depends on the time between the changes.
    agent.call("evaluate-lisp", json!({"code": "(defun watched (x) x)"})).await;
    for uri in ["consort://log", "consort://symbol/cl-user%3A%3Awatched", "consort://diagnostics"] {
        let answer = agent.request("resources/subscribe", json!({"uri": uri})).await;
        assert!(answer.get("error").is_none(), "{answer}");
    }
    let unknown = agent.request("resources/subscribe", json!({"uri": "consort://nothing"})).await;
    assert!(unknown["error"]["message"].to_string().contains("There is no resource"), "{unknown}");
    let updated = |uri: &'static str| {
        move |message: &Value| message["method"] == "notifications/resources/updated" && message["params"]["uri"] == uri
    };

    editor.eval("(defun watched (x y) (list x y))").await;
    agent.next("an update of the log", updated("consort://log")).await;
    agent.next("an update of the symbol", updated("consort://symbol/cl-user%3A%3Awatched")).await;
    let facts = read(&mut agent, "consort://symbol/cl-user%3A%3Awatched").await;
    assert_eq!(facts["symbols"][0]["lambda_list"], "(x y)");
    editor.open(&world.uri("broken.lisp"), "(defun f (").await;
    agent.next("an update of the diagnostics", updated("consort://diagnostics")).await;
    agent.request("resources/unsubscribe", json!({"uri": "consort://log"})).await;

    // In the revision without a handshake the client listens.
    let mut modern = Agent::modern(&world.session, "modern", json!({}));
    let listening = modern
        .ask(
            "subscriptions/listen",
            json!({"notifications": {"resourceSubscriptions": ["consort://log", "consort://x"]}}),
        )
        .await;
    let accepted = modern.wait_for("notifications/subscriptions/acknowledged").await;
    assert_eq!(accepted["params"]["notifications"]["resourceSubscriptions"], json!(["consort://log"]), "{accepted}");
    // A state from before the listener began gives no update, so states are changed until one
    // comes.
    soon(async {
        loop {
            editor.eval("(list 1)").await;
            let told = modern.next("an update of the log", updated("consort://log"));
            if tokio::time::timeout(Duration::from_millis(700), told).await.is_ok() {
                break;
            }
        }
    })
    .await;
    modern
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": listening}}))
        .await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_sees_the_editors_text_and_place() {
    let world = World::ready(&[
        ("src/good.lisp", "(defun good () 1)\n"),
        ("src/bad.lisp", "(defun bad () (no-such-function-at-all))\n"),
        ("other/broken.lisp", "(defun broken (\n"),
    ])
    .await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;

    let all = agent.call("diagnostics", json!({})).await;
    let found = &all["structuredContent"];
    let names: Vec<&str> =
        found["files"].as_array().expect("files").iter().filter_map(|file| file["file"].as_str()).collect();
    assert_eq!(names, ["other/broken.lisp", "src/bad.lisp"], "{found}");
    assert_eq!(found["files"][1]["diagnostics"][0]["code"], "undefined-function");
    assert_eq!(
        (&found["files"][1]["diagnostics"][0]["line"], &found["files"][1]["diagnostics"][0]["column"]),
        (&json!(1), &json!(16))
    );
    assert!(
        found["files"][0]["diagnostics"][0]["fix"].as_str().is_some_and(|fix| fix.starts_with("Insert")),
        "{found}"
    );
    assert!(text(&all).contains("fix: Insert"), "{}", text(&all));
    assert_eq!(
        agent.call("diagnostics", json!({"paths": ["src"], "severity": "error"})).await["structuredContent"]["files"],
        json!([])
    );

    // Unsaved text is checked: the file has no errors, the editor's text has one.
    let uri = world.uri("src/good.lisp");
    editor.open(&uri, "(defun good () 1)\n").await;
    editor.change(&uri, 2, [0, 15, 0, 16], "(also-no-such-function)").await;
    // A change has no answer, so a request behind it is waited for.
    editor.command("consort.status", json!({})).await.expect("a status");
    let one = agent.call("diagnostics", json!({"paths": ["src/good.lisp"]})).await;
    let file = &one["structuredContent"]["files"][0];
    assert_eq!(
        (&file["unsaved"], &file["diagnostics"][0]["code"]),
        (&json!(true), &json!("undefined-function")),
        "{one}"
    );
    for outside in ["../../etc/passwd", "/etc/passwd", "src/missing.lisp"] {
        let refused = agent.call("diagnostics", json!({"paths": [outside]})).await;
        assert_eq!(refused["isError"], true, "{refused}");
    }

    // The person's position is in characters, whatever unit the editor uses.
    let none = agent.call("editor-context", json!({})).await;
    assert_eq!(none["structuredContent"]["editors"], json!([]));
    editor.change(&uri, 3, [0, 0, 0, 0], "\"𝄞\" ").await;
    let selection = json!({"start": {"line": 0, "character": 5}, "end": {"line": 0, "character": 18}});
    let place = json!({"uri": uri, "selection": selection, "visibleRange": {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}});
    editor.command("consort.editorContext", place).await.expect("nothing");
    let context = agent.call("editor-context", json!({})).await;
    let place = &context["structuredContent"]["editors"][0];
    assert_eq!(place["selection"], json!(["1:5", "1:18"]), "{context}");
    assert_eq!(place["selected"], "(defun good (");
    assert_eq!((&place["editor"], &place["visible_lines"]), (&json!("a test 1"), &json!([1, 2])));
    let documents = &context["structuredContent"]["documents"];
    assert_eq!((&documents[0]["unsaved"], &documents[0]["file"]), (&json!(true), &json!(world.path("src/good.lisp"))));
    assert!(text(&context).contains("a test 1 is in") && text(&context).contains("unsaved"), "{}", text(&context));
    editor.leave().await;
    let gone = agent.call("editor-context", json!({})).await;
    assert_eq!(
        (&gone["structuredContent"]["editors"], &gone["structuredContent"]["documents"]),
        (&json!([]), &json!([]))
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_door_defines_the_other_has_unasked() {
    let mut config = Config::default();
    config.approval.set(Class::ModifyRunningCode, Setting::Allow, Source::User).expect("a person may");
    let world = World::configured(&[], config).await;
    world.is_ready().await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    let uri = world.uri("a.lisp");
    let hover = json!({"textDocument": {"uri": uri}, "position": {"line": 0, "character": 16}});
    editor.open(&uri, "(defun user () (together-one 1))\n").await;
    editor.diagnostics(&uri, |_, lines| lines.iter().any(|line| line.ends_with(" undefined-function"))).await;

    // A function is evaluated by the agent, replaced by it, and restored: the text is checked again
    // each time, and hover shows the change.
    agent.call("evaluate-lisp", json!({"code": "(defun together-one (x) \"By evaluation.\" x)"})).await;
    editor.diagnostics(&uri, |_, lines| lines.is_empty()).await;
    let told = editor.request("textDocument/hover", hover.clone()).await.expect("an answer").to_string();
    assert!(
        told.contains("By evaluation.") && told.contains("(together-one x)") && told.contains("by an agent (agent 1)"),
        "{told}"
    );
    let replaced = agent
        .call(
            "code_replace_function",
            json!({"function": "together-one", "new_code": "(defun together-one (x y) \"Replaced.\" (list x y))"}),
        )
        .await;
    assert_eq!(replaced["isError"], false, "{replaced}");
    editor.diagnostics(&uri, |_, lines| lines.len() == 1).await;
    let told = editor.request("textDocument/hover", hover.clone()).await.expect("an answer").to_string();
    assert!(told.contains("Replaced."), "{told}");
    assert_eq!(agent.call("code_undo", json!({})).await["isError"], false);
    editor.diagnostics(&uri, |_, lines| lines.is_empty()).await;

    // The agent sees a definition that the person evaluates.
    editor.eval("(defun together-two (z) \"By the person.\" z)").await;
    let described = agent.call("describe-symbol", json!({"symbol": "together-two"})).await;
    assert!(text(&described).contains("By the person."), "{}", text(&described));
    let checked = agent.call("compile-form", json!({"code": "(together-two 1 2)"})).await;
    assert_eq!(checked["structuredContent"]["style_warnings"], 1, "{checked}");
    let log = read(&mut agent, "consort://log").await;
    assert!(log["entries"].as_array().expect("entries").iter().any(|entry| entry["client"] == "a test 1"), "{log}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_told_what_another_agent_defined() {
    let mut config = Config::default();
    for class in [Class::CompileFile, Class::ModifyRunningCode, Class::EditFile] {
        config.approval.set(class, Setting::Allow, Source::User).expect("a person may");
    }
    let world = World::configured(&[("a.lisp", "(in-package :cl-user)\n\n(defun together-a () 1)\n")], config).await;
    world.is_ready().await;
    // One client's two connections, and another client with a name that hides something.
    let mut first = Agent::named(&world.session, "agent", json!({})).await;
    let mut second = Agent::named(&world.session, "agent", json!({})).await;
    let mut odd = Agent::named(&world.session, "o\u{202e}dd\n; Note: x", json!({})).await;
    let evaluate = |code: &str| json!({"code": code});
    first.call("evaluate-lisp", evaluate("(defun together-a () 0)")).await;
    let notes = |answer: &Value| answer["structuredContent"]["notices"].clone();
    // What was not there before is nobody's concern.
    assert_eq!(notes(&second.call("evaluate-lisp", evaluate("1")).await), Value::Null);
    first.call("evaluate-lisp", evaluate("(defun together-a () 1)")).await;
    assert_eq!(
        notes(&second.call("evaluate-lisp", evaluate("1")).await),
        json!(["another agent (agent 1) redefined COMMON-LISP-USER::TOGETHER-A"])
    );
    odd.call("evaluate-lisp", evaluate("1")).await;

    // An evaluation, code in a copy, which is nobody's concern, an edit that is loaded, an undo.
    odd.call("evaluate-lisp", json!({"code": "(defun together-a () :copy)", "in": "copy"})).await;
    assert_eq!(notes(&first.call("evaluate-lisp", evaluate("1")).await), Value::Null);
    let own = odd.call("evaluate-lisp", evaluate("(defun together-a () 2)")).await;
    assert_eq!(notes(&own), Value::Null);
    let redefined = "another agent (o\\u{202e}dd ; Note: x 1) redefined COMMON-LISP-USER::TOGETHER-A";
    assert_eq!(notes(&first.call("describe-symbol", json!({"symbol": "together-a"})).await), json!([redefined]));
    assert_eq!(notes(&first.call("evaluate-lisp", evaluate("1")).await), Value::Null);
    let edit = json!({"path": "a.lisp", "form_type": "defun", "form_name": "together-a",
                      "content": "(defun together-a () 3)", "load": true});
    let edited = odd.call("lisp-edit-form", edit).await;
    assert_eq!(edited["isError"], false, "{edited}");
    assert_eq!(notes(&first.call("evaluate-lisp", evaluate("1")).await), json!([redefined]));
    assert_eq!(notes(&odd.call("code_undo", json!({})).await), Value::Null);
    assert_eq!(notes(&first.call("evaluate-lisp", evaluate("1")).await), json!([redefined]));
    let code = json!({"code": "(defun together-new () 3)"});
    assert_eq!(odd.call("code_compile_string", code).await["isError"], false);
    odd.call("code_undo", json!({})).await;
    let told = notes(&first.call("evaluate-lisp", evaluate("1")).await);
    assert!(told.to_string().contains("removed COMMON-LISP-USER::TOGETHER-NEW"), "{told}");
    world.end().await;
}

/// The message of the warning about stale code in an outcome.
fn stale(outcome: &Value) -> Option<&str> {
    let warnings = outcome["warnings"].as_array()?;
    warnings.iter().find(|warning| warning["type"] == "STALE-CODE")?["message"].as_str()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_compiled_with_a_replaced_definition_is_told() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    let both = "(defmacro together-m (x) `(list ,x))\n(defun together-user (x) (together-m x))";
    let first = agent.call("evaluate-lisp", json!({"code": both})).await;
    assert_eq!(stale(&first["structuredContent"]), None, "{first}");
    let user = "function COMMON-LISP-USER::TOGETHER-USER expanded COMMON-LISP-USER::TOGETHER-M";
    let replaced = agent.call("evaluate-lisp", json!({"code": "(defmacro together-m (x) `(vector ,x))"})).await;
    let message = stale(&replaced["structuredContent"]).unwrap_or_default();
    assert!(message.contains(user) && message.contains("code_compile_string"), "{replaced}");
    assert!(text(&replaced).contains(message), "{replaced}");
    // The same text replaces nothing.
    let again = editor.command("consort.eval", json!({"code": "(defmacro together-m (x)\n `(vector ,x))"})).await;
    assert_eq!(stale(&again.expect("an outcome")), None);
    let replaced = editor.command("consort.eval", json!({"code": "(defmacro together-m (x) `(cons ,x 1))"})).await;
    let replaced = replaced.expect("an outcome");
    let message = stale(&replaced).unwrap_or_default();
    assert!(message.contains(user) && message.contains("consort.recompileCallers"), "{replaced}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_tells_which_definitions_are_not_those_of_unchanged_files() {
    let world = World::ready(&[
        ("tg-shop.asd", "(asdf:defsystem \"tg-shop\" :serial t :components ((:file \"base\") (:file \"shop\")))"),
        ("base.lisp", "(defpackage :tg-shop (:use :cl))\n(in-package :tg-shop)\n\n(defun discount () 1)\n"),
        ("shop.lisp", "(in-package :tg-shop)\n\n(defun price () 1)\n"),
    ])
    .await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.ignore(&["window/showMessage"]);
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    editor.command("consort.loadSystem", json!({"system": "tg-shop"})).await.expect("it is loaded");
    let replacing = json!({"code": "(defun discount () 2)", "package": "TG-SHOP"});
    agent.call("evaluate-lisp", replacing).await;
    let kept = "TG-SHOP::DISCOUNT (base.lisp:4, agent 1)";
    // Another file has changed. A load that loads nothing changes nothing in what is known.
    std::fs::write(world.path("shop.lisp"), "(in-package :tg-shop)\n\n(defun price () 10)\n").expect("a file");
    let reloaded = editor.command("consort.reloadSystem", json!({"system": "tg-shop"})).await.expect("a report");
    assert_eq!(reloaded["kept"], json!([kept]), "{reloaded}");
    let is_told = |message: &Value| message["message"].to_string().contains(kept);
    editor.wait_for("window/showMessage", is_told).await;
    editor.command("consort.loadSystem", json!({"system": "tg-shop"})).await.expect("it is loaded");
    editor.wait_for("window/showMessage", is_told).await;
    assert_eq!(editor.eval("(list (tg-shop::discount) (tg-shop::price))").await, ["(2 10)"]);

    let whole = json!({"system": "tg-shop", "force": true});
    let reloaded = editor.command("consort.reloadSystem", whole).await.expect("a report");
    assert_eq!(reloaded["kept"], Value::Null, "{reloaded}");
    assert_eq!(editor.eval("(list (tg-shop::discount) (tg-shop::price))").await, ["(1 10)"]);
    world.end().await;
}
