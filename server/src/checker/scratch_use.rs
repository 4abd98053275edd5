//! The files that code under check leaves in its scratch directory, held against limits: the
//! directory often lies in memory, and is the same file system as the sockets of others.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

/// The bytes that the files of one check may take.
const BYTES: u64 = 2 << 30;
/// The number of files and directories of one check.
const ENTRIES: usize = 50_000;
/// The interval between two looks.
const LOOK: Duration = Duration::from_millis(500);

/// Looks again and again at a scratch directory, off the caller's thread.
#[derive(Debug)]
pub(super) struct Watch {
    directory: PathBuf,
    next: Instant,
    look: Option<JoinHandle<Option<String>>>,
}

impl Watch {
    pub(super) fn new(directory: &Path) -> Watch {
        Watch { directory: directory.to_owned(), next: Instant::now() + LOOK, look: None }
    }

    /// Returns the limit that the last look found passed, to be read after "it was stopped:". Never
    /// waits for a look; begins one when it is time.
    pub(super) async fn over(&mut self) -> Option<String> {
        match self.look.take_if(|look| look.is_finished()) {
            Some(look) => {
                self.next = Instant::now() + LOOK;
                look.await.ok().flatten()
            }
            None if self.look.is_none() && Instant::now() >= self.next => {
                let directory = self.directory.clone();
                self.look = Some(tokio::task::spawn_blocking(move || passed(&directory, BYTES, ENTRIES)));
                None
            }
            None => None,
        }
    }
}

/// Returns the limit that the contents of `root` pass. Links are not followed.
fn passed(root: &Path, bytes: u64, entries: usize) -> Option<String> {
    let (mut found, mut taken) = (0, 0_u64);
    let mut waiting = vec![root.to_owned()];
    while let Some(directory) = waiting.pop() {
        let listed = match std::fs::read_dir(&directory) {
            Ok(listed) => listed,
            Err(error) if error.kind() == std::io::ErrorKind::InvalidFilename => {
                return Some("it made directories too deep to be looked into".into());
            }
            // It was removed, or given a mode with which the copy cannot use it either.
            Err(_) => continue,
        };
        for entry in listed.flatten() {
            found += 1;
            if found > entries {
                return Some(format!("it made more than {entries} files and directories"));
            }
            // The path of a file may be too long although its directory's is not.
            if let Ok(facts) = entry.metadata() {
                use std::os::unix::fs::MetadataExt;
                taken = taken.saturating_add(facts.blocks().saturating_mul(512));
                if facts.is_dir() {
                    waiting.push(entry.path());
                }
            }
            if taken > bytes {
                return Some(format!("it wrote more than {} MB", bytes >> 20));
            }
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn many_files_large_files_and_deep_directories_pass_a_limit() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("scratch");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), vec![b'x'; 100_000]).unwrap();
        std::os::unix::fs::symlink("/usr", root.join("link")).unwrap();
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
}
