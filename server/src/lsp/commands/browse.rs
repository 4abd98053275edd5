//! What an editor's trees and terminals ask: `consort.packages`, `consort.packageSymbols`, `consort.complete`, `consort.threads`,
//! `consort.interruptThread`, `consort.killThread`.

use lsp_types::ProgressToken;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::{Command, Nothing};
use crate::image::api::Operation;
use crate::image::api::browse;
use crate::image::api::symbols::Complete as CompleteName;
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;

/// Completions that an answer has at most.
const COMPLETIONS: usize = 200;

/// Look something up in the image; its answer as it is.
async fn look<O: Operation<Answer: Serialize>>(connection: &Connection, operation: O) -> Result<Value> {
    let answer = connection.session.query(operation).await.map_err(|error| to_proto::error(&error))?;
    serde_json::to_value(answer).map_err(|error| Error { message: error.to_string().into(), ..Error::internal_error() })
}

/// All packages.
pub(super) struct Packages;

impl Command for Packages {
    type Argument = Nothing;
    const NAME: &'static str = "consort.packages";
    const EXPECTS: &'static str = "[] or [{}]";

    async fn execute(connection: &Connection, Nothing {}: Nothing, _: Option<ProgressToken>) -> Result<Value> {
        look(connection, browse::Packages {}).await
    }
}

/// The symbols of a package.
pub(super) struct PackageSymbols;

/// Its argument.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Package {
    package: String,
}

impl Command for PackageSymbols {
    type Argument = Package;
    const NAME: &'static str = "consort.packageSymbols";
    const EXPECTS: &'static str = r#"[{"package": "..."}]"#;

    async fn execute(connection: &Connection, Package { package }: Package, _: Option<ProgressToken>) -> Result<Value> {
        look(connection, browse::PackageSymbols { name: package }).await
    }
}

/// What a name that was begun may become, where there is no document.
pub(super) struct Complete;

/// Its argument.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Begun {
    text: String,
    #[serde(default)]
    package: Option<String>,
    #[serde(default)]
    operator: bool,
}

impl Command for Complete {
    type Argument = Begun;
    const NAME: &'static str = "consort.complete";
    const EXPECTS: &'static str = r#"[{"text": "...", "package"?: "...", "operator"?: bool}]"#;

    async fn execute(
        connection: &Connection,
        Begun { text, package, operator }: Begun,
        _: Option<ProgressToken>,
    ) -> Result<Value> {
        let question = CompleteName { text, package, limit: COMPLETIONS, operator, packages: false };
        let found = connection.session.query(question).await.map_err(|error| to_proto::error(&error))?;
        let items: Vec<Value> = found.items.iter().map(|one| json!({"label": one.label, "kind": one.kind})).collect();
        Ok(json!({"items": items, "incomplete": found.incomplete}))
    }
}

/// All threads.
pub(super) struct Threads;

impl Command for Threads {
    type Argument = Nothing;
    const NAME: &'static str = "consort.threads";
    const EXPECTS: &'static str = "[] or [{}]";

    async fn execute(connection: &Connection, Nothing {}: Nothing, _: Option<ProgressToken>) -> Result<Value> {
        look(connection, browse::Threads {}).await
    }
}

/// Interrupt a thread.
pub(super) struct InterruptThread;

/// End a thread.
pub(super) struct KillThread;

/// Which thread.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    number: u64,
}

const WHICH: &str = r#"[{"number": n}], n being one of `consort.threads`"#;

/// Change the image by an operation on a thread.
async fn stop<O: Operation<Answer = browse::StoppedThread>>(
    connection: &Connection,
    what: String,
    operation: O,
) -> Result<Value> {
    let answer = connection.session.run(connection.client, what, |_| operation, None, None).await;
    answer.map(|stopped| json!(stopped)).map_err(|error| to_proto::error(&error))
}

impl Command for InterruptThread {
    type Argument = Which;
    const NAME: &'static str = "consort.interruptThread";
    const EXPECTS: &'static str = WHICH;

    async fn execute(connection: &Connection, Which { number }: Which, _: Option<ProgressToken>) -> Result<Value> {
        stop(connection, format!("interrupting thread {number}"), browse::InterruptThread { number }).await
    }
}

impl Command for KillThread {
    type Argument = Which;
    const NAME: &'static str = "consort.killThread";
    const EXPECTS: &'static str = WHICH;

    async fn execute(connection: &Connection, Which { number }: Which, _: Option<ProgressToken>) -> Result<Value> {
        stop(connection, format!("ending thread {number}"), browse::KillThread { number }).await
    }
}
