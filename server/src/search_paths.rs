//! The variables of the environment that name the places of programs, libraries and the person's
//! own files. Entries that would name directories of the workspace are removed for the programs
//! that Consort starts, because these programs run in the workspace.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Lists of directories or files, and the bytes that separate their entries. An entry that is empty
/// or relative counts from the current directory (execvp(3), ld.so(8)).
const LISTS: [(&str, &[u8]); 8] = [
    ("PATH", b":"),
    ("LD_LIBRARY_PATH", b":;"),
    ("GCONV_PATH", b":"),
    ("DYLD_LIBRARY_PATH", b":"),
    ("DYLD_FALLBACK_LIBRARY_PATH", b":"),
    ("DYLD_FRAMEWORK_PATH", b":"),
    ("XDG_CONFIG_DIRS", b":"),
    ("XDG_DATA_DIRS", b":"),
];
/// Lists of libraries to be loaded first. A name without a slash is looked for as any library is.
const LIBRARIES: [(&str, &[u8]); 3] = [("LD_PRELOAD", b": "), ("LD_AUDIT", b":"), ("DYLD_INSERT_LIBRARIES", b":")];
/// Single directories or files.
const SINGLE: [&str; 10] = [
    "SBCL_HOME",
    "SBCL_CORE",
    "SBCL_SOURCE_ROOT",
    "HOME",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Returns the person's home directory, unless the environment names one that is relative.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

/// Removes the entries that are not absolute from the environment of `command`. The caller must not
/// have set any of these variables on `command`.
pub(crate) fn keep_absolute(command: &mut Command) {
    for (name, kept) in changes(|name| std::env::var_os(name)) {
        match kept {
            Some(kept) => command.env(name, kept),
            None => command.env_remove(name),
        };
    }
}

/// Returns the variables to change and their new values. `None` means that the variable is removed.
fn changes(value: impl Fn(&str) -> Option<OsString>) -> Vec<(&'static str, Option<OsString>)> {
    let lists = LISTS.into_iter().map(|(name, separators)| (name, separators, false));
    let libraries = LIBRARIES.into_iter().map(|(name, separators)| (name, separators, true));
    let single = SINGLE.into_iter().map(|name| (name, &b""[..], false));
    let mut changes = Vec::new();
    for (name, separators, names) in lists.chain(libraries).chain(single) {
        let Some(had) = value(name) else { continue };
        let kept = absolute(&had, separators, names);
        if kept != had {
            changes.push((name, Some(kept).filter(|kept| !kept.is_empty())));
        }
    }
    changes
}

/// Returns the absolute entries of `list`, joined by the first of `separators`; with `names`, also
/// those without a slash. Entries below `/proc` may name the current directory (proc(5), `cwd`).
fn absolute(list: &OsStr, separators: &[u8], names: bool) -> OsString {
    let entries = list.as_bytes().split(|byte| separators.contains(byte));
    let kept = entries.filter(|entry| {
        let fixed = entry.starts_with(b"/") && !is_below_proc(Path::new(OsStr::from_bytes(entry)));
        fixed || (names && !entry.is_empty() && !entry.contains(&b'/'))
    });
    let between: Vec<u8> = separators.first().into_iter().copied().collect();
    OsString::from_vec(kept.collect::<Vec<_>>().join(&between[..]))
}

fn is_below_proc(path: &Path) -> bool {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain.starts_with("/proc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_from_the_current_directory_is_left_out() {
        let changed = |name: &str, value: &str| {
            let (name, value) = (name.to_owned(), OsString::from(value));
            let changes = changes(|asked| (asked == name).then(|| value.clone()));
            changes.into_iter().map(|(_, kept)| kept.map(|kept| kept.into_string().unwrap_or_default())).next()
        };
        let kept = |text: &str| Some(Some(text.to_owned()));
        assert_eq!(changed("PATH", "/usr/bin:/bin"), None);
        assert_eq!(changed("PATH", ".:/usr/bin::bin:/bin:"), kept("/usr/bin:/bin"));
        assert_eq!(changed("LD_LIBRARY_PATH", ":/usr/local/lib;lib"), kept("/usr/local/lib"));
        assert_eq!(changed("LD_LIBRARY_PATH", ""), None);
        assert_eq!(changed("LD_LIBRARY_PATH", "."), Some(None));
        assert_eq!(changed("LD_PRELOAD", "libfast.so /opt/x.so lib/evil.so"), kept("libfast.so:/opt/x.so"));
        assert_eq!(changed("SBCL_HOME", "/usr/lib/sbcl"), None);
        assert_eq!(changed("SBCL_HOME", "lib/sbcl"), Some(None));
        assert_eq!(changed("SBCL_CORE", "sbcl.core"), Some(None));
        assert_eq!(changed("HOME", "/home/me"), None);
        assert_eq!(changed("HOME", ""), None);
        assert_eq!(changed("HOME", "."), Some(None));
        assert_eq!(changed("XDG_CONFIG_HOME", "config"), Some(None));
        assert_eq!(changed("XDG_DATA_DIRS", "/usr/share::share"), kept("/usr/share"));
        assert_eq!(
            changed("PATH", "/proc/self/cwd:/usr/bin://proc/1/cwd:/usr/../proc/self/cwd:/bin/.//"),
            kept("/usr/bin:/bin/.//")
        );
    }
}
