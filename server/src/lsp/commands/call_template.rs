//! `consort.callTemplate`: a call of the function at a position, to be completed in a REPL.

use lsp_types::{Position, ProgressToken, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::Command;
use crate::ide::call_template;
use crate::ide::context::Cursor;
use crate::lsp::connection::{Connection, no_document};
use crate::lsp::from_proto;
use crate::text::position::to_offset;

/// Returns the template of a call.
pub(super) struct CallTemplate;

/// The argument of `consort.callTemplate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Argument {
    uri: Url,
    position: Position,
    /// The package of the REPL.
    package: Option<String>,
}

impl Command for CallTemplate {
    type Argument = Argument;
    const NAME: &'static str = "consort.callTemplate";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "position": {"line", "character"}, "package"?: "..."}]"#;

    async fn execute(connection: &Connection, argument: Argument, _: Option<ProgressToken>) -> Result<Value> {
        let encoding = connection.negotiated().encoding;
        let context = connection.session.context(connection.client).await;
        let offset = |text: &ropey::Rope| to_offset(text, from_proto::position(argument.position), encoding);
        let cursor = Cursor::new(context, argument.uri.as_str(), offset).ok_or_else(|| no_document(&argument.uri))?;
        let template = call_template::at(&cursor, argument.package.as_deref()).await.map_err(Error::invalid_params)?;
        Ok(json!({"text": template.text(), "name": template.name, "arguments": template.arguments}))
    }
}
