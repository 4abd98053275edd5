//! `consort lsp` and `consort mcp`: which host they find, and what they do when it is killed.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Fixture, Process, agent_params, file_uri, kill, wait_until, wait_until_gone};

fn editor(fixture: &Fixture) -> Process {
    let mut editor = Process::start(fixture.command(&["lsp"])).framed();
    let answer = editor.request("initialize", json!({"rootUri": file_uri(&fixture.workspace()), "capabilities": {}}));
    assert!(answer["result"]["capabilities"].is_object(), "{answer}");
    editor.send(&json!({"method": "initialized", "params": {}}));
    editor
}

#[test]
fn editors_and_agents_share_one_image() {
    let fixture = Fixture::new();
    fixture.file("sub/dir/x.lisp", "");
    fixture.file(".git/HEAD", "");
    let mut editor = editor(&fixture);
    let eval = json!({"command": "consort.eval", "arguments": [{"code": "(defvar cl-user::*shared* 42)"}]});
    editor.request("workspace/executeCommand", eval);
    let mut command = fixture.command(&["mcp"]);
    // With an .asd file of its own, which is nearer than the repository that the editor opened.
    fixture.file("sub/own.asd", "");
    command.current_dir(fixture.workspace().join("sub/dir"));
    let mut agent = Process::start(command);
    agent.request("initialize", agent_params(json!({})));
    assert_eq!(agent.eval("cl-user::*shared*"), "=> 42");
}

#[test]
fn a_debugger_meets_the_agents_image_and_ends_with_the_host() {
    let fixture = Fixture::new();
    let mut agent = fixture.agent();
    assert_eq!(agent.eval("(defvar cl-user::*shared* 42)"), "=> *SHARED*");
    let mut debugger = Process::start(fixture.command(&["dap"])).framed();
    let ask = |debugger: &mut Process, seq: u64, command: &str, arguments: Value| {
        debugger.send(&json!({"seq": seq, "type": "request", "command": command, "arguments": arguments}));
        let answer = debugger.next("the answer", |told| told["request_seq"] == seq);
        assert_eq!(answer["success"], true, "{answer}");
        answer["body"].clone()
    };
    assert_eq!(ask(&mut debugger, 1, "initialize", json!({}))["supportsRestartFrame"], true);
    ask(&mut debugger, 2, "attach", json!({}));
    ask(&mut debugger, 3, "configurationDone", json!({}));
    let evaluated = ask(&mut debugger, 4, "evaluate", json!({"expression": "cl-user::*shared*"}));
    assert_eq!(evaluated["result"], "42");
    assert!(fixture.run(&["stop"]).status.success());
    assert_eq!(debugger.finish().0, Some(0));
}

#[test]
fn an_agents_call_is_answered_when_the_host_is_killed_and_the_next_finds_another() {
    let fixture = Fixture::new();
    let mut agent = fixture.agent();
    assert_eq!(agent.eval("(defvar cl-user::*gone* 1)"), "=> *GONE*");
    let call = agent.ask_eval("(loop)");
    wait_until("the loop runs", || {
        fixture.status().is_some_and(|status| status["work"].as_array().is_some_and(|work| !work.is_empty()))
    });
    let before = fixture.host_pid();
    kill(before);
    let answer = agent.answer(call);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(
        answer["result"]["content"][0]["text"].as_str().unwrap().contains("exist only in the image are lost"),
        "{answer}"
    );
    assert_eq!(agent.eval("(boundp 'cl-user::*gone*)"), "=> NIL");
    assert_ne!(fixture.host_pid(), before);
    assert_eq!(agent.finish().0, Some(0));
}

#[test]
fn an_agent_works_on_after_consort_stop() {
    let fixture = Fixture::new();
    let mut agent = fixture.agent();
    assert!(fixture.run(&["stop"]).status.success());
    assert!(fixture.status().is_none(), "it starts another only when it is asked something");
    assert_eq!(agent.eval_in_the_next("(+ 40 2)"), "=> 42");
}

#[test]
fn an_editors_requests_are_answered_when_the_host_is_killed() {
    let fixture = Fixture::new();
    let mut editor = editor(&fixture);
    let call =
        editor.ask("workspace/executeCommand", json!({"command": "consort.eval", "arguments": [{"code": "(loop)"}]}));
    wait_until("the loop runs", || {
        fixture.status().is_some_and(|status| status["work"].as_array().is_some_and(|work| !work.is_empty()))
    });
    kill(fixture.host_pid());
    assert_eq!(editor.answer(call)["error"]["code"], -32603);
    editor.next("word of the new host", |told| {
        told["method"] == "window/showMessage" && told["params"]["message"].to_string().contains("A new one is running")
    });
    let eval = json!({"command": "consort.eval", "arguments": [{"code": "(+ 40 2)"}]});
    assert_eq!(editor.request("workspace/executeCommand", eval)["result"]["values"], json!(["42"]));
    assert_eq!(editor.request("shutdown", Value::Null)["result"], Value::Null);
    editor.send(&json!({"method": "exit"}));
    assert_eq!(editor.finish().0, Some(0));
}

/// Wait until a document's diagnostics are those of these codes.
fn await_codes(editor: &mut Process, uri: &str, version: i64, codes: &[&str]) {
    editor.next(&format!("{codes:?} in version {version}"), |message| {
        let params = &message["params"];
        if message["method"] != "textDocument/publishDiagnostics" || params["uri"] != uri {
            return false;
        }
        let found: Vec<_> = params["diagnostics"].as_array().unwrap().iter().map(|found| &found["code"]).collect();
        params["version"] == version && found == codes
    });
}

#[test]
fn an_editors_documents_are_checked_again_when_the_host_was_killed() {
    let fixture = Fixture::new();
    let uri = file_uri(&fixture.file("x.lisp", "on disk, and older"));
    let mut editor = editor(&fixture);
    let document = json!({"uri": uri, "languageId": "commonlisp", "version": 1, "text": "(defun f (x) 1)\n"});
    editor.send(&json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}));
    await_codes(&mut editor, &uri, 1, &["unused-variable"]);
    let change = |editor: &mut Process, version: i64, text: &str| {
        let at = json!({"line": 1, "character": 0});
        let changes = json!([{"range": {"start": at, "end": at}, "text": text}]);
        let params = json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": changes});
        editor.send(&json!({"method": "textDocument/didChange", "params": params}));
    };
    change(&mut editor, 2, "(defun g () (nowhere))\n");
    await_codes(&mut editor, &uri, 2, &["unused-variable", "undefined-function"]);
    let before = fixture.host_pid();
    kill(before);
    await_codes(&mut editor, &uri, 2, &["unused-variable", "undefined-function"]);
    assert_ne!(fixture.host_pid(), before);
    change(&mut editor, 3, "(defun nowhere () 1)\n");
    await_codes(&mut editor, &uri, 3, &["unused-variable"]);
    // Again and again in a short time, it is left to the editor.
    wait_until("the bridge to give up", || {
        let gone = editor.child.try_wait().unwrap().is_some();
        if !gone && let Some(status) = fixture.status() {
            kill(status["host_pid"].as_u64().unwrap());
            wait_until("another host, or the bridge's end", || {
                fixture.status().is_some_and(|status| status["clients"].as_array().is_some_and(|here| !here.is_empty()))
                    || editor.child.try_wait().unwrap().is_some()
            });
        }
        gone
    });
    let code = loop {
        if editor.receive().is_none() {
            break editor.finish().0;
        }
    };
    assert_eq!(code, Some(1));
}

#[test]
fn unsaved_work_is_unsaved_also_for_the_next_host() {
    let fixture = Fixture::new();
    let path = fixture.file("x.lisp", "(defun f () :disk)\n");
    let uri = file_uri(&path);
    let mut editor = editor(&fixture);
    let document = json!({"uri": uri, "languageId": "commonlisp", "version": 1, "text": "(defun f (x) :disk)\n"});
    editor.send(&json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}));
    await_codes(&mut editor, &uri, 1, &["unused-variable"]);
    let mut agent = fixture.agent();
    let read = |agent: &mut Process| {
        let arguments = json!({"path": "x.lisp", "collapsed": false});
        let answer = agent.request("tools/call", json!({"name": "lisp-read-file", "arguments": arguments}));
        let facts = &answer["result"]["structuredContent"];
        (facts["text"].as_str().unwrap_or_default().to_owned(), facts["unsaved"] == true)
    };
    assert_eq!(read(&mut agent), ("(defun f (x) :disk)".into(), true));
    kill(fixture.host_pid());
    await_codes(&mut editor, &uri, 1, &["unused-variable"]);
    assert_eq!(read(&mut agent), ("(defun f (x) :disk)".into(), true));
}

#[test]
fn a_host_that_is_told_to_leave_is_not_replaced_by_editors() {
    let fixture = Fixture::new();
    let mut editor = editor(&fixture);
    assert!(fixture.run(&["stop"]).status.success());
    editor.told("window/showMessage");
    while editor.receive().is_some() {}
    assert!(fixture.status().is_none());
    let (code, said) = editor.finish();
    assert_eq!(code, Some(0), "an end in order, and no failure");
    assert!(said.contains("The Consort host was stopped"), "{said}");
}

#[test]
fn an_agents_work_ends_with_it() {
    let fixture = Fixture::new();
    let mut agent = fixture.agent();
    agent.ask_eval("(loop)");
    wait_until("the loop runs", || {
        fixture.status().is_some_and(|status| status["work"].as_array().is_some_and(|work| !work.is_empty()))
    });
    drop(agent);
    wait_until("the loop is interrupted", || fixture.status().is_some_and(|status| status["work"] == json!([])));
}

#[test]
fn what_is_piped_in_is_answered_before_the_end() {
    let fixture = Fixture::new();
    let mut child = fixture.command(&["mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": agent_params(json!({}))});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
                      "params": {"name": "evaluate-lisp", "arguments": {"code": "(progn (sleep 0.2) :piped)"}}});
    // No line break at the end.
    write!(stdin, "{initialize}\n\n{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}}\n{call}").unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("=> :PIPED"), "{output:?}");
}

#[test]
fn an_agents_roots_say_where_it_works() {
    let fixture = Fixture::new();
    let elsewhere = Fixture::new();
    // The runtime directory of `fixture` and the current directory of `elsewhere`.
    let mut command: Command = fixture.command(&["mcp"]);
    command.current_dir(elsewhere.workspace());
    let mut agent = Process::start(command);
    let answer = agent.request("initialize", agent_params(json!({"roots": {"listChanged": true}})));
    assert_eq!(answer["result"]["serverInfo"]["name"], "consort");
    assert!(fixture.status().is_none(), "not before the roots are known");
    agent.send(&json!({"method": "notifications/initialized"}));
    let asked = agent.told("roots/list");
    let waiting = agent.ask("tools/list", json!({}));
    let ping = agent.ask("ping", json!({}));
    assert_eq!(agent.answer(ping)["result"], json!({}), "answered meanwhile");
    agent
        .send(&json!({"id": asked["id"], "result": {"roots": [{"uri": file_uri(&fixture.workspace()), "name": "w"}]}}));
    assert!(agent.answer(waiting)["result"]["tools"].is_array(), "asked early, answered late");
    // The status has no clients while the session is busy for long.
    wait_until("the client", || fixture.status().is_some_and(|status| status["clients"][0]["name"] == "test 1"));
}

#[test]
fn an_agent_without_a_handshake_is_served() {
    let fixture = Fixture::new();
    let mut agent = Process::start(fixture.command(&["mcp", "--workspace", "."]));
    let answer = agent.request("ping", json!({}));
    assert!(answer["result"].is_object() || answer["error"].is_object(), "{answer}");
}

#[test]
fn a_workspace_that_does_not_exist_is_an_answer() {
    let fixture = Fixture::new();
    let mut editor = Process::start(fixture.command(&["lsp"])).framed();
    let answer = editor.request("initialize", json!({"rootUri": "file:///no/such/place", "capabilities": {}}));
    assert!(answer["error"]["message"].as_str().unwrap().contains("/no/such/place cannot be used"), "{answer}");
    assert_eq!(editor.finish().0, Some(1));
    let agent = fixture.run(&["mcp", "--workspace", "/no/such/place"]);
    assert_eq!(agent.status.code(), Some(2));
}

#[test]
fn an_editors_first_words_are_answered_as_the_specification_says() {
    let fixture = Fixture::new();
    let mut editor = Process::start(fixture.command(&["lsp"])).framed();
    assert_eq!(editor.request("textDocument/hover", json!({}))["error"]["code"], -32002);
    editor.stdin.as_mut().unwrap().write_all(b"Content-Length: 3\r\n\r\n{]}").unwrap();
    let parse_error = editor.next("a parse error", |message| message["error"]["code"] == -32700);
    assert_eq!(parse_error["id"], Value::Null);
    editor.send(&json!({"seq": 1, "type": "request", "command": "initialize"}));
    editor.next("a refusal of the debugger's protocol", |message| message["error"]["code"] == -32600);
    editor.send(&json!({"method": "exit"}));
    assert_eq!(editor.finish().0, Some(1));
}

#[test]
fn input_that_is_not_the_protocol_is_told_and_starts_no_host() {
    let fixture = Fixture::new();
    for (commands, input, why) in [
        (&["lsp", "dap"][..], "hello\n", "`Content-Length: N` and an empty line"),
        (&["lsp", "dap"], "Content-Length: 2\n\n{}", "each ended by \\r\\n"),
        (&["lsp", "dap"], "Content-Length: two\r\n\r\n{}", "not a number of bytes: \"two\""),
        (&["lsp", "dap"], "Content-Length: 99999999999\r\n\r\n{}", "a body of 99999999999 bytes; the limit is"),
        (&["lsp", "dap"], "Content-Length: 9\r\n\r\n{}", "in the middle of a message, after \"Content-Length: 9"),
        (&["lsp", "dap"], "\u{16}\u{3}\u{1}\u{0}", "got \"\\u{16}\\u{3}\\u{1}\\0\""),
        (&["dap"], "Content-Length: 1\r\n\r\n{}", "the first message is no request"),
        (&["dap"], "Content-Length: 23\r\n\r\n{\"method\":\"initialize\"}", "missing field `command`"),
        (&["mcp"], "\nhello", "expected a JSON object on each line; got \"hello\""),
        (&["mcp"], "Content-Length: 2\r\n\r\n{}", "expected a JSON object on each line; got \"Content-Length: 2"),
        (&["lsp", "dap", "mcp"], "", "it ended before the "),
    ] {
        for command in commands {
            let output = fixture.run_with_input(&[command], input);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), &output.stdout[..]), (Some(1), &b""[..]), "{command} {input:?}: {said}");
            assert!(said.contains(why) && said.contains(&format!("consort {command} --help")), "{command}: {said}");
            assert!(fixture.status().is_none(), "{command} {input:?}");
        }
    }
}

#[test]
fn shutdown_and_exit_end_the_bridge_and_not_the_host() {
    let fixture = Fixture::new();
    let mut first = editor(&fixture);
    assert_eq!(first.request("shutdown", Value::Null)["result"], Value::Null);
    first.send(&json!({"method": "exit"}));
    let mut rest = Vec::new();
    first.child.stderr.take().unwrap().read_to_end(&mut rest).unwrap();
    assert_eq!(first.child.wait().unwrap().code(), Some(0), "{}", String::from_utf8_lossy(&rest));

    let second = editor(&fixture);
    assert_eq!(second.finish().0, Some(1), "without shutdown it is a failure, by the specification");
    assert!(fixture.status().is_some());
}

#[test]
fn a_bridge_whose_client_vanishes_is_gone() {
    let fixture = Fixture::new();
    for command in ["mcp", "lsp"] {
        let bridge = if command == "mcp" { fixture.agent() } else { editor(&fixture) };
        let pid = u64::from(bridge.child.id());
        let (code, _) = bridge.finish();
        assert!(code.is_some());
        wait_until_gone(pid);
    }
    wait_until("the host has counted them out", || {
        fixture.status().is_some_and(|status| status["clients"] == json!([]))
    });
}
