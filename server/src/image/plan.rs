//! The plan of a new image: the systems and the reloads to load into it, and the record of the
//! loading.

use std::collections::HashSet;
use std::path::PathBuf;

use super::api::LoadSystemParams;

/// The maximum number of names in a message.
const NAMED: usize = 20;

/// A step of the loading into a new image.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// An init file, and true if it is required.
    File(PathBuf, bool),
    /// A system.
    System(LoadSystemParams),
    /// Code that was compiled into the image.
    Replay(Replay),
}

/// A hot reload of code that is in no system on disk, as a request that can be repeated.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The operation's name (docs/wire.md).
    pub operation: &'static str,
    /// The parameters of the operation.
    pub params: serde_json::Value,
    /// A description for the user.
    pub what: String,
    /// The definitions that the reload made, as the report names them.
    pub names: Vec<String>,
}

impl Step {
    /// Returns the description for the user.
    pub(crate) fn name(&self) -> String {
        match self {
            Step::File(path, _) => path.display().to_string(),
            Step::System(params) => params.system.clone(),
            Step::Replay(replay) => replay.what.clone(),
        }
    }
}

/// The systems, files and reloads that a new image will get.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    systems: Vec<LoadSystemParams>,
    /// A counter of changes.
    revision: u64,
    /// The reloads that the image can undo, the last at the end. An entry is `None` for a reload of
    /// files, which are loaded with their systems.
    reloads: Vec<Option<Replay>>,
    /// The current step. If the image dies during it, it is not repeated.
    current_step: Option<Step>,
    /// The steps during which an image died, each with the reason.
    fatal: Vec<(Step, String)>,
}

impl Plan {
    /// Notes that a system was loaded. A system that was loaded before keeps its place.
    pub(crate) fn remember(&mut self, params: LoadSystemParams) {
        self.revision += 1;
        let params = LoadSystemParams { force: false, allowed: None, ..params };
        match self.systems.iter_mut().find(|known| known.system == params.system) {
            Some(known) => *known = params,
            None => self.systems.push(params),
        }
    }

    /// Notes that code was reloaded.
    pub(crate) fn replay(&mut self, replay: Replay) {
        self.revision += 1;
        self.reloads.push(Some(replay));
    }

    /// Notes a reload of files, which defined `names`. An earlier reload of code that defined
    /// nothing else is not replayed any more.
    pub(crate) fn reloaded_files(&mut self, names: &[String], recorded: bool) {
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

    /// Returns the reloads that a new image gets, in order. A reload is left out if newer ones
    /// define all of its names.
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

    /// Notes that the last reload was undone.
    pub(crate) fn undone(&mut self) {
        self.revision += 1;
        self.reloads.pop();
    }

    /// Returns a number that changes whenever the contents of a new image would.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// Notes that the image died. If a step was running, it is recorded as the cause.
    pub(crate) fn died(&mut self, reason: &str) {
        if let Some(step) = self.current_step.take() {
            match &step {
                Step::System(params) => self.systems.retain(|known| known.system != params.system),
                Step::Replay(fatal) => self.reloads.retain(|known| known.as_ref() != Some(fatal)),
                Step::File(..) => {}
            }
            self.fatal.push((step, format!("the image ended during it: {reason}")));
        }
    }

    /// Returns the steps of a new image, with the init files first. Also returns the steps that are
    /// left out because an image died during them, each with the reason.
    pub(crate) fn begin(&mut self, files: Vec<Step>) -> (Vec<Step>, Vec<(String, String)>) {
        // A new image can undo the reloads that are replayed in it.
        self.reloads = self.replays().into_iter().map(Some).collect();
        let steps = self.steps(files);
        let left_out = self.fatal.iter().map(|(step, why)| (step.name(), why.clone())).collect();
        // A system is loaded again when it is asked for. An init file is left out until the
        // configuration changes.
        self.fatal.retain(|(step, _)| matches!(step, Step::File(..)));
        (steps, left_out)
    }

    /// Returns the steps that give another process the contents of the image, with the init files
    /// first.
    pub(crate) fn steps(&self, files: Vec<Step>) -> Vec<Step> {
        let files = files.into_iter().filter(|step| !matches!(step, Step::File(path, _) if self.is_fatal(path)));
        let replays = self.replays().into_iter().map(Step::Replay);
        files.chain(self.systems.iter().cloned().map(Step::System)).chain(replays).collect()
    }

    /// Notes the current step, or with `None` that the step is complete.
    pub(crate) fn set_current_step(&mut self, step: Option<Step>) {
        self.current_step = step;
    }

    /// Forgets a reload whose replay failed.
    pub(crate) fn not_replayed(&mut self, failed: &Replay) {
        self.reloads.retain(|known| known.as_ref() != Some(failed));
    }

    fn is_fatal(&self, path: &PathBuf) -> bool {
        self.fatal.iter().any(|(step, _)| matches!(step, Step::File(fatal, _) if fatal == path))
    }
}

/// The result of loading the contents of a new image.
#[derive(Debug, Clone, Default)]
pub(crate) struct Restoration {
    /// The names of the loaded steps, in order.
    pub(crate) restored: Vec<String>,
    /// The steps that could not be loaded, each with the reason.
    pub(crate) failed: Vec<(String, String)>,
}

impl Restoration {
    /// Returns a description for the user: the steps that were loaded again, and those that were
    /// not.
    pub(crate) fn describe(&self) -> String {
        let mut text = String::new();
        if !self.restored.is_empty() {
            text += &format!(" Loaded again: {}.", crate::shown::first_names(&self.restored, NAMED));
        }
        for (name, why) in self.failed.iter().take(NAMED) {
            text += &format!(" Not loaded again: {name} ({why}).");
        }
        if let Some(more) = self.failed.len().checked_sub(NAMED).filter(|more| *more > 0) {
            text += &format!(" {more} more were not loaded again.");
        }
        text + " Definitions and values that were only evaluated are lost."
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
        // The reload before the undone one counts again.
        plan.undone();
        assert_eq!(replayed(&plan), ["f and g", "f 399", "nothing by name"]);
        plan.begin(Vec::new());
        assert_eq!(plan.reloads.len(), 3);
    }

    #[test]
    fn a_long_restoration_is_told_briefly() {
        let restored = (0..1000).map(|count| format!("function-{count}")).collect();
        let told = Restoration { restored, failed: Vec::new() }.describe();
        assert!(told.contains("function-0, function-1,") && told.contains("and 980 more"), "{told}");
    }
}
