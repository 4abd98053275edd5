//! `workspace/executeCommand`. Each command sends its event to the session before it first waits (see `transport`).

use lsp_types::ExecuteCommandParams;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::{Error, Result};

use super::ext::{self, COMMANDS};
use super::front::Front;
use super::progress::Bar;
use super::{from_proto, to_proto};
use crate::image::Progress;
use crate::session::{EvalRequest, Level, describe_image};

/// Execute a command.
pub(super) async fn execute(front: &Front, params: ExecuteCommandParams) -> Result<Value> {
    let arguments = params.arguments;
    let token = params.work_done_progress_params.work_done_token;
    match params.command.as_str() {
        ext::EVAL => {
            let argument = ext::argument(ext::EVAL, arguments)?;
            let bar = front.bars.begin(token, false, "Evaluating", true);
            evaluate(front, argument, bar).await
        }
        ext::LOAD_SYSTEM => {
            let argument: ext::LoadSystem = ext::argument(ext::LOAD_SYSTEM, arguments)?;
            let title = format!("Loading {}", argument.system);
            let bar = front.bars.begin(token, front.negotiated().progress, &title, true);
            load_system(front, argument, bar).await
        }
        ext::RESTART_IMAGE => {
            let ext::Nothing {} = ext::argument(ext::RESTART_IMAGE, arguments)?;
            let restarted = front.session.restart_image(front.client);
            let _bar = front.bars.begin(token, false, "Restarting the Lisp image", false);
            restarted.await.map_err(|error| to_proto::error(&error))?;
            Ok(describe_image(&front.session.image_state()))
        }
        ext::INTERRUPT => {
            let ext::Interrupt { everything } = ext::argument(ext::INTERRUPT, arguments)?;
            let interrupted = front.session.interrupt(front.client, everything).await;
            interrupted.map(|count| json!({"interrupted": count})).map_err(|error| to_proto::error(&error))
        }
        ext::STATUS => {
            let ext::Nothing {} = ext::argument(ext::STATUS, arguments)?;
            serde_json::to_value(front.session.status().await)
                .map_err(|error| Error { message: error.to_string().into(), ..Error::internal_error() })
        }
        unknown => {
            Err(Error::invalid_params(format!("There is no command {unknown}. There are {}.", COMMANDS.join(", "))))
        }
    }
}

async fn evaluate(front: &Front, argument: ext::Eval, bar: Bar) -> Result<Value> {
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
        timeout: ext::seconds(ext::EVAL, argument.timeout)?,
        origin: None,
        output,
    };
    let position = argument.position.or(argument.range.map(|range| range.start)).map(from_proto::position);
    let (session, client) = (&front.session, front.client);
    let mut answer = match &argument.uri {
        Some(uri) => Box::pin(session.evaluate_at(client, request, uri.as_str(), position))
            as std::pin::Pin<Box<dyn Future<Output = _> + Send>>,
        None => Box::pin(session.evaluate(client, request)),
    };
    let outcome = loop {
        tokio::select! {
            // Output first: it precedes the answer.
            biased;
            Some(chunk) = next(&mut chunks) => {
                let stream = if chunk.stderr { "stderr" } else { "stdout" };
                let params = json!({"token": argument.output_token, "stream": stream, "text": chunk.text});
                front.peer.notify(ext::OUTPUT, params);
            }
            outcome = &mut answer => break outcome,
            () = bar.cancelled.cancelled() => return Err(Error::request_cancelled()),
        }
    };
    outcome.map(|outcome| to_proto::outcome(&outcome)).map_err(|error| to_proto::error(&error))
}

/// The next piece of output; waits for ever when none is to come.
async fn next<T>(chunks: &mut Option<mpsc::UnboundedReceiver<T>>) -> Option<T> {
    if let Some(receiver) = chunks {
        if let Some(chunk) = receiver.recv().await {
            return Some(chunk);
        }
        *chunks = None;
    }
    std::future::pending().await
}

async fn load_system(front: &Front, argument: ext::LoadSystem, bar: Bar) -> Result<Value> {
    let ext::LoadSystem { system, force } = argument;
    let (progress, steps) = mpsc::unbounded_channel();
    let answer = front.session.load_system(front.client, system.clone(), force, Some(progress));
    tokio::pin!(answer);
    let mut steps = Some(steps);
    let outcome = loop {
        tokio::select! {
            biased;
            Some(step) = next(&mut steps) => bar.report(&step.message, per_cent(&step)),
            outcome = &mut answer => break outcome,
            () = bar.cancelled.cancelled() => return Err(Error::request_cancelled()),
        }
    };
    let outcome = outcome.map_err(|error| to_proto::error(&error))?;
    if !outcome.loaded {
        // A quick fix runs this command and ignores its result.
        let why = outcome.outcome.error.as_ref().map(|error| error.message.as_str()).unwrap_or("see the output");
        front.show(Level::Error, &format!("Loading {system} failed: {why}"));
    }
    let mut result = to_proto::outcome(&outcome.outcome);
    result["loaded"] = outcome.loaded.into();
    Ok(result)
}

fn per_cent(step: &Progress) -> Option<u32> {
    let total = step.total.filter(|total| *total > 0)?;
    u32::try_from(100 * step.done.min(total) / total).ok()
}
