//! The approval check of every tool. No operation that needs a user's approval runs without it. If
//! no editor can ask, the request goes through the agent's client. In protocol revisions with a
//! handshake, this is `elicitation/create`. In 2026-07-28, it is an input-required result, after
//! which the client repeats the call with the answer.

use rmcp::RoleServer;
use rmcp::model::{
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, InputRequest,
    InputRequests, InputRequiredResult, InputResponses, ProtocolVersion,
};
use rmcp::service::{Peer, RequestContext, ServiceError};
use serde_json::{Value, json};

use super::elicitation::elicit;
use super::input::shows_forms;
use crate::session::approval::{Answer, ApprovalRequest, Class, Grant, Question, Subject, Verdict};
use crate::session::{ClientId, Session};

/// The key of the only question in an input-required result.
const QUESTION: &str = "approval";

/// The method of asking the user of a call's client.
#[derive(Debug)]
pub(crate) struct Asker {
    method: AskingMethod,
    /// True if the client has a connection of its own.
    can_remember_approval: bool,
    /// The state and the answer of a repeated call.
    retry: Option<(String, Answer)>,
}

#[derive(Debug)]
enum AskingMethod {
    Elicitation(Peer<RoleServer>),
    InputRequired,
    None,
}

/// The result of the approval check.
#[derive(Debug)]
pub(crate) enum Consent {
    /// The operation is approved, with the grant if approval was needed.
    Given(Option<Grant>),
    /// The operation is refused, with the reason.
    Refused(String),
    /// The client must ask and repeat the call.
    AskFirst(Box<InputRequiredResult>),
}

impl Asker {
    /// Creates the asker for a call. `state` and `responses` come from a repeated call.
    pub(crate) fn new(
        context: &RequestContext<RoleServer>,
        can_remember_approval: bool,
        state: Option<String>,
        responses: Option<InputResponses>,
    ) -> Asker {
        let forms = context.client_capabilities().is_some_and(|capabilities| shows_forms(&capabilities));
        let version = context.protocol_version();
        let retries = version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
        let method = match (forms, retries) {
            (false, _) => AskingMethod::None,
            (true, true) => AskingMethod::InputRequired,
            (true, false) => AskingMethod::Elicitation(context.peer.clone()),
        };
        let retry = state.map(|state| {
            let answer = responses.as_ref().and_then(|responses| responses.get(QUESTION)).cloned();
            let answer = answer.and_then(|answer| serde_json::from_value::<ElicitResult>(answer).ok());
            (state, answer.map_or(Answer::Dismissed, |answer| answer_of_form(&answer)))
        });
        Asker { method, can_remember_approval, retry }
    }

    /// Returns true if the client has a connection of its own.
    pub(super) fn can_remember_approval(&self) -> bool {
        self.can_remember_approval
    }

    /// Returns true if the call was answered with a question before.
    pub(super) fn is_retry(&self) -> bool {
        self.retry.is_some()
    }

    /// Checks that a tool may perform the operation. Dropping the future withdraws the request.
    pub(super) async fn ask(
        &mut self,
        session: &Session,
        client: ClientId,
        tool: &'static str,
        operation: (Class, Subject),
        arguments: Value,
    ) -> Consent {
        let request = ApprovalRequest::new_off_thread(
            session.workspace(),
            client,
            tool,
            operation,
            arguments,
            self.can_remember_approval,
        )
        .await;
        let verdict = match session.permit(request, self.retry.take()).await {
            Verdict::ThroughAgent(question) => match self.through_agent(session, question).await {
                Ok(verdict) => verdict,
                Err(asked) => return asked,
            },
            verdict => verdict,
        };
        match verdict {
            // A file may have been replaced while the user was reading.
            Verdict::Allowed(permit) => match session.recheck(&permit).await {
                Ok(_) => Consent::Given(Some(permit)),
                Err(why) => Consent::Refused(format!("Refused: {why}.")),
            },
            Verdict::Refused(why) => Consent::Refused(why),
            // A request is never sent twice.
            Verdict::ThroughAgent(_) => Consent::Refused("Refused: nobody can be asked.".into()),
        }
    }

    async fn through_agent(&self, session: &Session, question: Question) -> Result<Verdict, Consent> {
        match &self.method {
            AskingMethod::None => Ok(session.settle(question, Answer::Cannot).await),
            AskingMethod::Elicitation(peer) => {
                let asked = elicit(peer, form(&question), Some(question.deadline));
                let answer = match asked.await {
                    Ok(result) => answer_of_form(&result),
                    Err(ServiceError::Timeout { .. }) => Answer::Late,
                    // Dropping the question withdraws the request, together with the call.
                    Err(
                        ServiceError::TransportClosed | ServiceError::TransportSend(_) | ServiceError::Cancelled { .. },
                    ) => {
                        return Err(Consent::Refused("Refused: the agent's client went away.".into()));
                    }
                    Err(error) => {
                        tracing::info!(%error, "the agent's client could not ask");
                        Answer::Cannot
                    }
                };
                Ok(session.settle(question, answer).await)
            }
            AskingMethod::InputRequired => {
                let request = InputRequest::Elicitation(ElicitRequest::new(form(&question)));
                match session.await_retry(question) {
                    Ok(state) => {
                        let requests = InputRequests::from([(QUESTION.to_owned(), request)]);
                        Err(Consent::AskFirst(Box::new(InputRequiredResult::new(Some(requests), Some(state)))))
                    }
                    Err(why) => Err(Consent::Refused(why)),
                }
            }
        }
    }
}

/// Returns the question as a form with one choice.
fn form(question: &Question) -> ElicitRequestParams {
    let schema = json!({
        "type": "object",
        "properties": {"decision": {
            "type": "string",
            "title": "Decision",
            "oneOf": [
                {"const": "allow", "title": "Allow"},
                {"const": "allow-session", "title": "Allow for this session"},
                {"const": "deny", "title": "Deny"},
            ],
        }},
        "required": ["decision"],
    });
    let requested_schema = serde_json::from_value(schema).unwrap_or_else(|error| {
        tracing::error!(%error, "the form of a question does not fit rmcp's schema type");
        ElicitationSchema::new(Default::default())
    });
    ElicitRequestParams::FormElicitationParams { meta: None, message: question.message.clone(), requested_schema }
}

/// Returns the answer for the form's result. Only an explicit choice allows anything.
fn answer_of_form(result: &ElicitResult) -> Answer {
    match result.action {
        ElicitationAction::Accept => {
            Answer::of(result.content.as_ref().and_then(|content| content["decision"].as_str()))
        }
        ElicitationAction::Decline => Answer::Deny,
        _ => Answer::Dismissed,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_a_choice_allows() {
        for (result, expected) in [
            (json!({"action": "accept", "content": {"decision": "allow"}}), Answer::Allow),
            (json!({"action": "accept", "content": {"decision": "allow-session"}}), Answer::AllowSession),
            (json!({"action": "accept", "content": {"decision": "deny"}}), Answer::Deny),
            (json!({"action": "accept", "content": {"decision": "Allow"}}), Answer::Dismissed),
            (json!({"action": "accept", "content": {"decision": true}}), Answer::Dismissed),
            (json!({"action": "accept", "content": {}}), Answer::Dismissed),
            (json!({"action": "accept"}), Answer::Dismissed),
            (json!({"action": "decline", "content": {"decision": "allow"}}), Answer::Deny),
            (json!({"action": "cancel"}), Answer::Dismissed),
        ] {
            assert_eq!(answer_of_form(&serde_json::from_value(result.clone()).unwrap()), expected, "{result}");
        }
    }
}
