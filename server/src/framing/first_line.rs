//! The first line of a stream whose other bytes belong to another reader. The line is read byte by
//! byte, so that nothing after it is consumed.

use std::io::{self, Read};

use tokio::io::{AsyncRead, AsyncReadExt};

/// Reads the first line, up to a newline, which is not returned. Returns `None` if the stream is
/// empty.
///
/// # Errors
/// An I/O error, `InvalidData` for a line of more than `limit` bytes, or `UnexpectedEof` for a line
/// that the end of the stream cuts off.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin), limit: usize) -> io::Result<Option<Vec<u8>>> {
    let (mut line, mut byte) = (FirstLine::new(limit), [0]);
    loop {
        let read = stream.read(&mut byte).await?;
        if line.push(&byte[..read])? {
            return line.finish();
        }
    }
}

/// Acts as [`read`] for a blocking stream.
pub(crate) fn read_blocking(stream: &mut impl Read, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let (mut line, mut byte) = (FirstLine::new(limit), [0]);
    loop {
        let read = match stream.read(&mut byte) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if line.push(&byte[..read])? {
            return line.finish();
        }
    }
}

/// The part of the line that was read.
struct FirstLine {
    bytes: Vec<u8>,
    limit: usize,
    /// True once the newline was read.
    whole: bool,
}

impl FirstLine {
    fn new(limit: usize) -> FirstLine {
        FirstLine { bytes: Vec::new(), limit, whole: false }
    }

    /// Adds the result of reading one byte, which is empty at the end of the stream. Returns true
    /// if nothing more is to be read.
    ///
    /// # Errors
    /// `InvalidData` if the line is longer than the limit.
    fn push(&mut self, read: &[u8]) -> io::Result<bool> {
        match read {
            [] => return Ok(true),
            [b'\n'] => self.whole = true,
            _ if self.bytes.len() == self.limit => {
                let text = format!("the first line is longer than {} bytes", self.limit);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            read => self.bytes.extend_from_slice(read),
        }
        Ok(self.whole)
    }

    /// Returns the line. See [`read`] for `None` and the errors.
    fn finish(self) -> io::Result<Option<Vec<u8>>> {
        match (self.whole, self.bytes.is_empty()) {
            (true, _) => Ok(Some(self.bytes)),
            (false, true) => Ok(None),
            (false, false) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns the result of both readers on `bytes` with a limit of 5, and the bytes that are
    /// left.
    async fn first(mut bytes: &[u8]) -> (Result<Option<String>, io::ErrorKind>, &[u8]) {
        let mut blocking = bytes;
        let shown = |line: io::Result<Option<Vec<u8>>>| {
            line.map(|line| line.map(|line| String::from_utf8(line).unwrap())).map_err(|error| error.kind())
        };
        let read_blocking = shown(read_blocking(&mut blocking, 5));
        let read = shown(read(&mut bytes, 5).await);
        assert_eq!((&read, bytes), (&read_blocking, blocking));
        (read, bytes)
    }

    #[tokio::test]
    async fn a_line_is_taken_and_nothing_behind_it() {
        assert_eq!(first(b"12345\n6\n").await, (Ok(Some("12345".into())), &b"6\n"[..]));
        assert_eq!(first(b"\n1").await, (Ok(Some(String::new())), &b"1"[..]));
    }

    #[tokio::test]
    async fn a_line_over_the_limit_or_cut_off_is_an_error_and_an_empty_stream_is_none() {
        assert_eq!(first(b"123456789\n").await.0, Err(io::ErrorKind::InvalidData));
        assert_eq!(first(b"123").await.0, Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(first(b"").await.0, Ok(None));
    }
}
