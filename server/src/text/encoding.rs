//! The encodings of source files: UTF-8, Latin-1, and UTF-16 with a byte order mark, in which some
//! editors save.

/// The decoded byte order mark.
pub(crate) const BOM: char = '\u{feff}';

/// Decodes a file's bytes. If they begin with a byte order mark of UTF-16, they are decoded as
/// UTF-16, and the mark is left out. Otherwise they are decoded as UTF-8, including the mark, or as
/// Latin-1 if they are not valid UTF-8. The image reads a system's files in the last two encodings
/// by the same rule (`read-source-file`).
pub fn decode(bytes: Vec<u8>) -> String {
    if let Some((text, _)) = utf_16(&bytes) {
        return text;
    }
    String::from_utf8(bytes).unwrap_or_else(|error| error.as_bytes().iter().copied().map(char::from).collect())
}

/// Decodes a file's bytes as editors do, without the byte order mark.
pub(crate) fn decode_as_edited(bytes: Vec<u8>) -> String {
    let text = decode(bytes);
    text.strip_prefix(BOM).map(str::to_owned).unwrap_or(text)
}

/// Returns a file's text without its byte order mark, as editors have it.
pub(crate) fn without_mark(text: &str) -> &str {
    text.strip_prefix(BOM).unwrap_or(text)
}

/// Encodes a text without a byte order mark in the encoding of a file that contains `bytes`.
///
/// # Errors
///
/// A description of the problem with the file, as the end of a sentence.
pub(crate) fn encode_like(bytes: &[u8], text: &str) -> Result<Vec<u8>, &'static str> {
    if let Some((_, order)) = utf_16(bytes) {
        return Ok(std::iter::once(BOM as u16).chain(text.encode_utf16()).flat_map(order.bytes).collect());
    }
    if has_wide_units(bytes) {
        return Err("is no text in UTF-8, Latin-1, or UTF-16 with a byte order mark");
    }
    if std::str::from_utf8(bytes).is_ok() {
        let mark = if bytes.starts_with("\u{feff}".as_bytes()) { "\u{feff}" } else { "" };
        return Ok([mark, text].concat().into_bytes());
    }
    text.chars()
        .map(u8::try_from)
        .collect::<Result<Vec<u8>, _>>()
        .map_err(|_| "is in Latin-1, which has no place for some character of the new text")
}

/// Returns true if the bytes are a text in an encoding with units of several bytes. Such bytes
/// begin with a byte order mark of UTF-16, or more than a third of them are zero.
fn has_wide_units(bytes: &[u8]) -> bool {
    matches!(bytes, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]) || 3 * memchr::memchr_iter(0, bytes).count() > bytes.len()
}

/// The order of the two bytes of a unit of UTF-16.
struct ByteOrder {
    unit: fn([u8; 2]) -> u16,
    bytes: fn(u16) -> [u8; 2],
}

/// Decodes UTF-16, without the byte order mark at the beginning. Returns `None` for bytes that do
/// not begin with this mark, or that are not valid UTF-16.
fn utf_16(bytes: &[u8]) -> Option<(String, ByteOrder)> {
    let order = match bytes {
        [0xff, 0xfe, ..] => ByteOrder { unit: u16::from_le_bytes, bytes: u16::to_le_bytes },
        [0xfe, 0xff, ..] => ByteOrder { unit: u16::from_be_bytes, bytes: u16::to_be_bytes },
        _ => return None,
    };
    let pairs = bytes[2..].chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    let units: Vec<u16> = pairs.map(|pair| (order.unit)([pair[0], pair[1]])).collect();
    Some((String::from_utf16(&units).ok()?, order))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_in_the_encoding_of_its_file() {
        for (bytes, text) in [
            (&b"(a)"[..], "(a)"),
            (b"\xef\xbb\xbf(a)", "\u{feff}(a)"),
            (b"(\xe9)", "(\u{e9})"),
            (b"\xff\xfe(\0\xe9\0)\0", "(\u{e9})"),
            (b"\xfe\xff\0(\xd8\x34\xdd\x1e\0)", "(\u{1d11e})"),
        ] {
            assert_eq!(decode(bytes.to_vec()), text, "{bytes:?}");
            let without = text.strip_prefix(BOM).unwrap_or(text);
            assert_eq!(encode_like(bytes, without).unwrap(), bytes, "{text:?}");
        }
    }

    #[test]
    fn what_an_encoding_has_no_place_for_is_refused() {
        assert!(encode_like(b"(\xe9)", "(\u{3042})").is_err(), "Latin-1");
        assert!(encode_like(b"(\0a\0)\0", "(b)").is_err(), "UTF-16 without a byte order mark");
        assert!(encode_like(b"\xff\xfe(\0a\0)", "(b)").is_err(), "half a unit of UTF-16");
        assert_eq!(encode_like(b"(a \"\0\")", "(b)").unwrap(), b"(b)", "a character of UTF-8");
    }
}
