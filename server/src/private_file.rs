//! Files of the host that only this user may read.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::fault::{self, Call};

/// Replaces a file's contents. The mode is 0600 whatever the umask is. The contents are first
/// written to `NAME.new` beside the file: others may read the file at any moment, and a full disk
/// must not leave half of it. Blocks.
///
/// # Errors
/// An I/O error.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    fault::point(Call::Write)?;
    File::options().create(true).truncate(true).write(true).mode(0o600).open(&new)?.write_all(bytes)?;
    std::fs::rename(&new, path)
}
