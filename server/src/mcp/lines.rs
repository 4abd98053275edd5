//! Lines of bounded length from a byte stream, and the request id of an unusable line.

use tokio::io::AsyncRead;

use crate::framing::lines;

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A whole line, without its end.
    Whole(Vec<u8>),
    /// A line longer than the limit, which was skipped without being stored. The values are its
    /// length in bytes, and the `id` of the JSON object in it.
    TooLong(usize, Option<Id>),
    /// The end of the stream. An incomplete last line is dropped, because it may be a part of a
    /// message.
    End,
}

/// A JSON-RPC id as written in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Id {
    /// A number.
    Number(i64),
    /// A string.
    Text(String),
}

/// Reads lines. All state is in the reader, so that dropping a pending `next` loses no bytes.
pub(crate) struct Lines<R> {
    lines: lines::Lines<R>,
    /// The length of a line that is too long, as far as it was read, and the search for the id in
    /// it.
    skipped: (usize, IdFinder),
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(read: R, limit: usize) -> Self {
        Lines { lines: lines::Lines::new(read, limit), skipped: Default::default() }
    }

    /// Returns the next line.
    pub(crate) async fn next(&mut self) -> std::io::Result<Line> {
        loop {
            match self.lines.next().await? {
                None => return Ok(Line::End),
                Some(lines::Line::Whole(line)) => return Ok(Line::Whole(line.to_vec())),
                Some(lines::Line::Piece { bytes, last }) => {
                    let (length, finder) = &mut self.skipped;
                    *length += bytes.len();
                    finder.feed(bytes);
                    if last {
                        let (length, finder) = std::mem::take(&mut self.skipped);
                        return Ok(Line::TooLong(length, finder.into_id()));
                    }
                }
            }
        }
    }
}

/// Returns the `id` of a request in a text that could not be parsed. The sender waits for an answer
/// with that id.
pub(crate) fn id_of(text: &[u8]) -> Option<Id> {
    let mut finder = IdFinder::default();
    finder.feed(text);
    finder.into_id()
}

/// Finds the value of the top-level key `id` in a JSON object without storing the text. It checks
/// only brackets and quotes. It returns an id only if the text is exactly one closed object.
#[derive(Default)]
struct IdFinder {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The last string, number or word at depth 1, up to a maximum length.
    token: Vec<u8>,
    key: bool,
    closed: bool,
    broken: bool,
    id: Option<Id>,
}

/// The maximum length of an id in bytes. No client's id is longer.
const MAX_ID_BYTES: usize = 256;

impl IdFinder {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.step(*byte);
        }
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            match (self.escaped, byte) {
                (true, _) => self.escaped = false,
                (false, b'\\') => self.escaped = true,
                (false, b'"') => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => {
                self.broken |= self.depth == 0 && (byte == b'[' || self.closed);
                self.depth += 1;
            }
            b'}' | b']' => {
                self.value_ends();
                match self.depth {
                    0 => self.broken = true,
                    1 => self.closed = true,
                    _ => {}
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.key = self.token == b"\"id\"";
                self.token.clear();
            }
            b',' if self.depth == 1 => self.value_ends(),
            b' ' | b'\t' | b'\r' => {}
            other => self.keep(other),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < MAX_ID_BYTES {
            self.token.push(byte);
        }
    }

    fn value_ends(&mut self) {
        if self.depth != 1 {
            return;
        }
        if std::mem::take(&mut self.key) {
            self.id = match serde_json::from_slice(&self.token) {
                Ok(serde_json::Value::Number(number)) => number.as_i64().map(Id::Number),
                Ok(serde_json::Value::String(text)) => Some(Id::Text(text)),
                _ => None,
            };
        }
        self.token.clear();
    }

    fn into_id(self) -> Option<Id> {
        if self.closed && !self.broken && self.depth == 0 { self.id } else { None }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    async fn all(text: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(text, limit);
        let mut out = Vec::new();
        loop {
            let line = lines.next().await.unwrap();
            if line == Line::End {
                return out;
            }
            out.push(line);
        }
    }

    #[tokio::test]
    async fn lines_over_the_limit_are_told_and_read_past() {
        let text = b"{\"id\":7,\"method\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}\nshort\nunfinished";
        assert_eq!(all(text, 20).await, [Line::TooLong(48, Some(Id::Number(7))), Line::Whole(b"short".to_vec())]);
    }

    #[tokio::test]
    async fn a_line_is_found_however_the_bytes_arrive() {
        use tokio::io::AsyncWriteExt;
        let (mut there, here) = tokio::io::duplex(3);
        let writer = tokio::spawn(async move { there.write_all(b"hello\nworld\n").await });
        let mut lines = Lines::new(here, 100);
        assert_eq!(lines.next().await.unwrap(), Line::Whole(b"hello".to_vec()));
        assert_eq!(lines.next().await.unwrap(), Line::Whole(b"world".to_vec()));
        assert_eq!(lines.next().await.unwrap(), Line::End);
        writer.await.unwrap().unwrap();
    }

    #[test]
    fn the_id_of_a_request_is_found_wherever_it_stands() {
        let cases: [(&str, Option<Id>); 9] = [
            (r#"{"id": 12, "method": "x"}"#, Some(Id::Number(12))),
            (
                r#"{"params": {"id": 99, "a": [{"id": 1}]}, "jsonrpc": "2.0", "id": "a\"b"}"#,
                Some(Id::Text("a\"b".into())),
            ),
            (r#"{"params": {"code": "\"id\": 5 \ud800"}, "id": 3}"#, Some(Id::Number(3))),
            (r#"{"method": "id", "id": null}"#, None),
            (r#"{"id": 1"#, None),
            (r#"[{"id": 1}]"#, None),
            (r#"{"id": 1} {"id": 2}"#, None),
            ("{not json", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(id_of(text.as_bytes()), expected, "{text}");
        }
    }
}
