//! Tests, as clients name them.

use serde::Serialize;

/// The tests to run. Every field that is given narrows the selection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TestSelection {
    /// The system to load with its test systems. The tests in their packages are run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The suite that contains the tests, at any depth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suite: Option<String>,
    /// The name of the tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
    /// The package of the tests' names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The framework: `fiveam`, `parachute`, `rove` or `asdf`. `None`: the first framework that has
    /// such tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
}

/// A test to run in an evaluation that stops at the test's errors and failed checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TestToDebug {
    /// The name.
    pub name: String,
    /// The package of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The framework: `fiveam`, `parachute` or `rove`. `None`: the first framework that has such a
    /// test.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub framework: Option<String>,
}
