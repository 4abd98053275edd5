//! Detection of messages in a stream of bytes: lines, and bodies behind `Content-Length`.
//!
//! Both readers follow the same contract. A reader keeps all its state, so that dropping a pending
//! read loses nothing. A message over the reader's limit is never stored whole. A long line comes
//! in pieces, and a long body is skipped and its length reported. A message that the end of the
//! stream cuts off is no message. Its bytes can be taken from the buffer.

use std::io;
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(crate) mod content_length;
pub(crate) mod first_line;
pub(crate) mod json;
pub(crate) mod lines;

/// The minimum free space for one read, in bytes.
const MIN_READ_SPACE: usize = 64 << 10;
/// The maximum size of the buffer between messages, in bytes. A longer buffer is shrunk.
const MAX_KEPT_BUFFER: usize = 2 * MIN_READ_SPACE;

/// Moves the unread rest of `buffer`, from `start`, to its front. Frees the space of a long
/// message, and makes room for a read.
fn make_room(buffer: &mut Vec<u8>, start: &mut usize) {
    if *start > 0 {
        buffer.drain(..*start);
        *start = 0;
    }
    if buffer.len() < MIN_READ_SPACE && buffer.capacity() > MAX_KEPT_BUFFER {
        buffer.shrink_to(MIN_READ_SPACE);
    }
    buffer.reserve(MIN_READ_SPACE);
}

/// Waits until there is something to read from `file`, or the end of file. Returns false if the
/// deadline has passed before.
pub(crate) fn is_readable_by(file: &impl AsFd, deadline: Instant) -> io::Result<bool> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns true for the error of a connection that the other side has closed.
pub(crate) fn is_disconnect(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}
