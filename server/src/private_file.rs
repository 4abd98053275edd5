//! Files of the host that only this user may read.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::fault::{self, Call};

/// Writes a file anew, whatever the umask. Others read it at any moment, and a full disk must not
/// leave half of it: the contents are written beside it, to `NAME.new`. Blocks.
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
