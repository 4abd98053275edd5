//! Conversion to the protocol's types.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use lsp_types::{
    CodeDescription, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, DocumentChanges,
    GotoDefinitionResponse, Location, MessageType, NumberOrString, OneOf, OptionalVersionedTextDocumentIdentifier,
    Position, Range, SymbolKind, TextDocumentEdit, TextEdit, Url, WorkspaceEdit,
};
use ropey::Rope;
use serde_json::json;
use tower_lsp::jsonrpc::{Error, ErrorCode};

use super::negotiated::Negotiated;
use crate::ide::files;
use crate::ide::places::Target;
use crate::model::diagnostic::{Diagnostic, Severity, Tag};
use crate::model::diagnostic_codes;
use crate::model::image::ImageError;
use crate::session::{Level, uri_of_path};
use crate::shown;
use crate::text::Span;
use crate::text::position::{PositionEncoding, to_position};

/// The maximum total size of the files that are read for related locations of one text, in bytes.
/// Code under check can name any file.
const MAX_RELATED_FILES: u64 = 32 << 20;

/// Returns edits of a document, tied to its version if the client supports versions.
pub(super) fn edit(uri: &Url, version: Option<i32>, versions: bool, edits: Vec<TextEdit>) -> WorkspaceEdit {
    if !versions {
        return WorkspaceEdit::new(HashMap::from([(uri.clone(), edits)]));
    }
    let text_document = OptionalVersionedTextDocumentIdentifier { uri: uri.clone(), version };
    let edits = edits.into_iter().map(OneOf::Left).collect();
    let changes = DocumentChanges::Edits(vec![TextDocumentEdit { text_document, edits }]);
    WorkspaceEdit { document_changes: Some(changes), ..WorkspaceEdit::default() }
}

/// Converts a span of `text` to the client's units.
pub(super) fn range(text: &Rope, span: Span, encoding: PositionEncoding) -> Range {
    let at = |offset| {
        let position = to_position(text, offset, encoding);
        Position { line: position.line, character: position.column }
    };
    Range { start: at(span.start), end: at(span.end) }
}

/// Returns a part of a file as a location. It is the start of the file if the file cannot be read.
pub(super) fn location(target: &Target, encoding: PositionEncoding) -> Option<Location> {
    let range = target.text.as_ref().map(|text| range(text, target.span, encoding)).unwrap_or_default();
    Some(Location { uri: Url::parse(&target.uri).ok()?, range })
}

/// Returns parts of files as the answer to a request for definitions, or `None` if there are none.
pub(super) fn definitions(targets: &[Target], encoding: PositionEncoding) -> Option<GotoDefinitionResponse> {
    let locations: Vec<Location> = targets.iter().filter_map(|target| location(target, encoding)).collect();
    (!locations.is_empty()).then_some(GotoDefinitionResponse::Array(locations))
}

/// Returns the name of a symbol, a package or a file for a list of names. The result is never
/// empty, because clients refuse empty names.
pub(super) fn label(name: &str) -> String {
    let label = shown::line(name);
    if label.is_empty() { "\\u{20}".into() } else { label }
}

/// Returns the protocol's kind of a definition, from its kind in the image's terms.
pub(super) fn symbol_kind(kind: &str) -> SymbolKind {
    match kind {
        "function" | "macro" | "compiler macro" | "setf function" | "setf expander" => SymbolKind::FUNCTION,
        "generic function" | "method" => SymbolKind::METHOD,
        "variable" | "symbol macro" => SymbolKind::VARIABLE,
        "constant" => SymbolKind::CONSTANT,
        "class" | "condition" => SymbolKind::CLASS,
        "structure" => SymbolKind::STRUCT,
        "type" => SymbolKind::TYPE_PARAMETER,
        "package" => SymbolKind::PACKAGE,
        "system" => SymbolKind::MODULE,
        _ => SymbolKind::FUNCTION,
    }
}

fn severity(severity: Severity) -> DiagnosticSeverity {
    match severity.lsp() {
        1 => DiagnosticSeverity::ERROR,
        2 => DiagnosticSeverity::WARNING,
        3 => DiagnosticSeverity::INFORMATION,
        _ => DiagnosticSeverity::HINT,
    }
}

/// Converts diagnostics of one text for the client. Caches the other files that are read for
/// related locations.
pub(super) struct Diagnostics<'a> {
    /// The client's capabilities.
    pub(super) negotiated: &'a Negotiated,
    /// The URI of the document.
    pub(super) uri: &'a Url,
    /// The document's text.
    pub(super) text: &'a Rope,
    /// The address of the repository whose documentation describes the codes; empty if there is
    /// none.
    repository: &'static str,
    others: HashMap<PathBuf, Option<Rope>>,
    /// The number of bytes read from other files.
    read: u64,
}

impl<'a> Diagnostics<'a> {
    pub(super) fn new(negotiated: &'a Negotiated, uri: &'a Url, text: &'a Rope) -> Diagnostics<'a> {
        let repository = env!("CARGO_PKG_REPOSITORY");
        Diagnostics { negotiated, uri, text, repository, others: HashMap::new(), read: 0 }
    }

    pub(super) async fn all(mut self, items: Vec<Diagnostic>) -> Vec<lsp_types::Diagnostic> {
        let mut all = Vec::with_capacity(items.len());
        for item in items {
            all.push(self.convert(item).await);
        }
        all
    }

    pub(super) async fn convert(&mut self, item: Diagnostic) -> lsp_types::Diagnostic {
        let mut related = Vec::new();
        if self.negotiated.related {
            for place in &item.related {
                if let Some(location) = self.location(place.file.as_deref(), place.span).await {
                    related.push(DiagnosticRelatedInformation { location, message: shown::terminal(&place.message) });
                }
            }
        }
        let tags: Vec<DiagnosticTag> = item
            .tags
            .iter()
            .filter_map(|tag| match tag {
                Tag::Unnecessary => self.negotiated.unnecessary.then_some(DiagnosticTag::UNNECESSARY),
                Tag::Deprecated => self.negotiated.deprecated.then_some(DiagnosticTag::DEPRECATED),
            })
            .collect();
        lsp_types::Diagnostic {
            range: range(self.text, item.span, self.negotiated.encoding),
            severity: Some(severity(item.severity)),
            code: Some(NumberOrString::String(shown::line(&item.code))),
            code_description: self.page(&item.code).map(|href| CodeDescription { href }),
            source: Some("consort".into()),
            message: shown::terminal(&item.message),
            related_information: (!related.is_empty()).then_some(related),
            tags: (!tags.is_empty()).then_some(tags),
            data: (!item.data.is_null()).then_some(item.data),
        }
    }

    /// Returns the address of the page about a code, if the client shows such addresses.
    fn page(&self, code: &str) -> Option<Url> {
        let page = diagnostic_codes::page(self.repository, code).filter(|_| self.negotiated.code_pages);
        page.and_then(|page| Url::parse(&page).ok())
    }

    /// Returns a location in this text or in another file, or `None` if the file cannot be read.
    async fn location(&mut self, file: Option<&Path>, span: Span) -> Option<Location> {
        let encoding = self.negotiated.encoding;
        let Some(file) = file else {
            return Some(Location { uri: self.uri.clone(), range: range(self.text, span, encoding) });
        };
        if !self.others.contains_key(file) {
            let room = MAX_RELATED_FILES.saturating_sub(self.read);
            let text = if room > 0 { read(file, room).await } else { None };
            self.read += text.as_ref().map_or(0, |text| text.len_bytes() as u64);
            self.others.insert(file.to_owned(), text);
        }
        let text = self.others.get(file)?.as_ref()?;
        Some(Location { uri: Url::parse(&uri_of_path(file)).ok()?, range: range(text, span, encoding) })
    }
}

async fn read(file: &Path, limit: u64) -> Option<Rope> {
    let file = file.to_owned();
    let text = tokio::task::spawn_blocking(move || files::source(&file, limit)).await.ok()??;
    Some(Rope::from_str(&text))
}

/// Converts a level to LSP's `MessageType`.
pub(super) fn message_type(level: Level) -> MessageType {
    match level {
        Level::Error => MessageType::ERROR,
        Level::Warning => MessageType::WARNING,
        Level::Info => MessageType::INFO,
    }
}

/// Returns the error of a failed call: `LSPErrorCodes.RequestFailed` of LSP 3.17, for a valid
/// request that failed. Its message explains the failure to a user.
pub(super) fn error(error: &ImageError) -> Error {
    let data = Some(json!({"kind": error.kind()}));
    Error { code: ErrorCode::ServerError(-32803), message: error.to_string().into(), data }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_code_has_the_address_of_its_page_if_the_client_shows_it() {
        let (uri, text) = (Url::parse("file:///a.lisp").unwrap(), Rope::from_str("(f)"));
        let of = async |code_pages, repository, code: &str| {
            let negotiated = Negotiated { code_pages, ..Negotiated::default() };
            let mut diagnostics = Diagnostics { repository, ..Diagnostics::new(&negotiated, &uri, &text) };
            let found = Diagnostic::new(Span { start: 0, end: 3 }, Severity::Warning, code, "m");
            diagnostics.convert(found).await.code_description.map(|page| page.href.to_string())
        };
        let page = of(true, "https://example.org/consort", "lint-boolean-if").await.unwrap();
        assert!(
            page.starts_with("https://example.org/consort/blob/v") && page.ends_with("/docs/lint.md#boolean-if"),
            "{page}"
        );
        assert_eq!(of(false, "https://example.org/consort", "style").await, None);
        assert_eq!(of(true, "", "style").await, None);
    }
}
