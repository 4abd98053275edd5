//! The LSP requests and notifications: tower-lsp's trait, in which each method is translated into
//! one session call.

use std::sync::atomic::Ordering;

use lsp_types::*;
use serde_json::{Value, json};
use tower_lsp::LanguageServer;
use tower_lsp::jsonrpc::{Error, ErrorCode, Result};

use super::connection::{Connection, path};
use super::notifier::Notifier;
use super::{
    actions, capabilities, commands, feedback, formatting, from_proto, hierarchies, lenses, negotiated, pull, stopping,
    texts, tokens, workspace_checks,
};
use crate::locked::lock;
use crate::session::{Frontend, requests};

#[tower_lsp::async_trait]
impl LanguageServer for Connection {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let negotiated = negotiated::negotiate(&params);
        if let Some(info) = params.client_info {
            let name = match info.version {
                Some(version) => format!("{} {version}", info.name),
                None => info.name,
            };
            self.session.name_client(self.client, name);
        }
        self.session.set_encoding(self.client, negotiated.encoding);
        if negotiated.input {
            self.session.note_takes_input(self.client);
        }
        if let Some(options) = from_proto::settings(params.initialization_options) {
            self.session.configure_first(self.client, options.clone(), negotiated.settings);
            let _ = self.options.set(options);
        }
        for folder in params.workspace_folders.into_iter().flatten().filter_map(|folder| path(&folder.uri)) {
            self.session.add_folder(self.client, folder);
        }
        let answer = capabilities::answer(&negotiated, &self.session.image_state());
        // tower-lsp lets `initialize` succeed only once.
        let _ = self.negotiated.set(negotiated);
        Ok(answer)
    }

    async fn initialized(&self, _: InitializedParams) {
        self.start_feedback();
        if self.negotiated().configuration {
            self.fetch_settings().await;
        }
        self.register().await;
    }

    async fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        if from_proto::is_lisp(&document.language_id, &document.uri) {
            self.start_feedback();
            self.session.keep_names();
            self.session.open(self.client, document.uri.to_string(), document.version, document.text);
            self.opened().insert(document.uri);
        }
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let document = params.text_document;
        let open = self.opened().contains(&document.uri);
        // The message that opened a document may not have been understood.
        if open || from_proto::is_lisp_file(&document.uri) {
            let edits = from_proto::edits(params.content_changes);
            self.start_feedback();
            self.session.change(self.client, document.uri.as_str(), document.version, edits);
            if !open {
                self.opened().insert(document.uri);
            }
        }
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams) {
        if self.opened().contains(&params.text_document.uri) {
            self.session.save(self.client, params.text_document.uri.as_str());
            self.changes.happened();
        }
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        if self.opened().remove(&params.text_document.uri) {
            self.tokens.forget(&params.text_document.uri);
            let mut limits = lock(&self.limits);
            limits.retain(|(uri, _)| *uri != params.text_document.uri);
            drop(limits);
            self.session.close(self.client, params.text_document.uri.as_str());
            self.changes.closed(params.text_document.uri);
        }
    }

    async fn diagnostic(&self, params: DocumentDiagnosticParams) -> Result<DocumentDiagnosticReportResult> {
        self.read(pull::document(self, params)).await
    }

    async fn workspace_diagnostic(&self, params: WorkspaceDiagnosticParams) -> Result<WorkspaceDiagnosticReportResult> {
        self.read(pull::workspace(self, params)).await
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        let snapshot = self.session.snapshot(self.client, params.text_document.uri.as_str(), false);
        let open = self.session.open_documents();
        let offer = async move {
            match snapshot.await {
                Some(snapshot) => Ok(Some(actions::offer(self, params, snapshot, open.await).await)),
                None => Ok(None),
            }
        };
        self.read(offer).await
    }

    async fn code_action_resolve(&self, action: CodeAction) -> Result<CodeAction> {
        self.read(async move { Ok(actions::resolve(self, action).await) }).await
    }

    async fn completion(&self, params: CompletionParams) -> Result<Option<CompletionResponse>> {
        self.read(super::completion::complete(self, params)).await
    }

    async fn completion_resolve(&self, item: CompletionItem) -> Result<CompletionItem> {
        self.read(super::completion::resolve(self, item)).await
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        self.read(super::hover::hover(self, params)).await
    }

    async fn signature_help(&self, params: SignatureHelpParams) -> Result<Option<SignatureHelp>> {
        self.read(super::signature::help(self, params)).await
    }

    async fn goto_definition(&self, params: GotoDefinitionParams) -> Result<Option<GotoDefinitionResponse>> {
        self.read(super::definition::definition(self, params)).await
    }

    async fn goto_implementation(
        &self,
        params: request::GotoImplementationParams,
    ) -> Result<Option<request::GotoImplementationResponse>> {
        self.read(super::definition::implementation(self, params)).await
    }

    async fn goto_type_definition(
        &self,
        params: request::GotoTypeDefinitionParams,
    ) -> Result<Option<request::GotoTypeDefinitionResponse>> {
        self.read(super::type_definition::find(self, params)).await
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        self.read(super::inlay_hints::hints(self, params)).await
    }

    async fn references(&self, params: ReferenceParams) -> Result<Option<Vec<Location>>> {
        self.read(super::references::references(self, params)).await
    }

    async fn linked_editing_range(&self, params: LinkedEditingRangeParams) -> Result<Option<LinkedEditingRanges>> {
        self.read(super::linked_names::places(self, params)).await
    }

    async fn document_link(&self, params: DocumentLinkParams) -> Result<Option<Vec<DocumentLink>>> {
        self.read(super::links::links(self, params)).await
    }

    async fn prepare_call_hierarchy(
        &self,
        params: CallHierarchyPrepareParams,
    ) -> Result<Option<Vec<CallHierarchyItem>>> {
        self.read(hierarchies::prepare_calls(self, params)).await
    }

    async fn incoming_calls(
        &self,
        params: CallHierarchyIncomingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyIncomingCall>>> {
        self.read(hierarchies::incoming(self, params)).await
    }

    async fn outgoing_calls(
        &self,
        params: CallHierarchyOutgoingCallsParams,
    ) -> Result<Option<Vec<CallHierarchyOutgoingCall>>> {
        self.read(hierarchies::outgoing(self, params)).await
    }

    async fn prepare_type_hierarchy(
        &self,
        params: TypeHierarchyPrepareParams,
    ) -> Result<Option<Vec<TypeHierarchyItem>>> {
        self.read(hierarchies::prepare_types(self, params)).await
    }

    async fn supertypes(&self, params: TypeHierarchySupertypesParams) -> Result<Option<Vec<TypeHierarchyItem>>> {
        self.read(hierarchies::supertypes(self, params)).await
    }

    async fn subtypes(&self, params: TypeHierarchySubtypesParams) -> Result<Option<Vec<TypeHierarchyItem>>> {
        self.read(hierarchies::subtypes(self, params)).await
    }

    async fn prepare_rename(&self, params: TextDocumentPositionParams) -> Result<Option<PrepareRenameResponse>> {
        self.read(super::rename::prepare(self, params)).await
    }

    async fn rename(&self, params: RenameParams) -> Result<Option<WorkspaceEdit>> {
        self.read(super::rename::rename(self, params)).await
    }

    async fn symbol(&self, params: WorkspaceSymbolParams) -> Result<Option<Vec<SymbolInformation>>> {
        self.read(super::workspace_symbols::symbols(self, params)).await
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        self.read(async move { Ok(Some(lenses::of_document(self, params).await)) }).await
    }

    async fn code_lens_resolve(&self, lens: CodeLens) -> Result<CodeLens> {
        self.read(async move { Ok(lenses::resolve(self, lens).await) }).await
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        if !commands::runs_code(&params.command) {
            return self.read(async move { commands::execute(self, params).await.map(Some) }).await;
        }
        let done = requests::limit_each_step(async move { commands::execute(self, params).await.map(Some) });
        done.await.unwrap_or_else(|error| Err(given_up(&error)))
    }

    async fn document_symbol(&self, params: DocumentSymbolParams) -> Result<Option<DocumentSymbolResponse>> {
        self.read(texts::document_symbol(self, params)).await
    }

    async fn document_highlight(&self, params: DocumentHighlightParams) -> Result<Option<Vec<DocumentHighlight>>> {
        self.read(texts::document_highlight(self, params)).await
    }

    async fn folding_range(&self, params: FoldingRangeParams) -> Result<Option<Vec<FoldingRange>>> {
        self.read(texts::folding_range(self, params)).await
    }

    async fn selection_range(&self, params: SelectionRangeParams) -> Result<Option<Vec<SelectionRange>>> {
        self.read(texts::selection_range(self, params)).await
    }

    async fn semantic_tokens_full(&self, params: SemanticTokensParams) -> Result<Option<SemanticTokensResult>> {
        self.read(tokens::full(self, params)).await
    }

    async fn semantic_tokens_full_delta(
        &self,
        params: SemanticTokensDeltaParams,
    ) -> Result<Option<SemanticTokensFullDeltaResult>> {
        self.read(tokens::delta(self, params)).await
    }

    async fn semantic_tokens_range(
        &self,
        params: SemanticTokensRangeParams,
    ) -> Result<Option<SemanticTokensRangeResult>> {
        self.read(tokens::range(self, params)).await
    }

    async fn formatting(&self, params: DocumentFormattingParams) -> Result<Option<Vec<TextEdit>>> {
        self.read(formatting::document(self, params)).await
    }

    async fn range_formatting(&self, params: DocumentRangeFormattingParams) -> Result<Option<Vec<TextEdit>>> {
        self.read(formatting::range(self, params)).await
    }

    async fn on_type_formatting(&self, params: DocumentOnTypeFormattingParams) -> Result<Option<Vec<TextEdit>>> {
        self.read(formatting::on_type(self, params)).await
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        if self.negotiated().configuration {
            self.fetch_settings().await;
        } else {
            let settings = params.settings.get("consort").cloned().unwrap_or(params.settings);
            if let Some(settings) = from_proto::settings(Some(settings)) {
                self.session.configure(self.client, settings, self.negotiated().settings);
                self.changes.happened();
            }
        }
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        for folder in params.event.added.iter().filter_map(|folder| path(&folder.uri)) {
            self.session.add_folder(self.client, folder);
        }
        for folder in params.event.removed.iter().filter_map(|folder| path(&folder.uri)) {
            self.session.remove_folder(self.client, folder);
        }
    }

    async fn did_change_watched_files(&self, _: DidChangeWatchedFilesParams) {
        self.session.files_changed();
    }
}

/// Returns the error of a request that took too long: LSP 3.17 `LSPErrorCodes.RequestFailed`.
fn given_up(why: &impl ToString) -> Error {
    Error { code: ErrorCode::ServerError(-32803), message: why.to_string().into(), data: None }
}

impl Connection {
    /// Handles a request that only reads, with its time limit.
    async fn read<T>(&self, handler: impl Future<Output = Result<T>>) -> Result<T> {
        requests::limit_total_time(handler).await.unwrap_or_else(|error| Err(given_up(&error)))
    }

    /// Starts to send session events to the client, which LSP 3.17 permits only after `initialize`
    /// is answered.
    pub(super) fn start_feedback(&self) {
        let feedback = lock(&self.feedback).take();
        if let Some(feedback) = feedback {
            let notifier = Notifier {
                peer: self.peer.clone(),
                bars: self.bars.clone(),
                negotiated: self.negotiated().clone(),
                session: self.session.clone(),
                client: self.client,
            };
            self.session.note_shows_questions(self.client);
            if notifier.negotiated.stops {
                let stops = self.session.stops_of(self.client, Frontend::Lsp);
                requests::handle().spawn(stopping::forward(notifier.clone(), stops));
            }
            requests::handle().spawn(workspace_checks::follow(notifier.clone(), self.changes.clone()));
            requests::handle().spawn(feedback::forward(notifier, feedback));
        }
    }

    /// Requests the client's settings and applies them.
    async fn fetch_settings(&self) {
        let items = json!({"items": [{"section": "consort"}]});
        let number = self.settings_asked.fetch_add(1, Ordering::SeqCst) + 1;
        match self.peer.request("workspace/configuration", items).await {
            // The answer to a newer request has been applied.
            Ok(_) if self.settings_applied.fetch_max(number, Ordering::SeqCst) > number => {}
            Ok(answer) => {
                let settings = from_proto::settings(answer.get(0).cloned()).or_else(|| self.options.get().cloned());
                if let Some(settings) = settings {
                    self.session.configure(self.client, settings, self.negotiated().settings);
                    self.changes.happened();
                }
            }
            Err(error) => tracing::warn!("the client did not tell its settings: {error}"),
        }
    }

    /// Registers for the notifications that need dynamic registration.
    async fn register(&self) {
        let negotiated = self.negotiated();
        let mut registrations = Vec::new();
        if negotiated.register_configuration {
            registrations.push(json!({
                "id": "consort-configuration", "method": "workspace/didChangeConfiguration",
                "registerOptions": {"section": "consort"},
            }));
        }
        if negotiated.register_watch {
            registrations.push(json!({
                "id": "consort-asd", "method": "workspace/didChangeWatchedFiles",
                "registerOptions": {"watchers": [{"globPattern": "**/*.asd"}]},
            }));
        }
        if !registrations.is_empty() {
            let registered = self.peer.request("client/registerCapability", json!({"registrations": registrations}));
            if let Err(error) = registered.await {
                tracing::warn!("the client did not register what it said it can: {error}");
            }
        }
    }
}
