//! Files that may not be written, with advice for a person.

/// The reason why a file may not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadOnly {
    /// The file's mode or owner forbids it.
    Mode,
    /// The file system is mounted read-only.
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

    /// Returns the reason, given the result of access(2) and the mode, or `None` if the file may be
    /// written.
    pub(super) fn of(access: Result<(), rustix::io::Errno>, mode: &std::fs::Permissions) -> Option<ReadOnly> {
        match access {
            Err(rustix::io::Errno::ROFS) => Some(ReadOnly::Mount),
            Err(_) => Some(ReadOnly::Mode),
            // For root, access(2) succeeds even for a read-only file.
            Ok(()) => mode.readonly().then_some(ReadOnly::Mode),
        }
    }
}
