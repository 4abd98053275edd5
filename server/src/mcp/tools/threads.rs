//! `threads`: the state of the image's threads, a thread's backtrace, and ending a thread.

use std::fmt::Write as _;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::references;
use crate::image::api::browse::{KillThread, ThreadStack, ThreadState, ThreadStates};
use crate::image::api::symbols::Reference;
use crate::model::image::ImageError;
use crate::session::approval::{Class, Subject};

/// The tool `threads`.
pub(crate) struct Threads;

/// What to do.
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
    /// The thread's, from list
    #[serde(default)]
    number: Option<u64>,
}

/// The threads and the result of the action.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Facts {
    #[serde(flatten)]
    facts: JsonObject,
}

impl Facts {
    fn new(value: Value) -> Facts {
        match value {
            Value::Object(facts) => Facts { facts },
            _ => Facts { facts: JsonObject::new() },
        }
    }
}

impl FromFailure for Facts {
    fn from_failure(failure: Failure) -> Self {
        Facts::new(json!({"error": {"type": failure.kind, "message": failure.message}}))
    }
}

impl Tool for Threads {
    type Input = Input;
    type Output = Facts;

    const NAME: &'static str = "threads";
    const TITLE: &'static str = "Threads";
    const DESCRIPTION: &'static str = "The image's threads: list (state, share of a processor, the lock waited for and who holds it), stack \
of one with file and line, end one.";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: false };

    fn asks(input: &Input) -> Option<(Class, Subject)> {
        let number = input.number.unwrap_or_default();
        let what = format!("end the thread {number} of the Lisp image");
        (input.action == Some(Action::End)).then(|| (Class::Eval, Subject { what, ..Subject::default() }))
    }

    async fn call(call: Call, input: Input) -> Reply<Facts> {
        let done = match (input.action.unwrap_or_default(), input.number) {
            (Action::List, _) => list(&call).await,
            (Action::Stack, Some(number)) => stack(&call, number).await,
            (Action::End, Some(number)) => end(&call, number).await,
            (_, None) => {
                let message = "Bad arguments for threads: `number` is missing: it must be one that list gives.".into();
                return Failure { kind: "bad-arguments".into(), message }.into();
            }
        };
        match done {
            Ok((text, facts)) => Reply::new(text, Facts::new(facts), false),
            Err(error) => Failure::of(error, None).into(),
        }
    }
}

type Done = Result<(String, Value), ImageError>;

async fn list(call: &Call) -> Done {
    let threads = call.session.query(ThreadStates {}).await?.threads;
    Ok((listed(&threads), json!({"threads": threads})))
}

fn listed(threads: &[ThreadState]) -> String {
    let mut text = format!("{} threads", threads.len());
    for thread in threads {
        let _ = write!(text, "\n{}  {} ({}): {}", thread.number, thread.name, thread.kind, thread.state);
        if let Some(share) = thread.processor {
            let _ = write!(text, ", {:.0} % of a processor", share * 100.0);
        }
        if let Some(lock) = &thread.waits_for {
            let _ = write!(text, ": {lock}");
        }
        if let Some(owner) = thread.held_by {
            let name = threads.iter().find(|one| one.number == owner).map_or("?", |one| one.name.as_str());
            let _ = write!(text, ", held by {owner} {name}");
        }
    }
    text
}

async fn stack(call: &Call, number: u64) -> Done {
    let texts = call.session.texts(call.client);
    let stack = call.session.query(ThreadStack { number }).await?;
    let mut texts = texts.await;
    let places: Vec<Reference> = stack
        .frames
        .iter()
        .map(|frame| Reference {
            kind: String::new(),
            by: frame.name.clone().unwrap_or_default(),
            by_kind: "function".into(),
            place: frame.place.clone(),
        })
        .collect();
    let lines = references::lines("", &places, &stack.features, &mut texts).await;
    let mut text = format!("Thread {number}, {}:", stack.name);
    let mut frames = Vec::new();
    for (index, (frame, line)) in stack.frames.iter().zip(lines).enumerate() {
        let _ = write!(text, "\n{index}: {}", frame.call);
        let mut facts = json!({"call": frame.call});
        if let Some((file, line)) = line {
            let file = file.strip_prefix(call.session.workspace()).unwrap_or(&file).display().to_string();
            let _ = write!(text, "  ({file}:{line})");
            facts["file"] = file.into();
            facts["line"] = line.into();
        }
        frames.push(facts);
    }
    if frames.is_empty() {
        text += "\nNo frame of a program's own: it waits, or runs the system's code only.";
    }
    Ok((text, json!({"name": stack.name, "frames": frames})))
}

async fn end(call: &Call, number: u64) -> Done {
    let what = format!("ending thread {number}");
    let stopped = call.session.run(call.client, what, move |_| KillThread { number }, None, None).await?;
    Ok((format!("Ended: thread {number}, {}.", stopped.name), json!({"ended": number, "name": stopped.name})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_holds_what_is_waited_for_is_told() {
        let thread = |number: u64, name: &str, waits_for: Option<&str>, held_by| ThreadState {
            number,
            name: name.into(),
            kind: "user".into(),
            ms: None,
            state: if waits_for.is_some() { "waits for a lock" } else { "runs" }.into(),
            processor: Some(0.5),
            waits_for: waits_for.map(Into::into),
            held_by,
        };
        insta::assert_snapshot!(listed(&[thread(3, "a", None, None), thread(4, "b", Some("l"), Some(3))]), @r"
        2 threads
        3  a (user): runs, 50 % of a processor
        4  b (user): waits for a lock, 50 % of a processor: l, held by 3 a
        ");
    }
}
