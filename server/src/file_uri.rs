//! `file:` URIs and paths (RFC 8089), so that the session needs no protocol crate.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Returns the path of a `file:` URI of this machine; `None` for other schemes (`untitled:`), other
/// hosts, relative paths and malformed escapes.
pub fn path_of_uri(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file:")?;
    let path = match rest.strip_prefix("//") {
        Some(authority) => authority.strip_prefix("localhost").unwrap_or(authority),
        None => rest,
    };
    let path = path.split(['?', '#']).next().filter(|path| path.starts_with('/'))?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                // `from_str_radix` takes a sign.
                let digits = std::str::from_utf8(&digits).ok().filter(|_| digits.iter().all(u8::is_ascii_hexdigit))?;
                u8::from_str_radix(digits, 16).ok()?
            }
            byte => byte,
        });
    }
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

/// Returns the `file:` URI of an absolute path.
pub fn uri_of_path(path: &Path) -> String {
    let mut uri = String::from("file://");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' | b'+' | b'@' => {
                uri.push(byte.into())
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_round_trip() {
        for path in ["/a/b.lisp", "/with space/é#?%.lisp", "/c:/x", "/"] {
            assert_eq!(path_of_uri(&uri_of_path(Path::new(path))).as_deref(), Some(Path::new(path)));
        }
    }

    #[test]
    fn only_files_of_this_machine_have_paths() {
        assert_eq!(path_of_uri("file:///c%3A/x.lisp"), Some("/c:/x.lisp".into()));
        assert_eq!(path_of_uri("file://localhost/x"), Some("/x".into()));
        assert_eq!(path_of_uri("file:/x"), Some("/x".into()));
        for other in ["untitled:Untitled-1", "file://host/x", "file://", "file:x", "http://h/x"] {
            assert_eq!(path_of_uri(other), None, "{other}");
        }
        for malformed in ["file:///%4", "file:///%zz", "file:///%+1", "file:///%-0", "file:///%4/x"] {
            assert_eq!(path_of_uri(malformed), None, "{malformed}");
        }
    }
}
