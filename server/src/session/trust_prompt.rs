//! The question whether a person trusts the settings of a workspace, and its answer.

use super::ClientId;
use crate::config::trust::{COMMAND, UntrustedSettings};
use crate::shown;

/// A question to a person: whether the workspace is trusted with the settings it requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustPrompt {
    /// The text of a notification.
    pub message: String,
    /// The digest of the settings in question ([`UntrustedSettings::digest`]).
    pub digest: String,
}

/// The answer to a trust question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustAnswer {
    /// The person trusts the workspace.
    Trust,
    /// Not now, or the question was dismissed.
    NotNow,
    /// The editor cannot ask.
    Cannot,
}

impl TrustPrompt {
    pub(super) fn new(untrusted: &UntrustedSettings) -> TrustPrompt {
        let lines: Vec<String> =
            untrusted.lines().iter().map(|line| format!("    {}", shown::long_line(line))).collect();
        let message = format!(
            "The consort.toml of {} wants:\n{}\nThis runs programs or code of the workspace as you. Do you trust it? Until then \
             Consort works with your own Lisp. In a terminal: `{COMMAND}`.",
            shown::line(&untrusted.workspace.to_string_lossy()),
            lines.join("\n")
        );
        TrustPrompt { message: shown::notification(&message), digest: untrusted.digest.clone() }
    }
}

/// The state of the trust question.
#[derive(Debug, Default)]
pub(super) struct TrustState {
    pub(super) asked: Option<ClientId>,
    /// The question has been answered; a terminal can still change the answer.
    pub(super) answered: bool,
}
