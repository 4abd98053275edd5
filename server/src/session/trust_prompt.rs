//! The question whether a person trusts the settings of a workspace, and the answer.

use std::path::Path;

use super::ClientId;
use crate::config::trust::{COMMAND, UntrustedSettings};
use crate::shown;

/// The maximum length of a workspace's path in a question, in characters.
const PLACE: usize = 150;

/// The question whether a person trusts the settings that a workspace requests.
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
    /// The person did not decide now, or dismissed the question.
    NotNow,
    /// The editor cannot ask.
    Cannot,
}

impl TrustPrompt {
    pub(super) fn new(untrusted: &UntrustedSettings) -> TrustPrompt {
        // The lines are shown in full, because the answer is about all of them.
        let lines: Vec<String> = untrusted.lines().iter().map(|line| format!("    {line}")).collect();
        let message = format!(
            "The {} of {} wants:\n{}\nThis runs programs or code of the workspace as you. Do you trust it? Until then \
             Consort works with your own Lisp. In a terminal: `{COMMAND}`.",
            untrusted.asker(),
            place(&untrusted.workspace),
            lines.join("\n")
        );
        TrustPrompt { message: shown::notification(&message), digest: untrusted.digest.clone() }
    }
}

/// Returns the workspace's path in one line. Only the end of a long path is kept, so that the
/// question fits.
fn place(workspace: &Path) -> String {
    let path = shown::notification(&workspace.to_string_lossy()).replace(['\n', '\t'], " ");
    let length = path.chars().count();
    if length <= PLACE {
        return path;
    }
    format!("...{}", path.chars().skip(length - PLACE).collect::<String>())
}

/// The state of the trust question.
#[derive(Debug, Default)]
pub(super) struct TrustState {
    pub(super) asked: Option<ClientId>,
    /// True once the question has been answered. A terminal can still change the answer.
    pub(super) answered: bool,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::config::trust::TrustStore;

    /// The number of characters of a notification that VS Code shows.
    const NOTIFICATION: usize = 1_000;

    #[test]
    fn the_longest_question_is_shown_whole() {
        let dir = tempfile::tempdir().unwrap();
        let workspace = dir.path().join("x".repeat(200)).join("y".repeat(200));
        std::fs::create_dir_all(&workspace).unwrap();
        let store = TrustStore::within(dir.path().join("trust"));
        let load = |filling: &str, padding: usize| {
            let text = format!("[lisp]\ncommand = [\"sbcl\", \"{}\", \"(evil)\"]\n", filling.repeat(padding));
            std::fs::write(workspace.join("consort.toml"), text).unwrap();
            Config::load_from(None, &workspace, &store)
        };
        for filling in ["p", "]("] {
            let longest = (0..600).rev().find_map(|padding| load(filling, padding).untrusted).unwrap();
            let message = TrustPrompt::new(&longest).message;
            assert!(message.chars().count() <= NOTIFICATION, "{}", message.chars().count());
            assert!(message.contains(r#"","(evil)"]"#) && message.contains("yy wants:"), "{message}");
            assert!(crate::shown::notification(&longest.lines()[0]).chars().count() > 400);
        }
        let refused = load("p", 2_500);
        assert_eq!((refused.untrusted, refused.lisp), (None, Config::default().lisp));
        assert!(refused.problems[0].message.contains("lisp.command cannot be trusted"), "{:?}", refused.problems);
    }
}
