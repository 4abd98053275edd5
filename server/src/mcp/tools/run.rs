//! One call of a tool: its arguments, the approval that it needs, its work and its answer.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, InputRequiredResult, JsonObject};
use serde_json::Value;

use super::reply::FromFailure;
use super::{BeforeApproval, Call, CodeContext, Failure, Reply, Tool};
use crate::mcp::answer;
use crate::mcp::arguments;
use crate::mcp::consent::Consent;
use crate::model::error_kind::ErrorKind;
use crate::session::approval::{Class, Subject};
use crate::session::log::{self, LogContext, Status};

/// The end of a call without its work.
enum Ended<T> {
    /// The answer.
    Reply(Reply<T>),
    /// The client must ask the user and repeat the call.
    AskFirst(Box<InputRequiredResult>),
}

impl<T: FromFailure> From<Failure> for Ended<T> {
    fn from(failure: Failure) -> Ended<T> {
        Ended::Reply(failure.into())
    }
}

/// Calls a tool: checks its arguments against the schema `accepts`, asks for approval where the
/// tool needs it, and shortens the answer to the tool's limits.
pub(super) async fn tool<T: Tool>(accepts: &JsonObject, call: Call, arguments: JsonObject) -> CallToolResponse {
    let kept = call.partial_answers.clone();
    let Reply { text, facts, failed, full } = match reply::<T>(accepts, call, arguments).await {
        Ok(reply) | Err(Ended::Reply(reply)) => reply,
        Err(Ended::AskFirst(question)) => return CallToolResponse::InputRequired(*question),
    };
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

async fn reply<T: Tool>(
    accepts: &JsonObject,
    mut call: Call,
    mut arguments: JsonObject,
) -> Result<Reply<T::Output>, Ended<T::Output>> {
    let aliases = rename_aliases::<T>(&mut arguments);
    let given = Value::Object(arguments.clone());
    let input = parse::<T>(accepts, arguments, &aliases)?;
    // The turn is held from before the file is read until it is written.
    let _turn = match T::edits(&input) {
        Some(path) => Some(call.session.edit_turn(path).await),
        None => None,
    };
    let Some((class, subject)) = T::required_approval_async(&call, &input).await? else {
        return Ok(T::call(call, input).await);
    };
    let context = LogContext {
        tool: T::NAME.into(),
        code: subject.code.clone(),
        package: given["package"].as_str().map(str::to_owned),
        file: subject.file.clone(),
        about: ["system", "function", "symbol"].into_iter().find_map(|key| given[key].as_str().map(str::to_owned)),
    };
    approve::<T>(&mut call, &input, class, subject, given).await?;
    Ok(logged::<T>(context, call, input).await)
}

/// Renames arguments that the call gives under other accepted names ([`Tool::ALIASES`]). Returns
/// pairs of the name in the call and the tool's own name.
fn rename_aliases<T: Tool>(arguments: &mut JsonObject) -> Vec<(&'static str, &'static str)> {
    let mut renamed = Vec::new();
    for (other, name) in T::ALIASES {
        if !arguments.contains_key(*name)
            && let Some(value) = arguments.remove(*other)
        {
            arguments.insert((*name).to_owned(), value);
            renamed.push((*other, *name));
        }
    }
    renamed
}

fn parse<T: Tool>(accepts: &JsonObject, arguments: JsonObject, aliases: &[(&str, &str)]) -> Result<T::Input, Failure> {
    if let Some(failure) = T::argument_error(&arguments) {
        return Err(failure);
    }
    arguments::parse(T::NAME, accepts, arguments).map_err(|message| {
        // The message uses the argument names of the call.
        let message = aliases
            .iter()
            .fold(message, |message, (other, name)| message.replace(&format!("`{name}` "), &format!("`{other}` ")));
        Failure { kind: ErrorKind::BAD_ARGUMENTS, message }
    })
}

/// Asks for the approval that a call needs, and gives the call its permit.
///
/// # Errors
/// The end of a call that is refused, whose outcome is known before anybody is asked, or whose
/// client must ask.
async fn approve<T: Tool>(
    call: &mut Call,
    input: &T::Input,
    class: Class,
    mut subject: Subject,
    given: Value,
) -> Result<(), Ended<T::Output>> {
    let refused = |message| Failure { kind: ErrorKind::REFUSED, message };
    let mut context: Option<CodeContext> = None;
    if call.session.would_ask(call.client, class, T::NAME).await {
        subject.tried = match T::before_approval(call, input).await {
            BeforeApproval::Answer(reply) => return Err(Ended::Reply(reply)),
            BeforeApproval::Tried(tried) => Some(tried),
            BeforeApproval::Nothing => None,
        };
        context = T::code_context(input);
        if let Some(context) = context.as_ref().filter(|_| subject.code.is_some()) {
            let (by, package) = context.place(call.client);
            subject.reading = call.session.reading(by, package).await;
        }
    }
    match call.asker.ask(&call.session, call.client, T::NAME, (class, subject), given).await {
        Consent::Given(permit) => call.permit = permit,
        Consent::Refused(message) => return Err(refused(message).into()),
        Consent::AskFirst(question) => return Err(Ended::AskFirst(question)),
    }
    let read = call.check_read_as_approved(context.as_ref()).await;
    read.map_err(|why| refused(format!("Refused: {why}.")).into())
}

/// Calls a tool that changes something, and adds the call to the session's log.
async fn logged<T: Tool>(context: LogContext, call: Call, input: T::Input) -> Reply<T::Output> {
    let running = call.session.log().begin(call.client, context.clone());
    let reply = log::within(context, T::call(call, input)).await;
    running.end(if reply.failed { Status::Error } else { Status::Ok }, &reply.text);
    reply
}
