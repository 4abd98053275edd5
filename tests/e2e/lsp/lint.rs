//! Rules beside the compiler over a real image: those of the workspace's texts, and those of the
//! settings, with their fixes.

use consort::config::Config;
use consort::model::lint_rule::LintRule;
use consort::text::pattern::{Pattern, Template};
use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

const PACKAGES: &str =
    "(defpackage :lib\n  (:use :cl)\n  (:export #:open-one #:lonely-export))\n(defpackage :user\n  (:use :cl :lib))\n";
const LIB: &str =
    "(in-package :lib)\n(defun open-one (x) (first x))\n(defun lonely (x)\n  (print x)\n  \"Documentation.\"\n  x)\n";
const USER: &str = "(in-package :user)\n(open-one '(1))\n";

fn config() -> Config {
    let pattern = Pattern::read("(first ?x)").unwrap();
    let rewrite = Some(Template::read("(car ?x)", &pattern).unwrap());
    let own = LintRule { name: "no-first".into(), pattern, message: "Say car.".into(), rewrite };
    Config { lint_rules: vec!["all".into()], lint_own: vec![own], ..Config::default() }
}

/// The codes of a document's findings, once there are any, and the fixes of all of it.
async fn found(editor: &mut Editor, uri: &str, text: &str) -> (Vec<String>, Vec<Value>) {
    editor.open(uri, text).await;
    let (_, lines) = editor.diagnostics(uri, |_, lines| lines.iter().any(|line| line.contains("lint-"))).await;
    let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}});
    let params = json!({
        "textDocument": {"uri": uri}, "range": all, "context": {"diagnostics": [], "only": ["quickfix"]},
    });
    let actions = editor.request("textDocument/codeAction", params).await.unwrap();
    (lines, actions.as_array().unwrap().clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_workspaces_texts_and_ones_own_patterns_are_looked_into() {
    let files = [("packages.lisp", PACKAGES), ("lib.lisp", LIB), ("user.lisp", USER)];
    let world = World::configured(&files, config()).await;
    world.is_ready().await;
    let literals = json!({"codeActionKind": {"valueSet": ["quickfix"]}});
    let support = json!({"textDocument": {"codeAction": {"codeActionLiteralSupport": literals}}});
    let mut editor = Editor::start(&world.session, support).await;
    editor.ignore(&["textDocument/publishDiagnostics"]);
    editor.eval(PACKAGES).await;
    let uri = world.uri("lib.lisp");
    let (lines, fixes) = found(&mut editor, &uri, LIB).await;
    assert_eq!(lines, ["1:21-1:26 lint-own", "2:7-2:13 lint-unused-definition", "4:2-4:18 lint-misplaced-docstring"]);
    let fix = fixes.iter().find(|one| one["title"] == "Write (car x)").unwrap();
    let edit = &fix["edit"]["changes"][&uri][0];
    assert_eq!(
        (&edit["newText"], &edit["range"]["start"], &edit["range"]["end"]),
        (&json!("(car x)"), &json!({"line": 1, "character": 20}), &json!({"line": 1, "character": 29}))
    );
    assert!(fixes.iter().any(|one| one["title"] == "Move it before the code"), "{fixes:?}");
    let uri = world.uri("packages.lisp");
    let (lines, fixes) = found(&mut editor, &uri, PACKAGES).await;
    assert_eq!(lines, ["2:22-2:37 lint-unused-export"]);
    let fix = fixes.iter().find(|one| one["title"] == "Do not export it").unwrap();
    assert_eq!(fix["edit"]["changes"][&uri][0]["newText"], "");
    editor.leave().await;
    world.end().await;
}
