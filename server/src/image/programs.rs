//! The programs that evaluated code has started (`sb-ext:run-program`, `uiop:launch-program`), and
//! the end of these programs together with the image.
//!
//! A started program leads its own process group, and a daemon also leaves its parent. Neither the
//! image's group nor its children thus include all programs. On Linux, the host is the reaper of
//! its descendants ([`adopt_orphans`]): a program whose parent has ended becomes a child of the
//! host. The programs are then the descendants of the host, without the processes that the host
//! itself started, the lasting copies of the image, and the groups of both. On other systems the
//! programs are not known.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::process::PidHandle;
use super::process_table::{self, Entry};

/// The time for programs to end after SIGTERM.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(1);
/// The time for programs to end after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval of the checks for remaining programs.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The maximum number of bytes of a command line that are shown.
const MAX_SHOWN_BYTES: usize = 200;

/// The descendants that this process had before it became the reaper of its descendants. A shell
/// that became the host by `exec` may have had some. Neither they nor their descendants are
/// programs of the image. Empty until the process is the reaper.
static EARLIER: OnceLock<Vec<u32>> = OnceLock::new();

/// A running program.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Program {
    /// The process id.
    pub pid: u32,
    /// The command line, clipped. It is untrusted.
    pub command: String,
}

/// Makes this process the reaper of its descendants, and reaps them. Only the host's process may
/// call this, because its one image counts as the starter of all programs. Must be called within a
/// Tokio runtime.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        // The first process of a container inherits the orphans of all its processes.
        if std::process::id() == 1 {
            tracing::warn!(
                "programs that evaluated code starts are not known: this host is the first process of its system"
            );
            return;
        }
        let earlier = descendants_of(&process_table::read(), std::process::id(), &[], &[]);
        use tokio::signal::unix::{SignalKind, signal};
        let adopted = rustix::process::set_child_subreaper(Some(rustix::process::getpid())).map_err(Into::into);
        match adopted.and_then(|()| signal(SignalKind::child())) {
            Ok(mut ended) => {
                EARLIER.get_or_init(|| earlier);
                tokio::spawn(async move {
                    while ended.recv().await.is_some() {
                        let _ = tokio::task::spawn_blocking(reap).await; // fails only when the host leaves
                    }
                });
            }
            Err(error) => tracing::warn!(%error, "programs that evaluated code starts are not known"),
        }
    }
}

/// Returns the programs that run now, for a person. Blocks, because it reads the table of
/// processes.
pub fn list() -> Vec<Program> {
    let programs = running();
    programs.into_iter().map(|pid| Program { pid, command: command(pid) }).collect()
}

/// Ends the programs with SIGTERM, and the remaining ones with SIGKILL. Returns the programs that
/// were ended, for the log.
pub(crate) async fn end() -> Vec<Program> {
    let ended = blocking(list).await;
    let begun = Instant::now();
    let mut reported = Vec::new();
    loop {
        let left = blocking(running).await;
        if left.is_empty() {
            break;
        }
        if begun.elapsed() > TERMINATE_TIMEOUT + KILL_TIMEOUT {
            tracing::warn!(?left, "programs that evaluated code started do not end");
            break;
        }
        let kill = begun.elapsed() > TERMINATE_TIMEOUT;
        for pid in left {
            if kill {
                PidHandle::new(pid).iter().for_each(PidHandle::kill);
            } else if !reported.contains(&pid) {
                reported.push(pid);
                // A stopped program receives SIGTERM when it continues.
                signal(pid, Signal::TERM);
                signal(pid, Signal::CONT);
            }
        }
        crate::steady::sleep(POLL_INTERVAL).await;
    }
    ended
}

async fn blocking<T: Default + Send + 'static>(look: fn() -> T) -> T {
    // Fails only when the host ends.
    tokio::task::spawn_blocking(look).await.unwrap_or_default()
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        // Fails if the program has ended, or belongs to another user by now (sudo).
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Returns the process ids of the programs.
fn running() -> Vec<u32> {
    let Some(earlier) = EARLIER.get() else { return Vec::new() };
    // The host starts no process of its own between the two reads.
    let mut own = super::process::spawning();
    let table = process_table::read();
    // A process id may be reused once neither a process nor a group has it.
    let is_there = |pid: u32| table.iter().any(|entry| entry.pid == pid || entry.group == pid);
    own.retain(|pid| is_there(*pid));
    let mut groups = super::process::forked_groups(is_there);
    groups.extend(own.iter());
    descendants_of(&table, std::process::id(), &groups, earlier)
}

/// Reaps the orphans that have ended. Leaves out the processes that the host started.
fn reap() {
    let own = super::process::spawning();
    let host = std::process::id();
    for entry in process_table::read() {
        if entry.zombie && entry.parent == host && !own.contains(&entry.pid) {
            let pid = Pid::from_raw(entry.pid.cast_signed());
            let _ = rustix::process::waitpid(pid, rustix::process::WaitOptions::NOHANG); // it has ended
        }
    }
}

/// Returns the descendants of `host`, without the processes of `own` and their groups, and without
/// the `earlier` processes and their descendants.
fn descendants_of(table: &[Entry], host: u32, own: &[u32], earlier: &[u32]) -> Vec<u32> {
    let mut descendants = vec![host];
    let mut next = 0;
    while let Some(&parent) = descendants.get(next) {
        next += 1;
        let known = descendants.clone();
        descendants.extend(
            table
                .iter()
                .filter(|entry| entry.parent == parent && !known.contains(&entry.pid) && !earlier.contains(&entry.pid))
                .map(|entry| entry.pid),
        );
    }
    let is_program = |entry: &&Entry| {
        entry.pid != host && !entry.zombie && descendants.contains(&entry.pid) && !own.contains(&entry.group)
    };
    table.iter().filter(is_program).map(|entry| entry.pid).collect()
}

fn command(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line[..line.len().min(MAX_SHOWN_BYTES)]).replace('\0', " ");
    crate::shown::line(line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_did_not_start_is_a_program() {
        let entry = |pid, parent, group| Entry { pid, parent, group, zombie: false, busy: false, ticks: 0 };
        let table = [
            entry(1, 0, 1),
            entry(10, 1, 10),  // the host
            entry(20, 10, 20), // the image
            entry(21, 20, 20), // a copy
            entry(30, 20, 30), // a program
            entry(31, 30, 30), // and its child
            entry(40, 10, 39), // a daemon, which lost its parent
            entry(50, 1, 50),  // of another user
            Entry { zombie: true, ..entry(60, 20, 60) },
        ];
        assert_eq!(descendants_of(&table, 10, &[20], &[]), [30, 31, 40]);
        assert_eq!(
            descendants_of(&table, 10, &[20], &[30]),
            [40],
            "they were there before the host, and so is what they start"
        );
        assert_eq!(descendants_of(&table, 50, &[], &[]), [0; 0]);
    }
}
