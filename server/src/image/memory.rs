//! How much memory a copy has that it does not share with the image.

use rustix::process::Pid;

/// Whether the process has more than `limit` bytes of its own. `None`: it cannot be told (the process is gone, or not on Linux).
#[cfg(target_os = "linux")]
pub(super) fn exceeds(pid: Pid, limit: u64) -> Option<bool> {
    let directory = format!("/proc/{}", pid.as_raw_nonzero());
    let kilobytes = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    let status = std::fs::read_to_string(format!("{directory}/status")).ok()?;
    // What is its own is at most what is resident, and cheap to know; walking the page tables of a large heap is not.
    let resident = status.lines().find(|line| line.starts_with("RssAnon:")).and_then(kilobytes)?;
    if resident.saturating_mul(1024) <= limit {
        return Some(false);
    }
    let rollup = std::fs::read_to_string(format!("{directory}/smaps_rollup")).ok()?;
    let own: u64 = rollup.lines().filter(|line| line.starts_with("Private_")).filter_map(kilobytes).sum();
    Some(own.saturating_mul(1024) > limit)
}

/// See the Linux version: elsewhere there is no cheap way to know, and the copy's heap is the only limit.
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
        drop(held);
    }
}
