//! Operations that run code in the live image: evaluations, loads of systems, and other operations
//! that run the user's code. Code that passes its deadline, or whose request is dropped, is
//! interrupted. If it does not stop then, the image is ended.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::{broadcast, mpsc};

use super::api::debug::{DebugStops, Stops};
use super::api::{EvalParams, LoadSystemParams, Operation};
use super::instance::Instance;
use super::link::{Call, CallError, Listener};
use super::pipes::append;
use super::runtime::{Runtime, lost_error};
use super::stops::while_running;
use super::suspended;
use super::turns::Turn;
use crate::locked::lock;
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::{Clipped, EvalError, EvalOutcome, EvalStatus, LoadSystemOutcome, SentEvaluation};
use crate::model::image::{ImageError, OutputChunk, Progress};
use crate::model::input::InputTarget;
use crate::model::stop::StopEvent;

/// The time that an interrupted evaluation has to stop.
const GRACE: Duration = Duration::from_secs(2);
/// The time that any other interrupted operation has to stop. A load may be compiling.
const LOAD_GRACE: Duration = Duration::from_secs(10);
/// The additional time that the whole image may be paused, as by a garbage collection, before the
/// code is considered stuck.
const COLLECTION_GRACE: Duration = Duration::from_secs(10);
/// The pause before each repeated interrupt of a request that was not found running.
const INTERRUPT_RETRY_INTERVAL: Duration = Duration::from_millis(100);
/// The time limit of the last wait for an answer, which may already be on its way.
const FINAL_ANSWER_TIMEOUT: Duration = Duration::from_millis(500);

/// A request that runs the user's code. Dropping it before its answer interrupts the code, and ends
/// the image if the code does not stop.
struct RunningRequest {
    runtime: Arc<Runtime>,
    instance: Arc<Instance>,
    call: Option<Call>,
    grace: Duration,
    /// The capture of output on descriptors 1 and 2.
    capture: Option<Capture>,
    turn: Option<Turn>,
    answered: bool,
}

impl RunningRequest {
    /// Creates the work of a request that captures no output and takes no turn.
    fn new(runtime: &Arc<Runtime>, instance: &Arc<Instance>, call: Call) -> RunningRequest {
        RunningRequest {
            runtime: runtime.clone(),
            instance: instance.clone(),
            call: Some(call),
            grace: LOAD_GRACE,
            capture: None,
            turn: None,
            answered: false,
        }
    }

    /// Waits for the answer. `within` has the code's own deadline, counted in running time, and a
    /// receiver of stop events that was created before the request was sent. Without `within` the
    /// wait has no limit.
    async fn answer<T: DeserializeOwned>(
        &mut self,
        within: Option<(Duration, broadcast::Receiver<StopEvent>)>,
    ) -> Result<T, CallError> {
        let Some(call) = &mut self.call else { return Err(CallError::Gone) };
        let answer = match within {
            None => call.result().await,
            Some((within, stops)) => {
                let limit = within.saturating_add(self.grace);
                let id = call.id();
                let instance = self.instance.clone();
                let reread = || {
                    let instance = instance.clone();
                    async move {
                        let call = instance.link.call(DebugStops::NAME, &DebugStops {}, None, Listener::None);
                        call.ok()?.result::<Stops>().await.ok()
                    }
                };
                match while_running(limit, stops, id, call.result(), reread).await {
                    Some(answer) => answer,
                    None => {
                        if let Some(why) = suspended::suspended(self.instance.ready.pid).await {
                            let why = format!("{why} The evaluation is interrupted then.");
                            return Err(CallError::Refused(ImageError::Unavailable(why)));
                        }
                        let reason = format!(
                            "The evaluation could not be stopped at its deadline of {} s, so the Lisp image had to be ended.",
                            within.as_secs_f64()
                        );
                        end_unless_answered(&self.instance, call, self.grace, reason).await
                    }
                }
            }
        };
        self.answered = true;
        answer
    }
}

/// Waits for a call whose interrupted code has used up its grace period, then ends the image for
/// `reason`. The wait is longer while the whole image is paused, and has no limit while it is
/// suspended.
async fn end_unless_answered<T: DeserializeOwned>(
    instance: &Instance,
    call: &mut Call,
    grace: Duration,
    reason: String,
) -> Result<T, CallError> {
    loop {
        tokio::select! {
            biased;
            answer = call.result() => return answer,
            _ = instance.answers(COLLECTION_GRACE) => {}
        }
        if suspended::suspended(instance.ready.pid).await.is_none() {
            break;
        }
        tokio::select! {
            biased;
            answer = call.result() => return answer,
            () = suspended::continued(instance.ready.pid) => {}
        }
        // The interrupted code had no time to stop while the image was suspended.
        if let Ok(answer) = crate::steady::timeout(grace, call.result()).await {
            return answer;
        }
    }
    match crate::steady::timeout(FINAL_ANSWER_TIMEOUT, call.result()).await {
        Ok(answer) => answer,
        Err(_) => {
            instance.end(reason);
            call.result().await
        }
    }
}

/// Repeats the interrupt until the request is found running, and never returns. A request that the
/// image has read may not have begun yet.
async fn interrupt_until_running(instance: &Instance, id: u64) {
    loop {
        crate::steady::sleep(INTERRUPT_RETRY_INTERVAL).await;
        if instance.link.interrupt_found(id).await {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let Some(mut call) = self.call.take() else { return };
        if self.answered {
            return;
        }
        let (instance, grace) = (self.instance.clone(), self.grace);
        let (turn, capture) = (self.turn.take(), self.capture.take());
        // The interrupt is sent here and not in the task, so that it precedes the next evaluation.
        instance.link.interrupt(call.id(), "cancel");
        let stop = async move {
            type Any = serde::de::IgnoredAny;
            let id = call.id();
            let stopped = crate::steady::timeout(grace, async {
                tokio::select! {
                    _ = call.result::<Any>() => {}
                    () = interrupt_until_running(&instance, id) => {}
                }
            });
            let stopped = stopped.await;
            if stopped.is_err() {
                let reason =
                    "Code that was cancelled could not be stopped, so the Lisp image had to be ended.".to_owned();
                // The code has ended, or its image has; nobody waits for the result.
                let _ = end_unless_answered::<Any>(&instance, &mut call, grace, reason).await;
            }
            drop((capture, turn));
        };
        self.runtime.tasks.spawn_on(stop, &self.runtime.handle);
    }
}

/// The capture of an evaluation's output on descriptors 1 and 2, until dropped.
struct Capture {
    instance: Arc<Instance>,
    id: u64,
}

impl Capture {
    fn begin(instance: &Arc<Instance>, id: u64, output: Option<mpsc::UnboundedSender<OutputChunk>>) -> Capture {
        instance.pipes.begin(id, output);
        Capture { instance: instance.clone(), id }
    }

    /// Ends the capture. Returns the output on descriptor 1, then that on descriptor 2.
    fn end(self) -> (Clipped, Clipped) {
        self.instance.pipes.end(self.id)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.instance.pipes.end(self.id);
    }
}

/// Runs `eval`; see [`super::Image::eval`].
pub(crate) async fn eval(
    runtime: &Arc<Runtime>,
    params: EvalParams,
    output: Option<mpsc::UnboundedSender<OutputChunk>>,
    input: Option<InputTarget>,
    stopped: impl Future<Output = ()>,
) -> Result<EvalOutcome, ImageError> {
    tokio::pin!(stopped);
    let Some(within) = Duration::try_from_secs_f64(params.timeout).ok().filter(|within| !within.is_zero()) else {
        let message = format!("The timeout must be a positive number of seconds, and not {}.", params.timeout);
        return Err(ImageError::Refused { kind: ErrorKind::BAD_ARGUMENTS, message });
    };
    let ready = async { (runtime.turns.take(&params.session).await, runtime.instance().await) };
    let (turn, instance) = tokio::select! {
        biased;
        () = &mut stopped => return Ok(interrupted_before()),
        ready = ready => ready,
    };
    let instance = instance?;
    let listener = output.clone().map_or(Listener::None, |sender| Listener::Output(sender, 0));
    let stops = runtime.stops.subscribe();
    let id = instance.link.number();
    // The number and the capture must exist before the request is sent: the code may print, and
    // end, before this task runs on.
    if let Some(sent) = &params.sent {
        // Setting fails only for parameters that were sent before.
        let _ = sent.set(SentEvaluation { number: id, session: params.session.clone() });
    }
    let capture = Capture::begin(&instance, id, output);
    let call = instance.link.call_with_input(id, "eval", &params, Some(&params.session), listener, input.as_ref())?;
    let mut work = RunningRequest::new(runtime, &instance, call);
    (work.grace, work.capture, work.turn) = (GRACE, Some(capture), Some(turn));
    let answer = {
        let answer = work.answer::<EvalOutcome>(Some((within, stops)));
        tokio::pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            () = &mut stopped => {
                // The image reads frames in order, so it has read the evaluation before the
                // interrupt.
                instance.link.interrupt(id, "cancel");
                answer.await
            }
        }
    };
    match answer {
        Ok(mut outcome) => {
            let (stdout, stderr) = work.capture.take().map(Capture::end).unwrap_or_default();
            append(&mut outcome.stdout, stdout);
            append(&mut outcome.stderr, stderr);
            Ok(outcome)
        }
        Err(CallError::Refused(error)) => Err(error),
        Err(CallError::Gone) => {
            let runtime = work.runtime.clone();
            drop(work);
            Err(lost_error(&runtime, &instance).await)
        }
    }
}

/// Returns the answer to an evaluation that was interrupted before it was sent to the image.
fn interrupted_before() -> EvalOutcome {
    let message = "Stopped: the evaluation was interrupted before it began.";
    EvalOutcome::empty(EvalStatus::Interrupted, Some(EvalError::new("INTERRUPTED", message)))
}

/// Runs `load-system`; see [`super::Image::load_system`].
pub(crate) async fn load_system(
    runtime: &Arc<Runtime>,
    params: LoadSystemParams,
    progress: Option<mpsc::UnboundedSender<Progress>>,
    input: Option<InputTarget>,
) -> Result<LoadSystemOutcome, ImageError> {
    let instance = runtime.instance().await?;
    let listener = progress.map_or(Listener::None, Listener::Progress);
    let call = instance.link.call_with_input(
        instance.link.number(),
        "load-system",
        &params,
        None,
        listener,
        input.as_ref(),
    )?;
    let mut work = RunningRequest::new(runtime, &instance, call);
    match work.answer::<LoadSystemOutcome>(None).await {
        Ok(outcome) => {
            if outcome.loaded {
                lock(&runtime.plan).remember(params);
            }
            Ok(outcome)
        }
        Err(CallError::Refused(error)) => Err(error),
        Err(CallError::Gone) => Err(lost_error(runtime, &instance).await),
    }
}

/// Waits for the session's turn.
///
/// # Errors
/// `busy`: the session's evaluation is stopped in the debugger, or stops during the wait.
async fn turn_or_stop(runtime: &Arc<Runtime>, session: &str) -> Result<Turn, ImageError> {
    let turn = runtime.turns.take(session);
    // The search for a stop begins only if the turn is not free at once.
    let stopped = async {
        let mut events = runtime.stops.subscribe();
        let mut stop = current_stop_number(runtime, session).await;
        loop {
            if let Some(stop) = stop {
                return stop;
            }
            stop = match events.recv().await {
                Ok(StopEvent::Stopped(event)) => (event.session.as_deref() == Some(session)).then_some(event.number),
                Ok(_) => None,
                Err(broadcast::error::RecvError::Lagged(_)) => current_stop_number(runtime, session).await,
                // The sender lives as long as the image's runtime.
                Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
            };
        }
    };
    tokio::select! {
        biased;
        turn = turn => Ok(turn),
        stop = stopped => {
            let message = format!(
                "An earlier evaluation of this session is stopped in the debugger (stop {stop}): leave the stop, then try again."
            );
            Err(ImageError::Refused { kind: ErrorKind::BUSY, message })
        }
    }
}

/// Returns the number of the stop at which the session's evaluation is. Returns `None` if it is at
/// none, or if the image does not answer.
async fn current_stop_number(runtime: &Arc<Runtime>, session: &str) -> Option<u64> {
    let instance = runtime.instance().await.ok()?;
    let call = instance.link.call(DebugStops::NAME, &DebugStops {}, None, Listener::None);
    let stops = call.ok()?.result::<Stops>().await.ok()?.stops;
    stops.iter().find(|stop| stop.session.as_deref() == Some(session)).map(|stop| stop.number)
}

/// Runs an operation that runs the user's code; see [`super::Image::run`].
pub(crate) async fn run<O: Operation>(
    runtime: &Arc<Runtime>,
    operation: &O,
    session: Option<&str>,
    within: Option<Duration>,
    progress: Option<mpsc::UnboundedSender<Progress>>,
    input: Option<InputTarget>,
) -> Result<O::Answer, ImageError> {
    let turn = match session {
        Some(session) if O::IN_TURN => Some(turn_or_stop(runtime, session).await?),
        _ => None,
    };
    let instance = runtime.instance().await?;
    let listener = progress.map_or(Listener::None, Listener::Progress);
    let within = within.map(|within| (within, runtime.stops.subscribe()));
    let call =
        instance.link.call_with_input(instance.link.number(), O::NAME, operation, session, listener, input.as_ref())?;
    let mut work = RunningRequest::new(runtime, &instance, call);
    work.turn = turn;
    match work.answer::<O::Answer>(within).await {
        Ok(answer) => Ok(answer),
        Err(CallError::Refused(error)) => Err(error),
        Err(CallError::Gone) => Err(lost_error(runtime, &instance).await),
    }
}
