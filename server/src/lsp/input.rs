//! Lines of standard input that running code asks the user of this editor for: `consort/input`.

use std::collections::HashMap;

use serde_json::json;
use tokio::task::AbortHandle;

use super::ext;
use super::notifier::Notifier;
use crate::model::input::{InputAnswer, InputWanted};
use crate::shown;

/// The requests that are open.
#[derive(Debug, Default)]
pub(super) struct Lines {
    open: HashMap<u64, AbortHandle>,
}

impl Lines {
    pub(super) fn ask(&mut self, notifier: &Notifier, wanted: InputWanted) {
        let (peer, session) = (notifier.peer.clone(), notifier.session.clone());
        let question = wanted.question;
        let task = tokio::spawn(async move {
            let params = json!({
                "id": wanted.question,
                "command": shown::notification(&shown::line(&wanted.what)),
                "prompt": shown::notification(&wanted.prompt.replace(['\n', '\r'], " ")),
            });
            let answer = match peer.request(ext::INPUT, params).await {
                Ok(answer) => match answer["text"].as_str() {
                    Some(text) => InputAnswer::Line(text.to_owned()),
                    None => InputAnswer::End("cancelled by the person".into()),
                },
                Err(_) if peer.is_closed() => InputAnswer::End("its editor has left".into()),
                Err(error) => InputAnswer::End(format!("the editor could not ask: {}", error.message)),
            };
            session.answer_input(question, &answer);
        });
        self.open.retain(|_, task| !task.is_finished());
        self.open.insert(question, task.abort_handle());
    }

    /// Withdraws a question, or all of them: dropping the request cancels it at the editor.
    pub(super) fn over(&mut self, notifier: &Notifier, question: Option<u64>) {
        let over: Vec<(u64, AbortHandle)> = match question {
            Some(question) => self.open.remove_entry(&question).into_iter().collect(),
            None => self.open.drain().collect(),
        };
        for (id, task) in over {
            if !task.is_finished() {
                task.abort();
                notifier.peer.notify(ext::INPUT_OVER, json!({"id": id}));
            }
        }
    }
}
