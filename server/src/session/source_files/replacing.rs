//! Replacement of a file's content: a new file with the old one's owner, permissions and attributes
//! takes its name.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;
use std::sync::Mutex;

use rustix::fs::{AtFlags, Mode, OFlags, XattrFlags, fgetxattr, flistxattr, fsetxattr};
use rustix::io::Errno;

use super::{FileError, MAX_FILE_BYTES, SourceFile, directory, error, identity, resolve, split};
use crate::fault::{self, Call};
use crate::locked::lock;

/// The lock that serializes writes, from the last check of a file to the rename.
static WRITING: Mutex<u64> = Mutex::new(0);
/// The maximum number of bytes of a file's name that its temporary file has in its own name.
const MAX_NAME_BYTES: usize = 200;
/// The maximum size of an extended attribute, and of the list of their names, on Linux.
const MAX_ATTRIBUTE_BYTES: usize = 1 << 16;
/// The extended attribute with a file's access control list.
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
/// The attributes that are hashes and signatures of the content (Linux IMA and EVM).
const OF_THE_CONTENT: [&[u8]; 2] = [b"security.ima", b"security.evm"];

/// Writes a temporary file and renames it, in the directory as resolved, after a last check that
/// the file is still the same.
pub(super) fn write(workspace: &Path, file: &SourceFile, bytes: &[u8]) -> Result<(), FileError> {
    let mut number = lock(&WRITING);
    *number += 1;
    let failed = |why: String| {
        error("not-written", format!("{} could not be written: {why}. Nothing was changed.", file.relative))
    };
    let changed = || {
        error(
            "file-changed",
            format!(
                "{} was changed or replaced by somebody else meanwhile. Nothing was changed: read it again.",
                file.relative
            ),
        )
    };
    let (name_given, _) = resolve(workspace, &file.path.to_string_lossy())?;
    let (parent, name) = split(&file.path)?;
    let parent = directory(parent).map_err(|_| changed())?;
    if name_given != file.path || identity(parent.as_fd(), name).ok() != file.identity {
        return Err(changed());
    }
    let old = rustix::fs::openat(
        parent.as_fd(),
        name,
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK,
        Mode::empty(),
    )
    .map_err(|why| failed(why.to_string()))?;
    let mut old = std::fs::File::from(old);
    let mut now = Vec::new();
    Read::take(&mut old, MAX_FILE_BYTES + 1).read_to_end(&mut now).map_err(|why| failed(why.to_string()))?;
    if now != file.bytes {
        return Err(changed());
    }
    let facts = old.metadata().map_err(|why| failed(why.to_string()))?;
    // A file that is replaced by a rename must itself be writable.
    rustix::fs::accessat(parent.as_fd(), name, rustix::fs::Access::WRITE_OK, AtFlags::empty())
        .map_err(|why| failed(why.to_string()))?;
    let temporary = temporary_name(name, *number);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let new = fault::point(Call::Open)
        .and_then(|()| Ok(rustix::fs::openat(parent.as_fd(), &temporary, flags, Mode::RUSR | Mode::WUSR)?))
        .map_err(|why| failed(why.to_string()))?;
    let mut new = std::fs::File::from(new);
    let written = fault::point(Call::Write)
        .and_then(|()| new.write_all(bytes))
        .and_then(|()| keep_owner(&new, &old, &facts))
        .and_then(|()| new.sync_all())
        .map_err(|why| failed(why.to_string()))
        .and_then(|()| if identity(parent.as_fd(), name).ok() == file.identity { Ok(()) } else { Err(changed()) })
        .and_then(|()| {
            rustix::fs::renameat(parent.as_fd(), &temporary, parent.as_fd(), name)
                .map_err(|why| failed(why.to_string()))
        });
    if written.is_err() {
        let _ = rustix::fs::unlinkat(parent.as_fd(), &temporary, AtFlags::empty());
    }
    written
}

/// Returns the name of the temporary file for a file of this name.
fn temporary_name(name: &OsStr, number: u64) -> OsString {
    let name = &name.as_bytes()[..name.len().min(MAX_NAME_BYTES)];
    let end = format!(".consort-{}-{number}", std::process::id());
    OsString::from_vec([b".", name, end.as_bytes()].concat())
}

/// Gives a new file the owner, the group, the permissions and the extended attributes of the one
/// that it replaces, as far as the system allows it: root may work in the files of another user.
fn keep_owner(new: &File, old: &File, facts: &Metadata) -> io::Result<()> {
    let own = new.metadata()?;
    if own.gid() != facts.gid() {
        // The owner of a file may give it only to groups of which the owner is a member.
        let _ = fchown(new, None, Some(facts.gid()));
    }
    if own.uid() != facts.uid() {
        // Only root may do this.
        let _ = fchown(new, Some(facts.uid()), None);
    }
    let own = new.metadata()?;
    let has_group = own.gid() == facts.gid();
    let mode = mode_to_keep(facts.mode(), own.uid() == facts.uid(), has_group);
    new.set_permissions(Permissions::from_mode(mode))?;
    keep_attributes(new, old, has_group)
}

/// Returns the permissions of a file that replaces one with the permissions `mode`. Another group
/// gets those that all users had.
fn mode_to_keep(mode: u32, has_owner: bool, has_group: bool) -> u32 {
    let mut kept = mode & 0o7777;
    if !has_owner {
        kept &= !0o4000;
    }
    if !has_group {
        kept = (kept & !0o2070) | ((kept & 0o007) << 3);
    }
    kept
}

/// Gives a new file the extended attributes of another. The access control list is left out without
/// the group of the old file, to which it refers.
fn keep_attributes(new: &File, old: &File, has_group: bool) -> io::Result<()> {
    let mut names = vec![0; MAX_ATTRIBUTE_BYTES];
    let length = match flistxattr(old, &mut names[..]) {
        // The file system has none, or more than fit.
        Err(Errno::NOTSUP | Errno::NOSYS | Errno::RANGE) => 0,
        length => length?,
    };
    let mut value = vec![0; MAX_ATTRIBUTE_BYTES];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        if (name == ACCESS_LIST && !has_group) || OF_THE_CONTENT.contains(&name) {
            continue;
        }
        let copied = fgetxattr(old, name, &mut value[..])
            .and_then(|length| fsetxattr(new, name, &value[..length], XattrFlags::empty()));
        // Some attributes are the system's alone, or too large. Without its access control list, a
        // file would have other permissions.
        if name == ACCESS_LIST {
            copied?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::mode_to_keep;

    #[test]
    fn another_group_gets_no_permissions_of_the_old_one() {
        assert_eq!(mode_to_keep(0o100_660, true, true), 0o660);
        assert_eq!(mode_to_keep(0o100_660, true, false), 0o600);
        assert_eq!(mode_to_keep(0o102_664, true, false), 0o644);
        assert_eq!(mode_to_keep(0o104_755, false, true), 0o755);
    }
}
