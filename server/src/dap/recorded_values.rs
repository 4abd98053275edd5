//! The data that is shown at a moment of a recording: the calls around it, their variables, the
//! values of forms, and the values of expressions.

use serde_json::{Value, json};

use super::answers::{Answer, error_message};
use super::connection::Connection;
use super::protocol::{Evaluate, InFrame, SourceOf, StackTrace, Variables};
use super::replay::{RecordedReferent, Replay};
use crate::locked::lock;
use crate::model::recording::{RecordedCall, RecordedValue};
use crate::session::recordings::{ReplayEvaluate, ReplayFrames, ReplayText, ReplayValues};

/// The maximum number of frames or values in one query.
const PAGE: u64 = 200;
const NO_FRAME: &str = "The frame is no longer available.";

async fn event(replay: &Replay) -> Result<u64, String> {
    let at = replay.at.lock().await;
    at.as_ref().and_then(|at| at.row.event).ok_or_else(|| "The recording has no moment to show.".into())
}

/// Returns the event and the number of a frame.
fn frame_of(replay: &Replay, number: u64) -> Result<(u64, u64), String> {
    match lock(&replay.handles).get(number) {
        Some(RecordedReferent::Frame { event, frame }) => Ok((event, frame)),
        _ => Err(NO_FRAME.into()),
    }
}

/// Answers `stackTrace`.
pub(super) async fn stack_trace(connection: &Connection, replay: &Replay, arguments: StackTrace) -> Answer {
    let event = event(replay).await?;
    let start = arguments.start_frame as u64;
    let count = if arguments.levels == 0 { PAGE } else { arguments.levels as u64 };
    let calls = connection.session.ask_recording(replay.number, &ReplayFrames { event, start, count }).await;
    let calls = calls.map_err(error_message)?;
    let mut handles = lock(&replay.handles);
    let frames: Vec<Value> = (start..)
        .zip(&calls.rows)
        .map(|(frame, call)| {
            let mut shown = place(replay, call);
            shown["id"] = json!(handles.number(RecordedReferent::Frame { event, frame }));
            shown["name"] = json!(call.name);
            shown["canRestart"] = json!(false);
            shown
        })
        .collect();
    Ok(json!({"stackFrames": frames, "totalFrames": calls.total}))
}

fn place(replay: &Replay, call: &RecordedCall) -> Value {
    let Some([line, column, end_line, end_column]) = call.position else { return json!({"line": 0, "column": 0}) };
    let file = call.file.as_ref().filter(|file| !file.as_os_str().is_empty());
    let source = match file {
        Some(file) => json!({"name": file.file_name().map(|name| name.to_string_lossy()), "path": file}),
        None => {
            let reference = call.unit.unwrap_or(0) + 1;
            json!({"name": format!("recording {}", replay.number), "sourceReference": reference})
        }
    };
    json!({"source": source, "line": line, "column": column, "endLine": end_line, "endColumn": end_column})
}

/// Answers `source` with a recorded text that is in no file. Blanks before the text give it its
/// recorded position.
pub(super) async fn source(connection: &Connection, replay: &Replay, arguments: &SourceOf) -> Answer {
    let unit = arguments.source_reference.saturating_sub(1);
    let recorded =
        connection.session.ask_recording(replay.number, &ReplayText { unit }).await.map_err(error_message)?;
    let before = "\n".repeat(recorded.line.saturating_sub(1) as usize);
    let indent = " ".repeat(recorded.column.saturating_sub(1) as usize);
    Ok(json!({"content": format!("{before}{indent}{}", recorded.text), "mimeType": "text/x-common-lisp"}))
}

/// Answers `scopes`.
pub(super) fn scopes(replay: &Replay, arguments: &InFrame) -> Answer {
    let (event, frame) = frame_of(replay, arguments.frame_id)?;
    let mut handles = lock(&replay.handles);
    let mut scope = |scope| handles.number(RecordedReferent::Values { event, frame, scope, path: Vec::new() });
    let (variables, values) = (scope("variables"), scope("values"));
    Ok(json!({"scopes": [
        {"name": "Variables", "presentationHint": "locals", "variablesReference": variables, "expensive": false},
        {"name": "Values", "variablesReference": values, "expensive": false},
    ]}))
}

/// Answers `variables`.
pub(super) async fn variables(connection: &Connection, replay: &Replay, arguments: Variables) -> Answer {
    let referent = lock(&replay.handles).get(arguments.variables_reference);
    let Some(RecordedReferent::Values { event, frame, scope, path }) = referent else {
        return Err("The value is no longer available.".into());
    };
    let mut shown = Vec::new();
    let mut start = arguments.start as u64;
    let end = if arguments.count == 0 { u64::MAX } else { start.saturating_add(arguments.count as u64) };
    loop {
        let count = end.saturating_sub(start).min(PAGE);
        let question = ReplayValues { event, frame, scope, path: path.clone(), start, count };
        let page = connection.session.ask_recording(replay.number, &question).await.map_err(error_message)?;
        let mut handles = lock(&replay.handles);
        let got = page.rows.len() as u64;
        for (index, value) in (start..).zip(&page.rows) {
            let inside = || RecordedReferent::Values {
                event,
                frame,
                scope,
                path: path.iter().copied().chain([index]).collect(),
            };
            let reference = if value.parts == 0 { 0 } else { handles.number(inside()) };
            let mut one = json!({"name": value.name, "value": value.value, "variablesReference": reference});
            if scope == "variables" && path.is_empty() {
                one["evaluateName"] = json!(value.name);
            }
            one["presentationHint"] = json!({"attributes": ["readOnly"]});
            shown.push(one);
        }
        start += got;
        if got == 0 || start >= page.total.min(end) {
            return Ok(json!({ "variables": shown }));
        }
    }
}

/// Answers `evaluate`, for a variable by its name, or, except for a hover, for an expression over
/// copies of the variables.
pub(super) async fn evaluate(connection: &Connection, replay: &Replay, arguments: Evaluate) -> Answer {
    let (event, frame) = match arguments.frame_id {
        Some(number) => frame_of(replay, number)?,
        None => (event(replay).await?, 0),
    };
    let question = ReplayEvaluate { event, frame, code: arguments.expression, hover: arguments.context == "hover" };
    let value = connection.session.ask_recording(replay.number, &question).await.map_err(error_message)?;
    let RecordedValue { value, parts, path, .. } = value;
    let inside = RecordedReferent::Values { event, frame, scope: "variables", path };
    let reference = if parts == 0 { 0 } else { lock(&replay.handles).number(inside) };
    Ok(json!({"result": value, "variablesReference": reference}))
}
