//! The content of the files that a load or reload would load, at the time when a person is asked.
//! The approval is for the content, not for the names.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::bounded_file;
use crate::image::api::reload::Allowed;

/// Files, with links resolved and the SHA-256 of their content, in hex. Two values are equal if
/// their paths and digests are equal, regardless of when they were read.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    files: BTreeMap<PathBuf, String>,
    /// The time before the files were read, in seconds since 1970.
    read: u64,
}

impl PartialEq for Sources {
    fn eq(&self, other: &Sources) -> bool {
        self.files == other.files
    }
}

impl Eq for Sources {}

impl Sources {
    /// Reads the files. Leaves out files that are missing or cannot be read. Blocks on disk access.
    pub fn of(files: impl IntoIterator<Item = PathBuf>) -> Sources {
        let read = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let real = files.into_iter().filter_map(|file| file.canonicalize().ok());
        let files = real.filter_map(|file| Some((digest_of(&file).ok()?, file)));
        Sources { files: files.map(|(digest, file)| (file, digest)).collect(), read }
    }

    /// Returns true if there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the files' paths.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// Returns the files below `within` that may be loaded, in the form of docs/wire.md.
    pub fn allowed(&self, within: &Path) -> Allowed {
        let mut within = within.canonicalize().unwrap_or_else(|_| within.to_owned()).into_os_string();
        within.push("/");
        Allowed {
            within: within.into(),
            files: self.files.iter().map(|(file, digest)| (file.clone(), digest.clone())).collect(),
            asked: None,
        }
    }

    /// Returns the same as [`Sources::allowed`], and also allows every other file below `within`
    /// that has not changed since these files were read. The sources of third-party systems are too
    /// many to be read.
    pub fn allowed_to_load(&self, within: &Path) -> Allowed {
        Allowed { asked: Some(self.read), ..self.allowed(within) }
    }

    /// Reads the files again and compares them.
    ///
    /// # Errors
    ///
    /// The message names the file that changed or cannot be read.
    pub fn recheck(&self) -> Result<(), String> {
        for (file, digest) in &self.files {
            let why = match digest_of(file) {
                Ok(now) if now == *digest => continue,
                Ok(_) => "was changed or replaced since it was allowed".to_owned(),
                Err(error) => format!("was allowed and cannot be read now ({error})"),
            };
            return Err(format!("{} {why}; nothing was done. Call again for a new decision", file.display()));
        }
        Ok(())
    }
}

/// The size limit of a file whose digest is computed, in bytes.
const DIGEST_LIMIT: u64 = 1 << 30;

/// Returns the SHA-256 of a file's content, in hex.
///
/// # Errors
///
/// The file cannot be read.
pub fn digest_of(file: &Path) -> io::Result<String> {
    let (file, _) = bounded_file::open(file)?;
    let mut file = file.take(DIGEST_LIMIT + 1);
    let mut length = 0;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 65_536];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => {
                hash.update(&buffer[..count]);
                length += count as u64;
            }
        }
    }
    if length > DIGEST_LIMIT {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is longer than {DIGEST_LIMIT} bytes")));
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_content_is_bound_and_not_the_time() {
        let directory = tempfile::tempdir().unwrap();
        let [a, b] = ["a.lisp", "b.lisp"].map(|name| directory.path().join(name));
        std::fs::write(&a, "(a)").unwrap();
        std::fs::write(&b, "(b)").unwrap();
        let sources = Sources::of([a.clone(), b.clone(), directory.path().join("none.lisp")]);
        assert_eq!(sources.paths().count(), 2);
        std::fs::write(&a, "(a)").unwrap();
        assert_eq!(sources.recheck(), Ok(()));
        std::fs::rename(&b, &a).unwrap();
        assert!(sources.recheck().unwrap_err().contains("a.lisp was changed"));
    }
}
