//! The number of questions that ten usual tasks of an agent ask a person who has set evaluation to
//! `ask`.

use std::fs;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use consort_tests::agent::text;
use serde_json::{Value, json};

use crate::support::Guarded;

/// The most questions for a task.
const MAX_QUESTIONS: usize = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_usual_tasks_cost_two_questions_at_most() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    let asd = "(asdf:defsystem \"app\" :components ((:file \"app\"))
                 :perform (asdf:test-op (o c) (assert (= 6 (uiop:symbol-call :app :twice 3)))))\n";
    let source = "(defpackage :app (:use :cl))\n(in-package :app)\n(defun twice (x) (* x 2))\n";
    fs::create_dir(guarded.world.path("app")).expect("a directory");
    for (name, content) in [("app/app.asd", asd), ("app/app.lisp", source)] {
        fs::write(guarded.world.path(name), content).expect("written");
    }
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let person = tokio::spawn(async move {
        loop {
            let question = editor.question().await;
            count.fetch_add(1, Ordering::SeqCst);
            editor.reply(&question, json!({"title": "Allow"})).await;
        }
    });
    let edit = json!({
        "file_path": "app/app.lisp", "form_type": "defun", "form_name": "twice", "operation": "replace",
        "content": "(defun twice (x) (+ x x))",
    });
    let tasks: [(&str, &[(&str, Value)]); 10] = [
        ("load a system", &[("load-system", json!({"system": "app"}))]),
        ("read code", &[("lisp-read-file", json!({"path": "app/app.lisp"}))]),
        ("check a form", &[("compile-form", json!({"code": "(defun f (x) (* x x))"}))]),
        ("look at a symbol", &[("describe-symbol", json!({"symbol": "app::twice"}))]),
        ("evaluate a form", &[("evaluate-lisp", json!({"code": "(app::twice 4)"}))]),
        ("expand a macro", &[("macroexpand-form", json!({"form": "(when a b)"}))]),
        (
            "edit a definition and reload it",
            &[
                ("lisp-edit-form", edit),
                ("diagnostics", json!({"paths": ["app/app.lisp"]})),
                ("code_reload_system", json!({"system": "app"})),
            ],
        ),
        ("run tests", &[("run-tests", json!({"system": "app"}))]),
        ("profile", &[("profile-code", json!({"code": "(loop repeat 100000 sum (app::twice 1))"}))]),
        (
            "trace",
            &[("evaluate-lisp", json!({"code": "(trace app::twice) (prog1 (app::twice 2) (untrace app::twice))"}))],
        ),
    ];
    let mut costs = Vec::new();
    for (task, calls) in tasks {
        let mut questions = [0, 0];
        // With the default, and with everything that can run in a copy run in the image.
        for (copies, asked_then) in [true, false].into_iter().zip(&mut questions) {
            let before = asked.load(Ordering::SeqCst);
            for (tool, arguments) in calls {
                let mut arguments = arguments.clone();
                if !copies && ["evaluate-lisp", "run-tests", "profile-code", "macroexpand-form"].contains(tool) {
                    arguments["in"] = json!("image");
                }
                if !copies && *tool == "lisp-edit-form" {
                    arguments["content"] = json!("(defun twice (x) (* 2 x))");
                }
                let result = agent.call(tool, arguments).await;
                assert_ne!(result["isError"], true, "{task}, {tool}: {}", text(&result));
            }
            *asked_then = asked.load(Ordering::SeqCst) - before;
        }
        costs.push((task, questions));
    }
    let sum = |which: usize| costs.iter().map(|(_, questions)| questions[which]).sum::<usize>();
    let most = costs.iter().map(|(_, [with, _])| *with).max().unwrap_or_default();
    let mut table = String::from("\nquestions with copies, without:\n");
    for (task, [with, without]) in &costs {
        table += &format!("{with:8} {without:8}  {task}\n");
    }
    table += &format!(
        "measured: with approval.eval = \"ask\" {} usual tasks of an agent cost {} questions, at most {most} each; without copies {}\n",
        costs.len(),
        sum(0),
        sum(1)
    );
    // Not by `println!`, of which the output of a test that passes is dropped.
    std::io::stdout().write_all(table.as_bytes()).expect("a standard output");
    assert!(costs.iter().all(|(_, [with, _])| *with <= MAX_QUESTIONS), "{costs:?}");
    assert!(sum(0) < sum(1), "copies spare questions: {costs:?}");
    person.abort();
    assert!(person.await.is_err(), "it was aborted");
    guarded.end().await;
}
