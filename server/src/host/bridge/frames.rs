//! LSP's message framing (LSP 3.17, "Base Protocol"): finds the messages in copied bytes.

/// The limit of a header, in bytes; anything longer is not LSP.
const MAX_HEADER: usize = 4096;
/// The limit of a message, in bytes.
const MAX_BODY: usize = 1 << 30;

/// Finds the messages in a stream of bytes that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Frames {
    buffer: Vec<u8>,
    body: Option<usize>,
}

/// The bytes are not LSP's framing; nothing after them can be parsed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a header with Content-Length, got {0:?}")]
pub(super) struct NotFramed(String);

impl Frames {
    /// Adds the next piece, and calls `on_message` with each message that it completes.
    pub(super) fn push(&mut self, piece: &[u8], mut on_message: impl FnMut(&[u8])) -> Result<(), NotFramed> {
        self.buffer.extend_from_slice(piece);
        let mut done = 0;
        loop {
            let rest = &self.buffer[done..];
            match self.body {
                Some(length) if rest.len() >= length => {
                    on_message(&rest[..length]);
                    done += length;
                    self.body = None;
                }
                Some(_) => break,
                None => match header(rest) {
                    Ok(Some((header, body))) => {
                        done += header;
                        self.body = Some(body);
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.buffer.drain(..done);
                        return Err(error);
                    }
                },
            }
        }
        self.buffer.drain(..done);
        if self.buffer.is_empty() {
            self.buffer.shrink_to(1 << 16);
        }
        Ok(())
    }

    /// Returns the bytes of an incomplete message, with its header.
    pub(super) fn unfinished(&self) -> Vec<u8> {
        let mut bytes =
            self.body.map_or_else(Vec::new, |length| format!("Content-Length: {length}\r\n\r\n").into_bytes());
        bytes.extend_from_slice(&self.buffer);
        bytes
    }
}

/// Returns the lengths of the header and of the body, once the header is complete.
fn header(bytes: &[u8]) -> Result<Option<(usize, usize)>, NotFramed> {
    let not_framed = || NotFramed(String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned());
    let Some(end) = bytes.windows(4).take(MAX_HEADER).position(|four| four == b"\r\n\r\n") else {
        let wrong_start = !bytes.is_empty() && !bytes[0].is_ascii_alphabetic();
        let is_line = bytes.contains(&b'\n') && !bytes.windows(2).any(|two| two == b"\r\n");
        return if bytes.len() > MAX_HEADER || wrong_start || is_line { Err(not_framed()) } else { Ok(None) };
    };
    let text = std::str::from_utf8(&bytes[..end]).map_err(|_| not_framed())?;
    let length = text.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok()).flatten()
    });
    length.filter(|length| *length <= MAX_BODY).map(|length| Some((end + 4, length))).ok_or_else(not_framed)
}

/// Returns a message with its header.
pub(super) fn framed(message: &serde_json::Value) -> Vec<u8> {
    with_header(message.to_string().as_bytes())
}

/// Returns the bytes of a message with a header.
pub(super) fn with_header(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn messages(pieces: &[&[u8]]) -> Result<Vec<String>, NotFramed> {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for piece in pieces {
            frames.push(piece, |message| found.push(String::from_utf8(message.to_vec()).unwrap()))?;
        }
        Ok(found)
    }

    #[test]
    fn messages_are_found_however_the_bytes_come() {
        let bytes =
            b"Content-Length: 2\r\n\r\n{}content-length:3\r\nContent-Type: x\r\n\r\n{ }Content-Length: 0\r\n\r\n";
        let whole = messages(&[bytes]).unwrap();
        assert_eq!(whole, ["{}", "{ }", ""]);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(messages(&single).unwrap(), whole);
    }

    #[test]
    fn what_is_not_framed_is_told() {
        for bytes in
            [&b"{\"jsonrpc\":\"2.0\"}\n"[..], b"hello\n", b"Content-Length: -1\r\n\r\n", b"A: b\r\n\r\n", b"\xff\xfe"]
        {
            assert!(messages(&[bytes]).is_err(), "{bytes:?}");
        }
        assert!(messages(&[&[b'a'; MAX_HEADER + 10]]).is_err());
        assert_eq!(messages(&[b"Content-Len"]), Ok(vec![]));
    }
}
