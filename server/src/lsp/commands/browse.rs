//! Commands of an editor's tree views and terminals: `consort.packages`,
//! `consort.packageSymbols`, `consort.packageManual`, `consort.complete`, `consort.threads`,
//! `consort.interruptThread`, `consort.killThread`.

use lsp_types::ProgressToken;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;

use super::{Command, NoArgument};
use crate::ide::{browse, completion, package_manual};
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::model::image::ImageError;

/// Returns the answer of the image as a command's result.
fn as_json(answer: std::result::Result<impl Serialize, ImageError>) -> Result<Value> {
    answer.map(|answer| json!(answer)).map_err(|error| to_proto::error(&error))
}

/// Lists all packages.
pub(super) struct Packages;

impl Command for Packages {
    type Argument = NoArgument;
    const NAME: &'static str = "consort.packages";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = "[] or [{}]";

    async fn execute(connection: &Connection, NoArgument {}: NoArgument, _: Option<ProgressToken>) -> Result<Value> {
        as_json(browse::packages(&connection.session).await)
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
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"package": "..."}]"#;

    async fn execute(connection: &Connection, Package { package }: Package, _: Option<ProgressToken>) -> Result<Value> {
        as_json(browse::package_symbols(&connection.session, package).await)
    }
}

/// Returns the documentation of a package's exports, or of those of a system's packages, as text.
pub(super) struct PackageManual;

/// The argument of `consort.packageManual`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PackageOrSystem {
    name: String,
}

impl Command for PackageManual {
    type Argument = PackageOrSystem;
    const NAME: &'static str = "consort.packageManual";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"name": "..."}]"#;

    async fn execute(
        connection: &Connection,
        PackageOrSystem { name }: PackageOrSystem,
        _: Option<ProgressToken>,
    ) -> Result<Value> {
        let text = package_manual::page(&connection.session, name.clone()).await;
        text.map(|text| json!({"name": name, "text": text})).map_err(|error| to_proto::error(&error))
    }
}

/// Completes the beginning of a name outside a document.
pub(super) struct Complete;

/// The argument of `consort.complete`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompleteArgument {
    text: String,
    #[serde(default)]
    package: Option<String>,
    #[serde(default)]
    operator: bool,
}

impl Command for Complete {
    type Argument = CompleteArgument;
    const NAME: &'static str = "consort.complete";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"text": "...", "package"?: "...", "operator"?: bool}]"#;

    async fn execute(
        connection: &Connection,
        CompleteArgument { text, package, operator }: CompleteArgument,
        _: Option<ProgressToken>,
    ) -> Result<Value> {
        let found = completion::outside(&connection.session, text, package, operator).await;
        let found = found.map_err(|error| to_proto::error(&error))?;
        let items: Vec<Value> = found.items.iter().map(|one| json!({"label": one.label, "kind": one.kind})).collect();
        Ok(json!({"items": items, "incomplete": found.incomplete}))
    }
}

/// Lists all threads.
pub(super) struct Threads;

impl Command for Threads {
    type Argument = NoArgument;
    const NAME: &'static str = "consort.threads";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = "[] or [{}]";

    async fn execute(connection: &Connection, NoArgument {}: NoArgument, _: Option<ProgressToken>) -> Result<Value> {
        as_json(browse::threads(&connection.session).await)
    }
}

/// Interrupts a thread.
pub(super) struct InterruptThread;

/// Ends a thread.
pub(super) struct KillThread;

/// The argument of `consort.interruptThread` and `consort.killThread`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ThreadArgument {
    number: u64,
}

const THREAD_EXPECTS: &str = r#"[{"number": n}], n being one of `consort.threads`"#;

impl Command for InterruptThread {
    type Argument = ThreadArgument;
    const NAME: &'static str = "consort.interruptThread";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = THREAD_EXPECTS;

    async fn execute(
        connection: &Connection,
        ThreadArgument { number }: ThreadArgument,
        _: Option<ProgressToken>,
    ) -> Result<Value> {
        as_json(connection.session.interrupt_thread(connection.client, number).await)
    }
}

impl Command for KillThread {
    type Argument = ThreadArgument;
    const NAME: &'static str = "consort.killThread";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = THREAD_EXPECTS;

    async fn execute(
        connection: &Connection,
        ThreadArgument { number }: ThreadArgument,
        _: Option<ProgressToken>,
    ) -> Result<Value> {
        as_json(connection.session.kill_thread(connection.client, number).await)
    }
}
