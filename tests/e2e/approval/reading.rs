//! An agent's code that reads input: the person is asked through the agent's client.

use consort_tests::agent::text;
use serde_json::json;

use crate::support::Guarded;

const ASKS: &str = "(progn (princ \"Your name? \") (read-line))";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_is_asked_for_through_the_agents_client() {
    let guarded = Guarded::new().await;
    let mut agent = guarded.asking_agent("agent").await;
    let allow = json!({"action": "accept", "content": {"decision": "allow-session"}});
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": ASKS})).await;
    let approval = agent.wait_for("elicitation/create").await;
    agent.reply(&approval, allow).await;

    let question = agent.wait_for("elicitation/create").await;
    let message = question["params"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("reads a line: Your name?"), "{question}");
    assert_eq!(question["params"]["requestedSchema"]["properties"]["text"]["type"], "string", "{question}");
    agent.reply(&question, json!({"action": "accept", "content": {"text": "Ada"}})).await;
    let result = agent.result(call).await;
    assert!(text(&result).contains("\"Ada\""), "{}", text(&result));

    // Several lines, each a question of its own; a question without an answer is end of file.
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": "(list (read) (y-or-n-p \"Sure?\"))"})).await;
    for line in ["(1 2)", "y"] {
        let question = agent.wait_for("elicitation/create").await;
        agent.reply(&question, json!({"action": "accept", "content": {"text": line}})).await;
    }
    assert!(text(&agent.result(call).await).contains("((1 2) T)"));
    for (answer, why) in [("decline", "declined by the person"), ("cancel", "cancelled by the person")] {
        let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": ASKS})).await;
        let question = agent.wait_for("elicitation/create").await;
        agent.reply(&question, json!({"action": answer})).await;
        let result = agent.result(call).await;
        assert!(text(&result).contains("END-OF-FILE") && text(&result).contains(why), "{}", text(&result));
    }
    guarded.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_forms_it_is_the_end_of_the_file() {
    let guarded = Guarded::new().await;
    let mut editor = guarded.editor().await;
    let mut agent = guarded.agent("agent").await;
    let call = agent.begin("evaluate-lisp", json!({"in": "image", "code": ASKS})).await;
    editor.press("Allow").await;
    let result = agent.result(call).await;
    assert!(
        text(&result).contains("END-OF-FILE") && text(&result).contains("nobody is asked for it here"),
        "{}",
        text(&result)
    );
    guarded.end().await;
}
