//! Hosts that are killed, stopped, or lose their files: there is one host at any time, and whoever
//! needs it is served or told.

use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::{
    Fixture, Process, agent_params, file_uri, kill, pids, remove_at_once, signal, suspend, wait_until, wait_until_gone,
};

/// The number of times that the host is killed while others come.
const KILLS: usize = 10;

#[test]
fn whoever_comes_when_the_host_was_killed_is_served() {
    let fixture = Fixture::new();
    let file = fixture.file("x.lisp", "(defun f () 1)\n").display().to_string();
    let mut agent = fixture.agent();
    assert_eq!(agent.eval("(+ 40 2)"), "=> 42");
    for round in 0..KILLS {
        kill(fixture.host_pid());
        let command = |args: &[&str]| -> Child {
            fixture
                .command(args)
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it starts")
        };
        let mut editor = Process::start(fixture.command(&["lsp"])).framed();
        let opened = editor.ask("initialize", json!({"rootUri": file_uri(&fixture.workspace()), "capabilities": {}}));
        let mut other = Process::start(fixture.command(&["mcp"]));
        let greeted = other.ask("initialize", agent_params(json!({})));
        let commands = [command(&["eval", "(+ 40 2)"]), command(&["check", &file]), command(&["status"])];
        assert!(editor.answer(opened)["result"]["capabilities"].is_object(), "round {round}");
        assert_eq!(other.answer(greeted)["result"]["serverInfo"]["name"], "consort", "round {round}");
        for (child, name) in commands.into_iter().zip(["eval", "check", "status"]) {
            let output = child.wait_with_output().expect("it ends");
            // `status` starts no host: that none runs is an answer, and its code says so.
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let answered = output.status.success() || (name == "status" && said.starts_with("No host runs"));
            assert!(answered, "round {round}, {name}: {output:?}");
        }
    }
    // The one that was there all the time goes on too.
    let again = agent.eval("(+ 40 2)");
    assert!(again == "=> 42" || agent.eval("(+ 40 2)") == "=> 42", "{again}");
}

#[test]
fn an_editor_whose_host_is_killed_meets_the_one_that_another_client_started() {
    let fixture = Fixture::new();
    let mut editor = Process::start(fixture.command(&["lsp"])).framed();
    editor.request("initialize", json!({"rootUri": file_uri(&fixture.workspace()), "capabilities": {}}));
    let bridge = i32::try_from(editor.child.id()).expect("a number");
    // The bridge sees the end of the old host only when the new one is there.
    suspend(bridge);
    let before = fixture.host_pid();
    kill(before);
    wait_until_gone(before);
    assert!(fixture.run(&["eval", "1"]).status.success());
    signal(bridge, rustix::process::Signal::CONT);
    let eval = json!({"command": "consort.eval", "arguments": [{"code": "(+ 40 2)"}]});
    let told = editor.receive().expect("a message, and not the end");
    assert!(told["params"]["message"].to_string().contains("A new one is running"), "{told}");
    assert_eq!(editor.request("workspace/executeCommand", eval)["result"]["values"], json!(["42"]));
}

/// An editor with unsaved changes in `x.lisp`.
fn editor_with_unsaved_changes(fixture: &Fixture) -> Process {
    let file = fixture.file("x.lisp", "(defun f () :saved)\n");
    let mut editor = Process::start(fixture.command(&["lsp"])).framed();
    editor.request("initialize", json!({"rootUri": file_uri(&fixture.workspace()), "capabilities": {}}));
    editor.send(&json!({"method": "initialized", "params": {}}));
    let text = "(defun f () :unsaved)\n";
    let document = json!({"uri": file_uri(&file), "languageId": "commonlisp", "version": 1, "text": text});
    editor.send(&json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}));
    editor.request("workspace/executeCommand", json!({"command": "consort.status", "arguments": []}));
    editor
}

/// Kills the host, and has an agent come to the next one long before the editor does.
fn an_agent_reads_what_the_editor_has(fixture: &Fixture, editor: &Process, before_the_kill: impl FnOnce()) {
    let bridge = i32::try_from(editor.child.id()).expect("a number");
    let before = fixture.host_pid();
    suspend(bridge);
    before_the_kill();
    kill(before);
    wait_until_gone(before);
    let mut agent = fixture.agent();
    let reading = json!({"name": "lisp-read-file", "arguments": {"path": "x.lisp"}});
    let asked = agent.ask("tools/call", reading);
    // Without an image, whose start may take longer than the host waits for the editor.
    assert!(agent.request("tools/list", json!({}))["result"]["tools"].is_array(), "what is about no file is answered");
    signal(bridge, rustix::process::Signal::CONT);
    let told = agent.answer(asked);
    assert!(told["result"].to_string().contains(":unsaved"), "{told}");
}

#[test]
fn an_agent_does_not_read_the_disk_before_an_editor_has_opened_its_documents_again() {
    let fixture = Fixture::new();
    let editor = editor_with_unsaved_changes(&fixture);
    an_agent_reads_what_the_editor_has(&fixture, &editor, || {});
}

/// Waits until the editor is shown a message that contains this text. Other messages may come
/// first: a host that looks after its runtime directory at that moment reports what it found.
fn await_message(editor: &mut Process, text: &str) {
    editor.next(&format!("the message {text:?}"), |told| {
        told["method"] == "window/showMessage" && told["params"]["message"].to_string().contains(text)
    });
}

/// Removes all runtime directories of the fixture.
fn remove_the_runtime_directory(fixture: &Fixture) {
    let base = fixture.place().path().parent().map(Path::to_owned).expect("a parent");
    remove_at_once(&base);
}

/// Elsewhere than on Linux there are no names that outlive the directory.
#[cfg(target_os = "linux")]
#[test]
fn a_host_that_is_killed_when_its_directory_was_removed_is_replaced_too() {
    let fixture = Fixture::new();
    let mut editor = editor_with_unsaved_changes(&fixture);
    an_agent_reads_what_the_editor_has(&fixture, &editor, || remove_the_runtime_directory(&fixture));
    await_message(&mut editor, "A new one is running, and has your open documents");
    let eval = json!({"command": "consort.eval", "arguments": [{"code": "(+ 40 2)"}]});
    assert_eq!(editor.request("workspace/executeCommand", eval)["result"]["values"], json!(["42"]));
    // And the next, which nobody but the editor starts.
    let before = fixture.host_pid();
    remove_the_runtime_directory(&fixture);
    kill(before);
    await_message(&mut editor, "A new one is running");
    assert_ne!(fixture.host_pid(), before);
}

#[test]
fn a_host_that_is_interrupted_when_its_directory_was_removed_is_not_replaced() {
    let fixture = Fixture::new();
    let mut editor = editor_with_unsaved_changes(&fixture);
    let host = fixture.host_pid();
    remove_the_runtime_directory(&fixture);
    signal(i32::try_from(host).expect("a number"), rustix::process::Signal::INT);
    await_message(&mut editor, "was stopped");
    wait_until_gone(host);
    assert!(!fixture.place().path().exists(), "nothing is left, and no other was started");
}

/// The answer of an agent's tool call about `x.lisp`.
fn of_file(agent: &mut Process, tool: &str, arguments: &Value) -> Value {
    agent.request("tools/call", json!({"name": tool, "arguments": arguments}))["result"].clone()
}

/// Asks an agent to replace the function of `x.lisp`.
fn edited(agent: &mut Process) -> Value {
    let edit = json!({"path": "x.lisp", "form_type": "defun", "form_name": "f", "content": "(defun f () :agent)"});
    of_file(agent, "lisp-edit-form", &edit)
}

#[test]
fn a_host_that_gets_a_signal_to_end_is_replaced_with_the_documents() {
    for signal_to_end in [rustix::process::Signal::TERM, rustix::process::Signal::HUP] {
        let fixture = Fixture::new();
        let mut editor = editor_with_unsaved_changes(&fixture);
        let mut agent = fixture.agent();
        let before = fixture.host_pid();
        signal(i32::try_from(before).expect("a number"), signal_to_end);
        // The host that leaves may say so before it ends.
        await_message(&mut editor, "A new one is running");
        assert_ne!(fixture.host_pid(), before);
        let read = of_file(&mut agent, "lisp-read-file", &json!({"path": "x.lisp"}));
        assert_eq!(read["structuredContent"]["unsaved"], true, "{read}");
    }
}

/// Waits until a file is marked as unsaved, which is done after its change is known.
#[cfg(target_os = "linux")]
fn wait_until_marked(fixture: &Fixture) {
    wait_until("the file is marked", || {
        let marks = std::fs::read_dir(fixture.state().join("unsaved"));
        marks.is_ok_and(|marks| marks.flatten().any(|mark| !mark.file_name().to_string_lossy().starts_with('.')))
    });
}

#[cfg(target_os = "linux")]
#[test]
fn unsaved_text_of_an_editor_without_a_host_is_not_edited_over() {
    let fixture = Fixture::new();
    let mut editor = editor_with_unsaved_changes(&fixture);
    wait_until_marked(&fixture);
    assert!(fixture.run(&["stop"]).status.success());
    // The editor leaves after its host: one that leaves first has not shut the server down.
    while editor.receive().is_some() {}
    let (code, _) = editor.finish();
    assert_eq!(code, Some(0));
    // This process stands for the editor, which still has the text.
    let mut agent = fixture.agent();
    let read = of_file(&mut agent, "lisp-read-file", &json!({"path": "x.lisp"}));
    assert!(read["content"].to_string().contains("had unsaved changes in an editor"), "{read}");
    assert_eq!(read["structuredContent"]["unsaved"], false, "{read}");
    let refused = edited(&mut agent);
    assert_eq!(refused["isError"], true, "{refused}");
    assert!(refused["content"].to_string().contains("that is not connected to this host"), "{refused}");
    let disk = || std::fs::read_to_string(fixture.workspace().join("x.lisp")).expect("the file");
    assert_eq!(disk(), "(defun f () :saved)\n");
    // The editor comes back with the text, and closes it without saving.
    let mut editor = editor_with_unsaved_changes(&fixture);
    let read = of_file(&mut agent, "lisp-read-file", &json!({"path": "x.lisp"}));
    assert_eq!(read["structuredContent"]["unsaved"], true, "{read}");
    let closed = json!({"textDocument": {"uri": file_uri(&fixture.workspace().join("x.lisp"))}});
    editor.send(&json!({"method": "textDocument/didClose", "params": closed}));
    wait_until("the text is the disk's, and nobody has another", || {
        let read = of_file(&mut agent, "lisp-read-file", &json!({"path": "x.lisp"}));
        read["structuredContent"]["unsaved"] == false && !read["content"].to_string().contains("unsaved")
    });
}

#[cfg(target_os = "linux")]
#[test]
fn unsaved_text_of_an_editor_at_the_host_of_an_outer_workspace_is_not_edited_over() {
    let fixture = Fixture::new();
    let inner = fixture.workspace().join("inner");
    std::fs::create_dir_all(inner.join(".git")).expect("a workspace");
    let file = fixture.file("inner/x.lisp", "(defun f () :saved)\n");
    let mut editor = Process::start(fixture.command(&["lsp"])).framed();
    editor.request("initialize", json!({"rootUri": file_uri(&fixture.workspace()), "capabilities": {}}));
    editor.send(&json!({"method": "initialized", "params": {}}));
    let document =
        json!({"uri": file_uri(&file), "languageId": "commonlisp", "version": 1, "text": "(defun f () :saved)\n"});
    editor.send(&json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}));
    let change = json!({"textDocument": {"uri": file_uri(&file), "version": 2}, "contentChanges": [{"text": "(defun f () :unsaved)\n"}]});
    editor.send(&json!({"method": "textDocument/didChange", "params": change}));
    editor.request("workspace/executeCommand", json!({"command": "consort.status", "arguments": []}));
    wait_until_marked(&fixture);
    let mut command = fixture.command(&["mcp"]);
    command.current_dir(&inner);
    let mut agent = Process::start(command);
    agent.request("initialize", agent_params(json!({})));
    wait_until("the agent knows", || edited(&mut agent)["content"].to_string().contains("not connected to this host"));
    assert_eq!(std::fs::read_to_string(&file).expect("the file"), "(defun f () :saved)\n");
    assert!(fixture.command(&["stop"]).current_dir(&inner).status().expect("it runs").success());
}

#[test]
fn a_runtime_directory_that_is_removed_is_made_again_and_there_is_one_image() {
    let fixture = Fixture::new();
    let mut agent = fixture.agent();
    assert_eq!(agent.eval("(defvar cl-user::*kept* 42)"), "=> *KEPT*");
    let before = pids(&fixture.status().expect("a status"));
    let base = fixture.place().path().parent().map(Path::to_owned).expect("a parent");
    for remove in [base.clone(), fixture.place().path().to_owned(), fixture.place().socket()] {
        if remove.is_dir() {
            remove_at_once(&remove);
        } else {
            std::fs::remove_file(&remove).expect("removed");
        }
        // A client that comes now starts no second host.
        let eval = fixture.run(&["eval", "cl-user::*kept*"]);
        assert_eq!(String::from_utf8_lossy(&eval.stdout), "=> 42\n", "{remove:?}: {eval:?}");
        // Behind the value an agent is told what happened.
        let value = agent.eval("cl-user::*kept*");
        assert!(value.starts_with("=> 42"), "{value}");
        let status = fixture.status().expect("a status");
        assert_eq!(pids(&status), before);
        assert!(status["notes"].to_string().contains("The runtime directory was removed"), "{status}");
    }
    // Everything that needs the directory works as before.
    let file = fixture.file("x.lisp", "(defun f (x) 1)\n").display().to_string();
    let check = fixture.run(&["check", &file]);
    assert!(String::from_utf8_lossy(&check.stdout).contains("unused-variable"), "{check:?}");
}

#[test]
fn a_host_that_is_stopped_is_told_of_and_waited_for() {
    let fixture = Fixture::new();
    let mut editor = Process::start(fixture.command(&["lsp"])).framed();
    editor.request("initialize", json!({"rootUri": file_uri(&fixture.workspace()), "capabilities": {}}));
    let mut agent = fixture.agent();
    assert_eq!(agent.eval("(+ 40 2)"), "=> 42");
    let host = fixture.host_pid();
    let pid = i32::try_from(host).expect("a number");
    let told = format!("(process {host}) does not answer");
    suspend(pid);
    // A client that comes, one that asks, and one that calls a tool.
    let eval = fixture
        .command(&["eval", "(+ 40 2)"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let asked =
        editor.ask("workspace/executeCommand", json!({"command": "consort.eval", "arguments": [{"code": "(+ 40 2)"}]}));
    let call = agent.ask_eval("(+ 40 2)");
    let answer = agent.answer(call);
    assert_eq!(answer["result"]["isError"], true);
    assert!(answer["result"]["content"].to_string().contains(&told), "{answer}");
    let said = |message: &Value, what: &str| message["params"]["message"].to_string().contains(what);
    let mut message = editor.receive().expect("a message");
    while !said(&message, &told) {
        message = editor.receive().expect("a message");
    }
    let status = fixture.run(&["status"]);
    assert!(String::from_utf8_lossy(&status.stderr).contains(&told), "{status:?}");
    signal(pid, rustix::process::Signal::CONT);
    assert_eq!(editor.answer(asked)["result"]["values"], json!(["42"]));
    assert_eq!(agent.eval("(+ 1 1)"), "=> 2", "the late answer to the first call is nobody's");
    let eval = eval.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&eval.stdout), "=> 42\n");
    assert!(String::from_utf8_lossy(&eval.stderr).contains(&told), "{eval:?}");
    wait_until("the editor is told that it answers again", || {
        editor.receive().is_some_and(|message| said(&message, "answers again"))
    });
}

/// The codes and the version of the next diagnostics of a document.
fn published(editor: &mut Process, uri: &str) -> (i64, Vec<String>) {
    loop {
        let message = editor.receive().expect("diagnostics, and not the end");
        let params = &message["params"];
        if message["method"] == "textDocument/publishDiagnostics" && params["uri"] == uri {
            let found = params["diagnostics"].as_array().expect("diagnostics");
            let codes = found.iter().map(|found| found["code"].as_str().unwrap_or_default().to_owned()).collect();
            return (params["version"].as_i64().unwrap_or_default(), codes);
        }
    }
}

#[test]
fn checks_that_cannot_be_made_are_said_and_made_when_they_can() {
    let fixture = Fixture::new();
    let uri = file_uri(&fixture.file("x.lisp", "(defun f (x) 1)\n"));
    let mut editor = Process::start(fixture.command(&["lsp"])).framed();
    editor.request("initialize", json!({"rootUri": file_uri(&fixture.workspace()), "capabilities": {}}));
    editor.send(&json!({"method": "initialized", "params": {}}));
    let document = json!({"uri": uri, "languageId": "commonlisp", "version": 1, "text": "(defun f (x) 1)\n"});
    editor.send(&json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}));
    while published(&mut editor, &uri).1 != ["unused-variable"] {}
    // No copy of the image has a place to work in.
    let work = fixture.place().work();
    // One may be made at this moment.
    wait_until("a file in its place", || {
        let _ = std::fs::remove_dir_all(&work);
        std::fs::write(&work, "in the way").is_ok()
    });
    let change = |editor: &mut Process, version: i64| {
        let at = json!({"line": 1, "character": 0});
        let changes = json!([{"range": {"start": at, "end": at}, "text": format!("(defun g{version} (y) 1)\n")}]);
        let params = json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": changes});
        editor.send(&json!({"method": "textDocument/didChange", "params": params}));
    };
    // A copy that was kept ready may do one check more.
    let mut version = 1;
    let outdated = |codes: &[String]| codes.iter().any(|code| code == "not-checked");
    'changes: loop {
        version += 1;
        change(&mut editor, version);
        loop {
            let (of, codes) = published(&mut editor, &uri);
            if outdated(&codes) {
                break 'changes;
            }
            if of == version && codes.len() > usize::try_from(version).expect("a number") - 1 {
                break;
            }
        }
    }
    let status = fixture.status().expect("a status");
    assert!(status["notes"].to_string().contains("Documents are not checked now"), "{status}");
    std::fs::remove_file(&work).expect("removed");
    while outdated(&published(&mut editor, &uri).1) {}
    wait_until("the status says so too", || {
        fixture.status().is_some_and(|status| !status["notes"].to_string().contains("Documents are not checked now"))
    });
}

/// An agent whose evaluation reads a line: the agent, the id of the call, and the question.
fn asked_for_a_line(fixture: &Fixture) -> (Process, u64, Value) {
    let mut agent = Process::start(fixture.command(&["mcp"]));
    agent.request("initialize", agent_params(json!({"elicitation": {}})));
    agent.send(&json!({"method": "notifications/initialized"}));
    let reads = agent.ask_eval("(read-line)");
    let asked = agent.told("elicitation/create");
    (agent, reads, asked)
}

#[test]
fn a_question_of_a_killed_host_is_taken_back_and_its_answer_never_answers_the_next_host() {
    let fixture = Fixture::new();
    let (mut agent, reads, old) = asked_for_a_line(&fixture);
    let host = fixture.host_pid();
    kill(host);
    wait_until_gone(host);
    let back = agent.told("notifications/cancelled");
    assert_eq!(back["params"]["requestId"], old["id"], "{back}");
    assert_eq!(agent.answer(reads)["result"]["isError"], true);

    let line = |id: &Value, text: &str| json!({"id": id, "result": {"action": "accept", "content": {"text": text}}});
    let reads = agent.ask_eval("(read-line)");
    let new = agent.told("elicitation/create");
    assert_ne!(new["id"], old["id"]);
    agent.send(&line(&old["id"], "for the host that is gone"));
    agent.send(&line(&new["id"], "for this one"));
    let answer = agent.answer(reads);
    assert_eq!(answer["result"]["structuredContent"]["values"], json!(["\"for this one\"", "NIL"]), "{answer}");
}

#[test]
fn a_question_of_an_evaluation_that_was_cancelled_is_taken_back() {
    let fixture = Fixture::new();
    let (mut agent, reads, asked) = asked_for_a_line(&fixture);
    agent.send(&json!({"method": "notifications/cancelled", "params": {"requestId": reads}}));
    let back = agent.told("notifications/cancelled");
    assert_eq!(back["params"]["requestId"], asked["id"], "{back}");
    assert_eq!(agent.eval("(+ 40 2)"), "=> 42");
}
