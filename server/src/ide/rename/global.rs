//! Renaming of global names. A symbol of a package of the workspace is renamed in all files, loaded
//! or not. Names that the standard derives from it, such as those of a structure's functions, are
//! renamed with it. Quoted mentions, and names that a macro may derive from it, become unsure
//! changes, about which a person must decide.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::derived;
use super::files::changed_files;
use super::leftover::{is_left_over, made_in};
use super::mentions::{Mentions, is_users_definer};
use super::slots;
use super::structures::{Maker, Structures};
use super::symbols::{denotes, is_standard_symbol, symbol_of};
use super::target::{Target, Thing, kind_by_operator};
use super::{Change, Named, Options, Refusal, Renaming};
use crate::ide::context::{Backend, Cursor};
use crate::ide::index::{Packages, Snapshot};
use crate::ide::named_symbols;
use crate::image::api::symbols::SymbolPart;
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::definitions::is_definer;
use crate::text::document::Document;
use crate::text::names;
use crate::text::position::line_column;

/// Renames the global name at the cursor.
///
/// # Errors
/// The reason why it is not renamed.
pub async fn rename<B: Backend>(
    cursor: &Cursor<B>,
    named: &Named,
    new: &str,
    options: Options,
) -> Result<Renaming, Refusal> {
    let index = cursor.context.texts_index().await;
    if let Some(why) = &index.incomplete {
        return Refusal::of(format!("Not all mentions can be found, because {why}."));
    }
    let packages = index.packages();
    let Some(symbol) = names::symbol(&named.written) else {
        return Refusal::of(format!("{} is no name.", named.written));
    };
    let Some(new_symbol) = names::symbol(new) else { return Refusal::of(format!("{new} is no name.")) };
    let here = package_of(cursor, &packages);
    let package = match &symbol.package {
        Some(prefix) => packages.package_name(prefix, &here),
        None => here.clone(),
    };
    let home = packages.home(&package, &symbol.name);
    if new_symbol.name == symbol.name {
        return Refusal::of(format!("{} is its name already.", named.name));
    }
    let structures = Structures::of(&index, &packages);
    let mut kinds = kinds(&index, &packages, &home, &symbol.name);
    if structures.is_named(&home, &symbol.name) {
        kinds.insert("function".into());
    }
    // Only the image knows the symbols of packages that the workspace uses but does not define.
    let known = cursor.context.symbol_if_any(&named.written, Some(&here), &[SymbolPart::Facts]).await?;
    let image_home = known.facts.as_ref().and_then(|facts| facts.package.clone());
    if let Some(owner) = image_home.filter(|owner| *owner != home && packages.get(owner).is_none()) {
        let locked = owner == "COMMON-LISP" || owner.starts_with("SB-");
        let why = if locked { "is locked" } else { "is none of the workspace's" };
        return Refusal::of(format!("{} is a symbol of the package {owner}, which {why}.", named.name));
    }
    // The image knows the kinds of the definitions that a user's macro made.
    let by_macro = kinds.iter().any(|kind| is_definer(kind));
    if let Some(facts) = known.facts.filter(|facts| by_macro && facts.package.as_deref() == Some(home.as_str())) {
        kinds.extend(facts.kinds.into_iter().filter(|kind| Thing::of_kind(kind).is_some()));
    }
    let (mut home, mut name, mut new) = (home, symbol.name.clone(), new.to_owned());
    let mut slot_as_written = None;
    if kinds.is_empty()
        && let Some(maker) = structures.maker(&home, &name)
    {
        let slot = slot_of_accessor(&index, &packages, maker, &named.name, &new)?;
        kinds = self::kinds(&index, &packages, &slot.home, &slot.name);
        (home, name, new) = (slot.home, slot.name, slot.new);
        slot_as_written = Some(name.to_lowercase());
    }
    if kinds.is_empty() {
        if let Some(operator) = users_definition_at(cursor) {
            return Refusal::of(format!(
                "{} is an argument of {operator}, a macro that may make a slot, functions or other names of it, and \
                 no definition in a Lisp file of the workspace has the name. Expand the form to see what it defines, \
                 and change these names together.",
                named.name
            ));
        }
        return Refusal::of(format!(
            "{} is neither a local name nor defined in a Lisp file of the workspace, so it cannot be renamed.",
            named.name
        ));
    }
    let mut target = Target { home: home.clone(), name: name.clone(), new: new.clone(), kinds, ..Target::default() };
    let at_slot = slot_as_written.is_some() || slots::is_at(cursor);
    let kind = if at_slot { "slot".to_owned() } else { target.kinds.iter().min().cloned().unwrap_or_default() };
    if target.is_slot() && structures.is_accessor(&target) {
        target.kinds.insert("function".into());
        slots::separate(&mut target, at_slot, true);
    } else {
        let has_accessor = slots::has_accessor(&target, &index, &packages);
        slots::separate(&mut target, at_slot, has_accessor);
    }
    let keywords = if target.is_slot() { structures.keywords(&target) } else { Vec::new() };
    let mut targets = vec![target];
    targets.extend(derived::targets(&index, &packages, &structures, &targets[0]));
    for target in &targets {
        refuse_taken_name(cursor, &index, &packages, target).await?;
    }
    let old: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    // A package definition may write a name in another case than the code.
    let designated = named_symbols::at(&cursor.document, cursor.offset).is_some();
    let as_defined = as_defined(&index, &packages, &home, &name).filter(|_| designated);
    let old_as_written = as_defined.as_ref().or(slot_as_written.as_ref()).unwrap_or(&named.name);
    let exported_slot = &AtomicBool::new(false);
    let (packages, targets, keywords) = (&packages, &targets[..], &keywords[..]);
    let mentions = Mentions {
        packages,
        targets,
        keywords,
        old_as_written,
        options,
        exported_slot: Some(exported_slot),
        name_both_symbols: false,
    };
    let mut files = changed_files(cursor, &index, &old, |document, file| mentions.in_document(document, file)).await?;
    if exported_slot.load(Ordering::Relaxed) {
        let mentions = Mentions { name_both_symbols: true, ..mentions };
        files = changed_files(cursor, &index, &old, |document, file| mentions.in_document(document, file)).await?;
    }
    Ok(Renaming { old: old_as_written.clone(), new, kind, files })
}

/// Returns the slot whose accessor is renamed, with the new name of the slot.
///
/// # Errors
/// The function is no accessor, its new name would not be that of an accessor of the structure, or
/// another definition also has a slot with this name.
fn slot_of_accessor(
    index: &Snapshot,
    packages: &Packages<'_>,
    maker: Maker,
    accessor: &str,
    new: &str,
) -> Result<Target, Refusal> {
    let (structure, prefix, slot) = match maker {
        Maker::Slot { structure, prefix, slot } => (structure, prefix, *slot),
        Maker::Structure(structure) => {
            return Refusal::of(format!(
                "{accessor} gets its name from the structure {structure}: rename that, or name it in the definition."
            ));
        }
    };
    let having = index.mentioning(&slot.name).flat_map(|file| &file.definitions).filter(|one| {
        let mut slots = one.slots.iter().filter_map(|slot| names::symbol(slot));
        slots.any(|written| denotes(&written, one.package.as_deref(), packages, &slot.home, &slot.name))
    });
    let written = slot.name.to_lowercase();
    if having.count() > 1 {
        return Refusal::of(format!(
            "{accessor} gets its name from the slot {written}, a name that slots of other classes or structures have \
             too, and that all would change."
        ));
    }
    let typed = names::symbol(new).map(|symbol| symbol.name).unwrap_or_default();
    match typed.strip_prefix(prefix.as_str()).filter(|rest| !rest.is_empty()) {
        Some(rest) => Ok(Target { new: names::as_written(rest), ..slot }),
        None => Refusal::of(format!(
            "{accessor} gets its name from the slot {written} of the structure {structure}: a new name begins with {}.",
            prefix.to_lowercase()
        )),
    }
}

/// Returns the operator of the innermost form with an operator around the cursor, if this operator
/// is a user's defining macro. A list whose first element is the name itself is skipped.
fn users_definition_at<B: Backend>(cursor: &Cursor<B>) -> Option<String> {
    let form = Form::at(&cursor.document, cursor.offset)?;
    let around = form.around(Span { start: cursor.offset, end: cursor.offset });
    let operators: Vec<String> =
        around.iter().filter(|node| node.is_list()).map(|node| form.operator(node).unwrap_or_default()).collect();
    // The name may be the first element of its list.
    let heads = around.last().is_some_and(|name| form.name(name) == operators.last().cloned());
    let mut outer = operators.into_iter().rev().skip(usize::from(heads));
    outer.find(|operator| !operator.is_empty()).filter(|operator| is_users_definer(operator))
}

/// Returns the package in which the name at the cursor is looked up.
fn package_of<B: Backend>(cursor: &Cursor<B>, packages: &Packages<'_>) -> String {
    let here = cursor.package().unwrap_or_else(|| "COMMON-LISP-USER".into());
    match named_symbols::at(&cursor.document, cursor.offset) {
        Some(one) => one.looked_up_in(packages, &here),
        None => here,
    }
}

/// Returns the name of a symbol as its first definition writes it, without a prefix.
fn as_defined(index: &Snapshot, packages: &Packages<'_>, home: &str, name: &str) -> Option<String> {
    let all = index.mentioning(name).flat_map(|file| &file.definitions);
    let written = all.filter_map(|one| Some((symbol_of(&one.written)?, one.package.as_deref())));
    let mut own = written.filter(|(written, package)| {
        names::symbol(written).is_some_and(|symbol| denotes(&symbol, *package, packages, home, name))
    });
    own.next().map(|(written, _)| written[names::prefix_length(written)..].to_owned())
}

/// Returns the kinds of definitions of a symbol in the texts.
fn kinds(index: &Snapshot, packages: &Packages<'_>, home: &str, name: &str) -> HashSet<String> {
    let mut kinds = HashSet::new();
    for file in index.mentioning(name) {
        for one in &file.definitions {
            if defined_symbol(&one.written)
                .is_some_and(|symbol| denotes(&symbol, one.package.as_deref(), packages, home, name))
            {
                kinds.insert(one.kind().to_owned());
                kinds.extend(kind_by_operator(one.kind()).map(str::to_owned));
            }
            let slots = one.slots.iter().filter_map(|slot| names::symbol(slot));
            for slot in slots {
                if denotes(&slot, one.package.as_deref(), packages, home, name) {
                    kinds.insert("slot".into());
                }
            }
            let accessors = one.accessors.iter().filter_map(|slot| names::symbol(slot));
            for accessor in accessors {
                if denotes(&accessor, one.package.as_deref(), packages, home, name) {
                    kinds.insert("method".into());
                }
            }
        }
    }
    kinds
}

/// Returns the symbol of a definition's name: `f` for `f` and `(setf f)`.
fn defined_symbol(written: &str) -> Option<names::Symbol> {
    names::symbol(symbol_of(written)?)
}

/// Refuses a new name that is in use. A name is in use in three cases: in the symbol's home
/// package, it is defined, inherited or a symbol of COMMON-LISP; in a package to which the old
/// symbol is accessible, it is another symbol; in the image, it is defined.
async fn refuse_taken_name<B: Backend>(
    cursor: &Cursor<B>,
    index: &Snapshot,
    packages: &Packages<'_>,
    target: &Target,
) -> Result<(), Refusal> {
    let Some(new) = names::symbol(&target.new) else { return Ok(()) };
    // A slot and a function, variable or class can have the same name.
    let is_slot = target.is_slot_alone();
    if target.is_slot() {
        slots::refuse_taken(target, &new.name, index, packages)?;
    }
    for file in index.mentioning(&new.name) {
        for one in &file.definitions {
            let same = defined_symbol(&one.written)
                .is_some_and(|symbol| denotes(&symbol, one.package.as_deref(), packages, &target.home, &new.name));
            if same && !is_slot {
                let line = one.start[0].line + 1;
                return Refusal::of(format!(
                    "{} is already defined in the package {}: {}, line {line}.",
                    target.new,
                    target.home,
                    file.path.display()
                ));
            }
        }
    }
    if target.is_function()
        && let Some((file, line)) = made_in(index, packages, &target.home, &new.name)
    {
        return Refusal::of(format!(
            "{} is already defined in the package {}: {file}, line {line}.",
            target.new, target.home
        ));
    }
    // A `:shadow` clause gets the new name with the symbol, so that the name does not conflict with
    // another package's.
    let shadows = packages.get(&target.home).is_some_and(|home| home.shadowed.contains(&target.name));
    if !shadows && is_standard_symbol(packages, &target.home, &new.name) {
        return Refusal::of(format!(
            "{} is in the package {} already: it is a symbol of COMMON-LISP.",
            target.new, target.home
        ));
    }
    let from = packages.home(&target.home, &new.name);
    if !shadows && from != target.home {
        return Refusal::of(format!("{} is in the package {} already: it comes from {from}.", target.new, target.home));
    }
    // The new name must not be another symbol in a package to which the old symbol is accessible.
    for user in packages.with_access_to(&target.home, &target.name) {
        let other = packages.home(&user.name, &new.name);
        let own = index.files.iter().flat_map(|file| &file.definitions).find(|one| {
            defined_symbol(&one.written).is_some_and(|symbol| symbol.name == new.name && symbol.package.is_none())
                && one.package.as_deref().and_then(|name| packages.get(name)).is_some_and(|one| one.name == user.name)
        });
        if user.name != target.home && (other != user.name || own.is_some()) {
            return Refusal::of(format!(
                "{} cannot be called {}: the package {}, which uses it, has another symbol of that name.",
                target.name.to_lowercase(),
                target.new,
                user.name
            ));
        }
    }
    let known = cursor.context.symbol_if_any(&target.new, Some(&target.home), &[SymbolPart::Facts]).await?;
    if let Some(facts) = known.facts {
        let package = facts.package.unwrap_or_default();
        if package != target.home && !package.is_empty() && !shadows {
            return Refusal::of(format!(
                "{} is in the package {} already: it is a symbol of {package}.",
                target.new, target.home
            ));
        }
        let bound: Vec<&str> = facts.kinds.iter().map(String::as_str).filter(|kind| *kind != "symbol").collect();
        let defined = package == target.home && !bound.is_empty() && !is_slot;
        if defined && !is_left_over(cursor, index, packages, target).await? {
            return Refusal::of(format!("{} is already defined in the image as {}.", target.new, bound.join(", ")));
        }
    }
    Ok(())
}

/// Returns the line of a change, for messages.
pub fn line(document: &Document, change: &Change) -> usize {
    line_column(document.text(), change.span.start).line
}
