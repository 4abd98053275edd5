//! Lines of standard input for which running code asks the user of this editor: `consort/input`.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tokio::task::AbortHandle;

use super::ext;
use super::notifier::Notifier;
use crate::model::input::{InputAnswer, InputWanted};
use crate::shown;

/// The requests that are open.
#[derive(Debug, Default)]
pub(super) struct Lines {
    open: HashMap<u64, Open>,
}

/// A request to the editor.
#[derive(Debug)]
struct Open {
    task: AbortHandle,
    /// Set before the image gets the editor's answer. The image then ends the question, sometimes
    /// before the task has ended.
    answered: Arc<AtomicBool>,
}

impl Lines {
    pub(super) fn ask(&mut self, notifier: &Notifier, wanted: InputWanted) {
        let (peer, session) = (notifier.peer.clone(), notifier.session.clone());
        let question = wanted.question;
        let answered = Arc::new(AtomicBool::new(false));
        let is_answered = answered.clone();
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
            is_answered.store(true, Ordering::SeqCst);
            session.answer_input(question, &answer);
        });
        self.open.retain(|_, open| !open.task.is_finished());
        self.open.insert(question, Open { task: task.abort_handle(), answered });
    }

    /// Withdraws a question, or all of them. Dropping the request cancels it at the editor.
    pub(super) fn withdraw(&mut self, notifier: &Notifier, question: Option<u64>) {
        let over: Vec<(u64, Open)> = match question {
            Some(question) => self.open.remove_entry(&question).into_iter().collect(),
            None => self.open.drain().collect(),
        };
        for (id, Open { task, answered }) in over {
            if !answered.load(Ordering::SeqCst) {
                task.abort();
                notifier.peer.notify(ext::INPUT_OVER, json!({"id": id}));
            }
        }
    }
}
