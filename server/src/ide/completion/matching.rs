//! The score of how well a name fits the part of it that was typed. Names are in lower case.

use memchr::memmem::Finder;

use crate::ide::name_index::letters;

/// The part of a name typed so far.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The partial name, in lower case.
    pub(super) typed: String,
    letters: u64,
    /// The search for the typed text inside a name.
    finder: Finder<'static>,
    /// True if the pattern has several words, as `de-bi`.
    pub(super) parts: bool,
}

/// The base score of a name that begins with the pattern. The following base scores are those of
/// the other kinds of match. For each further character of the name, something is subtracted.
pub(super) const PREFIX_SCORE: f32 = 1000.0;
const PARTS_SCORE: f32 = 700.0;
const INITIALS_SCORE: f32 = 650.0;
const WORD_SCORE: f32 = 450.0;
const INSIDE_SCORE: f32 = 300.0;
const SCATTERED_SCORE: f32 = 150.0;

impl Pattern {
    /// Makes the pattern of a partial name without its package prefix.
    pub(super) fn new(typed: &str) -> Pattern {
        let typed = typed.to_lowercase();
        Pattern {
            letters: letters(&typed),
            finder: Finder::new(&typed).into_owned(),
            parts: typed.get(1..).is_some_and(|rest| rest.contains('-')),
            typed,
        }
    }

    /// Returns true if a name with this set of characters ([`letters`]) may fit.
    pub(super) fn may_fit(&self, letters: u64) -> bool {
        letters & self.letters == self.letters
    }

    /// Returns the score of a name in lower case, or `None` if the name does not fit.
    pub(super) fn score(&self, name: &str) -> Option<f32> {
        let typed = self.typed.as_str();
        if typed.is_empty() {
            return Some(PREFIX_SCORE);
        }
        if typed.len() > name.len() {
            return None;
        }
        let over = (name.len() - typed.len()).min(80) as f32;
        if name.starts_with(typed) {
            return Some(PREFIX_SCORE - over * 0.3 + if over == 0.0 { 40.0 } else { 0.0 });
        }
        // A variable such as `*list*` is also found without its asterisks.
        let bare = name.trim_start_matches(['*', '+', '%']);
        if bare.len() < name.len() && bare.starts_with(typed) {
            return Some(PREFIX_SCORE - 60.0 - over * 0.3);
        }
        if self.parts && parts(typed, name) {
            return Some(PARTS_SCORE - over);
        }
        if typed.len() < 2 {
            return None;
        }
        if initials(typed, bare) {
            return Some(INITIALS_SCORE - over);
        }
        let mut inside = self.finder.find_iter(name.as_bytes()).peekable();
        if inside.peek().is_some() {
            if inside.any(|at| at > 0 && is_separator(name.as_bytes()[at - 1])) {
                return Some(WORD_SCORE - over);
            }
            if typed.len() > 2 {
                return Some(INSIDE_SCORE - over);
            }
        }
        (typed.len() > 2 && scattered(typed, bare)).then_some(SCATTERED_SCORE - over)
    }
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b'-' | b'/' | b'.' | b'*' | b'+' | b'%' | b':')
}

/// Returns true if each word of `typed` is a prefix of the word of `name` at the same index.
fn parts(typed: &str, name: &str) -> bool {
    let mut words = name.split('-');
    typed.split('-').all(|part| words.next().is_some_and(|word| word.starts_with(part)))
}

/// Returns true if the characters of `typed` are the initials of the first words of `name`, as
/// `mvb` for `multiple-value-bind`.
fn initials(typed: &str, name: &str) -> bool {
    let mut words =
        name.split(|char: char| char.is_ascii() && is_separator(char as u8)).filter(|word| !word.is_empty());
    typed.chars().all(|char| words.next().is_some_and(|word| word.starts_with(char)))
}

/// Returns true if `typed` is a subsequence of `name` and both have the same first character.
fn scattered(typed: &str, name: &str) -> bool {
    let mut chars = name.chars();
    let mut typed = typed.chars();
    typed.next() == chars.next() && typed.all(|char| chars.any(|one| one == char))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_fit_has_the_higher_score() {
        for (typed, names) in [
            ("mvb", vec!["mvb", "mvb-x", "multiple-value-bind", "make-mvb", "movable"]),
            ("de-bi", vec!["de-bits", "destructuring-bind"]),
            ("gthash", vec!["gethash"]),
            ("list", vec!["list", "list*", "*list*", "make-list", "enlist"]),
            ("fla", vec!["flag", "*flag*"]),
        ] {
            let pattern = Pattern::new(typed);
            let scores: Vec<f32> = names.iter().map(|name| pattern.score(name).expect(name)).collect();
            assert!(scores.is_sorted_by(|a, b| a > b), "{typed}: {scores:?}");
            assert!(names.iter().all(|name| pattern.may_fit(letters(name))));
        }
        for (typed, name) in [("mvb", "multiple-value"), ("b-de", "destructuring-bind"), ("xy", "ab-xyz-"), ("aé", "a")]
        {
            let fits = Pattern::new(typed).score(name).is_some();
            assert_eq!(fits, typed == "xy", "{typed} {name}");
        }
    }
}
