//! Debug sessions that step through a recording: `attach` or `launch` with `recording`, and the
//! requests after it. No program runs. Each stop is at an event of the recording.

use serde_json::{Value, json};

use super::answers::{Answer, error_message};
use super::connection::Connection;
use super::protocol::{Begin, Request, SetBreakpoints, arguments, capabilities};
use super::replay::Replay;
use super::{recorded_points, recorded_values};
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageError;
use crate::model::recording::RecordedMoment;
use crate::session::recordings::{ReplayBegin, ReplayStep};

/// The capabilities of other debug sessions that a session for a recording does not have.
const EXCLUDED: [&str; 10] = [
    "supportsRestartFrame",
    "supportsSetVariable",
    "supportTerminateDebuggee",
    "supportsTerminateThreadsRequest",
    "supportsConditionalBreakpoints",
    "supportsHitConditionalBreakpoints",
    "supportsLogPoints",
    "supportsFunctionBreakpoints",
    "supportsBreakpointLocationsRequest",
    "supportsCompletionsRequest",
];

/// The id of the only thread that the client sees.
const THREAD: u64 = 1;

/// Returns the state of the client in its recording. An `attach` or `launch` that names a recording
/// creates the state. `None` means that the client has no recording.
///
/// # Errors
/// The client has a recording already and the request names one, or the arguments are invalid.
pub(super) fn replay<'a>(connection: &'a Connection, request: &Request) -> Result<Option<&'a Replay>, String> {
    if !matches!(request.command.as_str(), "attach" | "launch") {
        return Ok(connection.replay.get());
    }
    let Some(number) = arguments::<Begin>(request)?.recording else { return Ok(None) };
    let mut is_new = false;
    let replay = connection.replay.get_or_init(|| {
        is_new = true;
        Replay::new(number)
    });
    if is_new { Ok(Some(replay)) } else { Err("This debugger steps through a recording already.".into()) }
}

/// Answers a request of a client that steps through a recording.
pub(super) async fn answer(connection: &Connection, replay: &Replay, request: &Request) -> Answer {
    match request.command.as_str() {
        "attach" | "launch" => begin(connection, replay).await,
        "configurationDone" | "setExceptionBreakpoints" | "cancel" => Ok(json!({})),
        "setBreakpoints" => recorded_points::set(connection, replay, arguments(request)?).await,
        "setFunctionBreakpoints" => Ok(recorded_points::functions(&arguments::<SetBreakpoints>(request)?.breakpoints)),
        "threads" => Ok(json!({"threads": [{"id": THREAD, "name": format!("recording {}", replay.number)}]})),
        "stackTrace" => recorded_values::stack_trace(connection, replay, arguments(request)?).await,
        "scopes" => recorded_values::scopes(replay, &arguments(request)?),
        "variables" => recorded_values::variables(connection, replay, arguments(request)?).await,
        "source" => recorded_values::source(connection, replay, &arguments(request)?).await,
        "evaluate" => recorded_values::evaluate(connection, replay, arguments(request)?).await,
        "exceptionInfo" => exception(connection, replay).await,
        "next" => step(connection, replay, "next").await,
        "stepBack" => step(connection, replay, "back").await,
        "stepIn" => step(connection, replay, "into").await,
        "stepOut" => step(connection, replay, "out").await,
        "continue" => step(connection, replay, "continue").await,
        "reverseContinue" => step(connection, replay, "reverse").await,
        "terminate" => {
            connection.terminated();
            Ok(json!({}))
        }
        other => Err(format!(
            "A recording can be stepped through, but does not run: there is no `{other}`. Evaluate the form with the debugger for that."
        )),
    }
}

async fn begin(connection: &Connection, replay: &Replay) -> Answer {
    let mut at = replay.at.lock().await;
    match connection.session.ask_recording(replay.number, &ReplayBegin {}).await {
        Ok(moment) => *at = Some(moment),
        Err(error) => {
            // The query also fails for a recording that has no event to stop at.
            connection.terminated();
            return Err(error_message(error));
        }
    }
    recorded_points::take_over(connection, replay).await?;
    let mut capabilities = capabilities();
    // dape replaces all capabilities by those of the event. Therefore the event contains all.
    for excluded in EXCLUDED {
        capabilities[excluded] = json!(false);
    }
    capabilities["supportsStepBack"] = json!(true);
    connection.event("capabilities", json!({ "capabilities": capabilities }));
    Ok(json!({}))
}

/// Returns the message of a query that failed. Ends the debug session, unless the error is
/// [`ErrorKind::NO_ANSWER`], which concerns this query only.
fn failed_query(connection: &Connection, error: ImageError) -> String {
    let goes_on = matches!(&error, ImageError::Refused { kind, .. } if *kind == ErrorKind::NO_ANSWER);
    if !goes_on {
        connection.terminated();
    }
    error_message(error)
}

/// Reports the first moment to the client as a stop, after `configurationDone`.
pub(super) async fn report_start(connection: &Connection) {
    let Some(replay) = connection.replay.get() else { return };
    if let Some(moment) = replay.at.lock().await.as_ref() {
        report_stop(connection, replay, moment);
    }
}

async fn step(connection: &Connection, replay: &Replay, how: &'static str) -> Answer {
    let mut at = replay.at.lock().await;
    let event = at.as_ref().and_then(|at| at.row.event).ok_or("The recording has no moment to step from.")?;
    let step = ReplayStep { event, how, points: recorded_points::all(replay) };
    let moment = connection
        .session
        .ask_recording(replay.number, &step)
        .await
        .map_err(|error| failed_query(connection, error))?;
    report_stop(connection, replay, &moment);
    *at = Some(moment);
    Ok(json!({"allThreadsContinued": true}))
}

fn report_stop(connection: &Connection, replay: &Replay, moment: &RecordedMoment) {
    let (reason, description) = match moment.reason.as_str() {
        "error" => ("exception", "At the error"),
        "breakpoint" => ("breakpoint", "At a breakpoint"),
        "wrong" => ("entry", "Where the wrong value first appears"),
        "begin" => ("entry", "At the start of the recording"),
        "end" => ("step", "At the end of the recording"),
        _ => ("step", "After a step"),
    };
    let mut body = json!({
        "reason": reason, "description": format!("{description} (recording {})", replay.number),
        "text": stop_text(connection, replay, moment), "threadId": THREAD, "allThreadsStopped": true,
    });
    if reason == "breakpoint" {
        body["hitBreakpointIds"] = json!(moment.ids);
    }
    connection.moment(body);
}

/// Returns the text of a moment: the error, or the form with its value, if any, and the message of
/// the check that found the value wrong, if any.
fn stop_text(connection: &Connection, replay: &Replay, moment: &RecordedMoment) -> String {
    if moment.reason == "error"
        && let Some((kind, message)) = error_of(connection, replay)
    {
        return format!("{kind}: {message}");
    }
    let at = match &moment.row.value {
        Some(value) => format!("{} {value}", moment.row.text),
        None => moment.row.text.clone(),
    };
    match &moment.check {
        Some(check) => format!("{at} ({check})"),
        None => at,
    }
}

/// Returns the type and the message of the error with which the recorded code ended. Returns `None`
/// if it ended without an error, or the recording no longer exists.
fn error_of(connection: &Connection, replay: &Replay) -> Option<(String, String)> {
    // If the recording is gone, the next step reports that.
    let error = connection.session.recorded_error(replay.number).ok().flatten()?;
    Some((error.kind, error.message))
}

async fn exception(connection: &Connection, replay: &Replay) -> Answer {
    let at = replay.at.lock().await;
    let moment = at.as_ref().filter(|at| at.reason == "error").ok_or("There is no error at this moment.")?;
    let (kind, message) =
        error_of(connection, replay).unwrap_or_else(|| ("error".into(), moment.row.value.clone().unwrap_or_default()));
    let details: Value = json!({"message": message, "typeName": kind});
    Ok(json!({"exceptionId": kind, "description": message, "breakMode": "unhandled", "details": details}))
}
