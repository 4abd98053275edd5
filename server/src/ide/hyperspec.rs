//! The pages of the Common Lisp HyperSpec about symbols, format directives and reader macros.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::text::datum::{Form, Kind};
use crate::text::document::Document;
use crate::text::scanner::{Scanner, TokenKind};

/// The pages of format directives (CLHS 22.3), by the directive's character in upper case.
const DIRECTIVES: [(&str, &str); 40] = [
    ("C", "22_caa"),
    ("%", "22_cab"),
    ("&", "22_cac"),
    ("|", "22_cad"),
    ("~", "22_cae"),
    ("R", "22_cba"),
    ("D", "22_cbb"),
    ("B", "22_cbc"),
    ("O", "22_cbd"),
    ("X", "22_cbe"),
    ("F", "22_cca"),
    ("E", "22_ccb"),
    ("G", "22_ccc"),
    ("$", "22_ccd"),
    ("A", "22_cda"),
    ("S", "22_cdb"),
    ("W", "22_cdc"),
    ("_", "22_cea"),
    ("I", "22_cec"),
    ("/", "22_ced"),
    ("T", "22_cfa"),
    ("<", "22_cfb"),
    (">", "22_cfc"),
    ("*", "22_cga"),
    ("[", "22_cgb"),
    ("]", "22_cgc"),
    ("{", "22_cgd"),
    ("}", "22_cge"),
    ("?", "22_cgf"),
    ("(", "22_cha"),
    (")", "22_chb"),
    ("P", "22_chc"),
    (";", "22_cia"),
    ("^", "22_cib"),
    ("\n", "22_cic"),
    ("NEWLINE", "22_cic"),
    ("TILDE", "22_cae"),
    ("JUSTIFICATION", "22_cfb"),
    ("LOGICAL BLOCK", "22_ceb"),
    ("GOTO", "22_cga"),
];

/// The pages of reader macros (CLHS 2.4), by their written form with letters in upper case.
const READER_MACROS: [(&str, &str); 28] = [
    ("(", "02_da"),
    (")", "02_db"),
    ("'", "02_dc"),
    (";", "02_dd"),
    ("\"", "02_de"),
    ("`", "02_df"),
    (",", "02_dg"),
    ("#", "02_dh"),
    ("#\\", "02_dha"),
    ("#'", "02_dhb"),
    ("#(", "02_dhc"),
    ("#*", "02_dhd"),
    ("#:", "02_dhe"),
    ("#.", "02_dhf"),
    ("#B", "02_dhg"),
    ("#O", "02_dhh"),
    ("#X", "02_dhi"),
    ("#R", "02_dhj"),
    ("#C", "02_dhk"),
    ("#A", "02_dhl"),
    ("#S", "02_dhm"),
    ("#P", "02_dhn"),
    ("#=", "02_dho"),
    ("##", "02_dhp"),
    ("#+", "02_dhq"),
    ("#-", "02_dhr"),
    ("#|", "02_dhs"),
    ("#<", "02_dht"),
];

/// Returns the name of the page about a name as written: a symbol of COMMON-LISP in any case, a
/// format directive (`~A`, `~:[`) or a reader macro (`#'`). `Manuals` converts the name to an
/// address.
pub fn page(written: &str) -> Option<&'static str> {
    let name = written.trim();
    symbol(name).or_else(|| directive(name)).or_else(|| reader_macro(name))
}

/// Returns the name of the page about a symbol of COMMON-LISP.
pub fn page_of_symbol(name: &str) -> Option<&'static str> {
    symbol(name)
}

fn reader_macro(written: &str) -> Option<&'static str> {
    let wanted = written.to_uppercase();
    READER_MACROS.iter().find(|(macro_, _)| *macro_ == wanted).map(|(_, page)| *page)
}

/// Returns the symbols of COMMON-LISP in lower case, each with the name of its page.
pub fn symbols() -> impl Iterator<Item = (&'static str, &'static str)> {
    include_str!("hyperspec.txt").lines().filter_map(|line| line.split_once(' '))
}

fn symbol(written: &str) -> Option<&'static str> {
    static PAGES: OnceLock<HashMap<&'static str, &'static str>> = OnceLock::new();
    let pages = PAGES.get_or_init(|| symbols().collect());
    let name = written.to_lowercase();
    let name = name.strip_prefix("common-lisp:").or_else(|| name.strip_prefix("cl:")).unwrap_or(&name);
    pages.get(name).copied()
}

fn directive(written: &str) -> Option<&'static str> {
    let rest = written.strip_prefix('~')?;
    let character = rest.trim_start_matches(|char: char| char.is_ascii_digit() || ",:@'+-#vV".contains(char));
    let character = if character.is_empty() { rest.get(rest.len().saturating_sub(1)..)? } else { character };
    let wanted = character.to_uppercase();
    DIRECTIVES.iter().find(|(name, _)| *name == wanted).map(|(_, page)| *page)
}

/// Returns the format directive around `offset` as written, and its span. Returns `None` outside of
/// strings.
pub fn directive_at(document: &Document, offset: usize) -> Option<(String, crate::text::Span)> {
    let form = Form::at(document, offset)?;
    let string = *form.path(offset).last().filter(|node| node.kind == Kind::String)?;
    let chars: Vec<char> = document.text().slice(string.span.start..string.span.end).chars().collect();
    let wanted = offset - string.span.start;
    let mut at = 0;
    while at < chars.len() {
        if chars[at] != '~' {
            at += 1;
            continue;
        }
        let mut end = at + 1;
        while end < chars.len() {
            match chars[end] {
                '\'' => end += 2,
                char if char.is_ascii_digit() || ",:@+-#vV".contains(char) => end += 1,
                _ => break,
            }
        }
        let end = (end + 1).min(chars.len());
        if at <= wanted && wanted < end {
            let span = crate::text::Span { start: string.span.start + at, end: string.span.start + end };
            return Some((chars[at..end].iter().collect(), span));
        }
        at = end;
    }
    None
}

/// Returns the reader macro at `offset` in the form of the table (`#'`, `#P`), and the span
/// of its characters.
pub fn reader_macro_at(document: &Document, offset: usize) -> Option<(String, crate::text::Span)> {
    let form = Form::at(document, offset)?;
    let byte = |chars: usize| form.source.char_indices().nth(chars).map_or(form.source.len(), |(byte, _)| byte);
    let at = byte(offset.saturating_sub(form.span.start));
    let token = Scanner::new(&form.source).take_while(|token| token.start <= at).find(|token| at < token.end)?;
    let text = form.source.get(token.start..token.end)?;
    let written = match token.kind {
        TokenKind::Prefix | TokenKind::FeatureConditional => text,
        TokenKind::Open if text.starts_with('#') => text,
        TokenKind::Atom if text.starts_with('#') => text,
        TokenKind::BlockComment => "#|",
        _ => return None,
    };
    // `#36r` becomes `#R`, `,@` becomes `,`, and `#\Space` becomes `#\`.
    let mut bare: String = written.chars().filter(|char| !char.is_ascii_digit()).collect();
    if bare.starts_with(',') {
        bare.truncate(1);
    }
    let macro_: String = bare.chars().take(if bare.starts_with('#') { 2 } else { 1 }).collect();
    let last = macro_.chars().last()?;
    let length = if matches!(macro_.as_str(), "##" | ",") { text.len() } else { text.find(last)? + last.len_utf8() };
    let end = token.start + length;
    if at >= end {
        return None;
    }
    reader_macro(&macro_).map(|_| (macro_.to_uppercase(), form.span_of(token.start, end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_name_has_its_page() {
        for (name, expected) in [
            ("with-slots", "m_w_slts"),
            ("CL:MAPCAR", "f_mapc_"),
            ("&key", "03_da"),
            ("~a", "22_cda"),
            ("~:[", "22_cgb"),
            ("~10,'0D", "22_cbb"),
            ("~#[", "22_cgb"),
            ("#'", "02_dhb"),
            ("#p", "02_dhn"),
        ] {
            assert_eq!(page(name), Some(expected), "{name}");
        }
        assert_eq!(page("no-such-name"), None);
        assert_eq!(page("~"), None);
        assert_eq!(symbols().count(), 978);
    }

    #[test]
    fn a_directive_is_found_in_a_string() {
        for (source, expected) in [
            ("(format t \"a ~10,'0‸D b\")", Some("~10,'0D")),
            ("(format t \"~‸a~s\")", Some("~a")),
            ("(format t \"a‸ ~a\")", None),
            ("(format t ‸x)", None),
        ] {
            let at = source.chars().position(|char| char == '‸').expect("a caret");
            let found = directive_at(&Document::new(&source.replace('‸', ""), 0), at);
            assert_eq!(found.map(|(written, _)| written).as_deref(), expected, "{source}");
        }
    }

    #[test]
    fn a_reader_macro_is_found_where_it_is_written() {
        for (source, expected) in [
            ("(f ‸'x)", Some("' '")),
            ("(f #‸'x)", Some("#' #'")),
            ("(f '‸x)", None),
            ("`(a ,‸@b)", Some(", ,@")),
            ("(f ‸#\\a)", Some("#\\ #\\")),
            ("(f #\\‸a)", None),
            ("(f #3‸6rZZ)", Some("#R #36r")),
            ("#‸+sbcl (f)", Some("#+ #+")),
            ("(f ‸#(1 2))", Some("#( #(")),
            ("(f #‸p\"x\")", Some("#P #p")),
            ("(f ‸(g))", None),
            ("(f #‸:g)", Some("#: #:")),
        ] {
            let at = source.chars().position(|char| char == '‸').expect("a caret");
            let document = Document::new(&source.replace('‸', ""), 0);
            let found = reader_macro_at(&document, at);
            let found = found.map(|(name, span)| format!("{name} {}", document.text().slice(span.start..span.end)));
            assert_eq!(found.as_deref(), expected, "{source}");
        }
    }
}
