//! The memory that a process has to itself, in particular a copy of the image.

use rustix::process::Pid;

/// Returns true if the process has more than `limit` bytes of memory to itself: private memory,
/// swapped memory and page tables. Returns `None` if that is unknown: the process is gone, or the
/// system is not Linux.
#[cfg(target_os = "linux")]
pub(super) fn exceeds(pid: Pid, limit: u64) -> Option<bool> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    // This sum is at least the private memory, except for pages of files, which the system can drop
    // or write back. The sum is cheap to read; a walk of the page tables of a large heap is not.
    if sum(&status, RESIDENT)?.saturating_add(sum(&status, SWAP_AND_PAGE_TABLES)?) <= limit {
        return Some(false);
    }
    Some(private(pid)?.saturating_add(sum(&status, SWAP_AND_PAGE_TABLES)?) > limit)
}

/// Returns the bytes of resident memory that no other process shares. `None` as above.
#[cfg(target_os = "linux")]
pub(super) fn private(pid: Pid) -> Option<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero())).ok()?;
    sum(&rollup, &["Private_Clean:", "Private_Dirty:"])
}

/// Lines of /proc/PID/status: memory that no file on a disk backs, private or shared.
#[cfg(target_os = "linux")]
const RESIDENT: &[&str] = &["RssAnon:", "RssShmem:"];
/// Lines of /proc/PID/status: swapped memory, and page tables.
#[cfg(target_os = "linux")]
const SWAP_AND_PAGE_TABLES: &[&str] = &["VmSwap:", "VmPTE:"];

/// Returns the bytes of resident memory that no file on a disk backs, private or shared, plus the
/// bytes that [`inherited`] returns. `None` as above.
#[cfg(target_os = "linux")]
pub(super) fn resident(pid: Pid) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    Some(sum(&status, RESIDENT)?.saturating_add(sum(&status, SWAP_AND_PAGE_TABLES)?))
}

/// Returns the bytes of swapped memory and of page tables. A copy begins with as many as the image
/// has. `None` as above.
#[cfg(target_os = "linux")]
pub(super) fn inherited(pid: Pid) -> Option<u64> {
    sum(&std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?, SWAP_AND_PAGE_TABLES)
}

/// Returns the bytes of page tables, which each process has for itself. `None` as above.
#[cfg(target_os = "linux")]
pub(super) fn tables(pid: Pid) -> Option<u64> {
    sum(&std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?, &["VmPTE:"])
}

/// Returns the bytes of resident memory, and the proportional set size: each shared page divided by
/// the number of processes that have it. `None` as above.
#[cfg(target_os = "linux")]
pub(super) fn rss_and_pss(pid: Pid) -> Option<(u64, u64)> {
    let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero())).ok()?;
    Some((sum(&rollup, &["Rss:"])?, sum(&rollup, &["Pss:"])?))
}

/// Returns the sum, in bytes, of the lines of `text` with these names; a missing line counts as 0.
/// `None` if all of them are missing.
#[cfg(target_os = "linux")]
fn sum(text: &str, names: &[&str]) -> Option<u64> {
    let kilobytes = |line: &str| {
        let (name, rest) = line.split_once(char::is_whitespace)?;
        if !names.contains(&name) {
            return None;
        }
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    let found: Vec<u64> = text.lines().filter_map(kilobytes).collect();
    (!found.is_empty()).then(|| found.iter().fold(0_u64, |sum, one| sum.saturating_add(*one)).saturating_mul(1024))
}

/// See the Linux version.
#[cfg(not(target_os = "linux"))]
pub(super) fn resident(_pid: Pid) -> Option<u64> {
    None
}

/// See the Linux version.
#[cfg(not(target_os = "linux"))]
pub(super) fn inherited(_pid: Pid) -> Option<u64> {
    None
}

/// See the Linux version.
#[cfg(not(target_os = "linux"))]
pub(super) fn tables(_pid: Pid) -> Option<u64> {
    None
}

/// See the Linux version.
#[cfg(not(target_os = "linux"))]
pub(super) fn rss_and_pss(_pid: Pid) -> Option<(u64, u64)> {
    None
}

/// See the Linux version.
#[cfg(not(target_os = "linux"))]
pub(super) fn private(_pid: Pid) -> Option<u64> {
    None
}

/// See the Linux version. Other systems have no cheap way to know, so the size of the copy's heap
/// is the only limit.
#[cfg(not(target_os = "linux"))]
pub(super) fn exceeds(_pid: Pid, _limit: u64) -> Option<bool> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn this_process_is_between_two_limits() {
        let pid = rustix::process::getpid();
        let held = std::hint::black_box(vec![1_u8; 32 << 20]);
        assert_eq!(super::exceeds(pid, 16 << 20), Some(true));
        assert_eq!(super::exceeds(pid, 1 << 40), Some(false));
        assert!(super::resident(pid).unwrap() > 32 << 20);
        drop(held);
    }

    #[test]
    fn page_tables_and_swapped_memory_count() {
        let status = "Name:\tx\nRssAnon:\t     100 kB\nRssShmem:\t  1 kB\nVmPTE:\t   2000 kB\nVmSwap:\t   30000 kB\n";
        assert_eq!(super::sum(status, super::RESIDENT), Some(101 << 10));
        assert_eq!(super::sum(status, super::SWAP_AND_PAGE_TABLES), Some(32_000 << 10));
        assert_eq!(super::sum("Name:\tx\n", super::SWAP_AND_PAGE_TABLES), None);
    }
}
