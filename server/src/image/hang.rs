//! Detection of a hang of a program for which the host waits. A program that waits for the
//! processor or for a disk, as on a slow machine, does not hang.
//!
//! If the system has no table of processes, a hang is not detected, and the caller's time limit
//! ends the wait.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::process_table::{self, Entry};

/// The interval between two samples of the program's use of the processor.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The number of consecutive samples, one each second, without activity after which the program
/// counts as hung.
const IDLE_SAMPLES: usize = 20;
/// The processor time during [`IDLE_SAMPLES`] samples below which the program counts as inactive,
/// or as sleeping in a loop.
const IDLE_CPU_TIME: Duration = Duration::from_millis(200);
/// The processor time that a program may take for one step. On a usual machine a step takes less
/// than a second.
const MAX_STEP_CPU_TIME: Duration = Duration::from_secs(60);

/// The number of steps that a program has done.
#[derive(Debug, Default)]
pub(super) struct Steps(AtomicU64);

impl Steps {
    /// Counts one step.
    pub(super) fn count(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn done(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Resolves when the process `leader` and all processes that it started hang. Returns a predicate
/// for the program's name that describes the hang: `hangs: ...`. `on_sample` is called each second.
pub(super) async fn hangs(leader: u32, steps: &Steps, mut on_sample: impl FnMut()) -> String {
    let mut samples = Samples::default();
    loop {
        crate::steady::sleep(POLL_INTERVAL).await;
        on_sample();
        // Fails only when the host ends.
        let now = tokio::task::spawn_blocking(move || usage(leader, &process_table::read())).await;
        if let Some(how) = now.ok().flatten().and_then(|usage| samples.add(usage, steps.done())) {
            return how;
        }
    }
}

/// The use of the processor by a program and all processes that it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Usage {
    processor: Duration,
    busy: bool,
}

/// Returns the use of the processor by the process and its descendants, and by their groups.
/// Returns `None` if there is no such process, or no table.
fn usage(leader: u32, table: &[Entry]) -> Option<Usage> {
    table.iter().find(|entry| entry.pid == leader)?;
    let mut own = vec![leader];
    loop {
        let known = own.len();
        let further =
            |entry: &&Entry| !own.contains(&entry.pid) && (own.contains(&entry.parent) || own.contains(&entry.group));
        let found: Vec<u32> = table.iter().filter(further).map(|entry| entry.pid).collect();
        own.extend(found);
        if own.len() == known {
            break;
        }
    }
    let own: Vec<&Entry> = table.iter().filter(|entry| own.contains(&entry.pid)).collect();
    let ticks = own.iter().map(|entry| entry.ticks).sum();
    Some(Usage { processor: process_table::time(ticks), busy: own.iter().any(|entry| entry.busy) })
}

/// The last samples of a program's use of the processor, up to [`IDLE_SAMPLES`], since its last
/// step.
#[derive(Debug, Default)]
struct Samples {
    recent: VecDeque<Usage>,
    /// The number of steps at the last sample, and the processor time when this number was reached.
    step: Option<(u64, Duration)>,
}

impl Samples {
    /// Adds a sample. Returns how the program hangs, if it does.
    fn add(&mut self, now: Usage, steps: u64) -> Option<String> {
        let begun = match self.step {
            Some((before, begun)) if before == steps => begun,
            _ => {
                self.recent.clear();
                self.step.insert((steps, now.processor)).1
            }
        };
        self.recent.push_back(now);
        if now.processor.saturating_sub(begun) >= MAX_STEP_CPU_TIME {
            return Some(format!(
                "hangs: it took {} s of processor time and got no further",
                MAX_STEP_CPU_TIME.as_secs()
            ));
        }
        if self.recent.len() <= IDLE_SAMPLES {
            return None;
        }
        let first = self.recent.pop_front()?;
        let wanted = self.recent.iter().filter(|look| look.busy).count();
        let idle = now.processor.abs_diff(first.processor) < IDLE_CPU_TIME && wanted * 4 < IDLE_SAMPLES;
        idle.then(|| format!("hangs: it did nothing for {IDLE_SAMPLES} s"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of samples until the program counts as hung, or `None` if it does not
    /// within 1000.
    fn hung_after(mut look: impl FnMut(u64) -> (u64, bool, u64)) -> Option<u64> {
        let mut samples = Samples::default();
        (0..1000).find(|number| {
            let (milliseconds, busy, steps) = look(*number);
            samples.add(Usage { processor: Duration::from_millis(milliseconds), busy }, steps).is_some()
        })
    }

    #[test]
    fn a_program_hangs_that_does_nothing_or_gets_no_further() {
        assert_eq!(hung_after(|_| (300, false, 0)), Some(20), "it sleeps");
        assert_eq!(hung_after(|look| (look * 5, look % 10 == 0, 0)), Some(20), "it sleeps again and again");
        assert_eq!(hung_after(|look| (look * 1000, true, 0)), Some(60), "it computes for ever");
        assert_eq!(hung_after(|look| (look * 1000, true, u64::from(look >= 40))), Some(100), "since its last step");
    }

    #[test]
    fn a_program_on_a_slow_machine_does_not_hang() {
        assert_eq!(hung_after(|look| (look, true, 0)), None, "it does not get the processor, or the disk is slow");
        assert_eq!(hung_after(|look| (look * 100, look % 2 == 0, look / 500)), None, "slow steps");
        assert_eq!(hung_after(|look| (0, false, look / 15)), None, "it works elsewhere, and tells its steps");
    }

    #[test]
    fn what_a_program_has_started_counts_too() {
        let entry = |pid, parent, group, ticks| Entry { pid, parent, group, zombie: false, busy: pid == 23, ticks };
        let table = [entry(1, 0, 1, 10_000), entry(20, 1, 20, 100), entry(21, 1, 20, 100), entry(22, 20, 22, 100)];
        let used = |table: &[Entry]| usage(20, table).unwrap();
        assert_eq!(used(&table), Usage { processor: process_table::time(300), busy: false });
        let more = [&table[..], &[entry(23, 22, 23, 100), entry(30, 1, 30, 100)]].concat();
        assert_eq!(used(&more), Usage { processor: process_table::time(400), busy: true });
        assert_eq!(usage(40, &more), None);
    }
}
