//! Indentation of a document, of a range, and of the line being typed.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::time::Duration;

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::texts::{Feature, Source, Text};
use crate::ide::format::rules::Bodies;
use crate::ide::format::{Change, Options, Wanted, format};
use crate::image::api::texts::{SymbolKind, SymbolKindsParams};
use crate::text::names;
use crate::text::stop;
use crate::text::tree::{Kind, ROOT, Tree};

/// The time limit for the image's answer; after it the text alone is used.
const IMAGE: Duration = Duration::from_millis(500);

fn options(given: &FormattingOptions) -> Options {
    Options { tab_size: (given.tab_size as usize).clamp(1, 64), tabs: !given.insert_spaces }
}

/// The maximum number of separate edits; more are merged into one edit from the first to the
/// last.
const MOST_EDITS: usize = 5_000;
/// The maximum number of names in one query to the image.
const MOST_NAMES: usize = 20_000;
/// The maximum length in bytes of a name in a query to the image.
const LONGEST_NAME: usize = 1_000;
const INDENTATION: Feature = Feature { name: "indentation", most: 4 << 20 };

/// `textDocument/formatting`.
pub(super) async fn document(
    connection: &Connection,
    params: DocumentFormattingParams,
) -> Result<Option<Vec<TextEdit>>> {
    let source = Source::of(connection, &params.text_document.uri).await?;
    let wanted = |_: &Text| Wanted { lines: 0..usize::MAX, typing: false };
    indented(connection, &source, wanted, options(&params.options)).await
}

/// `textDocument/rangeFormatting`: indents the lines that the range touches.
pub(super) async fn range(
    connection: &Connection,
    params: DocumentRangeFormattingParams,
) -> Result<Option<Vec<TextEdit>>> {
    let source = Source::of(connection, &params.text_document.uri).await?;
    let wanted = move |text: &Text| {
        let Range { start, end } = text.bytes(params.range);
        let line = |byte: usize| text.string[..byte].matches('\n').count();
        // A range that ends at the start of a line does not touch this line.
        let last = if end > start && text.string[..end].ends_with('\n') { line(end) - 1 } else { line(end) };
        Wanted { lines: line(start)..last + 1, typing: false }
    };
    indented(connection, &source, wanted, options(&params.options)).await
}

/// `textDocument/onTypeFormatting`: indents the line of the cursor.
pub(super) async fn on_type(
    connection: &Connection,
    params: DocumentOnTypeFormattingParams,
) -> Result<Option<Vec<TextEdit>>> {
    let place = params.text_document_position;
    let source = Source::of(connection, &place.text_document.uri).await?;
    let wanted = move |text: &Text| {
        let line = text.string[..text.byte(place.position)].matches('\n').count();
        Wanted { lines: line..line + 1, typing: true }
    };
    indented(connection, &source, wanted, options(&params.options)).await
}

async fn indented(
    connection: &Connection,
    source: &Source,
    wanted: impl FnOnce(&Text) -> Wanted + Send + 'static,
    options: Options,
) -> Result<Option<Vec<TextEdit>>> {
    let (mut bodies, asked) = source
        .compute(connection, INDENTATION, |text| {
            let tree = text.tree();
            let bodies = Bodies::of(&tree);
            let unknown = bodies.unknown(&tree);
            let in_packages =
                by_package(text, &tree, |written| unknown.binary_search_by(|name| name.as_str().cmp(written)).is_ok());
            (bodies, in_packages)
        })
        .await;
    for (written, kind) in kinds(connection, asked).await {
        match kind.operator.as_deref() {
            Some("macro") => bodies.learn(&written, kind.body),
            Some(_) => bodies.learn(&written, None),
            None => {}
        }
    }
    let edits = source.compute(connection, INDENTATION, move |text| {
        let changes = format(&text.tree(), &wanted(text), &bodies, options);
        if changes.len() <= MOST_EDITS { text.edits(&changes) } else { text.edits(&[joined(&text.string, &changes)]) }
    });
    Ok(Some(edits.await))
}

/// Merges many changes into one.
fn joined(text: &str, changes: &[Change]) -> Change {
    let (Some((first, _)), Some((last, _))) = (changes.first(), changes.last()) else { return (0..0, String::new()) };
    let mut by = String::new();
    let mut at = first.start;
    for (range, new) in changes {
        by += &text[at..range.start];
        by += new;
        at = range.end;
    }
    (first.start..last.end, by)
}

/// Symbols as written, by the package to read them in.
pub(super) type OperatorsByPackage = BTreeMap<Option<String>, Vec<String>>;

/// The wanted symbols of a text, without duplicates in each package; up to the limit.
pub(super) fn by_package(text: &Text, tree: &Tree, wanted: impl Fn(&str) -> bool) -> OperatorsByPackage {
    let mut asked: BTreeMap<Option<String>, HashSet<&str>> = BTreeMap::new();
    let mut package = None;
    let mut count = 0;
    for id in tree.ids().skip(1) {
        if count >= MOST_NAMES || stop::now() {
            break;
        }
        let node = tree.node(id);
        if node.parent == ROOT
            && node.start < node.end
            && tree.operator(tree.unguarded(id)).as_deref() == Some("in-package")
        {
            package = text.package(node.end);
        }
        let written = tree.text_of(id);
        if node.kind == Kind::Atom && written.len() <= LONGEST_NAME && wanted(written) {
            if !asked.contains_key(&package) {
                asked.insert(package.clone(), HashSet::new());
            }
            count += usize::from(asked.get_mut(&package).is_some_and(|names| names.insert(written)));
        }
    }
    let sorted = |names: HashSet<&str>| {
        let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        names.sort_unstable();
        names
    };
    asked.into_iter().map(|(package, names)| (package, sorted(names))).collect()
}

/// The image's knowledge of symbols as written; empty if the image is busy, starting or dead.
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
