//! `consort.eval`.

use lsp_types::{Position, ProgressToken, Range, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::{Error, Result};

use super::{Command, next, seconds};
use crate::lsp::connection::Connection;
use crate::lsp::progress::Bar;
use crate::lsp::{ext, from_proto, to_proto};
use crate::model::image::OutputChunk;
use crate::session::EvalRequest;

/// Evaluates code.
pub(super) struct Eval;

/// The argument of `consort.eval`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Argument {
    code: String,
    package: Option<String>,
    /// The document that contains the code.
    uri: Option<Url>,
    /// The start of the code in the document.
    position: Option<Position>,
    /// The position given as a range.
    range: Option<Range>,
    /// Seconds.
    timeout: Option<f64>,
    #[serde(default)]
    capture_time: bool,
    /// Streams output as `consort/output` with this token during the evaluation.
    output_token: Option<Value>,
}

impl Command for Eval {
    type Argument = Argument;
    const NAME: &'static str = "consort.eval";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"code": "...", "package"?: "...", "uri"?: "file:///...", "position"?: {"line", "character"}, "range"?: {...}, "timeout"?: seconds, "captureTime"?: bool, "outputToken"?: token}]"#;

    async fn execute(connection: &Connection, argument: Argument, token: Option<ProgressToken>) -> Result<Value> {
        let bar = connection.bars.begin(token, false, "Evaluating", true);
        evaluate(connection, argument, bar).await
    }
}

async fn evaluate(connection: &Connection, argument: Argument, bar: Bar) -> Result<Value> {
    let (output, mut chunks) = match &argument.output_token {
        Some(_) => {
            let (sender, receiver) = mpsc::unbounded_channel();
            (Some(sender), Some(receiver))
        }
        None => (None, None),
    };
    let request = EvalRequest {
        code: argument.code,
        package: argument.package,
        capture_time: argument.capture_time,
        timeout: seconds(Eval::NAME, argument.timeout)?,
        output,
        debug: connection.negotiated().stops,
        threads: true,
        ..EvalRequest::default()
    };
    let position = argument.position.or(argument.range.map(|range| range.start)).map(from_proto::position);
    let (session, client) = (&connection.session, connection.client);
    let mut answer = match &argument.uri {
        Some(uri) => Box::pin(session.evaluate_at(client, request, uri.as_str(), position))
            as std::pin::Pin<Box<dyn Future<Output = _> + Send>>,
        None => Box::pin(session.evaluate(client, request)),
    };
    follow(connection, &mut answer, &mut chunks, argument.output_token.as_ref(), &bar)
        .await?
        .map(|outcome| outcome.facts())
        .map_err(|error| to_proto::error(&error))
}

/// Waits for an answer and forwards the output printed until then.
///
/// # Errors
/// The evaluation was cancelled.
pub(super) async fn follow<T>(
    connection: &Connection,
    mut answer: impl Future<Output = T> + Unpin,
    chunks: &mut Option<mpsc::UnboundedReceiver<OutputChunk>>,
    token: Option<&Value>,
    bar: &Bar,
) -> Result<T> {
    let show = |chunk: OutputChunk| {
        let stream = if chunk.stderr { "stderr" } else { "stdout" };
        connection.peer.notify(ext::OUTPUT, json!({"token": token, "stream": stream, "text": chunk.text}));
    };
    loop {
        tokio::select! {
            biased;
            Some(chunk) = next(chunks) => show(chunk),
            answer = &mut answer => {
                // A piece may have come with the answer, after the look at the pieces.
                while let Some(Ok(chunk)) = chunks.as_mut().map(mpsc::UnboundedReceiver::try_recv) {
                    show(chunk);
                }
                return Ok(answer);
            }
            () = bar.cancelled.cancelled() => return Err(Error::request_cancelled()),
        }
    }
}
