//! The commands `consort.runTests` and `consort.runTestAtPoint`.

use lsp_types::{Position, ProgressToken, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::{Error, Result};

use super::{Command, at_place, current_test, seconds};
use crate::ide::testing::{TestPlace, TestReport, definition, render, summary};
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::model::testing::TestSelection;
use crate::session::Level;
use crate::session::testing::RunTestsRequest;
use crate::text::forms::toplevel_form;

/// The default time limit, in seconds. It is a day, because a user can interrupt the run.
const DEADLINE: f64 = 86_400.0;

/// Runs tests.
pub(super) struct RunTests;

/// The argument of `consort.runTests`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Argument {
    system: Option<String>,
    suite: Option<String>,
    test: Option<String>,
    package: Option<String>,
    framework: Option<String>,
    /// The time limit in seconds.
    timeout: Option<f64>,
}

impl Command for RunTests {
    type Argument = Argument;
    const NAME: &'static str = "consort.runTests";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"system"?: "...", "suite"?: "...", "test"?: "...", "package"?: "...", "framework"?: "fiveam" | "parachute" | "rove" | "asdf", "timeout"?: seconds}]"#;

    async fn execute(connection: &Connection, argument: Argument, token: Option<ProgressToken>) -> Result<Value> {
        let Argument { system, suite, test, package, framework, timeout } = argument;
        let timeout = seconds(RunTests::NAME, timeout)?.unwrap_or(DEADLINE);
        let selection = TestSelection { system, suite, test, package, framework };
        let facts = run(connection, RunTestsRequest { selection, timeout, allowed: None }, token).await?;
        Ok(result_of(connection, &facts, false))
    }
}

/// Runs the test at a position of a document, with the test's current text there.
pub(in crate::lsp) struct RunTestAtPoint;

/// The argument of `consort.runTestAtPoint`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::lsp) struct Point {
    uri: Url,
    position: Position,
    /// True to show the outcome as a message too, because editors discard the result of a code
    /// lens.
    #[serde(default)]
    show: bool,
}

impl Command for RunTestAtPoint {
    type Argument = Point;
    const NAME: &'static str = "consort.runTestAtPoint";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "position": {"line", "character"}, "show"?: bool}]"#;

    async fn execute(connection: &Connection, argument: Point, token: Option<ProgressToken>) -> Result<Value> {
        let place = at_place(connection, &argument.uri, argument.position).await?;
        let form = toplevel_form(&place.document, place.offset).and_then(|form| definition(&place.document, form));
        let Some(definition) = form.filter(|definition| definition.test) else {
            let message = "There is no test at that place: no form (test NAME ...), (def-test ...), (deftest ...) or (define-test ...).";
            return Err(Error::invalid_params(message));
        };
        if let Some(failed) = current_test::evaluate(connection, argument.uri.as_str(), &place, &definition).await? {
            return Ok(result_of(connection, &failed, argument.show));
        }
        let selection =
            TestSelection { test: Some(definition.name), package: place.package.clone(), ..TestSelection::default() };
        let request = RunTestsRequest { selection, timeout: DEADLINE, allowed: None };
        let mut facts = run(connection, request, token).await?;
        if let (Ok(file), [test]) = (argument.uri.to_file_path(), facts.tests.as_mut_slice()) {
            // The files of the loaded systems need not have the test.
            let line = place.document.text().char_to_line(definition.form.start) + 1;
            test.place = Some(TestPlace { file, line });
        }
        Ok(result_of(connection, &facts, argument.show))
    }
}

async fn run(connection: &Connection, request: RunTestsRequest, token: Option<ProgressToken>) -> Result<TestReport> {
    let bar = connection.bars.begin(token, connection.negotiated().progress, "Running tests", true);
    let (progress, steps) = mpsc::unbounded_channel();
    let answer = connection.session.run_tests(connection.client, request, Some(progress));
    let answer = bar.follow(steps, answer).await?;
    Ok(TestReport::from(answer.map_err(|error| to_proto::error(&error))?))
}

/// Returns the result of the command. With `show`, also shows it as a message.
fn result_of(connection: &Connection, facts: &TestReport, show: bool) -> Value {
    let text = render(facts);
    if show {
        if facts.success {
            connection.show(Level::Info, &summary(facts));
        } else {
            connection.show(Level::Warning, &text);
        }
    }
    let mut result = json!(facts);
    result["text"] = text.into();
    result
}
