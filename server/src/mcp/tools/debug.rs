//! `debug`: stopped programs and frozen failures. Queries about them need no approval. Actions at a
//! stop need approval, since the stopped program is a person's. Actions at a frozen failure need
//! none, since they are tried in a copy and change nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::facts::Facts;
use super::{Call, Failure, Hints, Reply, Tool, evaluate_lisp};
use crate::ide::failures;
use crate::ide::stops::{self, Stack, StopAction};
use crate::mcp::agent_breakpoints::NextEvent;
use crate::model::action_outcome::{ActionOutcome, ActionStatus};
use crate::model::error_kind::ErrorKind;
use crate::model::frozen::Failure as FrozenFailure;
use crate::model::image::{ImageError, ImageState};
use crate::model::stop::Stop;
use crate::session::Session;
use crate::session::approval::{Class, Subject};
use crate::session::debug::{
    DebugAbort, DebugContinue, DebugEval, DebugRestart, DebugRestartFrame, DebugReturn, DebugStep,
};
use crate::session::failures::STOP;
use crate::text::toplevel::written_forms;

/// The tool `debug`.
pub(crate) struct Debug;

/// The action.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub(crate) enum Action {
    #[default]
    Stops,
    Frames,
    Locals,
    Eval,
    Restart,
    Return,
    RestartFrame,
    Step,
    StepInto,
    StepOut,
    Continue,
    Abort,
}

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Default: stops
    #[serde(default)]
    action: Option<Action>,
    /// Number of the stop
    #[serde(default)]
    stop: Option<u64>,
    /// Instead of stop
    #[serde(default)]
    failure: Option<u64>,
    /// Default: 0
    #[serde(default)]
    frame: Option<usize>,
    /// Number of the restart
    #[serde(default)]
    restart: Option<usize>,
    /// For eval, return; a restart's argument
    #[serde(default)]
    code: Option<String>,
}

/// A call with its arguments checked.
#[derive(Debug, PartialEq, Eq)]
enum ParsedCall {
    Stops,
    Frames(Stack),
    Locals(Stack, usize),
    Do(u64, StopAction),
    /// Tries in a copy an action that would be performed at a stop.
    Try(u64, StopAction),
}

impl Input {
    fn parse(&self) -> Result<ParsedCall, Failure> {
        let missing = |name: &str, what: &str| Failure {
            kind: ErrorKind::BAD_ARGUMENTS,
            message: format!("Bad arguments for debug: `{name}` is missing: it must be {what}."),
        };
        let action = self.action.unwrap_or_default();
        if action == Action::Stops {
            return Ok(ParsedCall::Stops);
        }
        let stack = match (self.stop, self.failure) {
            (Some(stop), None) => Stack::Stop(stop),
            (None, Some(failure)) => Stack::Failure(failure),
            (None, None) => {
                return Err(missing(
                    "stop",
                    "the number of a stop, which the action `stops` lists; or give `failure`, the number of a failure",
                ));
            }
            (Some(_), Some(_)) => {
                return Err(Failure {
                    kind: ErrorKind::BAD_ARGUMENTS,
                    message: "Bad arguments for debug: give `stop` or `failure`, not both.".into(),
                });
            }
        };
        let code = || self.code.clone().ok_or_else(|| missing("code", "a form"));
        let frame = self.frame.unwrap_or_default();
        let action = match action {
            Action::Stops => return Ok(ParsedCall::Stops),
            Action::Frames => return Ok(ParsedCall::Frames(stack)),
            Action::Locals => return Ok(ParsedCall::Locals(stack, frame)),
            Action::Eval => StopAction::Eval { frame, code: code()? },
            Action::Return => StopAction::Return { frame, code: code()? },
            Action::Restart => {
                let restart = self.restart.ok_or_else(|| missing("restart", "the number of a restart of the stop"))?;
                StopAction::Restart { restart, code: self.code.clone() }
            }
            Action::RestartFrame => StopAction::RestartFrame { frame },
            Action::Step => StopAction::Step("over"),
            Action::StepInto => StopAction::Step("into"),
            Action::StepOut => StopAction::Step("out"),
            Action::Continue => StopAction::Continue,
            Action::Abort => StopAction::Abort,
        };
        match (stack, action) {
            (Stack::Stop(stop), action) => Ok(ParsedCall::Do(stop, action)),
            (Stack::Failure(_), StopAction::Step(_)) => Err(Failure {
                kind: ErrorKind::BAD_ARGUMENTS,
                message:
                    "A frozen failure does not run on: try a restart, a return or `eval`; `record` shows every step."
                        .into(),
            }),
            (Stack::Failure(failure), action) => Ok(ParsedCall::Try(failure, action)),
        }
    }
}

fn failed(error: ImageError) -> Failure {
    Failure::of(error, None)
}

impl Tool for Debug {
    type Input = Input;
    type Output = Facts;

    const NAME: &'static str = "debug";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Stopped programs: stops, frames, locals; other actions ask a person. \
With an error's `failure`: all tried in a copy, unasked.";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: true };
    const NEEDS_IMAGE: bool = false;

    async fn required_approval_async(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        let ParsedCall::Do(number, action) = input.parse()? else { return Ok(None) };
        require_running(&call.session)?;
        approval_of(call, number, &action).await
    }

    async fn call(call: Call, input: Input) -> Reply<Facts> {
        let parsed = match input.parse() {
            Ok(parsed) => parsed,
            Err(failure) => return failure.into(),
        };
        let session = &call.session;
        let shown = match parsed {
            ParsedCall::Stops => listed(session).await.map(reply),
            ParsedCall::Frames(stack @ Stack::Stop(_)) => {
                let context = session.context(call.client).await;
                stops::frames(&context, stack, session.workspace()).await.map(reply)
            }
            ParsedCall::Frames(stack @ Stack::Failure(failure)) => {
                let context = session.context_at_failure(call.client, failure).await;
                stops::frames(&context, stack, session.workspace()).await.map(reply)
            }
            ParsedCall::Locals(stack @ Stack::Stop(_), frame) => stops::locals(session, stack, frame).await.map(reply),
            ParsedCall::Locals(stack @ Stack::Failure(failure), frame) => {
                stops::locals(&session.at_failure(failure), stack, frame).await.map(reply)
            }
            ParsedCall::Try(failure, action) => attempt(session, failure, action).await,
            ParsedCall::Do(number, action) => return act(&call, number, action).await.unwrap_or_else(Reply::from),
        };
        shown.unwrap_or_else(|error| failed(error).into())
    }
}

fn reply((text, facts): (String, impl Serialize)) -> Reply<Facts> {
    Reply::new(text, Facts::new(facts), false)
}

/// Returns the answer for an action at a `stop`, or on a `value`.
pub(super) fn reply_of_action(outcome: &ActionOutcome, subject: &str) -> Reply<Facts> {
    let (text, facts, failed) = stops::outcome(outcome, subject);
    Reply::new(text, Facts::new(facts), failed)
}

/// Returns the class of approval that an action at a stop needs, and the subject of the approval.
pub(super) async fn approval_of(
    call: &Call,
    number: u64,
    action: &StopAction,
) -> Result<Option<(Class, Subject)>, Failure> {
    let (_, what) = action.at(&call.session, number).await.map_err(failed)?;
    let code = action.code().map(str::to_owned);
    if call.breakpoints.waits_in(number) {
        // The agent's own evaluation needs approval only for the code that is added to it.
        return Ok(code.map(|code| (Class::Eval, Subject { what, code: Some(code), ..Subject::default() })));
    }
    // An abort runs nothing that the evaluation would not run when it fails.
    let also = (*action != StopAction::Abort).then_some(Class::Eval);
    Ok(Some((Class::Debug, Subject { what, code, also, ..Subject::default() })))
}

/// Returns the stop of an action that was approved.
///
/// # Errors
/// The stop is not the one for which approval was requested. While a person read the question, the
/// image may have been restarted, and its stops are then numbered anew.
pub(super) async fn approved_stop(call: &Call, number: u64, action: &StopAction) -> Result<Stop, Failure> {
    let (stop, told) = action.at(&call.session, number).await.map_err(failed)?;
    let own = call.breakpoints.waits_in(number);
    if !own && call.permit.as_ref().is_none_or(|permit| permit.description() != told) {
        let message = format!("Stop {number} is no longer the one for which approval was requested; inspect it again.");
        return Err(Failure { kind: ErrorKind::STALE, message });
    }
    Ok(stop)
}

/// Fails if no image runs. None is started for this.
fn require_running(session: &Session) -> Result<(), Failure> {
    match session.image_state() {
        ImageState::Ready { .. } => Ok(()),
        _ => Err(Failure { kind: ErrorKind::STALE, message: "Nothing is stopped: no image runs.".into() }),
    }
}

/// The stops and the frozen failures.
#[derive(Debug, Serialize)]
struct Listed {
    stops: Vec<Stop>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<FrozenFailure>,
}

/// Lists the stops and the frozen failures.
async fn listed(session: &Session) -> Result<(String, Listed), ImageError> {
    let stops = if require_running(session).is_ok() { stops::all(session).await? } else { Vec::new() };
    let mut text = stops::listed(&stops);
    let failures = session.failures();
    if !failures.is_empty() {
        let more = failures::listed(&failures);
        text = if stops.is_empty() { more } else { format!("{text}\n\n{more}") };
    }
    Ok((text, Listed { stops, failures }))
}

/// Tries an action at a frozen failure that could be performed at a stop.
async fn attempt(session: &Session, failure: u64, action: StopAction) -> Result<Reply<Facts>, ImageError> {
    let stop = STOP;
    let tried = match action {
        StopAction::Eval { frame, code } => {
            session.try_at_failure(failure, DebugEval { stop, frame, code, debug: false, warnings: false }).await?
        }
        StopAction::Return { frame, code } => {
            session.try_at_failure(failure, DebugReturn { stop, frame, code }).await?
        }
        StopAction::Restart { restart, code } => {
            let kept = session.failures().into_iter().find(|kept| kept.number == failure);
            let name = match kept.map(|kept| kept.restarts.into_iter().nth(restart)) {
                Some(Some(known)) => known.name,
                Some(None) => {
                    let message = format!("The failure {failure} has no restart {restart}.");
                    return Err(ImageError::Refused { kind: ErrorKind::STALE, message });
                }
                None => None, // the failure is gone, which is reported below
            };
            let arguments = code.as_deref().map(written_forms).unwrap_or_default();
            let wanted = DebugRestart { stop, index: restart, name, arguments, input: None };
            session.try_at_failure(failure, wanted).await?
        }
        StopAction::RestartFrame { frame } => {
            session.try_at_failure(failure, DebugRestartFrame { stop, frame }).await?
        }
        StopAction::Step(_) => {
            return Err(ImageError::Refused {
                kind: ErrorKind::BAD_ARGUMENTS,
                message: "A frozen failure makes no steps.".into(),
            });
        }
        StopAction::Continue => session.try_at_failure(failure, DebugContinue { stop }).await?,
        StopAction::Abort => {
            let text = if session.drop_failure(failure) { "It is not kept any more." } else { "There is none." };
            return Ok(Reply::new(text.into(), Facts::new(json!({"status": "dropped"})), false));
        }
    };
    let (text, facts, failed) = failures::outcome(tried);
    Ok(Reply::new(text, Facts::new(facts), failed))
}

/// Performs a permitted action at a stop.
async fn act(call: &Call, number: u64, action: StopAction) -> Result<Reply<Facts>, Failure> {
    let session = &call.session;
    require_running(session)?;
    let stop = approved_stop(call, number, &action).await?;
    let resuming = match &action {
        StopAction::Eval { .. } => None,
        _ => call.breakpoints.take_waiting(number),
    };
    let done = perform(session, &stop, action).await.map_err(failed)?;
    let Some(resuming) = resuming.filter(|_| done.status == ActionStatus::Sent) else {
        return Ok(reply_of_action(&done, "stop"));
    };
    // The answer is the next event of the agent's own evaluation.
    Ok(match resuming.next(&call.progress).await {
        Some(NextEvent::Stopped(stopped)) => {
            let (text, facts) = stops::describe_for_agent(session, stopped.stop).await;
            Reply::new(text, Facts::new(facts), false)
        }
        Some(NextEvent::Ended(answer)) => {
            let Reply { text, facts, failed, .. } = evaluate_lisp::ended(*answer, None);
            Reply::new(text, Facts::new(facts), failed)
        }
        None => reply_of_action(&done, "stop"),
    })
}

async fn perform(session: &Session, at: &Stop, action: StopAction) -> Result<ActionOutcome, ImageError> {
    let stop = at.number;
    match action {
        StopAction::Eval { frame, code } => {
            session.at_stop(DebugEval { stop, frame, code, debug: false, warnings: true }).await
        }
        StopAction::Return { frame, code } => session.at_stop(DebugReturn { stop, frame, code }).await,
        StopAction::Restart { restart, code } => {
            let name = at.restarts.get(restart).and_then(|restart| restart.name.clone());
            let arguments = code.as_deref().map(written_forms).unwrap_or_default();
            session.at_stop(DebugRestart { stop, index: restart, name, arguments, input: None }).await
        }
        StopAction::RestartFrame { frame } => session.at_stop(DebugRestartFrame { stop, frame }).await,
        StopAction::Step(how) => session.at_stop(DebugStep { stop, how }).await,
        StopAction::Continue => session.at_stop(DebugContinue { stop }).await,
        StopAction::Abort => session.at_stop(DebugAbort { stop }).await,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn parse(arguments: Value) -> Result<ParsedCall, Failure> {
        serde_json::from_value::<Input>(arguments).unwrap().parse()
    }

    #[test]
    fn looking_is_no_action() {
        assert_eq!(parse(json!({})).unwrap(), ParsedCall::Stops);
        assert_eq!(parse(json!({"action": "frames", "stop": 3})).unwrap(), ParsedCall::Frames(Stack::Stop(3)));
        assert_eq!(parse(json!({"action": "locals", "stop": 3})).unwrap(), ParsedCall::Locals(Stack::Stop(3), 0));
        assert_eq!(parse(json!({"action": "frames", "failure": 3})).unwrap(), ParsedCall::Frames(Stack::Failure(3)));
        for action in ["eval", "restart", "return", "restart-frame", "continue", "abort"] {
            let all = json!({"action": action, "stop": 3, "frame": 1, "restart": 0, "code": "1"});
            assert!(matches!(parse(all).unwrap(), ParsedCall::Do(3, _)), "{action}");
            let all = json!({"action": action, "failure": 3, "frame": 1, "restart": 0, "code": "1"});
            assert!(matches!(parse(all).unwrap(), ParsedCall::Try(3, _)), "{action}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        for (arguments, name) in [
            (json!({"action": "frames"}), "`stop`"),
            (json!({"action": "abort"}), "`stop`"),
            (json!({"action": "eval", "stop": 1}), "`code`"),
            (json!({"action": "return", "stop": 1}), "`code`"),
            (json!({"action": "restart", "stop": 1, "code": "1"}), "`restart`"),
            (json!({"action": "frames", "stop": 1, "failure": 1}), "not both"),
            (json!({"action": "step", "failure": 1}), "does not run on"),
        ] {
            let failure = parse(arguments.clone()).unwrap_err();
            assert!(failure.kind == "bad-arguments" && failure.message.contains(name), "{arguments}: {failure:?}");
        }
    }
}
