//! Lines of standard input that an agent's code reads. The person is asked for a line through the
//! agent's client, by a form with one text field. The code of clients without such forms reads the
//! end of the file.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InitializeRequestParams,
};
use rmcp::service::{Peer, ServiceError};
use serde_json::json;
use tokio::task::AbortHandle;

use super::elicitation::elicit;
use crate::locked::lock;
use crate::model::input::{InputAnswer, InputWanted};
use crate::session::{ClientId, Session};
use crate::shown;

/// The questions of one client.
#[derive(Debug, Default)]
pub(crate) struct InputForms {
    peer: OnceLock<Peer<RoleServer>>,
    open: Mutex<HashMap<u64, AbortHandle>>,
}

/// Returns true if a client with these capabilities can show forms. An empty capability means forms
/// (MCP 2025-11-25, "Elicitation: Capabilities").
pub(crate) fn shows_forms(capabilities: &ClientCapabilities) -> bool {
    let elicitation = capabilities.elicitation.as_ref();
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

impl InputForms {
    /// Handles a client's `initialize`. From now on the client's code may ask, if the client shows
    /// forms.
    pub(crate) fn greet(
        &self,
        request: &InitializeRequestParams,
        peer: &Peer<RoleServer>,
        (session, client): (&Session, ClientId),
    ) {
        if shows_forms(&request.capabilities) && self.peer.set(peer.clone()).is_ok() {
            session.note_takes_input(client);
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, AbortHandle>> {
        lock(&self.open)
    }

    /// Asks the client for a line, and sends the answer to the image.
    pub(crate) fn ask(self: &Arc<Self>, session: &Session, wanted: &InputWanted) {
        let question = wanted.question;
        let Some(peer) = self.peer.get().cloned() else {
            session.answer_input(question, &InputAnswer::End("nobody is asked for it here".into()));
            return;
        };
        let (session, form, lines) = (session.clone(), form(wanted), self.clone());
        let mut open = self.open();
        let task = tokio::spawn(async move {
            // The form has no time limit, since the deadline of code that waits for input does not
            // pass.
            let answer = match elicit(&peer, form, None).await {
                Ok(result) => answer_of_form(&result),
                Err(ServiceError::TransportClosed | ServiceError::TransportSend(_)) => {
                    InputAnswer::End("the agent's client has left".into())
                }
                Err(error) => {
                    InputAnswer::End(format!("the agent's client could not ask: {}", shown::line(&error.to_string())))
                }
            };
            lines.open().remove(&question);
            session.answer_input(question, &answer);
        });
        open.insert(question, task.abort_handle());
    }

    /// Withdraws a question, or all of them. The client is notified. A later answer is ignored.
    pub(crate) fn withdraw(&self, question: Option<u64>) {
        let mut open = self.open();
        let over: Vec<AbortHandle> = match question {
            Some(question) => open.remove(&question).into_iter().collect(),
            None => open.drain().map(|(_, task)| task).collect(),
        };
        over.iter().for_each(AbortHandle::abort);
    }
}

/// Returns the question as a form with one text field.
fn form(wanted: &InputWanted) -> ElicitRequestParams {
    let prompt = shown::line(&wanted.prompt);
    let asks = if prompt.trim().is_empty() { String::new() } else { format!(": {prompt}") };
    let message = format!("The Lisp code that the agent runs ({}) reads a line{asks}", shown::line(&wanted.what));
    let schema = json!({
        "type": "object",
        "properties": {"text": {"type": "string", "title": "Line"}},
        "required": ["text"],
    });
    let requested_schema = serde_json::from_value(schema).unwrap_or_else(|error| {
        tracing::error!(%error, "the form of a question does not fit rmcp's schema type");
        ElicitationSchema::new(Default::default())
    });
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// Returns the answer for the form's result. Only a text that was sent is a line.
fn answer_of_form(result: &ElicitResult) -> InputAnswer {
    let text = result.content.as_ref().and_then(|content| content["text"].as_str());
    match (&result.action, text) {
        (ElicitationAction::Accept, Some(text)) => InputAnswer::Line(text.trim_end_matches(['\n', '\r']).to_owned()),
        (ElicitationAction::Accept, None) => InputAnswer::End("the agent's client sent no text".into()),
        (ElicitationAction::Decline, _) => InputAnswer::End("declined by the person".into()),
        _ => InputAnswer::End("cancelled by the person".into()),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_that_was_accepted_is_a_line() {
        let end = |why: &str| InputAnswer::End(why.into());
        for (result, expected) in [
            (json!({"action": "accept", "content": {"text": "Ada"}}), InputAnswer::Line("Ada".into())),
            (json!({"action": "accept", "content": {"text": ""}}), InputAnswer::Line(String::new())),
            (json!({"action": "accept", "content": {"text": "Ada\n"}}), InputAnswer::Line("Ada".into())),
            (json!({"action": "accept", "content": {"text": 3}}), end("the agent's client sent no text")),
            (json!({"action": "accept"}), end("the agent's client sent no text")),
            (json!({"action": "decline", "content": {"text": "Ada"}}), end("declined by the person")),
            (json!({"action": "cancel"}), end("cancelled by the person")),
        ] {
            assert_eq!(answer_of_form(&serde_json::from_value(result.clone()).unwrap()), expected, "{result}");
        }
    }

    #[test]
    fn the_prompt_is_data() {
        let wanted = InputWanted { question: 1, what: "evaluate-lisp".into(), prompt: "Name?\u{1b}[2J\u{202e}".into() };
        let ElicitRequestParams::FormElicitationParams { message, .. } = form(&wanted) else { panic!("a form") };
        assert!(
            message.starts_with("The Lisp code that the agent runs (evaluate-lisp) reads a line: Name?"),
            "{message}"
        );
        assert!(!message.contains(['\u{1b}', '\u{202e}']), "{message}");
    }

    #[test]
    fn forms_are_shown_by_who_says_so() {
        for (capabilities, expected) in [
            (json!({}), false),
            (json!({"elicitation": {}}), true),
            (json!({"elicitation": {"form": {}}}), true),
            (json!({"elicitation": {"url": {}}}), false),
            (json!({"elicitation": {"url": {}, "form": {}}}), true),
        ] {
            let capabilities: ClientCapabilities = serde_json::from_value(capabilities).unwrap();
            assert_eq!(shows_forms(&capabilities), expected);
        }
    }
}
