//! The command `consort.sourceLocation` (contracts: hot-reload, `source_location`).

use lsp_types::ProgressToken;
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};

use super::Command;
use crate::ide::source_location::{self, Locations};
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::model::image::ImageError;

/// Returns every definition of a symbol.
pub(super) struct SourceLocation;

/// The argument of `consort.sourceLocation`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceLocationArgument {
    symbol: String,
    #[serde(default)]
    package: Option<String>,
    #[serde(default)]
    kind: Option<String>,
}

impl Command for SourceLocation {
    type Argument = SourceLocationArgument;
    const NAME: &'static str = "consort.sourceLocation";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"symbol": "...", "package"?: "...", "kind"?: "..."}]"#;

    async fn execute(
        connection: &Connection,
        SourceLocationArgument { symbol, package, kind }: SourceLocationArgument,
        _: Option<ProgressToken>,
    ) -> Result<Value> {
        let context = connection.session.context(connection.client).await;
        let kinds = source_location::kinds(kind.as_deref()).map_err(Error::invalid_params)?;
        let (facts, defined) = match source_location::find(&context, &symbol, package.as_deref(), kinds).await {
            Ok(found) => found,
            Err(ImageError::Refused { kind, message }) => {
                let failed = Locations::failed(&symbol, kind, message.clone());
                let data = failed.error.and_then(|mut error| error.remove("data"));
                return Err(Error { code: ErrorCode::ServerError(-32000), message: message.into(), data });
            }
            Err(error) => return Err(to_proto::error(&error)),
        };
        let encoding = connection.negotiated().encoding;
        let definitions: Vec<Value> = defined
            .iter()
            .map(|one| {
                let mut fields = Value::Object(source_location::fields(one));
                fields["location"] = json!(to_proto::location(&one.target(), encoding));
                if let (Some(text), Some(place)) = (&one.text, one.place) {
                    fields["form"] = json!(to_proto::range(text.document.text(), place.form, encoding));
                }
                fields
            })
            .collect();
        Ok(json!({"symbol": facts.symbol, "definitions": definitions, "note": facts.note}))
    }
}
