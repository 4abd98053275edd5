//! `consort.inspectDefinition` and `consort.inspectDescribe`: the definitions of a value in the
//! inspector, and the text that `describe` prints about it.

use lsp_types::ProgressToken;
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;

use super::Command;
use crate::ide::clip::{LIMIT, clip};
use crate::ide::name_tools::Printed;
use crate::ide::value_definition;
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::session::debug::InspectDescribe;

/// The argument of both commands: the reference of a value in the inspector.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ValueArgument {
    reference: u64,
}

/// `consort.inspectDefinition`.
pub(super) struct Definition;

impl Command for Definition {
    type Argument = ValueArgument;
    const NAME: &'static str = "consort.inspectDefinition";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"reference": number}]"#;

    async fn execute(
        connection: &Connection,
        ValueArgument { reference }: ValueArgument,
        _: Option<ProgressToken>,
    ) -> Result<Value> {
        let context = connection.session.context(connection.client).await;
        let found = value_definition::of(&context, reference).await.map_err(|error| to_proto::error(&error))?;
        let encoding = connection.negotiated().encoding;
        let place = |one: &value_definition::Defined| {
            let location = to_proto::location(&one.target(), encoding)?;
            Some(json!({"kind": one.kind, "name": one.name, "uri": location.uri, "range": location.range}))
        };
        Ok(json!({"definitions": found.iter().filter_map(place).collect::<Vec<Value>>()}))
    }
}

/// `consort.inspectDescribe`.
pub(super) struct Describe;

impl Command for Describe {
    type Argument = ValueArgument;
    const NAME: &'static str = "consort.inspectDescribe";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = Definition::EXPECTS;

    async fn execute(
        connection: &Connection,
        ValueArgument { reference }: ValueArgument,
        _: Option<ProgressToken>,
    ) -> Result<Value> {
        let outcome = connection.session.at_stop(InspectDescribe { reference }).await;
        let Printed { text, error } = Printed::from(outcome.map_err(|error| to_proto::error(&error))?);
        Ok(json!({"text": clip(&text, LIMIT).text, "error": error}))
    }
}
