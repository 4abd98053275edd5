//! `run-tests`: runs the tests of FiveAM, Parachute, Rove and ASDF, with an outcome for each.

use schemars::JsonSchema;
use serde::Deserialize;

use super::in_copy::{self, EvalPlace};
use super::load_system::loading;
use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::asd;
use crate::ide::testing::{TestReport, render};
use crate::model::error_kind::ErrorKind;
use crate::model::evaluation::EvalStatus;
use crate::model::image::ImageError;
use crate::model::testing::TestSelection;
use crate::session::approval::{Class, Subject};
use crate::session::testing::RunTestsRequest;

/// The default deadline of a call, in seconds.
const DEADLINE: f64 = 120.0;

/// The tool `run-tests`.
pub(crate) struct RunTests;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Loaded with its test system first
    #[serde(default)]
    system: Option<String>,
    /// Suite
    #[serde(default)]
    suite: Option<String>,
    /// Test
    #[serde(default)]
    test: Option<String>,
    /// Tests of this package
    #[serde(default)]
    package: Option<String>,
    /// Name of the test framework
    #[serde(default)]
    framework: Option<String>,
    /// Default: 120
    #[serde(default)]
    #[schemars(range(min = 0.1, max = 86400))]
    timeout: Option<f64>,
    /// Where to run: the image (default) or a copy of it
    #[serde(default, rename = "in")]
    place: Option<EvalPlace>,
}

impl Tool for RunTests {
    type Input = Input;
    type Output = TestReport;

    const NAME: &'static str = "run-tests";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str =
        "Run tests (FiveAM, Parachute, Rove, ASDF) in the image; each with status, failures and place.";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: true };

    async fn required_approval_async(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        let narrowed =
            [("system", &input.system), ("suite", &input.suite), ("test", &input.test), ("package", &input.package)];
        let narrowed: Vec<String> =
            narrowed.iter().filter_map(|(kind, name)| name.as_ref().map(|name| format!("{kind} {name}"))).collect();
        let tests =
            if narrowed.is_empty() { "all tests".into() } else { format!("the tests of {}", narrowed.join(", ")) };
        let what = format!("Run {tests}");
        let eval = |what| (Class::Eval, Subject { what, ..Subject::default() });
        let Some(system) = input.system.as_ref().filter(|_| !in_copy::needs_no_approval(call, input.place)) else {
            return Ok(in_copy::required_approval(call, input.place, eval(what)));
        };
        let (subject, settled) = loading(call, what.clone(), system).await?;
        let asked = if settled {
            (Class::Eval, Subject { changes: None, ..subject })
        } else {
            let what = format!("Compile and load the system {system}, and run {tests}");
            (Class::CompileFile, Subject { what, also: Some(Class::Eval), ..subject })
        };
        Ok(in_copy::required_approval(call, input.place, asked))
    }

    async fn call(call: Call, input: Input) -> Reply<TestReport> {
        let Input { system, suite, test, package, framework, timeout, place } = input;
        let timeout = timeout.unwrap_or(DEADLINE);
        let allowed = match call.allowed_to_load().await {
            Ok(allowed) => allowed.filter(|_| system.is_some()),
            Err(failure) => return failure.into(),
        };
        let written_package = package.clone();
        let selection = TestSelection { system, suite, test, package, framework };
        let request = RunTestsRequest { selection, timeout, allowed };
        let answer = if in_copy::in_copy(place) {
            let work = call.session.run_tests_in_copy(call.client, request);
            call.progress.report_during(work, None).await
        } else {
            let work = call.session.run_tests(call.client, request, None);
            call.progress.report_during(work, None).await
        };
        match answer {
            Ok(answer) => {
                let mut facts = TestReport::from(answer);
                if let Some(error) = &mut facts.error
                    && let Some(hint) = asd::missing(&error.kind, &call.session.asd_files())
                {
                    error.message += &format!("\n{hint}");
                }
                let text = render(&facts);
                let full = facts.full_output.take().map(|full| format!("{text}\n\n{full}"));
                Reply { text, failed: facts.status != EvalStatus::Ok, facts, full }
            }
            Err(error @ ImageError::Lost { .. }) => {
                let facts = TestReport::from_failure(Failure::of(error, None));
                Reply { text: render(&facts), facts, failed: true, full: None }
            }
            Err(error) => Failure::of(error, written_package.as_deref()).into(),
        }
    }
}

impl FromFailure for TestReport {
    fn from_failure(failure: Failure) -> Self {
        let status = if failure.kind == ErrorKind::LOST { EvalStatus::Lost } else { EvalStatus::Refused };
        TestReport::failed(status, failure.kind.into(), failure.message)
    }
}
