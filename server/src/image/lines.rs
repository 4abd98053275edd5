//! The lines that the image and its copies send. A line over the limit ends the stream.

use std::io;

use tokio::io::AsyncRead;

use crate::framing::lines::{self, Line};

/// The reason why no line was read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    /// The stream failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line exceeded the limit. The stream cannot be used any more.
    #[error("a line is longer than {0} bytes")]
    TooLong(usize),
}

/// A reader of lines. It is cancellation safe.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    lines: lines::Lines<R>,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Creates a reader of the lines of `reader`, none longer than `limit` bytes.
    pub(crate) fn new(reader: R, limit: usize) -> Lines<R> {
        Lines { lines: lines::Lines::new(reader, limit), limit }
    }

    /// Returns the next line without its newline, or `None` at the end of the stream. A last line
    /// without a newline is incomplete and is dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<&[u8]>, LineError> {
        match self.lines.next().await? {
            None => Ok(None),
            Some(Line::Whole(line)) => Ok(Some(line)),
            Some(Line::Piece { .. }) => Err(LineError::TooLong(self.limit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_over_the_limit_is_an_error_before_it_ends() {
        let mut lines = Lines::new(&b"short\nxxxxxxxxxxx"[..], 10);
        assert_eq!(lines.next().await.unwrap(), Some(&b"short"[..]));
        assert!(matches!(lines.next().await, Err(LineError::TooLong(10))));
    }
}
