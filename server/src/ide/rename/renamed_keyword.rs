//! Keywords that get a new name with a slot of a structure.

/// A keyword of the calls of a constructor, or of `#S`, which gets a new name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keyword {
    /// The home package of the constructor, or of the structure in `#S`.
    pub home: String,
    /// The name of that, as the reader has it.
    pub constructor: String,
    /// The number of arguments before the keywords.
    pub positional: usize,
    /// The name of the keyword, as the reader has it.
    pub name: String,
    /// The new name, as typed.
    pub new: String,
    /// True if it is one in `#S`.
    pub literal: bool,
}
