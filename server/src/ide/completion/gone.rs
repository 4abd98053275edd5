//! Names of the image whose definition is no longer in its file. They are ranked below the others.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Item, LIMIT};
use crate::blocking;
use crate::file_stamp::FileStamp;
use crate::ide::context::{Backend, Cursor};
use crate::ide::index::{FileEntry, Snapshot};
use crate::text::datum::Form;
use crate::text::definitions::{self, Defined, class_parts, structure_functions};
use crate::text::document::Document;
use crate::text::names;

/// The number subtracted from the score of such a name.
const GONE: f32 = 120.0;

/// The operators of the definitions that make functions of other names, such as accessors.
const FUNCTION_MAKERS: [&str; 3] = ["defstruct", "defclass", "define-condition"];

/// A name whose definitions came from files that have them no more.
struct Gone<'a> {
    /// The index of its completion.
    completion: usize,
    /// The name for comparison ([`definitions::key`]).
    key: String,
    /// The files, that of the latest definition first.
    files: Vec<&'a FileEntry>,
}

/// Lowers the scores of the best of `found`, which is sorted, whose definitions came from files of
/// the workspace that have them no more. Returns true if there is one.
pub(super) async fn lower<B: Backend>(cursor: &Cursor<B>, found: &mut [(Item, f32)]) -> bool {
    let index = cursor.context.last_texts_index();
    let best = found.iter().take(LIMIT).enumerate();
    let mut all: Vec<Gone<'_>> =
        best.filter_map(|(completion, (item, _))| gone_by_index(cursor, &index, completion, item)).collect();
    // The definition may have been moved to another file.
    for file in &index.files {
        if all.is_empty() {
            break;
        }
        all.retain(|one| !has(file, &one.key));
    }
    // The index may be older than the texts.
    all.retain(|one| !cursor.context.open_since(&index).any(|document| text_has(document, &one.key)));
    let changed = changed_on_disk(cursor, &index, &all).await;
    all.retain(|one| !one.files.iter().any(|file| changed.contains(&file.path)));
    for one in &all {
        let Some(file) = one.files.first().and_then(|file| file.path.file_name()) else { continue };
        let (item, score) = &mut found[one.completion];
        item.detail = format!("{}, not in {} any more", item.detail, file.to_string_lossy());
        *score -= GONE;
    }
    !all.is_empty()
}

/// Returns the name of a completion if the index has all files that its definitions on record came
/// from, and none of them has it.
fn gone_by_index<'a, B: Backend>(
    cursor: &Cursor<B>,
    index: &'a Snapshot,
    completion: usize,
    item: &Item,
) -> Option<Gone<'a>> {
    item.symbol.as_ref()?;
    let files = cursor.context.files_on_record(item.package.as_deref()?, &names::symbol(&item.label)?.name);
    let key = definitions::key(&item.label);
    let gone_from = |path: &Option<PathBuf>| index.file(path.as_deref()?).filter(|file| !has(file, &key));
    let files = files.iter().map(gone_from).collect::<Option<Vec<_>>>()?;
    (!files.is_empty()).then_some(Gone { completion, key, files })
}

/// Returns those of the names' files that are not open and may have changed since they were
/// indexed.
async fn changed_on_disk<B: Backend>(cursor: &Cursor<B>, index: &Snapshot, all: &[Gone<'_>]) -> HashSet<PathBuf> {
    let files = all.iter().flat_map(|one| one.files.iter().copied()).filter(|file| !cursor.context.is_open(file));
    // The index may have the text of an editor that has closed the file since.
    let (closed, unchanged): (Vec<&FileEntry>, Vec<&FileEntry>) = files.partition(|file| file.open.is_some());
    let mut changed: HashSet<PathBuf> = closed.into_iter().map(|file| file.path.clone()).collect();
    let paths: HashSet<PathBuf> = unchanged.into_iter().map(|file| file.path.clone()).collect();
    if let Some(begun) = index.begun.filter(|_| !paths.is_empty()) {
        changed.extend(
            blocking::run(move || paths.into_iter().filter(|path| may_have_changed(path, begun)).collect::<Vec<_>>())
                .await,
        );
    }
    changed
}

/// Returns true if a file may have changed since a time. A file that was removed has no definition.
fn may_have_changed(path: &Path, since: SystemTime) -> bool {
    match std::fs::metadata(path) {
        Ok(facts) => FileStamp::of(&facts).may_have_changed_since(since),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// Returns true if a file of the index has a definition that may make the name.
fn has(file: &FileEntry, key: &str) -> bool {
    file.definitions.iter().any(|one| is_of(&one.key, key) || one.functions.iter().any(|(_, function)| function == key))
}

/// Returns true if a text has a definition that may make the name.
fn text_has(document: &Document, key: &str) -> bool {
    document.scan().forms().iter().any(|top| {
        let written = document.text().slice(top.span.start..top.span.end).to_string().to_lowercase();
        // A name with escapes can be written in several ways.
        let may_make = written.contains(key)
            || written.contains(['|', '\\'])
            || FUNCTION_MAKERS.iter().any(|operator| written.contains(operator));
        may_make && {
            let form = Form::of(document, top.span);
            definitions::in_form(&form).iter().any(|one| is_of(&one.key, key) || makes_function(&form, one, key))
        }
    })
}

/// Returns true if a definition of the name `defined` is one of the name or of its setf function.
fn is_of(defined: &str, key: &str) -> bool {
    defined == key || defined.strip_prefix("(setf ").and_then(|rest| rest.strip_suffix(')')) == Some(key)
}

/// Returns true if the definition of a class, condition or structure makes a function of this name.
fn makes_function(form: &Form, defined: &Defined, key: &str) -> bool {
    let functions: Vec<String> = match defined.operator.as_str() {
        "defstruct" => structure_functions(form, defined.span),
        operator => {
            class_parts(form, defined.span, operator).slots.into_iter().flat_map(|slot| slot.accessors).collect()
        }
    };
    functions.iter().any(|function| function.to_lowercase() == key)
}
