//! The directives of format control strings (CLHS 22.3). Offsets are bytes.

use std::ops::Range;

/// Operators with a control string, and the positions of the arguments that may be the string,
/// 1-based.
const CONTROLS: [(&str, Range<usize>); 10] = [
    ("format", 2..3),
    ("error", 1..2),
    ("warn", 1..2),
    ("signal", 1..2),
    ("cerror", 1..3),
    ("break", 1..2),
    ("y-or-n-p", 1..2),
    ("yes-or-no-p", 1..2),
    ("formatter", 1..2),
    ("assert", 3..4),
];

/// Returns true if a string at this position of a call is a control string.
pub fn is_control(operator: &str, place: usize) -> bool {
    CONTROLS.iter().any(|(known, places)| *known == operator && places.contains(&place))
}

/// Returns the 1-based position of the control string that a call of the operator prints. If
/// several arguments may be control strings, the last one is printed.
pub fn printed_control(operator: &str) -> Option<usize> {
    CONTROLS.iter().find(|(known, _)| *known == operator).map(|(_, places)| places.end - 1)
}

/// Returns the directives of a string as written, each including its parameters and modifiers.
pub fn directives(string: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + string.get(from..)?.find('~')?;
        let mut chars = string[start + 1..].char_indices();
        let mut end = string.len();
        while let Some((at, char)) = chars.next() {
            if char == '\'' {
                chars.next();
            } else if !(char.is_ascii_digit() || ",:@+-#vV".contains(char)) {
                end = start + 1 + at + char.len_utf8();
                break;
            }
        }
        from = end;
        Some(start..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_have_their_parameters() {
        let found = |string: &'static str| directives(string).map(|range| &string[range]).collect::<Vec<_>>();
        assert_eq!(found("\"a ~10,'0D~:[no~;é~]~\""), ["~10,'0D", "~:[", "~;", "~]", "~\""]);
        assert_eq!(found("~V,'é<~"), ["~V,'é<", "~"]);
        assert_eq!(found("a"), [""; 0]);
        assert!(is_control("format", 2) && !is_control("format", 1) && !is_control("list", 1));
    }
}
