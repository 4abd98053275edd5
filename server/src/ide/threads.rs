//! The image's threads, as data and as text: the states of all, and the stack of one.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::context::{Backend, Context};
use super::references;
use crate::image::api::browse::{ThreadStack, ThreadState, ThreadStates};
use crate::image::api::symbols::Reference;
use crate::model::image::ImageError;

/// The time for which the end of a thread is awaited.
const END_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval of the checks whether the thread has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The threads of the image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThreadStatesFacts {
    /// The threads, oldest first.
    pub threads: Vec<ThreadState>,
}

/// The outcome for a thread that was told to end. Either `ended` or both `ending` and `state` are
/// set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndFacts {
    /// The thread's number, if it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// The thread's number, if it still runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<u64>,
    /// The thread's name.
    pub name: String,
    /// A description of what the thread does, if it still runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// The stack of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StackFacts {
    /// The thread's name.
    pub name: String,
    /// The frames, innermost first.
    pub frames: Vec<CallFacts>,
}

/// A frame of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallFacts {
    /// The printed call.
    pub call: String,
    /// The file of the function, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the function's definition, 1-based.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// Lists the threads with their states.
///
/// # Errors
/// See [`Backend::query`].
pub async fn list<B: Backend>(backend: &B) -> Result<(String, ThreadStatesFacts), ImageError> {
    let threads = backend.query(ThreadStates {}).await?.threads;
    Ok((listed(&threads), ThreadStatesFacts { threads }))
}

/// Waits a short time (`END_TIMEOUT`) for the end of a thread that was told to end. Returns, as
/// text and as data, whether it has ended. `name` is the thread's name.
///
/// # Errors
/// See [`Backend::query`].
pub async fn ended<B: Backend>(backend: &B, number: u64, name: &str) -> Result<(String, EndFacts), ImageError> {
    let until = Instant::now() + END_TIMEOUT;
    loop {
        let threads = backend.query(ThreadStates {}).await?.threads;
        let thread = threads.into_iter().find(|thread| thread.number == number);
        if thread.is_none() || Instant::now() > until {
            return Ok(end(number, name, thread.as_ref()));
        }
        crate::steady::sleep(POLL_INTERVAL).await;
    }
}

/// Describes the end of a thread for a person who is asked for it. `process` is that of the image,
/// whose threads another image numbers anew. Returns `None` if there is no such thread.
///
/// # Errors
/// See [`Backend::query`].
pub async fn end_in_words<B: Backend>(
    backend: &B,
    number: u64,
    process: Option<u32>,
) -> Result<Option<String>, ImageError> {
    let threads = backend.query(ThreadStates {}).await?.threads;
    Ok(threads.iter().find(|thread| thread.number == number).map(|thread| in_words(thread, process)))
}

fn in_words(thread: &ThreadState, process: Option<u32>) -> String {
    let ThreadState { number, name, kind, .. } = thread;
    let process = process.map_or_else(String::new, |process| format!(" (process {process})"));
    format!("end the thread {number}, {} ({kind}), of the Lisp image{process}", crate::shown::line(name))
}

/// Describes the outcome for a thread that was told to end. `thread` is its state, or `None` if it
/// has ended.
fn end(number: u64, name: &str, thread: Option<&ThreadState>) -> (String, EndFacts) {
    let facts = EndFacts {
        ended: thread.is_none().then_some(number),
        ending: thread.map(|_| number),
        name: name.into(),
        state: thread.map(|thread| thread.state.clone()),
    };
    match thread {
        None => (format!("Ended: thread {number}, {name}."), facts),
        Some(thread) => (
            format!(
                "Thread {number}, {name}, was told to end and has not ended yet ({}): code within `without-interrupts`, foreign code \
                 and clean-up forms go on first. `list` shows whether it is still there.",
                thread.state
            ),
            facts,
        ),
    }
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

/// Lists the frames of a thread, innermost first. Files below `workspace` are named relative to it.
///
/// # Errors
/// See [`Backend::query`].
pub async fn stack<B: Backend>(
    context: &Context<B>,
    number: u64,
    workspace: &Path,
) -> Result<(String, StackFacts), ImageError> {
    let stack = context.query(ThreadStack { number }).await?;
    let mut texts = context.texts();
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
        let mut facts = CallFacts { call: frame.call.clone(), file: None, line: None };
        if let Some((file, line)) = line {
            let file = file.strip_prefix(workspace).unwrap_or(&file).display().to_string();
            let _ = write!(text, "  ({file}:{line})");
            (facts.file, facts.line) = (Some(file), Some(line));
        }
        frames.push(facts);
    }
    if frames.is_empty() {
        text += "\nNo frame of a program's own: it waits, or runs the system's code only.";
    }
    Ok((text, StackFacts { name: stack.name, frames }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_goes_on_is_not_told_to_have_ended() {
        let state = "runs".to_owned();
        let thread = ThreadState {
            number: 3,
            name: "a".into(),
            kind: "user".into(),
            ms: None,
            state,
            processor: None,
            waits_for: None,
            held_by: None,
        };
        let (text, facts) = end(3, "a", Some(&thread));
        assert!(text.starts_with("Thread 3, a, was told to end and has not ended yet (runs)"), "{text}");
        assert_eq!((facts.ended, facts.ending), (None, Some(3)));
        assert_eq!(end(3, "a", None).0, "Ended: thread 3, a.");
    }

    #[test]
    fn the_question_names_the_thread_and_its_image() {
        let thread = serde_json::json!({"number": 3, "name": "a\nb", "kind": "user", "state": "runs"});
        let thread: ThreadState = serde_json::from_value(thread).unwrap();
        assert_eq!(in_words(&thread, Some(7)), "end the thread 3, a b (user), of the Lisp image (process 7)");
        assert_ne!(in_words(&thread, Some(7)), in_words(&thread, Some(8)), "after a restart");
    }

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
