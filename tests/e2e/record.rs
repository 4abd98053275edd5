//! `record`: code and tests are recorded in a copy of the live image, and agents query the
//! recordings.

use consort_tests::installation::Installation;
use consort_tests::patience::{AMPLE, found, until};
use consort_tests::recorded_exits::{CALLS, CODE, NAME, TEXT, VALUE};
use serde_json::{Value, json};

const FILE: &str = "(defpackage :shop (:use :cl))
(in-package :shop)
(defvar *sold* 0)
(defun price (item)
  (getf item :price))
(defun total (items)
  (let ((sum 0))
    (dolist (item items sum)
      (incf *sold*)
      (setf sum (+ sum (price item))))))
";

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap_or_default()
}

#[test]
fn a_failing_run_is_recorded_and_asked_about() {
    let world = Installation::new();
    let path = world.write("shop.lisp", FILE);
    world.configure("[approval]\neval = \"allow\"\n");
    let mut agent = world.mcp();
    let mut call =
        |name: &str, arguments: Value| agent.request("tools/call", json!({"name": name, "arguments": arguments}));
    call("evaluate-lisp", json!({"code": format!("(load {:?})", path.display().to_string())}));

    let code = "(shop::total '((:price 3) (:price 4) (:cost 5)))";
    let recorded = call("record", json!({"code": code, "timeout": AMPLE}));
    let facts = &recorded["structuredContent"];
    assert_eq!(recorded["isError"], true, "{recorded}");
    assert_eq!(facts["outcome"]["error"]["type"], "TYPE-ERROR", "{recorded}");
    assert_eq!(facts["definitions"], json!(["shop::total", "shop::price"]), "{recorded}");
    let number = &facts["recording"];
    // The first answer has the place of the error, with the variables.
    let error = &facts["answer"]["rows"][0];
    assert_eq!((&error["kind"], &error["position"]), (&json!("signal"), &json!([10, 17, 10, 37])), "{recorded}");
    assert!(error["value"].as_str().unwrap_or_default().contains("type-error datum nil"), "{recorded}");
    assert!(text(&recorded).contains("SUM = 7"), "{}", text(&recorded));
    assert!(text(&recorded).contains("[shop.lisp:10:17]"), "{}", text(&recorded));

    let mut ask = |arguments: Value| {
        let mut all = json!({"recording": number});
        for (key, value) in arguments.as_object().expect("an object") {
            all[key] = value.clone();
        }
        call("record", all)
    };
    let values = |answer: &Value| -> Vec<String> {
        let rows = answer["structuredContent"]["rows"].as_array().cloned().unwrap_or_default();
        rows.iter().map(|row| row["value"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let tree = ask(json!({}));
    assert_eq!(values(&tree)[2..], ["=> 3", "=> 4", "=> nil"], "{tree}");
    assert_eq!(values(&ask(json!({"query": "values", "of": "(price item)"}))), ["=> 3", "=> 4", "=> nil"]);
    assert_eq!(values(&ask(json!({"query": "values", "of": "shop.lisp:10:24"}))).len(), 3);
    assert_eq!(values(&ask(json!({"query": "history", "of": "sum"}))), ["0", "3", "7"]);
    let when = ask(json!({"query": "when", "of": "(> sum 5)"}));
    let event = when["structuredContent"]["event"].as_u64().expect("an event");
    assert_eq!(values(&when), ["=> 7"], "{when}");
    let at = ask(json!({"query": "event", "of": event.to_string()}));
    assert!(text(&at).contains("within (shop::total ((:price 3) (:price 4) (:cost 5)))"), "{}", text(&at));
    let before = ask(json!({"query": "event", "of": (event - 1).to_string()}));
    assert_eq!(before["structuredContent"]["rows"][0]["text"], "(+ sum (price item))", "{before}");
    // A condition that is never true, one that fails, and questions without an answer.
    assert!(text(&ask(json!({"query": "when", "of": "(> sum 50)"}))).contains("there is no such moment"));
    assert!(text(&ask(json!({"query": "when", "of": "(car sum)"}))).contains("The condition failed at"));
    for (wrong, why) in [
        (json!({"query": "history"}), "`of` is missing"),
        (json!({"query": "history", "of": "nothing"}), "no recorded definition has a variable nothing"),
        (json!({"query": "event", "of": "#1000000"}), "is not kept"),
        (json!({"recording": 99}), "There is no recording 99"),
    ] {
        let answer = ask(wrong.clone());
        assert_eq!(answer["isError"], true, "{wrong}: {answer}");
        assert!(text(&answer).to_lowercase().contains(&why.to_lowercase()), "{wrong}: {}", text(&answer));
    }
    // The newest four are kept.
    for _ in 0..4 {
        assert_eq!(call("record", json!({"code": "(shop::total '())", "timeout": AMPLE}))["isError"], false);
    }
    let gone = call("record", json!({"recording": number}));
    assert!(text(&gone).contains("There is no recording"), "{}", text(&gone));

    // The image has not changed: nothing was sold, and the functions have no probes.
    let now = call("evaluate-lisp", json!({"code": "(list shop::*sold* (shop::total '((:price 1))))"}));
    assert!(text(&now).starts_with("=> (0 1)"), "{}", text(&now));
    drop(agent);
    world.finish();
}

#[test]
fn an_agent_asks_about_exits_and_handled_conditions() {
    let world = Installation::new();
    let path = world.write(NAME, TEXT);
    world.configure("[approval]\neval = \"allow\"\n");
    let mut agent = world.mcp();
    let mut call =
        |name: &str, arguments: Value| agent.request("tools/call", json!({"name": name, "arguments": arguments}));
    call("evaluate-lisp", json!({"code": format!("(load {:?})", path.display().to_string())}));
    let recorded = call("record", json!({"code": CODE, "timeout": AMPLE}));
    let facts = &recorded["structuredContent"];
    assert_eq!(facts["outcome"]["values"], json!([VALUE]), "{recorded}");
    let number = facts["recording"].clone();
    let mut ask = |query: &str, of: Value| {
        let answer = call("record", json!({"recording": number, "query": query, "of": of}));
        let rows = answer["structuredContent"]["rows"].as_array().cloned().unwrap_or_default();
        let row = |row: &Value| {
            format!("{} {}", row["text"].as_str().unwrap_or_default(), row["value"].as_str().unwrap_or_default())
        };
        rows.iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(ask("tree", Value::Null)[1..], *CALLS);
    // Of two conditions that were handled, the last one; with the calls around it.
    let error = ask("error", Value::Null);
    assert_eq!(
        error[..2],
        ["(error \"boom ~A\" n) signals #<simple-error format-control \"boom ~A\" format-arguments (3)>", "N 3"]
    );
    assert_eq!(error[2..4], [CALLS[5], CALLS[4]]);
    // The form that was left gave no value; the one that caught it did, and so did the cleanup.
    assert!(ask("values", json!("exits.lisp:9:3")).is_empty());
    assert_eq!(ask("values", json!("exits.lisp:6:9")), ["(catch 'out ... => (:thrown 1)"]);
    assert_eq!(
        ask("history", json!("seen")),
        ["seen in (exits::cleaned 4) nil", "seen in (exits::cleaned 4) ((:cleanup 4))"]
    );
    assert_eq!(ask("when", json!("(consp seen)")), ["(push (list :cleanup n) seen) => ((:cleanup 4))"]);
    drop(agent);
    world.finish();
}

#[test]
fn nobody_is_asked_and_the_copy_is_confined() {
    let world = Installation::new();
    let victim = world.write("precious.txt", "precious");
    world.configure("[approval]\neval = \"deny\"\n");
    let mut agent = world.mcp();
    let mut call = |arguments: Value| agent.request("tools/call", json!({"name": "record", "arguments": arguments}));
    let plain = call(json!({"code": "(list (+ 1 2))", "timeout": AMPLE}));
    assert!(plain["isError"] == false && text(&plain).starts_with("=> (3)"), "{plain}");
    assert!(text(&plain).contains("No definition was recorded"), "{}", text(&plain));
    let number = &plain["structuredContent"]["recording"];
    let values = call(json!({"recording": number, "query": "values", "of": "(+ 1 2)"}));
    assert_eq!(values["structuredContent"]["rows"][0]["value"], "=> 3", "{values}");
    let delete = format!("(delete-file {:?})", victim.display().to_string());
    let refused = call(json!({"code": delete, "timeout": AMPLE}));
    assert!(refused["isError"] == true && text(&refused).contains("is confined"), "{refused}");
    assert_eq!(std::fs::read_to_string(&victim).expect("the file"), "precious");
    let endless = call(json!({"code": "(loop)", "timeout": 2}));
    assert!(text(&endless).contains("[ERROR] TIMEOUT"), "{endless}");
    drop(agent);
    world.finish();
}

#[test]
fn an_editor_records_the_form_at_a_place() {
    let world = Installation::new();
    let source = format!("{FILE}\n(total '((:price 3) (:price 4)))\n");
    let path = world.write("shop.lisp", &source);
    let uri = world.uri("shop.lisp");
    let mut editor = world.lsp();
    editor.notify(
        "textDocument/didOpen",
        json!({"textDocument": {"uri": uri, "languageId": "commonlisp", "version": 1, "text": source}}),
    );
    let mut command = |name: &str, argument: Value| {
        editor.request("workspace/executeCommand", json!({"command": name, "arguments": [argument]}))
    };
    let load = format!("(load {:?})", path.display().to_string());
    command("consort.eval", json!({"code": load}));
    let recorded = command("consort.record", json!({"uri": uri, "position": {"line": 11, "character": 3}}));
    let facts = &recorded["recording"];
    assert_eq!(facts["outcome"]["values"], json!(["7"]), "{recorded}");
    let rows = facts["answer"]["rows"].as_array().expect("rows");
    let texts: Vec<&str> = rows.iter().filter_map(|row| row["text"].as_str()).collect();
    let total = "(shop::total ((:price 3) (:price 4)))";
    assert_eq!(texts, ["the form", total, "(shop::price (:price 3))", "(shop::price (:price 4))"], "{recorded}");
    assert_eq!(rows[0]["position"], json!([12, 1, 12, 33]), "{recorded}");
    assert_eq!(rows[0]["file"], json!(path), "{recorded}");
    let asked = json!({"recording": facts["recording"], "query": "history", "of": "sum"});
    let history = command("consort.recordingQuery", asked);
    let became: Vec<&str> =
        history["answer"]["rows"].as_array().expect("rows").iter().filter_map(|row| row["value"].as_str()).collect();
    assert_eq!(became, ["0", "3", "7"], "{history}");
    drop(editor);
    world.finish();
}

/// A server's loop: a thread of the program that computes the price of each request.
const SERVER: &str = "(progn
  (defvar cl-user::*asked* nil)
  (defvar cl-user::*answers* '())
  (sb-thread:make-thread
    (lambda ()
      (loop until (eq cl-user::*asked* :stop)
            do (let ((items (shiftf cl-user::*asked* nil)))
                 (when (consp items) (push (ignore-errors (shop::total items)) cl-user::*answers*)))
               (sleep 0.01)))
    :name \"shop server\")
  :started)";

#[test]
fn the_next_call_in_a_servers_thread_is_recorded_for_an_agent() {
    let world = Installation::new();
    let path = world.write("shop.lisp", FILE);
    world.configure("[approval]\neval = \"allow\"\nmodify-running-code = \"allow\"\n");
    let mut agent = world.mcp();
    let mut call =
        |name: &str, arguments: Value| agent.request("tools/call", json!({"name": name, "arguments": arguments}));
    call(
        "evaluate-lisp",
        json!({"code": format!("(load (compile-file {:?} :output-file {:?}))", path.display().to_string(), world.path("shop.fasl").display().to_string())}),
    );
    call("evaluate-lisp", json!({"code": SERVER}));

    let begun = call("record", json!({"next": "shop::total", "timeout": AMPLE}));
    assert_eq!((&begun["isError"], &begun["structuredContent"]["waiting"]), (&json!(false), &json!(true)), "{begun}");
    let number = &begun["structuredContent"]["recording"];
    let early = call("record", json!({"recording": number}));
    assert!(early["isError"] == true && text(&early).contains("was not made yet"), "{early}");
    let second = call("record", json!({"next": "shop::price"}));
    assert!(second["isError"] == true && text(&second).contains("waited for already"), "{second}");

    call("evaluate-lisp", json!({"code": "(setf cl-user::*asked* '((:price 3) (:price 4)))"}));
    let tree = found("the recording", || {
        let answer = call("record", json!({"recording": number}));
        (answer["isError"] == false).then_some(answer)
    });
    let rows = tree["structuredContent"]["rows"].as_array().cloned().unwrap_or_default();
    let values: Vec<&str> = rows.iter().filter_map(|row| row["value"].as_str()).collect();
    assert_eq!(values, ["=> 7", "=> 3", "=> 4"], "{tree}");
    let when = call("record", json!({"recording": number, "query": "when", "of": "(> sum 5)"}));
    assert_eq!(when["structuredContent"]["rows"][0]["value"], "=> 7", "{when}");
    // The call was recorded in the image, so its side effects stay. The thread keeps the value once
    // the recording has ended.
    until("the value in the thread", || {
        let sold = call("evaluate-lisp", json!({"code": "(list shop::*sold* cl-user::*answers*)"}));
        text(&sold).starts_with("=> (2 (7))")
    });

    // A call that fails, in the same thread; and a wait that is cancelled.
    let begun = call("record", json!({"next": "shop::total", "timeout": AMPLE}));
    let number = &begun["structuredContent"]["recording"];
    call("evaluate-lisp", json!({"code": "(setf cl-user::*asked* '((:price 3) (:cost 4)))"}));
    let error = found("the recording of the error", || {
        let answer = call("record", json!({"recording": number, "query": "error"}));
        (answer["isError"] == false).then_some(answer)
    });
    assert!(text(&error).contains("SUM = 3"), "{}", text(&error));
    let begun = call("record", json!({"next": "shop::total"}));
    let number = &begun["structuredContent"]["recording"];
    assert_eq!(call("record", json!({"recording": number, "query": "cancel"}))["isError"], false);
    let gone = found("the end of the wait", || {
        let answer = call("record", json!({"recording": number}));
        text(&answer).contains("cancelled").then_some(answer)
    });
    assert_eq!(gone["isError"], true, "{gone}");
    let refused = call("record", json!({"next": "shop::nothing"}));
    assert!(refused["isError"] == true && text(&refused).contains("no function shop::nothing"), "{refused}");
    // A wait that was cancelled leaves nothing, and the next call can be waited for.
    let begun = call("record", json!({"next": "shop::total"}));
    let number = &begun["structuredContent"]["recording"];
    assert_eq!(call("record", json!({"recording": number, "query": "cancel"}))["isError"], false);
    // The image may still end the wait that was cancelled.
    let begun = found("the next wait", || {
        let begun = call("record", json!({"next": "shop::price"}));
        (begun["isError"] == false).then_some(begun)
    });
    let number = &begun["structuredContent"]["recording"];
    assert_eq!(call("record", json!({"recording": number, "query": "cancel"}))["isError"], false);
    call("evaluate-lisp", json!({"code": "(setf cl-user::*asked* :stop)"}));
    until("plain definitions", || {
        text(&call("evaluate-lisp", json!({"code": "consort::*awaited*"}))).starts_with("=> NIL")
    });
    drop(agent);
    world.finish();
}

#[test]
fn a_person_is_asked_before_an_agent_records_a_call() {
    let world = Installation::new();
    let path = world.write("shop.lisp", FILE);
    world.configure("[approval]\neval = \"allow\"\nmodify-running-code = \"deny\"\n");
    let mut agent = world.mcp();
    let mut call =
        |name: &str, arguments: Value| agent.request("tools/call", json!({"name": name, "arguments": arguments}));
    call("evaluate-lisp", json!({"code": format!("(load {:?})", path.display().to_string())}));
    let denied = call("record", json!({"next": "shop::total"}));
    assert_eq!(denied["isError"], true, "{denied}");
    let plain = call("evaluate-lisp", json!({"code": "consort::*awaited*"}));
    assert!(text(&plain).starts_with("=> NIL"), "{plain}");
    drop(agent);
    world.finish();
}

#[test]
fn an_editor_records_the_next_call_or_cancels() {
    let world = Installation::new();
    let path = world.write("shop.lisp", FILE);
    let mut editor = world.lsp();
    let command = |name: &str, argument: Value| json!({"command": name, "arguments": [argument]});
    let eval = |code: &str| command("consort.eval", json!({"code": code}));
    let load = format!(
        "(load (compile-file {:?} :output-file {:?}))",
        path.display().to_string(),
        world.path("shop.fasl").display().to_string()
    );
    editor.request("workspace/executeCommand", eval(&load));
    let waits = "(let ((it consort::*awaited*)) (and it (eq (consort::awaited-state it) :waiting)))";

    let id = editor
        .begin("workspace/executeCommand", command("consort.record", json!({"call": "shop::total", "timeout": AMPLE})));
    until("the wait", || editor.request("workspace/executeCommand", eval(waits))["values"][0] == "T");
    editor.request("workspace/executeCommand", eval("(shop::total '((:price 3)))"));
    let recorded = &editor.wait(id)["result"]["recording"].clone();
    assert_eq!(recorded["outcome"]["values"], json!(["3"]), "{recorded}");
    assert_eq!(recorded["call"]["function"], "shop::total", "{recorded}");
    let texts: Vec<&str> =
        recorded["answer"]["rows"].as_array().expect("rows").iter().filter_map(|row| row["text"].as_str()).collect();
    assert_eq!(texts, ["(shop::total ((:price 3)))", "(shop::price (:price 3))"], "{recorded}");

    let id = editor.begin("workspace/executeCommand", command("consort.record", json!({"call": "shop::total"})));
    until("the second wait", || editor.request("workspace/executeCommand", eval(waits))["values"][0] == "T");
    editor.notify("$/cancelRequest", json!({"id": id}));
    assert!(editor.wait(id)["error"].is_object());
    until("plain definitions", || {
        editor.request("workspace/executeCommand", eval("consort::*awaited*"))["values"][0] == "NIL"
    });
    drop(editor);
    world.finish();
}

const SAME_NAMES: &str = "(progn
  (asdf:initialize-source-registry
   '(:source-registry (:tree \"/usr/share/common-lisp/source/\") :ignore-inherited-configuration))
  (asdf:load-system \"fiveam\")
  (defpackage :one (:use :cl)) (defpackage :two (:use :cl))
  (eval (read-from-string \"(progn (fiveam:test one::same (fiveam:is (= 1 1))) (fiveam:test two::same (fiveam:is (= 1 2))))\"))
  :ready)";

#[test]
fn an_editor_records_the_test_of_the_package_at_the_position() {
    let world = Installation::new();
    let text = "(in-package :one)\n\n(in-package :two)\n";
    world.write("tests.lisp", text);
    let uri = world.uri("tests.lisp");
    let mut editor = world.lsp();
    let item = json!({"uri": uri, "languageId": "commonlisp", "version": 1, "text": text});
    editor.notify("textDocument/didOpen", json!({"textDocument": item}));
    let mut command = |name: &str, argument: Value| {
        editor.request("workspace/executeCommand", json!({"command": name, "arguments": [argument]}))
    };
    let ready = command("consort.eval", json!({"code": SAME_NAMES}));
    assert_eq!(ready["values"], json!([":READY"]), "{ready}");
    for (line, expected) in [(1, "passed"), (3, "failed")] {
        let place = json!({"test": "same", "uri": uri, "position": {"line": line, "character": 0}, "timeout": AMPLE});
        let recorded = command("consort.record", place);
        assert_eq!(recorded["recording"]["outcome"]["values"][0], format!("{expected:?}"), "{recorded}");
    }
    // A document that is not open names no package.
    let place = json!({"test": "one::same", "uri": world.uri("closed.lisp"), "position": {"line": 0, "character": 0}});
    assert_eq!(command("consort.record", place)["recording"]["outcome"]["values"][0], "\"passed\"");
    drop(editor);
    world.finish();
}
