//! `consort.macroexpand` and the actions that lead to it.

use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

const TEXT: &str = "(defpackage :expanding (:use :cl))
(in-package :expanding)

(defun f (x)
  (macrolet ((m (form) `(first ,form)))
    (when x
      (list (m x) (unless x 1)
            '(when a)))))
";

async fn editor(world: &World) -> Editor {
    let literals = json!({"codeActionKind": {"valueSet": ["quickfix"]}});
    let capabilities = json!({
        "textDocument": {"codeAction": {"codeActionLiteralSupport": literals}},
        "workspace": {"applyEdit": true, "workspaceEdit": {"documentChanges": true}},
    });
    let mut editor = Editor::start(&world.session, capabilities).await;
    editor.eval("(defpackage :expanding (:use :cl))").await;
    editor
}

fn at(line: u32, character: u32) -> Value {
    json!({"line": line, "character": character})
}

fn flat(result: &Value) -> String {
    result["expansion"].as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_at_the_cursor_is_expanded_in_its_lexical_environment() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, TEXT).await;
    let result = editor.command("consort.macroexpand", json!({"uri": uri, "position": at(6, 13)})).await.unwrap();
    assert_eq!(
        (&result["expansion"], &result["expanded"], &result["form"], &result["package"], &result["error"]),
        (&json!("(first x)"), &json!(true), &json!("(M X)"), &json!("EXPANDING"), &Value::Null)
    );
    assert_eq!(result["range"], json!({"start": at(6, 12), "end": at(6, 17)}));

    let full = json!({"uri": uri, "position": at(5, 5), "how": "full"});
    let full = editor.command("consort.macroexpand", full).await.unwrap();
    let text = flat(&full);
    assert!(text.starts_with("(if x") && text.contains("(first x)") && text.contains("'(when a)"), "{text}");
    assert!(!text.contains("unless") && !text.contains("macrolet"), "{text}");

    // With the surrounding form, and further from there: each further step is a position in the
    // expansion that was shown.
    let step = json!({"uri": uri, "position": at(6, 13), "how": "step"});
    let step = editor.command("consort.macroexpand", step).await.unwrap();
    assert!(
        flat(&step).starts_with("(defun f (x) (macrolet ((m (form) `(first ,form))) (when x (list (first x)"),
        "{step}"
    );
    let shown = step["expansion"].as_str().unwrap();
    let place = shown.lines().position(|line| line.contains("(when x")).unwrap();
    let column = shown.lines().nth(place).unwrap().find("(when x").unwrap();
    let steps = json!([at(u32::try_from(place).unwrap(), u32::try_from(column).unwrap())]);
    let further = json!({"uri": uri, "position": at(6, 13), "how": "step", "steps": steps});
    let further = editor.command("consort.macroexpand", further).await.unwrap();
    assert!(flat(&further).contains("(if x (list (first x) (unless x 1)"), "{further}");

    // A text without a document: the expansion that was shown.
    let text = json!({"text": step["expansion"], "package": "EXPANDING", "position": steps[0], "how": "step"});
    let text = editor.command("consort.macroexpand", text).await.unwrap();
    assert_eq!(text["expansion"], further["expansion"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_expanded_is_told_as_data() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(loop for)\n(list 1)\n(no-such:thing)\n").await;
    let failed = editor.command("consort.macroexpand", json!({"uri": uri, "position": at(0, 3)})).await.unwrap();
    assert_eq!((&failed["expansion"], &failed["error"]["stage"]), (&Value::Null, &json!("expand")), "{failed}");
    let function = editor.command("consort.macroexpand", json!({"uri": uri, "position": at(1, 3)})).await.unwrap();
    assert_eq!((&function["expansion"], &function["expanded"]), (&json!("(list 1)"), &json!(false)));
    let unread = editor.command("consort.macroexpand", json!({"uri": uri, "position": at(2, 3)})).await.unwrap();
    assert_eq!(unread["error"]["message"], "Package NO-SUCH not found");
    for (argument, why) in [
        (json!({}), "a `uri` or a `text`"),
        (json!({"uri": uri}), "a `position`"),
        (json!({"text": "1", "inPlace": true}), "expanded in place"),
        (json!({"uri": world.uri("other.lisp"), "position": at(0, 0)}), "is not open"),
        (json!({"text": "1", "how": "much"}), "unknown variant"),
    ] {
        let error = editor.command("consort.macroexpand", argument).await.unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undefined_operator_is_not_offered_as_a_macro() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(defun f (x)\n  (lenght x))\n").await;
    editor.diagnostics(&uri, |_, lines| lines.iter().any(|line| line.ends_with("undefined-function"))).await;
    let titles = async |editor: &mut Editor, line, character| {
        let range = json!({"start": at(line, character), "end": at(line, character)});
        let params = json!({"textDocument": {"uri": uri}, "range": range, "context": {"diagnostics": []}});
        editor.request("textDocument/codeAction", params).await.unwrap().to_string()
    };
    assert!(titles(&mut editor, 0, 2).await.contains("Macroexpand"));
    for character in [4, 10] {
        let offered = titles(&mut editor, 1, character).await;
        assert!(!offered.contains("Macroexpand"), "{offered}");
    }
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expansion_takes_the_place_of_its_form() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, TEXT).await;
    let params = json!({
        "textDocument": {"uri": uri}, "range": {"start": at(5, 6), "end": at(5, 6)},
        "context": {"diagnostics": [], "only": ["refactor"]},
    });
    let actions = editor.request("textDocument/codeAction", params).await.unwrap();
    let titles = actions.as_array().unwrap().iter().map(|action| action["title"].as_str().unwrap());
    let expansions: Vec<&str> = titles.filter(|title| title.starts_with("Macroexpand")).collect();
    assert_eq!(expansions, ["Macroexpand", "Macroexpand fully", "Macroexpand in place"]);
    assert_eq!(actions[2]["kind"], "refactor.rewrite");
    // An action that only shows an expansion shows it itself, because an editor may ignore the
    // result.
    editor.request("workspace/executeCommand", actions[0]["command"].clone()).await.unwrap();
    editor
        .wait_for("window/showMessage", |params| {
            params["message"].as_str().is_some_and(|text| text.starts_with("(if x"))
        })
        .await;

    let result = editor.request("workspace/executeCommand", actions[2]["command"].clone()).await.unwrap();
    assert_eq!(result["applied"], true, "{result}");
    let asked = editor.wait_for("workspace/applyEdit", |_| true).await;
    let change = &asked["edit"]["documentChanges"][0];
    assert_eq!(change["textDocument"], json!({"uri": uri, "version": 1}));
    let edit = &change["edits"][0];
    assert_eq!(edit["range"], json!({"start": at(5, 4), "end": at(7, 23)}));
    let lines: Vec<&str> = edit["newText"].as_str().unwrap().lines().collect();
    assert_eq!(lines[0], "(if x");
    // Indented for its place.
    assert!(lines[1].starts_with("        (list") || lines[1].starts_with("        (progn"), "{lines:?}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_functions_are_expanded_as_the_compiler_does() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    let uri = world.uri("a.lisp");
    editor.eval("(progn (defun twice (x) (* 2 x)) (define-compiler-macro twice (x) `(+ ,x ,x)))").await;
    editor.open(&uri, "(list (twice 1))\n(format t \"~A~%\" 1)\n(format t x)\n").await;
    for (at, title, expected) in
        [(at(0, 9), "Expand the compiler macro", "(+ 1 1)"), (at(1, 14), "Expand the format string", "(write-char")]
    {
        let params = json!({
            "textDocument": {"uri": uri}, "range": {"start": at, "end": at}, "context": {"diagnostics": [], "only": ["refactor.macroexpand"]},
        });
        let actions = editor.request("textDocument/codeAction", params).await.unwrap();
        let titles: Vec<_> = actions.as_array().unwrap().iter().map(|action| &action["title"]).collect();
        assert_eq!(titles, [title]);
        editor.request("workspace/executeCommand", actions[0]["command"].clone()).await.unwrap();
        let shown = |params: &Value| params["message"].as_str().is_some_and(|text| text.contains(expected));
        editor.wait_for("window/showMessage", shown).await;
    }
    let nothing = json!({"uri": uri, "position": at(0, 2), "how": "compiler"});
    let nothing = editor.command("consort.macroexpand", nothing).await.unwrap();
    assert_eq!((&nothing["expanded"], &nothing["expansion"]), (&json!(false), &json!("(list (twice 1))")));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_down_is_the_same_when_it_is_read() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, "(loop for i below 3 collect (loop repeat 2 sum i))\n").await;
    let argument = json!({"uri": uri, "position": at(0, 0), "how": "full", "inPlace": true});
    editor.command("consort.macroexpand", argument).await.unwrap();
    let asked = editor.wait_for("workspace/applyEdit", |_| true).await;
    let code = asked["edit"]["documentChanges"][0]["edits"][0]["newText"].as_str().unwrap().to_owned();
    assert!(!code.contains("#:"), "{code}");
    assert_eq!(editor.eval(&code).await, ["(0 2 4)"]);
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_light_bulb_shines_on_macro_calls_only() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    let uri = world.uri("a.lisp");
    let text = "(when a b)\n(list 1)\n(let ((a 1)) a)\n(in-package :not-loaded)\n(list 1)\n(list! 1)\n";
    editor.open(&uri, text).await;
    for (line, trigger, expected) in [(0, 2, 3), (1, 2, 0), (1, 1, 0), (2, 1, 0), (2, 2, 0), (4, 2, 0), (5, 2, 3)] {
        let params = json!({
            "textDocument": {"uri": uri}, "range": {"start": at(line, 2), "end": at(line, 2)},
            "context": {"diagnostics": [], "triggerKind": trigger, "only": ["refactor"]},
        });
        let actions = editor.request("textDocument/codeAction", params).await.unwrap();
        assert_eq!(actions.as_array().map(Vec::len), Some(expected), "{actions}");
    }
    world.end().await;
}
