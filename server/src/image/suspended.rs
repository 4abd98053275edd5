//! An image whose process is suspended, by a signal or by a debugger such as gdb. It answers
//! nothing until it is continued, and is not at fault.

use std::time::Duration;

use super::instance::Instance;
use super::process_table::{self, Suspension};
use super::runtime::Runtime;
use crate::model::image::ImageEvent;

/// The interval between two looks at the process.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The waiting time of a request after which the process is looked at.
const LOOK_AFTER: Duration = Duration::from_secs(2);

/// Returns a message for a person if the image's process is suspended.
pub(super) async fn suspended(pid: u32) -> Option<String> {
    // Fails only when the host ends.
    let suspension = tokio::task::spawn_blocking(move || process_table::suspension(pid)).await.ok().flatten()?;
    Some(match suspension {
        Suspension::Signal => format!(
            "The Lisp image (process {pid}) is suspended, by SIGSTOP or the like, and answers nothing. Continue it with `kill -CONT {pid}`."
        ),
        Suspension::Traced => format!(
            "The Lisp image (process {pid}) is held by another debugger, such as gdb, and answers nothing. Let it continue there, or detach that debugger."
        ),
    })
}

/// Waits until the image's process is not suspended.
pub(super) async fn continued(pid: u32) {
    while suspended(pid).await.is_some() {
        crate::steady::sleep(POLL_INTERVAL).await;
    }
}

/// Tells the clients when requests wait because the image is suspended.
pub(super) async fn watch(runtime: &Runtime, instance: &Instance) {
    let pid = instance.ready.pid;
    loop {
        crate::steady::sleep(POLL_INTERVAL).await;
        if instance.link.oldest_wait().is_none_or(|wait| wait < LOOK_AFTER) {
            continue;
        }
        if let Some(text) = suspended(pid).await {
            tracing::warn!(text);
            runtime.emit(ImageEvent::Unresponsive { text });
            continued(pid).await;
            tracing::info!(pid, "the image was continued");
        }
    }
}
