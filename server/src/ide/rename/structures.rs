//! Names that are derived from those of a structure and its slots: accessors, including those of
//! structures that include it, and keywords of constructors.

use std::collections::HashSet;

use super::target::Target;
use crate::ide::index::{Indexed, Packages, Snapshot};
use crate::text::definitions::StructureNaming;
use crate::text::names;

/// A keyword that gets a new name, in the calls of a constructor or in `#S`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keyword {
    /// The home package of the constructor, or of the structure in `#S`.
    pub home: String,
    /// The symbol name of the constructor or structure.
    pub constructor: String,
    /// The number of arguments before the keywords.
    pub positional: usize,
    /// The old name of the keyword, as by `symbol-name`.
    pub name: String,
    /// The new name, as typed.
    pub new: String,
    /// True if the keyword is in `#S`.
    pub literal: bool,
}

/// The structures of the workspace.
pub(super) struct Structures<'a> {
    packages: &'a Packages<'a>,
    all: Vec<(&'a Indexed, &'a StructureNaming)>,
}

/// A definition from which the name of a function is derived.
pub(super) enum Maker {
    /// A slot, whose accessor it is: the structure, the prefix of its accessors, and the slot.
    Slot { structure: String, prefix: String, slot: Box<Target> },
    /// The constructor, copier or predicate of a structure.
    Structure(String),
}

/// The maximum number of structures in a chain of `:include`.
const MAX_DEPTH: usize = 32;

impl<'a> Structures<'a> {
    pub(super) fn of(index: &'a Snapshot, packages: &'a Packages<'a>) -> Structures<'a> {
        let definitions = index.files.iter().flat_map(|file| &file.definitions);
        let all = definitions.filter_map(|one| Some((one, one.naming.as_ref()?))).collect();
        Structures { packages, all }
    }

    /// Returns the home package and the name of the symbol that `written` denotes in the package of
    /// the definition `one`.
    fn symbol(&self, one: &Indexed, written: &str) -> Option<(String, String)> {
        let symbol = names::symbol(written)?;
        let here = one.package.as_deref().unwrap_or("COMMON-LISP-USER");
        let package = match symbol.package.as_deref() {
            Some(prefix) => self.packages.package_name(prefix, here),
            None => here.to_owned(),
        };
        Some((self.packages.home(&package, &symbol.name), symbol.name))
    }

    /// Returns the home package of a name that is not written in the definition `one` but derived
    /// from it.
    fn home(&self, one: &Indexed, name: &str) -> String {
        self.packages.home(one.package.as_deref().unwrap_or("COMMON-LISP-USER"), name)
    }

    /// Returns the home packages and names of a structure's slots and of the slots of the
    /// structures that it includes.
    fn slots(&self, one: &Indexed) -> HashSet<(String, String)> {
        let (mut found, mut at) = (HashSet::new(), Some(one));
        for _ in 0..MAX_DEPTH {
            let Some(one) = at else { break };
            found.extend(one.slots.iter().filter_map(|slot| self.symbol(one, slot)));
            let included = one.supers.first().and_then(|included| self.symbol(one, included));
            at = included.and_then(|included| {
                let mut all = self.all.iter().map(|(other, _)| *other);
                all.find(|other| self.symbol(other, &other.written).as_ref() == Some(&included))
            });
        }
        found
    }

    fn has_slot(&self, one: &Indexed, target: &Target) -> bool {
        self.slots(one).contains(&(target.home.clone(), target.name.clone()))
    }

    /// Returns the accessors of a slot, with their new names. Leaves out an accessor that is the
    /// slot's own symbol (an empty `:conc-name`).
    pub(super) fn accessors(&self, target: &Target) -> Vec<Target> {
        let having = self.all.iter().filter(|(one, _)| self.has_slot(one, target));
        let new = read(&target.new);
        let accessors = having.map(|(one, naming)| {
            let name = format!("{}{}", naming.prefix, target.name);
            function(self.home(one, &name), name, &format!("{}{new}", naming.prefix))
        });
        accessors.filter(|one| one.home != target.home || one.name != target.name).collect()
    }

    /// Returns true if an accessor of the slot is the slot's own symbol.
    pub(super) fn is_accessor(&self, target: &Target) -> bool {
        let mut bare = self.all.iter().filter(|(_, naming)| naming.prefix.is_empty());
        bare.any(|(one, _)| self.has_slot(one, target) && self.home(one, &target.name) == target.home)
    }

    /// Returns the accessors of a structure that gets the name `new`, with their new names. There
    /// are none if their prefix is not derived from the structure's name.
    pub(super) fn prefixed(&self, one: &Indexed, new: &str) -> Vec<Target> {
        let Some(naming) = one.naming.as_ref().filter(|naming| naming.prefix_by_name) else { return Vec::new() };
        let mut slots: Vec<(String, String)> = self.slots(one).into_iter().collect();
        slots.sort();
        let made = slots.into_iter().map(|(_, slot)| {
            let name = format!("{}{slot}", naming.prefix);
            function(self.home(one, &name), name, &format!("{}-{slot}", read(new)))
        });
        made.collect()
    }

    /// Returns the keywords of constructors that stand for a slot.
    pub(super) fn keywords(&self, target: &Target) -> Vec<Keyword> {
        let mut found = Vec::new();
        for (one, naming) in self.all.iter().filter(|(one, _)| self.has_slot(one, target)) {
            for constructor in &naming.constructors {
                let takes = constructor.keys.as_ref().is_none_or(|keys| keys.contains(&target.name));
                if let Some((home, name)) = self.symbol(one, &constructor.written).filter(|_| takes) {
                    found.push(keyword(home, name, constructor.positional, target, false));
                }
            }
            if let Some((home, name)) = self.symbol(one, &one.written) {
                found.push(keyword(home, name, 0, target, true));
            }
        }
        found
    }

    /// Returns the definition from which a function's name is derived.
    pub(super) fn maker(&self, home: &str, name: &str) -> Option<Maker> {
        self.all.iter().find_map(|(one, naming)| {
            if self.home(one, name) != home {
                return None;
            }
            let structure = one.written.clone();
            let slot = name.strip_prefix(naming.prefix.as_str()).filter(|_| !naming.prefix.is_empty());
            let slot = slot.and_then(|slot| self.slots(one).into_iter().find(|(_, its_name)| its_name == slot));
            // Accessors of included slots are not among `functions`.
            if let Some((home, name)) = slot {
                let prefix = naming.prefix.clone();
                let slot = Box::new(Target { home, name, ..Target::default() });
                return Some(Maker::Slot { structure, prefix, slot });
            }
            let lower = name.to_lowercase();
            let makes = one.functions.iter().any(|(_, function)| *function == lower);
            makes.then_some(Maker::Structure(structure))
        })
    }

    /// Returns true if an option of a structure names this function.
    pub(super) fn is_named(&self, home: &str, name: &str) -> bool {
        self.all.iter().any(|(one, naming)| {
            let mut named = naming.named.iter().filter_map(|written| self.symbol(one, written));
            named.any(|(its_home, its_name)| its_home == home && its_name == name)
        })
    }
}

fn keyword(home: String, constructor: String, positional: usize, slot: &Target, literal: bool) -> Keyword {
    Keyword { home, constructor, positional, name: slot.name.clone(), new: slot.new.clone(), literal }
}

fn function(home: String, name: String, new: &str) -> Target {
    Target {
        home,
        name,
        new: names::as_written(new),
        kinds: HashSet::from(["function".to_owned()]),
        ..Target::default()
    }
}

/// Returns the `symbol-name` of a symbol as written.
fn read(written: &str) -> String {
    names::symbol(written).map_or_else(|| written.to_uppercase(), |symbol| symbol.name)
}
