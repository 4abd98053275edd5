//! Opening a workspace runs nothing of it: what its consort.toml wants counts once the person has
//! trusted it.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{Fixture, Process, agent_params, file_uri, wait_until};

/// A workspace whose consort.toml loads a file of its own, which leaves a mark. It also has a
/// program that does, and is no Lisp: what a program of one's own starts is compiled anew, which
/// takes long.
struct Hostile {
    fixture: Fixture,
    mark: PathBuf,
}

/// The setting that loads the file.
const INIT: &str = "[lisp]\ninit_file = \"init.lisp\"\n";
/// The same in other words, to which other trust belongs.
const OTHER: &str = "[lisp]\ninit_file = \"./init.lisp\"\n";

impl Hostile {
    fn new() -> Hostile {
        let fixture = Fixture::new();
        let mark = fixture.workspace().join("ran");
        let script = format!("#!/bin/sh\necho x >> {}\nexit 1\n", mark.display());
        let program = fixture.file("lisp.sh", &script);
        std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
        let init = format!(
            "(with-open-file (s {mark:?} :direction :output :if-exists :append :if-does-not-exist :create) (write-line \"x\" s))"
        );
        fixture.file("init.lisp", &init);
        fixture.file("a.lisp", "(defun a () (undefined-thing))\n");
        let hostile = Hostile { fixture, mark };
        hostile.wants(INIT);
        hostile
    }

    fn wants(&self, text: &str) {
        self.fixture.file("consort.toml", text);
    }

    fn ran(&self) -> bool {
        self.mark.exists()
    }

    /// Every way of opening a workspace that is not `consort trust`.
    fn opened_in_every_way(&self) {
        let check = self.fixture.run(&["check", "a.lisp"]);
        assert_eq!(check.status.code(), Some(1), "{check:?}");
        let eval = self.fixture.run(&["eval", "(+ 1 2)"]);
        assert_eq!((eval.status.code(), text(&eval.stdout).as_str()), (Some(0), "=> 3\n"), "{eval:?}");
        self.fixture.run(&["stop"]);
        let doctor = self.fixture.run(&["doctor"]);
        assert_eq!(doctor.status.code(), Some(0), "{doctor:?}");
        let mut agent = self.fixture.agent();
        assert_eq!(agent.eval("(+ 1 2)").lines().next(), Some("=> 3"));
        let mut editor = editor(&self.fixture);
        let (question, found) = diagnostics(&mut editor, &self.fixture.workspace().join("a.lisp"));
        assert!(question.is_none_or(|asked| asked["params"]["actions"][0]["title"] == "Trust"));
        assert!(found.to_string().contains("undefined-function"), "{found}");
        drop((agent, editor));
        self.fixture.run(&["stop"]);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn said(output: &Output) -> String {
    text(&output.stdout) + &text(&output.stderr)
}

fn editor(fixture: &Fixture) -> Process {
    let mut editor = Process::start(fixture.command(&["lsp"])).framed();
    let params = json!({"processId": null, "rootUri": file_uri(&fixture.workspace()), "capabilities": {}});
    editor.request("initialize", params);
    editor.send(&json!({"method": "initialized", "params": {}}));
    editor
}

fn open(editor: &mut Process, file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let document = json!({"uri": file_uri(file), "languageId": "lisp", "version": 1, "text": text});
    editor.send(&json!({"method": "textDocument/didOpen", "params": {"textDocument": document}}));
}

/// The first diagnostics of an opened file that come from the image, and what was asked before.
fn diagnostics(editor: &mut Process, file: &Path) -> (Option<Value>, Value) {
    open(editor, file);
    let mut question = None;
    loop {
        let message = editor.receive().expect("the host lives");
        match message["method"].as_str() {
            Some("window/showMessageRequest") => question = Some(message),
            Some("textDocument/publishDiagnostics") if message["params"]["diagnostics"][0].is_object() => {
                return (question, message["params"]["diagnostics"].clone());
            }
            _ => {}
        }
    }
}

/// The next question.
fn question(editor: &mut Process) -> Value {
    loop {
        let message = editor.receive().expect("the host lives");
        if message["method"] == "window/showMessageRequest" {
            return message;
        }
    }
}

fn answer(editor: &mut Process, question: &Value, title: &str) {
    editor.send(&json!({"id": question["id"], "result": {"title": title}}));
}

#[test]
fn nothing_that_a_workspace_wants_runs_before_it_is_trusted() {
    let hostile = Hostile::new();
    for wants in [
        "[lisp]\ncommand = [\"./lisp.sh\"]\n",
        "[lisp]\ncommand = [\"sh\", \"-c\", \"echo x >> ran; exec sbcl \\\"$@\\\"\", \"x\"]\n",
        INIT,
        "lisp.command = [\"./lisp.sh\"]\n",
    ] {
        hostile.wants(wants);
        hostile.opened_in_every_way();
        assert!(!hostile.ran(), "{wants}");
        for command in [&["check", "a.lisp"][..], &["eval", "1"], &["doctor"]] {
            let output = hostile.fixture.run(command);
            assert!(said(&output).contains("consort trust"), "{command:?}: {output:?}");
        }
        hostile.fixture.run(&["stop"]);
        assert!(!hostile.ran(), "{wants}");
    }
    // The program would have run without trust.
    assert_eq!(hostile.fixture.run(&["trust", "--yes"]).status.code(), Some(0));
    let eval = hostile.fixture.run(&["eval", "1"]);
    assert!(hostile.ran() && eval.status.code() == Some(2), "{eval:?}");
}

#[test]
fn the_image_is_not_started_before_something_needs_it() {
    let fixture = Fixture::new();
    let mut agent = fixture.agent();
    agent.request("tools/list", json!({}));
    let idle = editor(&fixture);
    assert_eq!(fixture.status().unwrap()["image"]["state"], "idle");
    assert_eq!(agent.eval("(+ 1 2)"), "=> 3");
    assert_eq!(fixture.status().unwrap()["image"]["state"], "ready");
    drop((agent, idle));
    fixture.run(&["stop"]);
    let mut editor = editor(&fixture);
    assert_eq!(fixture.status().unwrap()["image"]["state"], "idle");
    open(&mut editor, &fixture.file("a.lisp", "(undefined-thing)\n"));
    wait_until("the image is ready", || fixture.status().unwrap()["image"]["state"] == "ready");
}

#[test]
fn a_terminal_trusts_exactly_what_is_there_and_takes_it_back() {
    let hostile = Hostile::new();
    let fixture = &hostile.fixture;
    let trusted = fixture.run(&["trust", "--yes"]);
    assert_eq!(trusted.status.code(), Some(0), "{trusted:?}");
    assert!(said(&trusted).contains("lisp.init_file = \"init.lisp\""), "{trusted:?}");
    assert!(said(&fixture.run(&["trust", "--list"])).contains("init.lisp"));
    assert!(!hostile.ran(), "trusting runs nothing");
    let eval = fixture.run(&["eval", "(+ 1 2)"]);
    assert_eq!((text(&eval.stdout).as_str(), text(&eval.stderr).as_str()), ("=> 3\n", ""), "{eval:?}");
    assert!(hostile.ran());
    assert_eq!(fixture.run(&["trust", "--yes"]).status.code(), Some(1), "nothing is left to trust");

    // A host that runs is told.
    std::fs::remove_file(&hostile.mark).unwrap();
    let revoked = fixture.run(&["trust", "--revoke"]);
    assert_eq!(revoked.status.code(), Some(0), "{revoked:?}");
    assert_eq!(text(&fixture.run(&["eval", "(+ 1 2)"]).stdout), "=> 3\n");
    assert!(!hostile.ran());
    fixture.run(&["trust", "--yes"]);
    assert_eq!(text(&fixture.run(&["eval", "(+ 1 2)"]).stdout), "=> 3\n");
    assert!(hostile.ran());

    // Another value asks again, and the one before is not in force either.
    fixture.run(&["stop"]);
    std::fs::remove_file(&hostile.mark).unwrap();
    hostile.wants(OTHER);
    hostile.opened_in_every_way();
    assert!(!hostile.ran());
    // A value that only stands elsewhere in the file is the same.
    hostile.wants("# moved\n[check]\nnotes = true\n[lisp]\ninit_file = 'init.lisp'\n");
    assert_eq!(text(&fixture.run(&["eval", "(+ 1 2)"]).stdout), "=> 3\n");
    assert!(hostile.ran());
    assert_eq!(fixture.run(&["trust", "--revoke"]).status.code(), Some(0));
    assert_eq!(fixture.run(&["trust", "--revoke"]).status.code(), Some(1));
    assert_eq!(said(&fixture.run(&["trust", "--list"])), "No workspace is trusted.\n");
}

#[test]
fn a_terminal_is_asked_and_what_was_shown_is_what_is_trusted() {
    let hostile = Hostile::new();
    let fixture = &hostile.fixture;
    // Nobody can answer: it is shown, and nothing is recorded.
    let unasked = fixture.run(&["trust"]);
    assert_eq!(unasked.status.code(), Some(2), "{unasked:?}");
    assert!(
        said(&unasked).contains("lisp.init_file = \"init.lisp\"") && said(&unasked).contains("--yes"),
        "{unasked:?}"
    );
    assert_eq!(fixture.run(&["trust", "--list"]).status.code(), Some(1));
    // A pipe is no person.
    assert_eq!(fixture.run_with_input(&["trust"], "y\n").status.code(), Some(2));
    assert_eq!(fixture.run(&["trust", "--list"]).status.code(), Some(1));

    // A value that cannot be shown whole is not trusted at all.
    let long = format!("[lisp]\ncommand = [\"sbcl\", \"{}\", \"--eval\", \"(evil)\"]\n", "harmless ".repeat(300));
    hostile.wants(&long);
    let refused = fixture.run(&["trust", "--yes"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(said(&refused).contains("lisp.command cannot be trusted"), "{refused:?}");
    assert_eq!(fixture.run(&["trust", "--list"]).status.code(), Some(1));

    // Every character of the longest value that is taken is shown.
    let padding = "harmless ".repeat(45);
    hostile.wants(&format!("[lisp]\ncommand = [\"sbcl\", \"{padding}\", \"--eval\", \"(evil)\"]\n"));
    let shown = format!("    lisp.command = [\"sbcl\",\"{padding}\",\"--eval\",\"(evil)\"]\n");
    for args in [&["trust", "--yes"][..], &["trust", "--list"]] {
        let output = fixture.run(args);
        assert!(output.status.success() && text(&output.stdout).contains(&shown), "{output:?}");
    }
}

#[test]
fn an_editor_asks_once_and_trust_is_in_force_at_once() {
    let hostile = Hostile::new();
    let fixture = &hostile.fixture;
    let mut first = editor(fixture);
    let asked = question(&mut first);
    let message = asked["params"]["message"].as_str().unwrap();
    assert!(message.contains("lisp.init_file = \"init.lisp\""), "{message}");
    answer(&mut first, &asked, "Not now");
    let (again, _) = diagnostics(&mut first, &fixture.workspace().join("a.lisp"));
    assert!(again.is_none() && !hostile.ran());
    let mut second = editor(fixture);
    assert!(diagnostics(&mut second, &fixture.workspace().join("a.lisp")).0.is_none(), "it was answered");
    drop((first, second));
    fixture.run(&["stop"]);

    let mut editor = editor(fixture);
    let asked = question(&mut editor);
    answer(&mut editor, &asked, "Trust");
    wait_until("it is trusted", || fixture.status().is_some_and(|status| status.get("untrusted").is_none()));
    assert!(!diagnostics(&mut editor, &fixture.workspace().join("a.lisp")).1.is_null());
    assert!(hostile.ran());
    drop(editor);
    fixture.run(&["stop"]);
    std::fs::remove_file(&hostile.mark).unwrap();
    assert_eq!(text(&fixture.run(&["eval", "(+ 1 2)"]).stdout), "=> 3\n");
    assert!(hostile.ran(), "it is on record");
}

#[test]
fn an_image_that_runs_is_started_anew_when_the_workspace_is_trusted() {
    let hostile = Hostile::new();
    let fixture = &hostile.fixture;
    let mut agent = fixture.agent();
    assert!(agent.eval("(defvar *kept* 1)").starts_with("=> *KEPT*"));
    let before = fixture.status().unwrap()["image"]["pid"].clone();
    let mut editor = editor(fixture);
    let asked = question(&mut editor);
    answer(&mut editor, &asked, "Trust");
    wait_until("another image runs", || {
        let image = fixture.status().unwrap()["image"].clone();
        image["state"] == "ready" && image["pid"] != before
    });
    assert!(hostile.ran());
}

#[test]
fn an_agent_is_told_and_cannot_answer() {
    let hostile = Hostile::new();
    let mut agent = hostile.fixture.agent();
    let call = |agent: &mut Process, name: &str, arguments: Value| {
        agent.request("tools/call", json!({"name": name, "arguments": arguments}))["result"].to_string()
    };
    let status = call(&mut agent, "image", json!({"action": "status"}));
    assert!(status.contains("consort trust") && status.contains("init.lisp"), "{status}");
    let tools = agent.request("tools/list", json!({})).to_string();
    assert!(!tools.contains("trust"), "{tools}");
    call(&mut agent, "image", json!({"action": "restart"}));
    assert_eq!(agent.eval("(+ 1 2)").lines().next(), Some("=> 3"));
    assert!(!hostile.ran());
}

#[test]
fn settings_that_others_can_write_are_ignored_and_end_the_search() {
    let hostile = Hostile::new();
    let fixture = &hostile.fixture;
    let set = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    let workspace = fixture.workspace();
    let file = workspace.join("consort.toml");
    // Trusted once, which does not make up for who can write it.
    fixture.run(&["trust", "--yes"]);
    let refused = |why: &str| {
        let eval = fixture.run(&["eval", "(+ 1 2)"]);
        assert_eq!(text(&eval.stdout), "=> 3\n", "{eval:?}");
        assert!(text(&eval.stderr).contains("is ignored") && text(&eval.stderr).contains(why), "{eval:?}");
        let doctor = fixture.run(&["doctor"]);
        assert!(said(&doctor).contains("is ignored"), "{doctor:?}");
        fixture.run(&["stop"]);
        assert!(!hostile.ran());
    };
    set(&file, 0o666);
    refused("every user");
    set(&file, 0o644);
    set(&workspace, 0o777);
    refused("its directory");
    set(&workspace, 0o755);
    if rustix::process::geteuid().is_root() {
        let give = |to: Option<u32>| rustix::fs::chown(&file, to.map(rustix::fs::Uid::from_raw), None).unwrap();
        give(Some(4242));
        refused("another user");
        give(Some(0));
    }
    // In a directory above that everybody can write, with nothing between.
    let inner = workspace.join("mine");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(inner.join("a.lisp"), "(defun a () 1)\n").unwrap();
    set(&workspace, 0o1777);
    let mut command = fixture.command(&["check", "a.lisp"]);
    let check = command.current_dir(&inner).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{check:?}");
    assert!(text(&check.stderr).contains("is ignored"), "{check:?}");
    assert!(!hostile.ran());
    assert!(fixture.command(&["stop"]).current_dir(&inner).output().unwrap().status.success());
    set(&workspace, 0o755);
}

#[test]
fn settings_that_are_no_file_keep_nobody_waiting() {
    let fixture = Fixture::new();
    fixture.file("a.lisp", "(defun a () 1)\n");
    let file = fixture.workspace().join("consort.toml");
    for make in [
        (|file: &Path| symlink("/dev/zero", file).unwrap()) as fn(&Path),
        |file| assert!(std::process::Command::new("mkfifo").arg(file).status().unwrap().success()),
        |file| symlink("consort.toml", file).unwrap(),
        |file| std::fs::create_dir(file).unwrap(),
        |file| std::fs::write(file, "x = 1\n".repeat(100_000)).unwrap(),
    ] {
        std::fs::remove_file(&file).or_else(|_| std::fs::remove_dir(&file)).unwrap();
        make(&file);
        let check = fixture.run(&["check", "a.lisp"]);
        assert_eq!(check.status.code(), Some(0), "{check:?}");
        assert!(text(&check.stderr).contains("consort.toml: is ignored"), "{check:?}");
        fixture.run(&["stop"]);
    }
    std::fs::remove_file(&file).unwrap();
    fixture.file("consort.toml", "");
}

#[test]
fn a_link_to_settings_elsewhere_is_trusted_by_its_content() {
    let hostile = Hostile::new();
    let fixture = &hostile.fixture;
    let file = fixture.workspace().join("consort.toml");
    let elsewhere = fixture.workspace().join("elsewhere.toml");
    std::fs::rename(&file, &elsewhere).unwrap();
    symlink("elsewhere.toml", &file).unwrap();
    assert_eq!(text(&fixture.run(&["eval", "(+ 1 2)"]).stdout), "=> 3\n");
    assert!(!hostile.ran());
    assert_eq!(fixture.run(&["trust", "--yes"]).status.code(), Some(0));
    assert_eq!(text(&fixture.run(&["eval", "(+ 1 2)"]).stdout), "=> 3\n");
    assert!(hostile.ran());
    fixture.run(&["stop"]);
    std::fs::remove_file(&hostile.mark).unwrap();
    std::fs::write(&elsewhere, OTHER).unwrap();
    assert_eq!(text(&fixture.run(&["eval", "(+ 1 2)"]).stdout), "=> 3\n");
    assert!(!hostile.ran());
}

#[test]
fn an_agents_initialize_runs_nothing() {
    let hostile = Hostile::new();
    let mut agent = Process::start(hostile.fixture.command(&["mcp"]));
    agent.request("initialize", agent_params(json!({})));
    assert_eq!(hostile.fixture.status().unwrap()["image"]["state"], "idle");
    assert!(!hostile.ran());
}

#[test]
fn the_image_looks_for_nothing_in_the_workspace() {
    let fixture = Fixture::new();
    let mut command =
        fixture.command(&["eval", "(mapcar #'posix-getenv '(\"LD_LIBRARY_PATH\" \"LD_PRELOAD\" \"SBCL_CORE\"))"]);
    let path = std::env::var("PATH").unwrap();
    command.env("LD_LIBRARY_PATH", ":/nonexistent").env("LD_PRELOAD", "lib/none.so").env("PATH", format!(".:{path}"));
    command.env("SBCL_CORE", "sbcl.core");
    let output = command.output().unwrap();
    assert_eq!(text(&output.stdout), "=> (\"/nonexistent\" NIL NIL)\n", "{}", said(&output));
    fixture.run(&["stop"]);
}
