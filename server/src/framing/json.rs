//! JSON bodies after `Content-Length` headers, as LSP and DAP send them. An unusable message is
//! reported, and the next one is read.

use std::borrow::Cow;
use std::io;

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::content_length::{self, FrameBuffer};

/// The maximum size of a body. A larger one is skipped without being stored.
const MAX_BODY: usize = 128 << 20;

/// A message that was read.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    /// A body that is JSON.
    Message(Value),
    /// An invalid message, with the reason.
    Malformed {
        why: String,
        /// True if the message may have been about the text of a document.
        about_text: bool,
    },
}

/// Reads messages from a client.
#[derive(Debug)]
pub(crate) struct Frames<R> {
    read: R,
    buffer: FrameBuffer,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// Creates a reader of the messages of `read`.
    pub(crate) fn new(read: R) -> Frames<R> {
        Frames { read, buffer: FrameBuffer::new(MAX_BODY) }
    }

    /// Returns the next message, or `None` at end of file. Cancellation safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.buffer.next() {
                return Ok(Some(match frame {
                    content_length::Frame::Body(body) => parse(body),
                    content_length::Frame::TooLong(length) => {
                        let why = format!("a message of {length} bytes was skipped: the limit is {MAX_BODY}");
                        Frame::Malformed { why, about_text: true }
                    }
                    // The skipped bytes may hold any message.
                    content_length::Frame::Malformed(why) => Frame::Malformed { why, about_text: true },
                }));
            }
            if self.read.read_buf(self.buffer.room()).await? == 0 {
                return Ok(None);
            }
        }
    }
}

fn parse(body: &[u8]) -> Frame {
    match from_client(body) {
        Ok(value) => Frame::Message(value),
        Err(error) => {
            Frame::Malformed { why: format!("the message is not JSON: {error}"), about_text: may_be_about_text(body) }
        }
    }
}

/// Parses a message of a client. Text that is not Unicode becomes replacement characters.
/// JavaScript clients can send half of a surrogate pair, and losing that edit would leave the
/// document wrong permanently. The replacement character has the same length in UTF-16.
///
/// # Errors
/// The message is not JSON, or has another shape.
pub(crate) fn from_client<T: DeserializeOwned>(body: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(body).or_else(|error| match repaired(body) {
        Some(repaired) => serde_json::from_slice(&repaired),
        None => Err(error),
    })
}

/// Returns true if a message that cannot be read may be a notification about the text of a
/// document.
pub(crate) fn may_be_about_text(body: &[u8]) -> bool {
    memchr::memmem::find(body, b"textDocument/did").is_some()
}

/// Returns `body` with replacement characters for text that is not Unicode: bytes that are not
/// UTF-8, and escapes of half a surrogate pair. Returns `None` if there is neither.
fn repaired(body: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(body);
    replace_lone_surrogates(text.as_bytes()).or(match text {
        Cow::Owned(text) => Some(text.into_bytes()),
        Cow::Borrowed(_) => None,
    })
}

/// Replaces each escape of half a surrogate pair in `body` with the escape of U+FFFD. Returns
/// `None` if there is none.
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

/// Returns the code unit of the escape `\uXXXX` at `at`.
fn escape_at(body: &[u8], at: usize) -> Option<u16> {
    let escape = body.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u").and_then(|digits| std::str::from_utf8(digits).ok())?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::super::content_length::framed;
    use super::*;

    /// Reads all messages of `input` in pieces of `piece` bytes.
    async fn read(input: &[u8], piece: usize) -> Vec<Frame> {
        let (mut write, read) = tokio::io::duplex(piece);
        let input = input.to_vec();
        let writer = tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut write, &input).await });
        let mut messages = Frames::new(read);
        let mut all = Vec::new();
        while let Some(message) = messages.next().await.unwrap() {
            all.push(message);
        }
        writer.await.unwrap().unwrap();
        all
    }

    #[tokio::test]
    async fn messages_come_whole_however_they_are_cut() {
        let input = [framed(b"{\"a\":1}"), framed(b"[]"), framed("\"é\"".as_bytes())].concat();
        for piece in [1, 2, 7, 64, 4096] {
            let expected = [json!({"a": 1}), json!([]), json!("é")].map(Frame::Message);
            assert_eq!(read(&input, piece).await, expected, "pieces of {piece}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_reported_and_the_next_is_read() {
        let deep = "[".repeat(200_000);
        let long = "x".repeat(MAX_BODY + 1);
        for bad in [framed(b"{\"a\":"), framed(deep.as_bytes()), framed(long.as_bytes()), b"Nonsense\r\n\r\n".to_vec()]
        {
            let all = read(&[bad, framed(b"1")].concat(), 1 << 16).await;
            assert!(matches!(&all[..], [Frame::Malformed { .. }, Frame::Message(one)] if *one == json!(1)), "{all:?}");
        }
    }

    #[tokio::test]
    async fn a_message_that_the_end_cuts_off_is_none() {
        assert_eq!(read(b"Content-Length: 10\r\n\r\n{}", 64).await, []);
    }

    #[tokio::test]
    async fn half_a_surrogate_pair_becomes_the_replacement_character() {
        let input = framed(r#"["\ud83d\ude00 \ud83d \ude00 \\ud83d"]"#.as_bytes());
        assert_eq!(read(&input, 64).await, [Frame::Message(json!(["😀 \u{fffd} \u{fffd} \\ud83d"]))]);
    }

    #[tokio::test]
    async fn bytes_that_are_not_utf_8_become_replacement_characters() {
        let input = framed(b"[\"\xff \\ud83d\"]");
        assert_eq!(read(&input, 64).await, [Frame::Message(json!(["\u{fffd} \u{fffd}"]))]);
    }

    #[tokio::test]
    async fn an_invalid_message_about_a_text_is_told_as_one() {
        let skipped = b"Content-Length: abc\r\n\r\n{\"method\": \"textDocument/didChange\"}".to_vec();
        for (input, about_text) in [
            (framed(b"{\"method\": \"textDocument/didChange\", "), true),
            (framed(b"{\"method\": "), false),
            (skipped, true),
        ] {
            let all = read(&input, 64).await;
            assert!(matches!(all[..], [Frame::Malformed { about_text: told, .. }] if told == about_text), "{all:?}");
        }
    }
}
