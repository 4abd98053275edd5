//! The processes of a chain and the memory that they take, and whether the machine has enough.

use std::path::PathBuf;

use rustix::process::Pid;

use crate::checker::memory::{exceeds, private, resident, rss_and_pss, tables};

/// The maximum number of processes that are listed. A chain has at most 48 checkpoints, a keeper
/// and two more.
const PROCESSES: usize = 64;
/// The highest memory pressure of a machine with memory to spare: the percentage of the last ten
/// seconds during which some process waited for memory.
const MAX_PRESSURE_PERCENT: f64 = 10.0;
/// The least memory that must be available, in bytes.
const MIN_AVAILABLE: u64 = 256 << 20;
/// The least memory that must be available, as a part of all memory: the divisor of all memory.
const MIN_AVAILABLE_DIVISOR: u64 = 16;

/// Returns the processes of the chain that begins with `head`, `head` first. If a process ends
/// meanwhile, that process and its descendants may be missing.
pub(in crate::checker) fn processes(head: Pid) -> Vec<Pid> {
    let mut all = vec![head];
    let mut next = 0;
    while next < all.len() && all.len() < PROCESSES {
        let pid = all[next].as_raw_nonzero();
        // A process of a chain has one thread.
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        all.extend(children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)));
        next += 1;
    }
    all
}

/// Returns true if a process of the chain has more than `limit` bytes to itself.
pub(super) fn one_exceeds(head: Pid, limit: u64) -> bool {
    processes(head).into_iter().any(|pid| exceeds(pid, limit) == Some(true))
}

/// Returns an estimate of the bytes that the chain takes beyond the memory that it shares with
/// `image`: the page tables of its processes, and the greater of two sums.
///
/// The first sum is the private memory of each process, plus the memory allocated since the fork,
/// which later processes share. The second is the memory that the image and the chain take
/// together, less the image's. It includes pages that the chain no longer shares with the image,
/// because the image has written them since the fork.
pub(super) fn memory_beyond_image(head: Pid, image: Pid) -> u64 {
    let all = processes(head);
    let sum = |of: fn(Pid) -> Option<u64>| all.iter().filter_map(|pid| of(*pid)).sum::<u64>();
    let most = all.iter().filter_map(|pid| resident(*pid)).max().unwrap_or(0);
    let grown = sum(private) + most.saturating_sub(resident(image).unwrap_or(0));
    let apart = rss_and_pss(image)
        .map_or(0, |(whole, part)| (sum(|pid| rss_and_pss(pid).map(|(_, part)| part)) + part).saturating_sub(whole));
    sum(tables) + grown.max(apart)
}

/// Returns the reason why the machine has no memory to spare for lasting copies of `image`, or
/// `None` if there is enough.
pub(in crate::checker) fn shortage(image: Pid) -> Option<String> {
    // In a debug build a variable names another directory, so that tests do not depend on the
    // machine's memory.
    let other = std::env::var_os("CONSORT_MEMORY_FACTS").filter(|_| cfg!(debug_assertions));
    let root = other.map_or_else(|| PathBuf::from("/proc"), PathBuf::from);
    let read = |name: &str| std::fs::read_to_string(root.join(name)).unwrap_or_default();
    short(&read("pressure/memory"), &read("meminfo"), resident(image).unwrap_or(0))
}

/// Returns the reason for a shortage, or `None`. `pressure` and `memory` are the contents of
/// `pressure/memory` and `meminfo` in `/proc`; `image` is the image's memory in bytes. Empty
/// contents, as of a file that does not exist, show no shortage.
fn short(pressure: &str, memory: &str, image: u64) -> Option<String> {
    // `some avg10=0.00 avg60=0.00 avg300=0.00 total=0` (Documentation/accounting/psi.rst).
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "));
    let stalled =
        some.and_then(|line| line.split_whitespace().find_map(|word| word.strip_prefix("avg10=")?.parse().ok()));
    if let Some(stalled) = stalled.filter(|stalled: &f64| *stalled > MAX_PRESSURE_PERCENT) {
        return Some(format!("processes of this machine wait for memory {stalled} % of the time"));
    }
    let kilobytes = |name: &str| {
        let line = memory.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let available = kilobytes("MemAvailable:")?.saturating_mul(1024);
    let least = MIN_AVAILABLE
        .max(kilobytes("MemTotal:")?.saturating_mul(1024) / MIN_AVAILABLE_DIVISOR)
        .max(image.saturating_mul(2));
    (available < least)
        .then(|| format!("{} MB of memory are available, and {} MB are needed", available >> 20, least >> 20))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_memory_to_spare_has_no_chains() {
        let psi =
            |percent: &str| format!("some avg10={percent} avg60=0.00 avg300=0.00 total=5\nfull avg10=0.00 avg60=0.00");
        let memory = |total: u64, available: u64| {
            format!("MemTotal:  {} kB\nMemFree: 1 kB\nMemAvailable:   {} kB\n", total << 10, available << 10)
        };
        for (pressure, memory, image, is_short) in [
            (psi("0.00"), memory(8000, 4000), 100 << 20, false),
            (psi("9.00"), memory(8000, 4000), 100 << 20, false),
            (psi("35.21"), memory(8000, 4000), 100 << 20, true),
            (psi("0.00"), memory(8000, 400), 100 << 20, true),
            (psi("0.00"), memory(1000, 200), 10 << 20, true),
            // An image of more than half of the available memory.
            (psi("0.00"), memory(8000, 4000), 2100 << 20, true),
            // A kernel without one of the two files.
            (String::new(), memory(8000, 4000), 100 << 20, false),
            (psi("0.00"), String::new(), 100 << 20, false),
        ] {
            assert_eq!(short(&pressure, &memory, image).is_some(), is_short, "{pressure}\n{memory}\n{image}");
        }
    }

    #[test]
    fn the_processes_of_a_chain_are_found_from_the_first() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 3600 & wait"]).spawn().unwrap();
        let head = Pid::from_child(&child);
        // The second process shares all pages with the first until its exec, so the exec is
        // awaited.
        let name = |pid: Pid| std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()));
        let all = loop {
            let all = processes(head);
            if all.get(1).is_some_and(|second| name(*second).is_ok_and(|name| name == "sleep\n")) {
                break all;
            }
        };
        assert_eq!((all[0], all.len()), (head, 2));
        assert!(!one_exceeds(head, 1 << 40) && memory_beyond_image(head, rustix::process::getpid()) > 0);
        rustix::process::kill_process(all[1], rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
    }
}
