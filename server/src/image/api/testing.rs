//! The operation `run-tests`, which runs the tests of the user's systems.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::reload::Allowed;
use super::{Freeze, Operation};
use crate::model::evaluation::{Clipped, EvalError, EvalOutcome};
use crate::model::frozen::Frozen;
use crate::model::testing::TestSelection;

/// The parameters of `run-tests`.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunTestsParams {
    /// The tests to run.
    #[serde(flatten)]
    pub selection: TestSelection,
    /// The number of seconds after which the image itself interrupts the run.
    pub timeout: f64,
    /// The workspace's `.asd` files.
    pub asd_files: Vec<PathBuf>,
    /// The contents that may be loaded; `None` allows the files as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Allowed>,
    /// The settings for freezing the errors of the first failing tests; `None` if they are only
    /// reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freeze: Option<Freeze>,
}

/// A check that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFailure {
    /// The message of the framework, on one line.
    pub message: String,
    /// The form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// The expected value, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The actual value, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
}

/// A test that was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestOutcome {
    /// The name: `PACKAGE::NAME`.
    pub name: String,
    /// The nearest suite.
    #[serde(default)]
    pub suite: Option<String>,
    /// `passed`, `failed`, `error` or `skipped`.
    pub status: String,
    /// The number of checks that the test made, if the framework reports it.
    pub checks: u64,
    /// The failed checks, in order.
    #[serde(default)]
    pub failures: Vec<CheckFailure>,
    /// The file of the definition, where known.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The line of the definition, 1-based.
    #[serde(default)]
    pub line: Option<usize>,
    /// The wall-clock time of the test.
    pub milliseconds: f64,
    /// The test's output.
    #[serde(default)]
    pub output: Clipped,
    /// The frozen failure of the error that ended the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<FrozenTest>,
}

/// The frozen failure of a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FrozenTest {
    /// The frozen failure.
    #[serde(flatten)]
    pub frozen: Frozen,
    /// The error that ended the test.
    pub error: EvalError,
}

/// The answer to `run-tests`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunTestsOutcome {
    /// The outcome of the run as a whole; a failed test is not an error of the run.
    #[serde(flatten)]
    pub outcome: EvalOutcome,
    /// The test framework.
    #[serde(default)]
    pub framework: Option<String>,
    /// The tests that were run.
    #[serde(default)]
    pub tests: Vec<TestOutcome>,
}

impl Operation for RunTestsParams {
    const NAME: &'static str = "run-tests";
    const IS_UNDER_TEST: bool = true;
    type Answer = RunTestsOutcome;
}
