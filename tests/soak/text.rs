//! A document as its editor has it, and random edits of it.

use serde_json::{Value, json};

/// The pieces of documents: correct forms, forms with findings, broken ones, and characters of one
/// to four bytes.
const PIECES: [&str; 14] = [
    "(defun one (x) (+ x 1))\n",
    "(defun two (unused) 2)\n",
    "(defun three () (no-such-function 3))\n",
    "(defvar *four* \"ä€𝒳\")\n",
    "(let ((y 5)) (list y))\n",
    "; a comment λ\n",
    "(",
    ")",
    "\"",
    "#|",
    "|#",
    "\n",
    "𝒳",
    " é",
];
/// The number of characters above which edits only remove text, because an agent is shown a longer
/// file only in part.
const LARGE: usize = 220;

/// A document.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    characters: Vec<char>,
}

impl Text {
    /// The whole text.
    pub(crate) fn whole(&self) -> String {
        self.characters.iter().collect()
    }

    /// Replaces the text.
    pub(crate) fn set(&mut self, text: &str) {
        self.characters = text.chars().collect();
    }

    /// Makes one random edit, and returns it as a change of LSP, in UTF-16.
    pub(crate) fn edit(&mut self, random: &mut fastrand::Rng) -> Value {
        let length = self.characters.len();
        let start = random.usize(..=length);
        let most = if length > LARGE { length } else { 40 };
        let removed = if random.bool() { random.usize(..=most.min(length - start)) } else { 0 };
        let piece = if length > LARGE { "" } else { random.choice(PIECES).unwrap_or_default() };
        let range = json!({"start": self.position(start), "end": self.position(start + removed)});
        self.characters.splice(start..start + removed, piece.chars());
        json!({"range": range, "text": piece})
    }

    fn position(&self, at: usize) -> Value {
        let before = &self.characters[..at];
        let line = before.iter().filter(|character| **character == '\n').count();
        let begin = before.iter().rposition(|character| *character == '\n').map_or(0, |newline| newline + 1);
        let column: usize = before[begin..].iter().map(|character| character.len_utf16()).sum();
        json!({"line": line, "character": column})
    }
}

#[test]
fn an_edit_is_told_in_utf_16() {
    let mut text = Text::default();
    text.set("a\n𝒳é(");
    assert_eq!(text.position(4), json!({"line": 1, "character": 3}));
    let mut random = fastrand::Rng::with_seed(1);
    (0..500).for_each(|_| drop(text.edit(&mut random)));
    assert!(text.whole().chars().count() < LARGE + 100);
}
