//! The notifications of our own. docs/protocol.md documents them; a test holds the two together.

/// The image's state, on arrival and whenever it changes.
pub(super) const IMAGE_STATE: &str = "consort/imageState";
/// Output of an evaluation that runs.
pub(super) const OUTPUT: &str = "consort/output";

/// All notifications of our own.
pub const NOTIFICATIONS: [&str; 2] = [IMAGE_STATE, OUTPUT];

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
