//! Marks of files that have unsaved text in an editor. They outlive the host, because an agent must
//! not edit a file on disk while an editor that is not connected to this host has unsaved text of
//! it.
//!
//! A host marks a file when an editor changes its text, and removes the mark when the text is saved
//! or the document closed. A mark holds until the editor's process ends or the file on disk has
//! another content. So it still holds when the host was stopped or killed and the editor has not
//! come back, or when the editor is suspended. It also holds for an editor that uses the host of
//! another workspace.
//!
//! Marks are small files in the user's state directory, named after the path and the process.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, mpsc};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::file_identity::{are_linked, real_path};
use crate::bounded_file;
use crate::fault::{self, Call};
use crate::image::process_table;
use crate::locked::lock;

/// The maximum number of marks that are read for one file, or in a search for marks of ended
/// editors.
const MAX_EXAMINED: usize = 10_000;
/// The largest file whose content is compared, in bytes.
const MAX_DIGESTED: u64 = 16 << 20;
/// The start of the name of a mark that is being written.
const UNFINISHED: &str = ".new-";

/// A process of an editor. The start time distinguishes it from a later process with the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditorProcess {
    /// The process id.
    pub pid: u32,
    /// The start time, in clock ticks since the system's boot.
    pub started: u64,
}

impl EditorProcess {
    fn lives(self) -> bool {
        process_table::started(self.pid) == Some(self.started)
    }
}

/// The content of a mark.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Mark {
    path: PathBuf,
    editor: EditorProcess,
    /// The state of the file on disk when it was marked; `None` if there was no file.
    disk: Option<DiskState>,
    /// The SHA-256 of the file's content at that time. It shows that a file that was touched, or
    /// written again, has the same content.
    #[serde(default)]
    digest: Option<String>,
}

/// The modification time and the size of a file, which show that it was written.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct DiskState {
    seconds: i64,
    nanoseconds: i64,
    bytes: u64,
}

impl DiskState {
    fn of(path: &Path) -> Option<DiskState> {
        let facts = path.metadata().ok()?;
        Some(DiskState { seconds: facts.mtime(), nanoseconds: facts.mtime_nsec(), bytes: facts.len() })
    }
}

/// Returns the SHA-256 of a file's content.
///
/// # Errors
/// The file cannot be read, or is too large.
fn digest(path: &Path) -> io::Result<String> {
    bounded_file::read(path, MAX_DIGESTED).map(|bytes| format!("{:x}", Sha256::digest(bytes)))
}

/// The editor that has unsaved text of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// The editor with this process id.
    Editor(u32),
    /// The marks cannot be read, for this reason, so that an editor may have unsaved text.
    Unknown(String),
}

/// A change of a mark, which the marks' thread makes.
enum MarkChange {
    Set(PathBuf, EditorProcess),
    Remove(PathBuf, EditorProcess),
}

/// The marks of all hosts of the user.
#[derive(Debug, Clone)]
pub(super) struct UnsavedMarks {
    directory: Arc<PathBuf>,
    /// The thread that changes marks, started for the first change.
    work: Arc<OnceLock<Option<mpsc::Sender<MarkChange>>>>,
}

impl UnsavedMarks {
    /// Returns the marks in Consort's state directory `state`.
    pub(super) fn within(state: &Path) -> UnsavedMarks {
        UnsavedMarks { directory: Arc::new(state.join("unsaved")), work: Arc::default() }
    }

    /// Returns the marker of a document of an editor.
    pub(super) fn marker(&self, path: &Path, editor: EditorProcess) -> Marker {
        Marker { marks: self.clone(), path: path.to_owned(), editor, decided: Arc::default() }
    }

    /// Returns the editor that has unsaved text of a file. The file's path is given with links
    /// resolved. Reads the disk.
    pub(super) fn holder(&self, file: &Path) -> Option<Holder> {
        self.find_holder(file)
            .unwrap_or_else(|error| Some(Holder::Unknown(format!("{}: {error}", self.directory.display()))))
    }

    fn find_holder(&self, file: &Path) -> io::Result<Option<Holder>> {
        let prefix = prefix(file);
        // A mark of a hard link has the name of that link.
        let linked = file.metadata().is_ok_and(|facts| facts.nlink() > 1);
        // The limit applies only to the marks that are read, because reading all names costs
        // little.
        let listed = match std::fs::read_dir(&*self.directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            listed => listed?,
        };
        let is_own = |name: &str| name.starts_with(&prefix);
        let is_of = |mark: &Mark| mark.path == file || linked && are_linked(&mark.path, file);
        let (mut examined, mut unread) = (0, None);
        for entry in listed {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if !(linked || is_own(&name)) || name.starts_with(UNFINISHED) {
                continue;
            }
            examined += 1;
            if examined > MAX_EXAMINED {
                break;
            }
            match read(&entry.path()) {
                Ok(Some(mark)) if is_of(&mark) && holds(&mark) => return Ok(Some(Holder::Editor(mark.editor.pid))),
                Ok(Some(_)) => {}
                Ok(None) => {
                    if let Some(pid) = running_editor(&name).filter(|_| is_own(&name)) {
                        return Ok(Some(Holder::Editor(pid)));
                    }
                }
                // The mark was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    unread.get_or_insert(error);
                }
            }
        }
        unread.map_or(Ok(None), Err)
    }

    fn send(&self, change: MarkChange) {
        let sender = self.work.get_or_init(|| {
            let (sender, receiver) = mpsc::channel();
            let directory = self.directory.clone();
            let started = std::thread::Builder::new().name("unsaved-marks".into()).spawn(move || {
                remove_dead(&directory);
                let mut set = HashMap::new();
                for change in receiver {
                    if let Err(error) = carry_out(&directory, change, &mut set) {
                        tracing::warn!(%error, "a mark of unsaved text was not changed");
                    }
                }
            });
            started.ok().map(|_| sender)
        });
        if let Some(sender) = sender {
            // The thread lives as long as the sender.
            let _ = sender.send(change);
        }
    }
}

/// Marks one document.
#[derive(Debug, Clone)]
pub(super) struct Marker {
    marks: UnsavedMarks,
    path: PathBuf,
    editor: EditorProcess,
    /// True once the text was changed, saved again or closed. The result of a comparison that began
    /// earlier is then ignored.
    decided: Arc<Mutex<bool>>,
}

impl Marker {
    /// Marks a text that was changed by the editor. Does not wait for the disk.
    pub(super) fn changed(&self) {
        self.decide(true);
    }

    /// Removes the mark of a document that the editor closed. Does not wait for the disk.
    pub(super) fn closed(&self) {
        self.decide(false);
    }

    /// Marks a text, or removes its mark, by a comparison with its file. Does nothing if the text
    /// was changed or closed meanwhile.
    pub(super) fn compared(&self, same: bool) {
        let decided = lock(&self.decided);
        if !*decided {
            self.send(!same);
        }
    }

    /// Returns the marker for the text after a save. The result of a comparison that still runs for
    /// this marker is ignored.
    pub(super) fn next(&self) -> Marker {
        *lock(&self.decided) = true;
        self.marks.marker(&self.path, self.editor)
    }

    fn decide(&self, unsaved: bool) {
        let mut decided = lock(&self.decided);
        *decided = true;
        self.send(unsaved);
    }

    fn send(&self, unsaved: bool) {
        let change = if unsaved { MarkChange::Set } else { MarkChange::Remove };
        self.marks.send(change(self.path.clone(), self.editor));
    }
}

/// Returns the start of the names of a file's marks.
fn prefix(path: &Path) -> String {
    short_digest(path) + "."
}

/// Returns the name of the mark of a file, for a document with the path `given`. An editor may have
/// several documents of one file, through links.
fn name(file: &Path, given: &Path, editor: EditorProcess) -> String {
    format!("{}{}-{}", prefix(file), editor.pid, short_digest(given))
}

fn short_digest(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
    digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}

/// Changes a mark. `set` holds the files of the marks that this host has set, by the document's
/// path as given and the editor's process id. It is needed because the path's links may lead
/// elsewhere by now.
fn carry_out(directory: &Path, change: MarkChange, set: &mut HashMap<(PathBuf, u32), PathBuf>) -> io::Result<()> {
    match change {
        MarkChange::Set(given, editor) => {
            let path = real_path(&given);
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
            let file = directory.join(name(&path, &given, editor));
            let mark = Mark { disk: DiskState::of(&path), digest: digest(&path).ok(), path, editor };
            fault::point(Call::Open)?;
            // The file gets the mark's name only when it is complete, so that a reader sees a whole
            // mark or none.
            let mut new = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(directory)?;
            serde_json::to_writer(&mut new, &mark)?;
            new.persist(&file)?;
            match set.insert((given, editor.pid), file.clone()) {
                Some(before) if before != file => remove(&before),
                _ => Ok(()),
            }
        }
        MarkChange::Remove(given, editor) => {
            let named = || directory.join(name(&real_path(&given), &given, editor));
            let known = set.remove(&(given.clone(), editor.pid));
            remove(&known.unwrap_or_else(named))
        }
    }
}

fn remove(mark: &Path) -> io::Result<()> {
    match std::fs::remove_file(mark) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Returns a mark, or `None` if its content is not understood: another version of Consort may have
/// written it.
///
/// # Errors
/// The mark cannot be read.
fn read(file: &Path) -> io::Result<Option<Mark>> {
    Ok(serde_json::from_slice(&bounded_file::read(file, 1 << 16)?).ok())
}

/// Returns the process id in the name of a mark, if there is such a process.
fn running_editor(name: &str) -> Option<u32> {
    let (pid, _) = name.rsplit_once('.')?.1.split_once('-')?;
    pid.parse().ok().filter(|pid| process_table::started(*pid).is_some())
}

/// Returns true if the editor still has the unsaved text, as far as the process and the file show.
/// Returns true as well if the file cannot be read.
fn holds(mark: &Mark) -> bool {
    mark.editor.lives()
        && (DiskState::of(&mark.path) == mark.disk
            || mark.digest.is_some() && digest(&mark.path).map_or_else(is_transient, |now| Some(now) == mark.digest))
}

/// Returns false for an error that shows that a file is not the one that was marked.
#[allow(clippy::needless_pass_by_value)] // for `map_or_else`
fn is_transient(error: io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, InvalidInput, NotADirectory, NotFound};
    !matches!(error.kind(), NotFound | NotADirectory | FileTooLarge | InvalidInput)
}

/// Removes the marks that do not hold any more. A mark that cannot be read now is kept.
fn remove_dead(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_EXAMINED) {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        // Another host may be writing the mark.
        if name.starts_with(UNFINISHED) {
            continue;
        }
        let is_dead = match read(&path) {
            Ok(Some(mark)) => !holds(&mark),
            Ok(None) => running_editor(&name).is_none(),
            Err(_) => false,
        };
        if is_dead {
            // A mark that stays is examined again by the next host.
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn process(pid: u32) -> EditorProcess {
        EditorProcess { pid, started: process_table::started(pid).unwrap() }
    }

    /// Waits until the holder of the file is the wanted one.
    fn settled(marks: &UnsavedMarks, file: &Path, wanted: Option<u32>) {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while marks.holder(file) != wanted.map(Holder::Editor) {
            assert!(std::time::Instant::now() < deadline, "{:?}, not {wanted:?}", marks.holder(file));
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_mark_holds_while_the_editor_lives_and_the_file_is_as_it_was() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().canonicalize().unwrap().join("a.lisp");
        std::fs::write(&file, "(a)").unwrap();
        let mut editor = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let (marks, other) = (UnsavedMarks::within(place.path()), UnsavedMarks::within(place.path()));
        let marker = marks.marker(&file, process(editor.id()));
        marker.changed();
        settled(&other, &file, Some(editor.id()));
        assert_eq!(other.holder(&file.with_file_name("b.lisp")), None);
        std::fs::File::options().write(true).open(&file).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(other.holder(&file), Some(Holder::Editor(editor.id())), "somebody has touched it");
        std::fs::write(&file, "(saved)").unwrap();
        assert_eq!(other.holder(&file), None, "somebody has written it");
        let marker = marker.next();
        marker.compared(false);
        settled(&other, &file, Some(editor.id()));
        marker.closed();
        settled(&other, &file, None);
        let marker = marker.next();
        marker.changed();
        settled(&other, &file, Some(editor.id()));
        editor.kill().unwrap();
        editor.wait().unwrap();
        assert_eq!(other.holder(&file), None, "the editor has ended");
        remove_dead(&other.directory);
        assert_eq!(std::fs::read_dir(&*other.directory).unwrap().count(), 0);
    }

    #[test]
    fn a_mark_is_seen_among_more_marks_than_are_read() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().canonicalize().unwrap().join("a.lisp");
        std::fs::write(&file, "(a)").unwrap();
        let marks = UnsavedMarks::within(place.path());
        let own = process(std::process::id());
        std::fs::create_dir(&*marks.directory).unwrap();
        for number in 0..=MAX_EXAMINED {
            std::fs::write(marks.directory.join(format!("{number}.1-0")), "").unwrap();
        }
        // A directory has no defined order, so several marks are tried, some of which come late.
        for number in 0..50 {
            let file = file.with_file_name(format!("{number}.lisp"));
            carry_out(&marks.directory, MarkChange::Set(file.clone(), own), &mut HashMap::new()).unwrap();
            assert_eq!(marks.holder(&file), Some(Holder::Editor(own.pid)), "{number}");
        }
    }

    #[test]
    fn a_file_with_several_names_has_a_mark_for_each() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (file, link, hard) = (place.join("a.lisp"), place.join("link.lisp"), place.join("hard.lisp"));
        std::fs::write(&file, "(a)").unwrap();
        std::os::unix::fs::symlink("a.lisp", &link).unwrap();
        std::fs::hard_link(&file, &hard).unwrap();
        let marks = UnsavedMarks::within(&place);
        let own = process(std::process::id());
        let (changed, opened) = (marks.marker(&link, own), marks.marker(&file, own));
        changed.changed();
        settled(&marks, &file, Some(own.pid));
        opened.compared(true);
        // Changes are made in order, so that the wait for this mark covers the one before.
        marks.marker(&place.join("b.lisp"), own).changed();
        settled(&marks, &place.join("b.lisp"), Some(own.pid));
        assert_eq!(marks.holder(&file), Some(Holder::Editor(own.pid)), "the other document is not saved");
        assert_eq!(marks.holder(&hard), Some(Holder::Editor(own.pid)), "it is the same file");
        changed.closed();
        settled(&marks, &file, None);
    }

    #[test]
    fn a_mark_that_cannot_be_read_counts_and_stays() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (file, other) = (place.join("a.lisp"), place.join("b.lisp"));
        let marks = UnsavedMarks::within(&place);
        let own = process(std::process::id());
        assert_eq!(marks.holder(&file), None, "there is no directory of marks");
        std::fs::create_dir(&*marks.directory).unwrap();
        // A mark that was written by another version.
        let newer = marks.directory.join(name(&file, &file, own));
        std::fs::write(&newer, r#"{"version": 2}"#).unwrap();
        assert_eq!(marks.holder(&file), Some(Holder::Editor(own.pid)));
        let ended = EditorProcess { pid: u32::MAX, started: 0 };
        let dead = marks.directory.join(name(&other, &other, ended));
        std::fs::write(&dead, "").unwrap();
        assert_eq!(marks.holder(&other), None, "its process has ended");
        // Not even root can follow a link to itself.
        let unreadable = marks.directory.join(name(&other, &other, own));
        std::os::unix::fs::symlink("loop", marks.directory.join("loop")).unwrap();
        std::os::unix::fs::symlink("loop", &unreadable).unwrap();
        assert!(matches!(marks.holder(&other), Some(Holder::Unknown(_))));
        remove_dead(&marks.directory);
        assert!(newer.exists() && unreadable.is_symlink() && !dead.exists());
        let nowhere = UnsavedMarks { directory: Arc::new(newer), work: Arc::default() };
        assert!(matches!(nowhere.holder(&file), Some(Holder::Unknown(_))), "it is no directory");
    }

    #[test]
    fn a_comparison_says_nothing_of_a_text_that_was_changed_meanwhile() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().canonicalize().unwrap().join("new.lisp");
        let marks = UnsavedMarks::within(place.path());
        let own = std::process::id();
        let marker = marks.marker(&file, process(own));
        marker.changed();
        marker.compared(true);
        settled(&marks, &file, Some(own));
        let saved = marker.next();
        saved.compared(true);
        settled(&marks, &file, None);
        marker.compared(false);
        saved.closed();
        settled(&marks, &file, None);
    }
}
