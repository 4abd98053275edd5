//! Faults of a running server, over both front ends: each gets a clear answer, no state is lost,
//! and no process is left.

use consort_tests::framing::{Framing, framed};
use consort_tests::frontends::{Answer, Frontend};
use consort_tests::installation::Installation;
use consort_tests::non_reading_client::NonReadingClient;
use consort_tests::patience::{AMPLE, until};
use serde_json::json;

/// Runs `test` over each front end, in an installation of its own.
fn over_both_front_ends(test: impl Fn(&Installation, &mut Frontend)) {
    for lsp in [true, false] {
        let world = Installation::new();
        let mut frontend = if lsp { Frontend::Lsp(world.lsp()) } else { Frontend::Mcp(world.mcp()) };
        test(&world, &mut frontend);
        drop(frontend);
        world.finish();
    }
}

/// Stores a value in the image; returns the image's id, to check that nothing is lost.
fn remember(frontend: &mut Frontend) -> String {
    frontend.value(
        "(progn (defvar cl-user::*kept* (list 1 2 3)) (defun cl-user::kept () cl-user::*kept*) (consort:image-id))",
    )
}

fn nothing_lost(frontend: &mut Frontend, image: &str) {
    assert_eq!(frontend.value("(consort:image-id)"), image, "{}: the image is another one", frontend.name());
    assert_eq!(frontend.value("(cl-user::kept)"), "(1 2 3)", "{}: state was lost", frontend.name());
}

/// Each program is answered with a failure whose text has all the words, and no state is lost.
fn each_fails_clearly(programs: &[(&str, f64, &[&str])]) {
    over_both_front_ends(|_, frontend| {
        let image = remember(frontend);
        for (code, timeout, words) in programs {
            let answer = frontend.eval(code, *timeout);
            assert!(answer.failed, "{} {code}: {answer:?}", frontend.name());
            for word in *words {
                assert!(
                    answer.text.to_lowercase().contains(&word.to_lowercase()),
                    "{} {code}: no {word:?} in {}",
                    frontend.name(),
                    answer.text
                );
            }
            nothing_lost(frontend, &image);
        }
    });
}

type Holds = fn(&Answer) -> bool;

/// Each program is answered with a success for which `holds` is true, and no state is lost.
fn each_succeeds(programs: &[(&str, Holds)]) {
    over_both_front_ends(|_, frontend| {
        let image = remember(frontend);
        for (code, holds) in programs {
            let answer = frontend.eval(code, AMPLE);
            assert!(!answer.failed && holds(&answer), "{} {code}: {:.2000}", frontend.name(), format!("{answer:?}"));
            nothing_lost(frontend, &image);
        }
    });
}

fn busy(world: &Installation) -> bool {
    world.status()["image"]["facts"]["running"].as_array().is_some_and(|running| !running.is_empty())
}

#[test]
fn endless_loops_meet_their_deadline() {
    each_fails_clearly(&[
        ("(loop)", 1.0, &["deadline of 1"]),
        ("(loop (ignore-errors (loop)))", 1.0, &["deadline of 1"]),
        ("(loop (handler-case (loop) (serious-condition () nil) (condition () nil)))", 1.0, &["deadline of 1"]),
        ("(unwind-protect (loop) (loop))", 1.0, &["deadline of 1"]),
        // One line has as much output as is kept altogether, so that a short time is enough to
        // exceed it.
        (
            "(let ((line (make-string 500000 :initial-element #\\x))) (loop (write-line line)))",
            5.0,
            &["deadline of 5", "left out"],
        ),
        ("(sleep 100)", 1.0, &["deadline of 1"]),
    ]);
}

#[test]
fn exhaustion_is_reported() {
    each_fails_clearly(&[
        ("(labels ((f (x) (1+ (f x)))) (f 1))", AMPLE, &["STACK-EXHAUSTED"]),
        ("(defun deep (x) (list (deep x))) (deep 1)", AMPLE, &["STACK-EXHAUSTED"]),
        ("(make-array (expt 10 9))", AMPLE, &["HEAP-EXHAUSTED"]),
    ]);
}

#[test]
fn a_heap_that_fills_costs_the_evaluation_alone() {
    each_fails_clearly(&[
        ("(let ((all '())) (loop (push (make-array 1000000) all)))", AMPLE, &["heap"]),
        ("(let ((all '())) (loop (push (list 1 2 3) all)))", AMPLE, &["heap"]),
    ]);
}

#[test]
fn leaving_is_refused() {
    each_fails_clearly(&[
        ("(sb-ext:exit)", AMPLE, &["exit"]),
        ("(sb-ext:exit :code 3 :abort t)", AMPLE, &["exit"]),
        ("(sb-ext:quit)", AMPLE, &["exit"]),
        ("(uiop:quit 2)", AMPLE, &["exit"]),
    ]);
}

#[test]
fn the_debugger_never_opens() {
    each_fails_clearly(&[
        ("(error \"boom ~a\" 7)", AMPLE, &["SIMPLE-ERROR", "boom 7"]),
        ("(break)", AMPLE, &["break"]),
        (
            "(invoke-debugger (make-condition 'simple-error :format-control \"asked\"))",
            AMPLE,
            &["SIMPLE-ERROR", "asked"],
        ),
        ("(abort)", AMPLE, &["abort"]),
        ("(error 'sb-sys:interactive-interrupt)", AMPLE, &["INTERACTIVE-INTERRUPT"]),
        ("(error 'sb-ext:timeout)", AMPLE, &["TIMEOUT"]),
        ("(car 1)", AMPLE, &["TYPE-ERROR"]),
        ("(defun incomplete (x)", AMPLE, &["END-OF-FILE"]),
        ("(no-such-package::foo)", AMPLE, &["NO-SUCH-PACKAGE"]),
    ]);
}

#[test]
fn output_and_values_are_bounded_and_kept() {
    each_succeeds(&[
        ("(dotimes (i 1000000) (write-string \"0123456789\"))", |a| {
            a.text.len() < 300_000 && a.text.contains("left out")
        }),
        ("(make-string 10000000 :initial-element #\\x)", |a| a.text.len() < 300_000 && a.text.contains("left out")),
        ("(values (read-line *standard-input* nil :end))", |a| a.values == [":END"]),
        ("(string (code-char #xD800))", |a| a.text.contains('\u{FFFD}')),
        ("(progn (sb-ext:run-program \"/bin/sh\" '(\"-c\" \"echo from-child >&1\") :output t) :ran)", |a| {
            a.values == [":RAN"] && a.text.contains("from-child")
        }),
        ("(progn (alien-funcall (extern-alien \"puts\" (function int c-string)) \"from-foreign\") :put)", |a| {
            a.values == [":PUT"]
        }),
        ("(let ((l (list 1))) (setf (cdr l) l) l)", |a| a.text.contains("#1=")),
        ("(values)", |a| a.values.is_empty()),
        ("(values 1 2)", |a| a.values == ["1", "2"]),
        (
            "(values (sb-thread:join-thread (sb-thread:make-thread (lambda () (error \"elsewhere\"))) :default :gone))",
            |a| a.values == [":GONE"],
        ),
        ("(progn (setf *standard-output* (make-broadcast-stream)) :vandal)", |a| a.values == [":VANDAL"]),
        ("(signal 'error)", |a| a.values == ["NIL"]),
    ]);
}

#[test]
fn an_evaluation_that_masks_interrupts_costs_the_image_and_says_so() {
    over_both_front_ends(|world, frontend| {
        let before = frontend.value("(consort:image-id)");
        // If the deadline comes before the loop has begun, only the evaluation ends.
        let mut deadline = 1.0;
        let answer = loop {
            let answer = frontend.eval("(sb-sys:without-interrupts (loop))", deadline);
            if answer.text.contains("new image is running") || deadline > AMPLE {
                break answer;
            }
            deadline *= 4.0;
        };
        assert!(answer.failed && answer.text.contains("new image is running"), "{}: {answer:?}", frontend.name());
        assert_ne!(frontend.value("(consort:image-id)"), before);
        assert_eq!(world.status()["image"]["state"], "ready");
    });
}

#[test]
fn other_calls_answer_while_lisp_loops_and_a_cancel_keeps_the_state() {
    over_both_front_ends(|world, frontend| {
        let image = remember(frontend);
        let id = frontend.begin("(loop)", AMPLE);
        until("the loop to run", || busy(world));
        // A ping of MCP, a request of LSP, and the command line do not wait for Lisp.
        match frontend {
            Frontend::Mcp(rpc) => drop(rpc.request("ping", json!({}))),
            Frontend::Lsp(rpc) => {
                drop(rpc.call("textDocument/diagnostic", json!({"textDocument": {"uri": "file:///x"}})))
            }
        }
        assert_eq!(world.status()["image"]["state"], "ready");
        frontend.cancel(id);
        if let Frontend::Lsp(rpc) = frontend {
            let answer = rpc.wait(id);
            assert_eq!(answer["error"]["code"], -32800, "RequestCancelled: {answer}");
        }
        nothing_lost(frontend, &image);
        until("the loop to end", || !busy(world));
    });
}

#[test]
fn a_killed_image_comes_back_with_its_systems() {
    over_both_front_ends(|world, frontend| {
        world.write("fixture.asd", "(defsystem \"fixture\" :components ((:file \"fixture\")))");
        world.write(
            "fixture.lisp",
            "(defpackage :fixture (:use :cl) (:export #:answer))\n(in-package :fixture)\n(defun answer () 42)\n",
        );
        let mut editor = Frontend::Lsp(world.lsp());
        let load = json!({"command": "consort.loadSystem", "arguments": [{"system": "fixture"}]});
        let loaded = editor.rpc().request("workspace/executeCommand", load);
        assert_eq!(loaded["loaded"], true, "{loaded}");
        assert_eq!(frontend.value("(fixture:answer)"), "42");

        let id = frontend.begin("(sleep 1000)", AMPLE);
        until("the evaluation to run", || busy(world));
        let pid = world.status()["image"]["pid"].as_i64().expect("the image has a pid");
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid is small")).expect("a pid is not 0");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it can be killed");

        let answer = frontend.wait(id);
        assert!(answer.failed && answer.text.contains("fixture"), "what was restored is named: {answer:?}");
        editor
            .rpc()
            .notification("window/showMessage", |p| p["message"].as_str().is_some_and(|m| m.contains("fixture")));
        assert_eq!(frontend.value("(fixture:answer)"), "42");
    });
}

#[test]
fn a_client_that_vanishes_leaves_nothing_running() {
    let world = Installation::new();
    let mut stays = Frontend::Mcp(world.mcp());
    let image = remember(&mut stays);
    for lsp in [true, false] {
        let mut frontend = if lsp { Frontend::Lsp(world.lsp()) } else { Frontend::Mcp(world.mcp()) };
        frontend.begin("(loop)", AMPLE);
        until("the loop to run", || busy(&world));
        match frontend {
            Frontend::Lsp(rpc) | Frontend::Mcp(rpc) => rpc.vanish(),
        }
        until("the loop to end", || !busy(&world));
        nothing_lost(&mut stays, &image);
    }
    drop(stays);
    world.finish();
}

#[test]
fn an_error_in_another_thread_is_told_and_costs_nothing() {
    over_both_front_ends(|_, frontend| {
        let image = remember(frontend);
        let made = "(sb-thread:join-thread (sb-thread:make-thread (lambda () (error \"elsewhere\")) :name \"made\") :default :gone)";
        let answer = frontend.eval(made, AMPLE);
        assert!(!answer.failed && answer.values[0] == ":GONE", "{answer:?}");
        let words = ["An error ended the Lisp thread \"made\"", "elsewhere"];
        let is_told = |text: &str| words.iter().all(|word| text.contains(word));
        match frontend {
            Frontend::Lsp(rpc) => {
                rpc.notification("window/showMessage", |p| p["message"].as_str().is_some_and(is_told));
            }
            // The error is in this answer, or in the next one.
            Frontend::Mcp(_) => {
                until("the error to be told", || is_told(&answer.text) || is_told(&frontend.eval(":next", AMPLE).text))
            }
        }
        nothing_lost(frontend, &image);
    });
}

#[test]
fn a_killed_host_is_replaced() {
    over_both_front_ends(|world, frontend| {
        assert_eq!(frontend.value("(+ 1 2)"), "3");
        let status = world.status();
        let pid = status["host_pid"].as_i64().expect("the host has a pid");
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).expect("a pid is small")).expect("a pid is not 0");
        let image = status["image"]["pid"].to_string();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it can be killed");
        // The image ends by itself, and the client, which restarts no server, continues.
        until("the image to leave", || !world.processes().iter().any(|line| line.starts_with(&format!("{image} "))));
        let answer = frontend.eval("(+ 1 2)", AMPLE);
        if answer.failed {
            assert!(answer.text.contains("host"), "what happened is said: {answer:?}");
            assert_eq!(frontend.value("(+ 1 2)"), "3");
        }
    });
}

/// Malformed messages in LSP's framing; those of MCP are below.
#[test]
fn malformed_messages_of_an_editor_are_answered_and_the_connection_lives() {
    let world = Installation::new();
    let mut editor = world.lsp();
    editor.send_raw(&framed("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\"", Framing::Headers));
    editor.send_raw(&framed("[".repeat(200_000), Framing::Headers));
    for _ in 0..2 {
        editor.until("a parse error", |rpc| {
            let at = rpc.notifications.iter().position(|m| m["error"]["code"] == -32700)?;
            Some(rpc.notifications.remove(at))
        });
    }
    let long = json!({"command": "consort.eval", "arguments": [{"code": format!("\"{}\"", "x".repeat(20_000_000))}]});
    let answer = editor.call("workspace/executeCommand", long);
    assert!(answer.to_string().len() < 1_000_000, "a message of 20 MB has a bounded answer");
    let unknown =
        editor.call("workspace/executeCommand", json!({"command": "consort.noSuchCommand", "arguments": [{}]}));
    assert!(unknown["error"]["message"].to_string().contains("consort.noSuchCommand"), "{unknown}");
    assert_eq!(editor.call("consort/noSuchMethod", json!({}))["error"]["code"], -32601);
    let mut editor = Frontend::Lsp(editor);
    assert_eq!(editor.value("(+ 1 2)"), "3");
    drop(editor);
    world.finish();
}

#[test]
fn malformed_input_is_answered_and_the_connection_lives() {
    let world = Installation::new();
    let mut agent = world.mcp();
    agent.send_raw(b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\"\n");
    agent.send_raw(format!("{}\n", "[".repeat(200_000)).as_bytes());
    for _ in 0..2 {
        agent.until("a parse error", |rpc| {
            let at = rpc.notifications.iter().position(|m| m["error"]["code"] == -32700)?;
            Some(rpc.notifications.remove(at))
        });
    }
    let long = "x".repeat(20_000_000);
    let answer =
        agent.call("tools/call", json!({"name": "evaluate-lisp", "arguments": {"code": format!("\"{long}\"")}}));
    assert!(answer.to_string().len() < 1_000_000, "a 20 MB line has a bounded answer");
    let unknown = agent.call("tools/call", json!({"name": "no-such-tool", "arguments": {}}));
    assert!(unknown.to_string().contains("evaluate-lisp"), "the tools there are, are named: {unknown}");
    let mut agent = Frontend::Mcp(agent);
    assert_eq!(agent.value("(+ 1 2)"), "3");
    drop(agent);
    world.finish();
}

#[test]
fn a_client_that_never_reads_holds_nobody_up() {
    for framing in [Framing::Headers, Framing::Lines] {
        let world = Installation::new();
        let noisy = "(dotimes (i 10000) (write-string \"0123456789\"))";
        let (method, params) = match framing {
            Framing::Headers => {
                ("workspace/executeCommand", json!({"command": "consort.eval", "arguments": [{"code": noisy}]}))
            }
            Framing::Lines => ("tools/call", json!({"name": "evaluate-lisp", "arguments": {"code": noisy}})),
        };
        let client = NonReadingClient::start(&world, framing, 199, method, params);
        for lsp in [true, false] {
            let mut hears = if lsp { Frontend::Lsp(world.lsp()) } else { Frontend::Mcp(world.mcp()) };
            for _ in 0..10 {
                assert_eq!(hears.value("(+ 1 2)"), "3");
            }
        }
        client.end();
        world.finish();
    }
}
