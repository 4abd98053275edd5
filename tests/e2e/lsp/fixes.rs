//! Quick fixes on what the compiler found: the text before and after.

use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

async fn editor(world: &World) -> Editor {
    let literals = json!({"codeActionKind": {"valueSet": ["quickfix"]}});
    Editor::start(&world.session, json!({"textDocument": {"codeAction": {"codeActionLiteralSupport": literals}}})).await
}

/// The titles and edits of the fixes for a whole document, once `code` is among its findings.
async fn fixes(editor: &mut Editor, uri: &str, text: &str, code: &str) -> Vec<(String, Value)> {
    editor.open(uri, text).await;
    editor.diagnostics(uri, |_, lines| lines.iter().any(|line| line.ends_with(code))).await;
    let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}});
    let context = json!({"diagnostics": [], "only": ["quickfix"]});
    let params = json!({"textDocument": {"uri": uri}, "range": all, "context": context});
    let actions = editor.request("textDocument/codeAction", params).await.unwrap();
    let one = |action: &Value| (action["title"].as_str().unwrap().to_owned(), action["edit"]["changes"].clone());
    actions.as_array().unwrap().iter().map(one).collect()
}

/// The text after the first fix of that title.
fn after(text: &str, uri: &str, fixes: &[(String, Value)], title: &str) -> String {
    let (_, changes) = fixes.iter().find(|(each, _)| each == title).unwrap_or_else(|| panic!("no {title}: {fixes:?}"));
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let edit = &changes[uri][0];
    let place = |end: &str| {
        let number = |name: &str| usize::try_from(edit["range"][end][name].as_u64().unwrap()).unwrap();
        (number("line"), number("character"))
    };
    let ((line, from), (to_line, to)) = (place("start"), place("end"));
    let rest = lines[to_line][to..].to_owned();
    lines[line].truncate(from);
    lines[line] = format!("{}{}{rest}", lines[line], edit["newText"].as_str().unwrap());
    lines.drain(line + 1..=to_line);
    lines.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_variable_is_declared_ignored_or_removed() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    let text = "(defun f (x)\n  \"Documented.\"\n  ;; why\n  (let ((y 1)) 2))\n";
    let uri = world.uri("a.lisp");
    let offered = fixes(&mut editor, &uri, text, "unused-variable").await;
    assert_eq!(
        after(text, &uri, &offered, "Declare x ignored"),
        "(defun f (x)\n  \"Documented.\"\n  (declare (ignore x))\n  ;; why\n  (let ((y 1)) 2))\n"
    );
    assert_eq!(
        after(text, &uri, &offered, "Remove the variable y"),
        "(defun f (x)\n  \"Documented.\"\n  ;; why\n  (let () 2))\n"
    );
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_loop_or_flet_binds_for_nothing_goes() {
    let world = World::configured(&[], unreachable()).await;
    world.is_ready().await;
    let mut editor = editor(&world).await;
    let uri = world.uri("a.lisp");
    let text = "(defun f (list)\n  (loop with (p q) = list\n        repeat 3 collect p))\n";
    let offered = fixes(&mut editor, &uri, text, "unused-variable").await;
    assert_eq!(after(text, &uri, &offered, "Write nil for q"), text.replace("(p q)", "(p nil)"));
    let uri = world.uri("b.lisp");
    let text = "(defun f (x)\n  (flet ((g (y) y)\n         (h (y) y))\n    (h x)))\n";
    let offered = fixes(&mut editor, &uri, text, "unused-function").await;
    let without = "(defun f (x)\n  (flet ((h (y) y))\n    (h x)))\n";
    assert_eq!(after(text, &uri, &offered, "Remove the local function g"), without);
    world.end().await;
}

/// A configuration that reports unreachable code, such as unused functions.
fn unreachable() -> consort::config::Config {
    let mut config = consort::config::Config::default();
    config.check.unreachable = true;
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_name_is_taken_from_a_package_of_the_image() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    editor.eval("(defpackage :game (:use :cl) (:export #:play-a-game)) (defun game:play-a-game () 1)").await;
    editor.eval("(defun game::cheat-at-it () 2)").await;
    editor.eval("(defpackage :mine (:use :cl))").await;
    let text = "(defpackage :mine (:use :cl))\n(in-package :mine)\n(defun f () (play-a-game))\n";
    let uri = world.uri("a.lisp");
    let offered = fixes(&mut editor, &uri, text, "undefined-function").await;
    for (title, expected) in [
        ("Write game:play-a-game", text.replace("(play", "(game:play")),
        (
            "Import play-a-game from game",
            text.replace("(:use :cl))", "(:use :cl)\n  (:import-from :game :play-a-game))"),
        ),
        ("Use the package game", text.replace("(:use :cl)", "(:use :cl :game)")),
    ] {
        assert_eq!(after(text, &uri, &offered, title), expected);
    }
    let text = "(defun f () (game:cheat-at-it))\n";
    let uri = world.uri("b.lisp");
    let offered = fixes(&mut editor, &uri, text, "unknown-symbol").await;
    assert_eq!(after(text, &uri, &offered, "Write game::cheat-at-it"), "(defun f () (game::cheat-at-it))\n");

    // Looking for the name did not intern it.
    assert_eq!(editor.eval("(values (find-symbol \"CHEAT-AT-IT\" :mine))").await, ["NIL"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misspelt_name_is_changed_to_the_one_that_was_meant() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    let uri = world.uri("a.lisp");
    let text = "(defun f (x)\n  (lenght x))\n";
    let offered = fixes(&mut editor, &uri, text, "undefined-function").await;
    assert_eq!(after(text, &uri, &offered, "Change to length"), "(defun f (x)\n  (length x))\n");
    let uri = world.uri("b.lisp");
    let text = "(defun area (width height)\n  (* width heigth height))\n";
    let offered = fixes(&mut editor, &uri, text, "undefined-variable").await;
    assert_eq!(after(text, &uri, &offered, "Change to height"), text.replace("heigth", "height"));
    world.end().await;
}
