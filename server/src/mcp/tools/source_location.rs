//! `source_location`, as specified by its contract (hot-reload).

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::source_location::{self, Locations};
use crate::model::error_kind::ErrorKind;

/// The tool `source_location`.
pub(crate) struct SourceLocation;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// pkg:name, name, (setf name), a package
    #[schemars(length(min = 1))]
    symbol: String,
    /// Package in which the name is read
    #[serde(default)]
    package: Option<String>,
    #[schemars(
        description = "function, method, macro, variable, class, structure, condition, package, compiler-macro, setf, type"
    )]
    #[serde(default)]
    kind: Option<String>,
}

impl Tool for SourceLocation {
    type Input = Input;
    type Output = Locations;

    const NAME: &'static str = "source_location";
    const RUNS_CODE: bool = false;
    const DESCRIPTION: &'static str = "Every definition of a symbol in loaded code: file, line, column, first lines.";
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

    async fn call(call: Call, input: Input) -> Reply<Locations> {
        let Input { symbol, package, kind } = input;
        let context = call.session.context(call.client).await;
        let kinds = match source_location::kinds(kind.as_deref()) {
            Ok(kinds) => kinds,
            Err(message) => return Failure { kind: ErrorKind::BAD_ARGUMENTS, message }.into(),
        };
        match source_location::find(&context, &symbol, package.as_deref(), kinds).await {
            Ok((facts, _)) => Reply { text: facts.render(), facts, failed: false, full: None },
            Err(error) => Failure::of(error, package.as_deref()).into(),
        }
    }
}

impl FromFailure for Locations {
    fn from_failure(failure: Failure) -> Self {
        Locations::failed("", failure.kind, failure.message)
    }
}
