//! Breakpoints in a recording. Each breakpoint is a line with which the positions of the recorded
//! events are compared. No probe is set in the image.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::answers::{Answer, error_message};
use super::breakpoints;
use super::connection::Connection;
use super::protocol::{SetBreakpoints, SourceBreakpoint};
use super::replay::Replay;
use crate::locked::lock;
use crate::model::breakpoint::RequestedBreakpoint;
use crate::model::recording::RecordingBreakpoint;
use crate::session::recordings::ReplayBreakpoints;

const NO_FORM: &str = "No recorded definition has a form on this line.";
const PLAIN: &str = "Conditions, hit counts and log messages are not looked at in a recording: the line alone counts.";
const NO_FUNCTIONS: &str = "A recording has breakpoints on lines: set one on the first line of the function.";

/// Returns the client's breakpoints in the form that a query of a recording takes. Breakpoints
/// without a line are left out.
pub(super) fn all(replay: &Replay) -> Vec<RecordingBreakpoint> {
    let requested = lock(&replay.requested_breakpoints);
    requested
        .files
        .iter()
        .flat_map(|(file, points)| points.iter().filter_map(|(point, _)| recorded(file, point)))
        .collect()
}

fn recorded(file: &Path, point: &RequestedBreakpoint) -> Option<RecordingBreakpoint> {
    Some(RecordingBreakpoint { id: point.id, file: file.to_owned(), line: point.line?, column: point.column })
}

/// Handles the request `setBreakpoints`, which replaces the breakpoints of one file.
pub(super) async fn set(connection: &Connection, replay: &Replay, arguments: SetBreakpoints) -> Answer {
    let file = arguments.source.and_then(|source| source.path).ok_or("There are breakpoints only in files.")?;
    let points = {
        // `take_over` replaces all breakpoints, while the beginning of the session holds this lock.
        let _begun = replay.at.lock().await;
        lock(&replay.requested_breakpoints).replace(&file, arguments.breakpoints)
    };
    Ok(json!({"breakpoints": places(connection, replay, &file, &points).await?}))
}

/// Returns the answer to `setFunctionBreakpoints`, in which no breakpoint is verified.
pub(super) fn functions(breakpoints: &[SourceBreakpoint]) -> Value {
    let refused = json!({"verified": false, "message": NO_FUNCTIONS});
    json!({"breakpoints": vec![refused; breakpoints.len()]})
}

/// Moves the breakpoints that the client set before it began to step through a recording from the
/// image to the recording. Sends a `breakpoint` event for each breakpoint of a file.
///
/// # Errors
///
/// The message of a query of the recording that failed. Breakpoints of later files are then not
/// reported to the client.
pub(super) async fn take_over(connection: &Connection, replay: &Replay) -> Result<(), String> {
    // Another request that is setting breakpoints holds this lock until all of them are set.
    drop(connection.setting.lock().await);
    let before = lock(&connection.requested_breakpoints).clone();
    breakpoints::clear(connection).await;
    let files: Vec<(PathBuf, Vec<RequestedBreakpoint>)> = before
        .files
        .iter()
        .filter(|(file, _)| !file.as_os_str().is_empty())
        .map(|(file, points)| (file.clone(), points.iter().map(|(point, _)| point.clone()).collect()))
        .collect();
    *lock(&replay.requested_breakpoints) = before;
    for (file, points) in files {
        for shown in places(connection, replay, &file, &points).await? {
            connection.event("breakpoint", json!({"reason": "changed", "breakpoint": shown}));
        }
    }
    Ok(())
}

/// Returns a DAP `Breakpoint` object for each of `points`, the breakpoints of `file`. A breakpoint
/// is verified if a recorded definition has a form on the line.
///
/// # Errors
///
/// The message says that a breakpoint has no line, or why the query of the recording failed.
async fn places(
    connection: &Connection,
    replay: &Replay,
    file: &Path,
    points: &[RequestedBreakpoint],
) -> Result<Vec<Value>, String> {
    let asked = ReplayBreakpoints { points: points.iter().filter_map(|point| recorded(file, point)).collect() };
    if asked.points.len() != points.len() {
        return Err("A breakpoint of a file has no line.".into());
    }
    let places = connection.session.ask_recording(replay.number, &asked).await.map_err(error_message)?.places;
    let shown = |(point, place): (&RequestedBreakpoint, Option<crate::model::recording::RecordedPlace>)| {
        let mut shown = json!({"id": point.id, "verified": place.is_some(), "source": {"path": file}});
        let plain = point.condition.is_none() && point.hit.is_none() && point.log.is_none();
        match place {
            Some(place) => {
                let [line, column, end_line, end_column] = place.position;
                (shown["line"], shown["column"]) = (json!(line), json!(column));
                (shown["endLine"], shown["endColumn"]) = (json!(end_line), json!(end_column));
                if !plain {
                    shown["message"] = json!(PLAIN);
                }
            }
            None => {
                shown["line"] = json!(point.line);
                shown["message"] = json!(NO_FORM);
            }
        }
        shown
    };
    Ok(points.iter().zip(places.into_iter().chain(std::iter::repeat(None))).map(shown).collect())
}
