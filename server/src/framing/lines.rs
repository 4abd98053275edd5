//! Lines of bounded length.

use std::io::{self, Read};

use tokio::io::{AsyncRead, AsyncReadExt};

/// A line, or a part of one, without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// A line within the limit.
    Whole(&'a [u8]),
    /// A part of a line that is longer than the limit. The first part is returned as soon as the
    /// limit is exceeded.
    Piece {
        /// The bytes of the part.
        bytes: &'a [u8],
        /// True if the line ends with this part.
        last: bool,
    },
}

/// The place of a line in the buffer.
struct LinePlace {
    start: usize,
    end: usize,
    whole: bool,
    last: bool,
}

/// Finds lines in bytes that arrive in arbitrary parts.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
    /// The start of the next line in `bytes`.
    start: usize,
    /// The length of the part of `bytes` that has been searched.
    searched: usize,
    limit: usize,
    /// True if parts of the current line were returned already.
    over: bool,
}

impl LineBuffer {
    /// Creates a buffer whose whole lines have at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> LineBuffer {
        LineBuffer { bytes: Vec::new(), start: 0, searched: 0, limit, over: false }
    }

    /// Returns the next complete line, or the next part of a long line.
    pub(crate) fn next(&mut self) -> Option<Line<'_>> {
        let found = self.find()?;
        Some(self.line(&found))
    }

    /// Returns the buffer, with room for a read at its end.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        self.searched -= self.start;
        super::make_room(&mut self.bytes, &mut self.start);
        &mut self.bytes
    }

    /// Takes the bytes of an incomplete line.
    pub(crate) fn unfinished(&mut self) -> Vec<u8> {
        let rest = self.bytes.split_off(self.start);
        (self.start, self.searched) = (self.bytes.len(), self.bytes.len());
        rest
    }

    fn find(&mut self) -> Option<LinePlace> {
        let start = self.start;
        if let Some(at) = self.bytes[self.searched..].iter().position(|byte| *byte == b'\n') {
            let end = self.searched + at;
            (self.start, self.searched) = (end + 1, end + 1);
            let over = std::mem::take(&mut self.over) || end - start > self.limit;
            return Some(LinePlace { start, end, whole: !over, last: true });
        }
        let end = self.bytes.len();
        self.searched = end;
        self.over |= end - start > self.limit;
        if !self.over || start == end {
            return None;
        }
        self.start = end;
        Some(LinePlace { start, end, whole: false, last: false })
    }

    fn line(&self, found: &LinePlace) -> Line<'_> {
        let bytes = &self.bytes[found.start..found.end];
        if found.whole { Line::Whole(bytes) } else { Line::Piece { bytes, last: found.last } }
    }
}

/// Reads lines from an asynchronous stream.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    read: R,
    buffer: LineBuffer,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Creates a reader of the lines of `read`. Whole lines have at most `limit` bytes.
    pub(crate) fn new(read: R, limit: usize) -> Lines<R> {
        Lines { read, buffer: LineBuffer::new(limit) }
    }

    /// Returns the next line or part of a line, or `None` at the end of the stream. An incomplete
    /// line at the end is dropped. Cancellation safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        loop {
            if let Some(found) = self.buffer.find() {
                return Ok(Some(self.buffer.line(&found)));
            }
            if self.read.read_buf(self.buffer.room()).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Takes the bytes of an incomplete line.
    pub(crate) fn unfinished(&mut self) -> Vec<u8> {
        self.buffer.unfinished()
    }

    /// Returns the stream. Bytes that were read ahead are lost.
    pub(crate) fn into_inner(self) -> R {
        self.read
    }
}

/// Reads lines of any length from a blocking stream whose other end is trusted.
#[derive(Debug)]
pub(crate) struct BlockingLines<R> {
    read: R,
    buffer: LineBuffer,
}

impl<R: Read> BlockingLines<R> {
    /// Creates a reader of the lines of `read`.
    pub(crate) fn new(read: R) -> BlockingLines<R> {
        BlockingLines { read, buffer: LineBuffer::new(usize::MAX) }
    }

    /// Returns the next line with its line feed, or `None` at the end of the stream. A read that
    /// fails, for example by a timeout, loses no bytes.
    pub(crate) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(line) = self.buffered() {
                return Ok(Some(line));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Returns the next line among the bytes that were read already, with its line feed.
    pub(crate) fn buffered(&mut self) -> Option<Vec<u8>> {
        let (Line::Whole(line) | Line::Piece { bytes: line, .. }) = self.buffer.next()?;
        Some([line, b"\n"].concat())
    }

    /// Reads once. Returns false at the end of the stream.
    pub(crate) fn fill(&mut self) -> io::Result<bool> {
        let buffer = self.buffer.room();
        let length = buffer.len();
        buffer.resize(length + super::MIN_READ_SPACE, 0);
        let read = loop {
            match self.read.read(&mut buffer[length..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        buffer.truncate(length + *read.as_ref().unwrap_or(&0));
        read.map(|read| read > 0)
    }

    /// Returns the bytes that were read and not returned.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.buffer.bytes[self.buffer.start..]
    }

    /// Takes the bytes of an incomplete line.
    pub(crate) fn unfinished(&mut self) -> Vec<u8> {
        self.buffer.unfinished()
    }

    /// Returns the stream.
    pub(crate) fn get_ref(&self) -> &R {
        &self.read
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::super::{MAX_KEPT_BUFFER, MIN_READ_SPACE};
    use super::*;

    /// A blocking stream that delivers the bytes in parts. Before each part, a read times out.
    struct Pieces<'a>(std::slice::Chunks<'a, u8>, bool);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Read::read(&mut self.0.next().unwrap_or_default(), buffer)
        }
    }

    /// Returns the same as [`all`] without a limit, read by the blocking reader.
    fn all_blocking(text: &[u8], piece: usize) -> Vec<String> {
        let (mut lines, mut all) = (BlockingLines::new(Pieces(text.chunks(piece), false)), Vec::new());
        loop {
            match lines.next() {
                Ok(Some(mut line)) => {
                    assert_eq!(line.pop(), Some(b'\n'));
                    all.push(String::from_utf8(line).unwrap());
                }
                Ok(None) => return all,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
    }

    /// Returns the lines of `text`. The parts of a long line are joined after a `>`.
    async fn all(text: &[u8], limit: usize, piece: usize) -> Vec<String> {
        let (mut there, here) = tokio::io::duplex(piece);
        let text = text.to_vec();
        let writer = tokio::spawn(async move { there.write_all(&text).await });
        let (mut lines, mut all, mut long) = (Lines::new(here, limit), Vec::new(), String::new());
        while let Some(line) = lines.next().await.unwrap() {
            match line {
                Line::Whole(line) => all.push(String::from_utf8(line.to_vec()).unwrap()),
                Line::Piece { bytes, last } => {
                    long += std::str::from_utf8(bytes).unwrap();
                    if last {
                        all.push(format!(">{}", std::mem::take(&mut long)));
                    }
                }
            }
        }
        writer.await.unwrap().unwrap();
        all
    }

    #[tokio::test]
    async fn lines_come_whole_however_they_are_cut_and_a_torn_one_does_not() {
        for piece in [1, 3, 7, 4096] {
            let text = b"one\n\ntwo and more\ntorn";
            assert_eq!(all(text, 100, piece).await, ["one", "", "two and more"], "{piece}");
            assert_eq!(all_blocking(text, piece), ["one", "", "two and more"], "{piece}");
        }
    }

    #[tokio::test]
    async fn a_line_over_the_limit_comes_in_pieces_and_the_next_is_read() {
        for piece in [1, 3, 7, 4096] {
            assert_eq!(all(b"12345\n123456\n12345\n", 5, piece).await, ["12345", ">123456", "12345"], "{piece}");
        }
    }

    #[tokio::test]
    async fn a_line_without_end_is_told_at_its_limit_and_not_stored() {
        let mut lines = Lines::new(tokio::io::repeat(b'x'), 1000);
        for _ in 0..100 {
            assert!(matches!(lines.next().await.unwrap(), Some(Line::Piece { last: false, .. })));
        }
        assert!(lines.buffer.bytes.capacity() <= 2 * MAX_KEPT_BUFFER, "{}", lines.buffer.bytes.capacity());
    }

    #[tokio::test]
    async fn the_buffer_of_a_long_line_is_given_back() {
        let mut text = vec![b'x'; 1 << 20];
        text.extend_from_slice(b"\nshort\n");
        let mut lines = Lines::new(&text[..], 2 << 20);
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(&text[..1 << 20])));
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(&b"short"[..])));
        assert_eq!(lines.next().await.unwrap(), None);
        assert!(lines.buffer.bytes.capacity() <= MAX_KEPT_BUFFER + MIN_READ_SPACE, "{}", lines.buffer.bytes.capacity());
    }

    #[tokio::test]
    async fn a_read_that_was_cancelled_loses_nothing() {
        let (mut there, here) = tokio::io::duplex(64);
        let mut lines = Lines::new(here, 100);
        there.write_all(b"one").await.unwrap();
        tokio::select! {
            biased;
            _ = lines.next() => panic!("there is no line yet"),
            () = std::future::ready(()) => {}
        }
        there.write_all(b" line\n").await.unwrap();
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(&b"one line"[..])));
    }

    #[test]
    fn what_is_unfinished_can_be_had() {
        let mut buffer = LineBuffer::new(usize::MAX);
        buffer.room().extend_from_slice(b"a\nb");
        assert_eq!(buffer.next(), Some(Line::Whole(&b"a"[..])));
        assert_eq!(buffer.next(), None);
        assert_eq!(buffer.unfinished(), b"b");
        buffer.room().extend_from_slice(b"c\n");
        assert_eq!(buffer.next(), Some(Line::Whole(&b"c"[..])));
        assert_eq!(buffer.unfinished(), b"");
    }
}
