//! The texts of files as they were when the image loaded them, so that later changes can be
//! detected and shown. Their total size is limited.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::file_stamp::TIME_RESOLUTION;
use similar::{ChangeTag, TextDiff};

/// The maximum total size of the texts, in bytes.
const MAX_BYTES: usize = 32 << 20;
/// The size of the shown changes, in bytes, beyond which the changes of further files are left out.
const MAX_SHOWN_BYTES: usize = 6_000;
/// The time limit for comparing two texts.
const DIFF_TIMEOUT: Duration = Duration::from_millis(500);

/// The table of loaded texts.
#[derive(Debug, Default)]
pub(super) struct LoadedTexts {
    texts: HashMap<PathBuf, Arc<str>>,
    order: VecDeque<PathBuf>,
    bytes: usize,
    /// The files of the last load for which it is unknown which text the image has.
    unknown_load: HashSet<PathBuf>,
}

impl LoadedTexts {
    /// Records the text of a file that the image has loaded.
    pub(super) fn loaded(&mut self, path: PathBuf, text: &str) {
        self.unknown_load.remove(&path);
        if let Some(old) = self.texts.insert(path.clone(), text.into()) {
            self.bytes -= old.len();
            self.order.retain(|other| *other != path);
        }
        self.bytes += text.len();
        self.order.push_back(path);
        while self.bytes > MAX_BYTES
            && let Some(oldest) = self.order.pop_front()
            && let Some(old) = self.texts.remove(&oldest)
        {
            self.bytes -= old.len();
        }
    }

    /// Records that a file was written after the image had loaded it, and before it was read here.
    pub(super) fn written_since(&mut self, path: PathBuf) {
        if let Some(old) = self.texts.remove(&path) {
            self.bytes -= old.len();
            self.order.retain(|other| *other != path);
        }
        self.unknown_load.insert(path);
    }

    /// Returns true if it is unknown which text of a file the image has.
    pub(super) fn is_load_unknown(&self, path: &Path) -> bool {
        self.unknown_load.contains(path)
    }

    /// Returns the text of a file that the image has loaded, if known.
    pub(super) fn of(&self, path: &Path) -> Option<Arc<str>> {
        self.texts.get(path).cloned()
    }

    /// Clears the table for another image.
    pub(super) fn clear(&mut self) {
        *self = LoadedTexts::default();
    }
}

/// Returns the time at which a file's content or its other metadata were last set. The time of the
/// content alone can be set back.
fn last_set(path: &Path) -> std::io::Result<SystemTime> {
    let facts = std::fs::metadata(path)?;
    let seconds = u64::try_from(facts.ctime()).unwrap_or_default();
    let nanoseconds = u64::try_from(facts.ctime_nsec()).unwrap_or_default();
    let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds);
    Ok(facts.modified()?.max(changed))
}

/// The order of a file's last write and of its load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// The file was written before the load, so its content is the one that was loaded.
    Before,
    /// The file was written after the load.
    After,
    /// The file was written at about the time of the load, or the time is unknown.
    Unclear,
}

impl Written {
    /// Compares the last write of a file with the time at which the file had been loaded.
    pub(super) fn of(path: &Path, loaded: SystemTime) -> Written {
        match last_set(path) {
            Ok(written) if written + TIME_RESOLUTION <= loaded => Written::Before,
            Ok(written) if written > loaded => Written::After,
            _ => Written::Unclear,
        }
    }
}

/// Returns the changes of files since they were loaded, for a person: for each file its name and
/// the lines that differ. Each of `files` has the name, the loaded text and the current text.
pub(super) fn changes(files: &[(String, Option<Arc<str>>, String)]) -> String {
    let mut text = String::new();
    let (mut same, mut unknown) = (0, Vec::new());
    for (name, loaded, now) in files {
        match loaded {
            None => unknown.push(name.as_str()),
            Some(loaded) if **loaded == **now => same += 1,
            Some(loaded) => {
                if text.len() > MAX_SHOWN_BYTES {
                    text.push_str(&format!("--- {name}: changed, NOT SHOWN HERE\n"));
                    continue;
                }
                text.push_str(&format!("--- {name}\n"));
                let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_lines(&**loaded, now);
                for group in diff.grouped_ops(1) {
                    if let Some(first) = group.first() {
                        text.push_str(&format!("@@ line {} @@\n", first.new_range().start + 1));
                    }
                    for change in group.iter().flat_map(|operation| diff.iter_changes(operation)) {
                        let sign = match change.tag() {
                            ChangeTag::Delete => '-',
                            ChangeTag::Insert => '+',
                            ChangeTag::Equal => ' ',
                        };
                        text.push_str(&format!("{sign}{}\n", change.value().trim_end_matches(['\n', '\r'])));
                    }
                }
            }
        }
    }
    let changed = files.len() - same - unknown.len();
    let mut head = format!("{changed} of {} files changed since they were loaded", files.len());
    if !unknown.is_empty() {
        const MAX_NAMED: usize = 8;
        head += &format!("; not known as loaded: {}", crate::shown::first_names(&unknown, MAX_NAMED));
    }
    format!("{head}\n{text}").trim_end().to_owned()
}

/// The files that a load has loaded, or `None` if the image has not reported them.
#[derive(Debug, Clone, Default)]
pub(super) struct LoadedNow(pub(super) Option<HashSet<PathBuf>>);

impl LoadedNow {
    /// Returns true if the file was loaded, or if that is unknown.
    pub(super) fn has(&self, file: &Path) -> bool {
        self.0.as_ref().is_none_or(|loaded| loaded.contains(file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_shown() {
        let lines: String = (1..100).map(|line| format!("(f {line})\n")).collect();
        let file =
            |name: &str, loaded: Option<&str>, now: &str| (name.to_owned(), loaded.map(Arc::from), now.to_owned());
        let files = [
            file("same.lisp", Some(&lines), &lines),
            file("shop.lisp", Some(&lines), &lines.replace("(f 50)\n", "(delete-file \"x\")\n")),
            file("new.lisp", None, "(g)"),
        ];
        insta::assert_snapshot!(changes(&files), @r#"
        1 of 3 files changed since they were loaded; not known as loaded: new.lisp
        --- shop.lisp
        @@ line 49 @@
         (f 49)
        -(f 50)
        +(delete-file "x")
         (f 51)
        "#);
    }

    #[test]
    fn a_time_that_is_set_back_makes_no_file_older() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("a.lisp");
        let before = SystemTime::now() - TIME_RESOLUTION;
        std::fs::write(&file, "(f)").expect("a file");
        let long_ago = before - Duration::from_secs(1000);
        std::fs::File::options().append(true).open(&file).and_then(|open| open.set_modified(long_ago)).expect("a time");
        assert_eq!(Written::of(&file, before), Written::After);
        let after = SystemTime::now() + TIME_RESOLUTION;
        assert_eq!(Written::of(&file, after), Written::Before);
    }

    #[test]
    fn texts_are_bounded_and_the_newest_is_kept() {
        let mut texts = LoadedTexts::default();
        let long = "x".repeat(MAX_BYTES / 4);
        for name in ["a", "b", "a", "c", "d", "e"] {
            texts.loaded(name.into(), &long);
        }
        assert!(texts.of(Path::new("b")).is_none() && texts.of(Path::new("e")).is_some());
        assert!(texts.bytes <= MAX_BYTES);
        texts.written_since("e".into());
        assert!(texts.of(Path::new("e")).is_none() && texts.is_load_unknown(Path::new("e")));
        assert!(texts.bytes <= MAX_BYTES / 4 * 3 && !texts.order.contains(&PathBuf::from("e")));
        texts.loaded("e".into(), "again");
        assert!(!texts.is_load_unknown(Path::new("e")));
    }
}
