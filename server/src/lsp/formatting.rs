//! Indentation: of a document, of a range, and of the line that is typed.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::texts::Text;
use crate::ide::format::rules::Bodies;
use crate::ide::format::{Options, Wanted, format};
use crate::image::api::texts::{SymbolKind, SymbolKindsParams};
use crate::text::names;
use crate::text::tree::{Kind, ROOT, Tree};

/// How long the image may take to say what it knows; the text alone must do otherwise.
const IMAGE: Duration = Duration::from_millis(500);

fn options(given: &FormattingOptions) -> Options {
    Options { tab_size: (given.tab_size as usize).clamp(1, 64), tabs: !given.insert_spaces }
}

/// `textDocument/formatting`.
pub(super) async fn document(
    connection: &Connection,
    params: DocumentFormattingParams,
) -> Result<Option<Vec<TextEdit>>> {
    let text = Text::of(connection, &params.text_document.uri).await?;
    let wanted = Wanted { lines: 0..usize::MAX, typing: false };
    indented(connection, &text, &wanted, options(&params.options)).await
}

/// `textDocument/rangeFormatting`: of the lines that the range touches.
pub(super) async fn range(
    connection: &Connection,
    params: DocumentRangeFormattingParams,
) -> Result<Option<Vec<TextEdit>>> {
    let text = Text::of(connection, &params.text_document.uri).await?;
    let Range { start, end } = text.bytes(params.range);
    let line = |byte: usize| text.string[..byte].matches('\n').count();
    // A range that ends where a line begins does not touch it.
    let last = if end > start && text.string[..end].ends_with('\n') { line(end) - 1 } else { line(end) };
    let wanted = Wanted { lines: line(start)..last + 1, typing: false };
    indented(connection, &text, &wanted, options(&params.options)).await
}

/// `textDocument/onTypeFormatting`: of the line of the cursor.
pub(super) async fn on_type(
    connection: &Connection,
    params: DocumentOnTypeFormattingParams,
) -> Result<Option<Vec<TextEdit>>> {
    let place = params.text_document_position;
    let text = Text::of(connection, &place.text_document.uri).await?;
    let line = text.string[..text.byte(place.position)].matches('\n').count();
    let wanted = Wanted { lines: line..line + 1, typing: true };
    indented(connection, &text, &wanted, options(&params.options)).await
}

async fn indented(
    connection: &Connection,
    text: &Text,
    wanted: &Wanted,
    options: Options,
) -> Result<Option<Vec<TextEdit>>> {
    let (mut bodies, asked) = {
        let tree = text.tree();
        let bodies = Bodies::of(&tree);
        let unknown = bodies.unknown(&tree);
        let in_packages =
            by_package(text, &tree, |written| unknown.binary_search_by(|name| name.as_str().cmp(written)).is_ok());
        (bodies, in_packages)
    };
    for (written, kind) in kinds(connection, asked).await {
        match kind.operator.as_deref() {
            Some("macro") => bodies.learn(&written, kind.body),
            Some(_) => bodies.learn(&written, None),
            None => {}
        }
    }
    let changes = format(&text.tree(), wanted, &bodies, options);
    Ok(Some(text.edits(&changes)))
}

/// Symbols as written, by the package they are read in.
pub(super) type OperatorsByPackage = BTreeMap<Option<String>, Vec<String>>;

/// The symbols of a text that are wanted, once each in each package.
pub(super) fn by_package(text: &Text, tree: &Tree, wanted: impl Fn(&str) -> bool) -> OperatorsByPackage {
    let mut asked = OperatorsByPackage::new();
    let mut package = None;
    for id in tree.ids().skip(1) {
        let node = tree.node(id);
        if node.parent == ROOT
            && node.start < node.end
            && tree.operator(tree.unguarded(id)).as_deref() == Some("in-package")
        {
            package = text.package(node.end);
        }
        let written = tree.text_of(id);
        if node.kind == Kind::Atom && wanted(written) {
            asked.entry(package.clone()).or_default().push(written.to_owned());
        }
    }
    for names in asked.values_mut() {
        names.sort_unstable();
        names.dedup();
    }
    asked
}

/// What the image knows of symbols as written; nothing when it is busy, starting or dead.
pub(super) async fn kinds(connection: &Connection, asked: OperatorsByPackage) -> Vec<(String, SymbolKind)> {
    let look = async {
        let mut known = Vec::new();
        for (package, written) in asked {
            let read = written.into_iter().filter_map(|written| {
                let symbol = names::symbol(&written).filter(|symbol| symbol.package.as_deref() != Some(""))?;
                Some((written, (symbol.package, symbol.name)))
            });
            let (written, symbols): (Vec<String>, Vec<_>) = read.unzip();
            if symbols.is_empty() {
                continue;
            }
            match connection.session.query(SymbolKindsParams { package, symbols }).await {
                Ok(answer) => known
                    .extend(written.into_iter().zip(answer.kinds).filter_map(|(written, kind)| Some((written, kind?)))),
                Err(error) => {
                    tracing::debug!("symbol-kinds: {error}");
                    return known;
                }
            }
        }
        known
    };
    tokio::time::timeout(IMAGE, look).await.unwrap_or_default()
}
