//! `textDocument/signatureHelp` (LSP 3.17): the signature of the call at the cursor.

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use crate::ide::signature::{self, Help};
use crate::shown;

/// Handles `textDocument/signatureHelp`.
pub(super) async fn help(connection: &Connection, params: SignatureHelpParams) -> Result<Option<SignatureHelp>> {
    let Some(cursor) = connection.cursor(params.text_document_position_params).await else { return Ok(None) };
    Ok(signature::help(&cursor).await.map(answer))
}

fn answer(Help { signature, documentation }: Help) -> SignatureHelp {
    // Offsets in labels are UTF-16, independent of the position encoding (LSP 3.17,
    // ParameterInformation).
    let units = |chars: usize| -> u32 {
        let count: usize = signature.label.chars().take(chars).map(char::len_utf16).sum();
        u32::try_from(count).unwrap_or(u32::MAX)
    };
    let one = |span: &crate::text::Span| ParameterInformation {
        label: ParameterLabel::LabelOffsets([units(span.start), units(span.end)]),
        documentation: None,
    };
    // An index past the last parameter means that none is active. Without an index, a client would
    // use the first parameter.
    let active = signature.active.unwrap_or(signature.parameters.len());
    let active = Some(u32::try_from(active).unwrap_or(u32::MAX));
    // The offsets are those of the unescaped label. A label that needs escapes gets no parameters.
    let label = shown::safe(&signature.label);
    let parameters = (label == signature.label).then(|| signature.parameters.iter().map(one).collect());
    let information = SignatureInformation {
        parameters,
        label,
        documentation: documentation.map(|text| Documentation::String(shown::safe(&text))),
        active_parameter: active,
    };
    SignatureHelp { signatures: vec![information], active_signature: Some(0), active_parameter: active }
}
