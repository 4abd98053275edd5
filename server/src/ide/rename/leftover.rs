//! Definitions that are in the image but no longer in any text, such as those of a renamed name.
//! Such definitions do not prevent another definition from being given the name.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::mentions::Mentions;
use super::symbols::{denotes, symbol_of};
use super::target::Target;
use super::{Options, Refusal};
use crate::ide::context::{Backend, Cursor};
use crate::ide::index::{FileEntry, Indexed, Packages, Snapshot};
use crate::image::api::symbols::{Definition, Place, SymbolPart};
use crate::text::definitions::{Hint, locate};
use crate::text::names;

/// Returns true if all of the image's definitions of the target's new name came from files of the
/// workspace, and no code of the workspace mentions or makes that name any more.
///
/// # Errors
/// The image does not answer.
pub(super) async fn is_left_over<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    packages: &Packages<'_>,
    target: &Target,
) -> Result<bool, Refusal> {
    let (home, written) = (target.home.as_str(), target.new.as_str());
    let Some(symbol) = names::symbol(written) else { return Ok(false) };
    let known = cursor.context.symbol_if_any(written, Some(home), &[SymbolPart::Definitions]).await?;
    let features = known.features.as_deref().unwrap_or_default();
    let mut texts = cursor.context.texts();
    // A user's macro may derive the name from another one, which is its argument.
    let lower = symbol.name.to_lowercase();
    let makes = |one: &&Indexed| one.kind() == one.operator && lower.contains(one.key.as_str());
    for definition in &known.definitions {
        let Some(file) = &definition.place.file else { return Ok(false) };
        if !is_of_workspace(index, file).await {
            return Ok(false);
        }
        let (offset, form) = (definition.place.offset, definition.place.form);
        let place = match texts.get(file).await {
            Some(text) if offset.or(form).is_some() => {
                locate(&text.document, &Hint { offset, form, features, ..Hint::default() }).map(|place| place.form)
            }
            _ => None,
        };
        let real = tokio::fs::canonicalize(file).await.unwrap_or_else(|_| file.clone());
        let in_file = |one: &&Arc<FileEntry>| place.is_none() || one.path == *file || one.path == real;
        let of_file: Vec<&Indexed> = index.files.iter().filter(in_file).flat_map(|file| &file.definitions).collect();
        let there: Vec<&Indexed> = of_file
            .iter()
            .filter(|one| place.is_some_and(|place| place.start <= one.form.start && one.form.end <= place.end))
            .copied()
            .collect();
        // If the form from which the image has the definition now defines the target, the target
        // was renamed there. Otherwise an edit may have moved that form, so that any form of the
        // file may be meant.
        let was_renamed_there = there.iter().any(|one| defines(one, target, packages))
            && is_defined_at_or_undefined(cursor, target, definition).await?;
        let forms = if was_renamed_there { there } else { of_file };
        if forms.iter().any(makes) {
            return Ok(false);
        }
    }
    Ok(!known.definitions.is_empty() && !is_mentioned(cursor, index, packages, home, &symbol.name).await)
}

/// Returns true if a definition of a text defines the target's present name.
fn defines(one: &Indexed, target: &Target, packages: &Packages<'_>) -> bool {
    let lower = target.name.to_lowercase();
    if one.functions.iter().any(|(_, function)| *function == lower) {
        return true;
    }
    let names = one.slots.iter().map(String::as_str).chain(symbol_of(&one.written));
    let mut symbols = names.filter_map(names::symbol);
    symbols.any(|symbol| denotes(&symbol, one.package.as_deref(), packages, &target.home, &target.name))
}

/// Returns true if the image has no definition of the target's present name, or has one from the
/// place of `definition`.
async fn is_defined_at_or_undefined<B: Backend>(
    cursor: &Cursor<B>,
    target: &Target,
    definition: &Definition,
) -> Result<bool, Refusal> {
    let name = names::as_written(&target.name);
    let want = [SymbolPart::Definitions];
    let known = cursor.context.symbol_if_any(&name, Some(&target.home), &want).await?;
    let (file, form) = (&definition.place.file, definition.place.form);
    let same = |one: &Place| {
        one.file == *file && one.form == form && (form.is_some() || one.offset == definition.place.offset)
    };
    Ok(known.definitions.is_empty() || known.definitions.iter().any(|one| same(&one.place)))
}

/// Returns true if the image's package `name` is left over. The caller has checked that no file
/// defines a package of that name. `real` is the package's name in the image. If `name` is only a
/// nickname, a file must define the package `real`. Otherwise the files that defined the package in
/// the image must be in the workspace.
///
/// # Errors
/// The image does not answer.
pub(super) async fn is_package_left_over<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    packages: &Packages<'_>,
    name: &str,
    real: &str,
) -> Result<bool, Refusal> {
    if real != name {
        return Ok(packages.get(real).is_some());
    }
    let package = cursor.package();
    let known = cursor.context.symbol_if_any(name, package.as_deref(), &[SymbolPart::Definitions]).await?;
    let of_packages = known.definitions.iter().filter(|one| one.kind == "package");
    let files: Vec<&PathBuf> = of_packages.filter_map(|one| one.place.file.as_ref()).collect();
    for file in &files {
        if !is_of_workspace(index, file).await {
            return Ok(false);
        }
    }
    Ok(!files.is_empty())
}

/// Returns true if a file is in the workspace, under this path or under its path with links
/// resolved.
async fn is_of_workspace(index: &Snapshot, file: &Path) -> bool {
    let real = tokio::fs::canonicalize(file).await.unwrap_or_else(|_| file.to_owned());
    index.files.iter().any(|one| one.path == file || one.path == real)
}

/// Returns true if code of the workspace mentions the symbol, or if a text cannot be read.
async fn is_mentioned<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    packages: &Packages<'_>,
    home: &str,
    name: &str,
) -> bool {
    let mut kinds: HashSet<String> =
        ["function", "method", "macro", "class", "type", "slot"].iter().map(|kind| (*kind).to_owned()).collect();
    // A variable without asterisks or plus signs around its name counts as a local one.
    if name.starts_with(['*', '+']) {
        kinds.insert("variable".into());
    }
    let target =
        Target { home: home.to_owned(), name: name.to_owned(), new: name.to_owned(), kinds, ..Target::default() };
    let targets = [target];
    let options = Options::default();
    let mentions = Mentions {
        packages,
        targets: &targets,
        keywords: &[],
        old_as_written: name,
        options,
        exported_slot: None,
        name_both_symbols: false,
    };
    let mut texts = cursor.context.texts();
    for file in index.mentioning(name) {
        let document = match &file.open {
            Some(document) => document.clone(),
            None => match texts.get(&file.path).await {
                Some(text) => text.document.clone(),
                None => return true,
            },
        };
        if mentions.in_document(&document, file).map_or(true, |changes| changes.iter().any(|one| one.unsure.is_none()))
        {
            return true;
        }
    }
    false
}

/// Returns the file and the line of the structure or class definition that defines a function of
/// the name.
pub(super) fn made_in(index: &Snapshot, packages: &Packages<'_>, home: &str, name: &str) -> Option<(String, u32)> {
    let lower = name.to_lowercase();
    let symbol = names::Symbol { package: None, name: name.to_owned() };
    let all = index.files.iter().flat_map(|file| file.definitions.iter().map(move |one| (file, one)));
    let made = all.filter(|(_, one)| one.functions.iter().any(|(_, function)| *function == lower));
    let mut made = made.filter(|(_, one)| denotes(&symbol, one.package.as_deref(), packages, home, name));
    made.next().map(|(file, one)| (file.path.display().to_string(), one.start[0].line + 1))
}
