//! `apropos`: symbols by a part of their names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::described;
use crate::image::api::symbols;

/// The tool `apropos`.
pub(crate) struct Apropos;

/// The default maximum number of symbols.
const LIMIT: usize = 50;

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

/// The symbols found.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Found {
    total: usize,
    /// `name`, `kind`, `lambda_list`, `summary`.
    symbols: Vec<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Tool for Apropos {
    type Input = Input;
    type Output = Found;

    const NAME: &'static str = "apropos";
    const TITLE: &'static str = "Find symbols";
    const DESCRIPTION: &'static str = "Symbols of loaded code and COMMON-LISP that name something, by a part of their names, with kind, \
lambda list and summary. Use it to find out what there is; with an empty pattern and a package, what that offers.";
    const HINTS: Hints = Hints { read_only: true, destructive: false, idempotent: true, open_world: false };

    async fn call(call: Call, input: Input) -> Reply<Found> {
        let question = symbols::Apropos {
            pattern: input.pattern.clone(),
            package: input.package.clone(),
            external: input.external.unwrap_or(false),
            system: false,
            limit: input.limit.unwrap_or(LIMIT),
            definitions: false,
        };
        let answer = match call.session.query(question).await {
            Ok(answer) => answer,
            Err(error) => return Failure::of(error, input.package.as_deref()).into(),
        };
        let mut text = match answer.total {
            0 => format!("No symbol that names something has {:?} in its name.", input.pattern),
            n if n > answer.symbols.len() => format!("{} of {n} symbols:", answer.symbols.len()),
            n => format!("{n} symbol{}:", if n == 1 { "" } else { "s" }),
        };
        let mut facts = Found { total: answer.total, ..Found::default() };
        for one in answer.symbols {
            let list = one.lambda_list.as_ref().map(|list| described::signature(&one.name, list));
            text.push_str(&format!("\n{} [{}]", list.as_ref().unwrap_or(&one.name), one.kind));
            let mut fields = Map::new();
            fields.insert("name".into(), one.name.into());
            fields.insert("kind".into(), one.kind.into());
            if let Some(list) = list {
                fields.insert("lambda_list".into(), list.into());
            }
            if let Some(summary) = one.summary {
                text.push_str(&format!(" {summary}"));
                fields.insert("summary".into(), summary.into());
            }
            facts.symbols.push(fields);
        }
        Reply { text, facts, failed: false, full: None }
    }
}

impl FromFailure for Found {
    fn from_failure(failure: Failure) -> Self {
        Found { error: Some(failure.message), ..Found::default() }
    }
}
