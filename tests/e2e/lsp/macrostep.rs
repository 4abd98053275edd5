//! `consort.macrostep` and `consort.macroCalls`: steps of an expansion in a copy that the client
//! keeps.

use consort_tests::lsp::Editor;
use consort_tests::world::World;
use serde_json::{Value, json};

const TEXT: &str = "(in-package :stepping)

(defun f (x)
  \"𝄞\" (unless x
    (list \"𝄞\" (twice x))))
";

fn at(line: u32, character: u32) -> Value {
    json!({"line": line, "character": character})
}

async fn editor(world: &World) -> Editor {
    let mut editor = Editor::start(&world.session, json!({})).await;
    editor.eval("(defpackage :stepping (:use :cl))").await;
    editor.eval("(defmacro stepping::twice (form) `(progn ,form ,form))").await;
    editor
}

/// The text with the answer's expansion in the place of its form, which is in one line or to the
/// end of one.
fn stepped(text: &str, answer: &Value) -> String {
    let offset = |position: &Value| {
        let [line, character] = ["line", "character"].map(|name| position[name].as_u64().unwrap() as usize);
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let units = text[start..].encode_utf16().take(character).collect::<Vec<_>>();
        start + String::from_utf16(&units).unwrap().len()
    };
    let (start, end) = (offset(&answer["range"]["start"]), offset(&answer["range"]["end"]));
    format!("{}{}{}", &text[..start], answer["expansion"].as_str().unwrap(), &text[end..])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_is_expanded_step_by_step() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    // No document of that name is open: the text is the client's.
    let uri = world.uri("a.lisp");
    let ask = |text: &str, position: Value| json!({"uri": uri, "text": text, "position": position});

    // In a call of no macro, the macro call around it is expanded.
    let first = editor.command("consort.macrostep", ask(TEXT, at(4, 8))).await.unwrap();
    assert_eq!(
        (&first["expanded"], &first["package"], &first["error"]),
        (&json!(true), &json!("STEPPING"), &Value::Null)
    );
    assert_eq!(first["range"], json!({"start": at(3, 7), "end": at(4, 26)}), "{first}");
    let text = stepped(TEXT, &first);
    // Indented for its place, which begins in the 7th column.
    assert!(text.contains("\"𝄞\" (if x\n          nil\n          (list \"𝄞\" (twice x))))"), "{text}");

    // The position in the present text, in LSP's units.
    let line = text.lines().position(|line| line.contains("(twice")).unwrap();
    let column =
        u32::try_from(text.lines().nth(line).unwrap().split("(twice").next().unwrap().encode_utf16().count()).unwrap();
    let inner = at(u32::try_from(line).unwrap(), column);
    let second = editor.command("consort.macrostep", ask(&text, inner.clone())).await.unwrap();
    assert_eq!((&second["expansion"], &second["range"]["start"]), (&json!("(progn x x)"), &inner));

    // No form outside `within` is expanded.
    let mut bounded = ask(&text, at(u32::try_from(line).unwrap(), column - 3));
    bounded["within"] = first["range"].clone();
    let nothing = editor.command("consort.macrostep", bounded).await.unwrap();
    assert_eq!(nothing["expanded"], false, "{nothing}");
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn symbols_of_no_package_are_told_apart() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    let uri = world.uri("a.lisp");
    editor.eval("(defmacro stepping::kept (form) (let ((kept (make-symbol \"KEPT\"))) `(let ((,kept ,form)) (list ,kept ,kept))))").await;
    let mut text = "(in-package :stepping) (kept (kept 1))".to_owned();
    for character in [24, 41] {
        let argument = json!({"uri": uri, "text": text, "position": at(0, character)});
        let answer = editor.command("consort.macrostep", argument).await.unwrap();
        text = stepped(&text, &answer).split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let wanted = "(let ((#:kept (let ((#:kept1 1)) (list #:kept1 #:kept1)))) (list #:kept #:kept))";
    assert_eq!(text, format!("(in-package :stepping) {wanted}"));
    world.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_macro_calls_of_a_form_are_found_and_what_has_none_is_told() {
    let world = World::ready(&[]).await;
    let mut editor = editor(&world).await;
    let uri = world.uri("a.lisp");
    let argument = json!({"uri": uri, "text": TEXT, "position": at(4, 8)});
    let calls = editor.command("consort.macroCalls", argument).await.unwrap();
    let starts: Vec<&Value> = calls["calls"].as_array().unwrap().iter().map(|range| &range["start"]).collect();
    assert_eq!(starts, [&at(2, 0), &at(3, 7), &at(4, 15)], "{calls}");

    let failed = json!({"uri": uri, "text": "(loop for)", "position": at(0, 3)});
    let failed = editor.command("consort.macrostep", failed).await.unwrap();
    assert_eq!((&failed["expansion"], &failed["error"]["stage"]), (&Value::Null, &json!("expand")), "{failed}");
    let broken = json!({"uri": uri, "text": "(when a", "position": at(0, 3)});
    let broken = editor.command("consort.macroCalls", broken).await.unwrap();
    assert_eq!((&broken["calls"], &broken["error"]["stage"]), (&json!([]), &json!("read")), "{broken}");
    let empty = json!({"uri": uri, "text": "", "position": at(0, 0)});
    let error = editor.command("consort.macrostep", empty).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("no form at this place"), "{error}");
    world.end().await;
}
