//! Access lists of files (acl(5)): the users and groups that may write besides owner and group.

use std::fs::File;
use std::path::Path;

use rustix::io::Errno;

#[cfg(target_os = "linux")]
const NAME: &str = "system.posix_acl_access";
/// The largest access list that is read, in bytes.
#[cfg(target_os = "linux")]
const LIMIT: usize = 4096;
const VERSION: u32 = 2;
/// The tags of entries for a named user and a named group.
const USER: u16 = 0x02;
const GROUP: u16 = 0x08;
const WRITE: u16 = 0x02;

/// Returns the reason, for a person, if the access list lets others than `uid` and root write the
/// file. A permission that the mask takes away counts, too, because a change of the mode gives it
/// back.
#[cfg(target_os = "linux")]
pub(super) fn fault(path: &Path, uid: u32) -> Option<String> {
    let mut list = [0; LIMIT];
    let read = rustix::fs::getxattr(path, NAME, &mut list);
    explain(read.map(|length| &list[..length]), uid)
}

/// Returns the [`fault`] of an open file.
#[cfg(target_os = "linux")]
pub(super) fn fault_of(file: &File, uid: u32) -> Option<String> {
    let mut list = [0; LIMIT];
    let read = rustix::fs::fgetxattr(file, NAME, &mut list);
    explain(read.map(|length| &list[..length]), uid)
}

/// Returns `None`, because access lists are read on Linux only.
#[cfg(not(target_os = "linux"))]
pub(super) fn fault(_: &Path, _: u32) -> Option<String> {
    None
}

/// Returns the [`fault`] of an open file.
#[cfg(not(target_os = "linux"))]
pub(super) fn fault_of(_: &File, _: u32) -> Option<String> {
    None
}

#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux has these lists"))]
fn explain(list: Result<&[u8], Errno>, uid: u32) -> Option<String> {
    match list {
        Ok(list) => writer(list, uid).map(|who| format!("can be written by other users ({who}, by its access list)")),
        // The file has no access list, or its file system has none.
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOENT) => None,
        Err(error) => Some(format!("has an access list that cannot be read ({error})")),
    }
}

/// Returns the first user or group of a list that may write, except `uid` and root. Returns
/// `unknown` for a list that cannot be understood.
fn writer(list: &[u8], uid: u32) -> Option<String> {
    let Some((version, entries)) = list.split_first_chunk::<4>() else { return Some("unknown".into()) };
    if u32::from_le_bytes(*version) != VERSION || !entries.len().is_multiple_of(8) {
        return Some("unknown".into());
    }
    entries.chunks_exact(8).find_map(|entry| {
        let [tag, may] = [0, 2].map(|at| u16::from_le_bytes([entry[at], entry[at + 1]]));
        let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        match tag {
            _ if may & WRITE == 0 => None,
            USER if id != uid && id != 0 => Some(format!("user {id}")),
            GROUP => Some(format!("group {id}")),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let entry =
            |(tag, may, id): &(u16, u16, u32)| [&tag.to_le_bytes()[..], &may.to_le_bytes(), &id.to_le_bytes()].concat();
        VERSION.to_le_bytes().into_iter().chain(entries.iter().flat_map(entry)).collect()
    }

    #[test]
    fn who_may_write_is_found() {
        for (entries, found) in [
            (&[(0x01, 6, u32::MAX), (0x04, 6, u32::MAX), (0x20, 4, u32::MAX)][..], None),
            (&[(0x02, 4, 1001), (0x10, 6, u32::MAX)], None),
            (&[(0x02, 7, 1000), (0x02, 7, 0)], None),
            (&[(0x02, 4, 1001), (0x02, 6, 1002)], Some("user 1002")),
            (&[(0x08, 2, 50)], Some("group 50")),
        ] {
            assert_eq!(writer(&list(entries), 1000).as_deref(), found, "{entries:?}");
        }
        for broken in [&[][..], &[2, 0], &[3, 0, 0, 0], &[2, 0, 0, 0, 1]] {
            assert!(writer(broken, 1000).is_some(), "{broken:?}");
        }
        assert_eq!(explain(Err(Errno::NODATA), 1000), None);
        assert!(explain(Err(Errno::RANGE), 1000).is_some());
    }
}
