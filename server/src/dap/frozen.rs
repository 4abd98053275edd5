//! A debugger's view of a frozen failure, for `attach` with `failure`. There is one thread, which
//! never continues. Restarts, and code in its frames, are tried in processes forked from the
//! failure.

use serde_json::{Value, json};

use super::answers::{Answer, MAX_PAGE, error_message, trouble};
use super::connection::Connection;
use super::evaluating::{shown_values, variable};
use super::protocol::{
    Evaluate, InFrame, InvokeRestart, Request, ReturnFrom, SetBreakpoints, StackTrace, Variables, arguments,
};
use super::requests::{exception, page_of_frames, restarts, scopes};
use super::variables::{Referent, restarts as shown_restarts};
use crate::ide::context::Backend as _;
use crate::ide::failures;
use crate::locked::lock;
use crate::model::action_outcome::{ActionStatus, AttemptOutcome};
use crate::model::frozen::Failure;
use crate::model::image::ImageError;
use crate::model::stop::Condition;
use crate::session::debug::{DebugEval, DebugLocals, DebugRestart, DebugReturn};
use crate::session::failures::STOP;

/// The id of the only thread.
const THREAD: u64 = 1;

/// Answers a request about a frozen failure: `attach` with `failure`, or a request that was sent
/// after it. Returns `None` for any other request.
pub(super) async fn answer(connection: &Connection, request: &Request) -> Option<Answer> {
    let failure =
        matches!(request.command.as_str(), "attach" | "launch").then(|| request.arguments["failure"].as_u64());
    if let Some(failure) = failure.flatten() {
        return Some(attach(connection, failure));
    }
    let failure = *lock(&connection.failure);
    Some(answer_at(connection, failure?, request).await)
}

/// Begins the view of the frozen failure of this number.
fn attach(connection: &Connection, number: u64) -> Answer {
    if connection.replay.get().is_some() {
        return Err("This debugger steps through a recording already.".into());
    }
    let failure = kept_failure(connection, number)?;
    *lock(&connection.failure) = Some(failure.number);
    Ok(json!({}))
}

fn kept_failure(connection: &Connection, number: u64) -> Result<Failure, String> {
    let kept = connection.session.failures().into_iter().find(|failure| failure.number == number);
    kept.ok_or_else(|| {
        format!(
            "There is no frozen failure {number} (any more): the newest are kept for ten minutes, and only while there is \
             memory for them. Let it fail again for a new one."
        )
    })
}

/// Reports the only stop.
pub(super) fn report_stop(connection: &Connection, number: u64) {
    let Ok(failure) = kept_failure(connection, number) else { return connection.terminated() };
    let body = json!({
        "reason": "exception", "threadId": THREAD, "allThreadsStopped": true,
        "description": format!("Frozen failure {number}"), "text": format!("{}: {}", failure.kind, failure.message),
    });
    connection.event("stopped", body);
}

/// Answers a request of a client that views the frozen failure of this number.
async fn answer_at(connection: &Connection, number: u64, request: &Request) -> Answer {
    let at = connection.session.at_failure(number);
    match request.command.as_str() {
        "threads" => {
            let failure = kept_failure(connection, number)?;
            let name = format!("failure {number} of {}", failure.session);
            Ok(json!({"threads": [{"id": THREAD, "name": name}]}))
        }
        "stackTrace" => {
            let arguments: StackTrace = arguments(request)?;
            page_of_frames(connection, &at, STOP, &arguments).await
        }
        "scopes" => scopes(connection, &arguments::<InFrame>(request)?),
        "variables" => variables(connection, number, &arguments(request)?).await,
        "evaluate" => evaluate(connection, number, arguments(request)?).await,
        "exceptionInfo" => {
            let failure = kept_failure(connection, number)?;
            let condition = Condition { kind: failure.kind, message: failure.message };
            Ok(exception(Some(&condition), &failure.restarts))
        }
        "consort/restarts" => Ok(restarts(&kept_failure(connection, number)?.restarts, None)),
        "consort/invokeRestart" => {
            let InvokeRestart { index, name, arguments, input, .. } = arguments(request)?;
            let restart = DebugRestart { stop: STOP, index, name, arguments, input };
            tried(connection, connection.session.try_at_failure(number, restart).await)
        }
        "consort/return" => {
            let ReturnFrom { frame_id, code } = arguments(request)?;
            let (stop, frame) = connection.frame_of(frame_id)?;
            tried(connection, connection.session.try_at_failure(number, DebugReturn { stop, frame, code }).await)
        }
        "setBreakpoints" | "setFunctionBreakpoints" => Ok(unset(&arguments(request)?)),
        "breakpointLocations" => Ok(json!({"breakpoints": []})),
        "completions" => Ok(json!({"targets": []})),
        "terminate" => {
            connection.terminated();
            Ok(json!({}))
        }
        "initialize" | "configurationDone" | "setExceptionBreakpoints" | "cancel" => Ok(json!({})),
        other => Err(format!(
            "This is the frozen failure {number}: the program itself has continued, and nothing can continue here (`{other}`). Look at the frames, \
             evaluate in one, or try a restart and see what would have come; disconnecting leaves it as it is."
        )),
    }
}

async fn variables(connection: &Connection, number: u64, arguments: &Variables) -> Answer {
    let referent = lock(&connection.handles).get(arguments.variables_reference);
    let shown = match referent {
        Some(Referent::Locals { stop, frame }) => {
            let count = if arguments.count == 0 { MAX_PAGE } else { arguments.count.min(MAX_PAGE) };
            let page = DebugLocals { stop, frame, start: arguments.start, count };
            let mut locals = connection.session.at_failure(number).query(page).await.map_err(error_message)?.locals;
            // Each request is answered by a process of its own, and a reference is valid only in
            // that process.
            locals.iter_mut().filter_map(|local| local.value.as_mut()).for_each(|value| value.reference = 0);
            lock(&connection.handles).locals(&locals)
        }
        Some(Referent::Restarts { .. }) => shown_restarts(&kept_failure(connection, number)?.restarts),
        Some(Referent::Frame { .. } | Referent::Parts { .. }) | None => {
            return Err("The value is no longer available.".into());
        }
    };
    Ok(json!({ "variables": shown }))
}

/// Answers `evaluate`, in the given frame or in the innermost. A hover only reads variables.
async fn evaluate(connection: &Connection, number: u64, arguments: Evaluate) -> Answer {
    let (stop, frame) = arguments.frame_id.map_or(Ok((STOP, 0)), |frame| connection.frame_of(frame))?;
    if arguments.context == "hover" {
        let at = connection.session.at_failure(number);
        let value = variable(&at, stop, frame, &arguments.expression).await?;
        return Ok(json!({"result": value.text, "type": value.kind, "variablesReference": 0}));
    }
    let code = DebugEval { stop, frame, code: arguments.expression, debug: false, warnings: false };
    let done = connection.session.try_at_failure(number, code).await.map_err(error_message)?.action;
    for (category, output) in [("stdout", &done.stdout.text), ("stderr", &done.stderr.text)] {
        if !output.is_empty() {
            connection.event("output", json!({"category": category, "output": output}));
        }
    }
    if done.status != ActionStatus::Ok {
        return Err(trouble(&done));
    }
    Ok(json!({"result": shown_values(&done), "variablesReference": 0}))
}

/// Returns the answer to an attempt: the outcome that it would have had, which is also shown in the
/// console.
fn tried(connection: &Connection, outcome: Result<AttemptOutcome, ImageError>) -> Answer {
    let (told, _, failed) = failures::outcome(outcome.map_err(error_message)?);
    connection.print_in_console(&format!("{told}\n"));
    Ok(json!({"tried": {"result": told, "failed": failed}}))
}

/// Returns the answer to `setBreakpoints` and `setFunctionBreakpoints`, with no breakpoint set.
fn unset(arguments: &SetBreakpoints) -> Value {
    let why = "A frozen failure has no breakpoints; those of a session with the image act there.";
    let unset: Vec<Value> = arguments.breakpoints.iter().map(|_| json!({"verified": false, "message": why})).collect();
    json!({ "breakpoints": unset })
}
