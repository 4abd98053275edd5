//! Hot reload for a client: compiled in a copy of the image first, so that code that does not compile touches nothing; then in the image.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc;

use super::approval::{Sources, digest_of};
use super::log;
use super::provenance::{LOADING, ProvenanceEntry};
use super::{CheckRequest, ClientId, Session};
use crate::ide::asd::{AsdFiles, sources_below};
use crate::ide::reload::{Failure, fatal, settle};
use crate::image::Replay;
use crate::image::api::reload::{
    CompileString, LoadFasl, ReloadOutcome, ReloadPackage, ReloadSources, ReloadSystem, ReplaceFunction, UndoReload,
};
use crate::image::api::{LoadSystemParams, Operation, Origin};
use crate::model::check::CheckMode;
use crate::model::image::{ImageError, Progress};

/// What code that was compiled may take to be loaded when nobody says how long, seconds.
const LOAD: f64 = 30.0;
/// What a package or a system may take, seconds.
const SYSTEM: f64 = 600.0;

/// What to reload.
#[derive(Debug, Clone)]
pub enum Reload {
    /// Code, and the file and line where it stands.
    Code {
        /// The code.
        code: String,
        /// In which package it is read; `None`: CL-USER.
        package: Option<String>,
        /// Relative to the workspace, or absolute; it need not exist.
        file: Option<PathBuf>,
        /// The line of the first character, 1-based.
        line: usize,
    },
    /// One function, by exactly one definition.
    Function {
        /// Its name.
        function: String,
        /// Its definition.
        code: String,
        /// In which package both are read.
        package: Option<String>,
        /// Where the definition stands.
        file: Option<PathBuf>,
        /// And in which line.
        line: usize,
    },
    /// A compiled file of the workspace.
    Fasl {
        /// Where it is.
        path: PathBuf,
        /// The digest of what may be loaded; `None`: what is there.
        digest: Option<String>,
    },
    /// The files that define a package's symbols.
    Package {
        /// Its name.
        package: String,
        /// Also the packages that use it.
        recursive: bool,
        /// What may be loaded; `None`: what is there.
        allowed: Option<Sources>,
    },
    /// An ASDF system.
    System {
        /// Its name.
        system: String,
        /// Also files that have not changed.
        force: bool,
        /// What may be loaded; `None`: what is there.
        allowed: Option<Sources>,
    },
    /// What the last reload changed, back.
    Undo,
}

impl Reload {
    fn what(&self) -> String {
        match self {
            Reload::Code { .. } => "compiling code".into(),
            Reload::Function { function, .. } => format!("replacing the function {function}"),
            Reload::Fasl { path, .. } => format!("loading {}", path.display()),
            Reload::Package { package, .. } => format!("reloading the package {package}"),
            Reload::System { system, .. } => format!("reloading the system {system}"),
            Reload::Undo => "undoing a reload".into(),
        }
    }
}

impl Session {
    /// Reload something. `timeout` in seconds; what is not loaded by then is put back.
    ///
    /// # Errors
    /// The contract's error object; then nothing has changed, or what had is put back.
    pub async fn reload(
        &self,
        client: ClientId,
        reload: Reload,
        timeout: Option<f64>,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<ReloadOutcome, Failure> {
        let what = reload.what();
        let seconds = match reload {
            Reload::Package { .. } | Reload::System { .. } => timeout.unwrap_or(SYSTEM),
            _ => timeout.unwrap_or(LOAD),
        };
        let within = Some(Duration::from_secs_f64(seconds.clamp(0.1, 86_400.0)));
        macro_rules! run {
            ($operation:expr) => {{
                let operation = $operation;
                self.run(client, what, move |_| operation, within, progress).await
            }};
        }
        let made = Made::of(&reload, self.workspace());
        let change;
        let outcome = match reload {
            Reload::Code { code, package, file, line } => {
                let file = file.map(|file| self.absolute(&file));
                self.check_first(client, &code, package.as_deref(), file.as_deref(), line).await?;
                let operation = CompileString { code, package, file, line };
                change = Change::again("code", &operation);
                run!(operation)
            }
            Reload::Function { function, code, package, file, line } => {
                let file = file.map(|file| self.absolute(&file));
                let home = package.clone().or_else(|| home_of(&function));
                self.check_first(client, &code, home.as_deref(), file.as_deref(), line).await?;
                let what = format!("the function {function}");
                let definition = CompileString { code, package, file, line };
                let operation = ReplaceFunction { function, definition };
                change = Change::again(&what, &operation);
                run!(operation)
            }
            Reload::Fasl { path, digest } => {
                let path = self.in_workspace(&path).await?;
                let what = path.display().to_string();
                // What is loaded again after a crash is what is loaded now.
                let digest = match digest {
                    Some(digest) => Some(digest),
                    None => content_of(&path).await,
                };
                let operation = LoadFasl { path, digest };
                change = Change::again(&what, &operation);
                run!(operation)
            }
            Reload::Package { package, recursive, allowed } => {
                change = Change::Files(None);
                let allowed = allowed.map(|sources| sources.allowed(self.workspace()));
                run!(ReloadPackage { package, recursive, allowed })
            }
            Reload::System { system, force, allowed } => {
                let workspace = self.workspace().to_owned();
                let asd_files = tokio::task::spawn_blocking(move || AsdFiles::new(workspace).all()).await;
                let asd_files = asd_files.unwrap_or_default();
                let params = LoadSystemParams { system: system.clone(), asd_files: asd_files.clone(), force: false };
                change = Change::Files(Some(params));
                let allowed = allowed.map(|sources| sources.allowed(self.workspace()));
                run!(ReloadSystem { system, asd_files, force, allowed })
            }
            Reload::Undo => {
                change = Change::Undo;
                run!(UndoReload {})
            }
        };
        let outcome = settle(outcome.map_err(failure)?)?;
        self.remember(change, &outcome);
        self.note_makers(client, made, &outcome).await;
        Ok(outcome)
    }

    /// What the compiler refuses of code that is to be loaded, so that nobody is asked about it.
    ///
    /// # Errors
    /// The contract's error object, as [`Session::reload`] would answer.
    pub async fn foresee(&self, client: ClientId, reload: &Reload) -> Result<(), Failure> {
        let (code, package, file, line) = match reload {
            Reload::Code { code, package, file, line } => (code, package.clone(), file, *line),
            Reload::Function { function, code, package, file, line } => {
                (code, package.clone().or_else(|| home_of(function)), file, *line)
            }
            _ => return Ok(()),
        };
        let file = file.as_ref().map(|file| self.absolute(file));
        self.check_first(client, code, package.as_deref(), file.as_deref(), line).await
    }

    /// Have it known who made what was reloaded.
    async fn note_makers(&self, client: ClientId, made: Made, outcome: &ReloadOutcome) {
        let (image, provenance, who) = (&self.inner.image, &self.inner.provenance, self.inner.log.who(client));
        let how = log::doing().map_or_else(|| "a reload".to_owned(), |doing| doing.tool.clone());
        let until = std::time::SystemTime::now();
        let report = outcome.report.clone().unwrap_or_default();
        let files = || report.files.iter().map(PathBuf::from).collect();
        match made {
            Made::Nothing => {}
            Made::Text { code, package, origin } => {
                provenance.made(image, &code, ProvenanceEntry { client: who, how, package, origin, file: None }).await;
            }
            Made::Files => provenance.files(image, files(), &how, who, until).await,
            Made::System(system) => provenance.files(image, files(), &format!("{LOADING}{system}"), who, until).await,
            Made::Undone => {
                let back: Vec<String> = report.redefined.iter().chain(&report.new).cloned().collect();
                provenance.undone(&back, &report.gone, &how, &who);
            }
        }
    }

    /// What the reload of a package or a system would load, for a person who is asked whether it may. Runs nothing of it: not the `.asd` either, so for
    /// a system what lies beside its `.asd` is taken as its own.
    ///
    /// # Errors
    /// `PACKAGE_NOT_FOUND`, and that there is no image to ask.
    pub async fn sources_of(&self, reload: &Reload) -> Result<Sources, Failure> {
        let (ask, system) = match reload {
            Reload::Package { package, recursive, .. } => {
                (ReloadSources::Package { package: package.clone(), recursive: *recursive }, None)
            }
            Reload::System { system, .. } => {
                (ReloadSources::System { system: system.to_lowercase() }, Some(system.to_lowercase()))
            }
            _ => return Ok(Sources::default()),
        };
        let known = self.query(ask).await.map_err(failure)?.files;
        let workspace = self.workspace().to_owned();
        let read = tokio::task::spawn_blocking(move || {
            let mut files = known;
            if let Some(system) = system {
                let all = AsdFiles::new(workspace.clone()).all();
                files.extend(sources_below(&workspace, &system, &all, &files));
                files.extend(all);
            }
            Sources::of(files)
        });
        Ok(read.await.unwrap_or_default())
    }

    /// Have a new image get what this one has, after a crash.
    fn remember(&self, change: Change, outcome: &ReloadOutcome) {
        let report = outcome.report.clone().unwrap_or_default();
        let names: Vec<String> = report.redefined.into_iter().chain(report.new).collect();
        let image = &self.inner.image;
        match change {
            Change::None => {}
            Change::Undo => image.reload_undone(),
            Change::Code(replay) if outcome.recorded => image.replay_later(Replay { names, ..replay }),
            Change::Code(_) => {}
            Change::Files(system) => image.reloaded_files(system, &names, outcome.recorded),
        }
    }

    /// Fail with what the compiler says of the code in a copy of the image. Where there can be no copy, the image's own compiler has to tell.
    async fn check_first(
        &self,
        client: ClientId,
        code: &str,
        package: Option<&str>,
        file: Option<&Path>,
        line: usize,
    ) -> Result<(), Failure> {
        let request = CheckRequest {
            text: code.to_owned(),
            path: file.map(Path::to_owned),
            mode: CheckMode::File,
            package: package.map(str::to_owned),
            timeout: None,
        };
        match self.check(client, request).await {
            Ok(report) => match fatal(code, &report.diagnostics, file.and_then(Path::to_str), line) {
                Some(failure) => settle(refused(failure)).map(|_| ()),
                None => Ok(()),
            },
            Err(ImageError::Refused { kind, message }) if kind == "package-not-found" => {
                Err(Failure::refused(&kind, message))
            }
            Err(error) => {
                tracing::debug!(%error, "code to be loaded could not be checked in a copy first");
                Ok(())
            }
        }
    }

    fn absolute(&self, file: &Path) -> PathBuf {
        self.workspace().join(file)
    }

    /// A file of the workspace, links resolved.
    ///
    /// # Errors
    /// `FILE_NOT_FOUND`, `OUTSIDE_WORKSPACE`.
    pub(crate) async fn in_workspace(&self, path: &Path) -> Result<PathBuf, Failure> {
        let given = path.display();
        let real = tokio::fs::canonicalize(self.absolute(path)).await;
        let real = real.map_err(|error| Failure::new("FILE_NOT_FOUND", format!("File {given} not found ({error})")))?;
        let workspace = tokio::fs::canonicalize(self.workspace()).await.unwrap_or_else(|_| self.workspace().to_owned());
        if real.starts_with(&workspace) {
            Ok(real)
        } else {
            let message =
                format!("{given} is not in the workspace {}; only its files are loaded.", workspace.display());
            Err(Failure::new("OUTSIDE_WORKSPACE", message))
        }
    }
}

/// The digest of a file; `None`, and the image says what is wrong with it, when it cannot be read.
async fn content_of(path: &Path) -> Option<String> {
    let path = path.to_owned();
    tokio::task::spawn_blocking(move || digest_of(&path).ok()).await.ok()?
}

/// What of a reload tells who made its definitions.
enum Made {
    Nothing,
    Text { code: String, package: String, origin: Option<Origin> },
    Files,
    System(String),
    Undone,
}

impl Made {
    fn of(reload: &Reload, workspace: &Path) -> Made {
        let user = || "COMMON-LISP-USER".to_owned();
        let origin = |file: &Option<PathBuf>, line: usize| {
            file.as_ref().map(|file| Origin { file: workspace.join(file), line, column: 1 })
        };
        match reload {
            Reload::Code { code, package, file, line } => Made::Text {
                code: code.clone(),
                package: package.clone().unwrap_or_else(user),
                origin: origin(file, *line),
            },
            Reload::Function { function, code, package, file, line } => Made::Text {
                code: code.clone(),
                package: package.clone().or_else(|| home_of(function)).unwrap_or_else(user),
                origin: origin(file, *line),
            },
            Reload::Fasl { .. } => Made::Nothing,
            Reload::Package { .. } => Made::Files,
            Reload::System { system, .. } => Made::System(system.clone()),
            Reload::Undo => Made::Undone,
        }
    }
}

/// What a reload means for a new image.
enum Change {
    None,
    /// It is made again.
    Code(Replay),
    /// Files are loaded with their system.
    Files(Option<LoadSystemParams>),
    /// The last one is not made again.
    Undo,
}

impl Change {
    fn again<O: Operation>(what: &str, operation: &O) -> Change {
        match serde_json::to_value(operation) {
            Ok(params) => Change::Code(Replay { operation: O::NAME, params, what: what.to_owned(), names: Vec::new() }),
            Err(_) => Change::None, // it could not be sent either
        }
    }
}

/// The package that a name is written with: `MY-APP` of `my-app:compute` and of `(setf my-app::place)`.
fn home_of(function: &str) -> Option<String> {
    let name = function.trim().trim_start_matches("#'").trim_start_matches('(').trim_end_matches(')');
    let name = name.split_whitespace().last()?;
    let (package, _) = name.split_once(':')?;
    // What is defined of the system's functions is the user's.
    if ["cl", "common-lisp", "keyword"].iter().any(|system| package.eq_ignore_ascii_case(system))
        || package.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("sb-"))
    {
        return None;
    }
    // As the reader has it.
    let bars = package.strip_prefix('|').and_then(|rest| rest.strip_suffix('|'));
    (!package.is_empty()).then(|| bars.map_or_else(|| package.to_uppercase(), str::to_owned))
}

fn refused(failure: crate::image::api::reload::ReloadFailure) -> ReloadOutcome {
    use crate::model::evaluation::{EvalOutcome, EvalStatus};
    ReloadOutcome {
        reloaded: false,
        report: None,
        failure: Some(failure),
        not_undone: Vec::new(),
        recorded: false,
        undoable: 0,
        outcome: EvalOutcome {
            status: EvalStatus::Ok,
            values: Vec::new(),
            stdout: Default::default(),
            stderr: Default::default(),
            warnings: Vec::new(),
            error: None,
            timing: None,
            package: String::new(),
        },
    }
}

fn failure(error: ImageError) -> Failure {
    match error {
        ImageError::Refused { kind, message } => Failure::refused(&kind, message),
        ImageError::Lost { reason } => Failure::new("IMAGE_LOST", reason),
        ImageError::Busy(message) => Failure::new("BUSY", message),
        ImageError::Unavailable(message) => Failure::new("IMAGE_UNAVAILABLE", message),
    }
}

#[cfg(test)]
mod tests {
    use super::home_of;

    #[test]
    fn a_name_tells_its_package() {
        for (name, home) in [
            ("my-app:compute", Some("MY-APP")),
            ("MY-APP::compute", Some("MY-APP")),
            ("(setf my-app::place)", Some("MY-APP")),
            ("compute", None),
            ("cl:print-object", None),
            ("(setf sb-mop:class-name)", None),
            (":key", None),
            ("", None),
        ] {
            assert_eq!(home_of(name).as_deref(), home, "{name}");
        }
    }
}
