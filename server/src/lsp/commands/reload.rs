//! The commands of hot reload: `consort.replaceFunction`, `reloadSystem`, `reloadPackage`,
//! `undoReload`, `compileForm`, `compileFile`, `loadFile`.

use std::path::PathBuf;

use lsp_types::{Position, ProgressToken, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};

use super::{Command, NoArgument};
use crate::bounded_file;
use crate::ide::reload;
use crate::lsp::connection::Connection;
use crate::lsp::from_proto;
use crate::model::compile_options::CompileOptions;
use crate::session::kept_definitions::not_of_the_files;
use crate::session::reload::Reload;
use crate::session::unsaved_sources::not_loaded;
use crate::session::{Level, path_of_uri};
use crate::text::decode;
use crate::text::forms::{package_at, toplevel_form};
use crate::text::position::{line_column, to_offset};

/// Reloads with a progress bar. Returns the result as data, or a JSON-RPC error with the
/// contract's error object.
pub(super) async fn perform(
    connection: &Connection,
    title: &str,
    what: Reload,
    token: Option<ProgressToken>,
) -> Result<Value> {
    let bar = connection.bars.begin(token, connection.negotiated().progress, title, true);
    let (progress, steps) = mpsc::unbounded_channel();
    let system = what.system().map(str::to_owned);
    // The long deadline is safe, since a user sees the progress and can stop the reload.
    let answer = connection.session.reload(connection.client, what, Some(86_400.0), Some(progress));
    match bar.follow(steps, answer).await? {
        Ok(outcome) => {
            let unsaved = connection.session.unsaved_among(reload::files(&outcome)).await;
            let kept = connection.session.kept_after_reload(system.as_deref()).await;
            for note in not_loaded(&unsaved).into_iter().chain(not_of_the_files(&kept)) {
                connection.show(Level::Warning, &note);
            }
            Ok(json!(reload::facts(&outcome, &unsaved, &kept)))
        }
        Err(failure) => Err(refused(failure)),
    }
}

pub(super) fn refused(failure: reload::Failure) -> Error {
    Error {
        code: ErrorCode::ServerError(failure.code.into()),
        message: failure.message.into(),
        data: Some(json!(failure.data)),
    }
}

/// Replaces one function.
pub(super) struct ReplaceFunction;

/// The argument of `consort.replaceFunction`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Replacement {
    function: String,
    code: String,
    package: Option<String>,
}

impl Command for ReplaceFunction {
    type Argument = Replacement;
    const NAME: &'static str = "consort.replaceFunction";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"function": "...", "code": "...", "package"?: "..."}]"#;

    async fn execute(connection: &Connection, argument: Replacement, token: Option<ProgressToken>) -> Result<Value> {
        let Replacement { function, code, package } = argument;
        let title = format!("Replacing {function}");
        perform(connection, &title, Reload::Function { function, code, package, file: None, line: 1 }, token).await
    }
}

/// Reloads a system.
pub(super) struct ReloadSystem;

/// The argument of `consort.reloadSystem`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct System {
    system: String,
    #[serde(default)]
    force: bool,
}

impl Command for ReloadSystem {
    type Argument = System;
    const NAME: &'static str = "consort.reloadSystem";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"system": "...", "force"?: bool}]"#;

    async fn execute(
        connection: &Connection,
        System { system, force }: System,
        token: Option<ProgressToken>,
    ) -> Result<Value> {
        let title = format!("Reloading {system}");
        perform(connection, &title, Reload::System { system, force, allowed: None }, token).await
    }
}

/// Reloads a package.
pub(super) struct ReloadPackage;

/// The argument of `consort.reloadPackage`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Package {
    package: String,
    #[serde(default)]
    recursive: bool,
}

impl Command for ReloadPackage {
    type Argument = Package;
    const NAME: &'static str = "consort.reloadPackage";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"package": "...", "recursive"?: bool}]"#;

    async fn execute(connection: &Connection, argument: Package, token: Option<ProgressToken>) -> Result<Value> {
        let Package { package, recursive } = argument;
        let title = format!("Reloading {package}");
        perform(connection, &title, Reload::Package { package, recursive, allowed: None }, token).await
    }
}

/// Undoes the last reload.
pub(super) struct UndoReload;

impl Command for UndoReload {
    type Argument = NoArgument;
    const NAME: &'static str = "consort.undoReload";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = "[] or [{}]";

    async fn execute(
        connection: &Connection,
        NoArgument {}: NoArgument,
        token: Option<ProgressToken>,
    ) -> Result<Value> {
        perform(connection, "Undoing the last reload", Reload::Undo, token).await
    }
}

/// Compiles and loads the top-level form at a position.
pub(super) struct CompileForm;

/// The argument of `consort.compileForm`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Place {
    uri: Url,
    position: Position,
    #[serde(default)]
    debug: bool,
    #[serde(default)]
    anyway: bool,
}

impl Command for CompileForm {
    type Argument = Place;
    const NAME: &'static str = "consort.compileForm";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str =
        r#"[{"uri": "file:///...", "position": {"line", "character"}, "debug"?: bool, "anyway"?: bool}]"#;

    async fn execute(
        connection: &Connection,
        Place { uri, position, debug, anyway }: Place,
        token: Option<ProgressToken>,
    ) -> Result<Value> {
        let document = connection.session.document(connection.client, uri.as_str()).await;
        let document = document.ok_or_else(|| Error::invalid_params(format!("{uri} is not open.")))?;
        let text = document.text();
        let offset = to_offset(text, from_proto::position(position), connection.negotiated().encoding);
        let span = toplevel_form(&document, offset)
            .ok_or_else(|| Error::invalid_params("There is no top-level form at this position."))?;
        let place = line_column(text, span.start);
        // Blanks replace the text before the form in its line, so that columns are correct.
        let code = " ".repeat(place.column - 1) + &text.slice(span.start..span.end).to_string();
        let package = package_at(&document, span.start);
        let options = CompileOptions { debug, anyway };
        let what = Reload::Code { code, package, file: path_of_uri(uri.as_str()), line: place.line, options };
        perform(connection, "Compiling", what, token).await
    }
}

/// A file, with the editor's text if it is open there.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct File {
    uri: Url,
    /// True to compile with `(debug 3)`.
    #[serde(default)]
    debug: bool,
    /// True to load forms even if they do not compile.
    #[serde(default)]
    anyway: bool,
}

impl File {
    fn path(&self) -> Result<PathBuf> {
        path_of_uri(self.uri.as_str()).ok_or_else(|| Error::invalid_params(format!("{} is no file.", self.uri)))
    }

    /// Returns the reload of the file's whole code.
    async fn code(&self, connection: &Connection) -> Result<Reload> {
        let document = connection.session.document(connection.client, self.uri.as_str()).await;
        let file = path_of_uri(self.uri.as_str());
        let code = match (document, &file) {
            (Some(document), _) => document.text().to_string(),
            (None, Some(path)) => {
                let bytes = bounded_file::read_blocking(path.clone(), bounded_file::SOURCE_LIMIT).await;
                let bytes = bytes.map_err(|error| Error::invalid_params(format!("{}: {error}", path.display())))?;
                decode(bytes)
            }
            (None, None) => return Err(Error::invalid_params(format!("{} is not open.", self.uri))),
        };
        let options = CompileOptions { debug: self.debug, anyway: self.anyway };
        Ok(Reload::Code { code, package: None, file, line: 1, options })
    }
}

/// Compiles and loads a whole file.
pub(super) struct CompileFile;

impl Command for CompileFile {
    type Argument = File;
    const NAME: &'static str = "consort.compileFile";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "debug"?: bool, "anyway"?: bool}]"#;

    async fn execute(connection: &Connection, file: File, token: Option<ProgressToken>) -> Result<Value> {
        let what = file.code(connection).await?;
        perform(connection, "Compiling the file", what, token).await
    }
}

/// Loads a file: a compiled file unchanged, any other as `compileFile` does.
pub(super) struct LoadFile;

impl Command for LoadFile {
    type Argument = File;
    const NAME: &'static str = "consort.loadFile";
    const RUNS_CODE: bool = true;
    const EXPECTS: &'static str = r#"[{"uri": "file:///...", "debug"?: bool, "anyway"?: bool}]"#;

    async fn execute(connection: &Connection, file: File, token: Option<ProgressToken>) -> Result<Value> {
        let what = if file.uri.path().ends_with(".fasl") {
            Reload::Fasl { path: file.path()?, digest: None }
        } else {
            file.code(connection).await?
        };
        perform(connection, "Loading the file", what, token).await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_the_contracts_error() {
        let error = refused(reload::Failure::new("package-not-found", "Package X not found"));
        assert_eq!(error.code.code(), -32000);
        assert_eq!(error.message, "Package X not found");
        assert_eq!(error.data, Some(json!({"type": "PACKAGE_NOT_FOUND"})));
    }
}
