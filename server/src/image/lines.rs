//! Lines of a byte stream, each up to a limit. Reading can be cancelled at any time without losing
//! bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// The buffer size kept between lines; the buffer of a longer line is freed.
const KEEP: usize = 64 << 10;
/// The least free space for one read.
const ROOM: usize = 8 << 10;

/// The reason why no line was read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line passed the limit; the stream cannot be used any more.
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
}

/// A reader of lines.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The start of the next line in `buffer`.
    start: usize,
    /// The length of the part of `buffer` that holds no newline.
    scanned: usize,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Creates a reader of the lines of `reader`, none longer than `limit` bytes.
    pub(crate) fn new(reader: R, limit: usize) -> Lines<R> {
        Lines { reader, buffer: Vec::new(), start: 0, scanned: 0, limit }
    }

    /// Returns the next line without its newline; `None` at the end of the stream. A last line
    /// without a newline is incomplete and is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<&[u8]>, LineError> {
        loop {
            if let Some(at) = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n') {
                let (start, end) = (self.start, self.scanned + at);
                (self.start, self.scanned) = (end + 1, end + 1);
                return Ok(Some(&self.buffer[start..end]));
            }
            self.scanned = self.buffer.len();
            if self.scanned - self.start > self.limit {
                return Err(LineError::TooLong(self.limit));
            }
            self.make_room();
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Moves the unfinished line to the front and frees the space of a long line.
    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.buffer.len() < KEEP && self.buffer.capacity() > KEEP {
            self.buffer.shrink_to(KEEP);
        }
        if self.buffer.capacity() - self.buffer.len() < ROOM {
            self.buffer.reserve(ROOM);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_whole_and_a_torn_one_does_not() {
        let mut lines = Lines::new(&b"one\n\ntwo and more\ntorn"[..], 100);
        assert_eq!(lines.next().await.unwrap(), Some(&b"one"[..]));
        assert_eq!(lines.next().await.unwrap(), Some(&b""[..]));
        assert_eq!(lines.next().await.unwrap(), Some(&b"two and more"[..]));
        assert_eq!(lines.next().await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_an_error_and_a_buffer_is_given_back() {
        let mut text = vec![b'x'; 1 << 20];
        text.extend_from_slice(b"\nshort\n");
        let mut lines = Lines::new(&text[..], 2 << 20);
        assert_eq!(lines.next().await.unwrap().map(<[u8]>::len), Some(1 << 20));
        assert_eq!(lines.next().await.unwrap(), Some(&b"short"[..]));
        assert_eq!(lines.next().await.unwrap(), None);
        assert!(lines.buffer.capacity() <= KEEP + ROOM, "{}", lines.buffer.capacity());
        let mut lines = Lines::new(&text[..], 1000);
        assert!(matches!(lines.next().await, Err(LineError::TooLong(1000))));
    }
}
