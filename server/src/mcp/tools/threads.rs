//! `threads`: the states of the image's threads, the backtrace of a thread, and the end of a
//! thread.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::facts::Facts;
use super::{Call, Failure, Hints, Reply, Tool};
use crate::ide::threads;
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageError;
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

impl Tool for Threads {
    type Input = Input;
    type Output = Facts;

    const NAME: &'static str = "threads";
    const RUNS_CODE: bool = false;
    const DESCRIPTION: &'static str =
        "The image's threads: list (state, lock waited for, its holder), stack of one, end one.";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: false };

    fn required_approval(input: &Input) -> Option<(Class, Subject)> {
        let number = input.number.unwrap_or_default();
        let what = format!("end the thread {number} of the Lisp image");
        (input.action == Some(Action::End)).then(|| (Class::Eval, Subject { what, ..Subject::default() }))
    }

    async fn call(call: Call, input: Input) -> Reply<Facts> {
        let done = match (input.action.unwrap_or_default(), input.number) {
            (Action::List, _) => threads::list(&call.session).await.map(reply),
            (Action::Stack, Some(number)) => {
                let context = call.session.context(call.client).await;
                threads::stack(&context, number, call.session.workspace()).await.map(reply)
            }
            (Action::End, Some(number)) => end(&call, number).await,
            (_, None) => {
                let message = "Bad arguments for threads: `number` is missing: it must be one that list gives.".into();
                return Failure { kind: ErrorKind::BAD_ARGUMENTS, message }.into();
            }
        };
        done.unwrap_or_else(|error| Failure::of(error, None).into())
    }
}

fn reply((text, facts): (String, impl Serialize)) -> Reply<Facts> {
    Reply::new(text, Facts::new(facts), false)
}

async fn end(call: &Call, number: u64) -> Result<Reply<Facts>, ImageError> {
    let stopped = call.session.kill_thread(call.client, number).await?;
    threads::ended(&call.session, number, &stopped.name).await.map(reply)
}
