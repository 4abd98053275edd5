//! Comparison of the text of an open document with its file, on separate threads.
//!
//! A client's `didOpen` does not say whether the text is the file's. After a hot exit, or a restart
//! of the client or of the host, the text may be unsaved work.

use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ropey::Rope;
use tokio::sync::watch;

use super::unsaved_marks::Marker;
use crate::fault::{self, Call};

/// The time limit of a comparison. A document whose file system does not answer counts as unsaved.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(3);

/// The result of the comparison of a document's text with its file.
#[derive(Debug, Clone)]
pub(super) struct Saved {
    /// True if the text was the file's when the document was opened or saved. `None` while the
    /// comparison runs.
    matched_file: watch::Receiver<Option<bool>>,
    /// True if the text has changed since.
    changed: bool,
    /// True if an edit could not be understood. The editor's text is then not known.
    text_unknown: bool,
    /// The mark of the file while its text is unsaved.
    marker: Option<Marker>,
}

impl Saved {
    /// Starts the comparison of the text of a document that was just opened or saved. Must be
    /// called within a Tokio runtime.
    pub(super) fn compare(path: Option<&Path>, text: &Rope, marker: Option<Marker>) -> Saved {
        let (sender, matched_file) = watch::channel(None);
        match path {
            None => drop(sender.send_replace(Some(false))),
            Some(path) => {
                let (path, text, marker) = (path.to_owned(), text.clone(), marker.clone());
                tokio::task::spawn_blocking(move || {
                    let same = is_text_of(&path, &text, false);
                    sender.send_replace(Some(same));
                    if let Some(marker) = marker {
                        marker.compared(same);
                    }
                });
            }
        }
        Saved { matched_file, changed: false, text_unknown: false, marker }
    }

    /// Records a change of the text.
    pub(super) fn changed(&mut self) {
        if !std::mem::replace(&mut self.changed, true)
            && let Some(marker) = &self.marker
        {
            marker.changed();
        }
    }

    /// Records an edit that could not be understood.
    pub(super) fn note_text_unknown(&mut self) {
        self.changed();
        self.text_unknown = true;
    }

    /// Records that the client sent its whole text.
    pub(super) fn note_text_known(&mut self) {
        self.text_unknown = false;
    }

    /// Returns true if the editor's text is not known.
    pub(super) fn is_text_unknown(&self) -> bool {
        self.text_unknown
    }

    /// Starts the comparison again for a text that was just saved.
    pub(super) fn compare_again(&self, path: Option<&Path>, text: &Rope) -> Saved {
        let marker = self.marker.as_ref().map(Marker::next);
        Saved { text_unknown: self.text_unknown, ..Saved::compare(path, text, marker) }
    }

    /// Records that the client closed the document, which then has no unsaved text.
    pub(super) fn closed(&self) {
        if let Some(marker) = &self.marker {
            marker.closed();
        }
    }

    /// Returns the state that is known without a disk access. A text counts as unsaved until the
    /// comparison shows otherwise.
    pub(super) fn is_unsaved(&self) -> bool {
        self.changed || self.text_unknown || *self.matched_file.borrow() != Some(true)
    }

    /// Returns true if the text is unsaved work. Reads the disk.
    ///
    /// A text that was the file's and has not changed since is not unsaved work, even if the file
    /// has another text by now.
    pub(super) async fn differs(mut self, path: Option<PathBuf>, text: Rope) -> bool {
        if self.text_unknown {
            return true;
        }
        if !self.changed {
            let known = crate::steady::timeout(COMPARE_TIMEOUT, self.matched_file.wait_for(Option::is_some)).await;
            if known.is_ok_and(|known| known.is_ok_and(|was| *was == Some(true))) {
                return false;
            }
        }
        let Some(path) = path else { return true };
        // A changed text must equal the file's in every character, because a conversion of line
        // breaks is also unsaved work.
        let exact = self.changed;
        let look = tokio::task::spawn_blocking(move || is_text_of(&path, &text, exact));
        !crate::steady::timeout(COMPARE_TIMEOUT, look).await.is_ok_and(|same| same.unwrap_or(false))
    }
}

/// Returns true if the text of a file, decoded as an editor may decode it, equals `text`. Unless
/// `exact`, all kinds of line breaks are equal, because some editors (Emacs) always send line
/// feeds.
fn is_text_of(path: &Path, text: &Rope, exact: bool) -> bool {
    // NONBLOCK, so that a pipe does not block the thread.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let open = || {
        fault::point(Call::Open)?;
        std::fs::File::options().read(true).custom_flags(flags).open(path)
    };
    let Ok(mut file) = open() else { return false };
    // In every encoding, a text has at most four bytes for each character, a byte order mark, and
    // one more byte for each line break.
    let longest = text.len_chars() as u64 * 5 + 8;
    if !file.metadata().is_ok_and(|facts| facts.is_file() && facts.len() <= longest) {
        return false;
    }
    let mut bytes = Vec::new();
    if Read::take(&mut file, longest + 1).read_to_end(&mut bytes).is_err() {
        return false;
    }
    decodings(&bytes).any(|decoded| same(&decoded, text, exact))
}

/// Returns the texts that editors may show for the bytes of a file.
fn decodings(bytes: &[u8]) -> impl Iterator<Item = String> {
    let own = crate::text::decode(bytes.to_vec());
    let lossy = std::str::from_utf8(bytes).is_err().then(|| String::from_utf8_lossy(bytes).into_owned());
    std::iter::once(own).chain(lossy)
}

fn same(decoded: &str, text: &Rope, exact: bool) -> bool {
    let decoded = decoded.strip_prefix(crate::text::encoding::BOM).unwrap_or(decoded);
    let ours = text.chars().skip(usize::from(text.get_char(0) == Some('\u{feff}')));
    if exact {
        return ours.eq(decoded.chars());
    }
    line_feeds(ours).eq(line_feeds(decoded.chars()))
}

/// Returns the characters with each line break (LF, CR LF, CR) as a line feed.
fn line_feeds(chars: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    let mut after_return = false;
    chars.filter_map(move |c| {
        let second = c == '\n' && after_return;
        after_return = c == '\r';
        if second { None } else { Some(if c == '\r' { '\n' } else { c }) }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_compared_as_an_editor_decodes_the_file() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.lisp");
        for (bytes, text, loosely, exactly) in [
            (&b"(a)\n"[..], "(a)\n", true, true),
            (b"(a)\n", "(b)\n", false, false),
            (b"(a)\n", "(a)", false, false),
            (b"(a)", "(a)\n", false, false),
            (b"", "", true, true),
            (b"\xef\xbb\xbf(a)\n", "(a)\n", true, true),
            (b"\xef\xbb\xbf(a)\n", "\u{feff}(a)\n", true, true),
            (b"(a)\r\n(b)\r\n", "(a)\n(b)\n", true, false),
            (b"(a)\r\n(b)\r\n", "(a)\r\n(b)\r\n", true, true),
            (b"(a)\r(b)\r", "(a)\n(b)\n", true, false),
            (b"(a)\n\n", "(a)\n", false, false),
            ("(a \u{e9}\u{1d11e})".as_bytes(), "(a \u{e9}\u{1d11e})", true, true),
            (b"(a \xe9)", "(a \u{e9})", true, true),
            (b"(a \xe9)", "(a \u{fffd})", true, true),
            (b"(a \xe9)", "(a e)", false, false),
            (b"\xff\xfe(\0a\0)\0\n\0", "(a)\n", true, true),
            (b"\xfe\xff\0(\0a\0)\0\r\0\n", "(a)\r\n", true, true),
            (b"\xff\xfe(\0a\0)\0", "(b)", false, false),
            ("(1234)".repeat(100).as_bytes(), "(1234)", false, false),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let rope = Rope::from_str(text);
            assert_eq!(is_text_of(&path, &rope, false), loosely, "{bytes:?} {text:?}");
            assert_eq!(is_text_of(&path, &rope, true), exactly, "{bytes:?} {text:?}");
        }
        let none = Rope::from_str("");
        assert!(!is_text_of(&place.path().join("none.lisp"), &none, false), "a file that is not there has no text");
        assert!(!is_text_of(place.path(), &none, false), "nor has a directory");
        let pipe = place.path().join("pipe.lisp");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        assert!(!is_text_of(&pipe, &none, false), "nor has a pipe, and nobody waits for one");
    }
}
