//! Files that may not be written, and what a person can do.

/// The reason why a file may not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOnly {
    /// The file's mode, or its owner's.
    Mode,
    /// A file system that is mounted read-only.
    Mount,
}

impl ReadOnly {
    pub(super) fn message(self, file: &str) -> String {
        match self {
            ReadOnly::Mode => format!(
                "{file} is read-only. Nothing was changed: a person can make it writable (chmod u+w), or it is not meant to be edited."
            ),
            ReadOnly::Mount => {
                format!(
                    "{file} is on a file system that is mounted read-only. Nothing was changed: it cannot be edited there."
                )
            }
        }
    }

    /// Returns the reason by the answer of access(2) and the mode.
    pub(super) fn of(access: Result<(), rustix::io::Errno>, mode: &std::fs::Permissions) -> Option<ReadOnly> {
        match access {
            Err(rustix::io::Errno::ROFS) => Some(ReadOnly::Mount),
            Err(_) => Some(ReadOnly::Mode),
            // For root, access(2) succeeds for a read-only file too.
            Ok(()) => mode.readonly().then_some(ReadOnly::Mode),
        }
    }
}
