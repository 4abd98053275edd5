//! The ownership check of a workspace's settings file. The file is used only if nobody but the user
//! and root can have written it.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::acl;
use crate::bounded_file;
use crate::foreign_owned::is_foreign_owned;

/// The name of a workspace's settings file.
pub const NAME: &str = "consort.toml";
/// The size limit of the settings file, in bytes.
pub(super) const LIMIT: u64 = 64 << 10;
/// The size limit of `/etc/passwd` and `/etc/group`, in bytes.
const GROUPS: u64 = 4 << 20;

const WRITE_GROUP: u32 = 0o020;
const WRITE_OTHERS: u32 = 0o002;

/// Returns the reason, for a person, why the settings file in `directory` must not be used. Returns
/// `None` if the file may be used or does not exist.
pub fn fault(directory: &Path) -> Option<String> {
    let file = directory.join(NAME);
    // The owner of a symbolic link is checked too, because that user chose the target.
    let link = std::fs::symlink_metadata(&file).ok()?;
    let uid = rustix::process::geteuid().as_raw();
    if let Some(fault) = owner_fault(&link, uid) {
        return Some(format!("it {fault}"));
    }
    let target = match file.canonicalize() {
        Ok(target) => target,
        Err(error) => return Some(format!("it cannot be read ({error})")),
    };
    match std::fs::metadata(&target) {
        Ok(facts) if !facts.is_file() => return Some("it is not a regular file".into()),
        Ok(facts) => {
            if let Some(fault) = facts_fault(&facts, uid).or_else(|| acl::fault(&target, uid)) {
                return Some(format!("it {fault}"));
            }
        }
        Err(error) => return Some(format!("it cannot be read ({error})")),
    }
    let directories = [Some(directory), target.parent().filter(|parent| *parent != directory)];
    directories.into_iter().flatten().find_map(|directory| match std::fs::metadata(directory) {
        Ok(facts) => {
            let fault = facts_fault(&facts, uid).or_else(|| acl::fault(directory, uid));
            fault.map(|fault| format!("its directory {} {fault}", directory.display()))
        }
        Err(error) => Some(format!("its directory cannot be looked at ({error})")),
    })
}

/// Returns the contents of the settings file in `directory`, or `None` if there is none. The
/// ownership is checked on the open file.
///
/// # Errors
/// The reason why the file must not be used, for a person.
pub(super) fn read(directory: &Path) -> Result<Option<Vec<u8>>, String> {
    let file = directory.join(NAME);
    match std::fs::symlink_metadata(&file) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        _ => {}
    }
    let advice = "make it and its directory yours alone to write (`chown`, `chmod go-w`) if you want its settings";
    let ignored = |why: &str| format!("is ignored: {why}; {advice}");
    if let Some(fault) = fault(directory) {
        return Err(ignored(&fault));
    }
    let unread = |error: io::Error| format!("is ignored: it cannot be read ({error})");
    let (open, facts) = bounded_file::open(&file).map_err(unread)?;
    // The file may have been replaced since the first check.
    let uid = rustix::process::geteuid().as_raw();
    if let Some(fault) = facts_fault(&facts, uid).or_else(|| acl::fault_of(&open, uid)) {
        return Err(ignored(&format!("it {fault}")));
    }
    bounded_file::contents(open, LIMIT).map(Some).map_err(unread)
}

fn owner_fault(facts: &Metadata, uid: u32) -> Option<String> {
    (facts.uid() != uid && facts.uid() != 0).then(|| format!("belongs to another user (uid {})", facts.uid()))
}

fn facts_fault(facts: &Metadata, uid: u32) -> Option<String> {
    if let Some(fault) = owner_fault(facts, uid) {
        return Some(fault);
    }
    if facts.mode() & WRITE_OTHERS != 0 {
        return Some("can be written by every user".into());
    }
    if facts.mode() & WRITE_GROUP != 0 && !is_private_group(facts.gid(), uid) {
        return Some(format!("can be written by other users (group {})", facts.gid()));
    }
    None
}

/// Returns true if the user is the only member of the group. Systems with a umask of 002 create
/// such a group for each user.
fn is_private_group(gid: u32, uid: u32) -> bool {
    // The members of root's group could become root in any case.
    if uid == 0 && gid == 0 {
        return true;
    }
    let text =
        |path| bounded_file::read(Path::new(path), GROUPS).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let (Ok(users), Ok(groups)) = (text("/etc/passwd"), text("/etc/group")) else { return false };
    is_private(&users, &groups, gid, uid)
}

/// Returns true if the group is the user's primary group, has the user's name and no other member,
/// and is no other user's primary group.
fn is_private(users: &str, groups: &str, gid: u32, uid: u32) -> bool {
    let number = |field: Option<&&str>| field.and_then(|field| field.parse::<u32>().ok());
    let mut name = None;
    for line in users.lines() {
        let fields: Vec<&str> = line.split(':').collect();
        if number(fields.get(3)) != Some(gid) {
            continue;
        }
        if number(fields.get(2)) != Some(uid) {
            return false;
        }
        name = fields.first().map(|name| (*name).to_owned());
    }
    let Some(name) = name else { return false };
    groups.lines().any(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let members = fields.get(3).copied().unwrap_or_default();
        number(fields.get(2)) == Some(gid)
            && fields.first() == Some(&name.as_str())
            && members.split(',').all(|member| member.is_empty() || member == name)
    })
}

/// Returns the settings file above `workspace` at which the search for the workspace ended, and the
/// reason why that file is not used.
pub fn ignored_above(workspace: &Path) -> Option<(PathBuf, String)> {
    if is_marked(workspace) || fault(workspace).is_some() {
        return None;
    }
    for dir in workspace.ancestors().skip(1) {
        if let Some(fault) = fault(dir) {
            return Some((dir.join(NAME), fault));
        }
        if is_marked(dir) {
            return None;
        }
    }
    None
}

/// Returns true if a directory has a marker of the root of a project. A project may have several
/// systems.
pub(crate) fn is_root(dir: &Path) -> bool {
    let git = dir.join(".git");
    (git.exists() && !is_foreign_owned(&git)) || dir.join("consort.toml").is_file()
}

/// Returns true if a directory has a marker of a workspace. A marker that another user put into a
/// directory that everybody may write does not count.
pub(crate) fn is_marked(dir: &Path) -> bool {
    if is_root(dir) {
        return true;
    }
    // A directory that cannot be listed has no usable marker.
    let names_system =
        |path: &Path| path.extension().is_some_and(|extension| extension == "asd") && !is_foreign_owned(path);
    std::fs::read_dir(dir).is_ok_and(|entries| entries.flatten().any(|entry| names_system(&entry.path())))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn workspace() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(NAME), "[check]\n").unwrap();
        mode(dir.path(), 0o755);
        mode(&dir.path().join(NAME), 0o644);
        dir
    }

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_can_write_is_not_used() {
        let dir = workspace();
        assert_eq!(fault(dir.path()), None);
        assert_eq!(read(dir.path()).unwrap().unwrap(), b"[check]\n");
        mode(&dir.path().join(NAME), 0o666);
        assert!(read(dir.path()).unwrap_err().contains("can be written by every user"));
        mode(&dir.path().join(NAME), 0o644);
        mode(dir.path(), 0o1777);
        assert!(read(dir.path()).unwrap_err().contains("its directory"));
    }

    #[test]
    fn a_link_into_a_directory_of_everybody_and_a_device_are_not_used() {
        let (dir, shared) = (workspace(), workspace());
        std::fs::remove_file(dir.path().join(NAME)).unwrap();
        assert_eq!(read(dir.path()).unwrap(), None);
        symlink(shared.path().join(NAME), dir.path().join(NAME)).unwrap();
        assert!(read(dir.path()).unwrap().is_some(), "a link to a file of one's own is as good as the file");
        mode(shared.path(), 0o777);
        assert!(read(dir.path()).unwrap_err().contains("its directory"));
        std::fs::remove_file(dir.path().join(NAME)).unwrap();
        symlink("/dev/zero", dir.path().join(NAME)).unwrap();
        assert!(read(dir.path()).unwrap_err().contains("not a regular file"));
        std::fs::remove_file(dir.path().join(NAME)).unwrap();
        symlink("nowhere", dir.path().join(NAME)).unwrap();
        assert!(read(dir.path()).unwrap_err().contains("cannot be read"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_an_access_list_lets_others_write_is_not_used() {
        // user::rwx, user:4242:rwx, group::r-x, mask::rwx, other::r-x (acl(5)).
        let entries = [
            (0x01_u16, 7_u16, u32::MAX),
            (0x02, 7, 4242),
            (0x04, 5, u32::MAX),
            (0x10, 7, u32::MAX),
            (0x20, 5, u32::MAX),
        ];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, may, id) in entries {
            list.extend([&tag.to_le_bytes()[..], &may.to_le_bytes(), &id.to_le_bytes()].concat());
        }
        for name in [NAME, "."] {
            let dir = workspace();
            // The user's own group may write, so that the mode bits show no fault.
            rustix::fs::chown(dir.path().join(name), None, Some(rustix::process::getegid())).unwrap();
            let flags = rustix::fs::XattrFlags::empty();
            match rustix::fs::setxattr(dir.path().join(name), "system.posix_acl_access", &list, flags) {
                Err(rustix::io::Errno::OPNOTSUPP) => return, // a file system without access lists
                other => other.unwrap(),
            }
            assert!(read(dir.path()).unwrap_err().contains("other users"), "{name}");
        }
    }

    #[test]
    fn a_file_of_another_user_is_not_used() {
        if !rustix::process::geteuid().is_root() {
            return; // only root can give a file away
        }
        let stranger = rustix::fs::Uid::from_raw(4242);
        let dir = workspace();
        rustix::fs::chown(dir.path().join(NAME), Some(stranger), None).unwrap();
        assert!(read(dir.path()).unwrap_err().contains("belongs to another user (uid 4242)"));
        let dir = workspace();
        rustix::fs::chown(dir.path(), Some(stranger), None).unwrap();
        assert!(read(dir.path()).unwrap_err().contains("its directory"));
        let dir = workspace();
        rustix::fs::chown(dir.path().join(NAME), None, Some(rustix::fs::Gid::from_raw(4242))).unwrap();
        assert!(read(dir.path()).unwrap().is_some(), "the group cannot write");
        mode(&dir.path().join(NAME), 0o664);
        assert!(read(dir.path()).unwrap_err().contains("group 4242"));
    }

    #[test]
    fn only_a_group_of_ones_own_is_private() {
        let users = "root:x:0:0:::\nann:x:1000:1000:::\nbob:x:1001:1001:::\neve:x:1002:100:::\nfay:x:1003:100:::\n";
        let groups = "root:x:0:\nann:x:1000:\nbob:x:1001:ann\nusers:x:100:\nother:x:1005:\n";
        assert!(is_private(users, groups, 1000, 1000));
        assert!(!is_private(users, groups, 1001, 1001), "ann is a member");
        assert!(!is_private(users, groups, 100, 1002), "fay's too");
        assert!(!is_private(users, groups, 1000, 1001));
        assert!(!is_private(users, groups, 1005, 1000));
    }
}
