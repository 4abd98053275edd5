//! The command `consort.references`: the references to a name, each with its kind.

use lsp_types::{Position, ProgressToken, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::{Command, at_place};
use crate::ide::enclosing;
use crate::ide::named_symbols::SymbolHere;
use crate::ide::references::{self, Kind, Referred};
use crate::lsp::connection::Connection;
use crate::lsp::missing::Missing;
use crate::lsp::to_proto;

/// Returns the references to a name.
pub(super) struct References;

/// A name, or the position of a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Argument {
    name: Option<String>,
    package: Option<String>,
    uri: Option<Url>,
    position: Option<Position>,
    #[serde(default)]
    kinds: Vec<String>,
}

impl Command for References {
    type Argument = Argument;
    const NAME: &'static str = "consort.references";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"name": "...", "package"?: "...", "kinds"?: ["calls", ...]}] or [{"uri": "file:///...", "position": {"line", "character"}, "kinds"?: [...]}]"#;

    async fn execute(connection: &Connection, argument: Argument, _: Option<ProgressToken>) -> Result<Value> {
        let kinds = references::kinds(&argument.kinds).map_err(Error::invalid_params)?;
        let (name, package) = match argument {
            Argument { name: Some(name), package, .. } => (name, package),
            Argument { uri: Some(uri), position: Some(position), package, .. } => {
                let place = at_place(connection, &uri, position).await?;
                match SymbolHere::at(&place.document, place.offset) {
                    Some(here) => (here.written, package.or(here.package)),
                    None => return Err(Error::invalid_params("There is no symbol at that place.")),
                }
            }
            _ => {
                return Err(Error::invalid_params(format!(
                    "A name is missing. Its `arguments` are {}.",
                    Self::EXPECTS
                )));
            }
        };
        let context = connection.session.context(connection.client).await;
        let found = references::of_kinds(&context, &name, package.as_deref(), &kinds).await;
        connection.may_miss(Missing::References, found.incomplete.as_deref());
        let encoding = connection.negotiated().encoding;
        let mut around = enclosing::Finder::default();
        let one = |one: &Referred| {
            let location = to_proto::location(&one.target(), encoding)?;
            let by = around.at(&one.text.document, one.span.start);
            let by = by.map(|by| to_proto::label(&by.name));
            Some(json!({"kind": one.kind.word(), "by": by, "uri": location.uri, "range": location.range}))
        };
        let references: Vec<Value> = found.references.iter().filter_map(one).collect();
        let kinds: Vec<&str> = Kind::CHOICES.iter().map(|(_, word)| *word).collect();
        Ok(json!({"name": name, "kinds": kinds, "references": references}))
    }
}
