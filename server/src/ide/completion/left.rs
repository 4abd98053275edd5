//! Names of the image whose definition is no longer in its file. They are ranked below the others.

use std::collections::HashMap;
use std::path::Path;

use super::{Item, LIMIT};
use crate::ide::context::{Backend, Cursor};
use crate::ide::index::FileEntry;
use crate::text::{definitions, names};

/// The number subtracted from the score of such a name.
const LEFT: f32 = 120.0;

/// Lowers the scores of the best of `found`, which is sorted, whose definitions came from files of
/// the workspace that have them no more. Returns true if there is one.
pub(super) fn lower<B: Backend>(cursor: &Cursor<B>, found: &mut [(Item, f32)]) -> bool {
    let workspace = cursor.context.last_texts_index();
    let files: HashMap<&Path, &FileEntry> = workspace.files.iter().map(|file| (file.path.as_path(), &**file)).collect();
    let mut any = false;
    for (item, score) in found.iter_mut().take(LIMIT) {
        let (Some(package), Some(_)) = (&item.package, &item.symbol) else { continue };
        let Some(name) = names::symbol(&item.label).map(|symbol| symbol.name) else { continue };
        let key = definitions::key(&item.label);
        let made = cursor.context.definitions_on_record(package, &name);
        let left = made.iter().map(|one| files.get(one.file.as_deref()?).filter(|file| !has(file, &key)));
        let Some(left) = left.collect::<Option<Vec<_>>>() else { continue };
        let Some(file) = left.first().and_then(|file| file.path.file_name()) else { continue };
        // The definition may have been moved to another file.
        if !workspace.files.iter().any(|file| has(file, &key)) {
            item.detail = format!("{}, not in {} any more", item.detail, file.to_string_lossy());
            *score -= LEFT;
            any = true;
        }
    }
    any
}

/// Returns true if a file has a definition that may make the name.
fn has(file: &FileEntry, key: &str) -> bool {
    file.definitions.iter().any(|one| {
        one.key == key
            || one.key.strip_prefix("(setf ").and_then(|rest| rest.strip_suffix(')')) == Some(key)
            || one.functions.iter().any(|(_, function)| function == key)
    })
}
