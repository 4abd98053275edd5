//! The commands for the image: `consort.restartImage`, `consort.interrupt`, `consort.status`.

use lsp_types::ProgressToken;
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::{Command, NoArgument};
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::session::describe_image;

/// Ends the image and starts a new one.
pub(super) struct RestartImage;

impl Command for RestartImage {
    type Argument = NoArgument;
    const NAME: &'static str = "consort.restartImage";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = "[] or [{}]";

    async fn execute(
        connection: &Connection,
        NoArgument {}: NoArgument,
        token: Option<ProgressToken>,
    ) -> Result<Value> {
        let restarted = connection.session.restart_image(connection.client);
        let _bar = connection.bars.begin(token, false, "Restarting the Lisp image", false);
        restarted.await.map_err(|error| to_proto::error(&error))?;
        Ok(describe_image(&connection.session.image_state()))
    }
}

/// Interrupts this editor's work, or the work of all clients.
pub(super) struct Interrupt;

/// The argument of `consort.interrupt`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct InterruptArgument {
    /// True to interrupt the work of all clients.
    #[serde(default)]
    pub(super) everything: bool,
}

impl Command for Interrupt {
    type Argument = InterruptArgument;
    const NAME: &'static str = "consort.interrupt";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[] or [{"everything": bool}]"#;

    async fn execute(
        connection: &Connection,
        InterruptArgument { everything }: InterruptArgument,
        _: Option<ProgressToken>,
    ) -> Result<Value> {
        let interrupted = connection.calls.interrupt(everything);
        interrupted.count().await.map(|count| json!({"interrupted": count})).map_err(|error| to_proto::error(&error))
    }
}

/// Returns the data that `consort status` shows.
pub(super) struct Status;

impl Command for Status {
    type Argument = NoArgument;
    const NAME: &'static str = "consort.status";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = "[] or [{}]";

    async fn execute(connection: &Connection, NoArgument {}: NoArgument, _: Option<ProgressToken>) -> Result<Value> {
        serde_json::to_value(connection.session.status().await)
            .map_err(|error| Error { message: error.to_string().into(), ..Error::internal_error() })
    }
}
