//! The names whose definitions changed in the image, in the order of the changes. They show which
//! kept findings are outdated. Their number is limited.

use std::collections::{HashSet, VecDeque};

/// The maximum number of names.
const MAX_NAMES: usize = 20_000;

/// The names of the last changes.
#[derive(Debug, Default)]
pub(super) struct RecentNames {
    names: VecDeque<String>,
    /// The number of changes before the first of `names`.
    first: u64,
}

impl RecentNames {
    pub(super) fn add(&mut self, name: &str) {
        self.names.push_back(name.to_owned());
        if self.names.len() > MAX_NAMES {
            self.names.pop_front();
            self.first += 1;
        }
    }

    /// Handles another image, in which everything has changed.
    pub(super) fn all_changed(&mut self) {
        self.first = self.number() + 1;
        self.names.clear();
    }

    /// Returns the number of changes so far.
    pub(super) fn number(&self) -> u64 {
        self.first + self.names.len() as u64
    }

    /// Returns the names that changed after the first `number` changes, or `None` if any may have
    /// changed.
    pub(super) fn since(&self, number: u64) -> Option<HashSet<String>> {
        let skipped = usize::try_from(number.checked_sub(self.first)?).ok()?;
        Some(self.names.iter().skip(skipped).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn since(recent: &RecentNames, number: u64) -> Option<Vec<String>> {
        let mut names: Vec<String> = recent.since(number)?.into_iter().collect();
        names.sort();
        Some(names)
    }

    #[test]
    fn who_knows_a_number_learns_what_changed_since() {
        let mut recent = RecentNames::default();
        let start = recent.number();
        assert_eq!(since(&recent, start), Some(vec![]));
        recent.add("A");
        let between = recent.number();
        recent.add("B");
        assert_eq!(since(&recent, start), Some(vec!["A".into(), "B".into()]));
        assert_eq!(since(&recent, between), Some(vec!["B".into()]));
        recent.all_changed();
        assert_eq!(since(&recent, between), None);
        assert_eq!(since(&recent, recent.number()), Some(vec![]));
        recent.add("C");
        assert_eq!(since(&recent, between), None, "of another image");
    }

    #[test]
    fn names_that_are_not_kept_any_more_may_be_any() {
        let mut recent = RecentNames::default();
        let start = recent.number();
        (0..=MAX_NAMES).for_each(|number| recent.add(&number.to_string()));
        assert_eq!(recent.since(start), None);
        assert_eq!(recent.since(start + 1).map(|names| names.len()), Some(MAX_NAMES));
    }
}
