//! The written form of symbols and numbers.

/// A symbol, read from its written form by the standard rules.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// The package prefix: `""` for a keyword, `None` without a prefix or with `#:`.
    pub package: Option<String>,
    /// The name, as the reader converts it: upper-case except for escaped characters.
    pub name: String,
}

/// Returns the symbol that an atom denotes, or `None` for a number, a character or another atom.
pub fn symbol(written: &str) -> Option<Symbol> {
    if let Some(name) = written.strip_prefix("#:") {
        return Some(Symbol { package: None, name: unescaped(name) });
    }
    if written.starts_with('#') || written.is_empty() || is_number(written) || written.bytes().all(|byte| byte == b'.')
    {
        return None;
    }
    match colon(written) {
        None => Some(Symbol { package: None, name: unescaped(written) }),
        Some(at) => {
            let name = written[at..].trim_start_matches(':');
            Some(Symbol { package: Some(unescaped(&written[..at])), name: unescaped(name) })
        }
    }
}

/// Returns an endless sequence of candidates for a name that is not in use: `base`, `base-2`,
/// `base-3`, ...
pub fn numbered(base: &str) -> impl Iterator<Item = String> {
    std::iter::once(base.to_owned()).chain((2_u32..).map(move |number| format!("{base}-{number}")))
}

/// Returns the byte offset of the name after the package prefix; 0 without a prefix.
pub fn prefix_length(written: &str) -> usize {
    colon(written).map_or(0, |at| {
        let rest = &written[at..];
        at + rest.len() - rest.trim_start_matches(':').len()
    })
}

/// Returns the written form of a symbol's name: in lower case, or between bars.
pub fn as_written(name: &str) -> String {
    let plain = |char: char| match char {
        '(' | ')' | ':' | '|' | '\\' | '"' | '\'' | ';' | ',' | '`' | '#' => false,
        _ => !char.is_whitespace() && upcase(downcase(char)) == char,
    };
    if !name.is_empty() && name.chars().all(plain) && !is_number(name) && !name.bytes().all(|byte| byte == b'.') {
        name.chars().map(downcase).collect()
    } else {
        format!("|{}|", name.replace('\\', "\\\\").replace('|', "\\|"))
    }
}

/// Returns the written form of a text between the quotation marks of a string.
pub fn in_string(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Returns the package prefix of a symbol as written. Returns `None` without a prefix, for a
/// keyword, and for the standard's package.
pub fn other_package(written: &str) -> Option<String> {
    let symbol = symbol(written).filter(|_| !written.starts_with('#'))?;
    symbol.package.filter(|package| !matches!(package.as_str(), "" | "CL" | "COMMON-LISP"))
}

/// Returns the offset of the first colon that is not escaped.
fn colon(written: &str) -> Option<usize> {
    let mut in_bars = false;
    let mut chars = written.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => drop(chars.next()),
            '|' => in_bars = !in_bars,
            ':' if !in_bars => return Some(at),
            _ => {}
        }
    }
    None
}

/// Returns a text with the letters that the reader makes of it, without regard to escapes.
pub fn upcased(text: &str) -> String {
    text.chars().map(upcase).collect()
}

/// Returns a character in upper case as `char-upcase` does. Only a character that has one character
/// in the other case, from which the conversion leads back, has a case in SBCL: `ß` has none.
fn upcase(char: char) -> char {
    other_case(char, &mut char.to_uppercase(), |upper| only(&mut upper.to_lowercase()))
}

/// Returns a character in lower case as `char-downcase` does.
fn downcase(char: char) -> char {
    other_case(char, &mut char.to_lowercase(), |lower| only(&mut lower.to_uppercase()))
}

fn other_case(char: char, converted: &mut impl Iterator<Item = char>, back: impl FnOnce(char) -> Option<char>) -> char {
    // Numerals and letters in circles are no letters for SBCL.
    let is_letter = !matches!(char, '\u{2160}'..='\u{217f}' | '\u{24b6}'..='\u{24e9}');
    only(converted).filter(|other| is_letter && back(*other) == Some(char)).unwrap_or(char)
}

/// Returns the only item, or `None` if there are more.
fn only(chars: &mut impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next()?;
    chars.next().is_none().then_some(first)
}

/// Returns the text without its escapes. Characters that were not escaped are in upper case.
pub(super) fn unescaped(written: &str) -> String {
    let mut name = String::with_capacity(written.len());
    let mut in_bars = false;
    let mut chars = written.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => name.extend(chars.next()),
            '|' => in_bars = !in_bars,
            _ if in_bars => name.push(char),
            _ => name.push(upcase(char)),
        }
    }
    name
}

/// Returns true if an atom is a number in base ten (CLHS 2.3.1).
pub fn is_number(written: &str) -> bool {
    let unsigned = written.strip_prefix(['+', '-']).unwrap_or(written);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some((numerator, denominator)) = unsigned.split_once('/') {
        return digits(numerator) && digits(denominator);
    }
    let exponent = unsigned.find(|char: char| "esfdlESFDL".contains(char));
    let (mantissa, exponent) = exponent.map_or((unsigned, None), |at| (&unsigned[..at], Some(&unsigned[at + 1..])));
    if let Some(exponent) = exponent
        && !digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))
    {
        return false;
    }
    match mantissa.split_once('.') {
        None => digits(mantissa),
        Some((whole, "")) => digits(whole),
        Some((whole, fraction)) => (whole.is_empty() || digits(whole)) && digits(fraction),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_read_as_the_reader_does() {
        for (written, expected) in [
            ("foo", Some((None, "FOO"))),
            ("cl:car", Some((Some("CL"), "CAR"))),
            ("a::|b:c|", Some((Some("A"), "b:c"))),
            (":key", Some((Some(""), "KEY"))),
            ("#:g", Some((None, "G"))),
            ("|a:b|", Some((None, "a:b"))),
            ("1+", Some((None, "1+"))),
            ("straße", Some((None, "STRAßE"))),
            ("ärgerµıⅳ", Some((None, "ÄRGERµıⅳ"))),
            ("+", Some((None, "+"))),
            ("12", None),
            ("-1/2", None),
            ("1.5d-3", None),
            ("#\\a", None),
            (".", None),
        ] {
            let read = symbol(written);
            let seen = read.as_ref().map(|symbol| (symbol.package.as_deref(), symbol.name.as_str()));
            assert_eq!(seen, expected, "{written}");
        }
        assert_eq!(prefix_length("cl::car"), 4);
        assert_eq!(in_string(r#"a"b\c"#), r#"a\"b\\c"#);
        assert_eq!(other_package("foo::let").as_deref(), Some("FOO"));
        for written in ["let", "cl:let", "COMMON-LISP::let", ":let", "#:let", "1"] {
            assert_eq!(other_package(written), None, "{written}");
        }
    }

    #[test]
    fn names_are_written_as_they_are_read() {
        let all = [
            ("STRAßE", "straße"),
            ("Äİ", "äİ"),
            ("ä", "|ä|"),
            ("CAR", "car"),
            ("Mixed", "|Mixed|"),
            ("A|B", "|A\\|B|"),
            ("1+", "1+"),
            ("12", "|12|"),
            ("", "||"),
        ];
        for (name, expected) in all {
            assert_eq!(as_written(name), expected);
            assert_eq!(symbol(expected).map(|symbol| symbol.name).as_deref(), Some(name));
        }
    }

    #[test]
    fn numbers_are_told_from_symbols() {
        for number in ["1", "+1", "-1.", "1/2", ".5", "1.5", "1e5", "1.e5", "-1.5d+3"] {
            assert!(is_number(number), "{number}");
        }
        for symbol in ["", "+", "-", "1+", "e5", ".", "1/", "a", "1e", "--1"] {
            assert!(!is_number(symbol), "{symbol}");
        }
    }
}
