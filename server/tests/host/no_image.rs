//! Every tool of an agent with a `lisp.command` that names no program: one kind, and the reason.

use serde_json::{Value, json};

use crate::support::{Fixture, Process, agent_params};

/// The answer that a tool gives.
enum Wanted {
    /// `error.type` is `image-unavailable`, and the text has the reason.
    Kind,
    /// The same in the error object of the contracts, in their spelling.
    Contract,
    /// The tool's work needs no image.
    Works,
    /// Another error, which has nothing to do with the image.
    Other(&'static str),
}

/// Each tool with its arguments.
fn calls() -> Vec<(&'static str, Value, Wanted)> {
    use Wanted::{Contract, Kind, Other, Works};
    let edit = json!({"file_path": "a.lisp", "form_type": "defun", "form_name": "a", "operation": "insert_after",
        "content": "(defun b () 2)"});
    vec![
        ("compile-form", json!({"code": "(car 1)"}), Kind),
        ("evaluate-lisp", json!({"code": "(+ 1 2)"}), Kind),
        ("evaluate-lisp", json!({"code": "(+ 1 2)", "in": "copy"}), Kind),
        ("macroexpand-form", json!({"form": "(when 1 2)"}), Kind),
        ("macroexpand-form", json!({"form": "(when 1 2)", "in": "image"}), Kind),
        ("source_location", json!({"symbol": "far-away"}), Contract),
        ("describe-symbol", json!({"symbol": "car"}), Kind),
        ("apropos", json!({"pattern": "car"}), Kind),
        ("clhs", json!({"symbol": "car"}), Works),
        ("lisp-read-file", json!({"path": "a.lisp"}), Works),
        ("lisp-edit-form", edit, Works),
        ("rename-symbol", json!({"path": "a.lisp", "symbol": "x", "new_name": "y"}), Works),
        ("try-code", json!({"candidates": [{"label": "one", "code": "(+ 1 2)"}]}), Kind),
        ("record", json!({"code": "(+ 1 2)"}), Kind),
        ("code_compile_string", json!({"code": "(defun a () 2)"}), Contract),
        ("code_load_fasl", json!({"path": "a.fasl"}), Contract),
        ("code_reload_package", json!({"package": "CL-USER"}), Contract),
        ("code_reload_system", json!({"system": "some"}), Contract),
        ("code_replace_function", json!({"function": "a", "new_code": "(defun a () 2)"}), Contract),
        ("code_undo", json!({}), Contract),
        ("load-system", json!({"system": "some"}), Kind),
        ("run-tests", json!({}), Kind),
        ("run-tests", json!({"in": "copy"}), Kind),
        ("run-tests", json!({"system": "some"}), Kind),
        ("profile-code", json!({"code": "(+ 1 2)"}), Kind),
        ("image", json!({"action": "status"}), Works),
        ("image", json!({"action": "restart"}), Kind),
        ("threads", json!({}), Kind),
        ("threads", json!({"action": "stack", "number": 1}), Kind),
        ("threads", json!({"action": "end", "number": 1}), Kind),
        ("debug", json!({}), Works),
        ("inspect", json!({}), Kind),
        ("inspect", json!({"code": "(list 1)"}), Kind),
        ("set-breakpoints", json!({"file": "a.lisp", "lines": [1]}), Kind),
        ("diagnostics", json!({"paths": ["a.lisp"]}), Kind),
        ("editor-context", json!({}), Works),
        ("full-output", json!({"handle": 7}), Other("not-found")),
    ]
}

/// A host whose person has set a program that does not exist, and allows everything.
fn agent(fixture: &Fixture) -> Process {
    let classes = ["eval", "compile-file", "modify-running-code", "edit-file", "restart-image"];
    let allowed: String = classes.iter().map(|class| format!("{class} = \"allow\"\n")).collect();
    let settings = format!("[lisp]\ncommand = [\"/no/such/sbcl\"]\n[approval]\n{allowed}");
    fixture.file("home/consort/config.toml", &settings);
    let mut command = fixture.command(&["mcp"]);
    command.env("XDG_CONFIG_HOME", fixture.workspace().join("home"));
    let mut agent = Process::start(command);
    let answer = agent.request("initialize", agent_params(json!({})));
    assert_eq!(answer["result"]["serverInfo"]["name"], "consort");
    agent.send(&json!({"method": "notifications/initialized"}));
    agent
}

#[test]
fn every_tool_names_the_absent_image_in_one_way() {
    let fixture = Fixture::new();
    fixture.file("a.lisp", "(defun a (x) x)\n");
    fixture.file("some.asd", "(defsystem \"some\" :components ((:file \"a\")))\n");
    fixture.file("a.fasl", "");
    let mut agent = agent(&fixture);
    let listed = agent.request("tools/list", json!({}));
    let mut wrong = Vec::new();
    for tool in listed["result"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        if !calls().iter().any(|(called, ..)| *called == name) {
            wrong.push(format!("{name}: no call of it here"));
        }
    }
    for (name, arguments, wanted) in calls() {
        let answer = agent.request("tools/call", json!({"name": name, "arguments": arguments}))["result"].take();
        let text = answer["content"][0]["text"].as_str().unwrap_or_default();
        let error = &answer["structuredContent"]["error"];
        let names = |kind: &Value| kind == "image-unavailable" && text.contains("/no/such/sbcl");
        let kind =
            if error.is_null() { &answer["structuredContent"]["results"][0]["error"]["type"] } else { &error["type"] };
        let right = match wanted {
            Wanted::Kind => answer["isError"] == true && names(kind),
            Wanted::Contract => {
                let kind = error["data"]["type"].as_str().unwrap_or_default();
                answer["isError"] == true && kind == "IMAGE_UNAVAILABLE" && text.contains("/no/such/sbcl")
            }
            Wanted::Works => answer["isError"] == false,
            Wanted::Other(other) => answer["isError"] == true && kind == other,
        };
        if !right {
            wrong.push(format!("{name} {arguments}: {answer:.1500}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_renamed_place_is_one_and_no_image_is_spoken_of() {
    let fixture = Fixture::new();
    fixture.file("a.lisp", "(defun alone (x) x)\n");
    let mut agent = agent(&fixture);
    let arguments = json!({"path": "a.lisp", "symbol": "alone", "new_name": "other"});
    let answer = agent.request("tools/call", json!({"name": "rename-symbol", "arguments": arguments}));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("1 place in 1 file") && !text.contains("image"), "{text}");
}

#[test]
fn a_file_with_a_byte_order_mark_is_renamed_in_and_keeps_it() {
    let fixture = Fixture::new();
    let path = fixture.file("a.lisp", "\u{feff}(defun alone (x) x)\n");
    fixture.file("b.lisp", "\u{feff}(alone 1)\n");
    let mut agent = agent(&fixture);
    let arguments = json!({"path": "a.lisp", "symbol": "alone", "new_name": "other"});
    let answer = agent.request("tools/call", json!({"name": "rename-symbol", "arguments": arguments}));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let text = |name: &str| std::fs::read_to_string(path.with_file_name(name)).unwrap();
    assert_eq!(
        (text("a.lisp").as_str(), text("b.lisp").as_str()),
        ("\u{feff}(defun other (x) x)\n", "\u{feff}(other 1)\n")
    );
}
