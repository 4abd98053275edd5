//! Whether a host whose connections have ended left in order or was killed. A host that leaves
//! records it in its lock file, which bridges hold open, since it may have been removed long ago.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::runtime_dir::RuntimeDir;
use crate::bounded_file;

/// The contents of the lock file of a host that leaves.
const LEFT: &[u8] = b"left\n";
/// The contents before that. They have the same length, so that a full disk has room for [`LEFT`].
const RUNS: &[u8] = b"runs\n";
const _: () = assert!(RUNS.len() == LEFT.len());

/// The lock file of the host that a bridge is connected to.
#[derive(Debug)]
pub(super) struct Departure(File);

impl Departure {
    /// Opens the lock file of the running host. `None`: it was removed.
    pub(super) fn of(runtime: &RuntimeDir) -> Option<Departure> {
        bounded_file::open(&runtime.host_lock()).ok().map(|(file, _)| Departure(file))
    }

    /// Returns true if the host has left in order.
    pub(super) fn is_recorded(&self) -> bool {
        let mut content = [0; LEFT.len()];
        self.0.read_exact_at(&mut content, 0).is_ok() && content == LEFT
    }
}

/// Records in a lock file that its host leaves.
///
/// # Errors
/// An I/O error.
pub(super) fn record(lock: &File) -> io::Result<()> {
    lock.write_all_at(LEFT, 0)
}

/// Clears the record of a host that was killed before it had left.
///
/// # Errors
/// An I/O error.
pub(super) fn clear(lock: &File) -> io::Result<()> {
    lock.write_all_at(RUNS, 0).or_else(|_| lock.set_len(0))
}
