//! The scanner, which splits Common Lisp text into tokens by the standard syntax (CLHS 2.2) as
//! implemented by SBCL's reader (SBCL `src/code/reader.lisp`).
//!
//! The scanner never fails or panics, and takes linear time. Offsets are bytes of the given text.
//! Unknown dispatching macro characters (`#?`, `#@`, ...) are taken as a prefix of the datum that
//! may follow.

use super::cancellation;

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
    FeatureConditional,
    /// A dispatching macro character that the standard does not define; a datum may follow.
    Unknown,
    /// `; ...` without its line break, and a `#!` line at the very start.
    LineComment,
    /// `#| ... |#`, nested.
    BlockComment,
}

/// The delimiter or character that a token lacks because the text ends inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unterminated {
    /// Nothing: the token is whole.
    No,
    /// The closing `"`.
    String,
    /// A closing `|#`.
    BlockComment,
    /// The closing `|`.
    Bar,
    /// The character after a `\` or `#\`.
    Escape,
}

/// A token and its position in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// The kind of the token.
    pub kind: TokenKind,
    /// The delimiter or character that the token lacks.
    pub unterminated: Unterminated,
    /// The first byte.
    pub start: usize,
    /// The end, one past the last byte.
    pub end: usize,
}

/// Evidence that the closing delimiter of a string or `|...|` is missing: a definition seems to
/// begin inside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingDelimiter {
    /// The byte of the opening `"` or `|`.
    pub opening: usize,
    /// The byte of the `(` at the start of a line, at which reading goes on.
    pub resume: usize,
}

const CONSTITUENT: u8 = 0;
const WHITE: u8 = 1;
const TERMINATING: u8 = 2;
const ESCAPE: u8 = 3;
const BAR: u8 = 4;

/// The syntax type of each byte. Bytes of multi-byte characters are constituents. White space is
/// that of SBCL's standard readtable.
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
    position: usize,
    /// The byte before `text` in the whole text; `None` if `text` is its start.
    preceding: Option<u8>,
    missing_delimiter: Option<MissingDelimiter>,
    /// The byte of the `|` or `\` of the last token that ended as [`Unterminated::Bar`] or
    /// [`Unterminated::Escape`].
    unterminated_at: usize,
}

/// Returns the index of the first byte from `at` on for which `accepts` is true, or the length of
/// the text. Tests sixteen bytes at a time, so that the compiler generates vector code.
#[inline(always)]
fn find_byte(text: &[u8], mut at: usize, accepts: impl Fn(u8) -> bool) -> usize {
    while let Some(block) = text.get(at..at + 16) {
        if block.iter().fold(false, |found, byte| found | accepts(*byte)) {
            break;
        }
        at += 16;
    }
    while at < text.len() && !accepts(text[at]) {
        at += 1;
    }
    at
}

impl<'a> Scanner<'a> {
    /// Scans a text from its start.
    pub fn new(text: &'a str) -> Self {
        Self::with_preceding(text, None)
    }

    /// Scans a part of a text. The part begins outside of every token; `#!` at its start is no
    /// comment.
    pub fn inside(text: &'a str) -> Self {
        Self::with_preceding(text, Some(b'\n'))
    }

    /// Scans a part of a text, given the byte before it. The part begins outside of every token.
    pub(super) fn with_preceding(text: &'a str, preceding: Option<u8>) -> Self {
        Scanner { text: text.as_bytes(), position: 0, preceding, missing_delimiter: None, unterminated_at: 0 }
    }

    /// Returns the byte from which the next token is scanned.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Moves back (or forward) to a byte at which a token begins.
    pub(super) fn seek(&mut self, position: usize) {
        self.position = position;
        self.missing_delimiter = None;
    }

    /// Removes and returns the first missing delimiter found since the last call or
    /// [`seek`](Scanner::seek).
    #[inline]
    pub(super) fn take_missing_delimiter(&mut self) -> Option<MissingDelimiter> {
        self.missing_delimiter.take()
    }

    /// Returns the byte of the `|` or `\` of the last token that ended as [`Unterminated::Bar`] or
    /// [`Unterminated::Escape`].
    pub fn unterminated_at(&self) -> usize {
        self.unterminated_at
    }

    /// Returns true if a byte is the first of a line. Lines are those of the document (`cr_lines`
    /// of ropey), not those of the reader, whose comments a lone CR does not end.
    #[inline]
    pub(super) fn at_line_start(&self, at: usize) -> bool {
        let preceding = if at == 0 { self.preceding } else { self.text.get(at - 1).copied() };
        matches!(preceding, None | Some(b'\n' | b'\r'))
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.get(self.position).copied()
    }

    #[inline]
    fn token(&self, kind: TokenKind, start: usize) -> Token {
        Token { kind, start, end: self.position, unterminated: Unterminated::No }
    }

    /// Returns the token that ends with the byte at the position.
    #[inline]
    fn one_byte_token(&mut self, kind: TokenKind, start: usize) -> Token {
        self.position += 1;
        self.token(kind, start)
    }

    /// Moves from an opening `"` or `|` beyond the closing one. Returns false if the text ends
    /// first.
    #[inline(always)]
    fn skip_delimited(&mut self, delimiter: u8) -> bool {
        let opening = self.position;
        let mut resume = None;
        let mut at = opening + 1;
        let closed = loop {
            at = find_byte(self.text, at, |byte| byte == delimiter || byte == b'\\' || byte == b'(');
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
        self.position = at.min(self.text.len());
        if let Some(resume) = resume {
            self.record_missing_delimiter(opening, resume, closed);
        }
        closed
    }

    /// Records `opening` as unterminated if a definition seems to begin at `resume`, if there is no
    /// closing delimiter, or if a constituent follows the closing one directly.
    #[cold]
    fn record_missing_delimiter(&mut self, opening: usize, resume: usize, closed: bool) {
        let rest = &self.text[resume + 1..];
        let starts_with =
            |word: &str| rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word.as_bytes()));
        let begins_definition = ["def", "in-package", "declaim", "eval-when", "cl:def"].into_iter().any(starts_with);
        let constituent_follows = self.peek().is_some_and(|next| SYNTAX[next as usize] == CONSTITUENT);
        if self.missing_delimiter.is_none() && (!closed || begins_definition || constituent_follows) {
            self.missing_delimiter = Some(MissingDelimiter { opening, resume });
        }
    }

    /// Scans the rest of a symbol or number, from a constituent or an escape on. It may be empty.
    #[inline]
    fn token_tail(&mut self, start: usize) -> Token {
        let mut at = self.position;
        while at < self.text.len() && SYNTAX[self.text[at] as usize] == CONSTITUENT {
            at += 1;
        }
        self.position = at;
        match self.text.get(at) {
            Some(b'\\' | b'|') => self.escaped_tail(start),
            _ => self.token(TokenKind::Atom, start),
        }
    }

    #[cold]
    fn escaped_tail(&mut self, start: usize) -> Token {
        let mut unterminated = Unterminated::No;
        while let Some(byte) = self.peek() {
            match SYNTAX[byte as usize] {
                CONSTITUENT => self.position += 1,
                ESCAPE => {
                    if self.position + 1 >= self.text.len() {
                        unterminated = Unterminated::Escape;
                        self.unterminated_at = self.position;
                    }
                    self.position = self.past_character(self.position + 1);
                }
                BAR => {
                    let opening = self.position;
                    if !self.skip_delimited(b'|') {
                        unterminated = Unterminated::Bar;
                        self.unterminated_at = opening;
                    }
                }
                _ => break,
            }
        }
        Token { unterminated, ..self.token(TokenKind::Atom, start) }
    }

    /// Returns the end of the whole character at `at`, so that a token never ends inside a
    /// character.
    fn past_character(&self, at: usize) -> usize {
        let mut end = (at + 1).min(self.text.len());
        while end < self.text.len() && self.text[end] & 0xC0 == 0x80 {
            end += 1;
        }
        end
    }

    fn line_comment(&mut self, start: usize) -> Token {
        self.position = find_byte(self.text, self.position, |byte| byte == b'\n');
        self.token(TokenKind::LineComment, start)
    }

    /// Scans a block comment after its `#|`. A `#` or `|` belongs to at most one `#|` or `|#` (SBCL
    /// `sharp-vertical-bar`).
    fn block_comment(&mut self, start: usize) -> Token {
        let mut level = 1usize;
        loop {
            self.position = find_byte(self.text, self.position, |byte| byte == b'|' || byte == b'#');
            let Some(byte) = self.peek() else {
                return Token {
                    unterminated: Unterminated::BlockComment,
                    ..self.token(TokenKind::BlockComment, start)
                };
            };
            self.position += 1;
            match (byte, self.peek()) {
                (b'|', Some(b'#')) => {
                    self.position += 1;
                    level -= 1;
                    if level == 0 {
                        return self.token(TokenKind::BlockComment, start);
                    }
                }
                (b'#', Some(b'|')) => {
                    self.position += 1;
                    level += 1;
                }
                _ => {}
            }
        }
    }

    /// Scans a dispatching macro character from its `#`.
    fn dispatching_macro(&mut self, start: usize) -> Token {
        self.position += 1;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.position += 1;
        }
        let Some(byte) = self.peek() else {
            return self.token(TokenKind::Atom, start);
        };
        match byte {
            b'(' => self.one_byte_token(TokenKind::Open, start),
            b'|' => {
                self.position += 1;
                self.block_comment(start)
            }
            b'\\' => self.token_tail(start),
            b':' | b'*' => {
                self.position += 1;
                self.token_tail(start)
            }
            b'#' => self.one_byte_token(TokenKind::Atom, start),
            b'+' | b'-' => self.one_byte_token(TokenKind::FeatureConditional, start),
            b'\'' | b'.' | b'=' => self.one_byte_token(TokenKind::Prefix, start),
            b'a' | b'A' | b'b' | b'B' | b'c' | b'C' | b'o' | b'O' | b'p' | b'P' | b'r' | b'R' | b's' | b'S' | b'x'
            | b'X' => self.one_byte_token(TokenKind::Prefix, start),
            b'!' if start == 0 && self.preceding.is_none() => self.line_comment(start),
            b'"' => self.token(TokenKind::Unknown, start),
            // The reader, not the scanner, refuses `#)`, `# ` and the like.
            b')' => self.token(TokenKind::Atom, start),
            _ if SYNTAX[byte as usize] == WHITE => self.token(TokenKind::Atom, start),
            _ => {
                self.position = self.past_character(self.position);
                self.token(TokenKind::Unknown, start)
            }
        }
    }
}

impl Iterator for Scanner<'_> {
    type Item = Token;

    #[inline]
    fn next(&mut self) -> Option<Token> {
        cancellation::unwind_if_cancelled();
        let mut at = self.position;
        let byte = loop {
            let byte = *self.text.get(at)?;
            if SYNTAX[byte as usize] != WHITE {
                break byte;
            }
            at += 1;
        };
        self.position = at;
        let start = at;
        Some(match byte {
            b'(' => self.one_byte_token(TokenKind::Open, start),
            b')' => self.one_byte_token(TokenKind::Close, start),
            b'"' => {
                let unterminated = if self.skip_delimited(b'"') { Unterminated::No } else { Unterminated::String };
                Token { unterminated, ..self.token(TokenKind::String, start) }
            }
            b';' => self.line_comment(start),
            b'#' => self.dispatching_macro(start),
            b'\'' | b'`' => self.one_byte_token(TokenKind::Prefix, start),
            b',' => {
                self.position += 1;
                if matches!(self.peek(), Some(b'@' | b'.')) {
                    self.position += 1;
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

    fn unterminated(text: &str) -> Option<Unterminated> {
        Scanner::new(text).last().map(|token| token.unterminated)
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
        assert_eq!(unterminated("#|#|#"), Some(Unterminated::BlockComment));
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
    fn prefixes_feature_conditionals_and_the_rest_of_the_dispatching_macros() {
        for prefix in
            ["'", "`", ",", ",@", ",.", "#'", "#.", "#1=", "#p", "#P", "#b", "#o", "#x", "#36r", "#c", "#2a", "#s"]
        {
            assert_eq!(tokens(&format!("{prefix}(")), [(Prefix, prefix), (Open, "(")]);
        }
        assert_eq!(
            tokens("#+a #-b"),
            [(FeatureConditional, "#+"), (Atom, "a"), (FeatureConditional, "#-"), (Atom, "b")]
        );
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
    fn what_a_token_at_the_end_of_the_text_lacks() {
        for (text, expected) in [
            ("\"a", Unterminated::String),
            ("\"a\\", Unterminated::String),
            ("a|b", Unterminated::Bar),
            ("a\\", Unterminated::Escape),
            ("#\\", Unterminated::Escape),
            ("#| |", Unterminated::BlockComment),
            ("a", Unterminated::No),
            ("#", Unterminated::No),
            ("#12", Unterminated::No),
        ] {
            assert_eq!(unterminated(text), Some(expected), "{text}");
        }
    }
}
