//! Ctrl-C while no line is being edited.

use std::io;

/// Calls `each` on a thread of its own for every SIGINT from now on; the program goes on. Must be
/// called after the line editor was created, because it replaces the editor's own handler: a SIGINT
/// that the editor records would end the next line that is typed.
pub(super) fn catch(each: impl FnMut() + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(each).map_err(io::Error::other)
}
