//! The command `consort.recompileCallers`, which compiles the forms of the workspace that use a
//! definition again.

use std::fmt::Write as _;

use lsp_types::{Position, ProgressToken, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::{Error, Result};

use super::reload::refused;
use super::{Command, at_place};
use crate::ide::definition_in_index::Named;
use crate::ide::recompile::{DependentForm, dependent_forms};
use crate::ide::{enclosing, reload};
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::session::recompile::Recompiled;
use crate::shown;
use crate::text::forms::symbol_at;
use crate::text::position::line_column;

/// Compiles and loads the forms that use a definition.
pub(super) struct RecompileCallers;

/// A name, or a position that stands for the definition around it, or otherwise for the name there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Argument {
    name: Option<String>,
    package: Option<String>,
    uri: Option<Url>,
    position: Option<Position>,
}

impl Command for RecompileCallers {
    type Argument = Argument;
    const NAME: &'static str = "consort.recompileCallers";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str =
        r#"[{"name": "...", "package"?: "..."}] or [{"uri": "file:///...", "position": {"line", "character"}}]"#;

    async fn execute(connection: &Connection, argument: Argument, token: Option<ProgressToken>) -> Result<Value> {
        let named = definition_in_question(connection, argument).await?;
        let title = format!("Compiling what uses {}", named.name);
        let bar = connection.bars.begin(token, connection.negotiated().progress, &title, true);
        let (progress, steps) = mpsc::unbounded_channel();
        let work = async {
            let context = connection.session.context(connection.client).await;
            let found = dependent_forms(&context, &named).await.map_err(|error| to_proto::error(&error))?;
            let done = connection.session.recompile(connection.client, &named.name, found, progress);
            done.await.map_err(refused)
        };
        let done = bar.follow(steps, work).await??;
        Ok(answer(connection, &named.name, &done))
    }
}

async fn definition_in_question(connection: &Connection, argument: Argument) -> Result<Named> {
    match argument {
        Argument { name: Some(name), package, .. } => Ok(Named { name, package }),
        Argument { uri: Some(uri), position: Some(position), .. } => {
            let place = at_place(connection, &uri, position).await?;
            let around = enclosing::at(&place.document, place.offset).and_then(|around| around.defined);
            let name = around.or_else(|| symbol_at(&place.document, place.offset).map(|(_, name)| name));
            let name =
                name.ok_or_else(|| Error::invalid_params("There is no definition and no name at that place."))?;
            Ok(Named { name, package: place.package })
        }
        _ => {
            Err(Error::invalid_params(format!("A name is missing. Its `arguments` are {}.", RecompileCallers::EXPECTS)))
        }
    }
}

fn answer(connection: &Connection, name: &str, done: &Recompiled) -> Value {
    let encoding = connection.negotiated().encoding;
    let place = |dependent: &DependentForm| {
        let range = to_proto::range(dependent.text.document.text(), dependent.selection, encoding);
        let name = to_proto::label(&dependent.name);
        json!({"name": name, "kind": dependent.kind, "uri": dependent.text.uri, "range": range})
    };
    let compiled = done.compiled.iter().map(|(dependent, findings)| {
        let finding = |one: &crate::model::diagnostic::Diagnostic| {
            let range = to_proto::range(dependent.text.document.text(), one.span, encoding);
            json!({"severity": one.severity, "code": one.code, "message": one.message, "range": range})
        };
        let mut compiled = place(dependent);
        compiled["findings"] = findings.iter().map(finding).collect();
        compiled
    });
    let left = done.not_recompiled.iter().map(|(dependent, why)| {
        let mut left = place(dependent);
        left["reason"] = why.as_str().into();
        left
    });
    json!({
        "name": name,
        "compiled": compiled.collect::<Vec<_>>(),
        "left": left.collect::<Vec<_>>(),
        "report": done.outcome.as_ref().map(|outcome| reload::facts(outcome, &[], &[])),
        "text": render(name, done),
    })
}

/// Returns the result as text for a person.
fn render(name: &str, done: &Recompiled) -> String {
    let place = |dependent: &DependentForm, offset: usize| {
        let file = dependent.text.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        format!("{}:{}", shown::line(&file), line_column(dependent.text.document.text(), offset).line)
    };
    let label = |dependent: &DependentForm| shown::line(&format!("{} {}", dependent.kind, dependent.name));
    let name = shown::line(name);
    let mut text = match done.compiled.len() {
        0 => format!("Nothing that uses {name} was compiled again."),
        1 => format!("1 form that uses {name} was compiled again."),
        many => format!("{many} forms that use {name} were compiled again."),
    };
    for (dependent, findings) in &done.compiled {
        let _ = write!(text, "\n  {}: {}", place(dependent, dependent.form.start), label(dependent));
        for one in findings {
            let message = shown::line(&one.message);
            let _ = write!(text, "\n    {}: {}: {message}", place(dependent, one.span.start), one.severity.name());
        }
    }
    if !done.not_recompiled.is_empty() {
        let _ = write!(text, "\nLeft alone ({}):", done.not_recompiled.len());
    }
    for (dependent, why) in &done.not_recompiled {
        let _ =
            write!(text, "\n  {}: {}: {}", place(dependent, dependent.form.start), label(dependent), shown::line(why));
    }
    let report = done.outcome.as_ref().and_then(|outcome| outcome.report.as_ref());
    let stale = report.map(|report| report.stale.as_slice()).unwrap_or_default();
    if !stale.is_empty() {
        let _ = write!(text, "\nStill the old code ({}):", stale.len());
    }
    for one in stale {
        let _ = write!(text, "\n  {}", shown::line(one));
    }
    text
}
