//! Bodies after a header with `Content-Length`, as in the base protocol of LSP 3.17 and in DAP.

/// The maximum length of a header, in bytes.
const MAX_HEADER: usize = 8 << 10;

/// An item of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// A body within the limit.
    Body(&'a [u8]),
    /// The length of a body that was skipped because it is longer than the limit.
    TooLong(usize),
    /// The reason why bytes that are no frame were skipped.
    Malformed(String),
}

/// The largest number of characters of a header that a reason quotes.
const QUOTED: usize = 60;

/// The reason why bytes cannot be a frame, or the length of a body over the limit. No bytes were
/// skipped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotFramed(pub(crate) String);

/// The reason for bytes without a header.
const NO_HEADER: &str =
    "expected `Content-Length: N` and an empty line, each ended by \\r\\n, before a body of N bytes";

/// Finds frames in bytes that arrive in arbitrary parts.
#[derive(Debug)]
pub(crate) struct FrameBuffer {
    bytes: Vec<u8>,
    /// The start of the next frame in `bytes`.
    start: usize,
    /// The number of bytes of an oversized body that are still to be skipped.
    skip: usize,
    limit: usize,
}

impl FrameBuffer {
    /// Creates a buffer whose bodies have at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> FrameBuffer {
        FrameBuffer { bytes: Vec::new(), start: 0, skip: 0, limit }
    }

    /// Returns the buffer, with room for a read at its end.
    pub(crate) fn room(&mut self) -> &mut Vec<u8> {
        super::make_room(&mut self.bytes, &mut self.start);
        &mut self.bytes
    }

    /// Returns the bytes of an incomplete frame, including its header.
    pub(crate) fn unfinished(&self) -> &[u8] {
        self.rest()
    }

    /// Returns the next complete item. After bytes that are no frame, continues at the next header
    /// if one has arrived.
    pub(crate) fn next(&mut self) -> Option<Frame<'_>> {
        if self.skip > 0 {
            let skipped = self.skip.min(self.rest().len());
            self.start += skipped;
            self.skip -= skipped;
            if self.skip > 0 {
                return None;
            }
        }
        let (body, length) = match header(self.rest()) {
            Ok(Some(found)) => found,
            Ok(None) => return None,
            Err(Bad { why, length }) => {
                self.resynchronise(length);
                return Some(Frame::Malformed(why));
            }
        };
        if length > self.limit {
            self.start += body;
            self.skip = length;
            return Some(Frame::TooLong(length));
        }
        self.take(body, length).map(Frame::Body)
    }

    /// Returns the next complete body, for a stream that is of no use after bytes that are no
    /// frame.
    ///
    /// # Errors
    /// The bytes cannot be a frame, or the body is over the limit. The bytes stay in the buffer.
    pub(crate) fn next_or_fail(&mut self) -> Result<Option<&[u8]>, NotFramed> {
        let rest = self.rest();
        let Some((body, length)) = header(rest).map_err(|bad| NotFramed(bad.why))? else {
            // Typed text and other protocols are recognised before 8 KiB have arrived.
            let no_header = rest.first().is_some_and(|first| !first.is_ascii_alphabetic());
            let is_line = rest.contains(&b'\n') && find(rest, b"\r\n").is_none();
            return if no_header || is_line { Err(NotFramed(NO_HEADER.into())) } else { Ok(None) };
        };
        if length > self.limit {
            return Err(NotFramed(format!("a body of {length} bytes; the limit is {}", self.limit)));
        }
        Ok(self.take(body, length))
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Returns the body of `length` bytes at `body`, if it is complete.
    fn take(&mut self, body: usize, length: usize) -> Option<&[u8]> {
        let start = self.start + body;
        let end = start + length;
        if self.bytes.len() < end {
            return None;
        }
        self.start = end;
        Some(&self.bytes[start..end])
    }

    /// Skips bytes that cannot be a frame, up to the next header, or else `length` bytes.
    fn resynchronise(&mut self, length: usize) {
        let rest = self.rest();
        let next = find(&rest[1.min(rest.len())..], b"Content-Length").map(|at| at + 1);
        self.start += next.unwrap_or(length).min(rest.len());
    }
}

/// The error of an invalid header.
struct Bad {
    why: String,
    /// The number of bytes that the invalid header takes.
    length: usize,
}

impl Bad {
    fn new(why: impl Into<String>, length: usize) -> Bad {
        Bad { why: why.into(), length }
    }
}

/// Returns the place and the length of the body, once the header is complete.
fn header(bytes: &[u8]) -> Result<Option<(usize, usize)>, Bad> {
    let Some(end) = find(&bytes[..bytes.len().min(MAX_HEADER + 4)], b"\r\n\r\n") else {
        return if bytes.len() <= MAX_HEADER { Ok(None) } else { Err(Bad::new(NO_HEADER, MAX_HEADER)) };
    };
    let body = end + 4;
    let text = std::str::from_utf8(&bytes[..end]).map_err(|_| Bad::new("the header is not ASCII", body))?;
    for line in text.split("\r\n") {
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("Content-Length")
        {
            let value = value.trim();
            let bad = |_| {
                let value: String = value.chars().take(QUOTED).collect();
                Bad::new(format!("`Content-Length` is not a number of bytes: {value:?}"), body)
            };
            return value.parse().map(|length| Some((body, length))).map_err(bad);
        }
    }
    Err(Bad::new("no `Content-Length` in the header", body))
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// Returns the frame of `body`.
pub(crate) fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Returns the frames of `input`, which arrives in parts of `piece` bytes.
    fn all(input: &[u8], piece: usize, limit: usize) -> Vec<String> {
        let mut buffer = FrameBuffer::new(limit);
        let mut all = Vec::new();
        for piece in input.chunks(piece) {
            buffer.room().extend_from_slice(piece);
            while let Some(frame) = buffer.next() {
                all.push(match frame {
                    Frame::Body(body) => String::from_utf8(body.to_vec()).unwrap(),
                    Frame::TooLong(length) => format!("too long: {length}"),
                    Frame::Malformed(why) => format!("malformed: {why}"),
                });
            }
        }
        all
    }

    const THREE: &[u8] =
        b"Content-Length: 2\r\n\r\n{}content-length:3\r\nContent-Type: x\r\n\r\n{ }Content-Length: 0\r\n\r\n";

    #[test]
    fn bodies_come_whole_however_they_are_cut() {
        for piece in [1, 2, 7, 64, 4096] {
            assert_eq!(all(THREE, piece, 100), ["{}", "{ }", ""], "pieces of {piece}");
        }
    }

    #[test]
    fn a_body_over_the_limit_is_skipped_and_told() {
        for piece in [1, 7, 4096] {
            assert_eq!(all(THREE, piece, 2), ["{}", "too long: 3", ""], "pieces of {piece}");
        }
    }

    #[test]
    fn no_frame_is_told_and_the_next_is_read() {
        let long = "x".repeat(20_000);
        for bad in
            ["Content-Length: x\r\n\r\n", "Content-Length: -1\r\n\r\n", "Nonsense\r\n\r\n", "é: 1\r\n\r\n", &long]
        {
            let input = [bad.as_bytes(), &framed(b"1")].concat();
            let all = all(&input, 1 << 16, 100);
            let (last, others) = all.split_last().unwrap();
            assert_eq!(last, "1", "{bad:.20}");
            assert!(!others.is_empty() && others.iter().all(|one| one.starts_with("malformed")), "{others:?}");
        }
    }

    #[test]
    fn a_stream_of_another_kind_fails_at_once_and_keeps_its_bytes() {
        let over = b"Content-Length: 101\r\n\r\n";
        let long = [b'a'; MAX_HEADER + 10];
        for bytes in [
            &b"{\"jsonrpc\":\"2.0\"}\n"[..],
            b"hello\n",
            b"Content-Length: -1\r\n\r\n",
            b"A: b\r\n\r\n",
            b"\xff\xfe",
            over,
            &long,
        ] {
            let mut buffer = FrameBuffer::new(100);
            buffer.room().extend_from_slice(&[&framed(b"{}"), bytes].concat());
            assert_eq!(buffer.next_or_fail(), Ok(Some(&b"{}"[..])));
            assert!(buffer.next_or_fail().is_err(), "{bytes:?}");
            assert_eq!(buffer.unfinished(), bytes);
        }
        let mut buffer = FrameBuffer::new(100);
        buffer.room().extend_from_slice(b"Content-Len");
        assert_eq!(buffer.next_or_fail(), Ok(None));
        assert_eq!(buffer.unfinished(), b"Content-Len");
    }

    #[test]
    fn an_empty_stream_has_no_frame() {
        let mut buffer = FrameBuffer::new(100);
        assert_eq!(buffer.next(), None);
        assert_eq!(buffer.next_or_fail(), Ok(None));
    }
}
