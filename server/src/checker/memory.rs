//! The amount of memory of a copy that is not shared with the image.

use rustix::process::Pid;

/// Returns whether the process has more than `limit` bytes of private memory. `None`: unknown (the
/// process is gone, or the system is not Linux).
#[cfg(target_os = "linux")]
pub(super) fn exceeds(pid: Pid, limit: u64) -> Option<bool> {
    let directory = format!("/proc/{}", pid.as_raw_nonzero());
    let kilobytes = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    // Private memory is at most resident memory without files, which is cheap to read; a walk of
    // the page tables of a large heap is not.
    if resident(pid)? <= limit {
        return Some(false);
    }
    let rollup = std::fs::read_to_string(format!("{directory}/smaps_rollup")).ok()?;
    let own: u64 = rollup.lines().filter(|line| line.starts_with("Private_")).filter_map(kilobytes).sum();
    Some(own.saturating_mul(1024) > limit)
}

/// Returns the bytes of resident memory that no file on a disk backs, private or shared. `None` as
/// above.
#[cfg(target_os = "linux")]
pub(super) fn resident(pid: Pid) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let kilobytes = |name| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    };
    Some(kilobytes("RssAnon:")?.saturating_add(kilobytes("RssShmem:")?).saturating_mul(1024))
}

/// See the Linux version.
#[cfg(not(target_os = "linux"))]
pub(super) fn resident(_pid: Pid) -> Option<u64> {
    None
}

/// See the Linux version: elsewhere there is no cheap way to know, and the copy's heap is the only
/// limit.
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
}
