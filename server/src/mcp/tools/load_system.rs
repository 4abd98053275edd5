//! `load-system`.

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::reload::lines_of;
use super::{Call, Failure, Hints, Reply, Tool};
use crate::ide::asd;
use crate::ide::compile_form::Refusal;
use crate::ide::compiler_output::CompilerReport;
use crate::ide::evaluate::{self, Evaluation};
use crate::model::error_kind::ErrorKind;
use crate::session::LoadRequest;
use crate::session::approval::{Class, Subject};
use crate::session::kept_definitions::not_of_the_files;
use crate::session::unsaved_sources::not_loaded;

/// The tool `load-system`.
pub(crate) struct LoadSystem;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// ASDF's name of the system
    #[schemars(length(min = 1))]
    system: String,
}

/// Returns the subject of the approval of a load, with the current contents of the files that it
/// may load, and true if it would load nothing.
pub(super) async fn loading(call: &Call, what: String, system: &str) -> Result<(Subject, bool), Failure> {
    let (sources, settled) = call
        .session
        .system_sources(system, true)
        .await
        .map_err(|failure| Failure { kind: failure.kind(), message: failure.message })?;
    let changes = call.session.changes_of(&sources).await;
    Ok((Subject { what, sources, changes, ..Subject::default() }, settled))
}

/// The outcome of the load.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Loaded {
    loaded: bool,
    warnings: usize,
    style_warnings: usize,
    /// The files with unsaved changes in an editor, which were not loaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unsaved: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

impl super::FromFailure for Loaded {
    fn from_failure(failure: Failure) -> Self {
        Loaded { loaded: false, warnings: 0, style_warnings: 0, unsaved: Vec::new(), error: Some(failure.into()) }
    }
}

impl Tool for LoadSystem {
    type Input = Input;
    type Output = Loaded;

    const NAME: &'static str = "load-system";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Load an ASDF system, with Quicklisp where the user has it. Edited code of a loaded one: \
code_reload_system.";
    const HINTS: Hints = Hints { read_only: false, destructive: false, idempotent: true, open_world: true };

    async fn required_approval_async(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        let what = format!("compile and load the system {}", input.system);
        let (subject, _) = loading(call, what, &input.system).await?;
        Ok(Some((Class::CompileFile, subject)))
    }

    async fn call(call: Call, Input { system }: Input) -> Reply<Loaded> {
        let allowed = match call.allowed_to_load().await {
            Ok(allowed) => allowed,
            Err(failure) => return failure.into(),
        };
        let files = call.session.asd_files();
        let (progress, steps) = mpsc::unbounded_channel();
        let load = LoadRequest { system: system.clone(), force: false, allowed };
        let work = call.session.load_system(call.client, load, Some(progress));
        match call.progress.report_during(work, Some(lines_of(steps))).await {
            Ok(outcome) => {
                let loaded = outcome.loaded;
                let mut evaluation = Evaluation::from(outcome.outcome);
                let whole = evaluate::render(&evaluation);
                let (mut report, _) = evaluation.split_compiler_output();
                let facts = &mut evaluation.outcome;
                // ASDF repeats warnings that were already counted.
                facts.warnings.retain(|warning| !warning.kind.ends_with("COMPILE-WARNED-WARNING"));
                let (style, reported): (Vec<_>, Vec<_>) =
                    facts.warnings.iter().partition(|warning| warning.kind == "STYLE-WARNING");
                report.add(CompilerReport {
                    warnings: reported.len(),
                    style_warnings: style.len(),
                    messages: reported.iter().map(|warning| format!("{}: {}", warning.kind, warning.message)).collect(),
                    ..CompilerReport::default()
                });
                let error = facts
                    .error
                    .as_ref()
                    .map(|error| Refusal { kind: ErrorKind::LOAD_ERROR.into(), message: error.message.clone() });
                let mut text = if loaded { format!("Loaded {system}.") } else { format!("Loading {system} failed.") };
                if let Some(hint) = facts.error.as_ref().and_then(|error| asd::missing(&error.kind, &files)) {
                    text += &format!(" {hint}");
                }
                if !report.is_empty() {
                    text += &format!(" {}", report.summary());
                }
                let unsaved = if loaded { call.session.unsaved_of_system(&system).await } else { Vec::new() };
                let kept = if loaded { call.session.kept_from_evaluations(&system).await } else { Vec::new() };
                for note in not_loaded(&unsaved).into_iter().chain(not_of_the_files(&kept)) {
                    text += &format!("\n{note}");
                }
                let printed = facts.stdout.text.trim().len() + facts.stderr.text.trim().len();
                if printed > 0 {
                    text += &format!("\nIt printed {printed} bytes.");
                }
                (facts.stdout, facts.stderr, facts.warnings) = Default::default();
                if facts.error.is_some() {
                    text += &format!("\n{}", evaluate::render(&evaluation));
                }
                let full = (printed > 0 || report.files > 0).then_some(whole);
                let facts =
                    Loaded { loaded, warnings: report.warnings, style_warnings: report.style_warnings, unsaved, error };
                Reply { text, facts, failed: !loaded, full }
            }
            Err(error) => Failure::of(error, None).into(),
        }
    }
}
