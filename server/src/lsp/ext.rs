//! The notifications of LSP that Consort adds. docs/protocol.md documents them; a test compares
//! both.

/// The image's state, on connection and on every change.
pub(super) const IMAGE_STATE: &str = "consort/imageState";
/// An evaluation has begun, after those of the client before it.
pub(super) const BEGUN: &str = "consort/begun";
/// Output of a running evaluation.
pub(super) const OUTPUT: &str = "consort/output";

/// An [`APPROVE`] request is no longer open.
pub(super) const APPROVAL_OVER: &str = "consort/approvalOver";

/// An [`INPUT`] request is no longer open.
pub(super) const INPUT_OVER: &str = "consort/inputOver";

/// A new entry of the session's log.
pub(super) const LOG_ENTRY: &str = "consort/logEntry";

/// An evaluation of this editor has stopped.
pub(super) const STOPPED: &str = "consort/stopped";

/// All notifications that Consort adds.
pub const NOTIFICATIONS: [&str; 7] = [IMAGE_STATE, BEGUN, OUTPUT, APPROVAL_OVER, INPUT_OVER, LOG_ENTRY, STOPPED];

/// A request: the next line of a running evaluation's standard input.
pub(super) const INPUT: &str = "consort/input";

/// A request: may an agent do something?
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
