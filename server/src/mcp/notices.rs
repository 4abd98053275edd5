//! Notices for a client's next answer: messages that an editor would show its user at once.

use std::collections::VecDeque;
use std::sync::Mutex;

use rmcp::model::{CallToolResult, ContentBlock};
use tokio::time::{Duration, Instant};

use crate::locked::lock;
use crate::model::error_kind::ErrorKind;
use crate::session::{ClientId, Session};

/// The maximum number of notices kept for a client that sends no calls.
const NOTICES: usize = 4;
/// The time after an answer about the loss of the image in which notices of the same loss may
/// arrive.
const REPEAT_PERIOD: Duration = Duration::from_secs(5);

/// The notices of one client. They report that the image died or that its state was restored, that
/// breakpoints were kept or withdrawn, and that people and other agents made definitions.
#[derive(Default)]
pub(super) struct Notices {
    kept: VecDeque<Notice>,
    /// Set after an answer that reported the loss or absence of the image. Notices of a loss that
    /// arrive before this time only repeat it.
    told_until: Option<Instant>,
    /// The number of the last definition that the client knows.
    definitions: u64,
    /// The definitions by others since the last answer, each as a sentence.
    others: Vec<String>,
    /// Notices about breakpoints that were kept or withdrawn. They are needed even after an answer
    /// about the loss of the image.
    breakpoints: Vec<String>,
}

/// A notice, with true if it reports the loss of the image and nothing else.
#[derive(Debug)]
struct Notice {
    text: String,
    is_loss: bool,
}

impl Notices {
    /// Creates an empty list for a client that knows the definitions up to the number
    /// `definitions`.
    pub(super) fn since(definitions: u64) -> Notices {
        Notices { definitions, ..Notices::default() }
    }

    /// Adds a notice.
    pub(super) fn add(&mut self, text: String) {
        self.keep(Notice { text, is_loss: false });
    }

    /// Adds a notice of the loss of the image, unless it only repeats the last answer.
    pub(super) fn add_loss(&mut self, text: String) {
        if self.told_until.is_none_or(|until| until <= Instant::now()) {
            self.keep(Notice { text, is_loss: true });
        }
    }

    fn keep(&mut self, notice: Notice) {
        if self.kept.len() == NOTICES {
            self.kept.pop_front();
        }
        self.kept.push_back(notice);
    }

    /// Adds notices about breakpoints that were kept or withdrawn.
    pub(super) fn add_breakpoint_notices(&mut self, notices: impl IntoIterator<Item = String>) {
        self.breakpoints.extend(notices);
    }

    /// Adds the definitions that people and other agents made since the last call of `client`.
    pub(super) fn add_definitions_of_others(&mut self, session: &Session, client: ClientId) {
        let last = session.last_definition();
        if last > self.definitions {
            self.others.extend(session.others_since(self.definitions, client));
            self.definitions = last;
        }
    }

    /// Removes and returns the notices to add to an answer. If `told` is true, the answer itself
    /// reports the loss of the image. Notices of the loss, and of definitions by others, are then
    /// left out.
    fn take(&mut self, told: bool) -> Vec<String> {
        if told {
            self.told_until = Some(Instant::now() + REPEAT_PERIOD);
            self.kept.retain(|notice| !notice.is_loss);
            self.others.clear();
        }
        let kept = self.kept.drain(..).map(|notice| notice.text);
        self.breakpoints.drain(..).chain(kept).chain(self.others.drain(..)).collect()
    }
}

/// Adds the notices since this client's last call to an answer.
pub(super) fn with_notices(mut result: CallToolResult, notices: &Mutex<Notices>) -> CallToolResult {
    let text =
        result.content.first().and_then(|block| block.as_text()).map(|text| text.text.clone()).unwrap_or_default();
    let facts = result.structured_content.as_mut().and_then(|facts| facts.as_object_mut());
    // The errors of hot reload have their kind in `data`, in upper case.
    let kind = facts
        .as_ref()
        .and_then(|facts| facts.get("error"))
        .and_then(|error| error["data"]["type"].as_str().or(error["type"].as_str()))
        .map(ErrorKind::from);
    let told = kind.is_some_and(|kind| [ErrorKind::LOST, ErrorKind::UNAVAILABLE].contains(&kind));
    let notices = lock(notices).take(told);
    if notices.is_empty() {
        return result;
    }
    let notes: Vec<String> =
        notices.iter().map(|notice| format!("\n\n; Note: {}", notice.replace('\n', "\n; "))).collect();
    result.content = vec![ContentBlock::text(text + &notes.concat())];
    if let Some(facts) = facts {
        let mut all = facts.remove("notices").and_then(|told| told.as_array().cloned()).unwrap_or_default();
        all.extend(notices.into_iter().map(serde_json::Value::from));
        facts.insert("notices".into(), all.into());
    }
    result
}

#[cfg(test)]
mod tests;
