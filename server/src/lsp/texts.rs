//! What a document's own text answers: its outline, occurrences of a symbol, folding, selection ranges. And the text with its tree, for
//! whoever works on it.

use std::ops::Range;

use lsp_types::*;
use ropey::Rope;
use tower_lsp::jsonrpc::Result;

use super::connection::{Connection, no_document};
use super::{from_proto, to_proto};
use crate::ide::ranges;
use crate::ide::symbols::{self, Kind};
use crate::text::Span;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::position::{PositionEncoding, to_offset, to_position};
use crate::text::tree::Tree;

/// An open document's text, and how its client counts.
pub(super) struct Text {
    pub(super) document: Document,
    pub(super) string: String,
    pub(super) encoding: PositionEncoding,
}

impl Text {
    /// The document as it is after all changes that were sent before.
    pub(super) async fn of(connection: &Connection, uri: &Url) -> Result<Text> {
        let document =
            connection.session.document(connection.client, uri.as_str()).await.ok_or_else(|| no_document(uri))?;
        let string = document.text().to_string();
        Ok(Text { document, string, encoding: connection.negotiated().encoding })
    }

    pub(super) fn tree(&self) -> Tree<'_> {
        Tree::of(&self.string, self.document.scan())
    }

    fn rope(&self) -> &Rope {
        self.document.text()
    }

    /// A place of the client's as a byte.
    pub(super) fn byte(&self, position: Position) -> usize {
        self.rope().char_to_byte(to_offset(self.rope(), from_proto::position(position), self.encoding))
    }

    /// A range of the client's in bytes.
    pub(super) fn bytes(&self, range: lsp_types::Range) -> Range<usize> {
        let start = self.byte(range.start);
        start..self.byte(range.end).max(start)
    }

    pub(super) fn span(&self, bytes: &Range<usize>) -> Span {
        Span { start: self.rope().byte_to_char(bytes.start), end: self.rope().byte_to_char(bytes.end) }
    }

    /// Bytes in the client's units.
    pub(super) fn range(&self, bytes: &Range<usize>) -> lsp_types::Range {
        to_proto::range(self.rope(), self.span(bytes), self.encoding)
    }

    pub(super) fn edits(&self, changes: &[(Range<usize>, String)]) -> Vec<TextEdit> {
        changes.iter().map(|(range, by)| TextEdit { range: self.range(range), new_text: by.clone() }).collect()
    }

    /// The package in force at a byte, if the text says it.
    pub(super) fn package(&self, byte: usize) -> Option<String> {
        package_at(&self.document, self.rope().byte_to_char(byte))
    }
}

/// `textDocument/documentSymbol`: a tree of what the document defines.
pub(super) async fn document_symbol(
    connection: &Connection,
    params: DocumentSymbolParams,
) -> Result<Option<DocumentSymbolResponse>> {
    let text = Text::of(connection, &params.text_document.uri).await?;
    let symbols = symbols::symbols(&text.string).into_iter().map(|symbol| shown(&text, symbol)).collect();
    Ok(Some(DocumentSymbolResponse::Nested(symbols)))
}

fn shown(text: &Text, symbol: symbols::Symbol) -> DocumentSymbol {
    let kind = match symbol.kind {
        Kind::Function | Kind::Macro => SymbolKind::FUNCTION,
        Kind::Generic => SymbolKind::INTERFACE,
        Kind::Method => SymbolKind::METHOD,
        Kind::Variable => SymbolKind::VARIABLE,
        Kind::Constant => SymbolKind::CONSTANT,
        Kind::Class => SymbolKind::CLASS,
        Kind::Struct => SymbolKind::STRUCT,
        Kind::Slot => SymbolKind::FIELD,
        Kind::Package => SymbolKind::PACKAGE,
        Kind::Type => SymbolKind::TYPE_PARAMETER,
        Kind::System => SymbolKind::MODULE,
        Kind::Section => SymbolKind::NAMESPACE,
        Kind::Other => SymbolKind::OBJECT,
    };
    let children: Vec<DocumentSymbol> = symbol.children.into_iter().map(|child| shown(text, child)).collect();
    #[allow(deprecated)] // a field that has to be given
    DocumentSymbol {
        name: symbol.name,
        detail: (!symbol.detail.is_empty()).then_some(symbol.detail),
        kind,
        tags: None,
        deprecated: None,
        range: text.range(&symbol.range),
        selection_range: text.range(&symbol.name_range),
        children: (!children.is_empty()).then_some(children),
    }
}

/// `textDocument/documentHighlight`: where the symbol occurs; where it is defined as what is written.
pub(super) async fn document_highlight(
    connection: &Connection,
    params: DocumentHighlightParams,
) -> Result<Option<Vec<DocumentHighlight>>> {
    let place = params.text_document_position_params;
    let text = Text::of(connection, &place.text_document.uri).await?;
    let found = ranges::occurrences(&text.tree(), text.byte(place.position), |byte| text.package(byte));
    let highlight = |(range, defined): (Range<usize>, bool)| {
        let kind = if defined { DocumentHighlightKind::WRITE } else { DocumentHighlightKind::TEXT };
        DocumentHighlight { range: text.range(&range), kind: Some(kind) }
    };
    Ok(Some(found.into_iter().map(highlight).collect()))
}

/// `textDocument/foldingRange`.
pub(super) async fn folding_range(
    connection: &Connection,
    params: FoldingRangeParams,
) -> Result<Option<Vec<FoldingRange>>> {
    let text = Text::of(connection, &params.text_document.uri).await?;
    let folds = ranges::folds(&text.tree());
    let fold = |fold: ranges::Fold| {
        let range = text.range(&fold.range);
        FoldingRange {
            start_line: range.start.line,
            start_character: None,
            end_line: range.end.line,
            end_character: None,
            kind: fold.comment.then_some(FoldingRangeKind::Comment),
            collapsed_text: None,
        }
    };
    // Editors fold whole lines: of two that begin on one line the larger counts.
    let mut folds: Vec<FoldingRange> = folds.into_iter().map(fold).collect();
    folds.dedup_by_key(|fold| fold.start_line);
    Ok(Some(folds))
}

/// `textDocument/selectionRange`.
pub(super) async fn selection_range(
    connection: &Connection,
    params: SelectionRangeParams,
) -> Result<Option<Vec<SelectionRange>>> {
    let text = Text::of(connection, &params.text_document.uri).await?;
    let tree = text.tree();
    let around = |position: Position| {
        let outermost_first = ranges::selections(&tree, text.byte(position)).into_iter().rev();
        let chain = outermost_first.fold(None, |parent: Option<SelectionRange>, range| {
            Some(SelectionRange { range: text.range(&range), parent: parent.map(Box::new) })
        });
        // Every position has its answer (LSP 3.17).
        chain.unwrap_or(SelectionRange { range: lsp_types::Range { start: position, end: position }, parent: None })
    };
    Ok(Some(params.positions.into_iter().map(around).collect()))
}

/// The selection in the text after edits, in the client's units.
pub(super) fn range_in(new: &str, bytes: &Range<usize>, encoding: PositionEncoding) -> lsp_types::Range {
    let rope = Rope::from_str(new);
    let at = |byte: usize| {
        let position = to_position(&rope, rope.byte_to_char(byte), encoding);
        Position { line: position.line, character: position.column }
    };
    lsp_types::Range { start: at(bytes.start), end: at(bytes.end) }
}
