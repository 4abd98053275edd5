//! Reasons why a copy ended without a report, in words for the user.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;

use super::changed_process;
use super::memory;
use super::report::{Findings, Limit};
use crate::image::frames::CopyEnd;
use crate::image::instance::Instance;
use crate::image::link::CallError;
use crate::image::process::{PidHandle, describe_signal};
use crate::model::image::ImageError;

/// The number of free file descriptors that a copy needs for its work.
const SPARE_DESCRIPTORS: usize = 8;

/// The exit code of a copy that would have waited for ever for a lock (lisp/src/copy-locks.lisp).
const LOCKED_OUT: i32 = 71;

/// The reason why an attempt at a check gave no report.
pub(super) enum Failed {
    /// The image could not fork now.
    Busy(String),
    /// The image can never be forked as it is; the reason is for the user.
    Unforkable(String),
    /// The copy did not connect or begin its work in time, or died before; the reason is for the
    /// user.
    Unresponsive(String),
    /// The copy needs a lock that a thread of the image held when the copy was made; the reason is
    /// for the user.
    Locked(String),
    /// The image died.
    Gone(Arc<Instance>),
    /// Any other error.
    Error(ImageError),
}

impl Failed {
    /// Returns the reason of a failure after which the copy is asked for again.
    pub(super) fn obstacle(&self) -> Option<String> {
        match self {
            Failed::Busy(why) | Failed::Locked(why) | Failed::Unresponsive(why) => Some(why.clone()),
            Failed::Unforkable(_) | Failed::Gone(_) | Failed::Error(_) => None,
        }
    }
}

/// Returns the limit that a copy has passed, if any.
pub(super) fn passed_limit(
    pid_handle: Option<&PidHandle>,
    late: bool,
    within: Duration,
    (memory, had, files): (u64, u64, u64),
    what: &str,
) -> Option<(Limit, String)> {
    if late {
        let seconds = within.as_secs_f64();
        return Some((Limit::Time, format!("It took longer than the {seconds} s that {what} may take.")));
    }
    if memory::exceeds(pid_handle?.pid(), memory.saturating_add(had).saturating_sub(files))? {
        let megabytes = memory >> 20;
        return Some((Limit::Memory, format!("It took more than the {megabytes} MB of memory that {what} may take.")));
    }
    None
}

pub(super) fn no_socket(error: std::io::Error) -> Failed {
    Failed::Error(ImageError::Unavailable(format!("Nothing can be checked: the copy's socket failed: {error}")))
}

/// Converts the end of a copy that had not connected, or the error that the image answered.
pub(super) fn connect_failure(end: Result<CopyEnd, CallError>, instance: &Arc<Instance>) -> Failed {
    match end {
        Ok(_) if instance.ending().is_some() => Failed::Gone(instance.clone()),
        Ok(end) if is_locked_out(Some(&end)) => Failed::Locked(locked_out(None)),
        Ok(end) => Failed::Unresponsive(explain(Some(&end), || resource_shortage(None, instance)).1),
        Err(CallError::Refused(ImageError::Busy(message))) => Failed::Busy(message),
        Err(CallError::Refused(ImageError::Refused { kind, message })) if kind == "cannot-fork" => {
            Failed::Unforkable(message)
        }
        Err(CallError::Refused(error)) => Failed::Error(error),
        Err(CallError::Gone) => Failed::Gone(instance.clone()),
    }
}

/// Returns true if a copy exited by itself with code 0.
pub(super) fn left_well(end: Option<&CopyEnd>) -> bool {
    end.is_some_and(|end| end.exit == Some(0) && end.signal.is_none())
}

/// Returns true if a copy left because it would have waited for ever for a lock.
pub(super) fn is_locked_out(end: Option<&CopyEnd>) -> bool {
    end.is_some_and(|end| end.exit == Some(LOCKED_OUT))
}

/// Explains that a copy would have waited for ever for the lock `lock`.
pub(super) fn locked_out(lock: Option<&str>) -> String {
    let lock = lock.map_or("a lock".to_owned(), |name| format!("the lock {name:?}"));
    format!(
        "The code needs {lock}, which a thread of the image held whenever a copy was made. Make that thread release the lock, or end the thread."
    )
}

/// Explains the end of a copy that did not report that it was done. `cause` returns the reason, if
/// it is known, and is called only for a copy that exited by itself.
pub(super) fn explain(end: Option<&CopyEnd>, cause: impl FnOnce() -> Option<String>) -> (Limit, String) {
    match end {
        Some(CopyEnd { signal: Some(signal), .. }) if *signal == Signal::XCPU.as_raw() => {
            (Limit::Time, "It used up the processor time that a check may take.".into())
        }
        Some(CopyEnd { signal: Some(signal), .. }) => {
            (Limit::Other, format!("The copy of the image was killed by {}.", describe_signal(*signal)))
        }
        Some(CopyEnd { exit: Some(code), .. }) => (Limit::Other, gave_up(*code, cause())),
        _ => (Limit::Other, "The copy of the image ended before it was done.".into()),
    }
}

/// Describes the error that a copy sent before it exited, if it could send one.
pub(super) fn own_error(findings: &Findings) -> Option<String> {
    let error = findings.failure()?;
    Some(format!(
        "The check met an unhandled error: {error} If this happens again, undo your changes to SBCL's own definitions and to ASDF, or restart the image."
    ))
}

/// Describes the end of a copy that exited with `code` and could not send the reason.
fn gave_up(code: i32, cause: Option<String>) -> String {
    let why = cause.unwrap_or_else(|| {
        "Code under check, or a method of yours on PRINT-OBJECT or on another function of SBCL, may fail in every copy; \
         restart the image if this happens again."
            .into()
    });
    format!("The copy of the image exited before it was done (exit code {code}). {why}")
}

/// Returns a message about a condition that copies need and that is not met now: the image's
/// process runs as the user of the host, the file system of the directory `private` (if given) has
/// space, and the image's process has free descriptors.
pub(super) fn resource_shortage(private: Option<&Path>, instance: &Instance) -> Option<String> {
    if let Some(change) = changed_process::change_of(instance.ready.pid) {
        return Some(change);
    }
    if let Some(private) = private
        && let Ok(facts) = rustix::fs::statvfs(private)
        && (facts.f_bavail == 0 || (facts.f_files > 0 && facts.f_favail == 0))
    {
        return Some(format!("The file system of {} is full: free some space there.", private.display()));
    }
    let pid = instance.ready.pid;
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let most: usize =
        limits.lines().find_map(|line| line.strip_prefix("Max open files"))?.split_whitespace().next()?.parse().ok()?;
    (open + SPARE_DESCRIPTORS > most).then(|| {
        format!(
            "The image has {open} of at most {most} file descriptors open: close the streams that code left open, restart the image, \
             or raise the limit (`ulimit -n`)."
        )
    })
}
