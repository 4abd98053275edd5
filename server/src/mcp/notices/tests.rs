//! Tests of the notices in answers.

#![allow(clippy::unwrap_used)]

use super::*;
use serde_json::{Value, json};

fn answer(facts: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text("=> 3")]);
    result.structured_content = Some(facts);
    result
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

#[test]
fn an_answer_tells_once_what_happened_since_the_last() {
    let notices = Mutex::new(Notices::default());
    assert_eq!(text(&with_notices(answer(json!({"status": "ok"})), &notices)), "=> 3");
    lock(&notices).add("A new image runs.\nLoaded again: x.".into());
    let told = with_notices(answer(json!({"status": "ok"})), &notices);
    assert_eq!(text(&told), "=> 3\n\n; Note: A new image runs.\n; Loaded again: x.");
    assert_eq!(told.structured_content.unwrap()["notices"][0], "A new image runs.\nLoaded again: x.");
    assert_eq!(text(&with_notices(answer(json!({"status": "ok"})), &notices)), "=> 3");
}

#[test]
fn a_call_that_was_told_of_the_loss_itself_is_not_told_again() {
    for error in [
        json!({"type": "image-lost"}),
        json!({"type": "image-unavailable"}),
        json!({"code": -32000, "data": {"type": "IMAGE_LOST"}}),
    ] {
        let facts = json!({"success": false, "error": error});
        let notices = Mutex::new(Notices::default());
        lock(&notices).add_loss("before".into());
        assert_eq!(text(&with_notices(answer(facts.clone()), &notices)), "=> 3");
        lock(&notices).add_loss("after".into());
        assert_eq!(text(&with_notices(answer(json!({"status": "ok"})), &notices)), "=> 3");
        // Other messages are no repetition.
        lock(&notices).add("An error ended a thread.".into());
        let told = with_notices(answer(json!({"status": "ok"})), &notices);
        assert_eq!(text(&told), "=> 3\n\n; Note: An error ended a thread.");
        lock(&notices).add("The settings have a fault.".into());
        let told = with_notices(answer(facts), &notices);
        assert_eq!(text(&told), "=> 3\n\n; Note: The settings have a fault.");
    }
}

#[test]
fn a_client_that_asks_for_nothing_keeps_the_last_notices() {
    let mut notices = Notices::default();
    (0..100).for_each(|number| notices.add(number.to_string()));
    assert_eq!(notices.take(false), ["96", "97", "98", "99"]);
}
