//! A running image, as the parts of the host share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::de::IgnoredAny;
use tokio::sync::Notify;

use super::frames::Ready;
use super::link::Link;
use super::pipes::Pipes;
use super::process::PidHandle;
use crate::locked::lock;

/// A running image. Every start creates a new instance.
pub(crate) struct Instance {
    /// The number of the start.
    pub(crate) generation: u64,
    /// The link to the image.
    pub(crate) link: Arc<Link>,
    /// The pipes of the image's descriptors 1 and 2.
    pub(crate) pipes: Pipes,
    /// The image's `ready` frame.
    pub(crate) ready: Ready,
    /// The image's process, which may have outlived the wrapper that was started.
    pub(crate) process: Option<PidHandle>,
    ending: Mutex<Option<String>>,
    end: Notify,
    copies: Mutex<HashMap<u32, Arc<PidHandle>>>,
}

impl Instance {
    /// Creates the instance of an image that has sent `ready`.
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

    /// Makes the supervisor end the image. Only the first reason is kept.
    pub(crate) fn end(&self, reason: String) {
        tracing::warn!(reason, "ending the image");
        lock(&self.ending).get_or_insert(reason);
        self.end.notify_one();
    }

    /// Records the reason why the image ended. Only the first reason is kept.
    pub(crate) fn note_end(&self, reason: &str) {
        lock(&self.ending).get_or_insert_with(|| reason.to_owned());
    }

    /// Resolves when [`Instance::end`] was called. For the supervisor only.
    pub(crate) async fn end_wanted(&self) {
        self.end.notified().await;
    }

    /// Returns the reason why the image ended or is being ended, if it is.
    pub(crate) fn ending(&self) -> Option<String> {
        lock(&self.ending).clone()
    }

    /// Returns true if the image answers within `limit`. An image that collects garbage does not
    /// answer.
    pub(crate) async fn answers(&self, limit: Duration) -> bool {
        let nothing = serde_json::json!({});
        matches!(crate::steady::timeout(limit, self.link.ask::<IgnoredAny>("status", &nothing)).await, Ok(Ok(_)))
    }

    /// Registers a copy, so that it does not outlive the image.
    pub(crate) fn adopt(&self, pid: u32, copy: Arc<PidHandle>) {
        lock(&self.copies).insert(pid, copy);
    }

    /// Removes a copy that was reaped.
    pub(crate) fn forget(&self, pid: u32) {
        lock(&self.copies).remove(&pid);
    }

    /// Kills the copies, and returns their number.
    pub(crate) fn kill_copies(&self) -> usize {
        let copies = lock(&self.copies);
        copies.values().for_each(|copy| copy.kill());
        copies.len()
    }
}
