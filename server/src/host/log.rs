//! The log file of a host in the background. It is bounded, there is one for each workspace, and it
//! is kept after the host has ended.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use super::runtime_dir::name_of;
use crate::fault::{self, Call};
use crate::locked::lock;

/// The size limit of the log, and of the previous log, in bytes.
const LIMIT: u64 = 1 << 20;
/// The age at which unused logs of other hosts are removed, when a host starts.
const RETENTION: Duration = Duration::from_secs(30 * 24 * 3600);

/// Returns the log file of a workspace's host: `$XDG_STATE_HOME/consort/<hash>.log`, or on macOS a
/// file in the cache directory. Returns `None` without a home directory.
pub fn path_for(workspace: &Path) -> Option<PathBuf> {
    Some(crate::config::state_directory()?.join(format!("{}.log", name_of(workspace))))
}

/// An open log that starts over when it is full, keeping the previous one as `.log.old`.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: Mutex<(File, u64)>,
}

impl Log {
    /// Opens the log for appending, creating its directory, and removes old logs of other hosts
    /// there.
    ///
    /// # Errors
    /// An I/O error.
    pub fn open(path: PathBuf) -> io::Result<Log> {
        let file = append(&path)?;
        path.parent().into_iter().for_each(prune);
        let length = file.metadata()?.len();
        Ok(Log { path, file: Mutex::new((file, length)) })
    }

    fn write_line(&self, line: &[u8]) -> io::Result<()> {
        let mut guard = lock(&self.file);
        let (file, length) = &mut *guard;
        // Another host may have removed a log that was not written for long.
        if file.metadata()?.nlink() == 0 {
            *file = append(&self.path)?;
            *length = file.metadata()?.len();
        }
        if *length + line.len() as u64 > LIMIT {
            match std::fs::rename(&self.path, self.path.with_extension("log.old")) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            *file = append(&self.path)?;
            *length = 0;
        }
        let line = &line[..line.len().min(LIMIT as usize)];
        fault::point(Call::Write)?;
        file.write_all(line)?;
        *length += line.len() as u64;
        Ok(())
    }
}

impl Write for &Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_line(line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens a log for appending, and creates it and its directory if they do not exist.
fn append(path: &Path) -> io::Result<File> {
    if let Some(directory) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    fault::point(Call::Open)?;
    File::options().create(true).append(true).mode(0o600).open(path)
}

fn prune(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_log = name.to_str().is_some_and(|name| name.ends_with(".log") || name.ends_with(".log.old"));
        let modified = entry.metadata().and_then(|meta| meta.modified());
        let is_old = modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > RETENTION));
        if is_log && is_old {
            // Another host may have removed the file at the same moment.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn it_stays_within_its_limit_and_keeps_the_last_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/x.log");
        let log = Log::open(path.clone()).unwrap();
        for n in 0..40_000 {
            writeln!(&log, "line {n} {}", "x".repeat(60)).unwrap();
        }
        let old = path.with_extension("log.old");
        assert!(std::fs::metadata(&path).unwrap().len() <= LIMIT);
        assert!(std::fs::metadata(&old).unwrap().len() <= LIMIT);
        assert!(std::fs::read_to_string(&path).unwrap().contains("line 39999 "));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 2);
    }

    #[test]
    fn a_log_that_was_removed_is_begun_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/x.log");
        let log = Log::open(path.clone()).unwrap();
        writeln!(&log, "first").unwrap();
        std::fs::remove_file(&path).unwrap();
        writeln!(&log, "second").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second\n");
        std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
        let full = "x".repeat(LIMIT as usize - 1);
        for _ in 0..2 {
            writeln!(&log, "{full}").unwrap();
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), LIMIT);
    }
}
