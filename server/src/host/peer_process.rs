//! The program at the other end of a connection. Messages name it as the client that gave an
//! answer, and its process shows whether an editor still runs.

use std::fs;
use std::path::PathBuf;

use crate::image::process_table;
use crate::session::EditorProcess;

/// Describes the program of a client's process id, such as `nvim (process 4100)`. For a bridge of
/// Consort, describes the program that started the bridge. The information comes from the kernel,
/// not from the client.
pub(super) fn describe(process: u32) -> String {
    program_and_number(starter(process))
}

/// Returns the process that [`describe`] names. Returns `None` if the system does not report the
/// start time of the process.
pub(super) fn editor(process: u32) -> Option<EditorProcess> {
    let pid = starter(process);
    Some(EditorProcess { pid, started: process_table::started(pid)? })
}

/// Returns the process that started `process`, if `process` is a bridge of Consort whose starter
/// still runs. Otherwise returns `process` itself.
fn starter(process: u32) -> u32 {
    let is_bridge = program(process).is_some_and(|program| program == own_program());
    is_bridge.then(|| parent(process)).flatten().filter(|starter| *starter > 1).unwrap_or(process)
}

fn program_and_number(process: u32) -> String {
    let program = program(process).and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    match program {
        Some(program) => format!("{} (process {process})", crate::shown::line(&program)),
        None => format!("process {process}"),
    }
}

/// The words that the system appends to the path of an executable that was replaced or removed
/// after its process had started, as by an upgrade.
const REPLACED: &str = " (deleted)";

/// Returns the path of a process's executable, or `None` if the system does not report it. An
/// executable that was replaced since has the path of its replacement. The name that a process
/// gives itself is not used.
fn program(process: u32) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/{process}/exe")).ok()?;
    Some(path.to_str().and_then(|path| path.strip_suffix(REPLACED)).map(PathBuf::from).unwrap_or(path))
}

/// Returns the path of this process's executable, empty if unknown.
fn own_program() -> PathBuf {
    program(std::process::id()).unwrap_or_default()
}

fn parent(process: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    parent.trim().parse().ok().filter(|parent| *parent > 0)
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_named_by_its_file_and_a_bridge_by_who_started_it() {
        let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let file = fs::read_link(format!("/proc/{}/exe", sleeper.id())).unwrap();
        let file = file.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(describe(sleeper.id()), format!("{file} (process {})", sleeper.id()));
        // The test program itself takes the part of a bridge.
        let starter = std::os::unix::process::parent_id();
        assert!(describe(std::process::id()).ends_with(&format!("process {starter})")));
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }

    #[test]
    fn a_program_whose_file_was_replaced_is_the_same_program() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().canonicalize().unwrap().join("sleep");
        let path = std::env::var_os("PATH").unwrap();
        let sleep = std::env::split_paths(&path).map(|directory| directory.join("sleep")).find(|path| path.exists());
        fs::copy(sleep.unwrap(), &file).unwrap();
        let mut sleeper = std::process::Command::new(&file).arg("600").spawn().unwrap();
        fs::remove_file(&file).unwrap();
        let (path, described) = (program(sleeper.id()), describe(sleeper.id()));
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert_eq!(path, Some(file));
        assert_eq!(described, format!("sleep (process {})", sleeper.id()));
    }
}
