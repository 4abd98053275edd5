//! `completions`, for the debugger's console: completes in the package in which the code is read.

use std::time::Duration;

use serde_json::json;

use super::answers::{Answer, MAX_PAGE};
use super::connection::Connection;
use super::protocol::Completions;
use crate::file_uri::uri_of_path;
use crate::ide::completion::{self, Item};
use crate::ide::context::{Backend as _, Cursor};
use crate::locked::lock;
use crate::session::debug::{DebugFrames, DebugLocals};
use crate::text::document::Document;
use crate::text::names;

/// The time limit for the index to get the names that the last evaluation defined.
const INDEX_TIMEOUT: Duration = Duration::from_secs(1);
/// The interval at which the index is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// The name of the console's text, which has no file.
const NAME: &str = "-";

/// Completes the name before the cursor in the console's input.
pub(super) async fn complete(connection: &Connection, arguments: Completions) -> Answer {
    let package = match package_of_frame(connection, arguments.frame_id).await {
        Some(package) => Some(package),
        None => lock(&connection.package).clone(),
    };
    let console = Console::new(&arguments, package.as_deref());
    let current = async {
        while !connection.session.names().1 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    // After the time limit, the index is used as it is. It then has most names.
    let _ = crate::steady::timeout(INDEX_TIMEOUT, current).await;
    let context = connection.session.context(connection.client).await;
    let uri = uri_of_path(&connection.session.workspace().join(NAME));
    let cursor = Cursor { context, uri, document: console.document, offset: console.offset };
    let Some(found) = completion::complete(&cursor, connection.session.workspace()).await else {
        return Ok(json!({"targets": []}));
    };
    let start = utf16(&arguments.text, found.replace.start.saturating_sub(console.before));
    let length: usize = found.typed.chars().map(char::len_utf16).sum();
    let typed = found.typed.to_lowercase();
    let variables = locals(connection, arguments.frame_id).await.into_iter().map(|name| name.to_lowercase());
    let variables = variables.filter(|name| name.starts_with(&typed)).map(|name| (name, "variable"));
    // An item with an import needs an edit elsewhere, which a console cannot make.
    let items = found.items.into_iter().filter(|item| item.import.is_none());
    let names = variables.chain(items.map(|Item { label, kind, .. }| (label, type_of(&kind))));
    let target = |(place, (label, kind)): (usize, (String, &str))| {
        json!({
            "label": label, "text": label, "type": kind, "start": start + 1, "length": length,
            "sortText": sort_text(place),
        })
    };
    Ok(json!({"targets": names.enumerate().map(target).collect::<Vec<_>>()}))
}

/// Returns the `sortText` of the completion at a place of the list. Without it, clients sort by the
/// labels.
fn sort_text(place: usize) -> String {
    format!("{place:05}")
}

/// The console's input as a document, after an IN-PACKAGE form if the package is known.
struct Console {
    document: Document,
    /// The number of characters before the console's input.
    before: usize,
    /// The offset of the cursor in the document, in characters.
    offset: usize,
}

impl Console {
    fn new(arguments: &Completions, package: Option<&str>) -> Console {
        let designator = package.map(names::in_string);
        let prefix = designator.map_or_else(String::new, |package| format!("(cl:in-package \"{package}\")\n"));
        let before = prefix.chars().count();
        let document = Document::new(&(prefix + &arguments.text), 0);
        Console { document, before, offset: before + offset_of(arguments) }
    }
}

/// Returns the number of characters before the cursor. The cursor's line and column are 1-based.
/// The column is in UTF-16 code units.
fn offset_of(arguments: &Completions) -> usize {
    let line = arguments.line.unwrap_or(1).saturating_sub(1);
    let before: usize = arguments.text.split_inclusive('\n').take(line).map(|line| line.chars().count()).sum();
    let current = arguments.text.split('\n').nth(line).unwrap_or_default();
    let mut units = 0;
    let within = current.chars().take_while(|char| {
        units += char.len_utf16();
        units < arguments.column
    });
    before + within.count()
}

/// Returns the number of UTF-16 code units in the first `chars` characters of a text.
fn utf16(text: &str, chars: usize) -> usize {
    text.chars().take(chars).map(char::len_utf16).sum()
}

/// Returns the package in which code in a frame is read, if it is not that of the evaluations.
async fn package_of_frame(connection: &Connection, frame: Option<u64>) -> Option<String> {
    let (stop, start) = connection.frame_of(frame?).ok()?;
    let page = connection.session.query(DebugFrames { stop, start, count: 1 }).await.ok()?;
    page.frames.into_iter().next()?.package
}

/// Returns the names of a frame's variables, or none if the image does not give them.
async fn locals(connection: &Connection, frame: Option<u64>) -> Vec<String> {
    let Some(Ok((stop, frame))) = frame.map(|number| connection.frame_of(number)) else { return Vec::new() };
    let page = connection.session.query(DebugLocals { stop, frame, start: 0, count: MAX_PAGE }).await;
    page.map(|page| page.locals.into_iter().map(|local| local.name).collect()).unwrap_or_default()
}

/// Returns the protocol's name of a kind of completion.
fn type_of(kind: &str) -> &'static str {
    match kind {
        "function" | "macro" | "special operator" => "function",
        "generic function" => "method",
        "variable" | "global variable" | "symbol macro" | "alien variable" | "constant" => "variable",
        "class" | "condition" | "structure" | "type" => "class",
        "argument" => "property",
        "keyword" => "keyword",
        "package" => "module",
        "file" | "directory" => "file",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::forms::package_at;

    fn arguments(text: &str, line: Option<usize>, column: usize) -> Completions {
        Completions { text: text.into(), line, column, frame_id: None }
    }

    #[test]
    fn the_place_counts_lines_and_utf16() {
        assert_eq!(offset_of(&arguments("(car", None, 5)), 4);
        assert_eq!(offset_of(&arguments("(a\n(😀b", Some(2), 5)), 6);
        assert_eq!(offset_of(&arguments("(a", None, 99)), 2);
        assert_eq!(offset_of(&arguments("", Some(7), 0)), 0);
        assert_eq!(utf16("😀b", 1), 2);
    }

    #[test]
    fn the_package_is_that_of_the_evaluations() {
        let console = Console::new(&arguments("(pri", None, 5), Some("A \"b\""));
        assert_eq!(package_at(&console.document, console.offset).as_deref(), Some("A \"b\""));
        assert_eq!(console.document.text().len_chars(), console.offset);
        assert_eq!(Console::new(&arguments("(pri", None, 5), None).before, 0);
    }
}
