//! The tool `compile-form`, as specified by its contract.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::compile_form::{self, Compilation};
use crate::model::check::CheckMode;
use crate::session::CheckRequest;

/// The tool `compile-form`.
pub(crate) struct CompileForm;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Common Lisp code to compile
    code: String,
    /// Default: CL-USER
    #[serde(default)]
    package: Option<String>,
    /// Seconds. Default 20.
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 86400))]
    timeout: Option<f64>,
}

impl Tool for CompileForm {
    type Input = Input;
    type Output = Compilation;

    const NAME: &'static str = "compile-form";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Compile Common Lisp code without executing it. Catches warnings, type errors, undefined \
names, unbalanced parentheses, by the live image's macros. Nothing gets defined.";
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

    async fn call(call: Call, input: Input) -> Reply<Compilation> {
        let Input { code, package, timeout } = input;
        let request =
            CheckRequest { text: code.clone(), path: None, mode: CheckMode::Form, package: package.clone(), timeout };
        let work = call.session.check(call.client, request);
        match call.progress.report_during(work, None).await {
            Ok(report) => {
                let facts = Compilation::new(&code, report);
                Reply { text: compile_form::render(&facts), failed: facts.work_failed(), facts, full: None }
            }
            Err(error) => Failure::of(error, package.as_deref()).into(),
        }
    }
}

impl FromFailure for Compilation {
    fn from_failure(failure: Failure) -> Self {
        Compilation::failed(failure.kind, failure.message)
    }
}
