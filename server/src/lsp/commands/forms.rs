//! Evaluation of text in a document: `consort.evalForm`, `consort.evalRegion`,
//! `consort.evalBuffer`, `consort.evalToCursor`, `consort.evalToComment`.

use lsp_types::{Position, ProgressToken, Range, TextEdit, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::eval::{Reports, follow};
use super::{Command, seconds};
use crate::ide::evaluate_part::comment;
use crate::lsp::connection::{Connection, no_document};
use crate::lsp::edits::{self, EditedText};
use crate::lsp::{from_proto, to_proto};
use crate::model::evaluation::EvalOutcome;
use crate::model::image::ImageError;
use crate::session::{EvalRequest, Part, Selected};

/// The options of an evaluation.
#[derive(Debug, Default)]
struct EvalOptions {
    timeout: Option<f64>,
    capture_time: bool,
    output_token: Option<Value>,
}

macro_rules! argument {
    ($(#[$about:meta])* $name:ident { $($field:tt)* }) => {
        $(#[$about])*
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        pub(super) struct $name {
            uri: Url,
            $($field)*
            /// The deadline, in seconds.
            timeout: Option<f64>,
            #[serde(default)]
            capture_time: bool,
            /// The token with which the beginning and the output of the evaluation are sent, if
            /// any.
            output_token: Option<Value>,
        }

        impl $name {
            fn options(&self) -> EvalOptions {
                EvalOptions { timeout: self.timeout, capture_time: self.capture_time, output_token: self.output_token.clone() }
            }
        }
    };
}

argument!(
    /// The argument of `consort.evalForm`, `consort.evalToCursor` and `consort.evalToComment`.
    AtPosition {
        position: Position,
        /// True for the top-level form around the position; ignored by `consort.evalToCursor`.
        #[serde(default)]
        top_level: bool,
    }
);
argument!(
    /// The argument of `consort.evalRegion`.
    InRange {
        range: Range,
    }
);
argument!(
    /// The argument of `consort.evalBuffer`.
    Whole {}
);

impl AtPosition {
    fn part(&self) -> Part {
        let at = from_proto::position(self.position);
        if self.top_level { Part::TopLevel(at) } else { Part::Form(at) }
    }
}

/// Evaluates the form at a position.
pub(super) struct EvalForm;
/// Evaluates the selection.
pub(super) struct EvalRegion;
/// Evaluates a document.
pub(super) struct EvalBuffer;
/// Evaluates the top-level forms up to a position.
pub(super) struct EvalToCursor;
/// Evaluates the form at a position and writes its values below the form.
pub(super) struct EvalToComment;

impl Command for EvalForm {
    type Argument = AtPosition;
    const NAME: &'static str = "consort.evalForm";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "position": {"line", "character"}, "topLevel"?: bool, "timeout"?: seconds, "captureTime"?: bool, "outputToken"?: token}]"#;

    async fn execute(connection: &Connection, argument: AtPosition, token: Option<ProgressToken>) -> Result<Value> {
        answer(connection, Self::NAME, &argument.uri, argument.part(), argument.options(), token).await
    }
}

impl Command for EvalRegion {
    type Argument = InRange;
    const NAME: &'static str = "consort.evalRegion";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "range": {"start": {...}, "end": {...}}, "timeout"?: seconds, "captureTime"?: bool, "outputToken"?: token}]"#;

    async fn execute(connection: &Connection, argument: InRange, token: Option<ProgressToken>) -> Result<Value> {
        let Range { start, end } = argument.range;
        let part = Part::Region(from_proto::position(start), from_proto::position(end));
        answer(connection, Self::NAME, &argument.uri, part, argument.options(), token).await
    }
}

impl Command for EvalBuffer {
    type Argument = Whole;
    const NAME: &'static str = "consort.evalBuffer";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str =
        r#"[{"uri": "file:///...", "timeout"?: seconds, "captureTime"?: bool, "outputToken"?: token}]"#;

    async fn execute(connection: &Connection, argument: Whole, token: Option<ProgressToken>) -> Result<Value> {
        answer(connection, Self::NAME, &argument.uri, Part::Buffer, argument.options(), token).await
    }
}

impl Command for EvalToCursor {
    type Argument = AtPosition;
    const NAME: &'static str = "consort.evalToCursor";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "position": {"line", "character"}, "timeout"?: seconds, "captureTime"?: bool, "outputToken"?: token}]"#;

    async fn execute(connection: &Connection, argument: AtPosition, token: Option<ProgressToken>) -> Result<Value> {
        let part = Part::UpTo(from_proto::position(argument.position));
        answer(connection, Self::NAME, &argument.uri, part, argument.options(), token).await
    }
}

impl Command for EvalToComment {
    type Argument = AtPosition;
    const NAME: &'static str = "consort.evalToComment";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = EvalForm::EXPECTS;

    async fn execute(connection: &Connection, argument: AtPosition, token: Option<ProgressToken>) -> Result<Value> {
        let part = argument.part();
        let Some((selected, outcome)) =
            evaluate(connection, Self::NAME, &argument.uri, part, argument.options(), token).await?
        else {
            return no_form_error(connection, &argument.uri).await;
        };
        let mut value = result_of(connection, &selected, &outcome);
        let lines: Vec<String> = match &outcome.error {
            Some(error) => vec![format!("{}: {}", error.kind, error.message)],
            None => outcome.values.iter().map(|value| value.text.clone()).collect(),
        };
        let text = selected.text.to_string();
        let bytes = selected.text.char_to_byte(selected.span.start)..selected.text.char_to_byte(selected.span.end);
        let (range, new_text) = comment(&text, &bytes, &lines);
        let span = (selected.text.byte_to_char(range.start), selected.text.byte_to_char(range.end)).into();
        let edit =
            TextEdit { range: to_proto::range(&selected.text, span, connection.negotiated().encoding), new_text };
        let versions = connection.negotiated().document_changes;
        let edit = to_proto::edit(&argument.uri, Some(selected.version), versions, vec![edit]);
        let edited = EditedText { uri: argument.uri.to_string(), text: selected.text };
        let client = (&connection.session, connection.client);
        let applied =
            edits::apply(client, &connection.peer, "Value as comment", edit, &[edited], Some(edits::APPLY_TIMEOUT))
                .await;
        value["applied"] = json!(applied.is_ok());
        value["reason"] = json!(applied.err());
        Ok(value)
    }
}

async fn answer(
    connection: &Connection,
    name: &str,
    uri: &Url,
    part: Part,
    options: EvalOptions,
    token: Option<ProgressToken>,
) -> Result<Value> {
    match evaluate(connection, name, uri, part, options, token).await? {
        Some((selected, outcome)) => Ok(result_of(connection, &selected, &outcome)),
        None => no_form_error(connection, uri).await,
    }
}

async fn evaluate(
    connection: &Connection,
    name: &str,
    uri: &Url,
    part: Part,
    options: EvalOptions,
    token: Option<ProgressToken>,
) -> Result<Option<(Selected, EvalOutcome)>> {
    let bar = connection.bars.begin(token, false, "Evaluating", true);
    let mut request = EvalRequest {
        capture_time: options.capture_time,
        timeout: seconds(name, options.timeout)?,
        debug: connection.negotiated().stops,
        threads: true,
        ..EvalRequest::default()
    };
    let reports = options.output_token.map(|token| Reports::of(token, &mut request));
    let answer = Box::pin(connection.session.evaluate_part(connection.client, request, uri.as_str(), part));
    match follow(connection, answer, reports, &bar).await? {
        Some((selected, Ok(outcome))) => Ok(Some((selected, outcome))),
        Some((selected, Err(error))) => Err(failure(connection, &selected, &error)),
        None => Ok(None),
    }
}

/// Returns the error of an evaluation, with the range of the code, so that the client can mark it.
fn failure(connection: &Connection, selected: &Selected, error: &ImageError) -> Error {
    let mut failure = to_proto::error(error);
    if let Some(data) = &mut failure.data {
        data["range"] = json!(to_proto::range(&selected.text, selected.span, connection.negotiated().encoding));
    }
    failure
}

/// Returns the same result as `consort.eval`, with the range of the code and the document's
/// version.
fn result_of(connection: &Connection, selected: &Selected, outcome: &EvalOutcome) -> Value {
    let mut value = json!(outcome.facts());
    value["range"] = json!(to_proto::range(&selected.text, selected.span, connection.negotiated().encoding));
    value["version"] = json!(selected.version);
    value
}

async fn no_form_error(connection: &Connection, uri: &Url) -> Result<Value> {
    match connection.session.document(connection.client, uri.as_str()).await {
        Some(_) => Err(Error::invalid_params("There is no form at this position.")),
        None => Err(no_document(uri)),
    }
}
