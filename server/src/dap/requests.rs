//! The handling of each request of a debugger.

use std::time::Duration;

use serde_json::{Value, json};

use super::answers::{Answer, MAX_PAGE, error_message, trouble};
use super::connection::{Connection, END_TIMEOUT, IDLE_THREAD, thread_of};
use super::protocol::{
    self, Begin, Cancel, InFrame, InThread, InvokeRestart, Request, ReturnFrom, SourceOf, StackTrace, Threads,
    Variables, arguments,
};
use super::variables::{self, Referent};
use super::{breakpoints, completions, evaluating, exceptions, input, recording, resuming, setting, sources};
use crate::ide::context::Backend;
use crate::ide::frame_places;
use crate::locked::lock;
use crate::model::action_outcome::{ActionOutcome, ActionStatus};
use crate::model::frozen::Restart;
use crate::model::image::ImageError;
use crate::model::stop::Condition;
use crate::session::debug::{
    DebugAbort, DebugContinue, DebugFrames, DebugLocals, DebugPause, DebugRestart, DebugRestartFrame, DebugReturn,
    DebugStep, Inspect,
};

/// The number of frames or variables of an answer, unless the client says otherwise.
const PAGE: usize = 200;

/// The maximum time for which a request that resumes a program waits for breakpoints that were sent
/// before it. Setting those may itself wait for the stopped thread.
const BREAKPOINTS_TIMEOUT: Duration = Duration::from_secs(2);

/// Answers a request.
pub(super) async fn answer(connection: &Connection, request: &Request) -> Answer {
    if let Some(replay) = recording::replay(connection, request)? {
        return recording::answer(connection, replay, request).await;
    }
    if resuming::RESUMING_REQUESTS.contains(&request.command.as_str()) {
        // Requests begin in the order in which they arrived, and the lock is fair.
        let _ = crate::steady::timeout(BREAKPOINTS_TIMEOUT, connection.setting.lock()).await;
    }
    match request.command.as_str() {
        "initialize" => {
            input::accept(connection, arguments(request)?);
            Ok(protocol::capabilities())
        }
        "attach" | "launch" => {
            *lock(&connection.begin) = arguments::<Begin>(request)?;
            // The debug console completes names by the index.
            connection.session.keep_names();
            Ok(json!({}))
        }
        "configurationDone" => Ok(json!({})),
        "setExceptionBreakpoints" => exceptions::set(connection, arguments(request)?).await,
        "setBreakpoints" | "setFunctionBreakpoints" => breakpoints::set(connection, arguments(request)?).await,
        "breakpointLocations" => breakpoints::locations(connection, arguments(request)?).await,
        "next" => step(connection, arguments(request)?, "over").await,
        "stepIn" => step(connection, arguments(request)?, "into").await,
        "stepOut" => step(connection, arguments(request)?, "out").await,
        "threads" => threads(connection).await,
        "stackTrace" => stack_trace(connection, arguments(request)?).await,
        "scopes" => scopes(connection, &arguments(request)?),
        "variables" => variables(connection, arguments(request)?).await,
        "setVariable" => setting::set(connection, arguments(request)?).await,
        "source" => source(connection, &arguments(request)?),
        "evaluate" => evaluating::evaluate(connection, request.seq, arguments(request)?).await,
        "consort/evaluate" => evaluating::report(connection, request.seq, arguments(request)?).await,
        "cancel" => {
            if let Some(number) = arguments::<Cancel>(request)?.request_id {
                connection.cancel(number);
            }
            Ok(json!({}))
        }
        "completions" => completions::complete(connection, arguments(request)?).await,
        "consort/answerInput" => input::answer(connection, arguments(request)?),
        "exceptionInfo" => {
            let stop = connection.stop_in(arguments::<InThread>(request)?.thread_id)?;
            Ok(exception(stop.condition.as_ref(), &stop.restarts))
        }
        "continue" => {
            let stop = connection.stop_in(arguments::<InThread>(request)?.thread_id)?;
            answer_of_resuming(connection.session.at_stop(DebugContinue { stop: stop.number }).await)?;
            Ok(json!({"allThreadsContinued": false}))
        }
        "restartFrame" => {
            let (stop, frame) = connection.frame_of(arguments::<InFrame>(request)?.frame_id)?;
            answer_of_resuming(connection.session.at_stop(DebugRestartFrame { stop, frame }).await)
        }
        "pause" => {
            let target = match arguments::<InThread>(request)?.thread_id {
                // A client may know only this thread: it has not asked for the threads since the
                // console's evaluation began.
                IDLE_THREAD => connection.running_evaluation().ok_or("Nothing runs that could be paused.")?,
                thread => thread,
            };
            connection.session.at_stop(DebugPause { target }).await.map_err(error_message)
        }
        "terminate" => terminate(connection).await,
        "terminateThreads" => terminate_threads(connection, &arguments::<Threads>(request)?).await,
        "consort/return" => {
            let arguments: ReturnFrom = arguments(request)?;
            let (stop, frame) = connection.frame_of(arguments.frame_id)?;
            answer_of_resuming(connection.session.at_stop(DebugReturn { stop, frame, code: arguments.code }).await)
        }
        "consort/restarts" => {
            let stop = connection.stop_in(arguments::<InThread>(request)?.thread_id)?;
            Ok(restarts(&stop.restarts, Some(stop.number)))
        }
        "consort/invokeRestart" => {
            let arguments: InvokeRestart = arguments(request)?;
            let stop = match arguments.stop {
                Some(stop) => stop,
                None => connection.stop_in(arguments.thread_id)?.number,
            };
            let InvokeRestart { index, name, arguments, input, .. } = arguments;
            answer_of_resuming(connection.session.at_stop(DebugRestart { stop, index, name, arguments, input }).await)
        }
        other => Err(format!("Consort's debugger has no request `{other}`.")),
    }
}

/// Returns the answer to `consort/restarts`. `stop` is the stop of the restarts.
pub(super) fn restarts(restarts: &[Restart], stop: Option<u64>) -> Value {
    let restart = |(index, restart): (usize, &Restart)| json!({"index": index, "name": restart.name, "report": restart.report, "arguments": restart.arguments, "stop": stop});
    json!({"restarts": restarts.iter().enumerate().map(restart).collect::<Vec<_>>()})
}

async fn step(connection: &Connection, arguments: InThread, how: &'static str) -> Answer {
    let stop = connection.stop_in(arguments.thread_id)?.number;
    answer_of_resuming(connection.session.at_stop(DebugStep { stop, how }).await)
}

async fn threads(connection: &Connection) -> Answer {
    let mut threads: Vec<(u64, String)> = Vec::new();
    for stop in connection.stops() {
        let thread = thread_of(&stop);
        if threads.iter().all(|(known, _)| *known != thread) {
            threads.push((thread, format!("{} (stopped)", stop.thread)));
        }
    }
    for running in connection.session.running_evaluations().await.map_err(error_message)? {
        let Some(id) = running["id"].as_u64() else { continue };
        if threads.iter().all(|(known, _)| *known != id) {
            let name = running["session"].as_str().unwrap_or("work");
            threads.push((id, format!("{name}, evaluation {id}")));
        }
    }
    if threads.is_empty() {
        threads.push((IDLE_THREAD, "console".into()));
    }
    let threads: Vec<Value> = threads.into_iter().map(|(id, name)| json!({"id": id, "name": name})).collect();
    Ok(json!({ "threads": threads }))
}

async fn stack_trace(connection: &Connection, arguments: StackTrace) -> Answer {
    let stop = connection.stop_in(arguments.thread_id)?.number;
    page_of_frames(connection, &connection.session, stop, &arguments).await
}

/// Returns a page of the frames of a stop in `backend`.
pub(super) async fn page_of_frames(
    connection: &Connection,
    backend: &impl Backend,
    stop: u64,
    arguments: &StackTrace,
) -> Answer {
    let count = if arguments.levels == 0 { PAGE } else { arguments.levels.min(MAX_PAGE) };
    let page = DebugFrames { stop, start: arguments.start_frame, count };
    let page = backend.query(page).await.map_err(error_message)?;
    let texts = connection.texts();
    let mut files = connection.session.context(connection.client).await.texts();
    let places = frame_places::places(&page, &mut files).await;
    let mut frames = Vec::new();
    for (frame, found) in page.frames.iter().zip(places) {
        let mut shown = sources::place(frame, found, &texts, |text| connection.keep_loaded(text));
        shown["id"] = json!(lock(&connection.handles).number(Referent::Frame { stop, frame: frame.number }));
        shown["name"] = json!(frame.name);
        shown["canRestart"] = json!(frame.unwindable);
        if let Some(package) = &frame.package {
            shown["package"] = json!(package);
        }
        if frame.system {
            shown["presentationHint"] = json!("subtle");
        }
        // The first frame whose source is not de-emphasized is the one that a client goes to.
        if (frame.system || frame.standard) && shown["source"].is_object() {
            shown["source"]["presentationHint"] = json!("deemphasize");
        }
        frames.push(shown);
    }
    Ok(json!({"stackFrames": frames, "totalFrames": page.total}))
}

pub(super) fn scopes(connection: &Connection, arguments: &InFrame) -> Answer {
    let (stop, frame) = connection.frame_of(arguments.frame_id)?;
    let mut handles = lock(&connection.handles);
    let locals = handles.number(Referent::Locals { stop, frame });
    let restarts = handles.number(Referent::Restarts { stop });
    Ok(json!({"scopes": [
        {"name": "Locals", "presentationHint": "locals", "variablesReference": locals, "expensive": false},
        {"name": "Restarts", "variablesReference": restarts, "expensive": false},
    ]}))
}

async fn variables(connection: &Connection, arguments: Variables) -> Answer {
    let referent = lock(&connection.handles).get(arguments.variables_reference);
    let count = if arguments.count == 0 { PAGE } else { arguments.count.min(MAX_PAGE) };
    let shown = match referent {
        Some(Referent::Locals { stop, frame }) => {
            let page = DebugLocals {
                stop,
                frame,
                start: arguments.start,
                count: if arguments.count == 0 { MAX_PAGE } else { count },
            };
            let page = connection.session.query(page).await.map_err(error_message)?;
            lock(&connection.handles).locals(&page.locals)
        }
        Some(Referent::Restarts { stop }) => {
            let stops = connection.stops();
            let stop = stops.iter().find(|each| each.number == stop).ok_or("That stop was left.")?;
            variables::restarts(&stop.restarts)
        }
        Some(Referent::Parts { reference, start }) => {
            let start = start.saturating_add(arguments.start);
            let page = connection
                .session
                .query(Inspect { reference, path: Vec::new(), start, count })
                .await
                .map_err(error_message)?;
            let mut handles = lock(&connection.handles);
            let mut parts: Vec<Value> = page.parts.iter().map(|part| handles.part(part)).collect();
            // nvim-dap shows nothing at all for a value whose variables are none.
            if page.total == 0 {
                parts.push(json!({"name": "(empty)", "value": "", "variablesReference": 0}));
            }
            let next = start.saturating_add(page.parts.len());
            if arguments.count == 0 && next < page.total && !page.parts.is_empty() {
                let more = handles.number(Referent::Parts { reference, start: next });
                let name = format!("[{next}...]");
                parts.push(
                    json!({"name": name, "value": format!("{} more", page.total - next), "variablesReference": more}),
                );
            }
            parts
        }
        Some(Referent::Frame { .. }) | None => return Err("The value is no longer available.".into()),
    };
    Ok(json!({ "variables": shown }))
}

fn source(connection: &Connection, arguments: &SourceOf) -> Answer {
    let texts = connection.texts();
    let text = texts
        .iter()
        .find(|text| text.reference == arguments.source_reference)
        .ok_or("That text is not kept any more.")?;
    Ok(json!({"content": text.text, "mimeType": "text/x-common-lisp"}))
}

pub(super) fn exception(condition: Option<&Condition>, restarts: &[Restart]) -> Value {
    let restarts: String = restarts.iter().enumerate().fold(String::new(), |list, (index, restart)| {
        let name = restart.name.as_deref().unwrap_or("");
        format!("{list}\n{index}: [{name}] {}", restart.report)
    });
    let (kind, message) = match condition {
        Some(condition) => (condition.kind.as_str(), condition.message.as_str()),
        None => ("pause", "The program was paused."),
    };
    json!({
        "exceptionId": kind,
        "description": format!("{message}\n\nRestarts:{restarts}"),
        "breakMode": "unhandled",
        "details": {"message": message, "typeName": kind},
    })
}

async fn terminate(connection: &Connection) -> Answer {
    let stops = connection.stops().iter().map(|stop| stop.number).collect();
    connection.terminations.send_modify(|number| *number += 1);
    if let Some(stop) = connection.own_stop() {
        // A stop that was left meanwhile needs no abort.
        let _ = connection.session.at_stop(DebugAbort { stop: stop.number }).await;
    }
    // An image that is starting does not answer an interrupt. Evaluations that wait for it end
    // without one.
    tokio::select! {
        biased;
        interrupted = connection.session.interrupt(connection.client, false) => {
            interrupted.map_err(error_message)?;
        }
        () = connection.evaluations_ended(&stops) => {}
    }
    // Clients leave at `terminated`, so the output of cleanup forms must come before.
    if crate::steady::timeout(END_TIMEOUT, connection.evaluations_ended(&stops)).await.is_err() {
        connection.print_in_console("The evaluation has not ended yet.\n");
    }
    connection.terminated();
    Ok(json!({}))
}

/// Aborts the innermost stop of each thread. The stop's evaluation, or the code that stopped at a
/// frame, ends with its report.
async fn terminate_threads(connection: &Connection, arguments: &Threads) -> Answer {
    for thread in &arguments.thread_ids {
        let stop = connection.stop_in(*thread)?.number;
        answer_of_resuming(connection.session.at_stop(DebugAbort { stop }).await)?;
    }
    Ok(json!({}))
}

/// Returns the answer to a request that leaves a stop.
fn answer_of_resuming(done: Result<ActionOutcome, ImageError>) -> Answer {
    let done = done.map_err(error_message)?;
    if done.status == ActionStatus::Sent { Ok(json!({})) } else { Err(trouble(&done)) }
}
