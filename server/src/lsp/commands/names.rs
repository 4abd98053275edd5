//! The commands for a name: `consort.describe`, `consort.disassemble`, `consort.trace`,
//! `consort.untrace`. Also `consort.tracedCalls`.

use lsp_types::{Position, ProgressToken, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::jsonrpc::{Error, Result};

use super::{Command, at_place};
use crate::ide::manuals::Manuals;
use crate::ide::name_tools::{NameOperation, Printed, traced_calls};
use crate::ide::named_symbols::SymbolHere;
use crate::ide::{hyperspec, manual_page};
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::text::forms::symbol_at;

const EXPECTS: &str =
    r#"[{"name": "...", "package"?: "..."}] or [{"uri": "file:///...", "position": {"line", "character"}}]"#;

/// A name, or the position of a name.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Argument {
    name: Option<String>,
    package: Option<String>,
    uri: Option<Url>,
    position: Option<Position>,
}

impl Argument {
    /// Refuses half of a place. The call would count as one without a name.
    fn check(&self) -> Result<()> {
        if self.name.is_some() || self.uri.is_some() == self.position.is_some() {
            return Ok(());
        }
        let message = format!("A `uri` needs a `position`, and a `position` a `uri`. The `arguments` are {EXPECTS}.");
        Err(Error::invalid_params(message))
    }
}

/// Returns the name in question, and the package in which it is read.
async fn name_in_question(connection: &Connection, argument: Argument) -> Result<(Option<String>, Option<String>)> {
    argument.check()?;
    match argument {
        Argument { name: Some(name), package, .. } => Ok((Some(name), package)),
        Argument { uri: Some(uri), position: Some(position), package, .. } => {
            let place = at_place(connection, &uri, position).await?;
            match SymbolHere::at(&place.document, place.offset) {
                Some(here) => Ok((Some(here.written), package.or(here.package))),
                None => Err(Error::invalid_params("There is no symbol at that place.")),
            }
        }
        Argument { package, .. } => Ok((None, package)),
    }
}

/// The meaning of a call without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nameless {
    Refuses,
    /// The operation is about the package, which must be given.
    Package,
    Everything,
}

async fn run(
    connection: &Connection,
    argument: Argument,
    nameless: Nameless,
    operation: NameOperation,
) -> Result<Value> {
    let (name, package) = name_in_question(connection, argument).await?;
    let refuses = match nameless {
        Nameless::Refuses => true,
        Nameless::Package => package.is_none(),
        Nameless::Everything => false,
    };
    if name.is_none() && refuses {
        return Err(Error::invalid_params(format!("A name is missing. Its `arguments` are {EXPECTS}.")));
    }
    match connection.session.run_on_name(connection.client, operation, name.clone(), package).await {
        Ok(outcome) => match Printed::from(outcome) {
            Printed { text, error: None } => Ok(json!({"name": name, "text": text})),
            Printed { text, error: Some(why) } => Ok(json!({"name": name, "text": text, "error": why})),
        },
        Err(error) => Err(to_proto::error(&error)),
    }
}

/// `consort.hyperspec`.
pub(super) struct Hyperspec;

impl Command for Hyperspec {
    type Argument = Argument;
    const NAME: &'static str = "consort.hyperspec";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = EXPECTS;

    async fn execute(connection: &Connection, argument: Argument, _: Option<ProgressToken>) -> Result<Value> {
        let mut package = argument.package.clone();
        let name = match argument {
            Argument { name: Some(name), .. } => name,
            Argument { uri: Some(uri), position: Some(position), .. } => {
                let place = at_place(connection, &uri, position).await?;
                package = package.or(place.package);
                let (document, offset) = (&place.document, place.offset);
                let written = symbol_at(document, offset).map(|(_, name)| name);
                let written = written.or_else(|| Some(hyperspec::directive_at(document, offset)?.0));
                let written = written.or_else(|| Some(hyperspec::reader_macro_at(document, offset)?.0));
                written.ok_or_else(|| {
                    Error::invalid_params("There is no symbol, format directive or reader macro at that place.")
                })?
            }
            _ => return Err(Error::invalid_params(format!("A name is missing. Its `arguments` are {EXPECTS}."))),
        };
        let manuals = Manuals::new(&connection.session.settings(connection.client).await.hyperspec);
        match manual_page::find(&connection.session, &manuals, &name, package.as_deref()).await {
            Some(page) => Ok(json!({"name": name, "manual": page.manual, "url": page.url})),
            None => Err(Error::invalid_params(manual_page::no_page_message(&name))),
        }
    }
}

macro_rules! command {
    ($name:ident, $wire:literal, $runs_code:literal, $nameless:expr, $operation:expr, $about:literal) => {
        #[doc = $about]
        pub(super) struct $name;

        impl Command for $name {
            type Argument = Argument;
            const NAME: &'static str = $wire;
            const RUNS_CODE: bool = $runs_code;
            const EXPECTS: &'static str = EXPECTS;

            async fn execute(connection: &Connection, argument: Argument, _: Option<ProgressToken>) -> Result<Value> {
                run(connection, argument, $nameless, $operation).await
            }
        }
    };
}

// DESCRIBE calls methods of the user.
command!(Describe, "consort.describe", true, Nameless::Refuses, NameOperation::Describe, "`consort.describe`.");
command!(
    Disassemble,
    "consort.disassemble",
    false,
    Nameless::Refuses,
    NameOperation::Disassemble,
    "`consort.disassemble`."
);
command!(Trace, "consort.trace", false, Nameless::Package, NameOperation::Trace, "`consort.trace`.");
command!(Untrace, "consort.untrace", false, Nameless::Everything, NameOperation::Untrace, "`consort.untrace`.");

/// `consort.tracedCalls`.
pub(super) struct TracedCalls;

/// The argument of `consort.tracedCalls`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    #[serde(default)]
    after: u64,
    count: Option<u64>,
    #[serde(default)]
    clear: bool,
}

impl Command for TracedCalls {
    type Argument = Page;
    const NAME: &'static str = "consort.tracedCalls";
    const RUNS_CODE: bool = false;
    const EXPECTS: &'static str = r#"[{"after"?: number, "count"?: number, "clear"?: bool}]"#;

    async fn execute(connection: &Connection, page: Page, _: Option<ProgressToken>) -> Result<Value> {
        let Page { after, count, clear } = page;
        let answer = traced_calls(&connection.session, after, count.unwrap_or(200).clamp(1, 1000), clear).await;
        answer.map(|answer| json!(answer)).map_err(|error| to_proto::error(&error))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_place_is_not_a_call_without_a_name() {
        let checked = |argument: Value| serde_json::from_value::<Argument>(argument).unwrap().check();
        let (uri, position) = ("file:///a.lisp", json!({"line": 0, "character": 0}));
        for refused in [json!({"uri": uri}), json!({"position": position}), json!({"uri": uri, "package": "P"})] {
            assert!(checked(refused.clone()).is_err(), "{refused}");
        }
        for fine in
            [json!({}), json!({"package": "P"}), json!({"name": "F"}), json!({"uri": uri, "position": position})]
        {
            assert!(checked(fine.clone()).is_ok(), "{fine}");
        }
    }
}
