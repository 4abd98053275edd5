//! Finding messages in a stream of bytes: lines, and bodies behind `Content-Length`.
//!
//! Both follow the same contract. A reader keeps all its state, so dropping a pending read loses
//! nothing. A message over the reader's limit is never stored whole: lines come in pieces, bodies
//! are skipped with their length told. A message that the end of the stream cuts off is no message;
//! its bytes can be had from the buffer.

pub(crate) mod content_length;
pub(crate) mod first_line;
pub(crate) mod json;
pub(crate) mod lines;

/// The least free space for one read.
const ROOM: usize = 64 << 10;
/// The buffer size kept between messages; the buffer of a longer message is freed.
const MAX_KEPT_BUFFER: usize = 2 * ROOM;

/// Moves the unread rest of `buffer`, from `start`, to its front, frees the space of a long
/// message, and makes room for a read.
fn make_room(buffer: &mut Vec<u8>, start: &mut usize) {
    if *start > 0 {
        buffer.drain(..*start);
        *start = 0;
    }
    if buffer.len() < ROOM && buffer.capacity() > MAX_KEPT_BUFFER {
        buffer.shrink_to(ROOM);
    }
    buffer.reserve(ROOM);
}
