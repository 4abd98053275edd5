//! The distinction between a host that left in order and one that was killed, after its connections
//! have ended. A host that leaves records this in its lock file. Bridges keep that file open,
//! because it may have been removed by then.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::runtime_dir::RuntimeDir;
use crate::bounded_file;

/// The contents of the lock file of a host that has left.
const LEFT: &[u8] = b"left\n";
/// The contents of the lock file of a running host. They have the length of [`LEFT`], so that a
/// full disk has room for [`LEFT`].
const RUNS: &[u8] = b"runs\n";
const _: () = assert!(RUNS.len() == LEFT.len());

/// The lock file of the host to which a bridge is connected.
#[derive(Debug)]
pub(super) struct Departure(File);

impl Departure {
    /// Opens the lock file of the running host. Returns `None` if it was removed.
    pub(super) fn of(runtime: &RuntimeDir) -> Option<Departure> {
        bounded_file::open(&runtime.host_lock()).ok().map(|(file, _)| Departure(file))
    }

    /// Returns true if the host has left in order.
    pub(super) fn is_recorded(&self) -> bool {
        let mut content = [0; LEFT.len()];
        self.0.read_exact_at(&mut content, 0).is_ok() && content == LEFT
    }
}

/// Records in its lock file that a host leaves.
///
/// # Errors
/// An I/O error.
pub(super) fn record(lock: &File) -> io::Result<()> {
    lock.write_all_at(LEFT, 0)
}

/// Resets the lock file. The previous host may have recorded its departure, but been killed before
/// it removed the file.
///
/// # Errors
/// An I/O error.
pub(super) fn clear(lock: &File) -> io::Result<()> {
    lock.write_all_at(RUNS, 0).or_else(|_| lock.set_len(0))
}
