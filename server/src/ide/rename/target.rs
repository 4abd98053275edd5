//! A symbol that gets a new name, with the kinds of its definitions.

use std::collections::HashSet;

/// A symbol that gets a new name.
#[derive(Debug, Clone, Default)]
pub(super) struct Target {
    /// The home package.
    pub home: String,
    /// The name, as by `symbol-name`.
    pub name: String,
    /// The new name, as typed.
    pub new: String,
    /// The kinds of those definitions that get the new name.
    pub kinds: HashSet<String>,
    /// The kinds of the other definitions, which keep the old name.
    pub kept: HashSet<String>,
    /// The reason why every mention is unsure, if it is.
    pub doubt: Option<String>,
}

/// A thing that a symbol can name. The things of one symbol are independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thing {
    Slot,
    Function,
    Variable,
    Type,
}

impl Thing {
    /// Returns the word for a person.
    pub(super) fn word(self) -> &'static str {
        match self {
            Thing::Slot => "slot",
            Thing::Function => "function",
            Thing::Variable => "variable",
            Thing::Type => "class or type",
        }
    }

    /// Returns the kinds of definitions of such a thing.
    fn kinds(self) -> &'static [&'static str] {
        match self {
            Thing::Slot => &["slot"],
            Thing::Function => {
                &["function", "generic function", "method", "macro", "compiler macro", "setf expander", "type"]
            }
            Thing::Variable => &["variable", "constant", "symbol macro"],
            Thing::Type => &["class", "structure", "condition", "type"],
        }
    }

    /// Returns true if one of the kinds is that of such a thing.
    fn is_among(self, kinds: &HashSet<String>) -> bool {
        kinds.iter().any(|kind| self.kinds().contains(&kind.as_str()))
    }

    /// Returns the thing that a definition of a kind makes. Returns `None` for a definition by a
    /// user's macro.
    pub(super) fn of_kind(kind: &str) -> Option<Thing> {
        let all = [Thing::Slot, Thing::Type, Thing::Function, Thing::Variable];
        all.into_iter().find(|thing| thing.kinds().contains(&kind))
    }
}

/// Returns the kind of definition that a user's operator makes, according to its name:
/// `defun/inline`, `defmacro*`.
pub(super) fn kind_by_operator(operator: &str) -> Option<&'static str> {
    const STARTS: [(&str, &str); 9] = [
        ("defun", "function"),
        ("defmacro", "macro"),
        ("defgeneric", "generic function"),
        ("defmethod", "method"),
        ("defvar", "variable"),
        ("defparameter", "variable"),
        ("defconstant", "constant"),
        ("define-constant", "constant"),
        ("defclass", "class"),
    ];
    let varies = |start: &str| {
        operator.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '*', '+', '-']))
    };
    STARTS.iter().find(|(start, _)| varies(start)).map(|(_, kind)| *kind)
}

impl Target {
    pub(super) fn is(&self, thing: Thing) -> bool {
        thing.is_among(&self.kinds)
    }

    pub(super) fn is_slot(&self) -> bool {
        self.is(Thing::Slot)
    }

    pub(super) fn is_function(&self) -> bool {
        self.is(Thing::Function)
    }

    pub(super) fn is_variable(&self) -> bool {
        self.is(Thing::Variable)
    }

    pub(super) fn is_type(&self) -> bool {
        self.is(Thing::Type)
    }

    /// Returns true if a slot gets the new name, and nothing else does.
    pub(super) fn is_slot_alone(&self) -> bool {
        self.is_slot() && self.kinds.len() == 1
    }

    /// Returns true if such a thing has the name and keeps it.
    pub(super) fn keeps(&self, thing: Thing) -> bool {
        !self.is(thing) && thing.is_among(&self.kept)
    }
}
