//! Approval requests of agents, shown to the user of this editor: a message with three buttons,
//! or `consort/approve` if the editor declares it.

use std::collections::HashMap;

use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::ext;
use super::feedback::Notifier;
use crate::session::Level;
use crate::session::approval::{Answer, ApprovalPrompt, Decision};
use crate::shown;

/// The buttons: a title for each decision.
const ACTIONS: [(&str, Decision); 3] =
    [("Allow", Decision::Allow), ("Allow for this session", Decision::AllowSession), ("Deny", Decision::Deny)];

/// The requests that are open.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: HashMap<u64, AbortHandle>,
}

impl Questions {
    pub(super) fn ask(&mut self, notifier: &Notifier, asked: ApprovalPrompt) {
        let (peer, session, client) = (notifier.peer.clone(), notifier.session.clone(), notifier.client);
        let id = asked.id;
        let rich = notifier.negotiated.approve;
        let task = tokio::spawn(async move {
            let answer = if rich {
                let answer = peer.request(ext::APPROVE, params(&asked)).await;
                answer.map(|answer| decision(answer["decision"].as_str()))
            } else {
                // Type 2 of the protocol: a warning.
                let actions: Vec<Value> = ACTIONS.iter().map(|(title, _)| json!({"title": title})).collect();
                let params = json!({"type": 2, "message": asked.message, "actions": actions});
                peer.request("window/showMessageRequest", params).await.map(|answer| chosen(answer["title"].as_str()))
            };
            // The session answers for a disconnected editor; `Cannot` would be wrong.
            if answer.is_err() && peer.is_closed() {
                return;
            }
            let answer = answer.unwrap_or_else(|error| {
                tracing::info!("the editor could not ask: {error}");
                Answer::Cannot
            });
            session.answer(client, id, answer);
        });
        self.open.retain(|_, task| !task.is_finished());
        self.open.insert(id, task.abort_handle());
    }

    pub(super) fn over(&mut self, notifier: &Notifier, id: u64, what: &str, why: &str) {
        // Dropping the request cancels it at the editor.
        if let Some(task) = self.open.remove(&id) {
            task.abort();
        }
        if notifier.negotiated.approve {
            notifier.peer.notify(ext::APPROVAL_OVER, json!({"id": id, "reason": why}));
        } else {
            notifier.say(
                "window/showMessage",
                Level::Info,
                &format!("No answer is needed any more about {what}: {why}."),
            );
        }
    }
}

fn params(asked: &ApprovalPrompt) -> Value {
    json!({
        "id": asked.id,
        "client": shown::notification(&shown::line(&asked.client)),
        "tool": asked.tool,
        "class": asked.class,
        "what": shown::notification(&shown::line(&asked.what)),
        "file": asked.file,
        "code": asked.code,
        "arguments": asked.arguments,
        "message": asked.message,
        "deadlineSeconds": asked.deadline.as_secs_f64(),
    })
}

fn decision(name: Option<&str>) -> Answer {
    name.and_then(Decision::of).map_or(Answer::Dismissed, Answer::Decided)
}

fn chosen(title: Option<&str>) -> Answer {
    let chosen = ACTIONS.iter().find(|(name, _)| Some(*name) == title);
    chosen.map_or(Answer::Dismissed, |(_, decision)| Answer::Decided(*decision))
}
