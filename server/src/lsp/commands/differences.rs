//! The command `consort.differences`.

use lsp_types::{ProgressToken, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;

use super::Command;
use crate::file_uri::path_of_uri;
use crate::ide::differences;
use crate::lsp::connection::{Connection, no_document};
use crate::lsp::to_proto;
use crate::model::image::ImageError;

/// Returns the forms of a document that differ from the image.
pub(super) struct Differences;

/// The argument of `consort.differences`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Argument {
    uri: Url,
}

impl Command for Differences {
    type Argument = Argument;
    const NAME: &'static str = "consort.differences";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"uri": "file:///..."}]"#;

    async fn execute(connection: &Connection, Argument { uri }: Argument, _: Option<ProgressToken>) -> Result<Value> {
        let document = connection.session.document(connection.client, uri.as_str()).await;
        let Some(document) = document else { return Err(no_document(&uri)) };
        let (text, version) = (document.text().clone(), document.version());
        let found = differences::of(&connection.session, text.clone(), path_of_uri(uri.as_str())).await;
        let found = match found {
            // The editor asks again when the image is ready.
            Err(ImageError::Starting(_)) => Vec::new(),
            found => found.map_err(|error| to_proto::error(&error))?,
        };
        let encoding = connection.negotiated().encoding;
        let form = |one: differences::Difference| json!({"range": to_proto::range(&text, one.form, encoding), "names": one.names, "state": one.state});
        Ok(json!({"version": version, "forms": found.into_iter().map(form).collect::<Vec<_>>()}))
    }
}
