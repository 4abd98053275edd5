//! The capabilities of the server (LSP 3.17, `initialize`).

use lsp_types::*;
use serde_json::{Value, json};

use super::negotiated::Negotiated;
use super::{actions, commands};
use crate::model::image::ImageState;
use crate::session::describe_image;
use crate::text::position::PositionEncoding;

/// Returns the result of `initialize`.
pub(super) fn answer(negotiated: &Negotiated, image: &ImageState) -> InitializeResult {
    let sync = TextDocumentSyncOptions {
        open_close: Some(true),
        change: Some(TextDocumentSyncKind::INCREMENTAL),
        save: Some(SaveOptions { include_text: Some(false) }.into()),
        ..TextDocumentSyncOptions::default()
    };
    let commands = ExecuteCommandOptions {
        commands: commands::names().map(str::to_owned).collect(),
        work_done_progress_options: WorkDoneProgressOptions { work_done_progress: Some(true) },
    };
    let actions = CodeActionOptions {
        code_action_kinds: Some(actions::kinds()),
        resolve_provider: Some(true),
        ..CodeActionOptions::default()
    };
    let pull = negotiated.pull.then(|| {
        DiagnosticServerCapabilities::Options(DiagnosticOptions {
            identifier: Some("consort".into()),
            inter_file_dependencies: true,
            workspace_diagnostics: true,
            work_done_progress_options: WorkDoneProgressOptions::default(),
        })
    });
    let folders =
        WorkspaceFoldersServerCapabilities { supported: Some(true), change_notifications: Some(OneOf::Left(true)) };
    InitializeResult {
        capabilities: ServerCapabilities {
            position_encoding: Some(match negotiated.encoding {
                PositionEncoding::Utf8 => PositionEncodingKind::UTF8,
                PositionEncoding::Utf16 => PositionEncodingKind::UTF16,
                PositionEncoding::Utf32 => PositionEncodingKind::UTF32,
            }),
            text_document_sync: Some(sync.into()),
            execute_command_provider: Some(commands),
            code_action_provider: Some(actions.into()),
            code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(true) }),
            diagnostic_provider: pull,
            completion_provider: Some(CompletionOptions {
                resolve_provider: Some(true),
                trigger_characters: Some([":", "*", "+", "%", "&"].map(str::to_owned).to_vec()),
                ..CompletionOptions::default()
            }),
            hover_provider: Some(true.into()),
            signature_help_provider: Some(SignatureHelpOptions {
                trigger_characters: Some([" ", "("].map(str::to_owned).to_vec()),
                ..SignatureHelpOptions::default()
            }),
            definition_provider: Some(OneOf::Left(true)),
            type_definition_provider: Some(TypeDefinitionProviderCapability::Simple(true)),
            inlay_hint_provider: Some(OneOf::Left(true)),
            implementation_provider: Some(ImplementationProviderCapability::Simple(true)),
            references_provider: Some(OneOf::Left(true)),
            call_hierarchy_provider: Some(CallHierarchyServerCapability::Options(CallHierarchyOptions {
                work_done_progress_options: WorkDoneProgressOptions { work_done_progress: Some(true) },
            })),
            linked_editing_range_provider: Some(LinkedEditingRangeServerCapabilities::Simple(true)),
            document_link_provider: Some(DocumentLinkOptions {
                resolve_provider: Some(false),
                work_done_progress_options: WorkDoneProgressOptions::default(),
            }),
            rename_provider: Some(OneOf::Right(RenameOptions {
                prepare_provider: Some(true),
                work_done_progress_options: WorkDoneProgressOptions::default(),
            })),
            workspace_symbol_provider: Some(OneOf::Left(true)),
            document_symbol_provider: Some(OneOf::Left(true)),
            semantic_tokens_provider: Some(super::tokens::capability()),
            document_highlight_provider: Some(OneOf::Left(true)),
            folding_range_provider: Some(FoldingRangeProviderCapability::Simple(true)),
            selection_range_provider: Some(SelectionRangeProviderCapability::Simple(true)),
            document_formatting_provider: Some(OneOf::Left(true)),
            document_range_formatting_provider: Some(OneOf::Left(true)),
            document_on_type_formatting_provider: Some(DocumentOnTypeFormattingOptions {
                first_trigger_character: "\n".into(),
                more_trigger_character: Some(vec![")".into()]),
            }),
            workspace: Some(WorkspaceServerCapabilities { workspace_folders: Some(folders), file_operations: None }),
            experimental: Some(experimental(image)),
            ..ServerCapabilities::default()
        },
        server_info: Some(ServerInfo { name: "consort".into(), version: Some(env!("CARGO_PKG_VERSION").into()) }),
    }
}

/// Returns `{"consort": {"image": {...}}}`, with the image of this session as `status` reports it
/// in MCP.
fn experimental(image: &ImageState) -> Value {
    json!({"consort": {"image": describe_image(image)}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_are_offered_to_a_client_that_pulls_them() {
        for pull in [true, false] {
            let negotiated = Negotiated { pull, ..Negotiated::default() };
            let answer = answer(&negotiated, &ImageState::Starting { what: "x".into() });
            assert_eq!(answer.capabilities.diagnostic_provider.is_some(), pull);
        }
    }
}
