//! One call of a tool: its arguments, the approval that it needs, its work and its answer.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, JsonObject};
use serde_json::Value;

use super::{BeforeApproval, Call, Failure, Reply, Tool};
use crate::mcp::answer;
use crate::mcp::arguments;
use crate::mcp::consent::Consent;
use crate::model::error_kind::ErrorKind;
use crate::session::approval::Subject;
use crate::session::log::{self, LogContext, Status};

/// Calls a tool: checks its arguments against the schema `accepts`, asks for approval where the
/// tool needs it, and shortens the answer to the tool's limits.
pub(super) async fn tool<T: Tool>(accepts: &JsonObject, mut call: Call, mut arguments: JsonObject) -> CallToolResponse {
    let mut other_names = Vec::new();
    for (other, name) in T::ALIASES {
        if !arguments.contains_key(*name)
            && let Some(value) = arguments.remove(*other)
        {
            arguments.insert((*name).to_owned(), value);
            other_names.push((*other, *name));
        }
    }
    let given = Value::Object(arguments.clone());
    let kept = call.partial_answers.clone();
    let input = match T::argument_error(&arguments) {
        Some(failure) => Err(failure),
        None => arguments::parse(T::NAME, accepts, arguments).map_err(|message| {
            // The message uses the argument names of the call.
            let message = other_names
                .iter()
                .fold(message, |message, (other, name)| message.replace(&format!("`{name}` "), &format!("`{other}` ")));
            Failure { kind: ErrorKind::BAD_ARGUMENTS, message }
        }),
    };
    let refused = |message| Reply::from(Failure { kind: ErrorKind::REFUSED, message });
    // From before the file is read until it is written.
    let _turn = match input.as_ref().ok().and_then(T::edits) {
        Some(path) => Some(call.session.edit_turn(path).await),
        None => None,
    };
    let reply = match input {
        Err(failure) => failure.into(),
        Ok(input) => match T::required_approval_async(&call, &input).await {
            Err(failure) => failure.into(),
            Ok(asked) => {
                let doing = asked.as_ref().map(|(_, subject)| LogContext {
                    tool: T::NAME.into(),
                    code: subject.code.clone(),
                    package: given["package"].as_str().map(str::to_owned),
                    file: subject.file.clone(),
                    about: ["system", "function", "symbol"]
                        .into_iter()
                        .find_map(|key| given[key].as_str().map(str::to_owned)),
                });
                let must_ask = match &asked {
                    Some((class, _)) => call.session.would_ask(call.client, *class, T::NAME).await,
                    None => false,
                };
                let before_approval =
                    if must_ask { T::before_approval(&call, &input).await } else { BeforeApproval::Nothing };
                let (before_approval, tried) = match before_approval {
                    BeforeApproval::Answer(reply) => (Some(reply), None),
                    BeforeApproval::Tried(tried) => (None, Some(tried)),
                    BeforeApproval::Nothing => (None, None),
                };
                let asked = asked.map(|(class, subject)| (class, Subject { tried, ..subject }));
                let context = if must_ask { T::code_context(&input) } else { None };
                let asked = match (asked, &context) {
                    (Some((class, subject)), Some(context)) if subject.code.is_some() => {
                        let (by, package) = context.place(call.client);
                        let reading = call.session.reading(by, package).await;
                        Some((class, Subject { reading, ..subject }))
                    }
                    (asked, _) => asked,
                };
                let consent = match asked {
                    _ if before_approval.is_some() => Consent::Given(None),
                    Some(operation) => call.asker.ask(&call.session, call.client, T::NAME, operation, given).await,
                    None => Consent::Given(None),
                };
                match (consent, before_approval) {
                    (_, Some(reply)) => reply,
                    (Consent::Given(permit), None) => {
                        call.permit = permit;
                        match (call.check_read_as_approved(context.as_ref()).await, doing) {
                            (Err(why), _) => refused(format!("Refused: {why}.")),
                            (Ok(()), Some(doing)) => logged::<T>(doing, call, input).await,
                            (Ok(()), None) => T::call(call, input).await,
                        }
                    }
                    (Consent::Refused(message), None) => refused(message),
                    (Consent::AskFirst(question), None) => return CallToolResponse::InputRequired(*question),
                }
            }
        },
    };
    let Reply { text, facts, failed, full } = reply;
    let facts = serde_json::to_value(&facts).unwrap_or_else(|error| {
        tracing::error!(%error, tool = T::NAME, "a tool's facts could not be written");
        Value::Null
    });
    let (text, facts) = answer::shorten(&text, full, answer::object(facts), T::LIMITS, &kept);
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(facts);
    result.is_error = Some(failed);
    result.into()
}

/// Calls a tool that changes something, and adds the call to the session's log.
async fn logged<T: Tool>(doing: LogContext, call: Call, input: T::Input) -> Reply<T::Output> {
    let running = call.session.log().begin(call.client, doing.clone());
    let reply = log::within(doing, T::call(call, input)).await;
    running.end(if reply.failed { Status::Error } else { Status::Ok }, &reply.text);
    reply
}
