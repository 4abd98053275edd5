//! Hot reload for a client. The code is compiled in a copy of the image first, so that code that
//! does not compile changes nothing; then it is loaded in the image.

mod provenance;

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::mpsc;

use super::sources::{Sources, digest_of};
use super::{CheckRequest, ClientId, Session};
use crate::ide::asd::{AsdFiles, sources_below};
use crate::ide::reload::{Failure, fatal, reloaded_or_failure};
use crate::image::Replay;
use crate::image::api::reload::{
    CompileString, CompileTexts, LoadFasl, ReloadOutcome, ReloadPackage, ReloadSources, ReloadSystem, ReplaceFunction,
    UndoReload,
};
use crate::image::api::undefine::Undefine;
use crate::image::api::{LoadSystemParams, Operation};
use crate::model::check::CheckMode;
use crate::model::compile_options::CompileOptions;
use crate::model::error_kind::ErrorKind;
use crate::model::image::{ImageError, Progress};
use provenance::ProvenanceSource;

/// The default deadline of a reload, in seconds.
const DEADLINE_S: f64 = 30.0;
/// The default deadline of a reload of texts, a package or a system, in seconds.
const SYSTEM_DEADLINE_S: f64 = 600.0;

/// The kind of a reload, with its parameters.
#[derive(Debug, Clone)]
pub enum Reload {
    /// Code, with its source file and line.
    Code {
        /// The code.
        code: String,
        /// The package in which the code is read; `None` means CL-USER.
        package: Option<String>,
        /// The source file, relative to the workspace or absolute; it need not exist.
        file: Option<PathBuf>,
        /// The line of the first character, 1-based.
        line: usize,
        /// The options of its compilation.
        options: CompileOptions,
    },
    /// Texts that were checked before. They are compiled one after another, as one change.
    Texts {
        /// A few words for the report.
        what: String,
        /// The texts, with absolute files.
        texts: Vec<CompileString>,
    },
    /// The replacement of a function by exactly one definition.
    Function {
        /// The function's name.
        function: String,
        /// The definition.
        code: String,
        /// The package in which the name and the definition are read.
        package: Option<String>,
        /// The source file of the definition.
        file: Option<PathBuf>,
        /// The line of the definition.
        line: usize,
    },
    /// A compiled file of the workspace.
    Fasl {
        /// The path of the file.
        path: PathBuf,
        /// The digest of the content that may be loaded; `None` allows the current content.
        digest: Option<String>,
    },
    /// The files that define a package's symbols.
    Package {
        /// The package's name.
        package: String,
        /// True to include the packages that use it.
        recursive: bool,
        /// The files that may be loaded; `None` allows the current ones.
        allowed: Option<Sources>,
    },
    /// An ASDF system.
    System {
        /// The system's name.
        system: String,
        /// True to include unchanged files.
        force: bool,
        /// The files that may be loaded; `None` allows the current ones.
        allowed: Option<Sources>,
    },
    /// The removal of definitions.
    Undefine(Undefine),
    /// The reversal of the last reload.
    Undo,
}

impl Reload {
    fn description(&self) -> String {
        match self {
            Reload::Code { .. } => "compiling code".into(),
            Reload::Texts { what, .. } => format!("compiling {what}"),
            Reload::Function { function, .. } => format!("replacing the function {function}"),
            Reload::Fasl { path, .. } => format!("loading {}", path.display()),
            Reload::Package { package, .. } => format!("reloading the package {package}"),
            Reload::System { system, .. } => format!("reloading the system {system}"),
            Reload::Undefine(removed) => format!("removing {}", removed.of.name),
            Reload::Undo => "undoing a reload".into(),
        }
    }

    /// Returns the system that is reloaded, if one is.
    pub fn system(&self) -> Option<&str> {
        match self {
            Reload::System { system, .. } => Some(system),
            _ => None,
        }
    }
}

impl Session {
    /// Carries out a reload. `timeout` is its deadline in seconds. Definitions not loaded by then
    /// are rolled back.
    ///
    /// # Errors
    ///
    /// An error object of the contract. Nothing has changed then, or the changes were rolled back.
    pub async fn reload(
        &self,
        client: ClientId,
        reload: Reload,
        timeout: Option<f64>,
        progress: Option<mpsc::UnboundedSender<Progress>>,
    ) -> Result<ReloadOutcome, Failure> {
        let what = reload.description();
        let seconds = match reload {
            Reload::Package { .. } | Reload::System { .. } | Reload::Texts { .. } => {
                timeout.unwrap_or(SYSTEM_DEADLINE_S)
            }
            _ => timeout.unwrap_or(DEADLINE_S),
        };
        let within = Some(Duration::from_secs_f64(seconds.clamp(0.1, 86_400.0)));
        let made = ProvenanceSource::of(&reload, self.workspace());
        let (operation, change) = self.prepare(client, reload).await?;
        let outcome = match operation {
            ReloadOperation::Code(operation) => self.run(client, what, |_| operation, within, progress).await,
            ReloadOperation::Texts(operation) => self.run(client, what, |_| operation, within, progress).await,
            ReloadOperation::Function(operation) => self.run(client, what, |_| operation, within, progress).await,
            ReloadOperation::Fasl(operation) => self.run(client, what, |_| operation, within, progress).await,
            ReloadOperation::Package(operation) => self.run(client, what, |_| operation, within, progress).await,
            ReloadOperation::System(operation) => self.run(client, what, |_| operation, within, progress).await,
            ReloadOperation::Undefine(operation) => self.run(client, what, |_| operation, within, progress).await,
            ReloadOperation::Undo => self.run(client, what, |_| UndoReload {}, within, progress).await,
        };
        let outcome = reloaded_or_failure(outcome.map_err(failure)?)?;
        self.remember(change, &outcome);
        self.record_provenance(client, made, &outcome).await;
        Ok(outcome)
    }

    /// Returns the operation that carries out a reload, and its effect on a new image. Compiles new
    /// code in a copy of the image first, unless its options say otherwise.
    async fn prepare(&self, client: ClientId, reload: Reload) -> Result<(ReloadOperation, Change), Failure> {
        Ok(match reload {
            Reload::Code { code, package, file, line, options } => {
                let file = file.map(|file| self.absolute(&file));
                if !options.anyway {
                    self.check_first(client, &code, package.as_deref(), file.as_deref(), line).await?;
                }
                let operation = CompileString { code, package, file, line, options };
                let change = Change::repeat("code", &operation);
                (ReloadOperation::Code(operation), change)
            }
            Reload::Texts { what, texts } => {
                let operation = CompileTexts { what, texts };
                let change = Change::repeat(&operation.what, &operation);
                (ReloadOperation::Texts(operation), change)
            }
            Reload::Function { function, code, package, file, line } => {
                let file = file.map(|file| self.absolute(&file));
                let home = package.clone().or_else(|| home_of(&function));
                self.check_first(client, &code, home.as_deref(), file.as_deref(), line).await?;
                let what = format!("the function {function}");
                let definition = CompileString { code, package, file, line, options: CompileOptions::default() };
                let operation = ReplaceFunction { function, definition };
                let change = Change::repeat(&what, &operation);
                (ReloadOperation::Function(operation), change)
            }
            Reload::Fasl { path, digest } => {
                let path = self.in_workspace(&path).await?;
                let what = path.display().to_string();
                // The digest ensures that a load after a crash loads the same content as now.
                let digest = match digest {
                    Some(digest) => digest,
                    None => content_of(&path).await?,
                };
                let operation = LoadFasl { path, digest: Some(digest) };
                let change = Change::repeat(&what, &operation);
                (ReloadOperation::Fasl(operation), change)
            }
            Reload::Package { package, recursive, allowed } => {
                let allowed = allowed.map(|sources| sources.allowed(self.workspace()));
                (ReloadOperation::Package(ReloadPackage { package, recursive, allowed }), Change::Files(None))
            }
            Reload::System { system, force, allowed } => {
                let workspace = self.workspace().to_owned();
                let asd_files = tokio::task::spawn_blocking(move || AsdFiles::new(workspace).all()).await;
                let asd_files = asd_files.unwrap_or_default();
                let params = LoadSystemParams {
                    system: system.clone(),
                    asd_files: asd_files.clone(),
                    force: false,
                    allowed: None,
                };
                let allowed = allowed.map(|sources| sources.allowed(self.workspace()));
                let operation = ReloadSystem { system, asd_files, force, allowed };
                (ReloadOperation::System(operation), Change::Files(Some(params)))
            }
            // A new image has the definitions of its files, even those that were removed.
            Reload::Undefine(operation) => (ReloadOperation::Undefine(operation), Change::Files(None)),
            Reload::Undo => (ReloadOperation::Undo, Change::Undo),
        })
    }

    /// Compiles the code of a reload in a copy of the image. Called before a person is asked, so
    /// that nobody is asked about code that does not compile.
    ///
    /// # Errors
    ///
    /// An error object of the contract, as from [`Session::reload`].
    pub async fn precheck(&self, client: ClientId, reload: &Reload) -> Result<(), Failure> {
        let (code, package, file, line) = match reload {
            Reload::Code { code, package, file, line, .. } => (code, package.clone(), file, *line),
            Reload::Function { function, code, package, file, line } => {
                (code, package.clone().or_else(|| home_of(function)), file, *line)
            }
            _ => return Ok(()),
        };
        let file = file.as_ref().map(|file| self.absolute(file));
        self.check_first(client, code, package.as_deref(), file.as_deref(), line).await
    }

    /// Returns the sources that the reload of a package or a system would load, for a person's
    /// approval. Runs none of them, nor the `.asd` file. For a system, the files beside its `.asd`
    /// file count as its own.
    ///
    /// # Errors
    ///
    /// `PACKAGE_NOT_FOUND`; there is no image to ask.
    pub async fn sources_of(&self, reload: &Reload) -> Result<Sources, Failure> {
        let ask = match reload {
            Reload::Package { package, recursive, .. } => {
                ReloadSources::Package { package: package.clone(), recursive: *recursive }
            }
            Reload::System { system, .. } => {
                return self.system_sources(system, false).await.map(|(sources, _)| sources);
            }
            _ => return Ok(Sources::default()),
        };
        let known = self.query_when_ready(ask).await.map_err(failure)?.files;
        Ok(tokio::task::spawn_blocking(move || Sources::of(known)).await.unwrap_or_default())
    }

    /// Returns the sources that the reload or load of a system would load, and true if it would
    /// load nothing, because the system and its test systems are loaded and unchanged. If `others`
    /// is true, the sources include those of the workspace's other systems, on which it may depend.
    ///
    /// # Errors
    ///
    /// There is no image to ask.
    pub async fn system_sources(&self, system: &str, others: bool) -> Result<(Sources, bool), Failure> {
        let (system, workspace) = (system.to_lowercase(), self.workspace().to_owned());
        let all = tokio::task::spawn_blocking(move || AsdFiles::new(workspace).all()).await.unwrap_or_default();
        let ask = ReloadSources::System { system: system.clone(), asd_files: all.clone() };
        let known = self.query_when_ready(ask).await.map_err(failure)?;
        let workspace = self.workspace().to_owned();
        let read = tokio::task::spawn_blocking(move || {
            let mut files = known.files;
            let near = if others { all.clone() } else { files.clone() };
            files.extend(sources_below(&workspace, &system, &all, &near));
            files.extend(all);
            Sources::of(files)
        });
        Ok((read.await.unwrap_or_default(), known.loaded))
    }

    /// Records the effect of a reload on the image that replaces this one after a crash.
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

    /// Compiles the code in a copy of the image, and fails with the compiler's errors. Succeeds if
    /// no copy can be made: the image's own compiler then reports the errors.
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
                Some(failure) => reloaded_or_failure(refused(failure)).map(|_| ()),
                None => Ok(()),
            },
            Err(ImageError::Refused { kind, message })
                if kind == ErrorKind::PACKAGE_NOT_FOUND || kind == ErrorKind::INTERRUPTED =>
            {
                Err(Failure::new(kind, message))
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

    /// Returns a file of the workspace, links resolved.
    ///
    /// # Errors
    ///
    /// `FILE_NOT_FOUND`, `OUTSIDE_WORKSPACE`.
    pub(crate) async fn in_workspace(&self, path: &Path) -> Result<PathBuf, Failure> {
        let given = path.display();
        let real = tokio::fs::canonicalize(self.absolute(path)).await;
        let real = real.map_err(|error| Failure::new("file-not-found", format!("File {given} not found ({error})")))?;
        let workspace = tokio::fs::canonicalize(self.workspace()).await.unwrap_or_else(|_| self.workspace().to_owned());
        if real.starts_with(&workspace) {
            Ok(real)
        } else {
            let message =
                format!("{given} is not in the workspace {}; only its files are loaded.", workspace.display());
            Err(Failure::new("outside-workspace", message))
        }
    }
}

/// Returns the digest of a compiled file.
async fn content_of(path: &Path) -> Result<String, Failure> {
    let file = path.to_owned();
    let read = tokio::task::spawn_blocking(move || digest_of(&file)).await.map_err(std::io::Error::other);
    read.and_then(|digest| digest).map_err(|error| {
        Failure::new("not-a-fasl", format!("{} cannot be loaded as a compiled file: {error}.", path.display()))
    })
}

/// The operation of the image for a reload.
enum ReloadOperation {
    Code(CompileString),
    Texts(CompileTexts),
    Function(ReplaceFunction),
    Fasl(LoadFasl),
    Package(ReloadPackage),
    System(ReloadSystem),
    Undefine(Undefine),
    Undo,
}

/// The effect of a reload on a new image.
enum Change {
    None,
    /// The change is repeated.
    Code(Replay),
    /// Files are loaded with their system.
    Files(Option<LoadSystemParams>),
    /// The last change is not repeated.
    Undo,
}

impl Change {
    fn repeat<O: Operation>(what: &str, operation: &O) -> Change {
        match serde_json::to_value(operation) {
            Ok(params) => Change::Code(Replay { operation: O::NAME, params, what: what.to_owned(), names: Vec::new() }),
            Err(_) => Change::None, // such an operation cannot be sent to the image either
        }
    }
}

/// Returns the package prefix of a name: `MY-APP` of `my-app:compute` and of `(setf
/// my-app::place)`.
pub(crate) fn home_of(function: &str) -> Option<String> {
    let name = last_symbol(function.trim().trim_start_matches("#'"))?;
    let package = crate::text::names::symbol(name)?.package?;
    // A definition of a system function belongs to the user's package.
    let is_system = matches!(package.as_str(), "" | "CL" | "COMMON-LISP" | "KEYWORD") || package.starts_with("SB-");
    (!is_system).then_some(package)
}

/// Returns the last symbol of a function's name, as it is written.
fn last_symbol(function: &str) -> Option<&str> {
    let (mut in_bars, mut escaped) = (false, false);
    let is_end = |char: char| {
        if std::mem::take(&mut escaped) {
            return false;
        }
        match char {
            '\\' => escaped = true,
            '|' => in_bars = !in_bars,
            _ => return !in_bars && (char.is_whitespace() || matches!(char, '(' | ')')),
        }
        false
    };
    let mut last = None;
    for symbol in function.split(is_end).filter(|symbol| !symbol.is_empty()) {
        last = Some(symbol);
    }
    last
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
        outcome: EvalOutcome { package: String::new(), ..EvalOutcome::empty(EvalStatus::Ok, None) },
    }
}

fn failure(error: ImageError) -> Failure {
    Failure::new(error.kind(), error.to_string())
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
            ("|my app|::f", Some("my app")),
            ("#'(setf |My (app)|:|a b|)", Some("My (app)")),
            ("my\\:app::f", Some("MY:APP")),
            ("|a:b|", None),
            ("|sb-like|:f", Some("sb-like")),
            ("(setf sb-mop:class-name)", None),
            (":key", None),
            ("", None),
        ] {
            assert_eq!(home_of(name).as_deref(), home, "{name}");
        }
    }
}
