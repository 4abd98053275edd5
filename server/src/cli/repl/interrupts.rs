//! Ctrl-C, while no line is being edited.

use std::io;

/// Has `each` called for every SIGINT from now on, on a thread of its own; the program goes on. To
/// be called when there is a line editor already, whose own handler is replaced: what that takes
/// note of would end the next line that is typed.
pub(super) fn catch(each: impl FnMut() + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(each).map_err(io::Error::other)
}
