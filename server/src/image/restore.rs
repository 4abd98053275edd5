//! What a new image gets before anybody may use it: the init files, and the systems that were loaded through Consort, in order.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::api::reload::ReloadOutcome;
use super::api::{EvalError, EvalOutcome, EvalStatus, LoadSystemOutcome, LoadSystemParams};
use super::link::{CallError, Listener, lock};
use super::live::Live;
use super::supervisor::Shared;
use crate::config::InitFile;

/// An init file that takes longer is interrupted, seconds.
const INIT_LIMIT: Duration = Duration::from_secs(60);
/// So is the loading of one system.
const SYSTEM_LIMIT: Duration = Duration::from_secs(600);
/// Names that a message lists.
const TOLD: usize = 20;
/// What an interrupted step may take to stop before the image is ended.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Something that is loaded into a new image.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// An init file, and whether it must be there.
    File(PathBuf, bool),
    /// A system.
    System(LoadSystemParams),
    /// Code that was compiled into the image.
    Replay(Replay),
}

/// A hot reload of code that no system has on disk: the request, to be made again.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The operation (docs/wire.md).
    pub operation: &'static str,
    /// Its parameters.
    pub params: serde_json::Value,
    /// What a person calls it.
    pub what: String,
    /// The definitions it made, as the report names them.
    pub names: Vec<String>,
}

impl Step {
    /// What a person calls it.
    fn name(&self) -> String {
        match self {
            Step::File(path, _) => path.display().to_string(),
            Step::System(params) => params.system.clone(),
            Step::Replay(replay) => replay.what.clone(),
        }
    }
}

/// What a new image will get.
#[derive(Debug, Default)]
pub(super) struct Plan {
    systems: Vec<LoadSystemParams>,
    /// Counts the changes.
    revision: u64,
    /// The reloads that the image can take back, the last at the end; `None` for those of files, which are loaded with their systems.
    reloads: Vec<Option<Replay>>,
    /// The step that is being taken: when the image dies of it, it is not taken again.
    taking: Option<Step>,
    /// Steps that an image died of, each with why.
    fatal: Vec<(Step, String)>,
}

impl Plan {
    /// A system was loaded; a system that is loaded again keeps its place.
    pub(super) fn remember(&mut self, params: LoadSystemParams) {
        self.revision += 1;
        let params = LoadSystemParams { force: false, ..params };
        match self.systems.iter_mut().find(|known| known.system == params.system) {
            Some(known) => *known = params,
            None => self.systems.push(params),
        }
    }

    /// Code was reloaded.
    pub(super) fn replay(&mut self, replay: Replay) {
        self.revision += 1;
        self.reloads.push(Some(replay));
    }

    /// Files were reloaded, which defined `names`: code that had been reloaded before and defined nothing else is not to take their place again.
    pub(super) fn reloaded_files(&mut self, names: &[String], recorded: bool) {
        self.revision += 1;
        for entry in &mut self.reloads {
            if entry.as_ref().is_some_and(|replay| replay.names.iter().all(|name| names.contains(name))) {
                *entry = None;
            }
        }
        if recorded {
            self.reloads.push(None);
        }
    }

    /// The reloads that a new image gets, in order: of those that define the same names the newest alone.
    fn replays(&self) -> Vec<Replay> {
        let mut defined = HashSet::new();
        let mut kept: Vec<Replay> = Vec::new();
        for replay in self.reloads.iter().rev().flatten() {
            let known = replay.names.iter().filter(|name| !defined.insert(name.as_str())).count();
            if replay.names.is_empty() || known < replay.names.len() {
                kept.push(replay.clone());
            }
        }
        kept.reverse();
        kept
    }

    /// Before a new image gets what there is: what it will be able to take back is what is replayed in it.
    fn keep_what_is_replayed(&mut self) {
        self.reloads = self.replays().into_iter().map(Some).collect();
    }

    /// The last reload was taken back.
    pub(super) fn undone(&mut self) {
        self.revision += 1;
        self.reloads.pop();
    }

    /// Another number after each change of what an image would get.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    /// The image died; if a step was being taken, it died of that.
    pub(super) fn died(&mut self, reason: &str) {
        if let Some(step) = self.taking.take() {
            match &step {
                Step::System(params) => self.systems.retain(|known| known.system != params.system),
                Step::Replay(fatal) => self.reloads.retain(|known| known.as_ref() != Some(fatal)),
                Step::File(..) => {}
            }
            self.fatal.push((step, format!("the image died of it: {reason}")));
        }
    }

    fn is_fatal(&self, path: &PathBuf) -> bool {
        self.fatal.iter().any(|(step, _)| matches!(step, Step::File(fatal, _) if fatal == path))
    }
}

/// What a new image got.
#[derive(Debug, Clone, Default)]
pub(super) struct Restoration {
    /// Names, in order.
    pub(super) restored: Vec<String>,
    /// What could not be loaded, and why.
    pub(super) failed: Vec<(String, String)>,
}

impl Restoration {
    /// For a person: what there is again, what there is not.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        if !self.restored.is_empty() {
            text += &format!(" Loaded again: {}.", list(&self.restored));
        }
        for (name, why) in self.failed.iter().take(TOLD) {
            text += &format!(" Not loaded again: {name} ({why}).");
        }
        if let Some(more) = self.failed.len().checked_sub(TOLD).filter(|more| *more > 0) {
            text += &format!(" {more} more were not loaded again.");
        }
        text + " What was defined or set by evaluation only is lost."
    }
}

/// The names, of very many the first.
fn list(names: &[String]) -> String {
    match names.len().checked_sub(TOLD) {
        Some(more) if more > 0 => format!("{} and {more} more", names[..TOLD].join(", ")),
        _ => names.join(", "),
    }
}

/// The init files that a plain `sbcl` would load, or the configured one.
fn init_files(shared: &Shared) -> Vec<Step> {
    match &shared.config.init_file {
        InitFile::None => Vec::new(),
        InitFile::File(path) => vec![Step::File(shared.workspace.join(path), true)],
        InitFile::Default => {
            let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".sbclrc"));
            std::iter::once(PathBuf::from("/etc/sbclrc")).chain(home).map(|path| Step::File(path, false)).collect()
        }
    }
}

/// Give a new image what it should have. `Err`: the image died meanwhile. `say` is told what is being done.
pub(super) async fn restore(shared: &Shared, live: &Live, init: bool, say: impl Fn(String)) -> Result<Restoration, ()> {
    let mut result = Restoration::default();
    let files = if init { init_files(shared) } else { Vec::new() };
    let steps: Vec<Step> = {
        let mut plan = lock(&shared.plan);
        plan.keep_what_is_replayed();
        let files = files.into_iter().filter(|step| !matches!(step, Step::File(path, _) if plan.is_fatal(path)));
        let replays = plan.reloads.iter().flatten().cloned().map(Step::Replay);
        let steps = files.chain(plan.systems.iter().cloned().map(Step::System)).chain(replays).collect();
        for (step, why) in &plan.fatal {
            result.failed.push((step.name(), why.clone()));
        }
        // A system is tried again when it is asked for; an init file is not, until the configuration changes.
        plan.fatal.retain(|(step, _)| matches!(step, Step::File(..)));
        steps
    };
    for step in steps {
        if let Step::File(path, false) = &step
            && !path.exists()
        {
            continue;
        }
        say(format!("loading {}", step.name()));
        lock(&shared.plan).taking = Some(step.clone());
        let taken = take(live, &step).await;
        match taken {
            Ok(()) if matches!(step, Step::File(_, false)) => {}
            Ok(()) => result.restored.push(step.name()),
            Err(Some(why)) => {
                if let Step::Replay(failed) = &step {
                    lock(&shared.plan).reloads.retain(|known| known.as_ref() != Some(failed));
                }
                result.failed.push((step.name(), why));
            }
            Err(None) => return Err(()), // the supervisor sees the end, and that the step was being taken
        }
        lock(&shared.plan).taking = None;
    }
    Ok(result)
}

/// Give a second process what the image got, and change nothing of the plan; what failed. `Err`: the process died of it.
pub(super) async fn repeat(shared: &Shared, live: &Live, init: bool) -> Result<Vec<(String, String)>, ()> {
    let files = if init { init_files(shared) } else { Vec::new() };
    let steps: Vec<Step> = {
        let plan = lock(&shared.plan);
        let replays = plan.replays().into_iter().map(Step::Replay);
        let files = files.into_iter().filter(
            |step| !matches!(step, Step::File(path, required) if plan.is_fatal(path) || !required && !path.exists()),
        );
        files.chain(plan.systems.iter().cloned().map(Step::System)).chain(replays).collect()
    };
    let mut failed = Vec::new();
    for step in steps {
        match take(live, &step).await {
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

/// A reload's outcome as any other's: what the compiler refused is an error.
fn replayed(outcome: ReloadOutcome) -> EvalOutcome {
    let ReloadOutcome { failure, mut outcome, .. } = outcome;
    if let Some(failure) = failure {
        outcome.status = EvalStatus::Error;
        outcome.error = Some(EvalError { kind: failure.kind, message: failure.message, backtrace: Vec::new() });
    }
    outcome
}

/// Take one step. `Err(None)`: the image died.
async fn take(live: &Live, step: &Step) -> Result<(), Option<String>> {
    let (call, limit) = match step {
        Step::File(path, required) => {
            let params = LoadFile { path, if_missing: if *required { "error" } else { "ignore" } };
            (live.link.call("load-file", &params, None, Listener::None), INIT_LIMIT)
        }
        Step::System(params) => (live.link.call("load-system", params, None, Listener::None), SYSTEM_LIMIT),
        Step::Replay(replay) => (live.link.call(replay.operation, &replay.params, None, Listener::None), INIT_LIMIT),
    };
    let mut call = call.map_err(|error| Some(error.to_string()))?;
    let outcome = async {
        match step {
            Step::File(..) => call.result::<EvalOutcome>().await,
            Step::System(_) => call.result::<LoadSystemOutcome>().await.map(|loaded| loaded.outcome),
            Step::Replay(_) => call.result::<ReloadOutcome>().await.map(replayed),
        }
    };
    tokio::pin!(outcome);
    let outcome = match tokio::time::timeout(limit, &mut outcome).await {
        Ok(outcome) => outcome,
        Err(_) => {
            for id in live.link.running(None, &["load-system", "load-file"]) {
                live.link.interrupt(id, "timeout");
            }
            match tokio::time::timeout(STOP_LIMIT, &mut outcome).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    live.end(format!(
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

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(what: &str, names: &[&str]) -> Replay {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Replay { operation: "compile-form", params: serde_json::Value::Null, what: what.into(), names }
    }

    fn replayed(plan: &Plan) -> Vec<String> {
        plan.replays().into_iter().map(|replay| replay.what).collect()
    }

    #[test]
    fn the_newest_of_each_name_is_replayed() {
        let mut plan = Plan::default();
        plan.replay(replay("f and g", &["F", "G"]));
        for count in 0..400 {
            plan.replay(replay(&format!("f {count}"), &["F"]));
        }
        plan.replay(replay("nothing by name", &[]));
        assert_eq!(replayed(&plan), ["f and g", "f 399", "nothing by name"]);
        plan.replay(replay("g", &["G"]));
        assert_eq!(replayed(&plan), ["f 399", "nothing by name", "g"]);
        // The one before counts again.
        plan.undone();
        assert_eq!(replayed(&plan), ["f and g", "f 399", "nothing by name"]);
        plan.keep_what_is_replayed();
        assert_eq!(plan.reloads.len(), 3);
    }

    #[test]
    fn a_long_restoration_is_told_briefly() {
        let restored = (0..1000).map(|count| format!("function-{count}")).collect();
        let told = Restoration { restored, failed: Vec::new() }.describe();
        assert!(told.contains("function-0, function-1,") && told.contains("and 980 more"), "{told}");
    }
}
