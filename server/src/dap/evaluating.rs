//! Evaluation: code at a frame, and new evaluations, which stop at errors.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{SetOnce, mpsc, oneshot, watch};

use super::answers::{Answer, error_message, trouble};
use super::connection::{Connection, Running};
use super::new_image;
use super::protocol::{Evaluate, Report};
use crate::ide::context::Backend;
use crate::ide::stops;
use crate::locked::lock;
use crate::model::action_outcome::{ActionOutcome, ActionStatus};
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::{EvalOutcome, EvalStatus};
use crate::model::image::{ImageError, OutputChunk};
use crate::model::inspection::LispValue;
use crate::model::stack_frame;
use crate::model::testing::TestToDebug;
use crate::session::EvalRequest;
use crate::session::debug::DebugEval;
use crate::text::position::Position;

/// The deadline of an evaluation, in seconds. It is long, since a person sees the evaluation run
/// and can end it.
const DEADLINE: f64 = 86_400.0;
/// The message of an evaluation that the client cancelled in a frame, or before it began.
const CANCELLED: &str = "cancelled";

/// Handles `evaluate`: in a frame, in the innermost stop of the client's own evaluation, or as a
/// new evaluation. `number` is the number of the request.
pub(super) async fn evaluate(connection: &Connection, number: u64, arguments: Evaluate) -> Answer {
    let terminations = connection.terminations.subscribe();
    if let Some(frame) = arguments.frame_id {
        let place = connection.frame_of(frame)?;
        return at_frame(connection, number, place, &arguments).await.map_err(Failed::message);
    }
    // The client's evaluation session waits in its stop, so code is evaluated there. A stop that
    // was just left may still be known here, since its event comes later.
    let mut left = Vec::new();
    while let Some(stop) = connection.own_stop_besides(&left) {
        match at_frame(connection, number, (stop.number, 0), &arguments).await {
            Err(Failed::Left(_)) => left.push(stop.number),
            answer => return answer.map_err(Failed::message),
        }
    }
    evaluate_new(connection, terminations, number, arguments).await
}

/// The failure of code at a frame.
enum Failed {
    /// The stop was left before the code ran.
    Left(String),
    Otherwise(String),
}

impl Failed {
    fn message(self) -> String {
        let (Failed::Left(message) | Failed::Otherwise(message)) = self;
        message
    }
}

impl From<ImageError> for Failed {
    fn from(error: ImageError) -> Failed {
        let left = matches!(&error, ImageError::Refused { kind, .. } if *kind == ErrorKind::STALE);
        if left { Failed::Left(error_message(error)) } else { Failed::Otherwise(error_message(error)) }
    }
}

/// Evaluates code at a frame of a stop. A hover only reads variables. An error, a break or a
/// breakpoint in code of the debug console is a stop of its own, and the answer comes when that
/// stop is left.
async fn at_frame(
    connection: &Connection,
    number: u64,
    (stop, frame): (u64, usize),
    arguments: &Evaluate,
) -> Result<Value, Failed> {
    if arguments.context == "hover" {
        let value =
            variable(&connection.session, stop, frame, &arguments.expression).await.map_err(Failed::Otherwise)?;
        let inside = lock(&connection.handles).parts(&value);
        return Ok(json!({"result": value.text, "type": value.kind, "variablesReference": inside}));
    }
    let is_typed = arguments.context == "repl";
    let code = DebugEval { stop, frame, code: arguments.expression.clone(), debug: is_typed, warnings: is_typed };
    let cancel = connection.cancellable(number);
    let done = tokio::select! {
        done = connection.session.at_stop(code) => done?,
        () = cancel.requested() => return Err(Failed::Otherwise(CANCELLED.into())),
    };
    connection.flush().await;
    connection.events_reported().await;
    if done.status != ActionStatus::Ok {
        return Err(Failed::Otherwise(trouble(&done)));
    }
    let inside = done.values.first().map_or(0, |value| lock(&connection.handles).parts(value));
    Ok(json!({"result": shown_values(&done), "variablesReference": inside}))
}

/// Evaluates code while no evaluation of the client is stopped.
async fn evaluate_new(
    connection: &Connection,
    terminations: watch::Receiver<u64>,
    number: u64,
    arguments: Evaluate,
) -> Answer {
    if arguments.context == "hover" {
        return Err("Nothing is stopped.".into());
    }
    let evaluation =
        NewEvaluation { code: arguments.expression, stops: true, threads: true, ..NewEvaluation::default() };
    let outcome = begin(connection, terminations, Some(number), evaluation).await.map_err(error_message)?;
    match outcome.status {
        EvalStatus::Ok => {
            let reference = outcome.references.first().copied().unwrap_or_default();
            let inside = lock(&connection.handles).parts_of(reference);
            Ok(json!({"result": values(&outcome), "variablesReference": inside}))
        }
        _ => Err(outcome.error.map_or("It did not end.".into(), |error| format!("{}: {}", error.kind, error.message))),
    }
}

/// Returns the value of a variable of a frame, for a hover, without evaluating anything.
pub(super) async fn variable<B: Backend>(at: &B, stop: u64, frame: usize, name: &str) -> Result<LispValue, String> {
    let local = stops::local(at, stop, frame, name).await.map_err(error_message)?;
    local.and_then(|local| local.value).ok_or_else(|| format!("No value of {} is known here.", name.trim()))
}

/// Returns the values of code in a frame, each on a line.
pub(super) fn shown_values(done: &ActionOutcome) -> String {
    let shown: Vec<&str> = done.values.iter().map(|value| value.text.as_str()).collect();
    if shown.is_empty() { "; no values".into() } else { shown.join("\n") }
}

/// Handles `consort/evaluate`: a new evaluation, answered with its status, values, warnings, error
/// and package.
pub(super) async fn report(connection: &Connection, number: u64, arguments: Report) -> Answer {
    let terminations = connection.terminations.subscribe();
    let Report { code, package, stops } = arguments;
    let evaluation = NewEvaluation { code, package, stops, ..NewEvaluation::default() };
    let outcome = begin(connection, terminations, Some(number), evaluation).await.map_err(error_message)?;
    Ok(reported(outcome))
}

/// Returns the body of the answer. The names of its fields decide how their texts are escaped
/// (`shown_fields`).
fn reported(outcome: EvalOutcome) -> Value {
    let values: Vec<Value> = outcome.values.iter().map(|value| json!({"value": value.text})).collect();
    let warnings: Vec<Value> =
        outcome.warnings.iter().map(|warning| json!({"typeName": warning.kind, "message": warning.message})).collect();
    let mut body = json!({
        "status": outcome.status, "values": values, "warnings": warnings, "package": outcome.package,
    });
    if let Some(error) = outcome.error {
        let frames = stack_frame::texts(error.backtrace);
        let frames: Vec<Value> = frames.into_iter().map(|frame| json!({"name": frame})).collect();
        body["error"] = json!({"typeName": error.kind, "message": error.message, "frames": frames});
        if let Some(unread) = error.unread {
            body["error"]["unread"] = unread.into();
        }
    }
    body
}

pub(super) fn values(outcome: &EvalOutcome) -> String {
    let shown: Vec<&str> = outcome.values.iter().map(|value| value.text.as_str()).collect();
    if shown.is_empty() { "; no values".into() } else { shown.join("\n") }
}

/// An evaluation to begin.
#[derive(Default)]
pub(super) struct NewEvaluation {
    pub(super) code: String,
    pub(super) package: Option<String>,
    /// The test that is run in place of the code.
    pub(super) test: Option<TestToDebug>,
    /// The URI of the document that has the code, and the position at which the code begins there.
    pub(super) place: Option<(String, Position)>,
    /// True if errors stop the evaluation.
    pub(super) stops: bool,
    /// True if threads that the evaluation starts stop as it does. False for `consort/evaluate`,
    /// whose client shows its own evaluation only.
    pub(super) threads: bool,
}

/// Evaluates code, and shows its output as it is printed. `number` is the number of the request
/// that may be cancelled. `terminations` counts the `terminate` requests since the evaluation was
/// requested.
pub(super) async fn begin(
    connection: &Connection,
    mut terminations: watch::Receiver<u64>,
    number: Option<u64>,
    evaluation: NewEvaluation,
) -> Result<EvalOutcome, ImageError> {
    /// Removes the evaluation from those that have not ended, also when it is cancelled.
    struct Turn<'a>(&'a Connection, Arc<str>);
    impl Drop for Turn<'_> {
        fn drop(&mut self) {
            lock(&self.0.evaluations).retain(|running| !Arc::ptr_eq(&running.text, &self.1));
            self.0.ended.notify_waiters();
        }
    }
    let NewEvaluation { code, package, test, place, stops, threads } = evaluation;
    let text: Arc<str> = code.as_str().into();
    let (flush, mut flushes) = mpsc::unbounded_channel::<oneshot::Sender<()>>();
    let sent = Arc::new(SetOnce::new());
    lock(&connection.evaluations).push_back(Running { text: text.clone(), sent: sent.clone(), flush });
    let _turn = Turn(connection, text);
    let (output, mut chunks) = mpsc::unbounded_channel();
    let request = EvalRequest {
        code,
        package,
        test,
        timeout: Some(DEADLINE),
        output: Some(output),
        debug: stops,
        threads,
        sent: Some(sent.clone()),
        ..EvalRequest::default()
    };
    let show = |chunk: OutputChunk| {
        let category = if chunk.stderr { "stderr" } else { "stdout" };
        connection.event("output", json!({"category": category, "output": chunk.text}));
    };
    let cancel = number.map(|number| connection.cancellable(number));
    let mut cancelled = false;
    let queued = async {
        let _order = connection.beginning.lock().await;
        new_image::wait_until_set(connection).await?;
        Ok::<_, ImageError>(connection.session.evaluate_in(connection.client, request, place))
    };
    let answer = tokio::select! {
        biased;
        () = async { if let Some(cancel) = &cancel { cancel.requested().await } }, if cancel.is_some() => {
            return Err(not_begun());
        }
        // The sender lives as long as the connection.
        _ = terminations.changed() => return Err(not_begun()),
        queued = queued => queued?,
    };
    // Dropping the answer interrupts an evaluation that was queued after the interrupt.
    if terminations.has_changed().unwrap_or_default() {
        return Err(not_begun());
    }
    tokio::pin!(answer);
    loop {
        tokio::select! {
            biased;
            Some(chunk) = chunks.recv() => show(chunk),
            answer = &mut answer => {
                // The messages of the evaluation's logpoints come by another way than its answer.
                let reported = connection.events_reported();
                tokio::pin!(reported);
                loop {
                    tokio::select! {
                        () = &mut reported => break,
                        Some(told) = flushes.recv() => {
                            show_all(&mut chunks, show);
                            // Fails if the request that waited was cancelled.
                            let _ = told.send(());
                        }
                    }
                }
                // A piece may have come with the answer, after the pieces were last read.
                show_all(&mut chunks, show);
                if let Ok(outcome) = &answer {
                    // Code that is evaluated while the client's own session is stopped has a
                    // package of its own.
                    if sent.get().is_some_and(|sent| sent.session == connection.own) {
                        *lock(&connection.package) = Some(outcome.package.clone());
                    }
                    if let Some(missing) = outcome.missing_output() {
                        connection.event("output", json!({"category": "console", "output": missing}));
                    }
                }
                return answer;
            }
            Some(told) = flushes.recv() => {
                show_all(&mut chunks, show);
                // Fails if the request that waited was cancelled.
                let _ = told.send(());
            }
            () = async { if let Some(cancel) = &cancel { cancel.requested().await } }, if cancel.is_some() && !cancelled => {
                cancelled = true;
                let Some(sent) = sent.get() else {
                    return Err(not_begun());
                };
                // The evaluation's own answer says that it was interrupted.
                connection.session.interrupt_evaluation(sent.number);
            }
        }
    }
}

/// Returns the error of an evaluation that was cancelled before it began.
fn not_begun() -> ImageError {
    ImageError::Refused { kind: ErrorKind::INTERRUPTED, message: CANCELLED.into() }
}

/// Shows the pieces of output that have arrived.
fn show_all(chunks: &mut mpsc::UnboundedReceiver<OutputChunk>, show: impl Fn(OutputChunk)) {
    while let Ok(chunk) = chunks.try_recv() {
        show(chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::evaluation::{Clipped, EvalError, EvalWarning};

    #[test]
    fn the_end_of_an_evaluation_is_told_whole() {
        let mut outcome = EvalOutcome::empty(EvalStatus::Error, Some(EvalError::new("ERROR", "a\nb")));
        outcome.values = vec![Clipped { text: "(1\n 2)".into(), omitted: 0 }];
        outcome.warnings = vec![EvalWarning { kind: "WARNING".into(), message: "w".into() }];
        let expected = json!({
            "status": "error", "values": [{"value": "(1\n 2)"}], "package": "COMMON-LISP-USER",
            "warnings": [{"typeName": "WARNING", "message": "w"}],
            "error": {"typeName": "ERROR", "message": "a\nb", "frames": []},
        });
        assert_eq!(reported(outcome), expected);
        let unread = EvalError { unread: Some(5), ..EvalError::new("READER-ERROR", "a") };
        let unread = reported(EvalOutcome::empty(EvalStatus::Error, Some(unread)));
        assert_eq!(unread["error"]["unread"], 5);
    }
}
