//! `threads`: the states of the image's threads, the backtrace of a thread, and the end of a
//! thread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::{Call, Failure, Hints, Reply, Tool};
use crate::ide::context::Backend as _;
use crate::ide::threads;
use crate::image::api::browse::{ThreadState, ThreadStates};
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageState;
use crate::session::approval::{Class, Subject};
use crate::shown::line;

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
async fn described(call: &Call, number: u64) -> Result<String, Failure> {
    let state = call.session.image_state();
    let states = call.session.query(ThreadStates {}).await.map_err(|error| Failure::of(error, None))?;
    let process = match state {
        ImageState::Ready { pid, .. } => Some(pid),
        _ => None,
    };
    in_words(&states.threads, number, process)
}

/// Describes the end of a thread of an image, which has the given process.
///
/// # Errors
/// The image has no such thread.
fn in_words(threads: &[ThreadState], number: u64, process: Option<u32>) -> Result<String, Failure> {
    let Some(thread) = threads.iter().find(|thread| thread.number == number) else {
        let message = format!("There is no thread {number}: `list` gives the numbers.");
        return Err(Failure { kind: ErrorKind::NOT_FOUND, message });
    };
    let process = process.map_or_else(String::new, |process| format!(" (process {process})"));
    Ok(format!("end the thread {number}, {} ({}), of the Lisp image{process}", line(&thread.name), thread.kind))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_question_names_the_thread_and_its_image() {
        let threads: Vec<ThreadState> = serde_json::from_value(json!([
            {"number": 3, "name": "worker", "kind": "user", "state": "running"},
            {"number": 4, "name": "a\nb", "kind": "user", "state": "running"},
        ]))
        .unwrap();
        let words = |number, process| in_words(&threads, number, process);
        assert_eq!(words(3, Some(7)).unwrap(), "end the thread 3, worker (user), of the Lisp image (process 7)");
        assert_ne!(words(3, Some(7)), words(3, Some(8)), "after a restart");
        assert_eq!(words(4, None).unwrap().lines().count(), 1);
        assert_eq!(words(5, None).unwrap_err().kind, ErrorKind::NOT_FOUND);
    }

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
