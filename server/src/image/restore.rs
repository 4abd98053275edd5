//! The contents that a new image gets before its first use: the init files, then the systems that
//! were loaded and the code that was reloaded through Consort, in order.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::api::reload::ReloadOutcome;
use super::instance::Instance;
use super::link::{CallError, Listener, lock};
use super::plan::{Restoration, Step};
use super::runtime::Runtime;
use crate::config::InitFile;
use crate::model::evaluation::{EvalError, EvalOutcome, EvalStatus, LoadSystemOutcome};
use crate::search_paths;

/// The time limit of an init file, after which it is interrupted.
const INIT_LIMIT: Duration = Duration::from_secs(60);
/// The time limit for loading one system.
const SYSTEM_LIMIT: Duration = Duration::from_secs(600);
/// The time that an interrupted step has to stop before the image is ended.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Returns the init files that a plain `sbcl` would load, or the configured one.
fn init_files(runtime: &Runtime) -> Vec<Step> {
    match &runtime.config().init_file {
        InitFile::None => Vec::new(),
        InitFile::File(path) => vec![Step::File(runtime.workspace.join(path), true)],
        InitFile::Default => {
            let home = search_paths::home().map(|home| home.join(".sbclrc"));
            std::iter::once(PathBuf::from("/etc/sbclrc")).chain(home).map(|path| Step::File(path, false)).collect()
        }
    }
}

/// Returns true if the step is an optional init file that is absent.
fn is_absent(step: &Step) -> bool {
    matches!(step, Step::File(path, false) if !path.exists())
}

/// Loads the contents of the plan into a new image. `say` receives a description of each step.
///
/// # Errors
/// The image died meanwhile.
pub(crate) async fn restore(
    runtime: &Runtime,
    instance: &Instance,
    init: bool,
    say: impl Fn(String),
) -> Result<Restoration, ()> {
    let mut result = Restoration::default();
    let files = if init { init_files(runtime) } else { Vec::new() };
    let (steps, left_out) = lock(&runtime.plan).begin(files);
    result.failed = left_out;
    for step in steps {
        if is_absent(&step) {
            continue;
        }
        say(format!("loading {}", step.name()));
        lock(&runtime.plan).set_current_step(Some(step.clone()));
        let taken = run_step(instance, &step).await;
        match taken {
            Ok(()) if matches!(step, Step::File(_, false)) => {}
            Ok(()) => result.restored.push(step.name()),
            Err(Some(why)) => {
                if let Step::Replay(failed) = &step {
                    lock(&runtime.plan).not_replayed(failed);
                }
                result.failed.push((step.name(), why));
            }
            Err(None) => return Err(()), // the supervisor sees the end, and that the step was being taken
        }
        lock(&runtime.plan).set_current_step(None);
    }
    Ok(result)
}

/// Loads the contents of the image into a second process without changing the plan. Returns the
/// failures.
///
/// # Errors
/// The process died meanwhile.
pub(crate) async fn repeat(runtime: &Runtime, instance: &Instance, init: bool) -> Result<Vec<(String, String)>, ()> {
    let files = if init { init_files(runtime) } else { Vec::new() };
    let steps = lock(&runtime.plan).steps(files);
    let mut failed = Vec::new();
    for step in steps {
        if is_absent(&step) {
            continue;
        }
        match run_step(instance, &step).await {
            Ok(()) => {}
            Err(Some(why)) => failed.push((step.name(), why)),
            Err(None) => return Err(()),
        }
    }
    Ok(failed)
}

#[derive(Serialize)]
struct LoadFile<'a> {
    path: &'a PathBuf,
    if_missing: &'static str,
}

/// Converts the outcome of a reload to that of an evaluation. A refusal of the compiler is an
/// error.
fn replayed(outcome: ReloadOutcome) -> EvalOutcome {
    let ReloadOutcome { failure, mut outcome, .. } = outcome;
    if let Some(failure) = failure {
        outcome.status = EvalStatus::Error;
        outcome.error = Some(EvalError::new(failure.kind, failure.message));
    }
    outcome
}

/// Runs one step.
///
/// # Errors
/// The reason why the step failed, or `None` if the image died.
async fn run_step(instance: &Instance, step: &Step) -> Result<(), Option<String>> {
    let (call, limit) = match step {
        Step::File(path, required) => {
            let params = LoadFile { path, if_missing: if *required { "error" } else { "ignore" } };
            (instance.link.call("load-file", &params, None, Listener::None), INIT_LIMIT)
        }
        Step::System(params) => (instance.link.call("load-system", params, None, Listener::None), SYSTEM_LIMIT),
        Step::Replay(replay) => {
            (instance.link.call(replay.operation, &replay.params, None, Listener::None), INIT_LIMIT)
        }
    };
    let mut call = call.map_err(|error| Some(error.to_string()))?;
    let id = call.id();
    let outcome = async {
        match step {
            Step::File(..) => call.result::<EvalOutcome>().await,
            Step::System(_) => call.result::<LoadSystemOutcome>().await.map(|loaded| loaded.outcome),
            Step::Replay(_) => call.result::<ReloadOutcome>().await.map(replayed),
        }
    };
    tokio::pin!(outcome);
    let outcome = match crate::steady::timeout(limit, &mut outcome).await {
        Ok(outcome) => outcome,
        Err(_) => {
            instance.link.interrupt(id, "timeout");
            match crate::steady::timeout(STOP_LIMIT, &mut outcome).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    instance.end(format!(
                        "{} took more than {} s and could not be interrupted",
                        step.name(),
                        limit.as_secs()
                    ));
                    outcome.await
                }
            }
        }
    };
    match outcome {
        Ok(EvalOutcome { status: EvalStatus::Ok, .. }) => Ok(()),
        Ok(EvalOutcome { error: Some(error), .. }) => Err(Some(format!("{}: {}", error.kind, error.message))),
        Ok(EvalOutcome { status: EvalStatus::Timeout, .. }) => {
            Err(Some(format!("it took more than {} s", limit.as_secs())))
        }
        Ok(_) => Err(Some("it was interrupted".into())),
        Err(CallError::Refused(error)) => Err(Some(error.to_string())),
        Err(CallError::Gone) => Err(None),
    }
}
