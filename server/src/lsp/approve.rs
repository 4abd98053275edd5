//! Approval requests of agents that the user of this editor sees. They are shown as a message with
//! three buttons, or by `consort/approve` if the editor supports it.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::AbortHandle;

use super::ext;
use super::notifier::Notifier;
use crate::session::Level;
use crate::session::approval::{self, Answer, ApprovalRequest};
use crate::shown;

/// The buttons: the title of each decision.
const ACTIONS: [(&str, Answer); 3] =
    [("Allow", Answer::Allow), ("Allow for this session", Answer::AllowSession), ("Deny", Answer::Deny)];

/// The open requests.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: HashMap<u64, AbortHandle>,
}

impl Questions {
    pub(super) fn ask(
        &mut self,
        notifier: &Notifier,
        id: u64,
        request: std::sync::Arc<ApprovalRequest>,
        deadline: Duration,
    ) {
        let (peer, session, client) = (notifier.peer.clone(), notifier.session.clone(), notifier.client);
        let own_request = notifier.negotiated.approve;
        let task = tokio::spawn(async move {
            let answer = if own_request {
                let answer = peer.request(ext::APPROVE, params(id, &request, deadline)).await;
                answer.map(|answer| Answer::of(answer["decision"].as_str()))
            } else {
                // Type 2 is a warning in the protocol.
                let actions: Vec<Value> = ACTIONS.iter().map(|(title, _)| json!({"title": title})).collect();
                let params = json!({"type": 2, "message": approval::message(&request, deadline), "actions": actions});
                peer.request("window/showMessageRequest", params).await.map(|answer| chosen(answer["title"].as_str()))
            };
            // The session answers for a disconnected editor. `Cannot` would be a wrong answer.
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

    pub(super) fn withdraw(&mut self, notifier: &Notifier, id: u64, what: &str, why: &str) {
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

fn params(id: u64, request: &ApprovalRequest, deadline: Duration) -> Value {
    json!({
        "id": id,
        "client": shown::notification(&shown::line(request.agent())),
        "tool": request.tool,
        "class": request.class,
        "what": shown::notification(&shown::line(&request.subject.what)),
        "file": request.file(),
        "code": approval::complete_code(request),
        "arguments": request.arguments,
        "message": approval::message(request, deadline),
        "deadlineSeconds": deadline.as_secs_f64(),
    })
}

fn chosen(title: Option<&str>) -> Answer {
    ACTIONS.iter().find(|(name, _)| Some(*name) == title).map_or(Answer::Dismissed, |(_, answer)| *answer)
}
