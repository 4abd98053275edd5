//! The command `consort.apropos`: finds symbols of the image by a part of their names.

use lsp_types::ProgressToken;
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;

use super::Command;
use crate::ide::apropos::{self, AproposQuery};
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;

/// The maximum number of symbols in an answer.
const MAX_SYMBOLS: usize = 1_000;

/// Finds symbols.
pub(super) struct Apropos;

/// The argument of `consort.apropos`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Argument {
    pattern: String,
    package: Option<String>,
    #[serde(default)]
    external: bool,
    limit: Option<usize>,
}

impl Command for Apropos {
    type Argument = Argument;
    const NAME: &'static str = "consort.apropos";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"pattern": "...", "package"?: "...", "external"?: bool, "limit"?: number}]"#;

    async fn execute(connection: &Connection, argument: Argument, _: Option<ProgressToken>) -> Result<Value> {
        let Argument { pattern, package, external, limit } = argument;
        let wanted = AproposQuery { pattern, package, external, limit: limit.map(|limit| limit.clamp(1, MAX_SYMBOLS)) };
        let found = apropos::find(&connection.session, wanted).await;
        found.map(|(found, _)| json!(found)).map_err(|error| to_proto::error(&error))
    }
}
