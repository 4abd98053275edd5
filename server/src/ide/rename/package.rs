//! Renaming of packages, nicknames and local nicknames in all files of a workspace, loaded or not.
//! Package definitions, `in-package`, prefixes, and arguments of standard functions that take a
//! package are changed. Other strings and symbols with the name become unsure changes, about which
//! a person must decide.

mod designators;

use self::designators::{Mention, Role};
use super::files::changed_files;
use super::leftover::is_package_left_over;
use super::mentions::Mentions;
use super::spelling::respelled;
use super::target::Target;
use super::{Change, Named, Options, Refusal, Renaming};
use crate::ide::context::{Backend, Cursor};
use crate::ide::index::{Packages, Snapshot};
use crate::model::image::ImageError;
use crate::text::datum::Form;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::{cancellation, names};

/// The names of packages that every Common Lisp has. No other package may be given one of them.
const STANDARD: [&str; 5] = ["COMMON-LISP", "CL", "KEYWORD", "COMMON-LISP-USER", "CL-USER"];
/// The current package of a text without an `in-package` form.
const USER: &str = "COMMON-LISP-USER";

/// A renaming of a package's name.
struct Renamed<'a> {
    /// The old name, after the case conversion of the reader.
    old: &'a str,
    /// The old name, as written at the cursor.
    old_as_written: &'a str,
    /// The new name, as typed.
    new: &'a str,
    /// The package in whose definition the local nickname is, if the name is a local nickname.
    owner: Option<String>,
}

/// Returns the mention of a package's name at a place.
fn mention_at(document: &Document, offset: usize) -> Option<Mention> {
    let form = Form::at(document, offset)?;
    let found = designators::all(&form);
    found.into_iter().find(|one| one.role != Role::Data && one.whole.start <= offset && offset <= one.span.end)
}

/// Returns the name of a package at a place, for a client that asks for the new name.
pub(super) fn named(document: &Document, offset: usize) -> Option<Named> {
    let found = mention_at(document, offset)?;
    Some(Named { span: found.span, name: found.written.clone(), written: found.written })
}

/// Renames the package named at the cursor. Returns `None` if no package's name is at the cursor.
///
/// # Errors
/// The reason why the package is not renamed.
pub(super) async fn rename<B: Backend>(
    cursor: &Cursor<B>,
    new: &str,
    options: Options,
) -> Result<Option<Renaming>, Refusal> {
    let Some(found) = mention_at(&cursor.document, cursor.offset) else { return Ok(None) };
    let index = cursor.context.texts_index().await;
    if let Some(why) = &index.incomplete {
        return Refusal::of(format!("Not all mentions can be found, because {why}."));
    }
    let packages = index.packages();
    let old = found.meant.clone();
    let here = cursor.package().unwrap_or_else(|| USER.into());
    let owner = match (&found.role, &found.within) {
        (Role::Local, Some(within)) => Some(within.clone()),
        (_, None) => packages.get(&here).filter(|here| here.local.contains_key(&old)).map(|here| here.name.clone()),
        _ => None,
    };
    let kind = match (&owner, packages.get(&old)) {
        (Some(_), _) => "local nickname",
        (None, Some(package)) if package.name == old => "package",
        (None, Some(_)) => "nickname",
        (None, None) => {
            return Refusal::of(format!(
                "{} is no package that a Lisp file of the workspace defines, so it cannot be renamed.",
                found.written
            ));
        }
    };
    if kind == "package" {
        refuse_package_inferred_system(&index, &old)?;
    }
    refuse_taken_name(cursor, &index, &packages, &old, new, owner.as_deref()).await?;
    let old_as_written = if found.string { found.written.to_lowercase() } else { found.written.clone() };
    let renamed = Renamed { old: &old, old_as_written: &old_as_written, new, owner };
    let target = Target { name: old.clone(), new: new.to_owned(), ..Target::default() };
    let targets = [target];
    let prose = Mentions {
        packages: &packages,
        targets: &targets,
        keywords: &[],
        old_as_written: &old_as_written,
        options,
        exported_slot: None,
        name_both_symbols: false,
    };
    let files = changed_files(cursor, &index, &[&old], |document, file| {
        let mut changes = renamed.in_document(document, &packages)?;
        let sure = changes.iter().any(|change| change.unsure.is_none());
        if kind == "package" && !sure && file.packages.iter().any(|one| one.name == old) {
            return Refusal::of(format!("The definition in {} is not understood.", file.path.display()));
        }
        if options.texts && renamed.owner.is_none() {
            prose.in_prose(document, &mut changes);
        }
        Ok(changes)
    })
    .await?;
    Ok(Some(Renaming { old: found.written, new: new.to_owned(), kind: kind.into(), files }))
}

/// Refuses to rename a package of a package-inferred system, because ASDF derives the file's name
/// from that of the package.
fn refuse_package_inferred_system(index: &Snapshot, name: &str) -> Result<(), Refusal> {
    let Some((_, rest)) = name.split_once('/') else { return Ok(()) };
    let rest = rest.to_lowercase();
    let defines =
        |file: &&std::sync::Arc<crate::ide::index::FileEntry>| file.packages.iter().any(|one| one.name == name);
    match index.files.iter().filter(defines).find(|file| file.path.with_extension("").ends_with(&rest)) {
        Some(file) => Refusal::of(format!(
            "{} is found by its package's name ({}), as in package-inferred systems: it would not be found any more.",
            file.path.display(),
            name.to_lowercase()
        )),
        None => Ok(()),
    }
}

/// Refuses a new name that a package or a local nickname already has, in a text or in the image.
async fn refuse_taken_name<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    packages: &Packages<'_>,
    old: &str,
    new: &str,
    owner: Option<&str>,
) -> Result<(), Refusal> {
    let name = names::symbol(new).map(|symbol| symbol.name).unwrap_or_default();
    if name == old {
        return Refusal::of(format!("{new} is its name already."));
    }
    if STANDARD.contains(&name.as_str()) || name.starts_with("SB-") {
        return Refusal::of(format!("{new} is a package of Lisp itself."));
    }
    if let Some(other) = packages.get(&name) {
        return Refusal::of(format!("A file of the workspace defines a package {new} already: {}.", other.name));
    }
    let mut knowing = packages.all().into_iter().filter(|one| one.local.contains_key(&name));
    let clash = match owner {
        Some(owner) => knowing.find(|one| one.name == owner),
        None => knowing.next(),
    };
    if let Some(other) = clash {
        return Refusal::of(format!("The package {} calls another one {new} already.", other.name));
    }
    // While an image starts, its names are not known.
    if let Err(error @ ImageError::Starting(_)) = cursor.context.symbol_if_any(new, None, &[]).await {
        return Err(error.into());
    }
    let there = cursor.context.names().0.package(&name, None).map(|found| found.name.clone());
    match there {
        Some(real) if !is_package_left_over(cursor, index, packages, &name, &real).await? => {
            Refusal::of(format!("The image has a package {new} already."))
        }
        _ => Ok(()),
    }
}

impl Renamed<'_> {
    /// Returns the changes of a text, in order.
    fn in_document(&self, document: &Document, packages: &Packages<'_>) -> Result<Vec<Change>, Refusal> {
        let wanted = self.old.to_lowercase();
        let mut all = Vec::new();
        for top in document.scan().forms() {
            if cancellation::should_stop() {
                return Refusal::of("It took too long and was given up. Nothing was changed.");
            }
            let raw = document.text().slice(top.span.start..top.span.end).to_string();
            if !raw.to_lowercase().contains(&wanted) {
                continue;
            }
            let form = Form::of(document, top.span);
            let here = package_at(document, top.span.start).unwrap_or_else(|| USER.into());
            let here = packages.get(&here);
            let local = here.is_some_and(|here| here.local.contains_key(self.old));
            let owns = here.is_some_and(|here| self.owner.as_deref() == Some(here.name.as_str()));
            for one in designators::all(&form) {
                if one.meant != self.old {
                    continue;
                }
                let denotes_target = match (&self.owner, &one.role, &one.within) {
                    (Some(owner), Role::Local, Some(within)) => owner == within,
                    (Some(_), Role::Prefix | Role::Package, None) => owns,
                    (None, Role::Prefix | Role::Package, within) => within.is_some() || !local,
                    (None, Role::Data, _) => true,
                    _ => false,
                };
                if denotes_target {
                    all.push(self.change(&one));
                }
            }
        }
        all.sort_by_key(|change| change.span);
        Ok(all)
    }

    fn change(&self, one: &Mention) -> Change {
        let by = match one.string {
            true => {
                let name = names::symbol(self.new).map(|symbol| symbol.name).unwrap_or_default();
                names::in_string(&name)
            }
            false => respelled(&one.written, self.old_as_written, self.new),
        };
        let unsure = (one.role == Role::Data).then(|| "It may be data, or the name of something else.".into());
        Change { span: one.span, by, unsure }
    }
}
