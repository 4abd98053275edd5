//! The breakpoints of one client. They are set in the image, set again when the image or a
//! definition has changed, and reported to the client.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::connection::Connection;
use super::protocol::{BreakpointLocations, SetBreakpoints};
use crate::locked::lock;
use crate::model::breakpoint::{Breakpoint, Breakpoints, RequestedBreakpoint};
use crate::model::image::{ImageError, ImageState};
use crate::session::debug::{DebugBreakpointLocations, DebugBreakpoints, DebugFunctionBreakpoints};

/// The message of a breakpoint or filter that waits for the image.
pub(super) const NOT_RUNNING: &str = "The Lisp image is not running: the breakpoint is set when it is.";

/// The message of a breakpoint in a text that no file has, such as an evaluated one.
const NO_FILE: &str = "There are breakpoints only in files.";

/// Handles `setBreakpoints` and `setFunctionBreakpoints`: replaces the breakpoints of a file, or
/// those at functions.
pub(super) async fn set(connection: &Connection, arguments: SetBreakpoints) -> Result<Value, String> {
    let file = match arguments.source.map(|source| source.path.unwrap_or_default()) {
        None => PathBuf::new(),
        // nvim-dap sends the empty name of a buffer without a file. dape goes no further after an
        // error.
        Some(path) if path.as_os_str().is_empty() => {
            let unset = vec![json!({"verified": false, "message": NO_FILE}); arguments.breakpoints.len()];
            return Ok(json!({ "breakpoints": unset }));
        }
        Some(path) => path,
    };
    let _turn = connection.setting.lock().await;
    let points = lock(&connection.requested_breakpoints).replace(&file, arguments.breakpoints);
    let answers = apply(connection, &file, points).await;
    let shown: Vec<Value> = answers.into_iter().map(|(_, shown)| shown).collect();
    Ok(json!({ "breakpoints": shown }))
}

/// Sets breakpoints in the image. Returns and stores each with the body that the client gets for
/// it.
async fn apply(
    connection: &Connection,
    file: &Path,
    points: Vec<RequestedBreakpoint>,
) -> Vec<(RequestedBreakpoint, Value)> {
    let verified = match send(connection, file, points.clone()).await {
        Ok(answer) => answer.for_each_of(points.len()),
        Err(error) => {
            let running = matches!(connection.session.image_state(), ImageState::Ready { .. });
            let message = Some(if running { error.to_string() } else { NOT_RUNNING.to_owned() });
            vec![Breakpoint { message, ..Breakpoint::default() }; points.len()]
        }
    };
    let answers: Vec<_> = points.into_iter().zip(verified).map(|(point, one)| shown(file, point, &one)).collect();
    if let Some(known) = lock(&connection.requested_breakpoints).files.get_mut(file) {
        known.clone_from(&answers);
    }
    answers
}

async fn send(
    connection: &Connection,
    file: &Path,
    points: Vec<RequestedBreakpoint>,
) -> Result<Breakpoints, ImageError> {
    if !matches!(connection.session.image_state(), ImageState::Ready { .. }) {
        return Err(ImageError::Unavailable(NOT_RUNNING.into()));
    }
    let owner = connection.owner();
    if file.as_os_str().is_empty() {
        return connection.session.set_breakpoints(DebugFunctionBreakpoints { owner, points }).await;
    }
    let text = if points.is_empty() { String::new() } else { text_of(connection, file).await };
    connection.session.set_breakpoints(DebugBreakpoints { owner, file: file.to_owned(), text, points }).await
}

/// Returns the text of a file as an editor has it open, otherwise as it is on disk. The text is
/// empty if there is neither.
async fn text_of(connection: &Connection, file: &Path) -> String {
    let mut texts = connection.session.context(connection.client).await.texts();
    texts.get(file).await.map_or_else(String::new, |text| text.document.text().to_string())
}

fn shown(file: &Path, point: RequestedBreakpoint, verified: &Breakpoint) -> (RequestedBreakpoint, Value) {
    let mut shown = json!({"id": point.id, "verified": verified.verified});
    if let Some(message) = &verified.message {
        shown["message"] = json!(message);
    }
    let file = if file.as_os_str().is_empty() { verified.place.file.as_deref() } else { Some(file) };
    if let Some(file) = file {
        shown["source"] = json!({"name": file.file_name().map(|name| name.to_string_lossy()), "path": file});
    }
    if let Some((line, column, end_line, end_column)) = verified.place.position {
        shown["line"] = json!(line);
        shown["column"] = json!(column);
        shown["endLine"] = json!(end_line);
        shown["endColumn"] = json!(end_column);
    } else if let Some(line) = point.line {
        shown["line"] = json!(line);
    }
    (point, shown)
}

/// Sets the breakpoints of one file or of all files again. Sends a `breakpoint` event for each
/// breakpoint whose body differs from the last one that the client got.
pub(super) async fn set_again(connection: &Connection, only: Option<&Path>) {
    let _turn = connection.setting.lock().await;
    let known = lock(&connection.requested_breakpoints).files.clone();
    for (file, before) in known {
        if only.is_some_and(|only| only != file) {
            continue;
        }
        let points = before.iter().map(|(point, _)| point.clone()).collect();
        let now = apply(connection, &file, points).await;
        for ((_, old), (_, new)) in before.into_iter().zip(now) {
            if old != new {
                connection.event("breakpoint", json!({"reason": "changed", "breakpoint": new}));
            }
        }
    }
}

/// Removes all of the client's breakpoints from the image.
pub(super) async fn clear(connection: &Connection) {
    let _turn = connection.setting.lock().await;
    let files = std::mem::take(&mut lock(&connection.requested_breakpoints).files);
    for file in files.keys() {
        if let Err(error) = send(connection, file, Vec::new()).await {
            tracing::debug!(%error, "breakpoints of a debugger that left were not taken out");
        }
    }
}

/// Answers `breakpointLocations` with the ranges in some lines at which breakpoints can be set.
pub(super) async fn locations(connection: &Connection, arguments: BreakpointLocations) -> Result<Value, String> {
    let file = arguments.source.path.ok_or(NO_FILE)?;
    if !matches!(connection.session.image_state(), ImageState::Ready { .. }) {
        return Ok(json!({"breakpoints": []}));
    }
    let text = text_of(connection, &file).await;
    let (line, end_line) = (arguments.line, arguments.end_line.unwrap_or(arguments.line));
    let _turn = connection.setting.lock().await;
    let operation = DebugBreakpointLocations { file, text, line, end_line };
    let places = connection.session.set_breakpoints(operation).await.map_err(|error| error.to_string())?;
    let places = places.breakpoints.into_iter().filter_map(|one| one.place.position);
    let places = places.map(|(line, column, end_line, end_column)| {
        json!({"line": line, "column": column, "endLine": end_line, "endColumn": end_column})
    });
    Ok(json!({"breakpoints": places.collect::<Vec<_>>()}))
}
