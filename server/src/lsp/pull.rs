//! Pull diagnostics (LSP 3.17, "Pull Diagnostics"), with the same results as published ones.

use std::collections::HashMap;

use lsp_types::*;
use ropey::Rope;
use tower_lsp::jsonrpc::Result;

use super::connection::{Connection, no_document};
use super::from_proto;
use super::to_proto::{self, Diagnostics};
use super::workspace_checks;
use crate::bounded_file;
use crate::model::check::CheckMode;
use crate::session::{CheckRequest, Snapshot, path_of_uri, uri_of_path};
use crate::text::decode;

/// Waits for the image to start, if the client does not support requests to pull again.
async fn started(connection: &Connection) {
    if !connection.negotiated().refresh {
        connection.session.image_started().await;
    }
}

/// Handles `textDocument/diagnostic`. Answers once the current text has been checked, or at once
/// with the scanner's findings if there is no image. A file that is not open is checked as on disk.
pub(super) async fn document(
    connection: &Connection,
    params: DocumentDiagnosticParams,
) -> Result<DocumentDiagnosticReportResult> {
    let uri = params.text_document.uri;
    started(connection).await;
    let Some(snapshot) = connection.session.snapshot(connection.client, uri.as_str(), true).await else {
        return unopened(connection, &uri).await;
    };
    if params.previous_result_id.as_deref() == Some(&*id(&snapshot)) {
        let unchanged = UnchangedDocumentDiagnosticReport { result_id: id(&snapshot) };
        let report = RelatedUnchangedDocumentDiagnosticReport {
            related_documents: None,
            unchanged_document_diagnostic_report: unchanged,
        };
        return Ok(DocumentDiagnosticReport::from(report).into());
    }
    Ok(full(report(connection, &uri, snapshot).await))
}

/// Handles `workspace/diagnostic`: the diagnostics of this client's open documents, each once its
/// current text has been checked.
pub(super) async fn workspace(
    connection: &Connection,
    params: WorkspaceDiagnosticParams,
) -> Result<WorkspaceDiagnosticReportResult> {
    started(connection).await;
    let previous = from_proto::previous(params.previous_result_ids);
    let mut items = Vec::new();
    for known in connection.session.snapshots(connection.client).await {
        // A document closed meanwhile has no diagnostics.
        let Some(snapshot) = connection.session.snapshot(connection.client, &known.uri, true).await else { continue };
        let Ok(uri) = Url::parse(&snapshot.uri) else { continue };
        let version = Some(snapshot.version.into());
        items.push(if previous.get(&uri) == Some(&id(&snapshot)) {
            let unchanged = UnchangedDocumentDiagnosticReport { result_id: id(&snapshot) };
            WorkspaceUnchangedDocumentDiagnosticReport { uri, version, unchanged_document_diagnostic_report: unchanged }
                .into()
        } else {
            let full = report(connection, &uri, snapshot).await;
            WorkspaceFullDocumentDiagnosticReport { uri, version, full_document_diagnostic_report: full }.into()
        });
    }
    items.extend(of_closed_files(connection, &previous).await);
    Ok(WorkspaceDiagnosticReport { items }.into())
}

/// Returns the diagnostics of the workspace's files that are not open, if `check.workspace` is set.
async fn of_closed_files(
    connection: &Connection,
    previous: &HashMap<Url, String>,
) -> Vec<WorkspaceDocumentDiagnosticReport> {
    let Connection { session, client, .. } = connection;
    if !session.settings(*client).await.check.workspace {
        return Vec::new();
    }
    let files = match session.check_workspace(*client, |_| {}).await {
        Ok(pass) => pass.files,
        Err(_) => session.workspace_findings(),
    };
    let mut items = Vec::new();
    for found in files {
        let Ok(uri) = Url::parse(&uri_of_path(&found.path)) else { continue };
        let result_id = format!("file-{}", found.number);
        if session.document(*client, uri.as_str()).await.is_some() {
            continue;
        }
        items.push(if previous.get(&uri) == Some(&result_id) {
            let unchanged = UnchangedDocumentDiagnosticReport { result_id };
            let version = None;
            WorkspaceUnchangedDocumentDiagnosticReport { uri, version, unchanged_document_diagnostic_report: unchanged }
                .into()
        } else {
            // The file was written since it was checked. The next pass has its findings.
            let Some(text) = workspace_checks::text_of(&found.path, found.digest).await else { continue };
            let all = Diagnostics::new(connection.negotiated(), &uri, &text).all(found.items.clone()).await;
            let full = FullDocumentDiagnosticReport { result_id: Some(result_id), items: all };
            WorkspaceFullDocumentDiagnosticReport { uri, version: None, full_document_diagnostic_report: full }.into()
        });
    }
    items
}

fn id(snapshot: &Snapshot) -> String {
    snapshot.result_id.to_string()
}

async fn report(connection: &Connection, uri: &Url, snapshot: Snapshot) -> FullDocumentDiagnosticReport {
    let result_id = Some(id(&snapshot));
    let items = Diagnostics::new(connection.negotiated(), uri, &snapshot.text).all(snapshot.items).await;
    FullDocumentDiagnosticReport { result_id, items }
}

async fn unopened(connection: &Connection, uri: &Url) -> Result<DocumentDiagnosticReportResult> {
    let path = path_of_uri(uri.as_str()).filter(|_| from_proto::is_lisp_file(uri)).ok_or_else(|| no_document(uri))?;
    let bytes =
        bounded_file::read_blocking(path.clone(), bounded_file::SOURCE_LIMIT).await.map_err(|_| no_document(uri))?;
    let text = decode(bytes);
    let rope = Rope::from_str(&text);
    let request = CheckRequest { text, path: Some(path), mode: CheckMode::File, package: None, timeout: None };
    let report = connection.session.check(connection.client, request).await.map_err(|error| to_proto::error(&error))?;
    let items = Diagnostics::new(connection.negotiated(), uri, &rope).all(report.diagnostics).await;
    Ok(full(FullDocumentDiagnosticReport { result_id: None, items }))
}

fn full(report: FullDocumentDiagnosticReport) -> DocumentDiagnosticReportResult {
    let report =
        RelatedFullDocumentDiagnosticReport { related_documents: None, full_document_diagnostic_report: report };
    DocumentDiagnosticReport::from(report).into()
}
