//! The commands `consort.removable` and `consort.undefine`: the definitions of a name that can be
//! removed from the image, and their removal.

use lsp_types::{Position, ProgressToken, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::reload::perform;
use super::{Command, PositionArgument, at_place};
use crate::ide::undefine::{removable, removal};
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::model::written_method::WrittenMethod;
use crate::session::reload::Reload;
use crate::text::datum::Form;
use crate::text::forms::symbol_at;
use crate::text::{Span, definitions};

/// Returns the definitions of the name at a position that can be removed.
pub(super) struct Removable;

/// The position of a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    uri: Url,
    position: Position,
}

impl Command for Removable {
    type Argument = Place;
    const NAME: &'static str = "consort.removable";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "position": {"line", "character"}}]"#;

    async fn execute(connection: &Connection, place: Place, _: Option<ProgressToken>) -> Result<Value> {
        let at = at_place(connection, &place.uri, place.position).await?;
        let (span, name) = symbol_at(&at.document, at.offset)
            .ok_or_else(|| Error::invalid_params("There is no symbol at that place."))?;
        let method = method_at(&at, span);
        let found = removable(&connection.session, name, at.package, method.clone()).await;
        let found = found.map_err(|error| to_proto::error(&error))?;
        Ok(json!({"name": found.name, "method": method, "parts": found.parts}))
    }
}

/// Returns the method whose name has the span `name`, or `None` if the name is not that of a
/// method.
fn method_at(at: &PositionArgument, name: Span) -> Option<WrittenMethod> {
    let form = Form::at(&at.document, at.offset)?;
    let within = |one: &definitions::Defined| one.name.start <= name.start && name.end <= one.name.end;
    let one = definitions::in_form(&form).into_iter().find(|one| one.operator == "defmethod" && within(one))?;
    let setf = one.written.starts_with('(');
    Some(WrittenMethod { setf, qualifiers: one.qualifiers, specializers: one.specializers })
}

/// Removes definitions of a name.
pub(super) struct Undefine;

/// The argument of `consort.undefine`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Argument {
    name: String,
    package: Option<String>,
    method: Option<WrittenMethod>,
    parts: Vec<String>,
}

impl Command for Undefine {
    type Argument = Argument;
    const NAME: &'static str = "consort.undefine";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"name": "...", "package"?: "...", "parts": ["function", ...], "method"?: {"setf"?, "qualifiers", "specializers"}}]"#;

    async fn execute(connection: &Connection, argument: Argument, token: Option<ProgressToken>) -> Result<Value> {
        let Argument { name, package, method, parts } = argument;
        let title = format!("Removing {name}");
        perform(connection, &title, Reload::Undefine(removal(name, package, method, parts)), token).await
    }
}
