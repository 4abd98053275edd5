//! `inspect`: looking at a value asks nobody and runs no code; code, a part that is set and
//! `describe` are asked about as an evaluation is, at a person's stop as `debug` is.

use consort::config::Config;
use consort_tests::agent::{Agent, text};
use consort_tests::lsp::Editor;
use consort_tests::patience::comes;
use serde_json::{Value, json};

use crate::stops::Program;
use crate::support::Guarded;

async fn begun(guarded: Guarded) -> (Guarded, Editor, Agent) {
    guarded.world.is_ready().await;
    let editor = guarded.editor().await;
    let agent = guarded.agent("agent").await;
    (guarded, editor, agent)
}

/// The answer to a call that succeeds and asks nobody.
async fn seen(agent: &mut Agent, editor: &mut Editor, arguments: Value) -> (String, Value) {
    let answer = agent.call("inspect", arguments.clone()).await;
    assert_eq!(answer["isError"], false, "{arguments}: {answer}");
    assert!(!editor.was_asked().await, "{arguments}");
    (text(&answer).to_owned(), answer["structuredContent"].clone())
}

/// The kind of the error that a call is answered with.
async fn error_kind(agent: &mut Agent, arguments: Value) -> Value {
    let answer = agent.call("inspect", arguments).await;
    assert_eq!(answer["isError"], true, "{answer}");
    answer["structuredContent"]["error"]["type"].clone()
}

const GOODS: &str = "(progn
  (defvar *printed* 0)
  (defclass good () ((name :initarg :name) (price :initarg :price)))
  (defmethod print-object ((good good) stream) (incf *printed*) (write-string \"a good\" stream))
  (defvar *goods* (vector (make-instance 'good :name \"tea\" :price 3) (make-instance 'good :name \"milk\")))
  (defvar *table* (let ((table (make-hash-table :test 'equal))) (setf (gethash \"k\" table) (list 1 2)) table))
  (values))";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_are_looked_into_by_pages() {
    let (guarded, mut editor, mut agent) = begun(Guarded::configured(Config::default()).await).await;
    let defined = agent.call("evaluate-lisp", json!({"code": GOODS})).await;
    assert_eq!(defined["isError"], false, "{defined}");

    // A result is whole, though evaluate-lisp cuts it at 100 elements.
    let long = "(loop for i below 300 collect (if (= i 250) (list :here (list :deep)) i))";
    agent.call("evaluate-lisp", json!({"code": long})).await;
    let (shown, facts) = seen(&mut agent, &mut editor, json!({"offset": 249, "limit": 2})).await;
    assert!(shown.contains("\nlist, 300 parts\n249: 249\n250: (:HERE (:DEEP))\n; 2 of 300 parts"), "{shown}");
    let number = facts["value"].as_u64().expect("a number");
    assert_eq!((&facts["next"], &facts["parts"][0]), (&json!(251), &json!({"text": "249"})));
    let (shown, _) = seen(&mut agent, &mut editor, json!({"value": number, "path": [250, 1]})).await;
    assert!(shown.ends_with("\nlist, 1 part\n0: :DEEP"), "{shown}");
    let (shown, facts) = seen(&mut agent, &mut editor, json!({"value": number})).await;
    assert_eq!((&facts["next"], facts["parts"].as_array().map(Vec::len)), (&json!(50), Some(50)), "{shown}");

    // Code that is given is evaluated in the session, and what it prints is told.
    let code = json!({"code": "(progn (princ \"printed\") (values *goods* 2))"});
    let (shown, facts) = seen(&mut agent, &mut editor, code).await;
    assert!(
        shown.starts_with("[stdout]\nprinted\n\nValue ") && shown.contains("\n0: #<GOOD NAME \"tea\" PRICE 3>\n"),
        "{shown}"
    );
    assert!(shown.ends_with("; The first of 2 values, which are in `/`."), "{shown}");
    let goods = facts["value"].as_u64().expect("a number");
    let history = agent.call("evaluate-lisp", json!({"code": "(list (eq * *goods*) (second /))"})).await;
    assert_eq!(text(&history), "=> (T 2)");
    let (printed, _) = seen(&mut agent, &mut editor, json!({"code": "*printed*"})).await;
    let (shown, _) = seen(&mut agent, &mut editor, json!({"value": goods, "path": [1]})).await;
    assert!(shown.ends_with("instance, 2 parts; good\n0: NAME = \"milk\"\n1: PRICE is unbound"), "{shown}");
    let (shown, _) = seen(&mut agent, &mut editor, json!({"value": goods, "show": "table"})).await;
    assert_eq!(shown, "2 rows\n | NAME | PRICE\n0 | \"tea\" | 3\n1 | \"milk\" | unbound");
    let (shown, _) = seen(&mut agent, &mut editor, json!({"code": "*table*"})).await;
    assert!(shown.ends_with("\n0: \"k\" => (1 2)"), "{shown}");
    let (shown, facts) = seen(&mut agent, &mut editor, json!({"value": number, "find": "deep"})).await;
    assert!(shown.ends_with("\n1 of 300 parts contain it\n250: (:HERE (:DEEP))"), "{shown}");
    assert_eq!((&facts["matches"], &facts["parts"][0]["number"]), (&json!(1), &json!(250)));
    let (shown, _) = seen(&mut agent, &mut editor, json!({"code": "*table*", "find": "K"})).await;
    assert!(shown.ends_with("\n1 of 1 parts contain it\n0: \"k\" => (1 2)"), "{shown}");
    let (again, _) = seen(&mut agent, &mut editor, json!({"code": "*printed*"})).await;
    assert_eq!(again, printed, "no print-object has run for what was looked at");
    assert!(printed.ends_with("\n; The value has no parts."), "{printed}");

    // Code on a value, a part that is set, a comparison, a description.
    let (shown, _) = seen(&mut agent, &mut editor, json!({"value": goods, "code": "(map 'list #'type-of *)"})).await;
    assert!(shown.ends_with("\n0: GOOD\n1: GOOD"), "{shown}");
    let set = json!({"value": goods, "path": [1, 1], "new": "(+ 40 (length (slot-value * 'name)))"});
    assert_eq!(seen(&mut agent, &mut editor, set).await.0, "=> 44");
    let (_, one) = seen(&mut agent, &mut editor, json!({"value": goods, "path": [0]})).await;
    let (_, other) = seen(&mut agent, &mut editor, json!({"value": goods, "path": [1]})).await;
    let (shown, _) = seen(&mut agent, &mut editor, json!({"value": one["value"], "other": other["value"]})).await;
    assert_eq!(shown, "2 differences.\nNAME: \"tea\" / \"milk\"\nPRICE: 3 / 44");
    let (shown, _) = seen(&mut agent, &mut editor, json!({"value": one["value"], "show": "describe"})).await;
    assert!(shown.contains("[standard-object]") && shown.contains("\"tea\""), "{shown}");
    let (shown, facts) = seen(&mut agent, &mut editor, json!({"code": "*goods*", "show": "definition"})).await;
    assert_eq!((shown.as_str(), &facts["definitions"]), ("No file is known to define it.", &json!([])));

    // Code that ran is told of with all that came of it, also where the part is not there.
    let many = json!({"value": goods, "code": "(progn (princ :printed) (values * 2 3))"});
    let (shown, _) = seen(&mut agent, &mut editor, many).await;
    assert!(shown.ends_with("\n; The other values:\n=> 2\n=> 3\n\n[stdout]\nPRINTED"), "{shown}");
    for arguments in [
        json!({"code": "(progn (princ :printed) *goods*)", "path": [7]}),
        json!({"value": goods, "code": "(progn (princ :printed) *)", "path": [7]}),
    ] {
        let answer = agent.call("inspect", arguments.clone()).await;
        let shown = text(&answer);
        assert!(shown.contains("The code was evaluated and gave #(") && shown.contains("PRINTED"), "{answer}");
        assert!(shown.contains("has no part 7"), "{answer}");
        assert_eq!(answer["structuredContent"]["error"]["type"], "not-found", "{answer}");
    }

    // What is not there, and what does not end.
    assert_eq!(error_kind(&mut agent, json!({"value": goods, "path": [7]})).await, "not-found");
    assert_eq!(error_kind(&mut agent, json!({"value": 999_999})).await, "not-found");
    assert_eq!(error_kind(&mut agent, json!({"code": "no-such-variable"})).await, "not-found");
    assert_eq!(error_kind(&mut agent, json!({"code": "(f)", "package": "no-such"})).await, "package-not-found");
    assert_eq!(error_kind(&mut agent, json!({"value": goods, "code": "(loop)", "timeout": 0.2})).await, "timeout");
    assert_eq!(error_kind(&mut agent, json!({"value": goods, "code": "(/ 1 0)"})).await, "DIVISION-BY-ZERO");
    assert_eq!(error_kind(&mut agent, json!({"code": "(/ 1 0)"})).await, "DIVISION-BY-ZERO");
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_runs_code_is_asked_about() {
    let (guarded, mut editor, mut agent) = begun(Guarded::new().await).await;
    editor.eval("(defvar *list* (list 1 2))").await;
    let (_, facts) = seen(&mut agent, &mut editor, json!({"code": "*list*"})).await;
    let value = facts["value"].as_u64().expect("a number");
    editor.eval("(defvar *outer* (list *list*))").await;
    let (_, facts) = seen(&mut agent, &mut editor, json!({"code": "*outer*"})).await;
    let outer = facts["value"].as_u64().expect("a number");
    for (arguments, question) in [
        (json!({"code": "(incf (first *list*))"}), "evaluate code in the image".to_owned()),
        (json!({"value": value, "code": "(incf (first *))"}), format!("evaluate code on the value {value}, (1 2)")),
        (
            json!({"value": value, "path": [0], "new": "9"}),
            format!("set the part at [0], 1, of the value {value}, (1 2)"),
        ),
        (json!({"value": value, "show": "describe"}), format!("describe the value {value}, (1 2)")),
        (
            json!({"value": outer, "path": [0, 1], "new": "9"}),
            format!("set the part at [0, 1], 2, of the value {outer}, ((1 2))"),
        ),
        (
            json!({"value": outer, "path": [0], "show": "describe"}),
            format!("describe the part at [0], (1 2), of the value {outer}, ((1 2))"),
        ),
    ] {
        let call = agent.begin("inspect", arguments.clone()).await;
        let asked = editor.press("Deny").await;
        let message = asked["params"]["message"].as_str().expect("a message");
        assert!(message.contains(&question) && message.contains("Tool: inspect"), "{message}");
        let denied = agent.result(call).await;
        assert!(denied["isError"] == true && text(&denied).contains("not allowed by the person"), "{denied}");
    }
    assert_eq!(editor.eval("*list*").await, ["(1 2)"], "nothing was done");
    let call = agent.begin("inspect", json!({"value": value, "path": [0], "new": "9"})).await;
    editor.press("Allow").await;
    assert_eq!(text(&agent.result(call).await), "=> 9");
    assert_eq!(editor.eval("*list*").await, ["(9 2)"]);

    // The part is another when the person answers; what is not there is not asked about.
    let call = agent.begin("inspect", json!({"value": outer, "path": [0, 1], "new": "7"})).await;
    let question = editor.question().await;
    editor.eval("(setf (second *list*) 3)").await;
    editor.reply(&question, json!({"title": "Allow"})).await;
    let answer = agent.result(call).await;
    assert_eq!(answer["structuredContent"]["error"]["type"], "stale", "{answer}");
    assert_eq!(editor.eval("*list*").await, ["(9 3)"], "nothing was done");
    assert_eq!(error_kind(&mut agent, json!({"value": outer, "path": [0, 2], "new": "7"})).await, "not-found");
    assert!(!editor.was_asked().await);
    guarded.end().await;
}

/// A value whose description does not end.
const ENDLESS: &str = "(progn
  (defclass endless () ())
  (defmethod describe-object ((object endless) stream) (loop (sleep 0.01)))
  (defvar *endless* (make-instance 'endless)))";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_a_stop_and_of_a_frozen_failure_are_looked_into() {
    let (guarded, mut editor, mut agent) = begun(Guarded::configured(Config::default()).await).await;
    editor.eval("(defvar *bound* :elsewhere)").await;
    editor.eval(ENDLESS).await;
    editor.eval("(defun fails (cart sum &optional endless) (error \"boom ~A\" (list sum cart endless)))").await;
    let bound = "(let ((*bound* :here)) (fails (list :tea (list :milk 2)) 7 *endless*))";
    let program = Program::stopped(&guarded, bound).await;
    let stop = program.stop;
    let frames = agent.call("debug", json!({"action": "frames", "stop": stop})).await;
    assert!(text(&frames).contains("0: FAILS"), "{frames}");
    let (shown, facts) = seen(&mut agent, &mut editor, json!({"stop": stop, "code": "cart", "path": [1]})).await;
    assert!(shown.ends_with("list, 2 parts\n0: :MILK\n1: 2"), "{shown}");
    let (_, cart) = seen(&mut agent, &mut editor, json!({"stop": stop, "code": "CART"})).await;
    let (_, endless) = seen(&mut agent, &mut editor, json!({"stop": stop, "code": "endless"})).await;
    let (shown, _) = seen(&mut agent, &mut editor, json!({"stop": stop, "code": "sum"})).await;
    assert!(shown.starts_with("=> 7"), "{shown}");

    // A name is that of a local alone: what it is elsewhere is not what the program has.
    for name in ["*bound*", "*"] {
        let answer = agent.call("inspect", json!({"stop": stop, "code": name})).await;
        let words = format!("Frame 0 of stop {stop} has no variable {name}: ");
        assert!(answer["isError"] == true && text(&answer).starts_with(&words), "{answer}");
        assert!(text(&answer).ends_with(&format!("as code: (progn {name}).")), "{answer}");
    }

    // Whatever `eval` allows, a person is asked about code in their stopped program.
    for (arguments, question) in [
        (json!({"stop": stop, "code": "(cdr cart)"}), "evaluate code in frame 0, FAILS, at stop".to_owned()),
        (json!({"stop": stop, "code": "(progn *bound*)"}), format!("at stop {stop} of person (SIMPLE-ERROR: boom")),
        (json!({"value": cart["value"], "code": "(cdr *)"}), format!("at stop {stop} of person (SIMPLE-ERROR: boom")),
        (
            json!({"value": facts["value"], "path": [1], "new": "3"}),
            format!("at stop {stop} of person (SIMPLE-ERROR: boom"),
        ),
    ] {
        let call = agent.begin("inspect", arguments.clone()).await;
        let asked = editor.press("Allow").await;
        let message = asked["params"]["message"].as_str().expect("a message");
        assert!(message.contains(&question), "{message}");
        let answer = agent.result(call).await;
        assert_eq!(answer["isError"], false, "{arguments}: {answer}");
        assert!(arguments["code"] != "(progn *bound*)" || text(&answer).contains(":HERE"), "{answer}");
    }
    let (shown, _) = seen(&mut agent, &mut editor, json!({"stop": stop, "code": "cart"})).await;
    assert!(shown.contains("(:TEA (:MILK 3))"), "{shown}");
    for (path, words) in
        [(json!([1]), "\n0: :MILK\n1: 3\n\n[stdout]\nPRINTED"), (json!([7]), "has no part 7\n\n[stdout]\nPRINTED")]
    {
        let code = "(progn (princ :printed) cart)";
        let call = agent.begin("inspect", json!({"stop": stop, "code": code, "path": path})).await;
        editor.press("Allow").await;
        let answer = agent.result(call).await;
        assert!(text(&answer).ends_with(words), "{answer}");
    }
    // Code there, on a value of it, and its description have the time that the call gives them.
    for (arguments, question) in [
        (json!({"stop": stop, "code": "(sleep 5)"}), "evaluate code in frame 0"),
        (json!({"value": cart["value"], "code": "(sleep 5)"}), "evaluate code on the value"),
        (json!({"value": cart["value"], "path": [0], "new": "(sleep 5)"}), "set the part"),
        (json!({"value": endless["value"], "show": "describe"}), "describe the value"),
    ] {
        let mut limited = arguments.clone();
        limited["timeout"] = json!(0.2);
        let call = agent.begin("inspect", limited).await;
        let asked = editor.press("Allow").await;
        assert!(asked["params"]["message"].as_str().is_some_and(|message| message.contains(question)), "{asked}");
        let answer = agent.result(call).await;
        let shown = text(&answer);
        let ended = shown.contains("The code took too long") || shown.contains("longer than 0.2 s");
        assert!(answer["isError"] == true && ended, "{arguments}: {answer}");
    }
    guarded.world.image.at_stop(&consort::image::api::debug::DebugAbort { stop }).await.expect("it is left");
    program.ended().await;
    assert_eq!(error_kind(&mut agent, json!({"value": cart["value"]})).await, "not-found");

    // A busy machine may not let the image be copied at once.
    let failure = comes("a frozen failure", async || {
        let answer = agent.call("evaluate-lisp", json!({"code": "(fails (list :tea (vector 1 2)) 7)"})).await;
        answer["structuredContent"]["failure"]["number"].as_u64()
    })
    .await;
    let look = json!({"failure": failure, "code": "cart", "path": [1]});
    let (shown, facts) = seen(&mut agent, &mut editor, look).await;
    assert!(shown.starts_with("Value: #(1 2)") && shown.ends_with("\n0: 1\n1: 2"), "{shown}");
    assert!(facts.get("value").is_none(), "{facts}");
    let tried = json!({"failure": failure, "code": "(progn (princ :seen) (push :new cart) cart)", "limit": 1});
    let (shown, _) = seen(&mut agent, &mut editor, tried).await;
    assert!(shown.contains("\n0: :NEW\n; 1 of 3 parts") && shown.ends_with("\n\n[stdout]\nSEEN"), "{shown}");
    assert_eq!(error_kind(&mut agent, json!({"failure": failure, "code": "(error \"x\")"})).await, "SIMPLE-ERROR");
    guarded.end().await;
}
