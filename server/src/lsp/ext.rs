//! The notifications of our own. docs/protocol.md documents them; a test holds the two together.

/// The image's state, on arrival and whenever it changes.
pub(super) const IMAGE_STATE: &str = "consort/imageState";
/// Output of an evaluation that runs.
pub(super) const OUTPUT: &str = "consort/output";

/// A question of [`APPROVE`] is no longer asked.
pub(super) const APPROVAL_OVER: &str = "consort/approvalOver";

/// A new entry of the session's log.
pub(super) const LOG_ENTRY: &str = "consort/logEntry";

/// All notifications of our own.
pub const NOTIFICATIONS: [&str; 4] = [IMAGE_STATE, OUTPUT, APPROVAL_OVER, LOG_ENTRY];

/// A request: whether an agent may do something.
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
