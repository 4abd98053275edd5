//! `profile-code`, as specified by its contract.

use std::time::Duration;

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;

use super::in_copy::{self, EvalPlace};
use super::{Call, CodeContext, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::profile::{ProfileReport, ProfileSettings, ReportFormat, render};
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::EvalStatus;
use crate::model::image::ImageError;
use crate::model::profile::ProfileMode;
use crate::session::approval::{Class, Subject};

/// The default time limit of a call, in seconds.
const DEADLINE: f64 = 30.0;

/// The tool `profile-code`.
pub(crate) struct ProfileCode;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Code to profile
    code: String,
    /// Default: CL-USER
    #[serde(default)]
    package: Option<String>,
    /// Default: cpu; time: wall-clock
    #[serde(default)]
    mode: Option<Mode>,
    /// Default: 1000
    #[serde(default, rename = "max-samples")]
    #[schemars(range(min = 1, max = 100000))]
    max_samples: Option<u32>,
    /// Default: 0.01 s
    #[serde(default, rename = "sample-interval")]
    #[schemars(range(min = 0.0001, max = 60))]
    sample_interval: Option<f64>,
    /// Default: flat
    #[serde(default, rename = "report-type")]
    report_type: Option<Kind>,
    /// Default: 30
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 86400))]
    timeout: Option<f64>,
    /// Where to run: the image (default) or a copy of it
    #[serde(default, rename = "in")]
    place: Option<EvalPlace>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Mode {
    Cpu,
    Time,
    Alloc,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum Kind {
    Flat,
    Graph,
}

impl Tool for ProfileCode {
    type Input = Input;
    type Output = ProfileReport;

    const NAME: &'static str = "profile-code";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str =
        "Profile code using statistical sampling: its hot spots. It should run 0.5 s or more.";
    // The data must be complete, because a viewer draws a flame graph from it (contract).
    const LIMITS: crate::mcp::answer::Limits = crate::mcp::answer::Limits {
        text: crate::mcp::answer::MAX_TEXT_BYTES,
        data: usize::MAX,
        ..crate::mcp::answer::Limits::DEFAULT
    };
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: true };

    async fn required_approval_async(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        let what = "Run code in the image and profile it".into();
        let subject = Subject { what, file: None, code: Some(input.code.clone()), ..Subject::default() };
        Ok(in_copy::required_approval(call, input.place, (Class::Eval, subject)))
    }

    fn code_context(input: &Input) -> Option<CodeContext> {
        Some(CodeContext::InSession(Some(input.package.clone().unwrap_or_else(|| "CL-USER".into()))))
    }

    fn argument_error(given: &JsonObject) -> Option<Failure> {
        let mode = given.get("mode").and_then(|mode| mode.as_str())?;
        if matches!(mode, "cpu" | "time" | "alloc") {
            return None;
        }
        // The contract specifies the text.
        let message = format!("[ERROR] SIMPLE-ERROR\nInvalid profiling mode: {mode:?}. Valid modes: cpu, time, alloc");
        Some(Failure { kind: ErrorKind::BAD_ARGUMENTS, message })
    }

    async fn call(call: Call, input: Input) -> Reply<ProfileReport> {
        let asked = ProfileSettings {
            mode: match input.mode {
                None | Some(Mode::Cpu) => ProfileMode::Cpu,
                Some(Mode::Time) => ProfileMode::Time,
                Some(Mode::Alloc) => ProfileMode::Alloc,
            },
            interval: input.sample_interval.unwrap_or(0.01),
            report: match input.report_type {
                None | Some(Kind::Flat) => ReportFormat::Flat,
                Some(Kind::Graph) => ReportFormat::Graph,
            },
        };
        let timeout = input.timeout.unwrap_or(DEADLINE);
        // The contract specifies a default package other than the session's.
        let (code, package) = (input.code, input.package.clone().unwrap_or_else(|| "CL-USER".into()));
        let samples = input.max_samples.unwrap_or(1000);
        let answer = if in_copy::in_copy(input.place) {
            let settings = asked;
            let operation = move |session, timeout| settings.operation(code, Some(package), samples, timeout)(session);
            let work = call.session.run_in_copy(call.client, "profiling", timeout, operation);
            call.progress.report_during(work, None).await
        } else {
            let operation = asked.operation(code, Some(package), samples, timeout);
            let within = Some(Duration::from_secs_f64(timeout));
            let work = call.session.run(call.client, "profiling".into(), operation, within, None);
            call.progress.report_during(work, None).await
        };
        match answer {
            Ok(answer) => {
                let facts = ProfileReport::new(answer, &asked);
                Reply { text: render(&facts, &asked), failed: facts.status != EvalStatus::Ok, facts, full: None }
            }
            Err(error @ ImageError::Lost { .. }) => {
                let facts = ProfileReport::from_failure(Failure::of(error, None));
                Reply { text: render(&facts, &asked), facts, failed: true, full: None }
            }
            Err(error) => Failure::of(error, input.package.as_deref()).into(),
        }
    }
}

impl FromFailure for ProfileReport {
    fn from_failure(failure: Failure) -> Self {
        let status = if failure.kind == ErrorKind::LOST { EvalStatus::Lost } else { EvalStatus::Refused };
        ProfileReport::failed(status, failure.kind.into(), failure.message)
    }
}
