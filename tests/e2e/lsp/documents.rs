//! Documents and their diagnostics.

use consort::session::{ClientId, ClientInfo, EvalRequest, Frontend};
use consort_tests::lsp::{Editor, lines};
use consort_tests::world::World;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn findings_are_published_moved_withdrawn_and_cleared() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(defun f () (no-such-function))\n(defun g (x) 1)\n").await;
    let (version, found) = editor.diagnostics(&uri, |_, lines| !lines.is_empty()).await;
    assert_eq!(
        (version, found),
        (1, vec!["0:13-0:29 undefined-function".to_string(), "1:10-1:11 unused-variable".into()])
    );

    // A change in one form removes its findings, and moves the others, in a publication for this
    // version, at once.
    editor.change(&uri, 2, [0, 9, 0, 9], "\n").await;
    let (_, found) = editor.diagnostics(&uri, |version, _| version == 2).await;
    assert_eq!(found, ["2:10-2:11 unused-variable"]);
    // Then the compiler's findings for the new text come.
    let (_, found) = editor.diagnostics(&uri, |version, lines| version == 2 && lines.len() == 2).await;
    assert_eq!(found, ["1:4-1:20 undefined-function", "2:10-2:11 unused-variable"]);

    editor.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}})).await;
    let (_, found) = editor.diagnostics(&uri, |version, _| version == -1).await;
    assert!(found.is_empty());
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_opened_again_is_not_taken_for_the_one_before() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    let document = json!({"textDocument": {"uri": uri}});
    for round in 0..20 {
        // The check of the first is under way when the second is opened.
        editor.open(&uri, "(eval-when (:compile-toplevel) (sleep 0.2))").await;
        editor.request("textDocument/documentSymbol", document.clone()).await.expect("symbols");
        editor.notify("textDocument/didClose", document.clone()).await;
        editor.open(&uri, "(defun f () (no-such-function))").await;
        let pulled = editor.request("textDocument/diagnostic", document.clone()).await.expect("diagnostics");
        assert_eq!(pulled["items"][0]["code"], "undefined-function", "{round}: {pulled}");
        editor.notify("textDocument/didClose", document.clone()).await;
    }
    editor.leave().await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_form_costs_one_form_and_is_marked_without_an_image() {
    let world = World::with(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(defun f ()\n(defun g (x) 1)\n").await;
    // Published at once, although the image is only starting.
    let (_, found) = editor.diagnostics(&uri, |_, _| true).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("0:0-"), "{found:?}");
    let (_, found) = editor.diagnostics(&uri, |_, lines| lines.len() == 2).await;
    assert_eq!(found[1], "1:10-1:11 unused-variable");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_defines_the_editor_sees() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(defun f () (defined-by-the-agent 1))\n").await;
    editor.diagnostics(&uri, |_, lines| lines.len() == 1).await;
    let (agent, _feedback) = world.session.attach(ClientInfo { frontend: Frontend::Mcp, name: "agent".into() });
    let code = "(defun defined-by-the-agent (x) x)".to_string();
    let request = EvalRequest { code, ..EvalRequest::default() };
    world.session.evaluate(agent, request).await.unwrap();
    editor.diagnostics(&uri, |version, lines| version == 1 && lines.is_empty()).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn structure_is_checked_while_lisp_loops() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let id = editor.ask_command("consort.eval", json!({"code": "(princ 1) (loop)", "outputToken": 1})).await;
    editor.wait_for("consort/output", |_| true).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(a").await;
    editor.diagnostics(&uri, |version, lines| version == 1 && lines.len() == 1).await;
    editor.change(&uri, 2, [0, 2, 0, 2], ")").await;
    editor
        .diagnostics(&uri, |version, lines| version == 2 && !lines.iter().any(|line| line.contains("unbalanced")))
        .await;
    editor.notify("$/cancelRequest", json!({"id": id})).await;
    editor.answer(id).await.unwrap_err();
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn positions_count_in_the_agreed_unit() {
    let world = World::with(&[]).await;
    for (offered, start, end) in [(json!(["utf-8", "utf-16"]), 5, 6), (json!(null), 3, 4), (json!(["utf-32"]), 2, 3)] {
        let mut editor = Editor::connect(&world.session);
        let params = json!({"capabilities": {"general": {"positionEncodings": offered}}});
        let answer = editor.initialize(params).await;
        let agreed = answer["capabilities"]["positionEncoding"].clone();
        let uri = world.uri(&format!("{start}.lisp"));
        editor.open(&uri, "𝄞 x").await;
        // Put the `)` after the space, in the client's own unit: it closes nothing.
        editor.change(&uri, 2, [0, start, 0, start], ")").await;
        let (_, found) = editor.diagnostics(&uri, |version, lines| version == 2 && !lines.is_empty()).await;
        // The compiler's findings may be among them.
        assert!(found.contains(&format!("0:{start}-0:{end} unbalanced-close")), "{agreed}: {found:?}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_changes_are_applied_in_order() {
    let world = World::with(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    let mut expected = String::from("; start");
    editor.open(&uri, &expected).await;
    for n in 0..3000 {
        // Places that depend on all changes before.
        let at = (n * 7919) as usize % (expected.len() + 1);
        let end = expected.len().min(at + n as usize % 3);
        let text = format!("{n}");
        expected.replace_range(at..end, &text);
        editor.change(&uri, n + 2, [0, at as u32, 0, end as u32], &text).await;
    }
    editor.diagnostics(&uri, |version, _| version == 3001).await;
    let snapshot = world.session.snapshot(ClientId(1), &uri, false).await.unwrap();
    assert_eq!(snapshot.text.to_string(), expected);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn diagnostics_can_be_asked_for() {
    let world = World::ready(&[("disk.lisp", "(defun h (y) 1)")]).await;
    let mut editor = Editor::connect(&world.session);
    let answer = editor.initialize(json!({"capabilities": {}, "initializationOptions": {"diagnostics": "pull"}})).await;
    assert_eq!(answer["capabilities"]["diagnosticProvider"]["workspaceDiagnostics"], true);
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(defun g (x) 1)\n").await;
    let report = pull(&mut editor, &uri, None).await;
    assert_eq!((&report["kind"], lines(&report["items"])), (&json!("full"), vec!["0:10-0:11 unused-variable".into()]));
    let again = pull(&mut editor, &uri, report["resultId"].as_str()).await;
    assert_eq!(again, json!({"kind": "unchanged", "resultId": report["resultId"]}));
    editor.change(&uri, 2, [0, 13, 0, 14], "x").await;
    let changed = pull(&mut editor, &uri, report["resultId"].as_str()).await;
    assert_eq!((&changed["kind"], &changed["items"]), (&json!("full"), &json!([])));

    let on_disk = pull(&mut editor, &world.uri("disk.lisp"), None).await;
    assert_eq!(lines(&on_disk["items"]), ["0:10-0:11 unused-variable"]);
    let missing = json!({"textDocument": {"uri": world.uri("missing.lisp")}});
    assert_eq!(editor.request("textDocument/diagnostic", missing).await.unwrap_err()["code"], -32602);

    let previous = json!([{"uri": uri, "value": changed["resultId"]}]);
    let all = editor.request("workspace/diagnostic", json!({"previousResultIds": previous})).await.unwrap();
    assert_eq!(all["items"], json!([{"kind": "unchanged", "uri": uri, "version": 2, "resultId": changed["resultId"]}]));
    let all = editor.request("workspace/diagnostic", json!({"previousResultIds": []})).await.unwrap();
    assert_eq!(all["items"][0]["kind"], "full");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_of_the_implementation_have_no_findings_of_the_compiler() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::connect(&world.session);
    editor.initialize(json!({"capabilities": {}, "initializationOptions": {"diagnostics": "pull"}})).await;
    let outside = "file:///usr/share/sbcl-source/src/code/numbers.lisp";
    let text = "(in-package \"SB-KERNEL\")\n(defun car (x) (undefined-here x))\n";
    for (uri, text, expected) in [
        (outside, text.to_owned(), Vec::new()),
        (&*world.uri("mine.lisp"), text.replace("car", "mine"), vec!["1:17-1:31 undefined-function".to_owned()]),
        ("file:///elsewhere/a.lisp", "(defun g (x) 1)".to_owned(), vec!["0:10-0:11 unused-variable".to_owned()]),
    ] {
        editor.open(uri, &text).await;
        let report = pull(&mut editor, uri, None).await;
        assert_eq!(lines(&report["items"]), expected, "{uri}");
    }
    editor.change(outside, 2, [1, 33, 1, 34], "").await;
    let unbalanced = pull(&mut editor, outside, None).await;
    assert_eq!(lines(&unbalanced["items"]), ["1:0-1:1 unbalanced-list"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn diagnostics_that_are_asked_for_are_of_the_image_as_it_is_now() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::connect(&world.session);
    editor.initialize(json!({"capabilities": {}, "initializationOptions": {"diagnostics": "pull"}})).await;
    let mut other = Editor::start(&world.session, json!({})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(defun g () (defined-elsewhere))\n").await;
    let undefined = vec!["0:13-0:30 undefined-function".to_owned()];
    let mut report = pull(&mut editor, &uri, None).await;
    assert_eq!(lines(&report["items"]), undefined);
    for round in 0..6 {
        // The editor asks at once after the answer of an evaluation, long before all documents are
        // checked again.
        let (code, expected) = if round % 2 == 0 {
            ("(defun defined-elsewhere () 1)", Vec::new())
        } else {
            ("(fmakunbound 'defined-elsewhere)", undefined.clone())
        };
        other.eval(code).await;
        let previous = report["resultId"].clone();
        if round < 4 {
            report = pull(&mut editor, &uri, previous.as_str()).await;
        } else {
            let previous = json!([{"uri": uri, "value": previous}]);
            let all = editor.request("workspace/diagnostic", json!({"previousResultIds": previous})).await.unwrap();
            report = all["items"][0].clone();
        }
        assert_eq!((&report["kind"], lines(&report["items"])), (&json!("full"), expected), "{round}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn diagnostics_that_are_asked_for_before_there_is_an_image_are_those_of_the_compiler() {
    let world = World::with(&[]).await;
    let mut editor = Editor::connect(&world.session);
    editor.initialize(json!({"capabilities": {}, "initializationOptions": {"diagnostics": "pull"}})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(defun g (x) 1)\n").await;
    // This client has no way to be told to ask again.
    let report = pull(&mut editor, &uri, None).await;
    assert_eq!(lines(&report["items"]), ["0:10-0:11 unused-variable"]);
    world.end().await;
}

async fn pull(editor: &mut Editor, uri: &str, previous: Option<&str>) -> Value {
    let params = json!({"textDocument": {"uri": uri}, "previousResultId": previous});
    editor.request("textDocument/diagnostic", params).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_system_that_is_not_loaded_offers_to_load_it() {
    let files = [
        ("toy.asd", "(defsystem \"toy\" :components ((:file \"package\") (:file \"toy\" :depends-on (\"package\"))))"),
        ("package.lisp", "(defpackage :toy (:use :cl))\n(in-package :toy)\n(defun helper () 1)\n"),
        ("toy.lisp", "(in-package :toy)\n(defun play (x) (helper))\n"),
    ];
    let world = World::ready(&files).await;
    let literals = json!({"codeActionKind": {"valueSet": ["quickfix"]}});
    let mut editor =
        Editor::start(&world.session, json!({"textDocument": {"codeAction": {"codeActionLiteralSupport": literals}}}))
            .await;
    let uri = world.uri("toy.lisp");
    editor.open(&uri, files[2].1).await;
    let (_, found) = editor.diagnostics(&uri, |_, lines| !lines.is_empty()).await;
    // Neither the package nor the function is reported, nor the unused variable, because a macro of
    // a system that is not loaded may use it.
    assert_eq!(found, ["0:0-0:17 system-not-loaded"]);

    let at = json!({"line": 0, "character": 0});
    let params =
        json!({"textDocument": {"uri": uri}, "range": {"start": at, "end": at}, "context": {"diagnostics": []}});
    let actions = editor.request("textDocument/codeAction", params).await.unwrap();
    let command = &actions[0]["command"];
    assert_eq!(
        (&command["command"], &command["arguments"]),
        (&json!("consort.loadSystem"), &json!([{"system": "toy"}]))
    );
    let result = editor.request("workspace/executeCommand", command.clone()).await.unwrap();
    assert_eq!(result["loaded"], true, "{result}");
    let (_, found) = editor.diagnostics(&uri, |_, lines| !lines.iter().any(|line| line.contains("system"))).await;
    assert_eq!(found, ["1:13-1:14 unused-variable"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_breaks_a_form_can_be_repaired() {
    let world = World::with(&[]).await;
    let literals = json!({"codeActionKind": {"valueSet": ["quickfix"]}});
    let capabilities = json!({
        "textDocument": {"codeAction": {"codeActionLiteralSupport": literals}},
        "workspace": {"workspaceEdit": {"documentChanges": true}},
    });
    let mut editor = Editor::start(&world.session, capabilities).await;
    for (name, text, edit) in [
        ("open.lisp", "(defun f ()\n  (list 1 2)\n", json!({"newText": ")", "range": range(1, 12, 12)})),
        ("close.lisp", "(defun f ()))\n", json!({"newText": "", "range": range(0, 12, 13)})),
    ] {
        let uri = world.uri(name);
        editor.open(&uri, text).await;
        editor.diagnostics(&uri, |_, lines| !lines.is_empty()).await;
        let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 2, "character": 0}});
        let params = json!({"textDocument": {"uri": uri}, "range": all, "context": {"diagnostics": []}});
        let actions = editor.request("textDocument/codeAction", params).await.unwrap();
        let changes = json!([{"textDocument": {"uri": uri, "version": 1}, "edits": [edit]}]);
        assert_eq!(actions[0]["edit"]["documentChanges"], changes, "{actions}");
    }
    world.end().await;
}

fn range(line: u32, start: u32, end: u32) -> Value {
    json!({"start": {"line": line, "character": start}, "end": {"line": line, "character": end}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_editor_s_settings_are_in_force_and_wrong_ones_are_told() {
    let world = World::ready(&[]).await;
    let mut editor = Editor::connect(&world.session);
    editor.settings = json!({"check": {"debounce_ms": "soon", "notes": true}});
    editor.initialize(json!({"capabilities": {"workspace": {"configuration": true}}})).await;
    editor.wait_for("window/showMessage", |params| params["message"].to_string().contains("check.debounce_ms")).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(defun f (x) (declare (optimize speed)) (+ x 1))\n").await;
    editor.diagnostics(&uri, |_, lines| lines.iter().any(|line| line.ends_with("note"))).await;
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_languages_are_left_alone() {
    let world = World::with(&[]).await;
    let mut editor = Editor::start(&world.session, json!({})).await;
    let document = json!({"uri": world.uri("a.py"), "languageId": "python", "version": 1, "text": "f("});
    editor.notify("textDocument/didOpen", json!({"textDocument": document})).await;
    editor.open(&world.uri("b.lisp"), "(b").await;
    let published = editor.wait_for("textDocument/publishDiagnostics", |_| true).await;
    assert_eq!(published["uri"], world.uri("b.lisp"));
    world.end().await;
}
