//! The limits on the files that code under check leaves in its scratch directory. The directory is
//! often in memory, on a file system shared with others' sockets. A removed file counts while a
//! process has it open or mapped.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Pid;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::chain::memory::processes;

/// The limit of the bytes that the files of one check take.
const MAX_BYTES: u64 = 2 << 30;
/// The limit of the number of files and directories of one check.
const MAX_ENTRIES: usize = 50_000;
/// The number of bytes that a removed file counts if only a mapping of it is left: the limit of the
/// size of a copy's files, RLIMIT_FSIZE (lisp/src/confine/privileges.lisp).
const MAPPED_FILE_BYTES: u64 = 256 << 20;
/// The type of a file system in memory, as `statfs` reports it.
const TMPFS: i64 = 0x0102_1994;
/// The pause between two measurements.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The result of one measurement.
#[derive(Debug, Default)]
struct Usage {
    /// A description of the limit that is exceeded, if one is.
    over: Option<String>,
    /// The bytes that the files take.
    bytes: u64,
}

/// Measures a scratch directory at intervals, off the caller's thread.
#[derive(Debug)]
pub(super) struct Watch {
    directory: PathBuf,
    /// The process of the copy. Files that its descendants have open count, too.
    head: Option<Pid>,
    in_memory: bool,
    /// The bytes that the last measurement found.
    bytes: u64,
    next: Instant,
    measurement: Option<JoinHandle<Usage>>,
}

impl Watch {
    pub(super) fn new(directory: &Path, head: Option<Pid>) -> Watch {
        let in_memory = is_in_memory(directory);
        let next = Instant::now() + POLL_INTERVAL;
        Watch { directory: directory.to_owned(), head, in_memory, bytes: 0, next, measurement: None }
    }

    /// Returns the bytes of memory that the files took at the last measurement, or 0 if they are on
    /// a disk.
    pub(super) fn memory(&self) -> u64 {
        if self.in_memory { self.bytes } else { 0 }
    }

    /// Returns the limit that the last measurement found exceeded, as words to follow "it was
    /// stopped:". Starts the next measurement when it is due, and never waits for one.
    pub(super) async fn exceeded_limit(&mut self) -> Option<String> {
        match self.measurement.take_if(|measurement| measurement.is_finished()) {
            Some(measurement) => {
                self.next = Instant::now() + POLL_INTERVAL;
                let found = measurement.await.unwrap_or_default(); // fails only when the host ends
                self.bytes = found.bytes;
                found.over
            }
            None if self.measurement.is_none() && Instant::now() >= self.next => {
                let (directory, head) = (self.directory.clone(), self.head);
                self.measurement =
                    Some(tokio::task::spawn_blocking(move || used(&directory, head, MAX_BYTES, MAX_ENTRIES)));
                None
            }
            None => None,
        }
    }
}

#[cfg(target_os = "linux")]
fn is_in_memory(directory: &Path) -> bool {
    #[allow(clippy::unnecessary_cast, clippy::cast_possible_wrap)] // the types differ between machines
    rustix::fs::statfs(directory).is_ok_and(|facts| facts.f_type as i64 == TMPFS)
}

/// See the Linux version.
#[cfg(not(target_os = "linux"))]
fn is_in_memory(_directory: &Path) -> bool {
    false
}

/// Measures the files below `root`, and the removed ones that `head` or a descendant still has open
/// or mapped. The result names the limit that they exceed: `bytes` or `entries`. Symbolic links are
/// not followed.
fn used(root: &Path, head: Option<Pid>, bytes: u64, entries: usize) -> Usage {
    let over = |over: String, bytes| Usage { over: Some(over), bytes };
    let mut taken = head.map_or(0, |head| removed(root, head));
    if taken > bytes {
        return over(format!("it wrote more than {} MB", bytes >> 20), taken);
    }
    let mut found = 0;
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        let listed = match std::fs::read_dir(&directory) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::InvalidFilename => {
                return over("it made directories too deep to be looked into".into(), taken);
            }
            // The directory was removed, or has a mode with which the copy cannot use it either.
            Err(_) => continue,
        };
        for entry in listed.flatten() {
            found += 1;
            if found > entries {
                return over(format!("it made more than {entries} files and directories"), taken);
            }
            // The path of a file may be too long even if the path of its directory is not.
            if let Ok(facts) = entry.metadata() {
                taken = taken.saturating_add(facts.blocks().saturating_mul(512));
                if facts.is_dir() {
                    waiting.push(entry.path());
                }
            }
            if taken > bytes {
                return over(format!("it wrote more than {} MB", bytes >> 20), taken);
            }
        }
    }
    Usage { over: None, bytes: taken }
}

/// Returns the bytes of the files below `root` that were removed, but that `head` or a descendant
/// still has open or mapped. Each file counts once. The kernel ends the names of removed files with
/// ` (deleted)`.
fn removed(root: &Path, head: Pid) -> u64 {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let (mut open, mut mapped) = (HashSet::new(), HashSet::new());
    let mut bytes = 0_u64;
    for process in processes(head) {
        let place = PathBuf::from(format!("/proc/{}", process.as_raw_nonzero()));
        // A process that has ended has nothing open.
        for entry in std::fs::read_dir(place.join("fd")).into_iter().flatten().flatten() {
            if !std::fs::read_link(entry.path()).is_ok_and(|name| name.starts_with(&root)) {
                continue;
            }
            // `metadata` follows the descriptor to the file itself, even if another file has its
            // name by now. Nothing is opened.
            if let Ok(facts) = std::fs::metadata(entry.path())
                && facts.nlink() == 0
                && open.insert(facts.ino())
            {
                bytes = bytes.saturating_add(facts.blocks().saturating_mul(512));
            }
        }
        // A name need not be UTF-8.
        let maps = std::fs::read(place.join("maps")).unwrap_or_default();
        let maps = String::from_utf8_lossy(&maps);
        mapped.extend(maps.lines().filter_map(|line| removed_mapping(line, &root)));
    }
    let only_mapped = mapped.difference(&open).count() as u64;
    bytes.saturating_add(only_mapped.saturating_mul(MAPPED_FILE_BYTES))
}

/// Returns the inode of a line of /proc/PID/maps if the line is about a removed file below `root`.
fn removed_mapping(line: &str, root: &Path) -> Option<u64> {
    let mut fields = line.splitn(6, ' ');
    let inode = fields.nth(4)?.parse().ok()?;
    let name = fields.next()?.trim_start().strip_suffix(" (deleted)")?;
    Path::new(name).starts_with(root).then_some(inode)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A process that ends with the test.
    struct Ended(std::process::Child);

    impl Drop for Ended {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn many_files_large_files_and_deep_directories_pass_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("scratch");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), vec![b'x'; 100_000]).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("link")).unwrap();
        let passed = |root: &Path, bytes, entries| used(root, None, bytes, entries).over;
        assert_eq!(passed(&root, 1 << 20, 10), None);
        assert!(passed(&root, 50_000, 10).unwrap().contains("wrote more"));
        assert!(passed(&root, 1 << 20, 3).unwrap().contains("more than 3 files"));
        assert_eq!(passed(&dir.path().join("gone"), 1, 1), None);
        for _ in 0..30 {
            let above = dir.path().join("above");
            std::fs::create_dir(&above).unwrap();
            std::fs::rename(&root, above.join("x".repeat(200))).unwrap();
            std::fs::rename(&above, &root).unwrap();
        }
        assert!(passed(&root, 1 << 20, 1000).unwrap().contains("too deep"));
        crate::remove_tree::remove_tree(&root).unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn removed_files_count_while_they_are_open_each_once() {
        use std::io::{BufRead, Write};
        use std::os::fd::AsFd;
        let dir = tempfile::tempdir().unwrap();
        let (root, beside) = (dir.path().join("scratch"), dir.path().join("beside"));
        std::fs::create_dir(&root).unwrap();
        let removed_file = |path: &Path| {
            let mut file = std::fs::File::create_new(path).unwrap();
            file.write_all(&vec![b'x'; 1 << 20]).unwrap();
            std::fs::remove_file(path).unwrap();
            file
        };
        let ours = rustix::process::getpid();
        // The test's process stands in for the copy, and has the file open twice.
        let file = removed_file(&root.join("removed"));
        let again = file.as_fd().try_clone_to_owned().unwrap();
        let others = removed_file(&beside);
        let found = used(&root, Some(ours), 1 << 30, 10);
        assert_eq!(found.over, None);
        assert!((1 << 20..2 << 20).contains(&found.bytes), "{}", found.bytes);
        assert!(used(&root, Some(ours), 1 << 19, 10).over.unwrap().contains("wrote more"));
        assert_eq!(used(&root, None, 1 << 19, 10).over, None);
        // Only another process has the file open.
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "echo; exec sleep 3600"]).stdin(file.try_clone().unwrap());
        let mut child = Ended(command.stdout(std::process::Stdio::piped()).spawn().unwrap());
        // The command has the file open, too.
        drop(command);
        drop((file, again, others));
        let mut line = String::new();
        std::io::BufReader::new(child.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let other = Pid::from_child(&child.0);
        assert!(used(&root, Some(other), 1 << 19, 10).over.unwrap().contains("wrote more"));
        assert_eq!(used(&root, Some(ours), 1 << 30, 10).bytes, 0);
    }

    #[test]
    fn a_removed_file_that_is_only_mapped_counts() {
        let root = Path::new("/run/x");
        let line =
            |name: &str| format!("7f0000000000-7f0000001000 r--p 00000000 00:1a 4711                       {name}");
        assert_eq!(removed_mapping(&line("/run/x/a b (deleted)"), root), Some(4711));
        for other in ["/run/x/a", "/run/xy/a (deleted)", "[heap]", "/usr/lib/x.so", ""] {
            assert_eq!(removed_mapping(&line(other), root), None, "{other}");
        }
        assert_eq!(removed_mapping("", root), None);
    }
}
