//! One running image, as those who use it share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::de::IgnoredAny;
use tokio::sync::Notify;

use super::frames::Ready;
use super::link::{Link, lock};
use super::pipes::Pipes;
use super::process::PidHandle;

/// One running image. A new start is a new one of these.
pub(crate) struct Instance {
    /// Counts the starts.
    pub(crate) generation: u64,
    /// Its link.
    pub(crate) link: Arc<Link>,
    /// Its descriptors 1 and 2.
    pub(crate) pipes: Pipes,
    /// What it said of itself.
    pub(crate) ready: Ready,
    /// Its process, which the wrapper that was started may have left behind.
    pub(crate) process: Option<PidHandle>,
    ending: Mutex<Option<String>>,
    end: Notify,
    copies: Mutex<HashMap<u32, Arc<PidHandle>>>,
}

impl Instance {
    /// An image that said it is ready.
    pub(crate) fn new(generation: u64, link: Arc<Link>, pipes: Pipes, ready: Ready) -> Instance {
        let process = PidHandle::new(ready.pid);
        Instance {
            generation,
            link,
            pipes,
            ready,
            process,
            ending: Mutex::default(),
            end: Notify::new(),
            copies: Mutex::default(),
        }
    }

    /// Have the supervisor end it now. The first reason counts.
    pub(crate) fn end(&self, reason: String) {
        tracing::warn!(reason, "ending the image");
        lock(&self.ending).get_or_insert(reason);
        self.end.notify_one();
    }

    /// Note why it ended. The first reason counts.
    pub(crate) fn note_end(&self, reason: &str) {
        lock(&self.ending).get_or_insert_with(|| reason.to_owned());
    }

    /// Resolves when [`Instance::end`] was called; for the supervisor only.
    pub(crate) async fn end_wanted(&self) {
        self.end.notified().await;
    }

    /// Why it ended or is being ended, if it is.
    pub(crate) fn ending(&self) -> Option<String> {
        lock(&self.ending).clone()
    }

    /// Whether the image as a whole answers within `limit`: it does not while it collects garbage.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        let nothing = serde_json::json!({});
        matches!(tokio::time::timeout(limit, self.link.ask::<IgnoredAny>("status", &nothing)).await, Ok(Ok(_)))
    }

    /// Remember a copy, so that it does not outlive the image.
    pub(crate) fn adopt(&self, pid: u32, copy: Arc<PidHandle>) {
        lock(&self.copies).insert(pid, copy);
    }

    /// A copy was reaped.
    pub(crate) fn forget(&self, pid: u32) {
        lock(&self.copies).remove(&pid);
    }

    /// Kill the copies; how many there were.
    pub(crate) fn kill_copies(&self) -> usize {
        let copies = lock(&self.copies);
        copies.values().for_each(|copy| copy.kill());
        copies.len()
    }
}
