//! Refactorings over the real image: offered by title, made and compiled when one is chosen.

use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

const TEXT: &str = "(defun total (list)\n  (print (list 1 (reduce #'+ list))))\n\n(defmacro once (&body body)\n  (when (eq (first (first body)) 'if)\n    (error \"IF is not for ONCE.\"))\n  (first body))\n\n(defun f (x)\n  (once (when x (print x))))\n";

/// The actions of a kind for a range, by title.
async fn actions(editor: &mut Editor, uri: &str, from: (u32, u32), to: (u32, u32), kind: &str) -> Vec<Value> {
    let place = |(line, character): (u32, u32)| json!({"line": line, "character": character});
    let params = json!({
        "textDocument": {"uri": uri}, "range": {"start": place(from), "end": place(to)},
        "context": {"diagnostics": [], "only": [kind], "triggerKind": 1},
    });
    editor.request("textDocument/codeAction", params).await.unwrap().as_array().unwrap().clone()
}

async fn chosen(editor: &mut Editor, actions: &[Value], title: &str) -> Value {
    let action = actions.iter().find(|one| one["title"] == title).unwrap_or_else(|| panic!("no {title}: {actions:?}"));
    assert!(action["edit"].is_null() && action["disabled"].is_null(), "{action}");
    editor.request("codeAction/resolve", action.clone()).await.unwrap()
}

/// The text after the edits of the document; places in them are lines and ASCII characters.
fn after(text: &str, action: &Value, uri: &str) -> String {
    let mut edits = action["edit"]["changes"][uri].as_array().unwrap_or_else(|| panic!("no edit: {action}")).clone();
    let at = |place: &Value| -> usize {
        let line = usize::try_from(place["line"].as_u64().unwrap()).unwrap();
        let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        before + usize::try_from(place["character"].as_u64().unwrap()).unwrap()
    };
    edits.sort_by_key(|edit| std::cmp::Reverse(at(&edit["range"]["start"])));
    let mut new = text.to_owned();
    for edit in edits {
        let range = at(&edit["range"]["start"])..at(&edit["range"]["end"]);
        new.replace_range(range, edit["newText"].as_str().unwrap());
    }
    new
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refactoring_is_compiled_before_the_editor_gets_it() {
    let world = World::ready(&[]).await;
    let literals = json!({"codeActionKind": {"valueSet": ["refactor"]}});
    let support = json!({
        "codeActionLiteralSupport": literals, "resolveSupport": {"properties": ["edit"]}, "dataSupport": true,
        "disabledSupport": true,
    });
    let mut editor = Editor::start(&world.session, json!({"textDocument": {"codeAction": support}})).await;
    let uri = world.uri("a.lisp");
    editor.open(&uri, TEXT).await;
    let offered = actions(&mut editor, &uri, (1, 17), (1, 34), "refactor.extract").await;
    assert_eq!(offered.len(), 2, "{offered:?}");
    let action = chosen(&mut editor, &offered, "Extract variable").await;
    let expected = TEXT.replace(
        "  (print (list 1 (reduce #'+ list))))",
        "  (let ((reduce (reduce #'+ list)))\n    (print (list 1 reduce))))",
    );
    assert_eq!(after(TEXT, &action, &uri), expected);
    let action = chosen(&mut editor, &offered, "Extract function").await;
    let expected = TEXT.replace("(reduce #'+ list)", "(total-part list)");
    assert_eq!(after(TEXT, &action, &uri), format!("(defun total-part (list)\n  (reduce #'+ list))\n\n{expected}"));
    // A refactoring that the text does not allow is disabled.
    let offered = actions(&mut editor, &uri, (0, 15), (0, 15), "refactor.extract").await;
    assert!(!offered.is_empty() && offered.iter().all(|one| !one["disabled"].is_null()), "{offered:?}");
    // The macro fails on the result, which only the compiler can find.
    let offered = actions(&mut editor, &uri, (9, 9), (9, 9), "refactor.rewrite").await;
    let action = chosen(&mut editor, &offered, "Write as if").await;
    assert!(action["edit"].is_null(), "{action}");
    let told = editor
        .wait_for("window/showMessage", |told| {
            told["message"].as_str().is_some_and(|text| text.starts_with("Write as if: "))
        })
        .await;
    let message = told["message"].as_str().unwrap();
    assert!(message.contains("would not compile as before") && message.contains("IF is not for ONCE"), "{message}");
    world.end().await;
}
