//! The base protocol of LSP: `Content-Length` headers and JSON bodies. An invalid frame is
//! reported and skipped; the next one is read.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

/// The maximum size of a body. A larger one is skipped without being stored.
const MAX_BODY: usize = 128 << 20;
/// The maximum size of a header block.
const MAX_HEADER: usize = 8 << 10;

/// A frame that was read.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    /// A body that is JSON.
    Message(Value),
    /// An invalid frame, with the reason.
    Malformed(String),
}

/// Reads frames from a client.
#[derive(Debug)]
pub(crate) struct Frames<R> {
    read: R,
    buffer: Vec<u8>,
    /// The bytes of an oversized body still to be skipped.
    skip: usize,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(crate) fn new(read: R) -> Frames<R> {
        Frames { read, buffer: Vec::new(), skip: 0 }
    }

    /// The next frame; `None` at end of file. Cancellation safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.parse() {
                return Ok(Some(frame));
            }
            self.buffer.reserve(64 << 10);
            if self.read.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// A frame from the buffer, if complete.
    fn parse(&mut self) -> Option<Frame> {
        if self.skip > 0 {
            let skipped = self.skip.min(self.buffer.len());
            self.buffer.drain(..skipped);
            self.skip -= skipped;
            if self.skip > 0 {
                return None;
            }
        }
        let Some(header) = find(&self.buffer, b"\r\n\r\n") else {
            if self.buffer.len() <= MAX_HEADER {
                return None;
            }
            self.resynchronise(MAX_HEADER);
            return Some(Frame::Malformed("no header block: expected `Content-Length: N` and an empty line".into()));
        };
        let body = header + 4;
        let length = match content_length(&self.buffer[..header]) {
            Ok(length) => length,
            Err(why) => {
                self.resynchronise(body);
                return Some(Frame::Malformed(why));
            }
        };
        if length > MAX_BODY {
            self.buffer.drain(..body);
            self.skip = length;
            return Some(Frame::Malformed(format!("a message of {length} bytes was skipped: the limit is {MAX_BODY}")));
        }
        if self.buffer.len() < body + length {
            return None;
        }
        let frame = parse_body(&self.buffer[body..body + length]);
        self.buffer.drain(..body + length);
        Some(frame)
    }

    /// Skips bytes that cannot be a frame: up to the next header, or `at_least` bytes.
    fn resynchronise(&mut self, at_least: usize) {
        let next = find(&self.buffer[1.min(self.buffer.len())..], b"Content-Length").map(|at| at + 1);
        let end = next.unwrap_or(at_least).min(self.buffer.len());
        self.buffer.drain(..end);
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn content_length(header: &[u8]) -> Result<usize, String> {
    let header = std::str::from_utf8(header).map_err(|_| "the header is not ASCII".to_string())?;
    for line in header.split("\r\n") {
        if let Some((name, value)) = line.split_once(':')
            && name.trim().eq_ignore_ascii_case("Content-Length")
        {
            return value.trim().parse().map_err(|_| format!("`Content-Length` is not a number: {:?}", value.trim()));
        }
    }
    Err("no `Content-Length` in the header".into())
}

fn parse_body(body: &[u8]) -> Frame {
    match serde_json::from_slice(body) {
        Ok(value) => Frame::Message(value),
        // JavaScript clients can send half of a surrogate pair, which is not valid Unicode.
        // Losing that edit would leave the document wrong permanently; the replacement character
        // has the same length in UTF-16.
        Err(error) => match replace_lone_surrogates(body).map(|repaired| serde_json::from_slice(&repaired)) {
            Some(Ok(value)) => Frame::Message(value),
            _ => Frame::Malformed(format!("the message is not JSON: {error}")),
        },
    }
}

/// Replaces each escape of half a surrogate pair in `body` with the escape of U+FFFD; `None` if
/// there is none.
fn replace_lone_surrogates(body: &[u8]) -> Option<Vec<u8>> {
    let mut repaired = body.to_vec();
    let mut found = false;
    let mut at = 0;
    while at < body.len() {
        if body[at] != b'\\' {
            at += 1;
            continue;
        }
        match escape_at(body, at) {
            Some(0xD800..=0xDBFF) if matches!(escape_at(body, at + 6), Some(0xDC00..=0xDFFF)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                repaired[at + 2..at + 6].copy_from_slice(b"fffd");
                found = true;
                at += 6;
            }
            _ => at += 2,
        }
    }
    found.then_some(repaired)
}

/// The code unit of the escape `\uXXXX` at `at`.
fn escape_at(body: &[u8], at: usize) -> Option<u16> {
    let escape = body.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u").and_then(|digits| std::str::from_utf8(digits).ok())?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frame(body: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{body}", body.len())
    }

    /// All frames of `input`, read in pieces of `piece` bytes.
    async fn read(input: &[u8], piece: usize) -> Vec<Frame> {
        let (mut write, read) = tokio::io::duplex(piece);
        let input = input.to_vec();
        let writer = tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut write, &input).await });
        let mut frames = Frames::new(read);
        let mut all = Vec::new();
        while let Some(frame) = frames.next().await.unwrap() {
            all.push(frame);
        }
        writer.await.unwrap().unwrap();
        all
    }

    #[tokio::test]
    async fn frames_come_whole_however_they_are_cut() {
        let input = frame("{\"a\":1}") + "Content-Type: x\r\ncontent-length: 2\r\n\r\n[]" + &frame("\"é\"");
        for piece in [1, 2, 7, 64, 4096] {
            let expected = [json!({"a": 1}), json!([]), json!("é")].map(Frame::Message);
            assert_eq!(read(input.as_bytes(), piece).await, expected, "pieces of {piece}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_reported_and_the_next_is_read() {
        for bad in [
            frame("{\"a\":"),
            frame(&"[".repeat(200_000)),
            "Content-Length: x\r\n\r\n".into(),
            "Nonsense\r\n\r\n".into(),
            "x".repeat(20_000),
            format!("Content-Length: {}\r\n\r\n{}", MAX_BODY + 1, "x".repeat(MAX_BODY + 1)),
        ] {
            let all = read((bad.clone() + &frame("1")).as_bytes(), 1 << 16).await;
            let (last, others) = all.split_last().unwrap();
            assert_eq!(last, &Frame::Message(json!(1)));
            assert!(
                !others.is_empty() && others.iter().all(|frame| matches!(frame, Frame::Malformed(_))),
                "{others:?}"
            );
        }
    }

    #[tokio::test]
    async fn half_a_surrogate_pair_becomes_the_replacement_character() {
        let input = frame(r#"["\ud83d\ude00 \ud83d \ude00 \\ud83d"]"#);
        assert_eq!(read(input.as_bytes(), 64).await, [Frame::Message(json!(["😀 \u{fffd} \u{fffd} \\ud83d"]))]);
    }
}
