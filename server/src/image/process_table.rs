//! The system's table of processes, from /proc. It is empty on a system without /proc.

use std::time::Duration;

/// A line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The process id.
    pub(super) pid: u32,
    /// The parent's id.
    pub(super) parent: u32,
    /// The process group.
    pub(super) group: u32,
    /// True if the process has ended and was not waited for yet.
    pub(super) zombie: bool,
    /// True if the main thread runs, is ready to run, or waits for a disk.
    pub(super) busy: bool,
    /// The processor time of the process and of its children that were waited for, in ticks.
    pub(super) ticks: u64,
}

/// Reads the table. Blocks.
pub(super) fn read() -> Vec<Entry> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // A process may end after it was listed and before it is read.
    pids.filter_map(|pid| entry(pid, &std::fs::read(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// Returns the start time of a process, in clock ticks since the system's boot. Returns `None` if
/// there is no such process, or if the system has no /proc.
pub fn started(pid: u32) -> Option<u64> {
    // starttime: field 22 of the line.
    fields(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)?.nth(19)?.parse().ok()
}

/// The way in which a process is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suspension {
    /// By a signal, such as SIGSTOP.
    Signal,
    /// By a debugger.
    Traced,
}

/// Returns how a process is suspended, if it is. Blocks.
pub(super) fn suspension(pid: u32) -> Option<Suspension> {
    match fields(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)?.next()? {
        "T" => Some(Suspension::Signal),
        "t" => Some(Suspension::Traced),
        _ => None,
    }
}

/// Converts clock ticks to a duration.
pub(super) fn time(ticks: u64) -> Duration {
    let a_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_millis(ticks.saturating_mul(1000) / a_second)
}

/// Returns the fields, from the third on, of a line of proc_pid_stat(5). The line is
/// `PID (NAME) STATE PPID PGRP ...`, where the name may contain any character.
fn fields(stat: &[u8]) -> Option<std::str::SplitAsciiWhitespace<'_>> {
    let behind = stat.iter().rposition(|byte| *byte == b')')? + 1;
    Some(std::str::from_utf8(stat.get(behind..)?).ok()?.split_ascii_whitespace())
}

/// Parses a line of proc_pid_stat(5).
fn entry(pid: u32, stat: &[u8]) -> Option<Entry> {
    let mut fields = fields(stat)?;
    let state = fields.next()?;
    let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    // utime, stime, cutime, cstime: fields 14 to 17 of the line.
    let ticks = fields.skip(8).take(4).filter_map(|field| field.parse::<u64>().ok()).sum();
    Some(Entry { pid, parent, group, zombie: matches!(state, "Z" | "X"), busy: matches!(state, "R" | "D"), ticks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_is_read_whatever_the_name() {
        let read = entry(7, b"7 (a) Z 9 (b)) S 3 4 4 0 -1 4194304 1 2 3 4 10 20 30 40 20 0").unwrap();
        let expected = Entry { pid: 7, parent: 3, group: 4, zombie: false, busy: false, ticks: 100 };
        assert_eq!(read, expected);
        assert!(entry(7, b"7 (a) Z 3 4").unwrap().zombie);
        assert!(entry(7, b"7 (a) D 3 4").unwrap().busy);
        assert_eq!(entry(7, b"7 (a"), None);
    }

    #[test]
    fn the_start_of_a_process_is_its_own() {
        let mut sleeper = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let (ours, theirs) = (started(std::process::id()).unwrap(), started(sleeper.id()).unwrap());
        assert!(ours <= theirs && started(sleeper.id()) == Some(theirs), "{ours} {theirs}");
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert_eq!(started(sleeper.id()), None);
    }
}
