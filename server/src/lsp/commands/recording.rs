//! The commands `consort.record` and `consort.recordingQuery`.

use lsp_types::{Position, ProgressToken, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::{Error, Result};

use super::{Command, at_place, seconds};
use crate::ide::recording::{Question, QuestionKind, answered, recorded};
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::session::path_of_uri;
use crate::session::recordings::{NextCall, RecordRequest};
use crate::text::forms::toplevel_form;
use crate::text::position::{PositionEncoding, to_position};

/// Records a form, a test, or the next call of a function.
pub(super) struct Record;

/// The argument of `consort.record`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Argument {
    /// The code to run. If it is absent, the top-level form at `position` in `uri` is run.
    code: Option<String>,
    /// The name of the test to run instead of code.
    test: Option<String>,
    /// The name of a function whose next call in the image is recorded, instead of code.
    call: Option<String>,
    package: Option<String>,
    uri: Option<Url>,
    position: Option<Position>,
    #[serde(default)]
    functions: Vec<String>,
    /// The time limit in seconds.
    timeout: Option<f64>,
}

impl Command for Record {
    type Argument = Argument;
    const NAME: &'static str = "consort.record";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"code": "..." or "test": "..." or "call": "...", "package"?: "...", "functions"?: ["..."], "timeout"?: seconds}] or, for the top-level form at a place, "uri" and "position" instead of "code""#;

    async fn execute(connection: &Connection, argument: Argument, token: Option<ProgressToken>) -> Result<Value> {
        let Argument { code, test, call, package, uri, position, functions, timeout } = argument;
        let timeout = seconds(Record::NAME, timeout)?;
        if let Some(function) = call {
            if code.is_some() || test.is_some() || function.trim().is_empty() {
                return Err(Error::invalid_params(format!("Its `arguments` are {}.", Record::EXPECTS)));
            }
            let package = match (package, uri, position) {
                (None, Some(uri), Some(position)) => at_place(connection, &uri, position).await?.package,
                (package, ..) => package,
            };
            return next_call(connection, NextCall { function, package, functions, timeout }, token).await;
        }
        let bar = connection.bars.begin(token, false, "Recording", true);
        let request = match (code, test, uri, position) {
            (None, test @ Some(_), Some(uri), Some(position)) => {
                let package = match package {
                    // A test may be named from any document. A document that is not open here has
                    // no known package.
                    None => at_place(connection, &uri, position).await.ok().and_then(|place| place.package),
                    package => package,
                };
                RecordRequest { test, package, functions, timeout, ..RecordRequest::default() }
            }
            (code, None, Some(uri), Some(position)) => {
                let place = at_place(connection, &uri, position).await?;
                let text = place.document.text();
                let span = toplevel_form(&place.document, place.offset);
                let (code, from) = match (code, span) {
                    (Some(code), _) => (code, None),
                    (None, Some(span)) => {
                        let start = to_position(text, span.start, PositionEncoding::Utf16);
                        let file = path_of_uri(uri.as_str()).map(|file| (file, start.line + 1, start.column + 1));
                        (text.slice(span.start..span.end).to_string(), file)
                    }
                    (None, None) => return Err(Error::invalid_params("There is no form at that place.")),
                };
                let package = package.or(place.package);
                RecordRequest { code, test: None, package, functions, place: from, timeout }
            }
            (Some(code), None, ..) => RecordRequest { code, package, functions, timeout, ..RecordRequest::default() },
            (None, test @ Some(_), ..) => {
                RecordRequest { test, package, functions, timeout, ..RecordRequest::default() }
            }
            _ => return Err(Error::invalid_params(format!("Its `arguments` are {}.", Record::EXPECTS))),
        };
        let session = &connection.session;
        let (recording, answer) = tokio::select! {
            answer = session.record(connection.client, request) => answer.map_err(|error| to_proto::error(&error))?,
            () = bar.cancelled.cancelled() => return Err(Error::request_cancelled()),
        };
        let (text, facts, _) = recorded(recording, answer, session.workspace());
        Ok(json!({"text": text, "recording": facts}))
    }
}

/// Records the next call of a function. The wait can be cancelled.
async fn next_call(connection: &Connection, next: NextCall, token: Option<ProgressToken>) -> Result<Value> {
    let title = format!("Recording the next call of {}", crate::shown::line(&next.function));
    let bar = connection.bars.begin(token, connection.negotiated().progress, &title, true);
    let session = &connection.session;
    let (progress, steps) = mpsc::unbounded_channel();
    let answer = session.record_next(connection.client, next, Some(progress));
    let (recording, answer) = bar.follow(steps, answer).await?.map_err(|error| to_proto::error(&error))?;
    let (text, facts, _) = recorded(recording, answer, session.workspace());
    Ok(json!({"text": text, "recording": facts}))
}

/// Queries a recording.
pub(super) struct RecordingQuery;

/// The argument of `consort.recordingQuery`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordingQueryArgument {
    recording: u64,
    #[serde(default)]
    query: QuestionKind,
    of: Option<String>,
    function: Option<String>,
    event: Option<u64>,
    start: Option<u64>,
}

impl Command for RecordingQuery {
    type Argument = RecordingQueryArgument;
    const NAME: &'static str = "consort.recordingQuery";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"recording": number, "query"?: "tree" | "values" | "history" | "when" | "error" | "event" | "origin", "of"?: "...", "function"?: "...", "event"?: number, "start"?: number}]"#;

    async fn execute(
        connection: &Connection,
        argument: RecordingQueryArgument,
        _: Option<ProgressToken>,
    ) -> Result<Value> {
        let session = &connection.session;
        let RecordingQueryArgument { recording, query, of, function, event, start } = argument;
        let question = Question { query, of, function, event, start };
        let query = session.recording_query(&question).map_err(|error| to_proto::error(&error))?;
        let answer = session.ask_recording(recording, &query).await;
        let answer = answer.map_err(|error| to_proto::error(&error))?;
        Ok(json!({"text": answered(&answer, session.workspace()), "answer": answer}))
    }
}
