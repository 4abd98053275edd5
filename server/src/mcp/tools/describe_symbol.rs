//! `describe-symbol`: a symbol's description, definitions, callers and callees.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::describe_symbol::{self, Description};
use crate::ide::references;
use crate::model::error_kind::ErrorKind;

/// The tool `describe-symbol`.
pub(crate) struct DescribeSymbol;

/// The tool's arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// Its name: pkg:name or name
    #[schemars(length(min = 1))]
    symbol: String,
    /// Package in which the name is read
    #[serde(default)]
    package: Option<String>,
    /// Also who uses it; slower
    #[serde(default)]
    callers: Option<bool>,
    #[schemars(
        description = "Its uses, loaded or not: calls, macroexpands, sets, binds, references, specializes, mentions"
    )]
    #[serde(default)]
    kinds: Option<Vec<String>>,
}

impl Tool for DescribeSymbol {
    type Input = Input;
    type Output = Description;

    const NAME: &'static str = "describe-symbol";
    const RUNS_CODE: bool = false;
    const DESCRIPTION: &'static str = "What a symbol is: kinds, lambda list, documentation, value, class (slots, \
initargs, methods), place, callees; with `callers` who calls it.";
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

    async fn call(call: Call, input: Input) -> Reply<Description> {
        let Input { symbol, package, callers, kinds } = input;
        let kinds = match references::kinds(&kinds.unwrap_or_default()) {
            Ok(kinds) => kinds,
            Err(message) => return Failure { kind: ErrorKind::BAD_ARGUMENTS, message }.into(),
        };
        let context = call.session.context(call.client).await;
        let callers = (callers == Some(true) || !kinds.is_empty()).then_some(kinds.as_slice());
        let workspace = call.session.workspace();
        match describe_symbol::symbol(&context, symbol, package.clone(), callers, workspace).await {
            Ok((facts, text)) => Reply { text, facts, failed: false, full: None },
            Err(error) => Failure::of(error, package.as_deref()).into(),
        }
    }
}

impl FromFailure for Description {
    fn from_failure(failure: Failure) -> Self {
        Description::failed(failure.into())
    }
}
