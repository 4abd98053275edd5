//! Answers to editors and agents about names: by the image, and by the texts alone.

#![allow(clippy::unwrap_used)]

mod agreement;
mod lookups;
mod texts_alone;

use consort_tests::lsp::Editor;
use serde_json::{Value, json};

/// Returns the text without its `‸`, and the position of that, as an LSP position (the text is
/// ASCII).
fn caret(source: &str) -> (String, Value) {
    let at = source.find('‸').expect("a caret");
    let before = &source[..at];
    let line = before.matches('\n').count();
    let character = before.len() - before.rfind('\n').map_or(0, |newline| newline + 1);
    (source.replace('‸', ""), json!({"line": line, "character": character}))
}

/// Opens a text with a caret in it and sends a request for that position.
async fn ask(editor: &mut Editor, uri: &str, source: &str, method: &str) -> Value {
    let (text, position) = caret(source);
    editor.open(uri, &text).await;
    let mut params = json!({"textDocument": {"uri": uri}, "position": position});
    params["context"] = match method {
        "textDocument/references" => json!({"includeDeclaration": true}),
        _ => json!({"triggerKind": 1, "isRetrigger": false}),
    };
    let answer = editor.request(method, params).await.unwrap();
    editor.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}})).await;
    answer
}

/// Waits until the host's index of names has a name, by which `source` is completed.
async fn name_is_known(editor: &mut Editor, uri: &str, source: &str, name: &str) {
    let due = std::time::Instant::now() + consort_tests::patience::PATIENCE;
    loop {
        let answer = ask(editor, uri, source, "textDocument/completion").await;
        if labels(&answer).iter().any(|label| label == name) {
            return;
        }
        assert!(std::time::Instant::now() < due, "{name} does not complete {source}: {answer}");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

/// Locations as `name:line:character`, lines and characters from 0.
fn places(locations: &Value) -> Vec<String> {
    let one = |location: &Value| {
        let uri = location["uri"].as_str().unwrap_or_default();
        let start = &location["range"]["start"];
        format!("{}:{}:{}", uri.rsplit('/').next().unwrap_or_default(), start["line"], start["character"])
    };
    match locations {
        Value::Array(all) => all.iter().map(one).collect(),
        Value::Null => Vec::new(),
        single => vec![one(single)],
    }
}

fn labels(completions: &Value) -> Vec<String> {
    let items = completions["items"].as_array().cloned().unwrap_or_default();
    items.iter().map(|item| item["label"].as_str().unwrap().to_owned()).collect()
}
