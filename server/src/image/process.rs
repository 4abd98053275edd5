//! The start of the image's process with only the descriptors that it needs, and the description of
//! how a process ended.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{LazyLock, Mutex};

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};

use crate::fault::{self, Call};
use crate::locked::lock;
use crate::search_paths;

/// The ids of the processes that this process has started. The lock is held during the start of a
/// process, because descriptors may be inheritable for a moment, and no other child process must
/// inherit them.
static SPAWNING: LazyLock<Mutex<HashSet<u32>>> = LazyLock::new(Mutex::default);

/// Takes the lock for the start of a process. The caller adds the id of the new process to the set.
pub(crate) fn spawning() -> std::sync::MutexGuard<'static, HashSet<u32>> {
    lock(&SPAWNING)
}

/// The ids of processes that the image forked for checks and that lead process groups.
static FORKED: LazyLock<Mutex<HashSet<u32>>> = LazyLock::new(Mutex::default);

/// Records that a process, which the image forked for a check, leads a process group or will lead
/// one.
pub(crate) fn leads_group(pid: u32) {
    lock(&FORKED).insert(pid);
}

/// Returns the process groups of forked processes. `is_there` returns true if a group has
/// processes. The other groups are forgotten.
pub(super) fn forked_groups(is_there: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut forked = lock(&FORKED);
    forked.retain(|pid| is_there(*pid));
    forked.iter().copied().collect()
}

/// The parameters of a start.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    /// The program.
    pub(crate) program: PathBuf,
    /// The program's arguments.
    pub(crate) arguments: Vec<OsString>,
    /// The current directory of the process.
    pub(crate) directory: PathBuf,
    /// The host's own directory, for files that the process needs.
    pub(crate) work: PathBuf,
    /// True if the programs that the process started are to keep running after its end.
    pub(crate) keep_programs: bool,
}

/// A started process.
pub(crate) struct Started {
    /// The process, which leads its own process group. It is killed on drop.
    pub(crate) child: Child,
    /// The host's end of the link.
    pub(crate) link: UnixStream,
    /// The read end of descriptor 1.
    pub(crate) out: OwnedFd,
    /// The read end of descriptor 2.
    pub(crate) err: OwnedFd,
}

/// Starts the image in a process group of its own. Descriptor 0 is `/dev/null`, and 1 and 2 are
/// pipes. `CONSORT_FD` is the number of the process's end of the link. `CONSORT_WORK` is the host's
/// directory. `CONSORT_KEEP_PROGRAMS` is empty or `yes`.
///
/// # Errors
/// An I/O error.
pub(crate) fn start(launch: &Launch) -> io::Result<Started> {
    fault::point(Call::Open)?;
    let (ours, theirs) = UnixStream::pair()?;
    let (out, out_writer) = io::pipe()?;
    let (err, err_writer) = io::pipe()?;
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .current_dir(&launch.directory)
        .env("CONSORT_FD", theirs.as_raw_fd().to_string())
        .env("CONSORT_WORK", &launch.work)
        .env("CONSORT_KEEP_PROGRAMS", if launch.keep_programs { "yes" } else { "" })
        .stdin(Stdio::null())
        .stdout(out_writer)
        .stderr(err_writer)
        .process_group(0)
        .kill_on_drop(true);
    search_paths::keep_absolute(command.as_std_mut());
    let child = {
        let mut own = spawning();
        fcntl_setfd(theirs.as_fd(), FdFlags::empty())?;
        let child = fault::point(Call::Spawn).and_then(|()| command.spawn());
        drop(theirs);
        let child = child?;
        own.extend(child.id());
        child
    };
    Ok(Started { child, link: ours, out: out.into(), err: err.into() })
}

/// Starts a helper process, such as the one that builds the core. It inherits none of the host's
/// descriptors.
///
/// # Errors
/// An I/O error.
pub(crate) fn start_helper(command: &mut Command) -> io::Result<Child> {
    search_paths::keep_absolute(command.as_std_mut());
    let mut own = spawning();
    fault::point(Call::Spawn)?;
    let child = command.stdin(Stdio::null()).process_group(0).kill_on_drop(true).spawn()?;
    own.extend(child.id());
    Ok(child)
}

/// Describes how a process ended, in words that follow its name: "exited with code 1", "was killed
/// by signal 9 (KILL)".
pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("was killed by {}", describe_signal(signal)),
        (None, None) => format!("ended ({status})"),
    }
}

/// Describes a signal: "signal 9 (KILL)".
pub(crate) fn describe_signal(signal: i32) -> String {
    let name = match Signal::from_named_raw(signal) {
        Some(Signal::KILL) => "KILL, from outside or for want of memory",
        Some(Signal::TERM) => "TERM",
        Some(Signal::INT) => "INT",
        Some(Signal::SEGV) => "SEGV",
        Some(Signal::BUS) => "BUS",
        Some(Signal::ABORT) => "ABRT",
        Some(Signal::ILL) => "ILL",
        Some(Signal::XCPU) => "XCPU, its limit of processor time",
        Some(Signal::XFSZ) => "XFSZ, its limit of file size",
        Some(Signal::SYS) => "SYS, a refused system call",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

/// Kills every process of the group led by `leader`.
pub(crate) fn kill_group(leader: Pid) {
    match rustix::process::kill_process_group(leader, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(%error, ?leader, "killing the image's process group"),
    }
}

/// A process that is not a child of the host: a check's copy, or an image behind a wrapper. On
/// systems with process descriptors, the handle holds one. A later process with the same id is then
/// not killed.
#[derive(Debug)]
pub(crate) struct PidHandle {
    pid: Pid,
    #[cfg(target_os = "linux")]
    descriptor: Option<OwnedFd>,
}

impl PidHandle {
    /// Opens a handle on a process. Returns `None` if there is no such process, or not any more.
    pub(crate) fn new(pid: u32) -> Option<PidHandle> {
        let pid = i32::try_from(pid).ok().filter(|pid| *pid > 1).and_then(Pid::from_raw)?;
        #[cfg(target_os = "linux")]
        let pid_handle = match rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) {
            Ok(descriptor) => Some(PidHandle { pid, descriptor: Some(descriptor) }),
            Err(rustix::io::Errno::SRCH) => None,
            Err(_) => Some(PidHandle { pid, descriptor: None }), // before Linux 5.3
        };
        #[cfg(not(target_os = "linux"))]
        let pid_handle = rustix::process::test_kill_process(pid).is_ok().then_some(PidHandle { pid });
        pid_handle
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Kills the process. Does nothing if the process is gone.
    pub(crate) fn kill(&self) {
        #[cfg(target_os = "linux")]
        let result = match &self.descriptor {
            Some(descriptor) => rustix::process::pidfd_send_signal(descriptor, Signal::KILL),
            None => rustix::process::kill_process(self.pid, Signal::KILL),
        };
        #[cfg(not(target_os = "linux"))]
        let result = rustix::process::kill_process(self.pid, Signal::KILL);
        match result {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => tracing::warn!(%error, pid = ?self.pid, "kill"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn shell(script: &str) -> Launch {
        Launch {
            program: "/bin/sh".into(),
            arguments: vec!["-c".into(), script.into()],
            directory: "/".into(),
            work: "/".into(),
            keep_programs: false,
        }
    }

    fn read_all(descriptor: OwnedFd) -> String {
        let mut text = String::new();
        std::fs::File::from(descriptor).read_to_string(&mut text).unwrap();
        text
    }

    /// Returns the number of descriptors that a started process inherits independently of the host.
    async fn inherited() -> usize {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "ls /dev/fd/"]).stdout(Stdio::piped());
        let output = start_helper(&mut command).unwrap().wait_with_output().await.unwrap();
        String::from_utf8(output.stdout).unwrap().lines().count()
    }

    #[tokio::test]
    async fn the_child_has_its_link_and_nothing_else_of_ours() {
        let ours = tempfile::tempfile().unwrap(); // a descriptor that must not be seen there
        let script = "pwd; echo err >&2; ls /dev/fd/ | wc -l; read line < /dev/stdin || echo eof; \
                      test -S /dev/fd/$CONSORT_FD && echo socket";
        let Started { mut child, mut link, out, err } = start(&shell(script)).unwrap();
        let out = tokio::task::spawn_blocking(move || read_all(out)).await.unwrap();
        assert_eq!(read_all(err), "err\n");
        assert!(child.wait().await.unwrap().success());
        let lines: Vec<&str> = out.lines().map(str::trim).collect();
        let count = (inherited().await + 1).to_string();
        assert_eq!(lines, ["/", &count, "eof", "socket"]);
        assert_eq!(link.read(&mut [0; 8]).unwrap(), 0, "the child had the only other end");
        drop(ours);
    }

    #[tokio::test]
    async fn an_end_is_told_in_words_and_a_group_dies_together() {
        let Started { mut child, .. } = start(&shell("exit 3")).unwrap();
        assert_eq!(describe(child.wait().await.unwrap()), "exited with code 3");
        let Started { mut child, out, .. } = start(&shell("sleep 1000 & echo $!; wait")).unwrap();
        let mut number = [0; 16];
        let count = rustix::io::read(&out, &mut number).unwrap();
        let grandchild: u32 = std::str::from_utf8(&number[..count]).unwrap().trim().parse().unwrap();
        let pid_handle = PidHandle::new(grandchild).unwrap();
        kill_group(Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap());
        assert!(describe(child.wait().await.unwrap()).starts_with("was killed by signal 9 (KILL"));
        assert_eq!(read_all(out), "", "the last holder of the pipe is gone");
        pid_handle.kill(); // gone: nothing happens
        assert!(PidHandle::new(u32::MAX).is_none());
    }
}
