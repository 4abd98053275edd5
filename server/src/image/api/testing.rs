//! `run-tests`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Operation;
use crate::model::evaluation::{Clipped, EvalOutcome};

/// `run-tests`: all that is given narrows it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RunTestsParams {
    /// Load this system and its test systems, and run what is in their packages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Of this suite, at any depth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// Of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// Whose names are in this package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// `fiveam`, `parachute`, `rove` or `asdf`; otherwise the first that has such tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
    /// Seconds after which the image itself interrupts.
    pub timeout: f64,
    /// The workspace's `.asd` files.
    pub asd_files: Vec<PathBuf>,
}

/// A check that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFailure {
    /// In the framework's words, on one line.
    pub message: String,
    /// The form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    /// Where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// Where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
}

/// A test that was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TestOutcome {
    /// `PACKAGE::NAME`.
    pub name: String,
    /// The nearest suite.
    #[serde(default)]
    pub suite: Option<String>,
    /// `passed`, `failed`, `error` or `skipped`.
    pub status: String,
    /// How many checks it made, if the framework tells.
    pub checks: u64,
    /// In their order.
    #[serde(default)]
    pub failures: Vec<CheckFailure>,
    /// Where it is defined, where that could be found.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// 1-based.
    #[serde(default)]
    pub line: Option<usize>,
    /// Wall clock.
    pub milliseconds: f64,
    /// What it printed.
    #[serde(default)]
    pub output: Clipped,
}

/// The answer to `run-tests`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunTestsOutcome {
    /// How the run as a whole ended; a test that fails is no error of it.
    #[serde(flatten)]
    pub outcome: EvalOutcome,
    /// What the tests are written with.
    #[serde(default)]
    pub framework: Option<String>,
    /// Those that were run.
    #[serde(default)]
    pub tests: Vec<TestOutcome>,
}

impl Operation for RunTestsParams {
    const NAME: &'static str = "run-tests";
    type Answer = RunTestsOutcome;
}
