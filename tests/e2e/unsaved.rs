//! Unsaved text of a person: agents read it, and edit it in the editor instead of the file. A text
//! is unsaved if it differs from its file.

use std::os::unix::fs::symlink;

use consort::config::approval::{Class, Setting};
use consort::config::{Config, Source};
use consort_tests::agent::{Agent, text};
use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

const DISK: &str = "(defun core ()\n  :disk)";
/// A text with a diagnostic, so that `diagnostics` names the file.
const MINE: &str = "(defun core (unused)\n  :unsaved)";

/// A world in which agents may edit files.
async fn world(files: &[(&str, &str)]) -> World {
    let mut config = Config::default();
    config.approval.set(Class::EditFile, Setting::Allow, Source::User).expect("a person may");
    World::configured(files, config).await
}

async fn editor(world: &World) -> Editor {
    Editor::start(&world.session, json!({})).await
}

/// Opens a document, and waits until the host has it.
async fn open(editor: &mut Editor, uri: &str, text: &str) {
    editor.open(uri, text).await;
    arrived(editor).await;
}

async fn arrived(editor: &mut Editor) {
    editor.command("consort.status", json!({})).await.expect("a status");
}

async fn save(editor: &mut Editor, uri: &str) {
    editor.notify("textDocument/didSave", json!({"textDocument": {"uri": uri}})).await;
    arrived(editor).await;
}

/// Returns a file's text as an agent reads it, and true if the answer calls it unsaved.
async fn read(agent: &mut Agent, path: &str) -> (String, bool) {
    let read = agent.call("lisp-read-file", json!({"path": path, "collapsed": false})).await;
    let facts = &read["structuredContent"];
    (facts["text"].as_str().unwrap_or_else(|| text(&read)).to_owned(), facts["unsaved"] == true)
}

async fn begin_edit(agent: &mut Agent, path: &str) -> i64 {
    let edit = json!({"file_path": path, "form_type": "defun", "form_name": "core", "operation": "replace",
                      "content": "(defun core ()\n  :agent)"});
    agent.begin("lisp-edit-form", edit).await
}

/// Makes an agent's edit, which must be applied in the editor and nowhere else.
async fn edited_in(editor: &mut Editor, agent: &mut Agent, path: &str) -> Value {
    let call = begin_edit(agent, path).await;
    let applied = editor.wait_for("workspace/applyEdit", |_| true).await;
    // The edit may cover only the part that differs.
    assert!(applied["edit"].to_string().contains("agent\""), "{applied}");
    let result = agent.result(call).await;
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["unsaved"]),
        (&json!(false), &json!(true)),
        "{result}"
    );
    result
}

/// Returns the open documents as an agent sees them: file name or URI, and whether each is unsaved.
async fn context(agent: &mut Agent) -> Vec<(String, bool)> {
    let context = agent.call("editor-context", json!({})).await;
    let documents = context["structuredContent"]["documents"].as_array().expect("documents");
    let name = |file: &Value| file.as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned();
    documents.iter().map(|open| (name(&open["file"]), open["unsaved"] == true)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_opened_with_unsaved_work_is_unsaved() {
    let world = world(&[("core.lisp", DISK)]).await;
    symlink("core.lisp", world.path("link.lisp")).expect("a link");
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    world.is_ready().await;
    // Under its own name, through a link, and under another spelling.
    for name in ["core.lisp", "link.lisp", "./core.lisp", "core%2Elisp"] {
        let mut editor = editor(&world).await;
        let uri = if name.contains('%') { world.uri("core.lisp").replace("core.lisp", name) } else { world.uri(name) };
        open(&mut editor, &uri, MINE).await;
        assert_eq!(read(&mut agent, "core.lisp").await, (MINE.to_owned(), true), "{name}");
        edited_in(&mut editor, &mut agent, "core.lisp").await;
        assert!(context(&mut agent).await.iter().all(|(_, unsaved)| *unsaved), "{name}");
        let found = agent.call("diagnostics", json!({"paths": ["core.lisp"], "severity": "style-warning"})).await;
        assert_eq!(found["structuredContent"]["files"][0]["unsaved"], true, "{name}: {found}");
        assert_eq!(std::fs::read_to_string(world.path("core.lisp")).expect("the file"), DISK, "{name}");
        editor.vanish().await;
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_document_opened_as_its_file_is_is_saved() {
    let files: [(&str, &[u8], &str); 6] = [
        ("plain.lisp", DISK.as_bytes(), DISK),
        ("mark.lisp", b"\xef\xbb\xbf(defun core ())\n", "(defun core ())\n"),
        ("returns.lisp", b"(defun core ())\r\n", "(defun core ())\n"),
        ("kept.lisp", b"(defun core ())\r\n", "(defun core ())\r\n"),
        ("latin.lisp", b"(defun core () \"\xe9\")\n", "(defun core () \"\u{e9}\")\n"),
        ("wide.lisp", b"\xff\xfe(\0d\0e\0f\0u\0n\0 \0c\0o\0r\0e\0 \0(\0)\0)\0", "(defun core ())"),
    ];
    let world = world(&[]).await;
    let mut editor = editor(&world).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    for (name, bytes, text) in files {
        std::fs::write(world.path(name), bytes).expect("a file");
        open(&mut editor, &world.uri(name), text).await;
        assert!(!read(&mut agent, name).await.1, "{name}");
        assert!(context(&mut agent).await.contains(&(name.to_owned(), false)), "{name}");
        let call = begin_edit(&mut agent, name).await;
        let result = agent.result(call).await;
        assert_eq!(result["structuredContent"]["unsaved"], false, "{name}: {result}");
        let mut now = std::fs::read(world.path(name)).expect("the file");
        now.retain(|byte| *byte != 0); // of UTF-16
        assert!(now.windows(6).any(|piece| piece == b":agent"), "{name}");
        // The editor's text was the same as the file's, and so is not unsaved: the agent's edit of
        // the file counts.
        assert!(read(&mut agent, name).await.0.contains(":agent"), "{name}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_save_counts_when_the_file_has_the_text() {
    let world = world(&[("core.lisp", DISK)]).await;
    let uri = world.uri("core.lisp");
    let mut editor = editor(&world).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    open(&mut editor, &uri, DISK).await;
    // Saved without a change, while another program has written another text: the editor's text is
    // not on the disk.
    std::fs::write(world.path("core.lisp"), "(defun core ()\n  :other)\n").expect("a file");
    save(&mut editor, &uri).await;
    assert_eq!(read(&mut agent, "core.lisp").await, (DISK.to_owned(), true));
    edited_in(&mut editor, &mut agent, "core.lisp").await;
    assert!(std::fs::read_to_string(world.path("core.lisp")).expect("the file").contains(":other"));
    // Saved as an editor does it.
    std::fs::write(world.path("core.lisp"), DISK).expect("a file");
    save(&mut editor, &uri).await;
    assert_eq!(read(&mut agent, "core.lisp").await, (DISK.to_owned(), false));
    // A change, and then the old text again: nothing is unsaved any more.
    editor.change(&uri, 2, [1, 2, 1, 7], ":typed").await;
    arrived(&mut editor).await;
    assert_eq!(read(&mut agent, "core.lisp").await, ("(defun core ()\n  :typed)".to_owned(), true));
    editor.change(&uri, 3, [1, 2, 1, 8], ":disk").await;
    arrived(&mut editor).await;
    assert_eq!(read(&mut agent, "core.lisp").await, (DISK.to_owned(), false));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_editors_the_one_with_unsaved_work_counts() {
    let world = world(&[("core.lisp", DISK)]).await;
    let uri = world.uri("core.lisp");
    let (mut first, mut second) = (editor(&world).await, editor(&world).await);
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    open(&mut first, &uri, MINE).await;
    open(&mut second, &uri, DISK).await;
    assert_eq!(read(&mut agent, "core.lisp").await, (MINE.to_owned(), true));
    edited_in(&mut first, &mut agent, "core.lisp").await;
    // Two editors have unsaved text: an edit could not tell which is meant.
    second.change(&uri, 2, [0, 0, 0, 0], ";;; mine too\n").await;
    arrived(&mut second).await;
    let call = begin_edit(&mut agent, "core.lisp").await;
    let refused = agent.result(call).await;
    assert!(text(&refused).contains("unsaved changes in more than one editor"), "{refused}");
    assert_eq!(std::fs::read_to_string(world.path("core.lisp")).expect("the file"), DISK);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_without_a_file_is_unsaved() {
    let world = world(&[("gone.lisp", DISK)]).await;
    symlink(".", world.path("here")).expect("a link");
    let mut editor = editor(&world).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    open(&mut editor, &world.uri("here/new.lisp"), MINE).await;
    assert_eq!(read(&mut agent, "new.lisp").await, (MINE.to_owned(), true));
    edited_in(&mut editor, &mut agent, "new.lisp").await;
    assert!(!world.path("new.lisp").exists());
    let refused = agent.call("lisp-read-file", json!({"path": "none.lisp"})).await;
    assert_eq!(refused["isError"], true, "nobody has that: {refused}");
    // Opened as it was, changed, and then removed by somebody else.
    open(&mut editor, &world.uri("gone.lisp"), DISK).await;
    editor.change(&world.uri("gone.lisp"), 2, [1, 2, 1, 7], ":unsaved").await;
    arrived(&mut editor).await;
    std::fs::remove_file(world.path("gone.lisp")).expect("the file");
    assert_eq!(read(&mut agent, "gone.lisp").await, ("(defun core ()\n  :unsaved)".to_owned(), true));
    // Without any name.
    open(&mut editor, "untitled:Untitled-1", MINE).await;
    let told = context(&mut agent).await;
    assert!(told.len() == 3 && told.iter().all(|(_, unsaved)| *unsaved), "{told:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_became_a_fifo_keeps_no_agent_waiting() {
    let world = World::ready(&[
        ("app.asd", "(asdf:defsystem \"app\" :serial t :components ((:file \"app\") (:file \"b\")))"),
        ("app.lisp", "(defun app-size (x) (* 2 x))\n"),
        ("b.lisp", "(defun b-size (x) (app-size x))\n"),
    ])
    .await;
    let mut agent = Agent::named(&world.session, "an agent", json!({})).await;
    let code = format!("(asdf:load-asd {:?}) (asdf:load-system :app) (b-size 2)", world.path("app.asd"));
    let loaded = agent.call("evaluate-lisp", json!({"code": code})).await;
    assert!(text(&loaded).contains("=> 4\n"), "{loaded}");
    for name in ["app.lisp", "b.lisp"] {
        let file = world.path(name);
        std::fs::remove_file(&file).expect("it is there");
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).expect("a FIFO");
        // The workspace's other files are checked, and the check does not wait for a loaded file
        // that changed.
        let told = text(&agent.call("diagnostics", json!({})).await).to_owned();
        assert!(told.starts_with("Errors: 0"), "{told}");
        let told = text(&agent.call("diagnostics", json!({"path": [name]})).await).to_owned();
        assert!(told.contains("there is no such file"), "{told}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_load_leaves_out_is_told_to_agents_and_to_the_editor() {
    let system = "(defsystem \"core-system\" :components ((:file \"core\")))\n";
    let mut config = Config::default();
    for class in [Class::CompileFile, Class::ModifyRunningCode] {
        config.approval.set(class, Setting::Allow, Source::User).expect("a person may");
    }
    let files = [("core.lisp", DISK), ("core-system.asd", system), ("scratch.lisp", DISK)];
    let world = World::configured(&files, config).await;
    let mut editor = editor(&world).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    world.is_ready().await;
    open(&mut editor, &world.uri("core.lisp"), MINE).await;
    // It is in no system.
    open(&mut editor, &world.uri("scratch.lisp"), MINE).await;
    let note = "without the unsaved changes in an editor: core.lisp.";
    let load = json!({"system": "core-system"});
    let loaded = agent.call("load-system", load.clone()).await;
    assert!(text(&loaded).contains(note), "{loaded}");
    assert_eq!(loaded["structuredContent"]["unsaved"], json!(["core.lisp"]), "{loaded}");
    let reloaded = agent.call("code_reload_system", json!({"system": "core-system", "force": true})).await;
    assert!(text(&reloaded).contains(note), "{reloaded}");
    assert_eq!(reloaded["structuredContent"]["report"]["unsaved"], json!(["core.lisp"]), "{reloaded}");
    editor.command("consort.loadSystem", load.clone()).await.expect("it is loaded");
    editor.wait_for("window/showMessage", |told| told["message"].to_string().contains(note)).await;
    // A text that is the file's leaves nothing out.
    std::fs::write(world.path("core.lisp"), MINE).expect("written");
    save(&mut editor, &world.uri("core.lisp")).await;
    let loaded = agent.call("load-system", load).await;
    assert!(!text(&loaded).contains("unsaved"), "{loaded}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forms_that_were_edited_and_not_loaded_are_listed_for_agents() {
    let loaded = "(defun core ()\n  :disk)\n(defun kept () 1)\n";
    let world = world(&[("core.lisp", loaded), ("other.lisp", "(defun other () 1)\n")]).await;
    let (mut editor, mut agent) = (editor(&world).await, Agent::named(&world.session, "agent", json!({})).await);
    let uri = world.uri("core.lisp");
    open(&mut editor, &uri, loaded).await;
    let load = json!({"uri": uri});
    editor.command("consort.loadFile", load.clone()).await.expect("a load");
    let asked = json!({"path": ["core.lisp", "other.lisp"]});
    let all = agent.call("diagnostics", asked.clone()).await;
    assert_eq!(all["structuredContent"]["files"], json!([]), "{all}");

    // Unsaved in the editor; then saved; then loaded.
    editor.change(&uri, 2, [1, 2, 1, 7], ":edited").await;
    editor.change(&uri, 3, [2, 0, 2, 0], "(defun added () 2)\n").await;
    arrived(&mut editor).await;
    let expected = json!([
        {"line": 1, "names": ["CORE"], "state": "changed"},
        {"line": 3, "names": ["ADDED"], "state": "new"},
    ]);
    let edited = agent.call("diagnostics", asked.clone()).await;
    assert_eq!(edited["structuredContent"]["files"][0]["not_loaded"], expected, "{edited}");
    assert!(
        text(&edited).contains("edited and not loaded, by line: 1 CORE (changed), 3 ADDED (new)"),
        "{}",
        text(&edited)
    );
    std::fs::write(world.path("core.lisp"), "(defun core ()\n  :edited)\n(defun added () 2)\n(defun kept () 1)\n")
        .expect("the file");
    save(&mut editor, &uri).await;
    let saved = agent.call("diagnostics", asked.clone()).await;
    assert_eq!(saved["structuredContent"]["files"][0]["not_loaded"], expected, "{saved}");
    editor.command("consort.loadFile", load).await.expect("a load");
    let again = agent.call("diagnostics", asked).await;
    assert_eq!(again["structuredContent"]["files"], json!([]), "{again}");
    world.end().await;
}

/// Opens `core.lisp` as it is on the disk, and sends the body of a notification about it.
async fn opened_then(world: &World, body: &[u8]) -> Editor {
    let mut editor = editor(world).await;
    open(&mut editor, &world.uri("core.lisp"), DISK).await;
    editor.send_body(body).await;
    arrived(&mut editor).await;
    editor
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_whose_change_could_not_be_understood_is_not_taken_for_saved() {
    let world = world(&[("core.lisp", DISK)]).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    let uri = world.uri("core.lisp");
    let place = |line: i64| json!({"line": line, "character": 0});
    let change = |change: Value| {
        let document = json!({"uri": uri, "version": 2});
        let params = json!({"textDocument": document, "contentChanges": [change]});
        json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": params}).to_string()
    };
    for body in [
        change(json!({"text": ";; mine\n", "range": {"start": place(1), "end": place(0)}})),
        change(json!({"text": ";; mine\n", "range": {"start": place(-1), "end": place(0)}})),
        change(json!({"text": 5})),
        change(json!({"text": ";; mine\n"})) + "}",
    ] {
        let mut editor = opened_then(&world, body.as_bytes()).await;
        let told = editor.wait_for("window/showMessage", |told| told.to_string().contains("open it again")).await;
        assert!(told.to_string().contains("core.lisp"), "{told}");
        let refused = |result: &Value| result["isError"] == true && text(result).contains("closed and opened again");
        let read = agent.call("lisp-read-file", json!({"path": "core.lisp"})).await;
        assert!(refused(&read), "{body}: {read}");
        let call = begin_edit(&mut agent, "core.lisp").await;
        let result = agent.result(call).await;
        assert!(refused(&result), "{body}: {result}");
        assert_eq!(std::fs::read_to_string(world.path("core.lisp")).expect("the file"), DISK, "{body}");
        // A whole text is known again.
        let whole = json!({"textDocument": {"uri": uri, "version": 3}, "contentChanges": [{"text": MINE}]});
        editor.notify("textDocument/didChange", whole).await;
        arrived(&mut editor).await;
        edited_in(&mut editor, &mut agent, "core.lisp").await;
        editor.vanish().await;
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_in_a_notification_that_hardly_fits_the_protocol_is_known() {
    let world = world(&[("core.lisp", DISK)]).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    let uri = world.uri("core.lisp");
    let notification = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string().into_bytes()
    };
    let opened = |document: Value| notification("textDocument/didOpen", json!({"textDocument": document}));
    let changed = |change: Value| {
        let document = json!({"uri": uri, "version": null});
        notification("textDocument/didChange", json!({"textDocument": document, "contentChanges": [change]}))
    };
    let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1_u64 << 40, "character": 0}});
    let broken = opened(json!({"uri": uri, "languageId": "lisp", "version": 1, "text": format!("{MINE};;~")}));
    for body in [
        opened(json!({"uri": uri, "text": MINE})),
        opened(json!({"uri": uri, "languageId": "lisp", "version": 3_000_000_000_u32, "text": MINE})),
        broken.iter().map(|byte| if *byte == b'~' { 0xff } else { *byte }).collect(),
        changed(json!({"text": MINE})),
        changed(json!({"text": MINE, "range": all, "rangeLength": -1})),
    ] {
        let mut editor = opened_then(&world, &body).await;
        assert!(read(&mut agent, "core.lisp").await.1, "{}", String::from_utf8_lossy(&body));
        edited_in(&mut editor, &mut agent, "core.lisp").await;
        editor.vanish().await;
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_text_that_could_not_be_understood_when_it_was_opened_is_not_edited_on_the_disk() {
    let world = world(&[("core.lisp", DISK)]).await;
    let mut agent = Agent::named(&world.session, "agent", json!({})).await;
    let uri = world.uri("core.lisp");
    let opened = |text: Value| {
        let document = json!({"uri": uri, "languageId": "lisp", "version": 1, "text": text});
        let params = json!({"textDocument": document});
        json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": params}).to_string()
    };
    let changed = |change: Value| json!({"textDocument": {"uri": uri, "version": 2}, "contentChanges": [change]});
    let start = json!({"line": 0, "character": 0});
    let part = changed(json!({"text": ";; mine\n", "range": {"start": start, "end": start}}));
    for (body, first) in [(opened(json!(5)), None), (opened(json!(MINE)) + "}", Some(part))] {
        let mut editor = editor(&world).await;
        editor.send_body(body.as_bytes()).await;
        arrived(&mut editor).await;
        if let Some(part) = first {
            editor.notify("textDocument/didChange", part).await;
            arrived(&mut editor).await;
        }
        let told = editor.wait_for("window/showMessage", |told| told.to_string().contains("open it again")).await;
        assert!(told.to_string().contains("core.lisp"), "{told}");
        let call = begin_edit(&mut agent, "core.lisp").await;
        let result = agent.result(call).await;
        assert!(result["isError"] == true && text(&result).contains("closed and opened again"), "{body}: {result}");
        assert_eq!(std::fs::read_to_string(world.path("core.lisp")).expect("the file"), DISK, "{body}");
        // A whole text is known again.
        editor.notify("textDocument/didChange", changed(json!({"text": MINE}))).await;
        arrived(&mut editor).await;
        edited_in(&mut editor, &mut agent, "core.lisp").await;
        editor.vanish().await;
    }
    // A document that is closed is the file's again.
    let mut editor = editor(&world).await;
    editor.send_body(opened(json!(null)).as_bytes()).await;
    editor.wait_for("window/showMessage", |told| told.to_string().contains("core.lisp")).await;
    editor.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}})).await;
    arrived(&mut editor).await;
    assert_eq!(read(&mut agent, "core.lisp").await, (DISK.to_owned(), false));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_of_a_text_that_has_changed_is_refused_whatever_the_versions_say() {
    let world = world(&[("core.lisp", DISK)]).await;
    let mut editor = editor(&world).await;
    let uri = world.uri("core.lisp");
    open(&mut editor, &uri, MINE).await;
    let change =
        |text: &str| json!({"textDocument": {"uri": uri, "version": null}, "contentChanges": [{"text": text}]});
    editor.notify("textDocument/didChange", change(&format!("{MINE}\n"))).await;
    arrived(&mut editor).await;
    let file = world.session.source_file("core.lisp").await.expect("a file");
    editor.notify("textDocument/didChange", change(&format!(";; mine\n{MINE}"))).await;
    arrived(&mut editor).await;
    let refused = world.session.edit_source_file(&file, 0..1, "[").await.expect_err("an older text");
    assert!(refused.message.contains("changed meanwhile"), "{refused}");
    editor.vanish().await;
    world.end().await;
}
