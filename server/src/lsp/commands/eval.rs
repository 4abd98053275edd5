//! `consort.eval`.

use std::sync::Arc;

use lsp_types::{Position, ProgressToken, Range, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{SetOnce, mpsc};
use tower_lsp::jsonrpc::{Error, Result};

use super::{Command, seconds};
use crate::lsp::connection::Connection;
use crate::lsp::progress::Bar;
use crate::lsp::{ext, from_proto, to_proto};
use crate::model::evaluation::SentEvaluation;
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
    /// The position, given as a range.
    range: Option<Range>,
    /// The time limit in seconds.
    timeout: Option<f64>,
    #[serde(default)]
    capture_time: bool,
    /// A token with which the client is sent the beginning and the output of the evaluation.
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
    let mut request = EvalRequest {
        code: argument.code,
        package: argument.package,
        capture_time: argument.capture_time,
        timeout: seconds(Eval::NAME, argument.timeout)?,
        debug: connection.negotiated().stops,
        threads: true,
        ..EvalRequest::default()
    };
    let reports = argument.output_token.map(|token| Reports::of(token, &mut request));
    let position = argument.position.or(argument.range.map(|range| range.start)).map(from_proto::position);
    let (session, client) = (&connection.session, connection.client);
    let mut answer = match &argument.uri {
        Some(uri) => Box::pin(session.evaluate_at(client, request, uri.as_str(), position))
            as std::pin::Pin<Box<dyn Future<Output = _> + Send>>,
        None => Box::pin(session.evaluate(client, request)),
    };
    follow(connection, &mut answer, reports, &bar)
        .await?
        .map(|outcome| json!(outcome.facts()))
        .map_err(|error| to_proto::error(&error))
}

/// The reports on an evaluation that its client is sent before the answer.
pub(super) struct Reports {
    /// The client's token.
    token: Value,
    /// The cell that is set when the evaluation begins; `None`: the client has been told.
    begun: Option<Arc<SetOnce<SentEvaluation>>>,
    /// The receiver of the output; `None`: no more can come.
    chunks: Option<mpsc::UnboundedReceiver<OutputChunk>>,
}

impl Reports {
    /// Makes a request report its beginning and its output.
    pub(super) fn of(token: Value, request: &mut EvalRequest) -> Reports {
        let (begun, (output, chunks)) = (Arc::default(), mpsc::unbounded_channel());
        (request.sent, request.output) = (Some(Arc::clone(&begun)), Some(output));
        Reports { token, begun: Some(begun), chunks: Some(chunks) }
    }

    /// Sends the next report. Waits forever if there can be none.
    async fn send_next(&mut self, connection: &Connection) {
        if let Some(begun) = &self.begun {
            // Nothing is printed before the beginning.
            begun.wait().await;
            return self.send_begun(connection);
        }
        if let Some(chunks) = &mut self.chunks {
            if let Some(chunk) = chunks.recv().await {
                return self.send_output(connection, &chunk);
            }
            self.chunks = None;
        }
        std::future::pending().await
    }

    /// Sends the reports that have arrived.
    fn send_rest(&mut self, connection: &Connection) {
        if self.begun.as_ref().is_some_and(|begun| begun.initialized()) {
            self.send_begun(connection);
        }
        while let Some(Ok(chunk)) = self.chunks.as_mut().map(mpsc::UnboundedReceiver::try_recv) {
            self.send_output(connection, &chunk);
        }
    }

    fn send_begun(&mut self, connection: &Connection) {
        self.begun = None;
        connection.peer.notify(ext::BEGUN, json!({"token": self.token}));
    }

    fn send_output(&self, connection: &Connection, chunk: &OutputChunk) {
        let stream = if chunk.stderr { "stderr" } else { "stdout" };
        connection.peer.notify(ext::OUTPUT, json!({"token": self.token, "stream": stream, "text": chunk.text}));
    }
}

/// Waits for an answer, and sends the reports until then.
///
/// # Errors
/// The evaluation was cancelled.
pub(super) async fn follow<T>(
    connection: &Connection,
    mut answer: impl Future<Output = T> + Unpin,
    mut reports: Option<Reports>,
    bar: &Bar,
) -> Result<T> {
    loop {
        let next = async {
            match &mut reports {
                Some(reports) => reports.send_next(connection).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = next => {}
            answer = &mut answer => {
                // Reports may have arrived with the answer.
                if let Some(reports) = &mut reports {
                    reports.send_rest(connection);
                }
                return Ok(answer);
            }
            () = bar.cancelled.cancelled() => return Err(Error::request_cancelled()),
        }
    }
}
