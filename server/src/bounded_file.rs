//! Bounded reading of files that another user or program may have put in place: regular files
//! only, up to a size limit, without blocking on a FIFO.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::fault::{self, Call};

/// The largest Lisp source that is read, in bytes.
pub const SOURCE_LIMIT: u64 = 64 << 20;

/// Opens a regular file for reading. A device is not opened. A FIFO that replaces the file after
/// the check does not block.
///
/// # Errors
/// An I/O error; `InvalidInput` when `path` is not a regular file.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    check(&std::fs::metadata(path)?)?;
    fault::point(Call::Open)?;
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    let facts = file.metadata()?;
    check(&facts)?;
    Ok((file, facts))
}

/// Returns the contents of an open file.
///
/// # Errors
/// An I/O error; `FileTooLarge` when the file has more than `limit` bytes.
pub fn contents(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let message = format!("it is longer than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Returns the contents of a regular file.
///
/// # Errors
/// The errors of [`open`] and [`contents`].
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    contents(open(path)?.0, limit)
}

/// Runs [`read`] on a blocking thread.
///
/// # Errors
/// The errors of [`read`].
pub async fn read_blocking(path: PathBuf, limit: u64) -> io::Result<Vec<u8>> {
    tokio::task::spawn_blocking(move || read(&path, limit)).await.map_err(io::Error::other)?
}

fn check(facts: &Metadata) -> io::Result<()> {
    if facts.is_file() {
        return Ok(());
    }
    let message = if facts.is_dir() { "it is a directory" } else { "it is not a regular file" };
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_has_no_end_is_refused_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        symlink("/dev/zero", at("zero")).unwrap();
        let made = std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap();
        assert!(made.success());
        symlink("loop", at("loop")).unwrap();
        std::fs::write(at("long"), [b'x'; 11]).unwrap();
        for name in ["zero", "fifo", ".", "loop", "long", "missing"] {
            assert!(read(&at(name), 10).is_err(), "{name}");
        }
        assert_eq!(read(&at("missing"), 10).unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::write(at("short"), [b'x'; 10]).unwrap();
        symlink("short", at("link")).unwrap();
        assert_eq!(read(&at("link"), 10).unwrap().len(), 10);
        // Files of /proc report size 0 and still have contents.
        assert!(!read(Path::new("/proc/self/status"), 1 << 16).unwrap().is_empty());
    }
}
