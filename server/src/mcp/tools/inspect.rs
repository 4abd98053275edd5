//! `inspect`: the parts of any value, a page at a time. Inspecting a variable, the last values, a
//! value that was shown or the locals of a stop needs no approval and runs no code. Code that gives
//! the value, a new value of a part, and `describe` need the approval of an evaluation.

mod arguments;

use std::time::Duration;

use serde::Serialize;
use serde_json::json;

use arguments::{Input, Show, Source, ValueAction};

use super::facts::Facts;
use super::{Call, CodeContext, Failure, Hints, Reply, Tool, debug, evaluate_lisp};
use crate::ide::clip::{LIMIT, clip};
use crate::ide::context::Backend as _;
use crate::ide::evaluate::{self, Evaluation};
use crate::ide::name_tools::Printed;
use crate::ide::stops::{self, Stack, StopAction};
use crate::ide::{inspect, value_definition};
use crate::model::action_outcome::{ActionOutcome, ActionStatus, InspectedAtStop};
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::EvalOutcome;
use crate::model::image::ImageError;
use crate::model::inspection::{Inspected, LispValue};
use crate::model::stop::Local;
use crate::session::approval::{Class, Subject};
use crate::session::debug::{
    DebugInspect, Inspect as Parts, InspectCompare, InspectDescribe, InspectEval, InspectFind, InspectSet,
    InspectTable, Operation,
};
use crate::session::failures::STOP;
use crate::session::{EvalRequest, Frontend};
use crate::shown::line;

/// The time after the deadline in which the image itself ends code at a stop.
const GRACE: Duration = Duration::from_secs(2);

/// The tool `inspect`.
pub(crate) struct Inspect;

fn failed(error: ImageError) -> Failure {
    Failure::of(error, None)
}

/// Returns a failure of the kind `not-found`.
fn not_found(message: &str) -> Failure {
    Failure { kind: ErrorKind::NOT_FOUND, message: message.into() }
}

/// Inspects a value that was shown, or the part of it to which `path` leads. Returns only the first
/// of its own parts.
async fn inspect_one(call: &Call, reference: u64, path: &[usize]) -> Result<Inspected, Failure> {
    call.session.query(Parts { reference, path: path.to_vec(), start: 0, count: 1 }).await.map_err(failed)
}

/// Work that runs code on a value, and needs a person's approval.
#[derive(Debug, Clone, Copy)]
enum Work<'a> {
    Evaluate,
    /// Describes the part to which the path leads.
    Describe(&'a [usize]),
    /// Sets the part to which the path leads.
    Set(&'a [usize]),
}

impl Work<'_> {
    /// Returns the work in words, with the part of the value that is meant, and the text of that
    /// part.
    async fn described(self, call: &Call, value: u64) -> Result<String, Failure> {
        let (doing, path, part) = match self {
            Work::Evaluate => return Ok("Evaluate code on".into()),
            Work::Describe([]) => return Ok("Describe".into()),
            Work::Describe(path) => ("Describe", path, inspect_one(call, value, path).await?.value.text),
            Work::Set(path) => {
                let (number, outer) = path.split_last().unwrap_or((&0, &[]));
                let asked = Parts { reference: value, path: outer.to_vec(), start: *number, count: 1 };
                let holder = call.session.query(asked).await.map_err(failed)?;
                let Some(part) = holder.parts.first() else {
                    return Err(not_found(&format!("{} has no part {number}.", line(&holder.value.text))));
                };
                ("Set", path, inspect::part_line(*number, part))
            }
        };
        Ok(format!("{doing} the part at {path:?}, {}, of", line(&part)))
    }
}

/// Returns the approval that code on a value needs. For a value of a person's stop this is the
/// approval of code in a frame of that stop, otherwise that of an evaluation.
async fn on_value(call: &Call, value: u64, work: Work<'_>, code: Option<String>) -> Result<(Class, Subject), Failure> {
    let looked = inspect_one(call, value, &[]).await?;
    let at = stop_of(call, looked.stop).await?;
    let place = at.as_ref().map_or_else(String::new, |at| format!(" at {at}"));
    let doing = work.described(call, value).await?;
    let what = format!("{doing} the value {value}, {}{place}", line(&looked.value.text));
    let subject = Subject { what, code, ..Subject::default() };
    Ok(match at {
        Some(_) => (Class::Debug, Subject { also: Some(Class::Eval), ..subject }),
        None => (Class::Eval, subject),
    })
}

/// Returns a stop in words. Returns `None` if there is no such stop, or if the agent's own
/// evaluation waits in it.
async fn stop_of(call: &Call, stop: Option<u64>) -> Result<Option<String>, Failure> {
    let Some(number) = stop else { return Ok(None) };
    if call.breakpoints.waits_in(number) {
        return Ok(None);
    }
    let stops = stops::all(&call.session).await.map_err(failed)?;
    Ok(stops.iter().find(|stop| stop.number == number).map(stops::in_words))
}

impl Tool for Inspect {
    type Input = Input;
    type Output = Facts;

    const NAME: &'static str = "inspect";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str =
        "Parts of a value by pages: of code, a variable, a local at a stop or failure. Names are only read.";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: true };

    async fn required_approval_async(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        let (source, doing) = input.parse()?;
        let path = input.path.as_deref().unwrap_or_default();
        let asked = match (source, doing) {
            (Source::Code(code), _) => {
                let what = "Evaluate code in the image".into();
                (Class::Eval, Subject { what, code: Some(code), ..Subject::default() })
            }
            (Source::On(value, code), _) => on_value(call, value, Work::Evaluate, Some(code)).await?,
            (Source::Frame(Stack::Stop(stop), frame, code), _) if !inspect::is_variable(&code) => {
                return debug::approval_of(call, stop, &StopAction::Eval { frame, code }).await;
            }
            (Source::Number(value), ValueAction::Set(new)) => on_value(call, value, Work::Set(path), Some(new)).await?,
            (Source::Number(value), ValueAction::Show(Show::Describe)) => {
                on_value(call, value, Work::Describe(path), None).await?
            }
            _ => return Ok(None),
        };
        Ok(Some(asked))
    }

    fn code_context(input: &Input) -> Option<CodeContext> {
        match input.parse().ok()? {
            (Source::Code(_), _) => Some(CodeContext::InSession(input.package.clone())),
            _ => None,
        }
    }

    async fn call(call: Call, input: Input) -> Reply<Facts> {
        let done = async {
            let (source, doing) = input.parse()?;
            let (start, count) = input.page();
            let path = input.path.clone().unwrap_or_default();
            match (source, doing) {
                (Source::Code(code), _) => Ok(inspect_code(&call, &input, code).await),
                (Source::On(value, code), _) => {
                    check_unchanged(&call, value, Work::Evaluate).await?;
                    let done =
                        run(&call, &input, value, InspectEval { reference: value, code, timeout: input.at_most() })
                            .await?;
                    match done.values.first() {
                        Some(shown) if done.status == ActionStatus::Ok => {
                            Ok(evaluated(&call, &input, shown, &other_results(&done)).await)
                        }
                        _ => Ok(debug::reply_of_action(&done, "value")),
                    }
                }
                (Source::Frame(stack, frame, code), _) => {
                    inspect_in_frame(&call, &input, (stack, frame, code), path).await
                }
                (Source::Number(reference), ValueAction::Show(Show::Parts)) => {
                    let asked = Parts { reference, path, start, count };
                    let looked = call.session.query(asked).await.map_err(failed)?;
                    Ok(reply(inspect::page(&looked, start, true)))
                }
                (Source::Number(value), doing) => act_on_value(&call, &input, value, path, doing).await,
                (Source::Variable(name), doing) => {
                    let shown = variable(&call, name, &input).await?;
                    match (doing, shown.reference) {
                        (ValueAction::Show(Show::Parts), _) => parts(&call, &input, &shown).await,
                        (_, 0) => Err(not_found("The value has no parts.")),
                        (doing, value) => act_on_value(&call, &input, value, path, doing).await,
                    }
                }
            }
        };
        done.await.unwrap_or_else(Reply::from)
    }
}

fn reply((text, facts): (String, impl Serialize)) -> Reply<Facts> {
    Reply::new(text, Facts::new(facts), false)
}

async fn variable(call: &Call, name: String, input: &Input) -> Result<LispValue, Failure> {
    let who = (call.client, Frontend::Mcp);
    let found = call.session.variable_value(who, name, input.package.clone()).await;
    found.map_err(|error| Failure::of(error, input.package.as_deref()))
}

/// Inspects a value that code gave, or the part of it that the call names.
async fn parts(call: &Call, input: &Input, shown: &LispValue) -> Result<Reply<Facts>, Failure> {
    let path = input.path.clone().unwrap_or_default();
    if shown.reference == 0 {
        return if path.is_empty() {
            Ok(reply(inspect::plain(shown)))
        } else {
            Err(not_found("The value has no parts."))
        };
    }
    let (start, count) = input.page();
    let asked = Parts { reference: shown.reference, path, start, count };
    let looked = call.session.query(asked).await.map_err(failed)?;
    Ok(reply(inspect::page(&looked, start, true)))
}

/// Returns the [`parts`] of the first value of code that ran, followed by `rest`, the text about
/// its other results. If the parts cannot be shown, the failure says that the code was evaluated.
async fn evaluated(call: &Call, input: &Input, shown: &LispValue, rest: &str) -> Reply<Facts> {
    let mut reply = parts(call, input, shown).await.unwrap_or_else(|Failure { kind, message }| {
        let message = format!("The code was evaluated and gave {}. {message}", line(&shown.text));
        Reply::from(Failure { kind, message })
    });
    reply.text += rest;
    reply
}

/// Returns the text about the values of code after the first, and about its output.
fn other_results(done: &ActionOutcome) -> String {
    let others = done.values.get(1..).unwrap_or_default().to_vec();
    let none = others.is_empty();
    let (text, _, _) = stops::outcome(&ActionOutcome { values: others, ..done.clone() }, "value");
    match text.strip_prefix("; No value") {
        Some(output) if none => output.to_owned(),
        _ => format!("\n; The other values:\n{text}"),
    }
}

/// Runs an operation on a value: in the thread of its stop, or as the agent's own work.
async fn run<O: Operation + Clone>(call: &Call, input: &Input, value: u64, operation: O) -> Result<O::Answer, Failure> {
    if inspect_one(call, value, &[]).await?.stop.is_some() {
        return at_stop(call, input, operation).await;
    }
    let what = format!("inspecting the value {value}");
    let work = call.session.run(call.client, what, move |_| operation, None, None);
    let deadline = input.deadline();
    match crate::steady::timeout(deadline, call.progress.report_during(work, None)).await {
        Ok(answer) => answer.map_err(failed),
        Err(_) => Err(too_long(deadline)),
    }
}

/// Runs an operation for a stop. The image limits the time of code in the stopped thread. An
/// operation that has not ended [`GRACE`] later is interrupted.
async fn at_stop<O: Operation>(call: &Call, input: &Input, operation: O) -> Result<O::Answer, Failure> {
    let deadline = input.deadline();
    let work = call.progress.report_during(call.session.at_stop(operation), None);
    match crate::steady::timeout(deadline + GRACE, work).await {
        Ok(answer) => answer.map_err(failed),
        Err(_) => Err(too_long(deadline)),
    }
}

fn too_long(deadline: Duration) -> Failure {
    let seconds = deadline.as_secs_f64();
    let message = format!("The code took longer than {seconds} s and was stopped. Give `timeout` for more.");
    Failure { kind: "timeout".into(), message }
}

/// Checks that the value, or the part that is meant, is still the one for which approval was
/// requested: a new image numbers its stops and values anew.
async fn check_unchanged(call: &Call, value: u64, work: Work<'_>) -> Result<(), Failure> {
    let Some(permit) = &call.permit else { return Ok(()) };
    let (_, subject) = on_value(call, value, work, None).await?;
    if permit.description() == subject.what {
        return Ok(());
    }
    let message = format!("The value {value} is no longer the one for which approval was requested; inspect it again.");
    Err(Failure { kind: ErrorKind::STALE, message })
}

/// Evaluates code in the session and inspects its first value, which `*` then keeps alive.
async fn inspect_code(call: &Call, input: &Input, code: String) -> Reply<Facts> {
    let request = EvalRequest {
        code,
        package: input.package.clone(),
        timeout: input.timeout,
        refer: true,
        ..EvalRequest::default()
    };
    let answer = call.progress.report_during(call.session.evaluate(call.client, request), None).await;
    let outcome = match answer {
        Ok(outcome) if outcome.error.is_none() && !outcome.values.is_empty() => outcome,
        answer => {
            let Reply { text, facts, failed, full } = evaluate_lisp::ended(answer, input.package.as_deref());
            return Reply { text, facts: Facts::new(json!(facts)), failed, full };
        }
    };
    let reference = outcome.references.first().copied().unwrap_or_default();
    let first = outcome.values.first().map_or_else(String::new, |value| value.text.clone());
    let count = outcome.values.len();
    let others = if count > 1 { format!("\n; The first of {count} values, which are in `/`.") } else { String::new() };
    let mut reply = evaluated(call, input, &LispValue { text: first, kind: None, reference }, &others).await;
    let mut evaluation = Evaluation::from(EvalOutcome { values: Vec::new(), ..outcome });
    let full = evaluation.for_agent();
    let printed = evaluate::render(&evaluation);
    let printed = printed.strip_suffix("; No value").unwrap_or(&printed);
    // The complete text has the compiler's output before the parts.
    let full = full.map(|full| format!("{}{}", full.strip_suffix("; No value").unwrap_or(&full), reply.text));
    reply.text.insert_str(0, printed);
    Reply { full, ..reply }
}

/// Returns the refusal of a name that no local variable of a frame has. The name is not looked up
/// elsewhere: its value there would be that of another thread, and `*` would be the agent's own.
fn no_local(stop: u64, frame: usize, name: &str) -> Failure {
    let name = line(name.trim());
    not_found(&format!(
        "Frame {frame} of stop {stop} has no variable {name}: list them with `debug`, action `locals`, or evaluate it \
         as code: (progn {name})."
    ))
}

/// Inspects a local variable, or the value of code, in a frame of a stop or of a frozen failure.
async fn inspect_in_frame(
    call: &Call,
    input: &Input,
    (stack, frame, code): (Stack, usize, String),
    path: Vec<usize>,
) -> Result<Reply<Facts>, Failure> {
    let session = &call.session;
    let (start, count) = input.page();
    let asked =
        |stop, path| DebugInspect { stop, frame, code: code.clone(), path, start, count, timeout: input.at_most() };
    let InspectedAtStop { action: done, inspected } = match stack {
        Stack::Failure(number) => {
            let work = session.at_failure(number);
            call.progress.report_during(work.query(asked(STOP, path)), None).await.map_err(failed)?
        }
        Stack::Stop(stop) if inspect::is_variable(&code) => {
            let local = stops::local(session, stop, frame, &code).await.map_err(failed)?;
            let shown = match local {
                Some(Local { value: Some(value), .. }) => value,
                Some(Local { name, missing, .. }) => {
                    let why = missing.unwrap_or_else(|| "it has no value".into());
                    return Err(not_found(&format!("The value of {} is not known here: {}.", line(&name), line(&why))));
                }
                None => return Err(no_local(stop, frame, &code)),
            };
            return parts(call, input, &shown).await;
        }
        Stack::Stop(stop) => {
            debug::approved_stop(call, stop, &StopAction::Eval { frame, code: code.clone() }).await?;
            // The path is followed afterwards: a path that leads nowhere must not hide the effects
            // of the code.
            at_stop(call, input, asked(stop, Vec::new())).await?
        }
    };
    let subject = if matches!(stack, Stack::Stop(_)) { "stop" } else { "failure" };
    let (outcome, facts, is_failure) = stops::outcome(&done, subject);
    let Some(inspected) = inspected.filter(|_| done.status == ActionStatus::Ok) else {
        return Ok(Reply::new(outcome, Facts::new(facts), is_failure));
    };
    // The output of the code.
    let output = outcome.strip_prefix("; No value").unwrap_or_default();
    let is_stop = matches!(stack, Stack::Stop(_));
    if is_stop && input.path.as_ref().is_some_and(|path| !path.is_empty()) {
        return Ok(evaluated(call, input, &inspected.value, output).await);
    }
    let (text, facts) = inspect::page(&inspected, start, is_stop);
    Ok(Reply::new(text + output, Facts::new(facts), false))
}

/// Performs an action on a value that was shown, except for the display of its parts.
async fn act_on_value(
    call: &Call,
    input: &Input,
    value: u64,
    mut path: Vec<usize>,
    doing: ValueAction,
) -> Result<Reply<Facts>, Failure> {
    let session = &call.session;
    let whole = input.path.as_deref().unwrap_or_default();
    let last = if matches!(doing, ValueAction::Set(_)) { path.pop() } else { None };
    let reference = if path.is_empty() { value } else { inspect_one(call, value, &path).await?.value.reference };
    if reference == 0 {
        return Err(not_found("The part has no parts of its own: inspect the value that contains it."));
    }
    let (start, count) = input.page();
    match doing {
        ValueAction::Show(Show::Table) => {
            let table = session.query(InspectTable { reference, start, count }).await.map_err(failed)?;
            Ok(reply(inspect::table(&table, start)))
        }
        ValueAction::Show(Show::Definition) => {
            let context = session.context(call.client).await;
            let found = value_definition::of(&context, reference).await.map_err(failed)?;
            Ok(reply(inspect::definitions(&found, session.workspace())))
        }
        ValueAction::Show(Show::Describe) => {
            check_unchanged(call, value, Work::Describe(whole)).await?;
            let Printed { text, error } = run(call, input, reference, InspectDescribe { reference }).await?.into();
            let text = clip(&text, LIMIT).text;
            let shown = match &error {
                Some(error) => format!("[ERROR] {error}\n\n{text}"),
                None => text.clone(),
            };
            Ok(Reply::new(shown, Facts::new(json!({"description": text, "error": error})), error.is_some()))
        }
        ValueAction::Find(text) => {
            let asked = InspectFind { reference, path: Vec::new(), text, start, count };
            Ok(reply(inspect::matching_parts(&session.query(asked).await.map_err(failed)?, start)))
        }
        ValueAction::Compare(other) => {
            let compared = session.query(InspectCompare { reference, other }).await.map_err(failed)?;
            Ok(reply(inspect::comparison(&compared)))
        }
        ValueAction::Set(code) => {
            check_unchanged(call, value, Work::Set(whole)).await?;
            let part = last.unwrap_or_default();
            Ok(debug::reply_of_action(
                &run(call, input, reference, InspectSet { reference, part, code, timeout: input.at_most() }).await?,
                "value",
            ))
        }
        ValueAction::Show(Show::Parts) => Err(not_found("Leave out `show` to see the parts of the value.")),
    }
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
