//! The command `consort.evalDefinition`: the fix of a name that the image lacks.

use lsp_types::ProgressToken;
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::Command;
use super::eval::follow;
use crate::ide::definition_in_index::Named;
use crate::ide::unevaluated;
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::session::{EvalRequest, Level};

/// Evaluates the definitions of a name in a file of the workspace, in order, up to the first error.
pub(in crate::lsp) struct EvalDefinition;

/// The argument of `consort.evalDefinition`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::lsp) struct Argument {
    uri: String,
    name: String,
    package: Option<String>,
    /// The code of the diagnostic, which tells the kind of definition.
    code: String,
}

impl Command for EvalDefinition {
    type Argument = Argument;
    const NAME: &'static str = "consort.evalDefinition";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str =
        r#"[{"uri": "file:///...", "name": "...", "package"?: "...", "code": "undefined-function"}]"#;

    async fn execute(connection: &Connection, argument: Argument, token: Option<ProgressToken>) -> Result<Value> {
        let Argument { uri, name, package, code } = argument;
        let bar = connection.bars.begin(token, false, "Evaluating", true);
        let (session, client) = (&connection.session, connection.client);
        let context = session.context(client).await;
        let named = Named { name, package };
        let mut last = None;
        for one in unevaluated::code(&context, &named, &uri, &code).await {
            let request = EvalRequest {
                code: one.text,
                package: one.package,
                origin: Some(one.origin),
                debug: connection.negotiated().stops,
                threads: true,
                ..EvalRequest::default()
            };
            let answer = Box::pin(session.evaluate(client, request));
            let outcome = follow(connection, answer, None, &bar).await?.map_err(|error| to_proto::error(&error))?;
            last = Some(json!(outcome.facts()));
            if let Some(error) = &outcome.error {
                // The error is shown, because a quick fix runs this command and ignores the result.
                connection.show(Level::Error, &format!("Evaluating {} failed: {}", named.name, error.message));
                break;
            }
        }
        last.ok_or_else(|| {
            let why = format!("{} is not defined there any more: ask for the code actions again.", named.name);
            Error::invalid_params(why)
        })
    }
}
