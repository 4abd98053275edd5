//! The reasons why checks wait for a copy of the image.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::locked::lock;

/// The reasons of all checks that wait.
#[derive(Debug, Default)]
pub(crate) struct Obstacles(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    reasons: BTreeMap<u64, String>,
}

/// The reason of one check. It is removed when dropped.
pub(crate) struct Obstacle<'o> {
    all: &'o Obstacles,
    number: u64,
}

impl Obstacles {
    /// Returns the obstacle of a check that begins. It has no reason yet.
    pub(crate) fn begin(&self) -> Obstacle<'_> {
        let mut waiting = lock(&self.0);
        waiting.last += 1;
        Obstacle { all: self, number: waiting.last }
    }

    /// Returns the reason of the check that began first among those that wait.
    pub(crate) fn first(&self) -> Option<String> {
        lock(&self.0).reasons.values().next().cloned()
    }
}

impl Obstacle<'_> {
    /// Sets the reason why a copy of the image cannot be made yet. `None`: the check does not wait.
    pub(crate) fn set(&self, why: Option<String>) {
        let reasons = &mut lock(&self.all.0).reasons;
        match why {
            Some(why) => drop(reasons.insert(self.number, why)),
            None => drop(reasons.remove(&self.number)),
        }
    }
}

impl Drop for Obstacle<'_> {
    fn drop(&mut self) {
        self.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_has_its_own_reason() {
        let obstacles = Obstacles::default();
        let (first, second, third) = (obstacles.begin(), obstacles.begin(), obstacles.begin());
        first.set(Some("a load".into()));
        second.set(Some("a lock".into()));
        third.set(None);
        drop(third);
        assert_eq!(obstacles.first().as_deref(), Some("a load"));
        drop(first);
        assert_eq!(obstacles.first().as_deref(), Some("a lock"));
        second.set(None);
        assert_eq!(obstacles.first(), None);
    }
}
