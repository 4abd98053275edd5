//! The requests `textDocument/prepareRename` and `textDocument/rename` (LSP 3.17).

use std::collections::HashMap;

use lsp_types::*;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};

use super::connection::Connection;
use super::edits::{self, EditedText};
use super::to_proto;
use crate::ide::rename::{self, Change, FileChanges, Options, Refusal, Renaming};
use crate::session::{InCopy, Level};
use crate::shown;

/// The id of the annotation of changes that the user must confirm.
const UNSURE: &str = "consort.unsure";

/// Edits, each with true if the user must confirm it.
type Edits = Vec<(TextEdit, bool)>;

/// Answers `textDocument/prepareRename` with the span of the name, and the name.
pub(super) async fn prepare(
    connection: &Connection,
    params: TextDocumentPositionParams,
) -> Result<Option<PrepareRenameResponse>> {
    let Some(cursor) = connection.cursor(params).await else { return Ok(None) };
    let named = rename::named(&cursor.document, cursor.offset).map_err(refused)?;
    let range = to_proto::range(cursor.document.text(), named.span, connection.negotiated().encoding);
    Ok(Some(PrepareRenameResponse::RangeWithPlaceholder { range, placeholder: named.name }))
}

/// Answers `textDocument/rename`.
pub(super) async fn rename(connection: &Connection, params: RenameParams) -> Result<Option<WorkspaceEdit>> {
    let Some(cursor) = connection.cursor(params.text_document_position).await else { return Ok(None) };
    if !rename::is_local(&cursor.document, cursor.offset) {
        connection.session.wait_for_edit().await;
    }
    let expander = InCopy { session: connection.session.clone(), client: connection.client };
    let renaming = rename::rename(&cursor, &params.new_name, &expander, Options::default()).await.map_err(refused)?;
    // The client applies the answer, and some clients ignore its versions.
    let texts = EditedText::of_changes(&renaming.files);
    let unchanged = edits::check_unchanged(&connection.session, connection.client, &texts).await;
    unchanged.map_err(|why| refused(Refusal(format!("Nothing was renamed: {why}"))))?;
    Ok(Some(edit(connection, &renaming)))
}

/// Returns the error `LSPErrorCodes.RequestFailed` (LSP 3.17) for a refusal.
pub(super) fn refused(refusal: Refusal) -> Error {
    Error { code: ErrorCode::ServerError(-32803), message: refusal.0.into(), data: None }
}

/// Returns changes that need no confirmation as an edit that the client can apply.
pub(super) fn edit_of(connection: &Connection, files: Vec<FileChanges>) -> WorkspaceEdit {
    edit(connection, &Renaming { old: String::new(), new: String::new(), kind: String::new(), files })
}

/// Returns the changes as an edit that the client can apply. If the client cannot ask for
/// confirmation, changes that need it are left out, and a message lists them.
fn edit(connection: &Connection, renaming: &Renaming) -> WorkspaceEdit {
    let negotiated = connection.negotiated();
    let annotated = negotiated.document_changes && negotiated.annotations;
    let mut left: Vec<String> = Vec::new();
    let mut files: Vec<(Url, Option<i32>, Edits)> = Vec::new();
    for file in &renaming.files {
        let Ok(uri) = Url::parse(&file.uri) else { continue };
        let range = |change: &Change| to_proto::range(file.document.text(), change.span, negotiated.encoding);
        let mut edits = Vec::new();
        for change in &file.changes {
            let range = range(change);
            if change.unsure.is_some() && !annotated {
                left.push(place(file, range));
                continue;
            }
            edits.push((TextEdit { range, new_text: change.by.clone() }, change.unsure.is_some()));
        }
        if !edits.is_empty() {
            files.push((uri, file.open.then(|| file.document.version()), edits));
        }
    }
    if !left.is_empty() {
        const MAX_SHOWN: usize = 5;
        let more = left.len().saturating_sub(MAX_SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        left.truncate(MAX_SHOWN);
        let message =
            format!("{} was left as it is where it may mean something else: {}{more}.", renaming.old, left.join(", "));
        connection.show(Level::Warning, &message);
    }
    if !negotiated.document_changes {
        let plain = |edits: Edits| edits.into_iter().map(|(edit, _)| edit).collect();
        let changes: HashMap<Url, Vec<TextEdit>> =
            files.into_iter().map(|(uri, _, edits)| (uri, plain(edits))).collect();
        return WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() };
    }
    let any = files.iter().any(|(_, _, edits)| edits.iter().any(|(_, unsure)| *unsure));
    let one = |(edit, unsure): (TextEdit, bool)| match unsure {
        true => OneOf::Right(AnnotatedTextEdit { text_edit: edit, annotation_id: UNSURE.into() }),
        false => OneOf::Left(edit),
    };
    let documents = files.into_iter().map(|(uri, version, edits)| TextDocumentEdit {
        text_document: OptionalVersionedTextDocumentIdentifier { uri, version },
        edits: edits.into_iter().map(one).collect(),
    });
    let annotation = ChangeAnnotation {
        label: to_proto::label(&format!("{} may mean something else here", renaming.old)),
        needs_confirmation: Some(true),
        description: renaming
            .files
            .iter()
            .flat_map(|file| &file.changes)
            .find_map(|change| change.unsure.as_deref().map(shown::safe)),
    };
    WorkspaceEdit {
        changes: None,
        document_changes: Some(DocumentChanges::Edits(documents.collect())),
        change_annotations: any.then(|| HashMap::from([(UNSURE.to_owned(), annotation)])),
    }
}

fn place(file: &FileChanges, range: Range) -> String {
    let name = file.path.as_deref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
    format!("{}:{}", name.unwrap_or_else(|| file.uri.clone()), range.start.line + 1)
}
