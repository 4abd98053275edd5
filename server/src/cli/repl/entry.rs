//! An entry of the person at the terminal, and its kind.

/// An entry that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The text without its last line break.
    Text(String),
    /// Ctrl-C: what was typed is forgotten.
    Interrupted,
    /// The end of the file, or Ctrl-D.
    End,
}

/// The kind of entry that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Code, or a command: of as many lines as it takes, kept in the history.
    Code,
    /// A line for the program that runs.
    Line,
}
