//! Hot reload, as specified by its contract: `code_compile_string`, `code_load_fasl`,
//! `code_reload_package`, `code_reload_system`, `code_replace_function`, `code_undo`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::mpsc;

use super::{BeforeApproval, Call, CodeContext, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::compiler_output;
use crate::ide::reload::{self, ReloadFacts};
use crate::model::compile_options::CompileOptions;
use crate::model::error_kind::ErrorKind;
use crate::model::image::{OutputChunk, Progress};
use crate::session::approval::{Class, Subject};
use crate::session::kept_definitions::not_of_the_files;
use crate::session::reload::{Reload, home_of};
use crate::session::unsaved_sources::not_loaded;

/// The data of an answer about a reload. It has either `report` or `error`.
#[derive(Debug, Serialize)]
pub(crate) struct Reloaded {
    /// True if the reload took place.
    success: bool,
    /// The effects of the reload.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<ReloadFacts>,
    /// The contract's error object.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<reload::Failure>,
}

impl Reloaded {
    fn failed(failure: reload::Failure) -> Reloaded {
        Reloaded { success: false, report: None, error: Some(failure) }
    }
}

impl FromFailure for Reloaded {
    fn from_failure(failure: Failure) -> Self {
        Reloaded::failed(reload::Failure::new(failure.kind, failure.message))
    }
}

/// Converts the steps of a reload to lines for progress notifications.
pub(super) fn lines_of(mut steps: mpsc::UnboundedReceiver<Progress>) -> mpsc::UnboundedReceiver<OutputChunk> {
    let (lines, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(Progress { message, done, total, .. }) = steps.recv().await {
            let text = match total {
                Some(total) => format!("{message} ({done} of {total})\n"),
                None => format!("{message}\n"),
            };
            if lines.send(OutputChunk { text, stderr: false }).is_err() {
                return;
            }
        }
    });
    receiver
}

async fn perform(call: Call, what: Reload, timeout: Option<f64>) -> Reply<Reloaded> {
    let undo = matches!(what, Reload::Undo);
    let (progress, steps) = mpsc::unbounded_channel();
    let system = what.system().map(str::to_owned);
    let work = call.session.reload(call.client, what, timeout, Some(progress));
    match call.progress.report_during(work, Some(lines_of(steps))).await {
        Ok(mut outcome) => {
            let (kept, compiled) = compiler_output::split_compiler_output(&outcome.outcome.stdout.text);
            let full = (kept != outcome.outcome.stdout.text).then(|| reload::render(&outcome, undo));
            outcome.outcome.stdout.text = kept;
            let unsaved = call.session.unsaved_among(reload::files(&outcome)).await;
            let kept = call.session.kept_after_reload(system.as_deref()).await;
            let report = reload::facts(&outcome, &unsaved, &kept);
            let mut text = reload::render(&outcome, undo);
            for note in not_loaded(&unsaved).into_iter().chain(not_of_the_files(&kept)) {
                text += &format!("\n{note}");
            }
            let facts = Reloaded { success: true, report: Some(report), error: None };
            if !compiled.is_empty() {
                text += &format!("\n{}", compiled.summary());
            }
            Reply { text, facts, failed: false, full }
        }
        Err(failure) => Reply { text: failure.render(), facts: Reloaded::failed(failure), failed: true, full: None },
    }
}

/// Compiles the code of a reload before its approval is requested. Returns the answer for code that
/// the compiler rejects.
async fn precheck(call: &Call, what: Reload) -> BeforeApproval<Reloaded> {
    match call.session.precheck(call.client, &what).await {
        Ok(_) => BeforeApproval::Nothing,
        Err(failure) => BeforeApproval::Answer(Reply::new(failure.render(), Reloaded::failed(failure), true)),
    }
}

fn asking(class: Class, what: String, file: Option<&str>, code: Option<&str>) -> Option<(Class, Subject)> {
    Some((class, Subject { what, file: file.map(PathBuf::from), code: code.map(str::to_owned), ..Subject::default() }))
}

/// Returns the subject of the approval of a reload of files. The subject has their current
/// contents.
async fn asking_of(call: &Call, what: String, reload: &Reload) -> Result<Option<(Class, Subject)>, Failure> {
    match call.session.sources_of(reload).await {
        Ok(sources) => {
            let changes = call.session.changes_of(&sources).await;
            Ok(Some((Class::ModifyRunningCode, Subject { what, sources, changes, ..Subject::default() })))
        }
        Err(failure) => Err(Failure { kind: failure.kind(), message: failure.message }),
    }
}

const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: true };

/// The tool `code_compile_string`.
pub(crate) struct CompileString;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompileStringInput {
    /// Lisp code to compile
    code: String,
    /// Source filename for location tracking
    #[serde(default)]
    filename: Option<String>,
    /// Line number for source tracking
    #[serde(default)]
    #[schemars(range(min = 1, max = 1_000_000))]
    position: Option<usize>,
    /// Package in which the code is read
    #[serde(default)]
    package: Option<String>,
}

impl Tool for CompileString {
    type Input = CompileStringInput;
    type Output = Reloaded;

    const NAME: &'static str = "code_compile_string";
    const RUNS_CODE: bool = true;
    const ALIASES: &'static [(&'static str, &'static str)] = &[("path", "filename"), ("file_path", "filename")];
    const DESCRIPTION: &'static str = "Compile Lisp code string and load into image: all, or nothing when it does not compile. \
Reports what was redefined, which callers are stale.";
    const HINTS: Hints = HINTS;

    fn required_approval(input: &Self::Input) -> Option<(Class, Subject)> {
        asking(Class::CompileFile, "compile and load code".into(), input.filename.as_deref(), Some(&input.code))
    }

    fn code_context(input: &Self::Input) -> Option<CodeContext> {
        Some(CodeContext::InImage(input.package.clone().unwrap_or_else(|| "CL-USER".into())))
    }

    async fn before_approval(call: &Call, input: &Self::Input) -> BeforeApproval<Reloaded> {
        let (code, package) = (input.code.clone(), input.package.clone());
        let (file, line) = (input.filename.clone().map(PathBuf::from), input.position.unwrap_or(1).max(1));
        precheck(call, Reload::Code { code, package, file, line, options: CompileOptions::default() }).await
    }

    async fn call(call: Call, input: Self::Input) -> Reply<Reloaded> {
        let CompileStringInput { code, filename, position, package } = input;
        let file = filename.map(PathBuf::from);
        let line = position.unwrap_or(1).max(1);
        perform(call, Reload::Code { code, package, file, line, options: CompileOptions::default() }, None).await
    }
}

/// The tool `code_load_fasl`.
pub(crate) struct LoadFasl;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoadFaslInput {
    /// Path of the FASL file, inside the workspace
    #[schemars(length(min = 1))]
    path: String,
}

impl Tool for LoadFasl {
    type Input = LoadFaslInput;
    type Output = Reloaded;

    const NAME: &'static str = "code_load_fasl";
    const RUNS_CODE: bool = true;
    const ALIASES: &'static [(&'static str, &'static str)] = &[("file_path", "path"), ("filename", "path")];
    const DESCRIPTION: &'static str = "Load compiled FASL file. For sources: code_reload_system.";
    const HINTS: Hints = HINTS;

    // No approval is requested for a file that cannot be loaded in any case.
    async fn required_approval_async(call: &Call, input: &Self::Input) -> Result<Option<(Class, Subject)>, Failure> {
        let what = format!("load the compiled file {}", input.path);
        let asked = asking(Class::ModifyRunningCode, what, Some(&input.path), None);
        match (call.session.in_workspace(input.path.as_ref()).await, asked) {
            (Err(failure), Some(asked)) => {
                let kind = failure.kind();
                if kind.as_str() == "outside-workspace" {
                    call.refuse(Self::NAME, asked, json!({"path": input.path}), &failure.message).await;
                }
                Err(Failure { kind, message: failure.message })
            }
            (_, asked) => Ok(asked),
        }
    }

    async fn call(call: Call, input: Self::Input) -> Reply<Reloaded> {
        let read = async {
            let path = call.allowed_file().await?.unwrap_or_else(|| input.path.clone().into());
            let digest = call.permit.as_ref().and_then(|permit| permit.content()).map(str::to_owned);
            Ok(Reload::Fasl { path, digest })
        };
        let read: Result<Reload, String> = read.await;
        match read {
            Ok(what) => perform(call, what, None).await,
            Err(why) => Failure { kind: ErrorKind::REFUSED, message: format!("Refused: {why}.") }.into(),
        }
    }
}

/// The tool `code_reload_package`.
pub(crate) struct ReloadPackage;

/// The tool's arguments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReloadPackageInput {
    /// Package name to reload
    #[schemars(length(min = 1))]
    package: String,
    /// Dependent packages too
    #[serde(default)]
    recursive: bool,
}

impl Tool for ReloadPackage {
    type Input = ReloadPackageInput;
    type Output = Reloaded;

    const NAME: &'static str = "code_reload_package";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Reload all source files in package, in their systems' order.";
    const HINTS: Hints = HINTS;

    async fn required_approval_async(call: &Call, input: &Self::Input) -> Result<Option<(Class, Subject)>, Failure> {
        let ReloadPackageInput { package, recursive } = input.clone();
        let what = format!("reload the package {package}");
        asking_of(call, what, &Reload::Package { package, recursive, allowed: None }).await
    }

    async fn call(call: Call, input: Self::Input) -> Reply<Reloaded> {
        let ReloadPackageInput { package, recursive } = input;
        match call.allowed_sources().await {
            Ok(allowed) => perform(call, Reload::Package { package, recursive, allowed }, None).await,
            Err(why) => Failure { kind: ErrorKind::REFUSED, message: format!("Refused: {why}.") }.into(),
        }
    }
}

/// The tool `code_reload_system`.
pub(crate) struct ReloadSystem;

/// The tool's arguments.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReloadSystemInput {
    /// ASDF's name of the system
    #[schemars(length(min = 1))]
    system: String,
    /// Unchanged files too
    #[serde(default)]
    force: bool,
}

impl Tool for ReloadSystem {
    type Input = ReloadSystemInput;
    type Output = Reloaded;

    const NAME: &'static str = "code_reload_system";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Reload ASDF system: what changed on disk, or all of it (force). All, or nothing when it does not \
compile.";
    const HINTS: Hints = HINTS;

    async fn required_approval_async(call: &Call, input: &Self::Input) -> Result<Option<(Class, Subject)>, Failure> {
        let ReloadSystemInput { system, force } = input.clone();
        let what = format!("reload the system {system}");
        asking_of(call, what, &Reload::System { system, force, allowed: None }).await
    }

    async fn call(call: Call, input: Self::Input) -> Reply<Reloaded> {
        let ReloadSystemInput { system, force } = input;
        match call.allowed_sources().await {
            Ok(allowed) => perform(call, Reload::System { system, force, allowed }, None).await,
            Err(why) => Failure { kind: ErrorKind::REFUSED, message: format!("Refused: {why}.") }.into(),
        }
    }
}

/// The tool `code_replace_function`.
pub(crate) struct ReplaceFunction;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplaceFunctionInput {
    /// Function symbol to replace
    #[schemars(length(min = 1))]
    function: String,
    /// New function definition
    new_code: String,
    /// Package in which the code is read
    #[serde(default)]
    package: Option<String>,
}

impl Tool for ReplaceFunction {
    type Input = ReplaceFunctionInput;
    type Output = Reloaded;

    const NAME: &'static str = "code_replace_function";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Atomically replace function definition: one DEFUN, DEFMACRO, DEFMETHOD or \
DEFGENERIC. Safe for running threads. The file stays as it is.";
    const HINTS: Hints = HINTS;

    fn required_approval(input: &Self::Input) -> Option<(Class, Subject)> {
        asking(
            Class::ModifyRunningCode,
            format!("replace the function {}", input.function),
            None,
            Some(&input.new_code),
        )
    }

    fn code_context(input: &Self::Input) -> Option<CodeContext> {
        let package = input.package.clone().or_else(|| home_of(&input.function));
        Some(CodeContext::InImage(package.unwrap_or_else(|| "CL-USER".into())))
    }

    async fn before_approval(call: &Call, input: &Self::Input) -> BeforeApproval<Reloaded> {
        let (function, code) = (input.function.clone(), input.new_code.clone());
        precheck(call, Reload::Function { function, code, package: input.package.clone(), file: None, line: 1 }).await
    }

    async fn call(call: Call, input: Self::Input) -> Reply<Reloaded> {
        let ReplaceFunctionInput { function, new_code: code, package } = input;
        perform(call, Reload::Function { function, code, package, file: None, line: 1 }, None).await
    }
}

/// The tool `code_undo`.
pub(crate) struct Undo;

/// The tool has no arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UndoInput {}

impl Tool for Undo {
    type Input = UndoInput;
    type Output = Reloaded;

    const NAME: &'static str = "code_undo";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Put back what the last code_* call replaced; again: the one before. Not files, nor \
what evaluate-lisp did.";
    const HINTS: Hints = HINTS;

    fn required_approval(_: &UndoInput) -> Option<(Class, Subject)> {
        asking(Class::ModifyRunningCode, "undo the last reload".into(), None, None)
    }

    async fn call(call: Call, UndoInput {}: UndoInput) -> Reply<Reloaded> {
        perform(call, Reload::Undo, None).await
    }
}
