//! Indentation of a document, of a range, and of the line being typed.

use std::ops::Range;

use lsp_types::*;
use tower_lsp::jsonrpc::Result;

use super::connection::Connection;
use super::texts::{Feature, Source, Text};
use crate::bounded_file;
use crate::config::dir_locals;
use crate::ide::format::rules::Bodies;
use crate::ide::format::user_rules::{Rule, of_dir_locals};
use crate::ide::format::{Change, IndentRange, Options, format};
use crate::ide::symbol_kinds::{by_package, kinds};
use crate::session::requests;
use crate::text::decode;

fn options(given: &FormattingOptions) -> Options {
    Options { tab_size: (given.tab_size as usize).clamp(1, 64), tabs: !given.insert_spaces }
}

/// The maximum number of separate edits. More are merged into one edit from the first to the last.
const MAX_EDITS: usize = 5_000;
const INDENTATION: Feature = Feature { name: "indentation", most: 4 << 20 };

/// Handles `textDocument/formatting`.
pub(super) async fn document(
    connection: &Connection,
    params: DocumentFormattingParams,
) -> Result<Option<Vec<TextEdit>>> {
    let source = Source::of(connection, &params.text_document.uri).await?;
    let wanted = |_: &Text| IndentRange { lines: 0..usize::MAX, typing: false };
    indented(connection, &source, wanted, options(&params.options)).await
}

/// Handles `textDocument/rangeFormatting`. Indents the lines that the range touches.
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
        IndentRange { lines: line(start)..last + 1, typing: false }
    };
    indented(connection, &source, wanted, options(&params.options)).await
}

/// Handles `textDocument/onTypeFormatting`. Indents the line of the cursor.
pub(super) async fn on_type(
    connection: &Connection,
    params: DocumentOnTypeFormattingParams,
) -> Result<Option<Vec<TextEdit>>> {
    let place = params.text_document_position;
    let source = Source::of(connection, &place.text_document.uri).await?;
    let wanted = move |text: &Text| {
        let line = text.string[..text.byte(place.position)].matches('\n').count();
        IndentRange { lines: line..line + 1, typing: true }
    };
    indented(connection, &source, wanted, options(&params.options)).await
}

async fn indented(
    connection: &Connection,
    source: &Source,
    wanted: impl FnOnce(&Text) -> IndentRange + Send + 'static,
    options: Options,
) -> Result<Option<Vec<TextEdit>>> {
    let (mut bodies, asked) = source
        .compute(connection, INDENTATION, |text| {
            let tree = text.tree();
            let bodies = Bodies::of(&tree);
            let unknown = bodies.unknown(&tree);
            let in_packages = by_package(&text.document, &tree, |written| {
                unknown.binary_search_by(|name| name.as_str().cmp(written)).is_ok()
            });
            (bodies, in_packages)
        })
        .await;
    for (name, body) in user_rules(connection).await {
        bodies.add_user_rule(&name, body);
    }
    for (written, kind) in kinds(&connection.session, asked).await {
        match kind.operator.as_deref() {
            Some("macro") => bodies.learn_macro(&written, kind.body),
            Some(_) => bodies.learn(&written, None),
            None => {}
        }
    }
    let edits = source.compute(connection, INDENTATION, move |text| {
        let changes = format(&text.tree(), &wanted(text), &bodies, options);
        if changes.len() <= MAX_EDITS { text.edits(&changes) } else { text.edits(&[joined(&text.string, &changes)]) }
    });
    Ok(Some(edits.await))
}

/// Returns the user's rules: those of `.dir-locals.el` in the workspace's directory, then those of
/// the settings.
async fn user_rules(connection: &Connection) -> Vec<Rule> {
    let settings = connection.session.settings(connection.client);
    let file = connection.session.workspace().join(dir_locals::NAME);
    let read = move || match bounded_file::read(&file, dir_locals::LIMIT) {
        Ok(bytes) => of_dir_locals(&decode(bytes)),
        // Most workspaces have no such file. `config::dir_locals` reports a file that is not used.
        Err(_) => Vec::new(),
    };
    let mut rules = requests::compute(read).await.value;
    rules.extend(settings.await.format_indent);
    rules
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
