//! `consort.macroexpand`. The server keeps no state for it: each request for a nested expansion
//! lists all steps from the start.

use lsp_types::{Position, ProgressToken, Range, TextEdit, Url};
use ropey::Rope;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::form_at::FormAt;
use super::{Command, seconds};
use crate::lsp::connection::{Connection, no_document};
use crate::lsp::edits::{self, EditedText};
use crate::lsp::{from_proto, to_proto};
use crate::model::expansion::{ExpandAnswer, ExpandExtent, ExpandRequest, Expansion};
use crate::session::Level;
use crate::text::Span;
use crate::text::document::Document;
use crate::text::position::{PositionEncoding, to_offset};

/// The maximum number of characters of an expansion in a message.
const MAX_MESSAGE_CHARS: usize = 4000;

/// Expands macros.
pub(in crate::lsp) struct Macroexpand;

/// The extent of the expansion, and the part shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::lsp) enum Extent {
    /// Expands the form's own macro once.
    #[default]
    One,
    /// Expands as `One` does and shows the result within the surrounding forms.
    Step,
    /// Expands every macro in the form.
    Full,
    /// Expands the form's compiler macro, or its format control, once.
    Compiler,
}

/// The argument of `consort.macroexpand`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::lsp) struct Argument {
    /// The document that contains the form.
    uri: Option<Url>,
    /// Text instead of a document: an earlier expansion as returned, or any other text.
    text: Option<String>,
    /// The position of the form.
    position: Option<Position>,
    /// The package of `text`, or a package instead of the one in force at the position.
    package: Option<String>,
    #[serde(default)]
    how: Extent,
    /// Positions in the texts shown. Each is a position in the result of the step before.
    #[serde(default)]
    steps: Vec<Position>,
    /// True to replace the form with the expansion.
    #[serde(default)]
    in_place: bool,
    /// True to show the expansion as a message, for clients that ignore results.
    #[serde(default)]
    show: bool,
    /// The time limit in seconds.
    timeout: Option<f64>,
}

impl Command for Macroexpand {
    type Argument = Argument;
    const NAME: &'static str = "consort.macroexpand";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "position": {"line", "character"}, "text"?: "... instead of uri", "package"?: "...", "how"?: "one", "step", "full" or "compiler", "steps"?: [position, ...], "inPlace"?: bool, "show"?: bool, "timeout"?: seconds}]"#;

    async fn execute(connection: &Connection, argument: Argument, _: Option<ProgressToken>) -> Result<Value> {
        let timeout = seconds(Self::NAME, argument.timeout)?;
        let encoding = connection.negotiated().encoding;
        let place = match (&argument.uri, &argument.text) {
            (None, Some(text)) if !argument.in_place => Place::of_text(text, &argument, encoding),
            (Some(uri), None) => {
                let document = connection.session.document(connection.client, uri.as_str()).await;
                Place::of_document(document.ok_or_else(|| no_document(uri))?, uri, &argument, encoding)?
            }
            _ => {
                return Err(wrong(
                    "it takes a `uri` or a `text`, and only what is at a `uri` can be expanded in place",
                ));
            }
        };
        let request = ExpandRequest {
            text: place.text.slice(place.within.start..place.within.end).to_string(),
            package: Some(place.package.clone()),
            how: match argument.how {
                Extent::One | Extent::Step => ExpandExtent::One,
                Extent::Full => ExpandExtent::Full,
                Extent::Compiler => ExpandExtent::Compiler,
            },
            offset: place.offset,
            within: None,
            whole: argument.how == Extent::Step,
            steps: argument.steps.iter().map(|step| [step.line, step.character]).collect(),
            unit: encoding,
            column: argument.in_place.then_some(place.column),
            printed: argument.text.is_some(),
            writable: argument.in_place,
            timeout,
            confined: false,
        };
        let answer =
            connection.session.expand(connection.client, request).await.map_err(|error| to_proto::error(&error))?;
        match answer {
            ExpandAnswer::Failed { error } => {
                if argument.show || argument.in_place {
                    connection.show(Level::Error, &format!("No expansion: {}", error.message));
                }
                Ok(json!({"expansion": null, "expanded": false, "package": place.package, "error": error}))
            }
            ExpandAnswer::Done(done) => finish(connection, &argument, &place, done).await,
        }
    }
}

/// A text, with the part of it to read.
struct Place {
    text: Rope,
    version: Option<i32>,
    /// The span of the top-level form.
    within: Span,
    /// The offset in the form.
    offset: Option<usize>,
    /// The form's column, 0-based.
    column: usize,
    package: String,
}

impl Place {
    fn of_text(text: &str, argument: &Argument, encoding: PositionEncoding) -> Place {
        let text = Rope::from_str(text);
        let offset = argument.position.map(|position| to_offset(&text, from_proto::position(position), encoding));
        let package = argument.package.clone().unwrap_or_else(|| "COMMON-LISP-USER".into());
        Place { within: Span { start: 0, end: text.len_chars() }, offset, column: 0, package, version: None, text }
    }

    fn of_document(document: Document, uri: &Url, argument: &Argument, encoding: PositionEncoding) -> Result<Place> {
        let Some(position) = argument.position else { return Err(wrong("a `uri` needs a `position`")) };
        let Some(at) = FormAt::of(&document, uri, position, encoding) else {
            return Err(wrong("the document has no form there"));
        };
        Ok(Place {
            column: at.column,
            offset: Some(at.offset),
            package: argument.package.clone().unwrap_or(at.package),
            version: Some(document.version()),
            within: at.form,
            text: document.text().clone(),
        })
    }
}

async fn finish(connection: &Connection, argument: &Argument, place: &Place, done: Expansion) -> Result<Value> {
    let negotiated = connection.negotiated();
    let start = place.within.start;
    let span = Span { start: start + done.span.start, end: start + done.span.end };
    let span = if argument.how == Extent::Step { place.within } else { span };
    let range: Range = to_proto::range(&place.text, span, negotiated.encoding);
    let mut result = json!({
        "expansion": done.expansion, "expanded": done.expanded, "form": done.form, "package": place.package,
        "omitted": done.omitted, "range": range, "error": null,
    });
    if let (true, Some(uri)) = (argument.in_place, &argument.uri) {
        if !done.expanded {
            connection.show(Level::Info, &format!("{} is not a macro call.", done.form));
            result["applied"] = false.into();
            return Ok(result);
        }
        if !done.writable {
            let message = format!(
                "The expansion of {} contains objects that have no printed form, or is too long to insert.",
                done.form
            );
            connection.show(Level::Error, &message);
            result["applied"] = false.into();
            return Ok(result);
        }
        let change = TextEdit { range, new_text: done.expansion };
        let edit = to_proto::edit(uri, Some(place.version.unwrap_or(0)), negotiated.document_changes, vec![change]);
        let edited = EditedText { uri: uri.to_string(), text: place.text.clone() };
        let words = ("Macroexpand in place", "The form was not replaced by its expansion");
        edits::apply_or_return(connection, words, edit, &[edited], &mut result).await;
    } else if argument.show {
        let short: String = done.expansion.chars().take(MAX_MESSAGE_CHARS).collect();
        let note = match argument.how {
            _ if done.expanded => "",
            Extent::Compiler => "\n(No compiler macro and no format string is expanded here)",
            _ => "\n(Form is not a macro call)",
        };
        connection.show(Level::Info, &format!("{short}{note}"));
    }
    Ok(result)
}

fn wrong(why: &str) -> Error {
    Error::invalid_params(format!("{}: {why}. Its `arguments` are {}.", Macroexpand::NAME, Macroexpand::EXPECTS))
}
