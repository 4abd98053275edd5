//! Requests answered from a document's text alone: outline, highlights, folding ranges, selection
//! ranges. Also provides the text with its syntax tree to other modules.

use std::ops::Range;

use lsp_types::*;
use ropey::Rope;
use tower_lsp::jsonrpc::Result;

use super::connection::{Connection, no_document};
use super::{from_proto, to_proto};
use crate::ide::ranges;
use crate::ide::symbols::{self, Kind};
use crate::session::requests;
use crate::text::Span;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::position::{PositionEncoding, to_offset, to_position};
use crate::text::tree::Tree;

/// A feature computed from a text, with its name for messages, and the maximum size of a text in
/// bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Feature {
    pub(super) name: &'static str,
    pub(super) most: usize,
}

/// The outline, with the size limit of its texts.
const OUTLINE: Feature = Feature { name: "its outline", most: 32 << 20 };
const HIGHLIGHTS: Feature = Feature { name: "the occurrences of a symbol", most: 4 << 20 };
const FOLDING: Feature = Feature { name: "its folding ranges", most: 4 << 20 };
const SELECTIONS: Feature = Feature { name: "its selection ranges", most: 4 << 20 };
/// The maximum number of results of one kind. An editor shows far fewer.
const MAX_RESULTS: usize = 10_000;

/// An open document, before any computation.
pub(super) struct Source {
    pub(super) document: Document,
    uri: Url,
    encoding: PositionEncoding,
}

impl Source {
    /// Returns the document after all changes sent before this request.
    pub(super) async fn of(connection: &Connection, uri: &Url) -> Result<Source> {
        let document =
            connection.session.document(connection.client, uri.as_str()).await.ok_or_else(|| no_document(uri))?;
        Ok(Source { document, uri: uri.clone(), encoding: connection.negotiated().encoding })
    }

    /// Computes a result from the text on a worker thread. Nothing is computed for a text over the
    /// limit, and the client is notified of that once.
    pub(super) async fn compute<T: Default + Send + 'static>(
        &self,
        connection: &Connection,
        feature: Feature,
        work: impl FnOnce(&Text) -> T + Send + 'static,
    ) -> T {
        let Feature { name, most } = feature;
        let size = self.document.text().len_bytes();
        if size > most {
            let (size, most) = (size >> 20, most >> 20);
            let why = format!("has {size} MB: {name} are not computed, since the limit is {most} MB");
            connection.limited(&self.uri, name, &why);
            return T::default();
        }
        let (document, encoding) = (self.document.clone(), self.encoding);
        let found = requests::compute(move || {
            let string = document.text().to_string();
            work(&Text { document, string, encoding })
        });
        let found = found.await;
        if found.ended {
            let seconds = requests::MAX_TIME.as_secs();
            let why =
                format!("is too large or too deeply nested: computing {name} was stopped after {seconds} seconds");
            connection.limited(&self.uri, name, &why);
        }
        found.value
    }
}

/// An open document's text, with the client's position encoding.
pub(super) struct Text {
    pub(super) document: Document,
    pub(super) string: String,
    pub(super) encoding: PositionEncoding,
}

impl Text {
    pub(super) fn tree(&self) -> Tree<'_> {
        Tree::of(&self.string, self.document.scan())
    }

    fn rope(&self) -> &Rope {
        self.document.text()
    }

    /// Returns the byte offset of a client's position.
    pub(super) fn byte(&self, position: Position) -> usize {
        self.rope().char_to_byte(to_offset(self.rope(), from_proto::position(position), self.encoding))
    }

    /// Returns the byte range of a client's range.
    pub(super) fn bytes(&self, range: lsp_types::Range) -> Range<usize> {
        let start = self.byte(range.start);
        start..self.byte(range.end).max(start)
    }

    pub(super) fn span(&self, bytes: &Range<usize>) -> Span {
        Span { start: self.rope().byte_to_char(bytes.start), end: self.rope().byte_to_char(bytes.end) }
    }

    /// Returns a range of bytes in the client's units.
    pub(super) fn range(&self, bytes: &Range<usize>) -> lsp_types::Range {
        to_proto::range(self.rope(), self.span(bytes), self.encoding)
    }

    pub(super) fn edits(&self, changes: &[(Range<usize>, String)]) -> Vec<TextEdit> {
        changes.iter().map(|(range, by)| TextEdit { range: self.range(range), new_text: by.clone() }).collect()
    }

    /// Returns the package in force at a byte, if the text specifies one.
    pub(super) fn package(&self, byte: usize) -> Option<String> {
        package_at(&self.document, self.rope().byte_to_char(byte))
    }
}

/// Handles `textDocument/documentSymbol`: the tree of the document's definitions.
pub(super) async fn document_symbol(
    connection: &Connection,
    params: DocumentSymbolParams,
) -> Result<Option<DocumentSymbolResponse>> {
    let uri = params.text_document.uri;
    let source = Source::of(connection, &uri).await?;
    let (symbols, cut) = source
        .compute(connection, OUTLINE, |text| {
            let outline = symbols::outline(&text.string, text.document.scan());
            let symbols: Vec<_> = outline.symbols.into_iter().map(|symbol| shown(text, symbol)).collect();
            (symbols, outline.cut)
        })
        .await;
    if cut {
        let why = format!("defines more than {} names: its outline has the first ones", symbols::MAX_DEFINITIONS);
        connection.limited(&uri, "the end of its outline", &why);
    }
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
    #[allow(deprecated)] // a mandatory field
    DocumentSymbol {
        name: to_proto::label(&symbol.name),
        detail: (!symbol.detail.is_empty()).then(|| to_proto::label(&symbol.detail)),
        kind,
        tags: None,
        deprecated: None,
        range: text.range(&symbol.range),
        selection_range: text.range(&symbol.name_range),
        children: (!children.is_empty()).then_some(children),
    }
}

/// Handles `textDocument/documentHighlight`: the occurrences of the symbol. Its definition is
/// marked as a write.
pub(super) async fn document_highlight(
    connection: &Connection,
    params: DocumentHighlightParams,
) -> Result<Option<Vec<DocumentHighlight>>> {
    let place = params.text_document_position_params;
    let source = Source::of(connection, &place.text_document.uri).await?;
    let highlights = source.compute(connection, HIGHLIGHTS, move |text| {
        let found = ranges::occurrences(&text.tree(), text.byte(place.position), |byte| text.package(byte));
        let highlight = |(range, defined): (Range<usize>, bool)| {
            let kind = if defined { DocumentHighlightKind::WRITE } else { DocumentHighlightKind::TEXT };
            DocumentHighlight { range: text.range(&range), kind: Some(kind) }
        };
        found.into_iter().take(MAX_RESULTS).map(highlight).collect()
    });
    Ok(Some(highlights.await))
}

/// Handles `textDocument/foldingRange`.
pub(super) async fn folding_range(
    connection: &Connection,
    params: FoldingRangeParams,
) -> Result<Option<Vec<FoldingRange>>> {
    let source = Source::of(connection, &params.text_document.uri).await?;
    let folds = source.compute(connection, FOLDING, |text| {
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
        // Editors fold whole lines, so only the first and larger of two folds on one start line
        // counts.
        let mut folds: Vec<FoldingRange> =
            ranges::folds(&text.tree()).into_iter().take(MAX_RESULTS).map(fold).collect();
        folds.dedup_by_key(|fold| fold.start_line);
        folds
    });
    Ok(Some(folds.await))
}

/// Handles `textDocument/selectionRange`.
pub(super) async fn selection_range(
    connection: &Connection,
    params: SelectionRangeParams,
) -> Result<Option<Vec<SelectionRange>>> {
    let source = Source::of(connection, &params.text_document.uri).await?;
    let positions = params.positions.clone();
    let found = source.compute(connection, SELECTIONS, move |text| {
        let bytes: Vec<usize> = positions.iter().map(|position| text.byte(*position)).collect();
        let around = ranges::all_selections(&text.tree(), &bytes);
        let chain = |ranges: Vec<Range<usize>>| {
            ranges.into_iter().rev().fold(None, |parent: Option<SelectionRange>, range| {
                Some(SelectionRange { range: text.range(&range), parent: parent.map(Box::new) })
            })
        };
        around.into_iter().map(chain).collect::<Vec<_>>()
    });
    // Every position needs an answer (LSP 3.17).
    let itself = |at| SelectionRange { range: lsp_types::Range { start: at, end: at }, parent: None };
    let mut found = found.await.into_iter();
    let answer = |at| found.next().flatten().unwrap_or_else(|| itself(at));
    Ok(Some(params.positions.into_iter().map(answer).collect()))
}

/// Converts a range of bytes in the text after edits to the client's units.
pub(super) fn range_in(new: &str, bytes: &Range<usize>, encoding: PositionEncoding) -> lsp_types::Range {
    let rope = Rope::from_str(new);
    let at = |byte: usize| {
        let position = to_position(&rope, rope.byte_to_char(byte), encoding);
        Position { line: position.line, character: position.column }
    };
    lsp_types::Range { start: at(bytes.start), end: at(bytes.end) }
}
