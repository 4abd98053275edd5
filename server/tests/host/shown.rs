//! Terminal output of names and texts that somebody else chose: no character of it acts, or is
//! hidden.

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::support::{Fixture, Process};

fn nasty() -> Vec<String> {
    serde_json::from_str(include_str!("../../../tests/fixtures/nasty.json")).unwrap()
}

/// Everything that was printed, which holds no character that acts on a terminal or is not seen.
fn harmless(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).concat();
    for char in text.chars() {
        let acts = char.is_control() && char != '\n' && char != '\t';
        let hides = "\u{202e}\u{2066}\u{2069}\u{200b}\u{feff}\u{2060}\u{ad}\u{e0041}\u{2028}".contains(char);
        assert!(!acts && !hides, "{char:?} in {text:?}");
    }
    text
}

fn lisp_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[test]
fn agents_files_keys_conditions_and_packages() {
    let fixture = Fixture::new();
    let mut agents = Vec::new();
    for name in nasty() {
        let mut agent = Process::start(fixture.command(&["mcp"]));
        let client = json!({"name": name, "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        agent.request("initialize", params);
        agents.push(agent);
    }
    let status = harmless(&fixture.run(&["status"]));
    assert!(status.contains("bell") && status.contains("\\u{1b}"), "{status}");
    assert_eq!(status.matches(" 1 (mcp)").count(), agents.len(), "each name is one line: {status}");
    drop(agents);

    let mut keys = String::new();
    for (index, name) in nasty().into_iter().enumerate() {
        keys.push_str(&format!(
            "{} = {index}\n",
            json!(format!("{name}{index}")).to_string().replace('\u{7f}', "\\u007f")
        ));
        let code = format!(
            "(in-package {0})\n(error {0})\n; {1}\n(no-such-function {0})\n",
            lisp_string(&name),
            name.replace(['\n', '\r'], " ")
        );
        fixture.file(&format!("d{index}/{}.lisp", name.replace('/', "_")), &code);
        let failed = fixture.run(&["eval", &format!("(error \"~A\" {})", lisp_string(&name))]);
        assert_eq!(failed.status.code(), Some(1), "{failed:?}");
        harmless(&failed);
        harmless(&fixture.run(&["eval", "--package", &name, "1"]));
        harmless(&fixture.run(&["check", &format!("{name}.lisp")]));
    }
    let checked = fixture.run(&["check", "."]);
    assert_eq!(checked.status.code(), Some(1));
    let text = harmless(&checked);
    assert!(text.contains("20 files"), "{text}");
    for line in String::from_utf8(fixture.run(&["check", "--json", "."]).stdout).unwrap().lines() {
        let _: Value = serde_json::from_str(line).unwrap();
    }
    fixture.file("consort.toml", &format!("[check]\n{keys}"));
    let doctor = harmless(&fixture.run(&["doctor"]));
    assert!(doctor.contains("unknown key"), "{doctor}");
    for two in nasty().chunks(2) {
        let command = json!(two).to_string().replace('\u{7f}', "\\u007f");
        fixture.file("consort.toml", &format!("[lisp]\ncommand = {command}\n"));
        let eval = harmless(&fixture.run(&["eval", "1"]));
        assert!(eval.contains("lisp.command = ") && eval.contains("consort trust"), "{eval}");
        let shown = harmless(&fixture.run(&["trust", "--yes"]));
        assert!(shown.contains("wants:\n    lisp.command = ") && shown.contains("is trusted with this"), "{shown}");
        harmless(&fixture.run(&["trust", "--list"]));
    }
    assert_eq!(fixture.run(&["trust", "--revoke"]).status.code(), Some(0));
}

/// A directory's name is chosen by who made an archive or a repository.
#[test]
fn the_workspaces_own_name() {
    let fixture = Fixture::new();
    for name in nasty() {
        let name = name.replace('/', "_");
        let workspace = fixture.workspace().join(&name);
        std::fs::create_dir_all(workspace.join(".git")).unwrap();
        fixture.file(&format!("{name}/consort.toml"), "[lisp]\ninit_file = \"init.lisp\"\n");
        for args in [
            &["status"][..],
            &["stop"],
            &["stop", "--workspace", "none"],
            &["trust"],
            &["trust", "--yes"],
            &["trust", "--list"],
            &["trust", "--revoke"],
            &["doctor"],
            &["check", "missing.lisp"],
            &["eval", "--workspace", &name, "1"],
            &[&name],
            &["status", &name],
            &["check", "--timeout", &name, "x"],
        ] {
            harmless(&fixture.command(args).current_dir(&workspace).output().unwrap());
        }
    }
    // The host's own words, at its start and in its log, and when another is there.
    let name = "x\u{1b}]0;title\u{7}\u{1b}[31m";
    let workspace = fixture.workspace().join(name);
    std::fs::create_dir_all(workspace.join(".git")).unwrap();
    let serve = || {
        let mut command = fixture.command(&["serve"]);
        command.current_dir(&workspace).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let mut host = serve().spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(host.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.contains("is ready") && ready.contains("x\\u{1b}]0;title"), "{ready}");
    harmless(&serve().output().unwrap());
    harmless(&fixture.command(&["status"]).current_dir(&workspace).output().unwrap());
    let stopped = fixture.command(&["stop"]).current_dir(&workspace).output().unwrap();
    assert!(harmless(&stopped).contains("have ended"), "{stopped:?}");
    let log = harmless(&host.wait_with_output().unwrap());
    assert!(log.contains("the host starts"), "{log}");
    harmless(&Output { stdout: ready.into(), ..stopped });
}
