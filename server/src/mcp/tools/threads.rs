//! `threads`: the states of the image's threads, the backtrace of a thread, and the end of a
//! thread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::{Call, Failure, Hints, Reply, Tool};
use crate::ide::threads;
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageState;
use crate::session::approval::{Class, Subject};

/// The tool `threads`.
pub(crate) struct Threads;

/// The action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Action {
    #[default]
    List,
    Stack,
    End,
}

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Default: list
    #[serde(default)]
    action: Option<Action>,
    /// Number from list
    #[serde(default)]
    number: Option<u64>,
}

/// A call with its arguments checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParsedCall {
    List,
    Stack(u64),
    End(u64),
}

impl Input {
    fn parse(&self) -> Result<ParsedCall, Failure> {
        match (self.action.unwrap_or_default(), self.number) {
            (Action::List, _) => Ok(ParsedCall::List),
            (Action::Stack, Some(number)) => Ok(ParsedCall::Stack(number)),
            (Action::End, Some(number)) => Ok(ParsedCall::End(number)),
            (_, None) => {
                let message = "Bad arguments for threads: `number` is missing: it must be one that list gives.".into();
                Err(Failure { kind: ErrorKind::BAD_ARGUMENTS, message })
            }
        }
    }
}

impl Tool for Threads {
    type Input = Input;
    type Output = Facts;

    const NAME: &'static str = "threads";
    const RUNS_CODE: bool = false;
    const DESCRIPTION: &'static str =
        "The image's threads: list (state, lock waited for, its holder), stack of one, end one.";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: false };

    async fn required_approval_async(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        match input.parse()? {
            ParsedCall::End(number) => {
                let what = described(call, number).await?;
                Ok(Some((Class::Eval, Subject { what, ..Subject::default() })))
            }
            ParsedCall::List | ParsedCall::Stack(_) => Ok(None),
        }
    }

    async fn call(call: Call, input: Input) -> Reply<Facts> {
        let failed = |error| Failure::of(error, None);
        let done = match input.parse() {
            Ok(ParsedCall::List) => threads::list(&call.session).await.map(reply).map_err(failed),
            Ok(ParsedCall::Stack(number)) => {
                let context = call.session.context(call.client).await;
                threads::stack(&context, number, call.session.workspace()).await.map(reply).map_err(failed)
            }
            Ok(ParsedCall::End(number)) => end(&call, number).await,
            Err(failure) => Err(failure),
        };
        done.unwrap_or_else(Reply::from)
    }
}

fn reply((text, facts): (String, impl Serialize)) -> Reply<Facts> {
    Reply::new(text, Facts::new(facts), false)
}

/// Ends the thread for which approval was requested. While a person read the question, the image
/// may have been restarted, and its threads are then numbered anew.
async fn end(call: &Call, number: u64) -> Result<Reply<Facts>, Failure> {
    if let Some(permit) = &call.permit
        && permit.description() != described(call, number).await?
    {
        let message =
            format!("Thread {number} is no longer the one for which approval was requested; list the threads again.");
        return Err(Failure { kind: ErrorKind::STALE, message });
    }
    let failed = |error| Failure::of(error, None);
    let stopped = call.session.kill_thread(call.client, number).await.map_err(failed)?;
    threads::ended(&call.session, number, &stopped.name).await.map(reply).map_err(failed)
}

/// Describes the end of a thread for the person who is asked.
///
/// # Errors
/// The image does not answer, or has no such thread.
async fn described(call: &Call, number: u64) -> Result<String, Failure> {
    let process = match call.session.image_state() {
        ImageState::Ready { pid, .. } => Some(pid),
        _ => None,
    };
    let words = threads::end_in_words(&call.session, number, process).await;
    words.map_err(|error| Failure::of(error, None))?.ok_or_else(|| {
        let message = format!("There is no thread {number}: `list` gives the numbers.");
        Failure { kind: ErrorKind::NOT_FOUND, message }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_without_a_number_is_refused_before_a_person_is_asked() {
        let parsed = |arguments| serde_json::from_value::<Input>(arguments).unwrap().parse();
        for action in ["end", "stack"] {
            assert_eq!(parsed(json!({"action": action})).unwrap_err().kind, ErrorKind::BAD_ARGUMENTS);
        }
        assert_eq!(parsed(json!({"action": "end", "number": 3})), Ok(ParsedCall::End(3)));
        assert_eq!(parsed(json!({})), Ok(ParsedCall::List));
    }
}
