//! The notifications that Consort adds to LSP. They are documented in docs/protocol.md. A test
//! compares both.

/// Notification of the image's state, on connection and on every change.
pub(super) const IMAGE_STATE: &str = "consort/imageState";
/// Notification that an evaluation has begun, after the earlier ones of the client.
pub(super) const BEGUN: &str = "consort/begun";
/// Notification of output of a running evaluation.
pub(super) const OUTPUT: &str = "consort/output";

/// Notification that an [`APPROVE`] request is no longer open.
pub(super) const APPROVAL_OVER: &str = "consort/approvalOver";

/// Notification that an [`INPUT`] request is no longer open.
pub(super) const INPUT_OVER: &str = "consort/inputOver";

/// Notification of a new entry of the session's log.
pub(super) const LOG_ENTRY: &str = "consort/logEntry";

/// Notification that an evaluation of this editor has stopped.
pub(super) const STOPPED: &str = "consort/stopped";

/// All notifications that Consort adds.
pub const NOTIFICATIONS: [&str; 7] = [IMAGE_STATE, BEGUN, OUTPUT, APPROVAL_OVER, INPUT_OVER, LOG_ENTRY, STOPPED];

/// Request for the next line of a running evaluation's standard input.
pub(super) const INPUT: &str = "consort/input";

/// Request to decide whether an agent may do something.
pub(super) const APPROVE: &str = "consort/approve";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_notification_is_documented() {
        let page = include_str!("../../../docs/protocol.md");
        for name in NOTIFICATIONS {
            assert!(page.contains(&format!("`{name}`")), "docs/protocol.md does not document {name}");
        }
    }
}
