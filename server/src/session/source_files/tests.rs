//! Tests of the files that are read and written for an agent.

#![allow(clippy::unwrap_used)]

use std::os::unix::fs::{PermissionsExt, symlink};

use std::os::unix::fs::{MetadataExt, fchown};

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

use super::*;

fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let workspace = place.path().canonicalize().unwrap().join("w");
    std::fs::create_dir(&workspace).unwrap();
    (place, workspace)
}

#[test]
fn only_files_within_are_read_links_resolved() {
    let (place, workspace) = place();
    std::fs::write(place.path().join("secret"), "(secret)").unwrap();
    std::fs::write(workspace.join("a.lisp"), "(a)").unwrap();
    symlink(place.path(), workspace.join("out")).unwrap();
    symlink("a.lisp", workspace.join("link.lisp")).unwrap();
    assert_eq!(read(&workspace, "a.lisp").unwrap().text, "(a)");
    assert_eq!(read(&workspace, "./link.lisp").unwrap().path, workspace.join("a.lisp"));
    for (path, kind) in [
        ("out/secret", "outside-workspace"),
        ("../secret", "outside-workspace"),
        ("/etc/passwd", "outside-workspace"),
        ("none.lisp", "not-found"),
        (".", "not-a-file"),
    ] {
        assert_eq!(read(&workspace, path).unwrap_err().kind, kind, "{path}");
    }
}

#[test]
fn a_file_is_written_whole_with_its_mode_encoding_and_mark() {
    let (_place, workspace) = place();
    let path = workspace.join("a.lisp");
    symlink("a.lisp", workspace.join("link.lisp")).unwrap();
    for (old, text, new) in [
        (&b"\xef\xbb\xbf(a)\r\n"[..], "(b)\r\n", &b"\xef\xbb\xbf(b)\r\n"[..]),
        (b"(a \xe9)", "(b \u{e9})", b"(b \xe9)"),
        ("(a é𝄞)".as_bytes(), "(b é𝄞)", "(b é𝄞)".as_bytes()),
    ] {
        std::fs::write(&path, old).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o754)).unwrap();
        let file = read(&workspace, "link.lisp").unwrap();
        let bytes = file.encoded(text).unwrap();
        write(&workspace, &file, &bytes).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), new);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o754);
    }
    assert!(workspace.join("link.lisp").symlink_metadata().unwrap().is_symlink());
    assert_eq!(std::fs::read_dir(&workspace).unwrap().count(), 2, "nothing else is left");
    std::fs::write(&path, b"(a \xe9)").unwrap();
    assert_eq!(read(&workspace, "a.lisp").unwrap().encoded("(𝄞)").unwrap_err().kind, "encoding");
    // Root may write the file nevertheless.
    assert!(read(&workspace, "a.lisp").unwrap().writable().is_ok());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    let mut file = read(&workspace, "a.lisp").unwrap();
    let why = file.writable().unwrap_err();
    assert!(why.kind == "not-written" && why.message.contains("chmod u+w"), "{why}");
    file.read_only = ReadOnly::of(Err(rustix::io::Errno::ROFS), &path.metadata().unwrap().permissions());
    let why = file.writable().unwrap_err();
    assert!(why.kind == "not-written" && !why.message.contains("chmod") && why.message.contains("mounted"), "{why}");
}

/// Only root can give files to other users. Others can give their files to a group that they are
/// in.
#[test]
fn a_file_keeps_its_owner_and_group() {
    let (_place, workspace) = place();
    let path = workspace.join("a.lisp");
    std::fs::write(&path, "(a)").unwrap();
    let own = path.metadata().unwrap();
    let (owner, group) = if rustix::process::geteuid().is_root() {
        (own.uid() + 4321, own.gid() + 1234)
    } else {
        let groups = rustix::process::getgroups().unwrap();
        let other = groups.iter().map(|group| group.as_raw()).find(|group| *group != own.gid());
        // For a user in only one group, only the owner can be compared.
        (own.uid(), other.unwrap_or(own.gid()))
    };
    fchown(std::fs::File::open(&path).unwrap(), Some(owner), Some(group)).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    write(&workspace, &read(&workspace, "a.lisp").unwrap(), b"(b)").unwrap();
    let facts = path.metadata().unwrap();
    assert_eq!((facts.uid(), facts.gid(), facts.mode() & 0o777), (owner, group, 0o640));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "(b)");
}

#[test]
fn a_file_with_a_long_name_keeps_its_access_control_list_and_other_attributes() {
    let (_place, workspace) = place();
    let name = format!("{}.lisp", "x".repeat(250));
    let path = workspace.join(&name);
    std::fs::write(&path, "(a)").unwrap();
    // Version 2: the owner reads and writes, the user 4321 reads, the group and others nothing.
    let entries = [(0x01, 6, u32::MAX), (0x02, 4, 4321), (0x04, 0, u32::MAX), (0x10, 4, u32::MAX), (0x20, 0, u32::MAX)];
    let list = entries.iter().fold(vec![2, 0, 0, 0], |mut list, (tag, permissions, id)| {
        list.extend([*tag, 0, *permissions, 0]);
        list.extend(id.to_le_bytes());
        list
    });
    let attributes = [("user.consort.test", &b"kept"[..]), ("system.posix_acl_access", &list[..])];
    let file = std::fs::File::open(&path).unwrap();
    // Not every file system has all of them.
    let set: Vec<_> =
        attributes.iter().filter(|(name, value)| fsetxattr(&file, *name, value, XattrFlags::empty()).is_ok()).collect();
    write(&workspace, &read(&workspace, &name).unwrap(), b"(b)").unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "(b)");
    let file = std::fs::File::open(&path).unwrap();
    for (name, value) in set {
        let mut now = [0; 100];
        let length = fgetxattr(&file, *name, &mut now[..]).unwrap();
        assert_eq!(&now[..length], *value, "{name}");
    }
}

#[test]
fn what_was_changed_or_moved_meanwhile_is_not_written() {
    let (place, workspace) = place();
    let inner = workspace.join("d");
    std::fs::create_dir(&inner).unwrap();
    let path = inner.join("a.lisp");
    std::fs::write(&path, "(a)").unwrap();
    let file = read(&workspace, "d/a.lisp").unwrap();

    std::fs::write(&path, "(b)").unwrap();
    assert_eq!(write(&workspace, &file, b"(c)").unwrap_err().kind, "file-changed");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "(b)");

    // Another file with the same text.
    std::fs::write(inner.join("b.lisp"), "(a)").unwrap();
    std::fs::rename(inner.join("b.lisp"), &path).unwrap();
    assert_eq!(write(&workspace, &file, b"(c)").unwrap_err().kind, "file-changed");

    // A directory replaced by a link to outside.
    let file = read(&workspace, "d/a.lisp").unwrap();
    let outside = place.path().join("outside");
    std::fs::rename(&inner, &outside).unwrap();
    symlink(&outside, &inner).unwrap();
    assert!(write(&workspace, &file, b"(c)").is_err());
    assert_eq!(std::fs::read_to_string(outside.join("a.lisp")).unwrap(), "(a)");
}
