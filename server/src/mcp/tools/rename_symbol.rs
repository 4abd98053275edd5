//! `rename-symbol`: renames a symbol in the files of the workspace, with one approval for all
//! files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Call, Failure, FromFailure, Hints, Reply, Tool};
use crate::ide::compile_form::Refusal;
use crate::ide::context::Cursor;
use crate::ide::rename::{self, Change, FileChanges, Options, Renaming};
use crate::model::image::ImageState;
use crate::session::approval::{Class, Subject};
use crate::session::sources::Sources;
use crate::session::{InCopy, SourceFile, requests};
use crate::text::definitions;
use crate::text::document::Document;
use crate::text::forms::symbol_at;
use crate::text::position::{LineColumn, from_line_column, line_column};

/// The maximum number of characters that are shown of a line with an unsure place.
const MAX_LINE_CHARS: usize = 200;

/// The tool `rename-symbol`.
pub(crate) struct RenameSymbol;

/// The tool's arguments.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    /// File in the workspace
    path: String,
    /// As written there
    symbol: String,
    /// Without a package
    new_name: String,
    /// A local name's line
    #[serde(default)]
    line: Option<usize>,
    /// Also data, comments, strings
    #[serde(default)]
    unsure: Option<bool>,
    /// Only show what would change
    #[serde(default)]
    dry_run: Option<bool>,
}

/// The data of the answer.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Output {
    /// The kind of the name.
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    /// The files, relative to the workspace, with the number of changes of each.
    files: Vec<(String, usize)>,
    /// The number of unsure places that were left, or changed with `unsure`.
    unsure: usize,
    /// True if the files have changed.
    changed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Refusal>,
}

impl JsonSchema for Output {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Output".into()
    }

    // A loose schema, because a list of many tools must fit an agent's context.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object"})
    }
}

impl FromFailure for Output {
    fn from_failure(failure: Failure) -> Self {
        Output { error: Some(failure.into()), ..Output::default() }
    }
}

impl Tool for RenameSymbol {
    type Input = Input;
    type Output = Output;

    const NAME: &'static str = "rename-symbol";
    const RUNS_CODE: bool = true;
    const DESCRIPTION: &'static str = "Rename a local name, or a function, variable, class, slot or package in all Lisp files of the workspace. \
One approval. Unsure places are listed and left.";
    const HINTS: Hints = Hints { read_only: false, destructive: true, idempotent: false, open_world: false };
    const NEEDS_IMAGE: bool = false;

    // A person is shown each changed line, and allows the change of the files as they are now.
    async fn required_approval_async(call: &Call, input: &Input) -> Result<Option<(Class, Subject)>, Failure> {
        let planned = plan(call, input).await?;
        if input.dry_run == Some(true) {
            return Ok(None);
        }
        let paths: Vec<_> = planned.files.iter().map(|(file, _)| file.path.clone()).collect();
        let sources = tokio::task::spawn_blocking(move || Sources::of(paths)).await.unwrap_or_default();
        let what = format!("Rename {} to {} in {}", planned.old, planned.new, files(planned.files.len()));
        let code = Some(planned.preview());
        Ok(Some((Class::EditFile, Subject { what, code, sources, ..Subject::default() })))
    }

    async fn call(call: Call, input: Input) -> Reply<Output> {
        match work(call, &input).await {
            Ok(reply) => reply,
            Err(failure) => failure.into(),
        }
    }
}

fn failed(kind: &'static str, message: String) -> Failure {
    Failure { kind: kind.into(), message }
}

fn files(count: usize) -> String {
    number_of(count, "file")
}

/// Returns a count with its noun: `1 place`, `2 places`.
fn number_of(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The changes that a call makes.
struct Planned {
    old: String,
    new: String,
    kind: String,
    /// The files with the changes in them.
    files: Vec<(SourceFile, FileChanges)>,
    /// The places that are not changed, each as `file:line: text`.
    left: Vec<String>,
}

impl Planned {
    /// Returns each changed line, before and after.
    fn preview(&self) -> String {
        self.files.iter().map(|(file, changes)| format!("{}:\n{}", file.relative, lines(changes))).collect()
    }
}

/// Returns the first characters of a line, which may be as long as a file and have as many places.
fn beginning(line: ropey::RopeSlice<'_>) -> String {
    let mut chars = line.chars().skip_while(|c| c.is_whitespace());
    let shown: String = chars.by_ref().take(MAX_LINE_CHARS).collect();
    let rest = if chars.next().is_some() { "..." } else { "" };
    format!("{}{rest}", shown.trim_end())
}

/// Returns the changed lines of a file, before and after.
fn lines(file: &FileChanges) -> String {
    let text = file.document.text();
    let mut out = String::new();
    let mut at = 0;
    while let Some(first) = file.changes.get(at) {
        let line = line_column(text, first.span.start).line;
        let on_line = |change: &&Change| line_column(text, change.span.start).line == line;
        let all: Vec<&Change> = file.changes[at..].iter().take_while(on_line).collect();
        at += all.len();
        let (start, old) = (text.line_to_char(line - 1), text.line(line - 1).to_string());
        // The line is built in one pass, because a generated line may have very many changes.
        let (mut new, mut chars, mut next) = (String::with_capacity(old.len()), old.chars(), start);
        for change in &all {
            new.extend(chars.by_ref().take(change.span.start.saturating_sub(next)));
            new += &change.by;
            let length = change.span.end.saturating_sub(next.max(change.span.start));
            chars.by_ref().take(length).for_each(drop);
            next = next.max(change.span.end);
        }
        new.extend(chars);
        out += &format!("{line}- {}\n{line}+ {}\n", old.trim_end(), new.trim_end());
    }
    out
}

/// Returns the offset, in characters, of the name that the arguments mean.
fn offset(document: &Document, input: &Input) -> Result<usize, Failure> {
    let key = definitions::key(&input.symbol);
    let missing = || {
        failed(
            "not-found",
            format!(
                "{} is not written in {}{}.",
                input.symbol,
                input.path,
                match input.line {
                    Some(line) => format!(", line {line}"),
                    None => String::new(),
                }
            ),
        )
    };
    let text = document.text();
    let at = |line| from_line_column(text, LineColumn { line, column: 1 });
    let (start, end) = input.line.map_or((0, text.len_chars()), |line| (at(line), at(line + 1)));
    let defined =
        definitions::named(document, &key).into_iter().find(|one| one.name.start >= start && one.name.start < end);
    if let Some(one) = defined {
        // The end of the name is after a package prefix, which would mean the package, and within
        // the list of `(setf f)`.
        return Ok(one.name.end - usize::from(one.written.starts_with('(')));
    }
    let forms = document.scan().forms().iter().filter(|form| form.span.end >= start && form.span.start < end);
    let mentions = forms.flat_map(|form| definitions::mentions(document, form.span, &key));
    let mut within = mentions.filter(|span| span.start >= start && span.start < end);
    within.find(|span| symbol_at(document, span.start).is_some()).map(|span| span.end).ok_or_else(missing)
}

/// Computes the changes, within the time limit of a request that only reads.
async fn plan(call: &Call, input: &Input) -> Result<Planned, Failure> {
    requests::limit_total_time(planned(call, input)).await?
}

async fn planned(call: &Call, input: &Input) -> Result<Planned, Failure> {
    call.session.wait_for_edit().await;
    let file = call.session.source_file(&input.path).await.map_err(|error| failed(error.kind, error.message))?;
    let document = Document::new(&file.text, 0);
    let offset = offset(&document, input)?;
    let context = call.session.context(call.client).await;
    let uri = crate::file_uri::uri_of_path(&file.path);
    let cursor = Cursor { context, uri, document, offset };
    let expander = InCopy { session: call.session.clone(), client: call.client };
    let with_unsure = input.unsure == Some(true);
    let renaming = rename::rename(&cursor, &input.new_name, &expander, Options { texts: with_unsure }).await;
    let Renaming { old, new, kind, files } = renaming.map_err(|refusal| failed("refused", refusal.0))?;
    let mut planned = Planned { old, new, kind, files: Vec::new(), left: Vec::new() };
    for mut changes in files {
        let path = changes.path.clone().unwrap_or_default();
        let found = call.session.source_file(&path.to_string_lossy()).await;
        let file = found.map_err(|error| failed(error.kind, error.message))?;
        if *changes.document.text() != *file.text.as_str() {
            return Err(failed(
                "file-changed",
                format!("{} has just changed. Nothing was done: try again.", file.relative),
            ));
        }
        if !with_unsure {
            let text = changes.document.text().clone();
            for change in changes.changes.iter().filter(|change| change.unsure.is_some()) {
                let line = line_column(&text, change.span.start).line;
                planned.left.push(format!("{}:{line}: {}", file.relative, beginning(text.line(line - 1))));
            }
            changes.changes.retain(|change| change.unsure.is_none());
        }
        if !changes.changes.is_empty() {
            if input.dry_run != Some(true) {
                file.writable().map_err(|error| failed(error.kind, error.message))?;
            }
            planned.files.push((file, changes));
        }
    }
    Ok(planned)
}

async fn work(call: Call, input: &Input) -> Result<Reply<Output>, Failure> {
    let planned = plan(&call, input).await?;
    let mut facts = Output {
        kind: planned.kind.clone(),
        files: planned.files.iter().map(|(file, changes)| (file.relative.clone(), changes.changes.len())).collect(),
        unsure: planned.left.len(),
        ..Output::default()
    };
    let left = match planned.left.len() {
        0 => String::new(),
        count => format!("\n{}, left as it was:\n{}", number_of(count, "unsure place"), planned.left.join("\n")),
    };
    let places: usize = facts.files.iter().map(|(_, count)| count).sum();
    let what = format!(
        "{} {} to {}: {} in {}",
        planned.kind,
        planned.old,
        planned.new,
        number_of(places, "place"),
        files(planned.files.len())
    );
    if input.dry_run == Some(true) {
        let text = format!("Dry run, nothing was changed. {what}.\n{}{left}", planned.preview());
        return Ok(Reply::new(text, facts, false));
    }
    let allowed = call.allowed_sources().await.map_err(|why| failed("refused", format!("Refused: {why}.")))?;
    let outside = planned
        .files
        .iter()
        .find(|(file, _)| allowed.as_ref().is_some_and(|allowed| !allowed.paths().any(|path| path == file.path)));
    if let Some((file, _)) = outside {
        let message = format!(
            "{} would change too, which nobody was asked about. Nothing was changed: try again.",
            file.relative
        );
        return Err(failed("file-changed", message));
    }
    let mut done: Vec<String> = Vec::new();
    for (file, changes) in &planned.files {
        let (range, by) = merged_change(changes);
        if let Err(why) = call.session.edit_source_file(file, range, &by).await {
            let done = if done.is_empty() {
                "Nothing was changed".into()
            } else {
                format!("Changed before: {}", done.join(", "))
            };
            let why_not = why.message.replace(" Nothing was changed", " This file was not changed");
            return Err(failed(why.kind, format!("{why_not} {done}.")));
        }
        done.push(file.relative.clone());
    }
    facts.changed = !done.is_empty();
    let state = call.session.image_state();
    let text = format!("Renamed the {what} ({}).{}{left}", done.join(", "), in_image(&state, done.len()));
    Ok(Reply::new(text, facts, false))
}

/// Returns a sentence for the agent about the old name in the image, empty if no image runs.
fn in_image(state: &ImageState, files: usize) -> &'static str {
    match (state, files) {
        (ImageState::Ready { .. }, 1) => " The image has the old name until it is loaded.",
        (ImageState::Ready { .. }, _) => " The image has the old name until they are loaded.",
        _ => "",
    }
}

/// Returns the changes of a file as one: the range in bytes from the first to the last, and its new
/// text.
fn merged_change(file: &FileChanges) -> (std::ops::Range<usize>, String) {
    let text = file.document.text();
    let (Some(first), Some(last)) = (file.changes.first(), file.changes.last()) else { return (0..0, String::new()) };
    let mut by = String::new();
    let mut at = first.span.start;
    for change in &file.changes {
        by += &text.slice(at..change.span.start.max(at)).to_string();
        by += &change.by;
        at = change.span.end;
    }
    (text.char_to_byte(first.span.start)..text.char_to_byte(last.span.end), by)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Span;

    #[test]
    fn a_name_is_found_behind_its_package() {
        for (text, symbol, name) in [
            ("(defun lib:f () 1)", "lib:f", "f"),
            ("(defun (setf lib:f) (v) v)", "(setf lib:f)", "f"),
            ("(defun f () 1)", "f", "f"),
            ("(print (lib::f 1))", "lib::f", "f"),
            ("(defpackage #:lib)", "lib", "lib"),
        ] {
            let document = Document::new(text, 0);
            let (path, new_name) = ("a.lisp".into(), "new".into());
            let input = Input { path, symbol: symbol.into(), new_name, line: None, unsure: None, dry_run: None };
            let at = offset(&document, &input).unwrap_or_default();
            assert_eq!(rename::named(&document, at).map(|named| named.name), Ok(name.into()), "{text}");
        }
    }

    #[test]
    fn changes_of_a_file_are_one_edit_and_shown_by_lines() {
        let change = |start, end, by: &str| Change { span: Span { start, end }, by: by.into(), unsure: None };
        let file = FileChanges {
            uri: String::new(),
            path: None,
            document: Document::new("(é f)\n(f f)\n", 0),
            open: false,
            changes: vec![change(3, 4, "new"), change(7, 8, "new"), change(9, 10, "g")],
        };
        assert_eq!(lines(&file), "1- (é f)\n1+ (é new)\n2- (f f)\n2+ (new g)\n");
        assert_eq!(merged_change(&file), (4..11, "new)\n(new g".to_owned()));
        let long = Document::new(&format!("  (f {})  \n", "x".repeat(1 << 20)), 0);
        assert_eq!(beginning(long.text().line(0)).len(), MAX_LINE_CHARS + "...".len());
        assert_eq!(beginning(file.document.text().line(1)), "(f f)");
    }
}
