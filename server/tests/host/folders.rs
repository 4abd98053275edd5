//! An editor with several folders: which host an agent meets that is started in the second.

use serde_json::json;

use crate::support::{Fixture, Process, agent_params, file_uri, wait_until};

/// An editor with the workspaces of `first` and `second` as its folders.
fn editor(first: &Fixture, second: &Fixture) -> Process {
    let mut editor = Process::start(first.command(&["lsp"])).framed();
    let folder = |fixture: &Fixture| json!({"uri": file_uri(&fixture.workspace()), "name": "x"});
    let folders = json!([folder(first), folder(second)]);
    let answer = editor.request("initialize", json!({"workspaceFolders": folders, "capabilities": {}}));
    assert!(answer["result"]["capabilities"].is_object(), "{answer}");
    editor.send(&json!({"method": "initialized", "params": {}}));
    editor
}

/// An agent that is started in the workspace of `second`, with the runtime directory of `first`.
fn agent(first: &Fixture, second: &Fixture, args: &[&str]) -> Process {
    let mut command = first.command(args);
    command.current_dir(second.workspace().join("src"));
    let mut agent = Process::start(command);
    agent.request("initialize", agent_params(json!({})));
    agent
}

fn recorded(fixture: &Fixture) -> usize {
    fixture.place().read_host_file().map_or(0, |host| host.folders.len())
}

#[test]
fn an_agent_in_the_second_folder_meets_the_editors_image_and_its_own_files() {
    let (first, second) = (Fixture::new(), Fixture::new());
    first.file("src/same.lisp", "(defun of-the-first ())\n");
    second.file("src/same.lisp", "(defun of-the-second ())\n");
    let mut editor = editor(&first, &second);
    wait_until("the record of the folder", || recorded(&first) == 1);
    let eval = json!({"command": "consort.eval", "arguments": [{"code": "(defvar cl-user::*shared* 42)"}]});
    editor.request("workspace/executeCommand", eval);
    let there = second.workspace();
    for args in [&["mcp"][..], &["mcp", "--workspace", there.to_str().unwrap()]] {
        let mut agent = agent(&first, &second, args);
        assert_eq!(agent.eval("cl-user::*shared*"), "=> 42", "{args:?}");
        let read = |path: &str| json!({"name": "lisp-read-file", "arguments": {"path": path}});
        let own = agent.request("tools/call", read("src/same.lisp"));
        assert!(own["result"].to_string().contains("of-the-second"), "{own}");
        let other = first.workspace().join("src/same.lisp");
        let other = agent.request("tools/call", read(other.to_str().unwrap()));
        assert_eq!(other["result"]["isError"], true, "{other}");
    }
    // The command line meets it too.
    let output = first.command(&["eval", "cl-user::*shared*"]).current_dir(&there).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "=> 42\n", "{output:?}");
    // The command does not end the work in the first folder from the second.
    let refused = first.command(&["stop"]).current_dir(&there).output().unwrap();
    let why = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && why.contains("is served by the host of"), "{refused:?}");
    let stopped = first.command(&["stop"]).current_dir(first.workspace()).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
}

#[test]
fn a_folder_that_the_editor_has_closed_has_a_host_of_its_own_again() {
    let (first, second) = (Fixture::new(), Fixture::new());
    second.file("src/a.lisp", "");
    let mut editor = editor(&first, &second);
    wait_until("the record of the folder", || recorded(&first) == 1);
    let folder = json!({"uri": file_uri(&second.workspace()), "name": "x"});
    let event = json!({"added": [], "removed": [folder]});
    editor.send(&json!({"method": "workspace/didChangeWorkspaceFolders", "params": {"event": event}}));
    wait_until("the end of the record", || recorded(&first) == 0);
    let mut agent = agent(&first, &second, &["mcp"]);
    agent.eval("(defvar cl-user::*mine* 1)");
    let answer = editor.request(
        "workspace/executeCommand",
        json!({"command": "consort.eval", "arguments": [{"code": "(boundp 'cl-user::*mine*)"}]}),
    );
    assert_eq!(answer["result"]["values"], json!(["NIL"]), "{answer}");
    // The editor is told when it opens the folder again.
    let event = json!({"added": [folder], "removed": []});
    editor.send(&json!({"method": "workspace/didChangeWorkspaceFolders", "params": {"event": event}}));
    let told = editor.next("the message", |told| {
        told["method"] == "window/showMessage" && told["params"]["message"].to_string().contains("host of its own")
    });
    assert!(told["params"]["message"].as_str().unwrap().contains(second.workspace().to_str().unwrap()), "{told}");
    let stopped = first.command(&["stop"]).current_dir(second.workspace()).output().unwrap();
    assert!(stopped.status.success(), "{stopped:?}");
    // The same agent goes on in the editor's image.
    assert_eq!(agent.eval_in_the_next("(boundp 'cl-user::*mine*)"), "=> NIL");
    agent.eval("(defvar cl-user::*both* 2)");
    let answer = editor.request(
        "workspace/executeCommand",
        json!({"command": "consort.eval", "arguments": [{"code": "cl-user::*both*"}]}),
    );
    assert_eq!(answer["result"]["values"], json!(["2"]), "{answer}");
}
