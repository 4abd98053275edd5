//! The plan of a new image: the systems and the reloads to load into it, and the record of the
//! loading.

use std::collections::HashSet;
use std::path::PathBuf;

use super::api::LoadSystemParams;

/// The maximum number of names in a message.
const NAMED: usize = 20;
/// The maximum number of reloads that the image can undo (lisp/src/reload/undo.lisp).
const UNDOABLE: usize = 50;

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

/// A reload that the image has made.
#[derive(Debug, PartialEq)]
enum Reload {
    /// A reload of code, which the image can undo.
    Code(Replay),
    /// A reload of files, which a new image loads with their systems.
    Files {
        /// The definitions that the files made.
        names: Vec<String>,
        /// True if the image can undo the reload.
        undoable: bool,
    },
}

impl Reload {
    fn code(&self) -> Option<&Replay> {
        match self {
            Reload::Code(replay) => Some(replay),
            Reload::Files { .. } => None,
        }
    }

    fn is_undoable(&self) -> bool {
        matches!(self, Reload::Code(_) | Reload::Files { undoable: true, .. })
    }
}

/// The systems, files and reloads that a new image will get.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    systems: Vec<LoadSystemParams>,
    /// A counter of changes.
    revision: u64,
    /// The reloads, the last at the end.
    reloads: Vec<Reload>,
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
    pub(crate) fn remember_reload(&mut self, replay: Replay) {
        self.revision += 1;
        self.reloads.push(Reload::Code(replay));
        self.forget_superseded();
    }

    /// Notes a reload of files, which defined `names`. Earlier reloads of code that defined nothing
    /// else are not replayed, unless this reload is undone.
    pub(crate) fn reloaded_files(&mut self, names: &[String], undoable: bool) {
        self.revision += 1;
        // Reloads in a row that cannot be undone are one, so that they do not pile up.
        if let Some(Reload::Files { names: known, undoable: false }) = self.reloads.last_mut()
            && !undoable
        {
            let new: Vec<_> = names.iter().filter(|name| !known.contains(name)).cloned().collect();
            known.extend(new);
        } else if undoable || !names.is_empty() {
            self.reloads.push(Reload::Files { names: names.to_vec(), undoable });
            self.forget_superseded();
        }
    }

    /// Forgets those of the reloads too old to be undone that are not replayed, whatever is undone.
    fn forget_superseded(&mut self) {
        let newest_first = self.reloads.iter().enumerate().rev();
        let Some((last_old, _)) = newest_first.filter(|(_, reload)| reload.is_undoable()).nth(UNDOABLE) else { return };
        let replayed = self.replayed(last_old + 1);
        let newer = self.reloads.split_off(last_old + 1);
        let old = std::mem::take(&mut self.reloads).into_iter().enumerate();
        let kept = old.filter(|(at, _)| replayed.binary_search(at).is_ok()).map(|(_, reload)| reload);
        self.reloads = kept.chain(newer).collect();
    }

    /// Returns the places of the reloads of code that are replayed, in order, if only the first
    /// `count` reloads count. One is left out if newer reloads, of code or of files, define all of
    /// its names.
    fn replayed(&self, count: usize) -> Vec<usize> {
        let mut defined = HashSet::new();
        let mut kept: Vec<usize> = Vec::new();
        for (at, reload) in self.reloads[..count].iter().enumerate().rev() {
            match reload {
                Reload::Files { names, .. } => defined.extend(names.iter().map(String::as_str)),
                Reload::Code(replay) => {
                    let known = replay.names.iter().filter(|name| !defined.insert(name.as_str())).count();
                    if replay.names.is_empty() || known < replay.names.len() {
                        kept.push(at);
                    }
                }
            }
        }
        kept.reverse();
        kept
    }

    /// Returns the reloads that a new image gets, in order.
    fn replays(&self) -> Vec<Replay> {
        let replayed = self.replayed(self.reloads.len());
        replayed.into_iter().filter_map(|at| self.reloads[at].code().cloned()).collect()
    }

    /// Notes that the last reload was undone.
    pub(crate) fn undone(&mut self) {
        self.revision += 1;
        if let Some(last) = self.reloads.iter().rposition(Reload::is_undoable) {
            self.reloads.remove(last);
        }
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
                Step::Replay(fatal) => self.reloads.retain(|known| known.code() != Some(fatal)),
                Step::File(..) => {}
            }
            self.fatal.push((step, format!("the image ended during it: {reason}")));
        }
    }

    /// Returns the steps of a new image, with the init files first. Also returns the steps that are
    /// left out because an image died during them, each with the reason.
    pub(crate) fn begin(&mut self, files: Vec<Step>) -> (Vec<Step>, Vec<(String, String)>) {
        // A new image can undo the reloads that are replayed in it.
        self.reloads = self.replays().into_iter().map(Reload::Code).collect();
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
        self.reloads.retain(|known| known.code() != Some(failed));
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
        plan.remember_reload(replay("f and g", &["F", "G"]));
        for count in 0..400 {
            plan.remember_reload(replay(&format!("f {count}"), &["F"]));
        }
        plan.remember_reload(replay("nothing by name", &[]));
        assert_eq!(replayed(&plan), ["f and g", "f 399", "nothing by name"]);
        plan.remember_reload(replay("g", &["G"]));
        assert_eq!(replayed(&plan), ["f 399", "nothing by name", "g"]);
        // The reload before the undone one is replayed again.
        plan.undone();
        assert_eq!(replayed(&plan), ["f and g", "f 399", "nothing by name"]);
        plan.begin(Vec::new());
        assert_eq!(plan.reloads.len(), 3);
    }

    #[test]
    fn a_reload_of_files_replaces_code_until_it_is_undone() {
        let mut plan = Plan::default();
        let [f, g] = ["F".to_owned(), "G".to_owned()];
        plan.remember_reload(replay("f and g", &["F", "G"]));
        plan.remember_reload(replay("nothing by name", &[]));
        plan.reloaded_files(std::slice::from_ref(&f), true);
        assert_eq!(replayed(&plan), ["f and g", "nothing by name"], "the files do not define g");
        plan.reloaded_files(&[g], true);
        assert_eq!(replayed(&plan), ["nothing by name"]);
        plan.undone();
        assert_eq!(replayed(&plan), ["f and g", "nothing by name"]);
        plan.remember_reload(replay("f", &["F"]));
        plan.reloaded_files(&[f], false);
        assert_eq!(replayed(&plan), ["f and g", "nothing by name"]);
        // The last reload cannot be undone, so the one before it is.
        plan.undone();
        assert_eq!(plan.reloads.len(), 4);
        for _ in 0..200 {
            plan.reloaded_files(&["F".to_owned(), "G".to_owned()], true);
        }
        assert_eq!(replayed(&plan), ["nothing by name"]);
        assert!(plan.reloads.len() <= UNDOABLE + 2, "{}", plan.reloads.len());
    }

    #[test]
    fn a_long_restoration_is_told_briefly() {
        let restored = (0..1000).map(|count| format!("function-{count}")).collect();
        let told = Restoration { restored, failed: Vec::new() }.describe();
        assert!(told.contains("function-0, function-1,") && told.contains("and 980 more"), "{told}");
    }
}
