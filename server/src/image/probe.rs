//! The version query of a program. It detects within seconds a program that hangs or prints without
//! end, for which a build or a start would take minutes.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use super::excerpt::excerpt;
use super::process::{kill_group, spawning};
use crate::fault::{self, Call};
use crate::search_paths;

/// The limits of the time to print the version, and of the output.
const LIMIT: Duration = Duration::from_secs(20);
const BYTES: usize = 64 << 10;
/// The interval between checks whether the program has ended although a descendant holds the pipe
/// open.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns the output of `PROGRAM ARGUMENTS --version` and the exit status. Blocks for about 20 s
/// at most. The program's process group is killed at the end.
///
/// # Errors
/// A phrase to follow the program's name, if the program could not be started, did not end, or
/// printed without end.
pub fn version(program: &Path, arguments: &[String], directory: &Path) -> Result<(Vec<u8>, ExitStatus), String> {
    let cannot = |error: io::Error| format!("could not be started: {}", crate::limits::explained(&error));
    let (mut read, write) = io::pipe().map_err(cannot)?;
    let mut command = Command::new(program);
    command.args(arguments).arg("--version").current_dir(directory).stdin(Stdio::null()).process_group(0);
    search_paths::keep_absolute(&mut command);
    let mut child = {
        let mut own = spawning();
        let started = fault::point(Call::Spawn)
            .and_then(|()| write.try_clone())
            .and_then(|copy| command.stdout(copy).stderr(write).spawn());
        let started = started.map_err(cannot)?;
        own.insert(started.id());
        started
    };
    // Closes the host's ends of the pipe.
    drop(command);
    let deadline = Instant::now() + LIMIT;
    let mut printed = Vec::new();
    let mut bytes = [0; 8192];
    let mut open = true;
    let ended = loop {
        if open {
            let wait = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.subsec_nanos().into() };
            let ready = poll(&mut [PollFd::from_borrowed_fd(read.as_fd(), PollFlags::IN)], Some(&wait));
            if ready.is_ok_and(|ready| ready > 0) {
                match read.read(&mut bytes) {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => printed.extend_from_slice(&bytes[..count]),
                }
                if printed.len() <= BYTES && open {
                    continue;
                }
            }
        } else {
            std::thread::sleep(POLL_INTERVAL);
        }
        match child.try_wait() {
            _ if printed.len() > BYTES => break Err("printed without end".to_owned()),
            Ok(Some(status)) => break Ok(status),
            Err(error) => break Err(format!("cannot be waited for: {error}")),
            Ok(None) if Instant::now() > deadline => {
                break Err(format!("did not end within {} s", LIMIT.as_secs()));
            }
            Ok(None) => {}
        }
    };
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        kill_group(group);
    }
    let _ = child.wait(); // killed, or has ended
    match ended {
        Ok(status) => Ok((printed, status)),
        Err(how) if printed.is_empty() => Err(how),
        Err(how) => Err(format!("{how}; it printed:\n{}", excerpt(&printed))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<(Vec<u8>, ExitStatus), String> {
        version(Path::new("/bin/sh"), &["-c".into(), script.into()], Path::new("/"))
    }

    #[test]
    fn a_program_is_waited_for_and_bounded() {
        let (printed, status) = shell("echo SBCL 2.2.9; exit 3").unwrap();
        assert_eq!((printed.as_slice(), status.code()), (&b"SBCL 2.2.9\n"[..], Some(3)));
        // A descendant stays and holds the pipe open.
        let (printed, _) = shell("echo SBCL; sleep 1000 &").unwrap();
        assert_eq!(printed, b"SBCL\n");
        assert!(shell("cat /dev/urandom").unwrap_err().starts_with("printed without end; it printed:\n("));
        assert!(version(Path::new("/no/such"), &[], Path::new("/")).unwrap_err().contains("could not be started"));
    }
}
