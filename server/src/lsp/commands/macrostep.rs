//! `consort.macrostep` and `consort.macroCalls`: the steps of a macro expansion in a client's copy
//! of a document. Each request contains the text of the copy. The server keeps no copy.

use lsp_types::{Position, ProgressToken, Range, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::form_at::FormAt;
use super::{Command, seconds};
use crate::lsp::connection::Connection;
use crate::lsp::{from_proto, to_proto};
use crate::model::expansion::{ExpandAnswer, ExpandError, ExpandExtent, ExpandRequest, Expansion};
use crate::session::requests;
use crate::text::Span;
use crate::text::document::Document;
use crate::text::position::to_offset;

/// Expands once the macro call at a place of a copy.
pub(super) struct Macrostep;

/// Finds the macro calls in the top-level form at a place of a copy.
pub(super) struct MacroCalls;

/// The argument of `consort.macrostep`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StepArgument {
    uri: Url,
    text: String,
    position: Position,
    /// The span of the largest form that may be expanded.
    within: Option<Range>,
    /// The time limit in seconds.
    timeout: Option<f64>,
}

/// The argument of `consort.macroCalls`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallsArgument {
    uri: Url,
    text: String,
    position: Position,
    /// The time limit in seconds.
    timeout: Option<f64>,
}

impl Command for Macrostep {
    type Argument = StepArgument;
    const NAME: &'static str = "consort.macrostep";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "text": "...", "position": {"line", "character"}, "within"?: {"start", "end"}, "timeout"?: seconds}]"#;

    async fn execute(connection: &Connection, argument: StepArgument, _: Option<ProgressToken>) -> Result<Value> {
        let timeout = seconds(Self::NAME, argument.timeout)?;
        let place = Place::of(connection, argument.uri, argument.text, argument.position).await?;
        let all = Span { start: 0, end: place.at.form.end - place.at.form.start };
        let within = argument.within.map_or(all, |range| place.span_of(connection, range));
        let request = ExpandRequest {
            offset: Some(place.at.offset),
            column: Some(place.at.column),
            within: Some(within),
            ..place.request(ExpandExtent::One, timeout)
        };
        Ok(match place.expand(connection, request).await? {
            Ok(done) => json!({
                "expansion": done.expansion, "expanded": done.expanded, "omitted": done.omitted, "form": done.form,
                "package": place.at.package, "range": place.range(connection, done.span), "error": null,
            }),
            Err(error) => json!({"expansion": null, "expanded": false, "package": place.at.package, "error": error}),
        })
    }
}

impl Command for MacroCalls {
    type Argument = CallsArgument;
    const NAME: &'static str = "consort.macroCalls";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str =
        r#"[{"uri": "file:///...", "text": "...", "position": {"line", "character"}, "timeout"?: seconds}]"#;

    async fn execute(connection: &Connection, argument: CallsArgument, _: Option<ProgressToken>) -> Result<Value> {
        let timeout = seconds(Self::NAME, argument.timeout)?;
        let place = Place::of(connection, argument.uri, argument.text, argument.position).await?;
        let request = place.request(ExpandExtent::Calls, timeout);
        Ok(match place.expand(connection, request).await? {
            Ok(done) => {
                let calls: Vec<Range> = done.calls.into_iter().map(|span| place.range(connection, span)).collect();
                json!({"calls": calls, "error": null})
            }
            Err(error) => json!({"calls": [], "error": error}),
        })
    }
}

/// A place in a copy.
struct Place {
    document: Document,
    at: FormAt,
}

impl Place {
    async fn of(connection: &Connection, uri: Url, text: String, position: Position) -> Result<Place> {
        let encoding = connection.negotiated().encoding;
        let found = requests::compute_whole(move || {
            let document = Document::new(&text, 0);
            let at = FormAt::of(&document, &uri, position, encoding)?;
            Some(Place { document, at })
        });
        let found = found.await.map_err(|error| Error::invalid_params(error.to_string()))?;
        found.ok_or_else(|| Error::invalid_params("There is no form at this place. Put the cursor into a macro call."))
    }

    /// Returns the request about the top-level form. The text may be a printed expansion.
    fn request(&self, how: ExpandExtent, timeout: Option<f64>) -> ExpandRequest {
        ExpandRequest {
            text: self.document.text().slice(self.at.form.start..self.at.form.end).to_string(),
            package: Some(self.at.package.clone()),
            how,
            printed: true,
            timeout,
            ..ExpandRequest::default()
        }
    }

    /// Returns the answer of a copy of the image, or the reason why there is none.
    async fn expand(
        &self,
        connection: &Connection,
        request: ExpandRequest,
    ) -> Result<std::result::Result<Expansion, ExpandError>> {
        let answer = connection.session.expand(connection.client, request).await;
        Ok(match answer.map_err(|error| to_proto::error(&error))? {
            ExpandAnswer::Done(done) => Ok(done),
            ExpandAnswer::Failed { error } => Err(error),
        })
    }

    /// Returns the part of the form that is in a range of the text.
    fn span_of(&self, connection: &Connection, range: Range) -> Span {
        let encoding = connection.negotiated().encoding;
        let offset = |position| {
            let at = to_offset(self.document.text(), from_proto::position(position), encoding);
            at.clamp(self.at.form.start, self.at.form.end) - self.at.form.start
        };
        Span { start: offset(range.start), end: offset(range.end) }
    }

    fn range(&self, connection: &Connection, span: Span) -> Range {
        let span = Span { start: self.at.form.start + span.start, end: self.at.form.start + span.end };
        to_proto::range(self.document.text(), span, connection.negotiated().encoding)
    }
}
