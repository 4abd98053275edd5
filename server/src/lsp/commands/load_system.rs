//! The command `consort.loadSystem`.

use lsp_types::ProgressToken;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::Result;

use super::Command;
use crate::lsp::connection::Connection;
use crate::lsp::progress::Bar;
use crate::lsp::to_proto;
use crate::model::evaluation::{EvalOutcome, EvalWarning};
use crate::session::kept_definitions::not_of_the_files;
use crate::session::unsaved_sources::not_loaded;
use crate::session::{Level, LoadRequest};

/// Loads a system.
pub(in crate::lsp) struct LoadSystem;

/// The argument of `consort.loadSystem`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::lsp) struct Argument {
    system: String,
    #[serde(default)]
    force: bool,
}

impl Command for LoadSystem {
    type Argument = Argument;
    const NAME: &'static str = "consort.loadSystem";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"system": "...", "force"?: bool}]"#;

    async fn execute(connection: &Connection, argument: Argument, token: Option<ProgressToken>) -> Result<Value> {
        let title = format!("Loading {}", argument.system);
        let bar = connection.bars.begin(token, connection.negotiated().progress, &title, true);
        load_system(connection, argument, bar).await
    }
}

async fn load_system(connection: &Connection, argument: Argument, bar: Bar) -> Result<Value> {
    let Argument { system, force } = argument;
    let (progress, steps) = mpsc::unbounded_channel();
    let answer = connection.session.load_system(
        connection.client,
        LoadRequest { system: system.clone(), force, allowed: None },
        Some(progress),
    );
    let outcome = bar.follow(steps, answer).await?.map_err(|error| to_proto::error(&error))?;
    if !outcome.loaded {
        // The error is shown, because a quick fix runs this command and ignores the result.
        connection.show(Level::Error, &format!("Loading {system} failed: {}", reason(&outcome.outcome)));
    }
    if outcome.loaded {
        let unsaved = connection.session.unsaved_of_system(&system).await;
        let kept = connection.session.kept_from_evaluations(&system).await;
        for note in not_loaded(&unsaved).into_iter().chain(not_of_the_files(&kept)) {
            connection.show(Level::Warning, &note);
        }
    }
    let mut result = json!(outcome.outcome.facts());
    result["loaded"] = outcome.loaded.into();
    Ok(result)
}

/// Returns the reason why a load failed. ASDF's error about a file that did not compile names only
/// the file, so the compiler's last warning that is no style warning follows it.
fn reason(outcome: &EvalOutcome) -> String {
    let Some(error) = &outcome.error else { return "see the output".into() };
    let is_cause =
        |warning: &&EvalWarning| warning.kind != "STYLE-WARNING" && !warning.kind.ends_with("COMPILE-WARNED-WARNING");
    match outcome.warnings.iter().rev().find(is_cause) {
        Some(cause) if error.kind.ends_with("COMPILE-FILE-ERROR") => {
            format!("{}: {}", error.message, cause.message.trim())
        }
        _ => error.message.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::evaluation::{EvalError, EvalStatus};

    #[test]
    fn a_file_that_did_not_compile_has_its_cause() {
        let failed = |kind: &str| {
            let error = EvalError::new(kind, "while compiling package.lisp");
            let mut outcome = EvalOutcome::empty(EvalStatus::Error, Some(error));
            outcome.warnings = [("STYLE-WARNING", "unused"), ("SB-INT:PACKAGE-AT-VARIANCE", "also exports B")]
                .map(|(kind, message)| EvalWarning { kind: kind.into(), message: message.into() })
                .to_vec();
            reason(&outcome)
        };
        assert_eq!(failed("UIOP/LISP-BUILD:COMPILE-FILE-ERROR"), "while compiling package.lisp: also exports B");
        assert_eq!(failed("SIMPLE-ERROR"), "while compiling package.lisp");
    }
}
