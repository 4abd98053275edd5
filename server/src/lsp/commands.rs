//! `workspace/executeCommand`, with one file for each group of commands, and one line for each
//! command in [`TABLE`]. A command sends its event to the session before its first wait (see
//! `transport`). docs/protocol.md documents every command. A test compares the page with the table.

mod apropos;
mod browse;
mod call_template;
mod current_test;
mod differences;
mod eval;
mod eval_definition;
mod form_at;
mod forms;
mod image;
mod inspect;
mod inspect_definition;
mod load_system;
mod macroexpand;
mod macrostep;
mod move_definition;
mod names;
mod profile;
mod recompile;
mod record;
mod recording;
mod references;
mod reload;
mod running_tests;
mod source_location;
mod structure;
mod undefine;

use std::pin::Pin;
use std::sync::LazyLock;

use lsp_types::{ExecuteCommandParams, Position, ProgressToken, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower_lsp::jsonrpc::{Error, Result};

use super::connection::{Connection, no_document};
use super::{from_proto, to_proto};
use crate::model::error_kind::ErrorKind;
use crate::model::image::ImageError;
use crate::session::log::{self, LogContext};
use crate::session::path_of_uri;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::position::to_offset;
pub(super) use eval_definition::EvalDefinition;
pub(super) use load_system::LoadSystem;
pub(super) use macroexpand::{Extent, Macroexpand};
pub(super) use running_tests::RunTestAtPoint;

/// A command.
pub(super) trait Command {
    /// The command's only argument, an object.
    type Argument: DeserializeOwned + Send + 'static;
    const NAME: &'static str;
    /// True for a command that may run the user's code, in the image or a copy of it, because it
    /// loads, expands macros, prints or changes definitions. An interrupt that arrives after such a
    /// command ends the command, even if the command has no job of the session yet.
    const RUNS_CODE: bool;
    /// The expected `arguments`, for the error message about invalid arguments.
    const EXPECTS: &'static str;

    /// Executes the command. `token` is the client's progress token. Dropping the future cancels
    /// the command.
    fn execute(
        connection: &Connection,
        argument: Self::Argument,
        token: Option<ProgressToken>,
    ) -> impl Future<Output = Result<Value>> + Send;
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<Value>> + Send + 'a>>;

struct Entry {
    name: &'static str,
    runs_code: bool,
    #[cfg(test)]
    expects: &'static str,
    run: fn(&Connection, Vec<Value>, Option<ProgressToken>) -> Running<'_>,
}

static TABLE: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    vec![
        entry::<eval::Eval>(),
        entry::<load_system::LoadSystem>(),
        entry::<eval_definition::EvalDefinition>(),
        entry::<forms::EvalForm>(),
        entry::<forms::EvalRegion>(),
        entry::<forms::EvalBuffer>(),
        entry::<forms::EvalToCursor>(),
        entry::<forms::EvalToComment>(),
        entry::<structure::Structure>(),
        entry::<differences::Differences>(),
        entry::<image::RestartImage>(),
        entry::<image::Interrupt>(),
        entry::<image::Status>(),
        entry::<source_location::SourceLocation>(),
        entry::<reload::ReplaceFunction>(),
        entry::<reload::ReloadSystem>(),
        entry::<reload::ReloadPackage>(),
        entry::<reload::UndoReload>(),
        entry::<undefine::Removable>(),
        entry::<undefine::Undefine>(),
        entry::<recompile::RecompileCallers>(),
        entry::<move_definition::Destinations>(),
        entry::<move_definition::MoveDefinition>(),
        entry::<reload::CompileForm>(),
        entry::<reload::CompileFile>(),
        entry::<reload::LoadFile>(),
        entry::<macroexpand::Macroexpand>(),
        entry::<macrostep::Macrostep>(),
        entry::<macrostep::MacroCalls>(),
        entry::<profile::ProfileForm>(),
        entry::<recording::Record>(),
        entry::<recording::RecordingQuery>(),
        entry::<inspect::Inspect>(),
        entry::<inspect::Table>(),
        entry::<inspect::Compare>(),
        entry::<inspect::Evaluate>(),
        entry::<inspect::Set>(),
        entry::<inspect_definition::Definition>(),
        entry::<inspect_definition::Describe>(),
        entry::<names::Disassemble>(),
        entry::<names::Describe>(),
        entry::<names::Hyperspec>(),
        entry::<apropos::Apropos>(),
        entry::<call_template::CallTemplate>(),
        entry::<references::References>(),
        entry::<names::Trace>(),
        entry::<names::Untrace>(),
        entry::<names::TracedCalls>(),
        entry::<running_tests::RunTests>(),
        entry::<running_tests::RunTestAtPoint>(),
        entry::<record::Log>(),
        entry::<record::Context>(),
        entry::<browse::Packages>(),
        entry::<browse::PackageSymbols>(),
        entry::<browse::PackageManual>(),
        entry::<browse::Complete>(),
        entry::<browse::Threads>(),
        entry::<browse::InterruptThread>(),
        entry::<browse::KillThread>(),
    ]
});

fn entry<T: Command + 'static>() -> Entry {
    Entry {
        name: T::NAME,
        runs_code: T::RUNS_CODE,
        #[cfg(test)]
        expects: T::EXPECTS,
        run: |connection, arguments, token| match argument::<T>(arguments) {
            Ok(argument) => Box::pin(T::execute(connection, argument, token)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        },
    }
}

/// Returns the names of all commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|entry| entry.name)
}

/// Returns true if the command of this name runs code ([`Command::RUNS_CODE`]).
pub(super) fn runs_code(name: &str) -> bool {
    TABLE.iter().any(|entry| entry.runs_code && entry.name == name)
}

/// Executes a command.
pub(super) async fn execute(connection: &Connection, params: ExecuteCommandParams) -> Result<Value> {
    let token = params.work_done_progress_params.work_done_token;
    match TABLE.iter().find(|entry| entry.name == params.command) {
        Some(entry) => {
            let given = |name: &str| params.arguments.first()?.get(name)?.as_str().map(str::to_owned);
            let doing = LogContext {
                tool: params.command.clone(),
                code: given("code"),
                package: given("package"),
                file: given("uri").as_deref().and_then(path_of_uri),
                about: ["system", "function", "symbol"].into_iter().find_map(given),
            };
            // The future is created inside the block, so that an event that the command sends at
            // once has this log context.
            let work = log::under_name(doing, async { (entry.run)(connection, params.arguments, token).await });
            if !entry.runs_code {
                return work.await;
            }
            let interrupted = |why: &str| {
                let error = ImageError::Refused { kind: ErrorKind::INTERRUPTED, message: why.into() };
                Err(to_proto::error(&error))
            };
            connection.calls.begin().work(work).await.unwrap_or_else(interrupted)
        }
        None => {
            let known: Vec<&str> = names().collect();
            Err(Error::invalid_params(format!(
                "There is no command {}. There are {}.",
                params.command,
                known.join(", ")
            )))
        }
    }
}

/// The argument of a command without parameters.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArgument {}

/// Parses the argument of a command.
fn argument<T: Command>(arguments: Vec<Value>) -> Result<T::Argument> {
    let wrong = |why: String| Error::invalid_params(format!("{}: {why}. Its `arguments` are {}.", T::NAME, T::EXPECTS));
    let argument = match <[Value; 1]>::try_from(arguments) {
        Ok([argument]) => argument,
        // A command without required parameters may be called without an argument.
        Err(none) if none.is_empty() => Value::Object(Default::default()),
        Err(many) => {
            return Err(wrong(format!("it takes one object as its argument and was given {} arguments", many.len())));
        }
    };
    if !argument.is_object() {
        return Err(wrong(format!("its argument is not an object: {argument}")));
    }
    serde_json::from_value(argument).map_err(|error| wrong(error.to_string()))
}

/// A position in a document.
struct PositionArgument {
    document: Document,
    offset: usize,
    /// The package in force at the position, if the document specifies one.
    package: Option<String>,
}

/// Returns the position in one of the client's open documents.
async fn at_place(connection: &Connection, uri: &Url, position: Position) -> Result<PositionArgument> {
    let document = connection.session.document(connection.client, uri.as_str());
    let Some(document) = document.await else { return Err(no_document(uri)) };
    let offset = to_offset(document.text(), from_proto::position(position), connection.negotiated().encoding);
    let package = package_at(&document, offset);
    Ok(PositionArgument { document, offset, package })
}

/// Returns a timeout in seconds, checked to be a valid duration.
fn seconds(command: &str, timeout: Option<f64>) -> Result<Option<f64>> {
    match timeout {
        Some(seconds) if !(seconds > 0.0 && seconds <= 1e9) => {
            let message = format!("{command}: `timeout` is a number of seconds greater than 0, not {seconds}.");
            Err(Error::invalid_params(message))
        }
        timeout => Ok(timeout),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::eval::Eval;
    use super::image::{Interrupt, Status};
    use super::*;

    #[test]
    fn a_wrong_argument_is_answered_with_what_is_expected() {
        for (arguments, why) in [
            (json!([]), "missing field `code`"),
            (json!([{"code": 1}]), "expected a string"),
            (json!([{"code": "1", "pakage": "x"}]), "unknown field `pakage`"),
            (json!(["(+ 1 2)"]), "not an object"),
            (json!([{"code": "1"}, {"code": "2"}]), "2 arguments"),
        ] {
            let arguments: Vec<Value> = serde_json::from_value(arguments).unwrap();
            let error = argument::<Eval>(arguments).unwrap_err();
            assert_eq!(error.code.code(), -32602);
            assert!(error.message.contains(why) && error.message.contains(r#""code": "...""#), "{}", error.message);
        }
    }

    #[test]
    fn a_command_without_arguments_needs_none() {
        assert!(argument::<Status>(vec![]).is_ok());
        assert!(argument::<Status>(vec![json!({})]).is_ok());
        assert!(!argument::<Interrupt>(vec![]).unwrap().everything);
    }

    #[test]
    fn a_timeout_is_a_positive_number_of_seconds() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(seconds(Eval::NAME, Some(bad)).is_err());
        }
        assert_eq!(seconds(Eval::NAME, Some(0.5)), Ok(Some(0.5)));
    }

    #[test]
    fn an_interrupt_meets_every_command_that_is_given_code_or_a_timeout() {
        for entry in TABLE.iter() {
            let given = |name: &str| entry.expects.contains(&format!("\"{name}\""));
            let runs = given("code") || given("timeout") || given("force");
            assert!(entry.runs_code || !runs, "{} runs code", entry.name);
        }
        for name in ["consort.describe", "consort.macroCalls", "consort.recordingQuery", "consort.evalBuffer"] {
            assert!(runs_code(name), "{name}");
        }
        for name in ["consort.interrupt", "consort.restartImage", "consort.status", "consort.unknown"] {
            assert!(!runs_code(name), "{name}");
        }
    }

    #[test]
    fn every_command_is_documented() {
        let page = include_str!("../../../docs/protocol.md");
        for name in names() {
            assert!(page.contains(&format!("`{name}`")), "docs/protocol.md does not document {name}");
        }
    }
}
