//! What runs in the live image: evaluation and the loading of systems, each of which ends whatever the code does.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::mpsc;

use super::api::{EvalParams, LoadSystemParams, Operation};
use super::instance::Instance;
use super::link::{Call, CallError, Listener, lock};
use super::pipes::append;
use super::runtime::{Runtime, lost};
use super::turns::Turn;
use crate::model::evaluation::{EvalError, EvalOutcome, EvalStatus, LoadSystemOutcome};
use crate::model::image::{ImageError, OutputChunk, Progress};

/// What code may take to stop after it was interrupted.
const GRACE: Duration = Duration::from_secs(2);
/// So may a load, which runs the compiler.
const LOAD_GRACE: Duration = Duration::from_secs(10);
/// How much longer an image as a whole may stand still (a collection) before code is held to be stuck.
const STANDSTILL: Duration = Duration::from_secs(10);
/// How long after an interrupt that found nothing it is tried again.
const AGAIN: Duration = Duration::from_millis(100);
/// What an answer may take that was on its way when the image was seen to answer.
const LATE: Duration = Duration::from_millis(500);

/// A request that runs user's code. Dropped before its answer, it is interrupted, and the image is ended if that does not help.
struct Work {
    runtime: Arc<Runtime>,
    instance: Arc<Instance>,
    call: Option<Call>,
    grace: Duration,
    /// It is captured what comes on descriptors 1 and 2.
    captured: bool,
    turn: Option<Turn>,
    answered: bool,
}

impl Work {
    /// The answer. `within`: the code's own deadline, for the words of the error.
    async fn answer<T: DeserializeOwned>(&mut self, within: Option<Duration>) -> Result<T, CallError> {
        let Some(call) = &mut self.call else { return Err(CallError::Gone) };
        let answer = match within {
            None => call.result().await,
            Some(within) => {
                let limit = within.saturating_add(self.grace);
                match tokio::time::timeout(limit, call.result()).await {
                    Ok(answer) => answer,
                    Err(_) => {
                        let reason = format!(
                            "The evaluation could not be stopped at its deadline of {} s, so the Lisp image had to be ended.",
                            within.as_secs_f64()
                        );
                        end_unless_answered(&self.instance, call, reason).await
                    }
                }
            }
        };
        self.answered = true;
        answer
    }
}

/// A call whose code was interrupted and has had its grace: wait a little longer if the whole image stands still, then end the image.
async fn end_unless_answered<T: DeserializeOwned>(
    instance: &Instance,
    call: &mut Call,
    reason: String,
) -> Result<T, CallError> {
    tokio::select! {
        biased;
        answer = call.result() => return answer,
        _ = instance.answers(STANDSTILL) => {}
    }
    match tokio::time::timeout(LATE, call.result()).await {
        Ok(answer) => answer,
        Err(_) => {
            instance.end(reason);
            call.result().await
        }
    }
}

/// Interrupt again until it is found running: a request may be between being read and being begun. Never returns.
async fn insist(instance: &Instance, id: u64) {
    loop {
        tokio::time::sleep(AGAIN).await;
        if instance.link.interrupt_found(id).await {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let Some(mut call) = self.call.take() else { return };
        if self.answered {
            if self.captured {
                self.instance.pipes.end(call.id());
            }
            return;
        }
        let (instance, turn, grace, captured) = (self.instance.clone(), self.turn.take(), self.grace, self.captured);
        // Now, and not when the task is first run: whoever evaluates next finds it interrupted.
        instance.link.interrupt(call.id(), "cancel");
        let stop = async move {
            type Any = serde::de::IgnoredAny;
            let id = call.id();
            let stopped = tokio::time::timeout(grace, async {
                tokio::select! {
                    _ = call.result::<Any>() => {}
                    () = insist(&instance, id) => {}
                }
            });
            let stopped = stopped.await;
            if stopped.is_err() {
                let reason =
                    "Code that was cancelled could not be stopped, so the Lisp image had to be ended.".to_owned();
                // Either way it runs no more, which is all that counts here.
                let _ = end_unless_answered::<Any>(&instance, &mut call, reason).await;
            }
            if captured {
                instance.pipes.end(call.id());
            }
            drop(turn);
        };
        self.runtime.tasks.spawn_on(stop, &self.runtime.handle);
    }
}

/// `eval`; see [`super::Image::eval`].
pub(crate) async fn eval(
    runtime: &Arc<Runtime>,
    params: EvalParams,
    output: Option<mpsc::UnboundedSender<OutputChunk>>,
    stopped: impl Future<Output = ()>,
) -> Result<EvalOutcome, ImageError> {
    tokio::pin!(stopped);
    let Some(within) = Duration::try_from_secs_f64(params.timeout).ok().filter(|within| !within.is_zero()) else {
        let message = format!("The timeout must be a positive number of seconds, and not {}.", params.timeout);
        return Err(ImageError::Refused { kind: "bad-params".into(), message });
    };
    let ready = async { (runtime.turns.take(&params.session).await, runtime.instance().await) };
    let (turn, instance) = tokio::select! {
        biased;
        () = &mut stopped => return Ok(interrupted_before()),
        ready = ready => ready,
    };
    let instance = instance?;
    let listener = output.clone().map_or(Listener::None, |sender| Listener::Output(sender, 0));
    let call = instance.link.call("eval", &params, Some(&params.session), listener)?;
    let id = call.id();
    instance.pipes.begin(id, output);
    let call = Some(call);
    let (runtime, instance_) = (runtime.clone(), instance.clone());
    let mut work =
        Work { runtime, instance: instance_, call, grace: GRACE, captured: true, turn: Some(turn), answered: false };
    let answer = {
        let answer = work.answer::<EvalOutcome>(Some(within));
        tokio::pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            () = &mut stopped => {
                // The image reads the two in order, so it knows of the evaluation.
                instance.link.interrupt(id, "cancel");
                answer.await
            }
        }
    };
    match answer {
        Ok(mut outcome) => {
            let (stdout, stderr) = instance.pipes.end(id);
            append(&mut outcome.stdout, stdout);
            append(&mut outcome.stderr, stderr);
            Ok(outcome)
        }
        Err(CallError::Refused(error)) => Err(error),
        Err(CallError::Gone) => {
            let runtime = work.runtime.clone();
            drop(work);
            Err(lost(&runtime, &instance).await)
        }
    }
}

/// The answer to an evaluation that was interrupted before the image heard of it.
fn interrupted_before() -> EvalOutcome {
    let message = "Stopped: the evaluation was interrupted before it began.".into();
    EvalOutcome {
        status: EvalStatus::Interrupted,
        values: Vec::new(),
        stdout: Default::default(),
        stderr: Default::default(),
        warnings: Vec::new(),
        error: Some(EvalError { kind: "INTERRUPTED".into(), message, backtrace: Vec::new() }),
        timing: None,
        package: "COMMON-LISP-USER".into(),
    }
}

/// `load-system`; see [`super::Image::load_system`].
pub(crate) async fn load_system(
    runtime: &Arc<Runtime>,
    params: LoadSystemParams,
    progress: Option<mpsc::UnboundedSender<Progress>>,
) -> Result<LoadSystemOutcome, ImageError> {
    let instance = runtime.instance().await?;
    let listener = progress.map_or(Listener::None, Listener::Progress);
    let call = Some(instance.link.call("load-system", &params, None, listener)?);
    let (runtime_, instance_) = (runtime.clone(), instance.clone());
    let mut work = Work {
        runtime: runtime_,
        instance: instance_,
        call,
        grace: LOAD_GRACE,
        captured: false,
        turn: None,
        answered: false,
    };
    match work.answer::<LoadSystemOutcome>(None).await {
        Ok(outcome) => {
            if outcome.loaded {
                lock(&runtime.plan).remember(params);
            }
            Ok(outcome)
        }
        Err(CallError::Refused(error)) => Err(error),
        Err(CallError::Gone) => Err(lost(runtime, &instance).await),
    }
}

/// An operation that runs user's code; see [`super::Image::run`].
pub(crate) async fn run<O: Operation>(
    runtime: &Arc<Runtime>,
    operation: &O,
    session: Option<&str>,
    within: Option<Duration>,
    progress: Option<mpsc::UnboundedSender<Progress>>,
) -> Result<O::Answer, ImageError> {
    let turn = match session {
        Some(session) if O::IN_TURN => Some(runtime.turns.take(session).await),
        _ => None,
    };
    let instance = runtime.instance().await?;
    let listener = progress.map_or(Listener::None, Listener::Progress);
    let call = Some(instance.link.call(O::NAME, operation, session, listener)?);
    let (runtime_, instance_) = (runtime.clone(), instance.clone());
    let mut work = Work {
        runtime: runtime_,
        instance: instance_,
        call,
        grace: LOAD_GRACE,
        captured: false,
        turn,
        answered: false,
    };
    match work.answer::<O::Answer>(within).await {
        Ok(answer) => Ok(answer),
        Err(CallError::Refused(error)) => Err(error),
        Err(CallError::Gone) => Err(lost(runtime, &instance).await),
    }
}
