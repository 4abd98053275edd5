//! The messages within the bytes that an editor's bridge copies.

use super::protocol::quoted;
use crate::framing::content_length::{self, FrameBuffer};

/// The maximum length of a message, in bytes.
const MAX_BODY: usize = 1 << 30;

/// Finds the messages in a stream of bytes that arrives in arbitrary parts.
#[derive(Debug)]
pub(super) struct Frames {
    buffer: FrameBuffer,
}

/// The error for bytes that cannot be a message of LSP, or for a message over the limit. The bytes
/// after them cannot be parsed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}; got {got}")]
pub(super) struct NotFramed {
    why: String,
    got: String,
}

impl Default for Frames {
    fn default() -> Frames {
        Frames { buffer: FrameBuffer::new(MAX_BODY) }
    }
}

impl Frames {
    /// Adds the next bytes, and calls `on_message` with each message that they complete.
    pub(super) fn push(&mut self, piece: &[u8], mut on_message: impl FnMut(&[u8])) -> Result<(), NotFramed> {
        self.buffer.room().extend_from_slice(piece);
        loop {
            match self.buffer.next_or_fail() {
                Ok(Some(message)) => on_message(message),
                Ok(None) => return Ok(()),
                Err(content_length::NotFramed(why)) => {
                    return Err(NotFramed { why, got: quoted(self.buffer.unfinished()) });
                }
            }
        }
    }

    /// Returns the bytes of an incomplete message, including its header. After an error, returns
    /// all bytes that were not passed on.
    pub(super) fn unfinished(&self) -> &[u8] {
        self.buffer.unfinished()
    }
}

/// Returns a message with its header.
pub(super) fn framed(message: &serde_json::Value) -> Vec<u8> {
    content_length::framed(message.to_string().as_bytes())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_passed_on_and_the_rest_is_kept() {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        let bytes = b"Content-Length: 2\r\n\r\n{}Content-Length: 3\r\n\r\n{ ";
        assert_eq!(frames.push(bytes, |message| found.push(message.to_vec())), Ok(()));
        assert_eq!((found, frames.unfinished()), (vec![b"{}".to_vec()], &b"Content-Length: 3\r\n\r\n{ "[..]));
    }

    #[test]
    fn what_is_not_framed_is_told_by_its_start() {
        let mut frames = Frames::default();
        let error = frames.push(b"hello\n", |_| {}).unwrap_err().to_string();
        assert!(error.starts_with("expected `Content-Length: N`") && error.ends_with("; got \"hello\\n\""), "{error}");
        assert_eq!(frames.unfinished(), b"hello\n");
    }
}
