//! Changes of documents (edits, saves and closes), and the publication of diagnostics to the
//! clients.

use std::time::{Duration, Instant};

use super::Actor;
use crate::config::Chains;
use crate::session::chains::WHOLE_CHECK_DELAY;
use crate::session::documents::Key;
use crate::session::requests::in_place;
use crate::session::{ClientId, Feedback, Level};
use crate::shown::first_names;
use crate::text::document::{Document, Edit, EditError, opened_by};
use crate::text::position::{Position, PositionEncoding, to_position};

/// The time to wait for a chain's answer. After that, the other findings are published without
/// those of the edited form.
const CHAIN_ANSWER_WAIT: Duration = Duration::from_millis(40);
/// The number of documents that a message names.
const MAX_NAMED: usize = 5;

impl Actor {
    pub(super) fn open(&mut self, key: Key, version: i32, text: &str) {
        let document = in_place(text.len(), || Document::new(text, version));
        self.documents.open(key, document);
        // The document's diagnostics come from the image.
        self.image.start_if_idle();
    }

    pub(super) fn change(&mut self, key: Key, version: i32, mut edits: Vec<Edit>) {
        let check = &self.config(key.0).check;
        let (debounce, chained) = (check.debounce, check.chain != Chains::Off);
        let encoding = self.clients.get(&key.0).map_or_else(PositionEncoding::default, |client| client.encoding);
        let Some(open) = self.documents.get_mut(&key) else {
            return self.change_unopened(key, version, edits);
        };
        let whole = edits.iter().any(|edit| edit.range.is_none());
        let size = open.document.text().len_bytes() + edits.iter().map(|edit| edit.text.len()).sum::<usize>();
        let applied = in_place(size, || {
            if let [Edit { range: range @ None, text }] = edits.as_mut_slice() {
                *range = Some(narrow(&open.document, text, encoding));
            }
            let applied = open.document.apply(version, encoding, &edits)?;
            open.findings.change(&applied);
            Ok::<_, EditError>(applied)
        });
        match applied {
            Ok(applied) => {
                let now = Instant::now();
                open.changed(now + debounce);
                if whole {
                    open.saved.note_text_known();
                }
                open.edited_at = applied.last_place().unwrap_or(open.edited_at);
                if chained {
                    let withheld = || open.structure().withheld;
                    if self.chains.changed(&key, &open.document, &applied, withheld, now) {
                        open.postpone_check(now + debounce.max(WHOLE_CHECK_DELAY), now + CHAIN_ANSWER_WAIT);
                    }
                }
            }
            Err(error) => self.lose_text(key.0, Some(&key.1), &error.to_string()),
        }
    }

    /// Handles a change of a document that was not opened, or whose opening could not be
    /// understood. A change to a whole text opens it.
    fn change_unopened(&mut self, key: Key, version: i32, edits: Vec<Edit>) {
        let Some((text, rest)) = opened_by(edits) else {
            return self.lose_text(key.0, Some(&key.1), "it was changed and was not opened before");
        };
        self.open(key.clone(), version, &text);
        if !rest.is_empty() {
            self.change(key, version, rest);
        }
    }

    /// Handles a message that could not be understood, about the text of one document of a client,
    /// or of any open document. The text counts as unsaved and is not edited for agents until the
    /// client sends a whole text. The person is notified once.
    pub(super) fn lose_text(&mut self, client: ClientId, uri: Option<&str>, why: &str) {
        let mut lost = Vec::new();
        for ((owner, name), open) in self.documents.iter_mut() {
            if *owner == client && uri.is_none_or(|uri| uri == name) {
                if !open.saved.is_text_unknown() {
                    lost.push(name.clone());
                }
                open.saved.note_text_unknown();
            }
        }
        if let Some(uri) = uri
            && self.clients.contains_key(&client)
            && self.documents.lose(&(client, uri.to_owned()))
        {
            lost.push(uri.to_owned());
        }
        if !lost.is_empty() {
            let (names, it) = (first_names(&lost, MAX_NAMED), if lost.len() == 1 { "it" } else { "them" });
            let text = format!(
                "{names}: {why}. The text in the editor is not known any more: close {it} and open {it} again. \
                 Until then no agent edits {it}."
            );
            self.notify(client, Feedback::Message { level: Level::Error, text });
        }
    }

    pub(super) fn save(&mut self, key: Key) {
        let Some(open) = self.documents.get_mut(&key) else { return };
        let asd = open.is_asd();
        open.saved = open.saved.compare_again(open.path.as_deref(), open.document.text());
        open.due = Some(Instant::now());
        if asd {
            self.asd.forget();
            self.note_image_change();
        }
    }

    /// Returns a document, and the unit in which its client counts columns.
    pub(in crate::session) fn open_document(&mut self, key: &Key) -> Option<(Document, PositionEncoding)> {
        let encoding = self.clients.get(&key.0).map_or_else(PositionEncoding::default, |client| client.encoding);
        self.documents.get_mut(key).map(|open| (open.document.clone(), encoding))
    }

    pub(super) fn close(&mut self, key: Key) {
        let Some(open) = self.documents.remove(&key) else { return self.documents.closed_unknown(&key) };
        open.saved.closed();
        self.chains.close(&key);
        self.log.note_image_change();
        let text = open.document.text().clone();
        self.notify(key.0, Feedback::Diagnostics { uri: key.1, version: None, text, items: Vec::new() });
        self.forget_failure_without_documents();
    }

    /// Sends each client the new diagnostics of its documents.
    pub(super) fn publish(&mut self) {
        self.publish_if(true);
    }

    /// Sends each client the new diagnostics of its documents, except those that a chain's answer
    /// may soon replace.
    pub(super) fn publish_settled(&mut self) {
        self.publish_if(false);
    }

    fn publish_if(&mut self, all: bool) {
        for key in self.documents.publishable(all) {
            let Some(open) = self.documents.get_mut(&key) else { continue };
            let published = open.publish();
            if published.is_some() {
                self.log.note_image_change();
            }
            if let Some((version, items)) = published
                && let Some(client) = self.clients.get(&key.0)
            {
                let text = open.document.text().clone();
                client.notify(Feedback::Diagnostics { uri: key.1, version: Some(version), text, items });
            }
        }
    }
}

/// Returns the range of `document` that differs from a text that is to replace it completely, and
/// reduces the text to the difference. An editor that sends whole texts thus loses no more of its
/// diagnostics than one that sends changes.
fn narrow(document: &Document, text: &mut String, encoding: PositionEncoding) -> (Position, Position) {
    let old = document.text();
    // A position cannot lie between the two characters of a line break (LSP 3.17, "Text
    // Documents").
    let splits_line_break = |at: usize| old.get_char(at) == Some('\n') && at > 0 && old.get_char(at - 1) == Some('\r');
    let mut head = old.chars().zip(text.chars()).take_while(|(a, b)| a == b).count();
    if splits_line_break(head) {
        head -= 1;
    }
    let head_bytes: usize = text.chars().take(head).map(char::len_utf8).sum();
    let rest = &text[head_bytes..];
    let limit = (old.len_chars() - head).min(rest.chars().count());
    let ends = old.chars_at(old.len_chars()).reversed().zip(rest.chars().rev());
    let mut tail = ends.take(limit).take_while(|(a, b)| a == b).count();
    if splits_line_break(old.len_chars() - tail) {
        tail -= 1;
    }
    let tail_bytes: usize = rest.chars().rev().take(tail).map(char::len_utf8).sum();
    let changed = rest[..rest.len() - tail_bytes].to_string();
    let range = (to_position(old, head, encoding), to_position(old, old.len_chars() - tail, encoding));
    *text = changed;
    range
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_text_is_narrowed_to_what_differs() {
        for (old, new) in [
            ("(a)\n(b)\n(c)", "(a)\n(bb)\n(c)"),
            ("aaa", "aa"),
            ("aa", "aaa"),
            ("", "𝄞"),
            ("é𝄞é", "é"),
            ("a\r\nb", "a\nb"),
            ("a\nb", "a\r\nb"),
            ("x\r\n", "x\r"),
            ("same", "same"),
        ] {
            let mut document = Document::new(old, 1);
            let mut text = new.to_string();
            let range = narrow(&document, &mut text, PositionEncoding::Utf16);
            assert!(text.len() <= new.len());
            document.apply(2, PositionEncoding::Utf16, &[Edit { range: Some(range), text }]).unwrap();
            assert_eq!(document.text().to_string(), new, "{old:?} -> {new:?}");
        }
    }
}
