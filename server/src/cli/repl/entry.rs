//! An entry of the REPL, and its kind.

/// An entry that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entry {
    /// The text without its last line break.
    Text(String),
    /// Ctrl-C. The typed text is dropped.
    Interrupted,
    /// The end of the file, or Ctrl-D.
    End,
}

/// The kind of entry that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Code or a command. It may have several lines, and is kept in the history.
    Code,
    /// A line of input for the program that runs.
    Line,
}
