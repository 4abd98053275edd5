//! The scanner: Common Lisp text to tokens, by the standard syntax (CLHS 2.2) as SBCL's reader has it (SBCL `src/code/reader.lisp`).
//!
//! It never fails and never panics; it takes linear time. Offsets of this file are bytes of the text it was given.
//! Dispatching macro characters it does not know (`#?`, `#@`, ...) are taken as a prefix of the datum that follows.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TokenKind {
    /// `(` or `#(` or `#3(`.
    Open,
    /// `)`.
    Close,
    /// `"..."`.
    String,
    /// A symbol or number, or what reads as one object without a datum after it: `foo`, `|a b|`, `12`, `#\a`, `#:g`, `#*101`, `#1#`.
    Atom,
    /// Something that makes one object with the datum after it: `'` `` ` `` `,` `,@` `,.` `#'` `#.` `#1=` `#p` `#x` ...
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

/// What the end of the text cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Nothing: the token is whole.
    None,
    /// The closing `"`.
    String,
    /// A closing `|#`.
    Comment,
    /// The closing `|` of the one at this byte.
    Bar(usize),
    /// The character after the `\` at this byte, or after `#\`.
    Escape(usize),
}

/// A token and where it is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its first byte.
    pub start: usize,
    /// One past its last byte.
    pub end: usize,
    /// What is missing of it.
    pub cut: Cut,
    /// The first `(` at the start of a line inside a string or `|...|`: a sign that its end is missing. See [`Suspect`].
    pub suspect: Option<Suspect>,
}

/// Where a definition seems to begin inside a string or a `|...|`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspect {
    /// The `"` or `|` that opens it.
    pub opening: usize,
    /// The `(` at the start of a line inside it.
    pub resume: usize,
    /// Whether the text after the line start reads like a definition, or what follows the end does not look like an end.
    pub strong: bool,
}

const CONSTITUENT: u8 = 0;
const WHITE: u8 = 1;
const TERMINATING: u8 = 2;
const ESCAPE: u8 = 3;
const BAR: u8 = 4;

/// The syntax type of each byte; bytes of multi-byte characters are constituents. White space as SBCL's standard readtable.
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
}

impl<'a> Scanner<'a> {
    /// Scan a text from its start.
    pub fn new(text: &'a str) -> Self {
        Scanner { text: text.as_bytes(), at: 0, before: None }
    }

    /// Scan part of a text, from byte `at` of it, where no token is under way. `before` is the byte before the part, if any.
    pub(crate) fn within(text: &'a str, at: usize, before: Option<u8>) -> Self {
        Scanner { text: text.as_bytes(), at, before }
    }

    /// The byte the next token is looked for at.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Go back (or on) to a byte at which a token begins.
    pub(crate) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    #[inline]
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    #[inline]
    fn token(&self, kind: TokenKind, start: usize) -> Token {
        Token { kind, start, end: self.at, cut: Cut::None, suspect: None }
    }

    /// Whether a byte is the first of a line.
    #[inline]
    pub(crate) fn at_line_start(&self, at: usize) -> bool {
        let before = if at == 0 { self.before } else { self.text.get(at - 1).copied() };
        matches!(before, None | Some(b'\n' | b'\r'))
    }

    fn string(&mut self, start: usize) -> Token {
        self.at += 1;
        let mut resume = None;
        let mut cut = Cut::String;
        while let Some(byte) = self.peek(0) {
            match byte {
                b'"' => {
                    self.at += 1;
                    cut = Cut::None;
                    break;
                }
                b'\\' => self.at += 2,
                b'(' => {
                    if resume.is_none() && self.at_line_start(self.at) {
                        resume = Some(self.at);
                    }
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.text.len());
        let suspect = resume.map(|resume| self.suspect(start, resume, cut == Cut::None));
        Token { cut, suspect, ..self.token(TokenKind::String, start) }
    }

    #[cold]
    fn suspect(&self, opening: usize, resume: usize, closed: bool) -> Suspect {
        let rest = &self.text[resume + 1..];
        let starts = |word: &str| rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()));
        let defines = ["def", "in-package", "declaim", "eval-when", "cl:def"].into_iter().any(starts);
        let glued = closed && self.peek(0).is_some_and(|next| SYNTAX[next as usize] == CONSTITUENT);
        Suspect { opening, resume, strong: defines || glued || !closed }
    }

    /// The rest of a symbol or number, from a constituent or an escape on; nothing if there is none.
    fn token_tail(&mut self, start: usize) -> Token {
        let mut cut = Cut::None;
        let mut suspect = None;
        while let Some(byte) = self.peek(0) {
            match SYNTAX[byte as usize] {
                CONSTITUENT => self.at += 1,
                ESCAPE => {
                    if self.at + 1 >= self.text.len() {
                        cut = Cut::Escape(self.at);
                    }
                    self.at = self.past_escaped(self.at + 1);
                }
                BAR => {
                    let (bar_cut, bar_suspect) = self.bar();
                    cut = bar_cut;
                    suspect = suspect.or(bar_suspect);
                }
                _ => break,
            }
        }
        Token { cut, suspect, ..self.token(TokenKind::Atom, start) }
    }

    /// One past the whole character at `at`, so that a token never ends inside a character.
    fn past_escaped(&self, at: usize) -> usize {
        let mut end = (at + 1).min(self.text.len());
        while end < self.text.len() && self.text[end] & 0xC0 == 0x80 {
            end += 1;
        }
        end
    }

    fn bar(&mut self) -> (Cut, Option<Suspect>) {
        let opening = self.at;
        self.at += 1;
        let mut resume = None;
        let mut cut = Cut::Bar(opening);
        while let Some(byte) = self.peek(0) {
            match byte {
                b'|' => {
                    self.at += 1;
                    cut = Cut::None;
                    break;
                }
                b'\\' => self.at += 2,
                b'(' => {
                    if resume.is_none() && self.at_line_start(self.at) {
                        resume = Some(self.at);
                    }
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.text.len());
        (cut, resume.map(|resume| self.suspect(opening, resume, cut == Cut::None)))
    }

    fn line_comment(&mut self, start: usize) -> Token {
        while let Some(byte) = self.peek(0) {
            if byte == b'\n' {
                break;
            }
            self.at += 1;
        }
        self.token(TokenKind::LineComment, start)
    }

    /// From after `#|`; pairs do not overlap (SBCL `sharp-vertical-bar`).
    fn block_comment(&mut self, start: usize) -> Token {
        let mut level = 1usize;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            match (byte, self.peek(0)) {
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
        Token { cut: Cut::Comment, ..self.token(TokenKind::BlockComment, start) }
    }

    fn sharp(&mut self, start: usize) -> Token {
        self.at += 1;
        while self.peek(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        let Some(byte) = self.peek(0) else {
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
            // `#)`, `# ` and the like are the reader's to refuse.
            b')' => self.token(TokenKind::Atom, start),
            b'"' => self.token(TokenKind::Unknown, start),
            _ if SYNTAX[byte as usize] == WHITE => self.token(TokenKind::Atom, start),
            _ => {
                self.at = self.past_escaped(self.at);
                self.token(TokenKind::Unknown, start)
            }
        }
    }

    #[inline]
    fn single(&mut self, kind: TokenKind, start: usize) -> Token {
        self.at += 1;
        self.token(kind, start)
    }
}

impl Iterator for Scanner<'_> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        let byte = loop {
            let byte = self.peek(0)?;
            if SYNTAX[byte as usize] != WHITE {
                break byte;
            }
            self.at += 1;
        };
        let start = self.at;
        Some(match byte {
            b'(' => self.single(TokenKind::Open, start),
            b')' => self.single(TokenKind::Close, start),
            b'"' => self.string(start),
            b';' => self.line_comment(start),
            b'#' => self.sharp(start),
            b'\'' | b'`' => self.single(TokenKind::Prefix, start),
            b',' => {
                self.at += 1;
                if matches!(self.peek(0), Some(b'@' | b'.')) {
                    self.at += 1;
                }
                self.token(TokenKind::Prefix, start)
            }
            _ => self.token_tail(start),
        })
    }
}
