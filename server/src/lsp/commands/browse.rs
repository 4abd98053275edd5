//! Commands of an editor's tree views and terminals: `consort.packages`,
//! `consort.packageSymbols`, `consort.complete`, `consort.threads`, `consort.interruptThread`,
//! `consort.killThread`.

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

/// The maximum number of completions in an answer.
const COMPLETIONS: usize = 200;

/// Runs a query in the image and returns its answer unchanged.
async fn look<O: Operation<Answer: Serialize>>(connection: &Connection, operation: O) -> Result<Value> {
    let answer = connection.session.query(operation).await.map_err(|error| to_proto::error(&error))?;
    serde_json::to_value(answer).map_err(|error| Error { message: error.to_string().into(), ..Error::internal_error() })
}

/// Lists all packages.
pub(super) struct Packages;

impl Command for Packages {
    type Argument = Nothing;
    const NAME: &'static str = "consort.packages";
    const EXPECTS: &'static str = "[] or [{}]";

    async fn execute(connection: &Connection, Nothing {}: Nothing, _: Option<ProgressToken>) -> Result<Value> {
        look(connection, browse::Packages {}).await
    }
}

/// Lists the symbols of a package.
pub(super) struct PackageSymbols;

/// The argument of `consort.packageSymbols`.
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

/// Completes the beginning of a name outside a document.
pub(super) struct Complete;

/// The argument of `consort.complete`.
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

/// Lists all threads.
pub(super) struct Threads;

impl Command for Threads {
    type Argument = Nothing;
    const NAME: &'static str = "consort.threads";
    const EXPECTS: &'static str = "[] or [{}]";

    async fn execute(connection: &Connection, Nothing {}: Nothing, _: Option<ProgressToken>) -> Result<Value> {
        look(connection, browse::Threads {}).await
    }
}

/// Interrupts a thread.
pub(super) struct InterruptThread;

/// Ends a thread.
pub(super) struct KillThread;

/// The thread to interrupt or end.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    number: u64,
}

const WHICH: &str = r#"[{"number": n}], n being one of `consort.threads`"#;

/// Runs an operation on a thread that changes the image.
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
