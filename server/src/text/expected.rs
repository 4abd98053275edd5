//! The starts of the top-level forms that a complete reading of a text reaches.

use super::document::Document;

/// Words that occur in texts that define or use a readtable of their own.
const SYNTAX_WORDS: [&str; 4] = ["readtable", "macro-character", "syntax", "enable-"];

/// The top-level forms of a text. Positions are characters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// The starts of the lists without any prefix or guard, which are read under all features.
    pub plain: Vec<usize>,
    /// The starts of all other forms.
    pub others: Vec<usize>,
    /// True if the text contains one of the words of such a readtable. The reader may then find
    /// fewer forms.
    pub own_syntax: bool,
}

impl Expected {
    /// Returns the starts of the forms of `document`. Returns none if a form is broken, which the
    /// structure's own diagnostics report.
    pub fn of(document: &Document) -> Expected {
        let (scan, text) = (document.scan(), document.text());
        if scan.broken().next().is_some() {
            return Expected::default();
        }
        let starts = scan.forms().iter().map(|form| form.span.start);
        let (plain, others) = starts.partition(|start| text.get_char(*start) == Some('('));
        let mut words = String::from(text);
        words.make_ascii_lowercase();
        Expected { plain, others, own_syntax: SYNTAX_WORDS.iter().any(|word| words.contains(word)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_are_read_under_all_features_are_told_from_the_rest() {
        let of = |text: &str| Expected::of(&Document::new(text, 0));
        let text = "; (a)\n(b) #+x (c) x '(d)\n#|(e)|# (f)";
        let at = |form: &str| text.find(form).unwrap_or_default();
        let expected = Expected {
            plain: vec![at("(b)"), at("(f)")],
            others: vec![at("#+x"), at("x '"), at("'(d)")],
            own_syntax: false,
        };
        assert_eq!(of(text), expected);
        assert_eq!(of("(a) (b"), Expected::default());
        assert!(of("(named-readtables:IN-READTABLE :x) (a)").own_syntax);
    }
}
