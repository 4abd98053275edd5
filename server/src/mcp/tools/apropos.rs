//! The tool `apropos`: symbols by a part of their names.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::apropos::{self, AproposQuery, AproposResult};

/// The tool `apropos`.
pub(crate) struct Apropos;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Part of the name, in any case
    pattern: String,
    /// Only symbols of this package
    #[serde(default)]
    package: Option<String>,
    /// Only exported ones
    #[serde(default)]
    external: Option<bool>,
    /// Default 50
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

impl Tool for Apropos {
    type Input = Input;
    type Output = AproposResult;

    const NAME: &'static str = "apropos";
    const RUNS_CODE: bool = false;
    const DESCRIPTION: &'static str = "Loaded symbols by a part of their names, with kind, lambda list and summary; \
an empty pattern with a package: all it has.";
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

    async fn call(call: Call, input: Input) -> Reply<AproposResult> {
        let Input { pattern, package, external, limit } = input;
        let wanted = AproposQuery { pattern, package: package.clone(), external: external.unwrap_or(false), limit };
        match apropos::find(&call.session, wanted).await {
            Ok((facts, text)) => Reply { text, facts, failed: false, full: None },
            Err(error) => Failure::of(error, package.as_deref()).into(),
        }
    }
}

impl FromFailure for AproposResult {
    fn from_failure(failure: Failure) -> Self {
        AproposResult::failed(failure.into())
    }
}
