//! Messages in a stream of bytes, as test clients read and write them.

use std::io::BufRead;
use std::ops::Range;

use serde_json::{Value, json};

const HEADER_END: &[u8] = b"\r\n\r\n";

/// The framing of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// LSP and DAP: `Content-Length` headers.
    Headers,
    /// MCP over stdio: one message a line.
    Lines,
}

/// Returns the bytes of a message, in one piece.
pub fn framed(body: impl AsRef<[u8]>, framing: Framing) -> Vec<u8> {
    let body = body.as_ref();
    match framing {
        Framing::Headers => [format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes(), body].concat(),
        Framing::Lines => [body, b"\n"].concat(),
    }
}

/// Returns the place of the first message's body in `bytes`, if the message is whole. The message
/// ends with it.
///
/// # Panics
/// If a header has no usable `Content-Length`.
pub fn first_body(bytes: &[u8], framing: Framing) -> Option<Range<usize>> {
    if framing == Framing::Lines {
        return bytes.iter().position(|byte| *byte == b'\n').map(|end| 0..end + 1);
    }
    let start = bytes.windows(HEADER_END.len()).position(|end| end == HEADER_END)? + HEADER_END.len();
    let end = start + content_length(&bytes[..start]);
    (bytes.len() >= end).then_some(start..end)
}

/// Reads the next message; one that is no JSON as a text. `None`: there are no more.
pub fn read_message(from: &mut impl BufRead, framing: Framing) -> Option<Value> {
    let mut body = Vec::new();
    let is_whole = |bytes: &[u8]| framing == Framing::Lines || bytes.ends_with(HEADER_END);
    while body.is_empty() || !is_whole(&body) {
        from.read_until(b'\n', &mut body).ok().filter(|read| *read > 0)?;
    }
    if framing == Framing::Headers {
        body = vec![0; content_length(&body)];
        from.read_exact(&mut body).ok()?;
    }
    let not_json =
        |error: serde_json::Error| json!({"not_json": String::from_utf8_lossy(&body), "why": error.to_string()});
    Some(serde_json::from_slice(&body).unwrap_or_else(not_json))
}

fn content_length(header: &[u8]) -> usize {
    let header = String::from_utf8_lossy(header);
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        if name.eq_ignore_ascii_case("content-length") { value.trim().parse().ok() } else { None }
    };
    header.lines().find_map(value).unwrap_or_else(|| panic!("no Content-Length in {header:?}"))
}
