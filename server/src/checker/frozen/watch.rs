//! The limit on the memory that frozen failures take beyond the memory that they share with the
//! image. The oldest failure is ended when they take too much, and all are ended when the machine
//! is short of memory.

use std::sync::Weak;
use std::time::Duration;

use rustix::process::Pid;

use super::kept::{Failures, pid_of};
use crate::checker::chain::memory::shortage;
use crate::checker::memory::rss_and_pss;
use crate::image::runtime::Phase;
use crate::steady::sleep;

/// The interval between two checks of the memory.
const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// The limit of the bytes that all frozen failures take together.
const MAX_TOTAL_MEMORY: u64 = 512 << 20;

/// The frozen failures that are to end.
#[derive(Debug, PartialEq, Eq)]
enum Excess {
    None,
    Oldest,
    All,
}

/// Watches the memory until there are no frozen failures.
pub(super) async fn run(failures: Weak<Failures>) {
    loop {
        sleep(POLL_INTERVAL).await;
        let Some(failures) = failures.upgrade() else { return };
        let Some(copies) = failures.processes_to_watch() else { return };
        let image = match &*failures.runtime.phase.borrow() {
            Phase::Ready(instance) => pid_of(instance.ready.pid),
            _ => None,
        };
        let Some(image) = image else { continue }; // the failures end with the image
        let excess = tokio::task::spawn_blocking(move || excess(image, &copies)).await;
        match excess.unwrap_or(Excess::None) {
            Excess::None => {}
            Excess::Oldest => failures.end_some(false),
            Excess::All => failures.end_some(true),
        }
    }
}

fn excess(image: Pid, copies: &[Pid]) -> Excess {
    if let Some(why) = shortage(image) {
        tracing::info!(why, "frozen failures are ended");
        return Excess::All;
    }
    let Some(of_image) = rss_and_pss(image) else { return Excess::None };
    let of_copies: Vec<(u64, u64)> = copies.iter().filter_map(|copy| rss_and_pss(*copy)).collect();
    if memory_beyond_image(of_image, &of_copies) > MAX_TOTAL_MEMORY { Excess::Oldest } else { Excess::None }
}

/// Returns the memory of copies beyond the memory that they share with the image. Each process is
/// given as its resident memory and its proportional set size, in the same unit.
fn memory_beyond_image((resident, share): (u64, u64), copies: &[(u64, u64)]) -> u64 {
    let all = copies.iter().fold(share, |sum, (_, share)| sum.saturating_add(*share));
    all.saturating_sub(resident)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shared_with_the_image_does_not_count() {
        assert_eq!(memory_beyond_image((100, 50), &[(100, 50)]), 0);
        assert_eq!(memory_beyond_image((100, 34), &[(100, 33), (100, 33)]), 0);
        // After a full collection the copies share pages with each other, but none with the image.
        assert_eq!(memory_beyond_image((100, 100), &[(100, 50), (100, 50)]), 100);
    }
}
