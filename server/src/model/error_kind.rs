//! The kind of an error, in the same spelling for all front ends: lower case with hyphens
//! (`image-unavailable`).

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

/// The kind of an error. Programs may rely on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ErrorKind(Cow<'static, str>);

impl ErrorKind {
    /// The call found no image.
    pub const UNAVAILABLE: ErrorKind = ErrorKind(Cow::Borrowed("image-unavailable"));
    /// The call lost the image.
    pub const LOST: ErrorKind = ErrorKind(Cow::Borrowed("image-lost"));
    /// The image could not serve the call now.
    pub const BUSY: ErrorKind = ErrorKind(Cow::Borrowed("busy"));
    /// The call was interrupted.
    pub const INTERRUPTED: ErrorKind = ErrorKind(Cow::Borrowed("interrupted"));
    /// The arguments are wrong.
    pub const BAD_ARGUMENTS: ErrorKind = ErrorKind(Cow::Borrowed("bad-arguments"));
    /// A person, a setting or the tool refused the call.
    pub const REFUSED: ErrorKind = ErrorKind(Cow::Borrowed("refused"));
    /// The subject of the call does not exist.
    pub const NOT_FOUND: ErrorKind = ErrorKind(Cow::Borrowed("not-found"));
    /// The subject of the call no longer exists.
    pub const STALE: ErrorKind = ErrorKind(Cow::Borrowed("stale"));
    /// The image does not have the package of the call.
    pub const PACKAGE_NOT_FOUND: ErrorKind = ErrorKind(Cow::Borrowed("package-not-found"));
    /// The loaded code signalled an error.
    pub const LOAD_ERROR: ErrorKind = ErrorKind(Cow::Borrowed("load-error"));
    /// A recording has no answer to the question.
    pub const NO_ANSWER: ErrorKind = ErrorKind(Cow::Borrowed("no-answer"));
    /// The call of a function that is to be recorded was not made yet.
    pub const WAITING: ErrorKind = ErrorKind(Cow::Borrowed("waiting"));
    /// Code cannot be recorded here.
    pub const NOT_RECORDABLE: ErrorKind = ErrorKind(Cow::Borrowed("not-recordable"));
    /// An expansion was stopped.
    pub const STOPPED: ErrorKind = ErrorKind(Cow::Borrowed("stopped"));
    /// The image's answer cannot be read.
    pub const INTERNAL: ErrorKind = ErrorKind(Cow::Borrowed("internal"));

    /// Returns the spelling of the kind.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the kind in the spelling of `data.type` in the contracts of hot reload and of the
    /// file tools, such as `PACKAGE_NOT_FOUND`.
    pub fn of_contract(&self) -> String {
        self.0.to_uppercase().replace('-', "_")
    }
}

/// Converts a kind from its own spelling, or from that of the contracts. The image's word for wrong
/// parameters of an operation (`bad-params`, docs/wire.md) becomes the kind of wrong arguments.
impl From<&str> for ErrorKind {
    fn from(written: &str) -> Self {
        match written.to_lowercase().replace('_', "-") {
            kind if kind == "bad-params" => ErrorKind::BAD_ARGUMENTS,
            kind => ErrorKind(Cow::Owned(kind)),
        }
    }
}

impl From<String> for ErrorKind {
    fn from(written: String) -> Self {
        ErrorKind::from(written.as_str())
    }
}

/// Compares with a kind spelled as in [`ErrorKind::as_str`].
impl PartialEq<str> for ErrorKind {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

/// Compares with a kind spelled as in [`ErrorKind::as_str`].
impl PartialEq<&str> for ErrorKind {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

impl From<ErrorKind> for String {
    fn from(kind: ErrorKind) -> Self {
        kind.0.into_owned()
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spelling_is_read_and_one_is_written() {
        for written in ["image-lost", "IMAGE_LOST", "IMAGE-LOST"] {
            let kind = ErrorKind::from(written);
            assert_eq!(
                (&kind, kind.as_str(), kind.of_contract().as_str()),
                (&ErrorKind::LOST, "image-lost", "IMAGE_LOST")
            );
        }
        assert_eq!(ErrorKind::from("bad-params"), ErrorKind::BAD_ARGUMENTS);
    }
}
