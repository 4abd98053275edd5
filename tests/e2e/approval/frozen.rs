//! Frozen failures: an agent looks at the stack of its own error and tries restarts and code there,
//! without a question and without changing anything.

use std::time::Duration;

use consort::config::Config;
use consort_tests::agent::{Agent, text};
use consort_tests::patience::{PATIENCE, alone, comes};
use serde_json::{Value, json};

use crate::support::Guarded;

const FAILS: &str = "(progn
  (defvar *count* 0)
  (defun price (table name)
    (or (getf table name)
        (restart-case (error \"no price for ~A\" name)
          (use-value (value) :report \"Use another price.\" value)
          (escape () (list (handler-case (with-open-file (out \"FILE\" :direction :output) (print 1 out) :wrote)
                             (error () :refused))
                           (handler-case (progn (sb-bsd-sockets:socket-connect
                                                 (make-instance 'sb-bsd-sockets:inet-socket :type :stream :protocol :tcp)
                                                 #(127 0 0 1) PORT)
                                                :connected)
                             (error () :refused)))))))
  (defun total (table names)
    (incf *count*)
    (list :total (reduce #'+ (mapcar (lambda (name) (price table name)) names)) *count*)))";

/// A world where an agent has defined the functions, with the agent.
async fn begun(file: &str, port: u16) -> (Guarded, Agent) {
    let guarded = Guarded::configured(Config::default()).await;
    guarded.world.is_ready().await;
    let mut agent = guarded.agent("agent").await;
    let required = agent.call("evaluate-lisp", json!({"code": "(require :sb-bsd-sockets)"})).await;
    assert_eq!(required["isError"], false, "{required}");
    let code = FAILS.replace("FILE", file).replace("PORT", &port.to_string());
    let defined = agent.call("evaluate-lisp", json!({"code": code})).await;
    assert_eq!(defined["isError"], false, "{defined}");
    (guarded, agent)
}

/// Evaluates code until its failure is frozen, and returns the answer. A busy machine may not let
/// the image be copied at once.
async fn frozen(agent: &mut Agent, code: &str) -> Value {
    comes("a frozen failure", async || {
        let answer = agent.call("evaluate-lisp", json!({ "code": code })).await;
        answer["structuredContent"]["failure"].is_object().then_some(answer)
    })
    .await
}

/// The number of the frozen failure of an answer, and its process.
fn failure_of(guarded: &Guarded, answer: &Value) -> (u64, u32) {
    let number = answer["structuredContent"]["failure"]["number"].as_u64();
    let number = number.unwrap_or_else(|| panic!("no frozen failure in {answer}"));
    let kept = guarded.world.session.failures();
    let failure = kept.iter().find(|kept| kept.number == number).expect("it is kept");
    (number, failure.pid)
}

fn is_alive(pid: u32) -> bool {
    // A zombie has ended, and only has to be reaped.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

async fn ended(pid: u32) {
    let end = async {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, end).await.unwrap_or_else(|_| panic!("{pid} lives on\n{}", alone()));
}

/// Waits until the frozen failures of these numbers are kept: the host notes the end of one a
/// moment after its process has ended.
async fn kept_are(guarded: &Guarded, numbers: &[u64]) {
    let wait = async {
        while guarded.world.session.failures().iter().map(|one| one.number).ne(numbers.iter().copied()) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let kept = || guarded.world.session.failures();
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("{:?}\n{}", kept(), alone()));
}

async fn at(agent: &mut Agent, failure: u64, mut arguments: Value) -> Value {
    arguments["failure"] = failure.into();
    agent.call("debug", arguments).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_tries_restarts_at_its_frozen_failure() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("escaped");
    let port = listener.local_addr().expect("an address").port();
    let (guarded, mut agent) = begun(file.to_str().expect("a plain name"), port).await;
    let mut editor = guarded.editor().await;
    let answer = frozen(&mut agent, "(progn (setf *count* 0) (total '(:tea 3) '(:tea :milk)))").await;
    let (failure, pid) = failure_of(&guarded, &answer);
    let told = text(&answer);
    assert!(told.starts_with("[ERROR] SIMPLE-ERROR\nno price for MILK"), "{told}");
    assert!(told.contains("[restarts]\n0: [USE-VALUE] Use another price. (takes an argument)\n1: [ESCAPE]"), "{told}");
    assert!(told.contains(&format!("; The stack is kept as failure {failure}: ")), "{told}");

    // The image has gone on; the failure is as it was.
    let changed = agent.call("evaluate-lisp", json!({"code": "(setf *count* 100)"})).await;
    assert_eq!(changed["isError"], false, "{changed}");
    let listed = agent.call("debug", json!({})).await;
    let listed = text(&listed);
    assert!(listed.contains(&format!("Failure {failure}: SIMPLE-ERROR: no price for MILK\n  of ")), "{listed}");
    let frames = at(&mut agent, failure, json!({"action": "frames"})).await;
    let frames = text(&frames);
    assert!(frames.starts_with(&format!("Failure {failure}, ")) && frames.contains("0: PRICE"), "{frames}");
    let total = frames.lines().find(|line| line.contains(": TOTAL")).expect("the caller");
    let total: u64 = total.split(':').next().and_then(|number| number.parse().ok()).expect("its number");
    let locals = at(&mut agent, failure, json!({"action": "locals"})).await;
    let locals = text(&locals);
    assert!(locals.contains("\nNAME = :MILK"), "{locals}");
    let seen = json!({"action": "eval", "frame": total, "code": "(list *count* (first names))"});
    assert_eq!(text(&at(&mut agent, failure, seen).await), "=> (1 :TEA)");
    let wrong = at(&mut agent, failure, json!({"action": "eval", "code": "(car 1)"})).await;
    assert!(wrong["isError"] == true && text(&wrong).ends_with("The failure is as it was."), "{wrong}");

    for (price, outcome) in [("7", "=> (:TOTAL 10 1)"), ("(incf *count* 40)", "=> (:TOTAL 44 41)")] {
        let tried = at(&mut agent, failure, json!({"action": "restart", "restart": 0, "code": price})).await;
        assert!(text(&tried).ends_with(outcome) && tried["isError"] == false, "{tried}");
    }
    let tried = at(&mut agent, failure, json!({"action": "restart", "restart": 0, "code": "\"seven\""})).await;
    assert!(text(&tried).contains("[ERROR] TYPE-ERROR") && tried["isError"] == true, "{tried}");
    let tried = at(&mut agent, failure, json!({"action": "return", "frame": total, "code": ":mine"})).await;
    assert!(text(&tried).ends_with("=> :MINE"), "{tried}");
    // The list that ESCAPE gives is no price, and is in the report of the error.
    let tried = at(&mut agent, failure, json!({"action": "restart", "restart": 1})).await;
    let tried = text(&tried);
    assert!(tried.contains(":REFUSED :REFUSED"), "{tried}");
    assert!(!file.exists());
    listener.set_nonblocking(true).expect("it can");
    assert!(listener.accept().is_err(), "nobody came");
    let gone = at(&mut agent, failure, json!({"action": "restart", "restart": 9})).await;
    assert_eq!(text(&gone), format!("The failure {failure} has no restart 9."));

    // None of the attempts changed the image, and nobody was asked.
    let count = agent.call("evaluate-lisp", json!({"code": "*count*"})).await;
    assert_eq!(text(&count), "=> 100");
    assert!(!editor.was_asked().await);

    // A failure that was dropped has ended.
    let dropped = at(&mut agent, failure, json!({"action": "abort"})).await;
    assert_eq!(dropped["isError"], false, "{dropped}");
    ended(pid).await;
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_failures_end_with_the_image_and_where_nobody_wants_them() {
    let (guarded, mut agent) = begun("/nonexistent", 9).await;
    let mut kept = Vec::new();
    for _ in 0..5 {
        let answer = frozen(&mut agent, "(total () '(:milk))").await;
        kept.push(failure_of(&guarded, &answer));
    }
    // Only the newest four are kept.
    ended(kept[0].1).await;
    let stale = at(&mut agent, kept[0].0, json!({"action": "frames"})).await;
    assert_eq!(stale["structuredContent"]["error"]["type"], "stale", "{stale}");
    kept_are(&guarded, &[2, 3, 4, 5]).await;
    // An attempt in progress ends too.
    let endless = json!({"action": "eval", "failure": kept[4].0, "code": "(loop)"});
    let call = agent.begin("debug", endless).await;
    guarded.world.image.restart().await.expect("a new image");
    let answer = agent.result(call).await;
    assert_eq!(answer["structuredContent"]["error"]["type"], "stale", "{answer}");
    for (_, pid) in &kept {
        ended(*pid).await;
    }
    kept_are(&guarded, &[]).await;

    // With `debug.frozen = 0` no failure is frozen.
    guarded.end().await;
    let guarded = Guarded::configured(Config { frozen: 0, ..Config::default() }).await;
    guarded.world.is_ready().await;
    let mut agent = guarded.agent("agent").await;
    let answer = agent.call("evaluate-lisp", json!({"code": "(error \"x\")"})).await;
    assert!(text(&answer).starts_with("[ERROR] SIMPLE-ERROR\nx"), "{answer}");
    assert!(answer["structuredContent"].get("failure").is_none() && !text(&answer).contains("[restarts]"), "{answer}");
    guarded.end().await;
}

/// The error of a thread that an agent's code started is reported with its number, and a restart is
/// tried to the end of the thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_that_ends_a_thread_is_frozen() {
    let (guarded, mut agent) = begun("/nonexistent", 9).await;
    let mut editor = guarded.editor().await;
    let code = "(sb-thread:join-thread
      (sb-thread:make-thread (lambda () (setf *count* 0) (total '(:tea 3) '(:tea :milk))) :name \"till\") :default :gone)";
    // One thread a second is frozen, and on a busy machine not each.
    comes("a frozen failure", async || {
        let answer = agent.call("evaluate-lisp", json!({ "code": code })).await;
        assert!(text(&answer).contains("=> :GONE"), "{answer}");
        (!guarded.world.session.failures().is_empty()).then_some(())
    })
    .await;
    // A slow machine may have frozen that of a second call, too.
    let first = || guarded.world.session.failures().first().map(|one| one.number);
    comes("failure 1", async || (first() == Some(1)).then_some(())).await;
    let told = |params: &Value| {
        params["message"].as_str().is_some_and(|text| {
            text.contains("ended the Lisp thread \"till\"") && text.ends_with("(its stack is kept as failure 1)")
        })
    };
    editor.wait_for("window/showMessage", told).await;
    // Failures that were not frozen.
    editor.ignore(&["window/showMessage"]);
    let listed = agent.call("debug", json!({})).await;
    let listed = text(&listed);
    assert!(listed.contains("Failure 1: SIMPLE-ERROR: no price for MILK\n  of the thread \"till\", "), "{listed}");
    let locals = at(&mut agent, 1, json!({"action": "locals"})).await;
    assert!(text(&locals).contains("\nNAME = :MILK"), "{locals}");
    let tried = at(&mut agent, 1, json!({"action": "restart", "restart": 0, "code": "7"})).await;
    assert!(text(&tried).ends_with("=> (:TOTAL 10 1)") && tried["isError"] == false, "{tried}");
    let pid = guarded.world.session.failures()[0].pid;
    guarded.world.image.restart().await.expect("a new image");
    ended(pid).await;
    guarded.end().await;
}

/// The error of a test, which its framework handles, is frozen before the stack is unwound, and a
/// restart is tried to the end of the test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_of_a_test_is_frozen() {
    let (guarded, mut agent) = begun("/nonexistent", 9).await;
    let mut editor = guarded.editor().await;
    let system = "(asdf:defsystem \"till\" :perform (asdf:test-op (o c) (uiop:symbol-call :cl-user '#:total '(:tea 3) '(:tea :milk))))";
    std::fs::write(guarded.world.path("till.asd"), system).expect("it can be written");
    // A person is asked about a load, and not about the tests of what is loaded.
    editor.command("consort.loadSystem", json!({"system": "till"})).await.expect("it is loaded");
    let tests = json!({"system": "till", "framework": "asdf"});
    let answer = comes("a frozen failure", async || {
        let answer = agent.call("run-tests", tests.clone()).await;
        answer["structuredContent"]["tests"][0]["failure"].is_u64().then_some(answer)
    })
    .await;
    let told = text(&answer);
    assert!(told.contains("no price for MILK") && told.contains("its stack is kept as failure 1"), "{told}");
    assert_eq!(answer["structuredContent"]["tests"][0]["failure"], 1, "{answer}");
    let listed = agent.call("debug", json!({})).await;
    assert!(text(&listed).contains("Failure 1: SIMPLE-ERROR: no price for MILK\n  of the test till, "), "{listed}");
    let locals = at(&mut agent, 1, json!({"action": "locals"})).await;
    assert!(text(&locals).contains("\nNAME = :MILK"), "{locals}");
    let tried = at(&mut agent, 1, json!({"action": "restart", "restart": 0, "code": "7"})).await;
    assert!(text(&tried).contains("The test till passed") && tried["isError"] == false, "{tried}");
    let tried = at(&mut agent, 1, json!({"action": "restart", "restart": 0, "code": "\"seven\""})).await;
    assert!(text(&tried).contains("[ERROR] TEST-ERROR") && tried["isError"] == true, "{tried}");
    // Also for an editor's run of tests.
    let ran = comes("a frozen failure", async || {
        let ran = editor.command("consort.runTests", tests.clone()).await.expect("an answer");
        ran["tests"][0]["failure"].is_u64().then_some(ran)
    })
    .await;
    assert_eq!(ran["tests"][0]["failure"], 2, "{ran}");
    assert!(ran["text"].as_str().is_some_and(|text| text.contains("its stack is kept as failure 2")), "{ran}");
    guarded.end().await;
}
