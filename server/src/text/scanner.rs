//! The scanner: Common Lisp text to tokens, by the standard syntax (CLHS 2.2) as implemented by
//! SBCL's reader (SBCL `src/code/reader.lisp`).
//!
//! The scanner never fails or panics, and takes linear time. Offsets are bytes of the given text.
//! Unknown dispatching macro characters (`#?`, `#@`, ...) are taken as a prefix of the datum that
//! follows.

use super::stop;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// `(` or `#(` or `#3(`.
    Open,
    /// `)`.
    Close,
    /// `"..."`.
    String,
    /// A symbol or number, or another token that reads as one object without a datum after it:
    /// `foo`, `|a b|`, `12`, `#\a`, `#:g`, `#*101`, `#1#`.
    Atom,
    /// A token that makes one object with the datum after it: `'` `` ` `` `,` `,@` `,.` `#'` `#.`
    /// `#1=` `#p` `#x` ...
    Prefix,
    /// `#+` or `#-`: a feature expression and a datum follow.
    Guard,
    /// A dispatching macro character that the standard does not define; a datum may follow.
    Unknown,
    /// `; ...` without its line break, and a `#!` line at the very start.
    LineComment,
    /// `#| ... |#`, nested.
    BlockComment,
}

/// The part of a token cut off by the end of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Nothing: the token is whole.
    None,
    /// The closing `"`.
    String,
    /// A closing `|#`.
    Comment,
    /// The closing `|`.
    Bar,
    /// The character after a `\` or `#\`.
    Escape,
}

/// A token and where it is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// The kind of the token.
    pub kind: TokenKind,
    /// The missing part.
    pub cut: Cut,
    /// The first byte.
    pub start: usize,
    /// The end, one past the last byte.
    pub end: usize,
}

/// A place inside a string or a `|...|` at which a definition seems to begin: a sign that the
/// end of the string or symbol is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    /// The `"` or `|` that opens it.
    pub opening: usize,
    /// The `(` at the start of a line inside it.
    pub resume: usize,
}

const CONSTITUENT: u8 = 0;
const WHITE: u8 = 1;
const TERMINATING: u8 = 2;
const ESCAPE: u8 = 3;
const BAR: u8 = 4;

/// The syntax type of each byte; bytes of multi-byte characters are constituents. White space as
/// in SBCL's standard readtable.
static SYNTAX: [u8; 256] = {
    let mut table = [CONSTITUENT; 256];
    let white = b" \t\n\r\x0c\x7f";
    let mut i = 0;
    while i < white.len() {
        table[white[i] as usize] = WHITE;
        i += 1;
    }
    let terminating = b"\"'(),;`";
    i = 0;
    while i < terminating.len() {
        table[terminating[i] as usize] = TERMINATING;
        i += 1;
    }
    table[b'\\' as usize] = ESCAPE;
    table[b'|' as usize] = BAR;
    table
};

/// Tokens of a text, one after the other.
#[derive(Debug, Clone)]
pub struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// The byte before the text; `None` at the very start.
    before: Option<u8>,
    suspect: Option<Suspect>,
    opening: usize,
}

/// The first byte from `at` on that `stop` accepts, or the end. Tests sixteen bytes at a time,
/// so that the compiler generates vector code.
#[inline(always)]
fn find(text: &[u8], mut at: usize, stop: impl Fn(u8) -> bool) -> usize {
    while let Some(block) = text.get(at..at + 16) {
        if block.iter().fold(false, |found, byte| found | stop(*byte)) {
            break;
        }
        at += 16;
    }
    while at < text.len() && !stop(text[at]) {
        at += 1;
    }
    at
}

impl<'a> Scanner<'a> {
    /// Scans a text from its start.
    pub fn new(text: &'a str) -> Self {
        Self::within(text, None)
    }

    /// Scans a text that is a part of another, and begins outside of every token: `#!` at its
    /// start is no comment.
    pub fn of_part(text: &'a str) -> Self {
        Self::within(text, Some(b'\n'))
    }

    /// Scans a part of a text that begins outside of every token. `before` is the byte before the
    /// part, if any.
    pub(super) fn within(text: &'a str, before: Option<u8>) -> Self {
        Scanner { text: text.as_bytes(), at: 0, before, suspect: None, opening: 0 }
    }

    /// The byte the next token is looked for at.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Moves back (or forward) to a byte at which a token begins.
    pub(super) fn seek(&mut self, at: usize) {
        self.at = at;
        self.suspect = None;
    }

    /// The first suspect since this was asked last.
    #[inline]
    pub(super) fn take_suspect(&mut self) -> Option<Suspect> {
        self.suspect.take()
    }

    /// For a token that is cut ([`Cut::Bar`], [`Cut::Escape`]): the byte of the causing `|` or
    /// `\`.
    pub fn cut_opening(&self) -> usize {
        self.opening
    }

    /// Returns true if a byte is the first of a line.
    #[inline]
    pub(super) fn at_line_start(&self, at: usize) -> bool {
        let before = if at == 0 { self.before } else { self.text.get(at - 1).copied() };
        matches!(before, None | Some(b'\n' | b'\r'))
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[inline]
    fn token(&self, kind: TokenKind, start: usize) -> Token {
        Token { kind, start, end: self.at, cut: Cut::None }
    }

    #[inline]
    fn single(&mut self, kind: TokenKind, start: usize) -> Token {
        self.at += 1;
        self.token(kind, start)
    }

    /// Moves from an opening `"` or `|` beyond the closing one; false if the text ends first.
    #[inline(always)]
    fn delimited(&mut self, delimiter: u8) -> bool {
        let opening = self.at;
        let mut resume = None;
        let mut at = opening + 1;
        let closed = loop {
            at = find(self.text, at, |byte| byte == delimiter || byte == b'\\' || byte == b'(');
            match self.text.get(at) {
                None => break false,
                Some(b'\\') => at += 2,
                Some(b'(') => {
                    if resume.is_none() && self.at_line_start(at) {
                        resume = Some(at);
                    }
                    at += 1;
                }
                Some(_) => {
                    at += 1;
                    break true;
                }
            }
        };
        self.at = at.min(self.text.len());
        if let Some(resume) = resume {
            self.consider(opening, resume, closed);
        }
        closed
    }

    /// Records a string from `opening` whose end seems to be missing before `resume`: a definition
    /// seems to begin there, or text follows directly behind the string's end, as it never does
    /// behind a string.
    #[cold]
    fn consider(&mut self, opening: usize, resume: usize, closed: bool) {
        let rest = &self.text[resume + 1..];
        let starts = |word: &str| rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()));
        let defines = ["def", "in-package", "declaim", "eval-when", "cl:def"].into_iter().any(starts);
        let glued = self.peek().is_some_and(|next| SYNTAX[next as usize] == CONSTITUENT);
        if self.suspect.is_none() && (!closed || defines || glued) {
            self.suspect = Some(Suspect { opening, resume });
        }
    }

    /// The rest of a symbol or number, from a constituent or an escape on; empty if there is none.
    #[inline]
    fn token_tail(&mut self, start: usize) -> Token {
        let mut at = self.at;
        while at < self.text.len() && SYNTAX[self.text[at] as usize] == CONSTITUENT {
            at += 1;
        }
        self.at = at;
        match self.text.get(at) {
            Some(b'\\' | b'|') => self.escaped_tail(start),
            _ => self.token(TokenKind::Atom, start),
        }
    }

    #[cold]
    fn escaped_tail(&mut self, start: usize) -> Token {
        let mut cut = Cut::None;
        while let Some(byte) = self.peek() {
            match SYNTAX[byte as usize] {
                CONSTITUENT => self.at += 1,
                ESCAPE => {
                    if self.at + 1 >= self.text.len() {
                        cut = Cut::Escape;
                        self.opening = self.at;
                    }
                    self.at = self.past_character(self.at + 1);
                }
                BAR => {
                    let opening = self.at;
                    if !self.delimited(b'|') {
                        cut = Cut::Bar;
                        self.opening = opening;
                    }
                }
                _ => break,
            }
        }
        Token { cut, ..self.token(TokenKind::Atom, start) }
    }

    /// The end of the whole character at `at`, so that a token never ends inside a character.
    fn past_character(&self, at: usize) -> usize {
        let mut end = (at + 1).min(self.text.len());
        while end < self.text.len() && self.text[end] & 0xC0 == 0x80 {
            end += 1;
        }
        end
    }

    fn line_comment(&mut self, start: usize) -> Token {
        self.at = find(self.text, self.at, |byte| byte == b'\n');
        self.token(TokenKind::LineComment, start)
    }

    /// Scans a block comment from after its `#|`; pairs do not overlap (SBCL `sharp-vertical-bar`).
    fn block_comment(&mut self, start: usize) -> Token {
        let mut level = 1usize;
        loop {
            self.at = find(self.text, self.at, |byte| byte == b'|' || byte == b'#');
            let Some(byte) = self.peek() else {
                return Token { cut: Cut::Comment, ..self.token(TokenKind::BlockComment, start) };
            };
            self.at += 1;
            match (byte, self.peek()) {
                (b'|', Some(b'#')) => {
                    self.at += 1;
                    level -= 1;
                    if level == 0 {
                        return self.token(TokenKind::BlockComment, start);
                    }
                }
                (b'#', Some(b'|')) => {
                    self.at += 1;
                    level += 1;
                }
                _ => {}
            }
        }
    }

    fn sharp(&mut self, start: usize) -> Token {
        self.at += 1;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let Some(byte) = self.peek() else {
            return self.token(TokenKind::Atom, start);
        };
        match byte {
            b'(' => self.single(TokenKind::Open, start),
            b'|' => {
                self.at += 1;
                self.block_comment(start)
            }
            b'\\' => self.token_tail(start),
            b':' | b'*' => {
                self.at += 1;
                self.token_tail(start)
            }
            b'#' => self.single(TokenKind::Atom, start),
            b'+' | b'-' => self.single(TokenKind::Guard, start),
            b'\'' | b'.' | b'=' => self.single(TokenKind::Prefix, start),
            b'a' | b'A' | b'b' | b'B' | b'c' | b'C' | b'o' | b'O' | b'p' | b'P' | b'r' | b'R' | b's' | b'S' | b'x'
            | b'X' => self.single(TokenKind::Prefix, start),
            b'!' if start == 0 && self.before.is_none() => self.line_comment(start),
            // The reader, not the scanner, refuses `#)`, `# ` and the like.
            b')' => self.token(TokenKind::Atom, start),
            b'"' => self.token(TokenKind::Unknown, start),
            _ if SYNTAX[byte as usize] == WHITE => self.token(TokenKind::Atom, start),
            _ => {
                self.at = self.past_character(self.at);
                self.token(TokenKind::Unknown, start)
            }
        }
    }
}

impl Iterator for Scanner<'_> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        stop::point();
        let mut at = self.at;
        let byte = loop {
            let byte = *self.text.get(at)?;
            if SYNTAX[byte as usize] != WHITE {
                break byte;
            }
            at += 1;
        };
        self.at = at;
        let start = at;
        Some(match byte {
            b'(' => self.single(TokenKind::Open, start),
            b')' => self.single(TokenKind::Close, start),
            b'"' => {
                let cut = if self.delimited(b'"') { Cut::None } else { Cut::String };
                Token { cut, ..self.token(TokenKind::String, start) }
            }
            b';' => self.line_comment(start),
            b'#' => self.sharp(start),
            b'\'' | b'`' => self.single(TokenKind::Prefix, start),
            b',' => {
                self.at += 1;
                if matches!(self.peek(), Some(b'@' | b'.')) {
                    self.at += 1;
                }
                self.token(TokenKind::Prefix, start)
            }
            _ => self.token_tail(start),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::TokenKind::*;
    use super::*;

    fn tokens(text: &str) -> Vec<(TokenKind, &str)> {
        Scanner::new(text).map(|token| (token.kind, &text[token.start..token.end])).collect()
    }

    fn cut(text: &str) -> Option<Cut> {
        Scanner::new(text).last().map(|token| token.cut)
    }

    #[test]
    fn lists_strings_and_symbols() {
        assert_eq!(tokens("(a b)"), [(Open, "("), (Atom, "a"), (Atom, "b"), (Close, ")")]);
        assert_eq!(
            tokens("#(1) #3(2)"),
            [(Open, "#("), (Atom, "1"), (Close, ")"), (Open, "#3("), (Atom, "2"), (Close, ")")]
        );
        assert_eq!(tokens("a\"b\"c"), [(Atom, "a"), (String, "\"b\""), (Atom, "c")]);
        assert_eq!(tokens(r#""a\"b\\" x"#), [(String, r#""a\"b\\""#), (Atom, "x")]);
        assert_eq!(tokens(r"a\(b |c (d| e|f;|g"), [(Atom, r"a\(b"), (Atom, "|c (d|"), (Atom, "e|f;|g")]);
        assert_eq!(tokens(r"\| |a\|b|"), [(Atom, r"\|"), (Atom, r"|a\|b|")]);
        assert_eq!(tokens("a#b a#|b|"), [(Atom, "a#b"), (Atom, "a#|b|")]);
    }

    #[test]
    fn comments_nest_and_their_pairs_do_not_overlap() {
        assert_eq!(
            tokens("; (c\n#|a #|b|# c|#d"),
            [(LineComment, "; (c"), (BlockComment, "#|a #|b|# c|#"), (Atom, "d")]
        );
        assert_eq!(tokens("#||##||#"), [(BlockComment, "#||#"), (BlockComment, "#||#")]);
        assert_eq!(cut("#|#|#"), Some(Cut::Comment));
        assert_eq!(
            tokens("; a\r(b)\nc"),
            [(LineComment, "; a\r(b)"), (Atom, "c")],
            "a lone CR does not end a comment in Lisp"
        );
        assert_eq!(tokens("#!/bin/sbcl (\na"), [(LineComment, "#!/bin/sbcl ("), (Atom, "a")]);
    }

    #[test]
    fn characters_take_what_follows_the_backslash_whatever_it_is() {
        for character in [r"#\(", r"#\)", r#"#\""#, r"#\;", r"#\|", r"#\\", r"#\Space", r"#\é", r"#\ "] {
            assert_eq!(tokens(&format!("{character})")), [(Atom, character), (Close, ")")]);
        }
    }

    #[test]
    fn prefixes_guards_and_the_rest_of_the_dispatching_macros() {
        for prefix in
            ["'", "`", ",", ",@", ",.", "#'", "#.", "#1=", "#p", "#P", "#b", "#o", "#x", "#36r", "#c", "#2a", "#s"]
        {
            assert_eq!(tokens(&format!("{prefix}(")), [(Prefix, prefix), (Open, "(")]);
        }
        assert_eq!(tokens("#+a #-b"), [(Guard, "#+"), (Atom, "a"), (Guard, "#-"), (Atom, "b")]);
        assert_eq!(tokens("#:g #*101 #1#"), [(Atom, "#:g"), (Atom, "#*101"), (Atom, "#1#")]);
        assert_eq!(
            tokens("#?\"a\" #32@(b) #\"c\""),
            [
                (Unknown, "#?"),
                (String, "\"a\""),
                (Unknown, "#32@"),
                (Open, "("),
                (Atom, "b"),
                (Close, ")"),
                (Unknown, "#"),
                (String, "\"c\"")
            ]
        );
    }

    #[test]
    fn white_space_is_what_sbcl_s_reader_takes_for_it() {
        assert_eq!(tokens("a\x0cb\tc\x7fd\re"), ["a", "b", "c", "d", "e"].map(|atom| (Atom, atom)));
        assert_eq!(tokens("a\u{a0}b\x0bc"), [(Atom, "a\u{a0}b\x0bc")]);
    }

    #[test]
    fn what_the_end_of_the_text_cuts_off() {
        for (text, expected) in [
            ("\"a", Cut::String),
            ("\"a\\", Cut::String),
            ("a|b", Cut::Bar),
            ("a\\", Cut::Escape),
            ("#\\", Cut::Escape),
            ("#| |", Cut::Comment),
            ("a", Cut::None),
            ("#", Cut::None),
            ("#12", Cut::None),
        ] {
            assert_eq!(cut(text), Some(expected), "{text}");
        }
    }
}
