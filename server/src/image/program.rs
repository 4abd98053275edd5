//! The program that runs the image: `lisp.command` looked up on PATH. This module starts nothing.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::bounded_file;

/// The installation advice for a user without SBCL.
const ADVICE: &str = "Install it with
    Debian, Ubuntu:  sudo apt install sbcl
    Fedora:          sudo dnf install sbcl
    Arch:            sudo pacman -S sbcl
    macOS:           brew install sbcl
or name the program in the configuration: `command = [\"/path/to/sbcl\"]` in the table [lisp].";

/// The reason why the program cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ProgramError {
    /// The program was not found.
    #[error("{0}")]
    NotFound(String),
    /// `lisp.command` is empty.
    #[error(
        "The configuration's lisp.command is empty. Write `command = [\"sbcl\"]` in the table [lisp], or leave it out."
    )]
    Empty,
}

/// A program that was found.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    /// The path of the program.
    pub(crate) path: PathBuf,
    /// The arguments from the configuration.
    pub(crate) arguments: Vec<String>,
    /// True if the program is SBCL's own executable, which takes `--core`, and not a script or
    /// another program that starts SBCL.
    pub(crate) plain: bool,
    /// A string that changes when the program is replaced: the file with links resolved, its
    /// modification time and its size.
    pub(crate) identity: String,
}

/// Looks up `command`: an absolute path, a path relative to `workspace`, or a name on `path` (the
/// value of the variable PATH). A relative entry of PATH would name a directory of the workspace,
/// and is ignored.
pub(crate) fn find(command: &[String], workspace: &Path, path: &OsStr) -> Result<Program, ProgramError> {
    let (name, arguments) = command.split_first().filter(|(name, _)| !name.is_empty()).ok_or(ProgramError::Empty)?;
    let found = if name.contains('/') {
        Some(workspace.join(name)).filter(|file| is_executable(file))
    } else {
        std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join(name))
            .find(|file| is_executable(file))
    };
    let Some(found) = found else {
        let searched = if name.contains('/') {
            format!("`{name}` is not there, or may not be executed")
        } else {
            format!("`{name}` is not on the PATH ({})", path.to_string_lossy())
        };
        let what = if name == "sbcl" { "SBCL is not installed" } else { "The configured Lisp cannot be started" };
        return Err(ProgramError::NotFound(format!("{what}: {searched}.\n{ADVICE}")));
    };
    let real = fs::canonicalize(&found).unwrap_or_else(|_| found.clone());
    let (time, size) = fs::metadata(&real)
        .map(|facts| (i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec()), facts.len()))
        .unwrap_or_default();
    let identity = format!("{}\n{time}\n{size}\n{}", real.display(), arguments.join("\n"));
    let plain = arguments.is_empty() && is_sbcl(&real);
    Ok(Program { path: found, arguments: arguments.to_vec(), plain, identity })
}

/// Returns the program that `lisp.command` starts in `workspace`.
///
/// # Errors
/// The reason why there is no such program, for the user.
pub fn find_program(command: &[String], workspace: &Path) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find(command, workspace, &path).map(|program| program.path).map_err(|error| error.to_string())
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// Returns true if the file is a native executable (ELF or Mach-O) with SBCL in its name.
fn is_sbcl(file: &Path) -> bool {
    let mut magic = [0; 4];
    let native = bounded_file::open(file).and_then(|(mut open, _)| open.read_exact(&mut magic)).is_ok()
        && matches!(magic, [0x7f, b'E', b'L', b'F'] | [0xcf, 0xfa, 0xed, 0xfe] | [0xca, 0xfe, 0xba, 0xbe]);
    native && file.file_name().is_some_and(|name| name.to_string_lossy().contains("sbcl"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn find(command: &[String], workspace: &Path, path: &str) -> Result<Program, ProgramError> {
        super::find(command, workspace, OsStr::new(path))
    }

    fn command(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn executable(path: &Path, content: &[u8]) {
        fs::write(path, content).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_native_sbcl_is_plain_a_script_or_arguments_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let bin = directory.path().join("bin");
        fs::create_dir(&bin).unwrap();
        executable(&bin.join("sbcl-2.5"), b"\x7fELF and so on");
        symlink("sbcl-2.5", bin.join("sbcl")).unwrap();
        executable(&bin.join("qlot"), b"#!/bin/sh\n");
        fs::write(bin.join("notes"), "not a program").unwrap();
        let path = format!("/nowhere:{}", bin.display());
        let sbcl = find(&command(&["sbcl"]), directory.path(), &path).unwrap();
        assert!(sbcl.plain && sbcl.path.ends_with("bin/sbcl") && sbcl.identity.contains("sbcl-2.5"));
        assert!(!find(&command(&["sbcl", "--dynamic-space-size", "1GB"]), directory.path(), &path).unwrap().plain);
        assert!(!find(&command(&["qlot", "exec", "sbcl"]), directory.path(), &path).unwrap().plain);
        assert!(find(&command(&["bin/sbcl"]), directory.path(), "").unwrap().plain);
        assert!(find(&command(&["notes"]), directory.path(), &path).is_err());
        for relative in ["bin", "./bin", "", ".:bin"] {
            assert!(find(&command(&["sbcl"]), directory.path(), relative).is_err(), "{relative}");
        }
        executable(&bin.join("sbcl-2.5"), b"\x7fELF and another one");
        assert_ne!(find(&command(&["sbcl"]), directory.path(), &path).unwrap().identity, sbcl.identity);
    }

    #[test]
    fn a_path_with_a_name_that_is_not_utf_8_is_searched() {
        let directory = tempfile::tempdir().unwrap();
        executable(&directory.path().join("sbcl"), b"\x7fELF");
        let path = [b"/caf\xe9:", directory.path().as_os_str().as_bytes()].concat();
        assert!(super::find(&command(&["sbcl"]), Path::new("/"), OsStr::from_bytes(&path)).is_ok());
    }

    #[test]
    fn a_missing_program_is_told_with_what_to_do() {
        let error = find(&command(&["sbcl"]), Path::new("/"), "/nowhere").unwrap_err().to_string();
        for part in
            ["SBCL is not installed", "/nowhere", "apt install sbcl", "dnf install", "pacman -S", "brew install"]
        {
            assert!(error.contains(part), "{error}");
        }
        assert!(matches!(find(&[], Path::new("/"), ""), Err(ProgramError::Empty)));
    }
}
