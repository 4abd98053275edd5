//! The commands of the inspector, such as `consort.inspect`. A value is identified by its
//! reference, a number that is in the answer of an evaluation and in each part of a value.

use lsp_types::ProgressToken;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;

use super::Command;
use crate::ide::context::Backend as _;
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::model::action_outcome::ActionOutcome;
use crate::model::image::ImageError;
use crate::session::debug::{Inspect as Parts, InspectCompare, InspectEval, InspectSet, InspectTable};

/// The number of parts or rows of an answer, unless the client requests another one.
const PAGE: usize = 100;
/// The maximum number of parts or rows of an answer.
const MAX_PAGE: usize = 1000;

/// Returns a page of the parts of a value.
pub(super) struct Inspect;

/// The argument of `consort.inspect` and `consort.inspectTable`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    reference: u64,
    #[serde(default)]
    start: usize,
    count: Option<usize>,
}

impl Page {
    fn count(&self) -> usize {
        self.count.unwrap_or(PAGE).clamp(1, MAX_PAGE)
    }
}

fn answered<T: Serialize>(answer: std::result::Result<T, ImageError>) -> Result<Value> {
    answer.map(|answer| json!(answer)).map_err(|error| to_proto::error(&error))
}

impl Command for Inspect {
    type Argument = Page;
    const NAME: &'static str = "consort.inspect";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"reference": number, "start"?: number, "count"?: number}]"#;

    async fn execute(connection: &Connection, page: Page, _: Option<ProgressToken>) -> Result<Value> {
        let (count, Page { reference, start, .. }) = (page.count(), page);
        answered(connection.session.query(Parts { reference, path: Vec::new(), start, count }).await)
    }
}

/// Returns a value as a table.
pub(super) struct Table;

impl Command for Table {
    type Argument = Page;
    const NAME: &'static str = "consort.inspectTable";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = Inspect::EXPECTS;

    async fn execute(connection: &Connection, page: Page, _: Option<ProgressToken>) -> Result<Value> {
        let (count, Page { reference, start, .. }) = (page.count(), page);
        answered(connection.session.query(InspectTable { reference, start, count }).await)
    }
}

/// Returns the differences between two values.
pub(super) struct Compare;

/// The argument of `consort.inspectCompare`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Two {
    reference: u64,
    other: u64,
}

impl Command for Compare {
    type Argument = Two;
    const NAME: &'static str = "consort.inspectCompare";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"reference": number, "other": number}]"#;

    async fn execute(
        connection: &Connection,
        Two { reference, other }: Two,
        _: Option<ProgressToken>,
    ) -> Result<Value> {
        answered(connection.session.query(InspectCompare { reference, other }).await)
    }
}

/// Evaluates code on a value.
pub(super) struct Evaluate;

/// The argument of `consort.inspectEval`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct On {
    reference: u64,
    code: String,
}

impl Command for Evaluate {
    type Argument = On;
    const NAME: &'static str = "consort.inspectEval";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"reference": number, "code": "..."}]"#;

    async fn execute(connection: &Connection, On { reference, code }: On, _: Option<ProgressToken>) -> Result<Value> {
        answered(connection.session.at_stop(InspectEval { reference, code, timeout: None }).await.map(outcome))
    }
}

/// Sets a part of a value.
pub(super) struct Set;

/// The argument of `consort.inspectSet`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SetArgument {
    reference: u64,
    part: usize,
    code: String,
}

impl Command for Set {
    type Argument = SetArgument;
    const NAME: &'static str = "consort.inspectSet";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"reference": number, "part": number, "code": "..."}]"#;

    async fn execute(connection: &Connection, given: SetArgument, _: Option<ProgressToken>) -> Result<Value> {
        let SetArgument { reference, part, code } = given;
        answered(connection.session.at_stop(InspectSet { reference, part, code, timeout: None }).await.map(outcome))
    }
}

/// Returns the values of the code, or its error.
fn outcome(done: ActionOutcome) -> Value {
    let error = done.error.map(|error| json!({"type": error.kind, "message": error.message}));
    json!({"status": done.status, "values": done.values, "error": error})
}
