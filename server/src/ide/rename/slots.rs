//! Slots whose symbol also names something else. The slot and its accessors of the same name are
//! renamed together, and the function, variable or class keeps its name, or the reverse.

use std::collections::HashSet;

use super::places::{Places, Role};
use super::symbols::denotes;
use super::target::{Target, Thing};
use super::{Change, Refusal};
use crate::ide::context::{Backend, Cursor};
use crate::ide::index::{Indexed, Packages, Snapshot};
use crate::text::Span;
use crate::text::datum::Form;
use crate::text::definitions::key;
use crate::text::names;

/// The end of the reason why a mention of a thing that keeps its name is not changed.
const KEPT: &str = "another definition of the symbol, which keeps the name.";

/// The reason why a mention of a thing that keeps its name is not changed.
pub(super) fn kept(word: &str) -> String {
    format!("It is a {word} here, {KEPT}")
}

/// Returns true if a change is of a mention that keeps its name.
pub(super) fn is_kept(change: &Change) -> bool {
    change.unsure.as_deref().is_some_and(|why| why.ends_with(KEPT))
}

/// Returns true if the name at the cursor is that of a slot, and has no other meaning there.
pub(super) fn is_at<B: Backend>(cursor: &Cursor<B>) -> bool {
    let Some(form) = Form::at(&cursor.document, cursor.offset) else { return false };
    let at = Span { start: cursor.offset, end: cursor.offset };
    let found = form.around(at).last().and_then(|node| Places::of(&form).role(node.span));
    found == Some(Role::Slot)
}

/// Leaves only the kinds of the thing at the cursor in the target. The other kinds keep the name.
/// `at_slot` is true if the cursor is at a slot. `has_accessor` is true if an accessor of the slot
/// has the same name.
pub(super) fn separate(target: &mut Target, at_slot: bool, has_accessor: bool) {
    if !target.is_slot() || has_accessor && !at_slot {
        return;
    }
    let of_slot = |kind: &String| kind == "slot" || has_accessor && Thing::of_kind(kind) == Some(Thing::Function);
    let (slots, others): (HashSet<_>, HashSet<_>) = target.kinds.drain().partition(of_slot);
    (target.kinds, target.kept) = if at_slot || others.is_empty() { (slots, others) } else { (others, slots) };
}

/// Returns true if a class has both the slot and an accessor with the same name.
pub(super) fn has_accessor(target: &Target, index: &Snapshot, packages: &Packages<'_>) -> bool {
    let is = |one: &Indexed, written: &String| is_symbol(one, written, packages, &target.home, &target.name);
    index
        .mentioning(&target.name)
        .flat_map(|file| &file.definitions)
        .any(|one| one.slots.iter().any(|slot| is(one, slot)) && one.accessors.iter().any(|accessor| is(one, accessor)))
}

fn is_symbol(one: &Indexed, written: &str, packages: &Packages<'_>, home: &str, name: &str) -> bool {
    names::symbol(written).is_some_and(|symbol| denotes(&symbol, one.package.as_deref(), packages, home, name))
}

/// Refuses a new name of a slot that another slot of the same class or structure already has. The
/// slots of its superclasses and subclasses count too.
pub(super) fn refuse_taken(
    target: &Target,
    new: &str,
    index: &Snapshot,
    packages: &Packages<'_>,
) -> Result<(), Refusal> {
    let all = || index.files.iter().flat_map(|file| file.definitions.iter().map(move |one| (file, one)));
    let has =
        |one: &Indexed, name: &str| one.slots.iter().any(|slot| is_symbol(one, slot, packages, &target.home, name));
    let (old, taken): (Vec<_>, Vec<_>) =
        (all().filter(|(_, one)| has(one, &target.name)).collect(), all().filter(|(_, one)| has(one, new)).collect());
    for (file, other) in taken {
        if old.iter().any(|(_, one)| inherits(one, other, index) || inherits(other, one, index)) {
            return Refusal::of(format!(
                "{} has a slot {} already: {}, line {}.",
                other.written.to_lowercase(),
                target.new,
                file.path.display(),
                other.start[0].line + 1
            ));
        }
    }
    Ok(())
}

/// Returns true if the class `one` is `other` or inherits from it, by their names.
fn inherits<'a>(one: &'a Indexed, other: &Indexed, index: &'a Snapshot) -> bool {
    let (mut seen, mut next) = (HashSet::new(), vec![one]);
    while let Some(class) = next.pop() {
        if class.key == other.key {
            return true;
        }
        for super_class in class.supers.iter().map(|written| key(written)) {
            if seen.insert(super_class.clone()) {
                let all = index.mentioning(&super_class).flat_map(|file| &file.definitions);
                let is_class =
                    |one: &&Indexed| one.key == super_class && (!one.slots.is_empty() || !one.supers.is_empty());
                next.extend(all.filter(is_class));
            }
        }
    }
    false
}
