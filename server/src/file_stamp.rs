//! The facts about a file that change with its content, for caches of what was read.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// The resolution of a file's times: the kernel's ticks.
pub(crate) const TIME_RESOLUTION: Duration = Duration::from_millis(50);

/// The identity, size and times of a file, and when they were looked at. A change that keeps the
/// size and sets the modification time back shows only in the time of the last change of any fact
/// (ctime), which only the system sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileStamp {
    facts: (u64, u64, u64, (i64, i64), (i64, i64)),
    looked: SystemTime,
}

impl FileStamp {
    /// Returns the stamp of a file whose metadata were just read. The content must be read
    /// afterwards.
    pub(crate) fn of(facts: &Metadata) -> FileStamp {
        let modified = (facts.mtime(), facts.mtime_nsec());
        let changed = (facts.ctime(), facts.ctime_nsec());
        FileStamp { facts: (facts.dev(), facts.ino(), facts.len(), modified, changed), looked: SystemTime::now() }
    }

    /// Returns true if the content that was read after this stamp is still that of a file with the
    /// stamp `now`. Returns false for a file that was read right after a change, because it may
    /// have changed again within the same tick of the clock.
    pub(crate) fn still_holds(&self, now: &FileStamp) -> bool {
        self.facts == now.facts && !self.may_have_changed_since(self.looked)
    }

    /// Returns true if the file changed after this time, or right before it.
    pub(crate) fn may_have_changed_since(&self, time: SystemTime) -> bool {
        let (.., (seconds, nanoseconds)) = self.facts;
        let since_epoch = Duration::new(seconds.try_into().unwrap_or(0), nanoseconds.try_into().unwrap_or(0));
        SystemTime::UNIX_EPOCH + since_epoch + TIME_RESOLUTION > time
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn another_content_with_the_time_and_size_of_the_first_has_another_stamp() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a.lisp");
        fs::write(&file, "(a)").unwrap();
        let stamp = || FileStamp::of(&fs::metadata(&file).unwrap());
        // The file was written long before it was looked at.
        let first = FileStamp { looked: SystemTime::now() + TIME_RESOLUTION, ..stamp() };
        assert!(first.still_holds(&stamp()));
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        let other = place.path().join("b.lisp");
        fs::write(&other, "(b)").unwrap();
        fs::File::options().append(true).open(&other).and_then(|open| open.set_modified(time)).unwrap();
        fs::rename(&other, &file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), time);
        assert!(!first.still_holds(&stamp()));
        // A file that is read in the tick of its last change may change in it once more.
        let at_once = FileStamp { looked: time, ..stamp() };
        assert!(!at_once.still_holds(&at_once));
    }
}
