//! The processes that clients start. They find the host, then copy between standard input and
//! output and the host's socket.
//!
//! The processes use plain threads and blocking I/O, because each only copies in two directions.
//! Each keeps the ids of unanswered requests, so that every request is answered even when the host
//! is killed.

pub mod dap;
mod frames;
mod lines;
pub mod lsp;
pub mod mcp;
mod pending;
mod protocol;

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Returns standard input without a buffer of std's.
fn stdin() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

/// Returns standard output without a buffer of std's, which would need flushing.
fn stdout() -> io::Result<File> {
    Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
}
