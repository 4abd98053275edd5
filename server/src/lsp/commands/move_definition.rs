//! The commands `consort.moveDestinations` and `consort.moveDefinition`, which move a definition to
//! another file of its package.

use lsp_types::{Position, ProgressToken, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;

use super::Command;
use crate::ide::context::Cursor;
use crate::ide::move_definition;
use crate::lsp::connection::{Connection, no_document};
use crate::lsp::edits::{self, EditedText};
use crate::lsp::rename::{edit_of, refused};
use crate::lsp::{from_proto, to_proto};
use crate::session::Session;
use crate::text::position::to_offset;

/// Returns the files to which the definition at a position can be moved.
pub(super) struct Destinations;

/// The position of a definition.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Place {
    uri: Url,
    position: Position,
}

impl Command for Destinations {
    type Argument = Place;
    const NAME: &'static str = "consort.moveDestinations";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "position": {"line", "character"}}]"#;

    async fn execute(connection: &Connection, place: Place, _: Option<ProgressToken>) -> Result<Value> {
        let cursor = cursor(connection, &place.uri, place.position).await?;
        let found = move_definition::destinations(&cursor).await.map_err(refused)?;
        let file = |one: &move_definition::Destination| json!({"uri": one.uri, "path": to_proto::label(&one.path.to_string_lossy())});
        let files: Vec<Value> = found.files.iter().map(file).collect();
        Ok(json!({"name": to_proto::label(&found.name), "files": files}))
    }
}

/// Moves the definition at a position.
pub(super) struct MoveDefinition;

/// The argument of `consort.moveDefinition`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Argument {
    uri: Url,
    position: Position,
    /// The file to which the definition is moved.
    target: Url,
}

impl Command for MoveDefinition {
    type Argument = Argument;
    const NAME: &'static str = "consort.moveDefinition";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str =
        r#"[{"uri": "file:///...", "position": {"line", "character"}, "target": "file:///..."}]"#;

    async fn execute(connection: &Connection, argument: Argument, _: Option<ProgressToken>) -> Result<Value> {
        let cursor = cursor(connection, &argument.uri, argument.position).await?;
        let moved = move_definition::moved(&cursor, argument.target.as_str()).await.map_err(refused)?;
        let mut result = json!({"name": to_proto::label(&moved.name), "note": moved.note});
        let texts = EditedText::of_changes(&moved.files);
        let edit = edit_of(connection, moved.files);
        let words = ("Move a definition", "The definition was not moved");
        edits::apply_or_return(connection, words, edit, &texts, &mut result).await;
        Ok(result)
    }
}

async fn cursor(connection: &Connection, uri: &Url, position: Position) -> Result<Cursor<Session>> {
    let encoding = connection.negotiated().encoding;
    let context = connection.session.context(connection.client).await;
    let offset = |text: &ropey::Rope| to_offset(text, from_proto::position(position), encoding);
    Cursor::new(context, uri.as_str(), offset).ok_or_else(|| no_document(uri))
}
