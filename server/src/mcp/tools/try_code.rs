//! `try-code`: evaluates candidates one after the other, each in a confined copy of the image, or
//! applies one of them.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::lisp_edit_form::{self, EditArguments, LispEditForm};
use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::compile_form::Refusal;
use crate::ide::trial::{CandidateResult, form_of, forms_of};
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageError;
use crate::model::trial::TriedForm;
use crate::session::approval::{Class, Subject};
use crate::session::{ClientId, EvalRequest, Session};
use crate::text::names;

/// The maximum number of candidates of a call.
const CANDIDATES: usize = 8;

/// The tool `try-code`.
pub(crate) struct TryCode;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// {label, code} or {label, path, edits as in lisp-edit-form}
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    candidates: Vec<Candidate>,
    /// Run after each
    #[serde(default)]
    code: Option<String>,
    /// Or: package of the tests to run
    #[serde(default)]
    tests: Option<String>,
    /// Package of `code`
    #[serde(default)]
    package: Option<String>,
    /// Seconds for each. Default 30
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 86400))]
    timeout: Option<f64>,
    /// Label: only write and load its edits
    #[serde(default)]
    apply: Option<String>,
}

/// A candidate: code, or edits of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Candidate {
    label: String,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    edits: Option<Vec<EditArguments>>,
}

/// The data of the answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Output {
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    candidates: Vec<CandidateResult>,
    /// The data of the edit, as in the answer of lisp-edit-form.
    #[serde(skip_serializing_if = "Option::is_none")]
    applied: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

impl Input {
    /// Returns the edit of the candidate that `apply` names, or `None` without `apply`.
    ///
    /// # Errors
    /// `BAD_ARGUMENTS` if no candidate has the label, or it has no edits.
    fn edit_to_apply(&self) -> Result<Option<lisp_edit_form::Input>, Failure> {
        let Some(label) = &self.apply else { return Ok(None) };
        let candidate = self.candidates.iter().find(|candidate| candidate.label == *label);
        match candidate.and_then(|candidate| Some((candidate.path.clone()?, candidate.edits.clone()?))) {
            Some((path, edits)) => Ok(Some(lisp_edit_form::Input::loading(path, edits))),
            None if candidate.is_some() => Err(bad_arguments(format!(
                "the candidate {label} has no `path` and `edits`, so there is no file to write: use code_compile_string for code alone"
            ))),
            None => Err(bad_arguments(format!("`apply` names {label}, which is no candidate's label"))),
        }
    }

    /// Returns the first error in the combination of the arguments, for the agent.
    fn conflict(&self) -> Option<String> {
        let mut labels = HashSet::new();
        if self.candidates.is_empty() || self.candidates.len() > CANDIDATES {
            return Some(format!("give between 1 and {CANDIDATES} candidates"));
        }
        if let Some(twice) = self.candidates.iter().find(|candidate| !labels.insert(&candidate.label)) {
            return Some(format!("two candidates have the label {}", twice.label));
        }
        if self.code.is_some() && self.tests.is_some() {
            return Some("give `code` or `tests`, not both".into());
        }
        let wrong = self.candidates.iter().find(|candidate| {
            !matches!(
                (&candidate.code, &candidate.path, &candidate.edits),
                (Some(_), None, None) | (None, Some(_), Some(_))
            )
        });
        wrong.map(|wrong| format!("give the candidate {} either `code`, or `path` and `edits`", wrong.label))
    }
}

fn bad_arguments(why: String) -> Failure {
    Failure { kind: ErrorKind::BAD_ARGUMENTS, message: format!("Bad arguments for try-code: {why}.") }
}

impl Tool for TryCode {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "try-code";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Try versions of definitions, each in a copy, with the same code or tests: results, and which \
forms ran. Nobody is asked. Then `apply` one.";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: false };

    fn edits(input: &Input) -> Option<&str> {
        let label = input.apply.as_ref()?;
        input.candidates.iter().find(|candidate| candidate.label == *label)?.path.as_deref()
    }

    async fn required_approval_async(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        if let Some(why) = input.conflict() {
            return Err(bad_arguments(why));
        }
        match input.edit_to_apply()? {
            Some(edit) => LispEditForm::required_approval_async(call, &edit).await,
            None => Ok(None),
        }
    }

    async fn call(call: Call, input: Input) -> Reply<Output> {
        match input.edit_to_apply() {
            Err(failure) => failure.into(),
            Ok(Some(edit)) => {
                let Reply { text, facts, failed, full } = LispEditForm::call(call, edit).await;
                let status = if failed { "error" } else { "applied" };
                let applied = serde_json::to_value(facts).ok();
                Reply { text, facts: Output { status, applied, ..Output::default() }, failed, full }
            }
            Ok(None) => try_candidates(call, input).await,
        }
    }
}

/// Tries all candidates, one after the other.
async fn try_candidates(call: Call, input: Input) -> Reply<Output> {
    let Input { candidates, code, tests, package, timeout, .. } = input;
    let tests_run = tests.is_some();
    let code = match tests {
        Some(package) => format!("(consort::tests-here {})", lisp_string(&package)),
        None => code.unwrap_or_default(),
    };
    let request = EvalRequest { code, package: package.clone(), capture_time: true, timeout, ..EvalRequest::default() };
    // The candidates run one after the other, as all work of agents in copies does.
    let all = async {
        let mut tried = Vec::new();
        for candidate in candidates {
            let request = request.clone();
            match try_candidate(&call.session, call.client, candidate, request, tests_run).await {
                Ok(result) => tried.push(result),
                Err((_, error)) if tried.is_empty() => return Err(error),
                Err((label, error)) => tried.push(CandidateResult::not_tried(label, error.kind(), error.to_string())),
            }
        }
        Ok(tried)
    };
    let candidates: Vec<CandidateResult> = match call.progress.report_during(all, None).await {
        Ok(candidates) => candidates,
        Err(error) => return Failure::of(error, None).into(),
    };
    let text: Vec<String> = candidates.iter().map(CandidateResult::render).collect();
    Reply::new(text.join("\n\n"), Output { status: "ok", candidates, ..Output::default() }, false)
}

/// Returns a text as a string that the Lisp reader reads.
fn lisp_string(text: &str) -> String {
    format!("\"{}\"", names::in_string(text))
}

/// Tries a candidate with the code of `request`. If `tests` is true, this code runs tests.
///
/// # Errors
/// The candidate's label, and the error of an image that is not available.
async fn try_candidate(
    session: &Session,
    client: ClientId,
    candidate: Candidate,
    request: EvalRequest,
    tests: bool,
) -> Result<CandidateResult, (String, ImageError)> {
    let label = candidate.label.clone();
    let forms = match forms_of_candidate(session, candidate, request.package.as_deref()).await {
        Ok(forms) => forms,
        Err(failure) => return Ok(CandidateResult::not_tried(label, failure.kind, failure.message)),
    };
    match session.try_code(client, request, forms).await {
        Ok(trial) => Ok(CandidateResult::of(label, trial, tests)),
        Err(error @ ImageError::Unavailable(_)) => Err((label, error)),
        Err(error) => Ok(CandidateResult::not_tried(label, error.kind(), error.to_string())),
    }
}

/// Returns the forms of a candidate, which are evaluated before the code.
///
/// # Errors
/// The edits cannot be planned.
async fn forms_of_candidate(
    session: &Session,
    candidate: Candidate,
    package: Option<&str>,
) -> Result<Vec<TriedForm>, Failure> {
    match (candidate.code, candidate.path, candidate.edits) {
        (None, Some(path), Some(edits)) => {
            let input = lisp_edit_form::Input::loading(path, edits);
            let (_, edits) = lisp_edit_form::plan(session, &input).await?;
            Ok(forms_of(&edits))
        }
        (code, ..) => Ok(vec![form_of(&code.unwrap_or_default(), package.unwrap_or("COMMON-LISP-USER"))]),
    }
}

impl FromFailure for Output {
    fn from_failure(failure: Failure) -> Self {
        Output { status: "error", error: Some(failure.into()), ..Output::default() }
    }
}
