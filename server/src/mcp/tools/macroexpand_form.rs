//! `macroexpand-form`, as specified by its contract.

use schemars::JsonSchema;
use serde::Deserialize;

use super::in_copy::{self, EvalPlace};
use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::expand::{self, Facts};
use crate::model::expansion::{ExpandExtent, ExpandRequest};

/// The tool `macroexpand-form`.
pub(crate) struct MacroexpandForm;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// The form
    form: String,
    /// Every macro, in subforms too (default: one step)
    #[serde(default)]
    full: Option<bool>,
    /// Default: CL-USER
    #[serde(default)]
    package: Option<String>,
    /// Seconds. Default 20.
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 86400))]
    timeout: Option<f64>,
    /// Where to run: the image (default) or a copy of it
    #[serde(default, rename = "in")]
    place: Option<EvalPlace>,
}

impl Tool for MacroexpandForm {
    type Input = Input;
    type Output = Facts;

    const NAME: &'static str = "macroexpand-form";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Expand a macro form to see the generated code. Useful for understanding what macros like DEFUN, \
LOOP, or WITH-* generate.";
    // The contract requires the expansion in the data, too.
    const LIMITS: crate::mcp::answer::Limits = crate::mcp::answer::Limits {
        string: crate::mcp::answer::MAX_TEXT_BYTES,
        ..crate::mcp::answer::Limits::DEFAULT
    };
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

    async fn call(call: Call, input: Input) -> Reply<Facts> {
        let Input { form, full, package, timeout, place } = input;
        let how = if full == Some(true) { ExpandExtent::Full } else { ExpandExtent::One };
        let confined = in_copy::in_copy(place);
        let request =
            ExpandRequest { text: form, package: package.clone(), how, timeout, confined, ..ExpandRequest::default() };
        let work = call.session.expand(call.client, request);
        match call.progress.report_during(work, None).await {
            Ok(answer) => {
                let facts = Facts::from(answer);
                Reply { text: expand::render(&facts), failed: facts.error.is_some(), facts, full: None }
            }
            Err(error) => Failure::of(error, package.as_deref()).into(),
        }
    }
}

impl FromFailure for Facts {
    fn from_failure(failure: Failure) -> Self {
        Facts::failed(failure.kind, failure.message)
    }
}
