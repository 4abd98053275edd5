//! The texts of restarts, for people and agents.

use std::fmt::Write as _;

use crate::model::frozen::Restart;
use crate::shown::line;

/// Returns `[NAME] report` on one line.
pub(super) fn restart_label(restart: &Restart) -> String {
    line(&format!("[{}] {}", restart.name.as_deref().unwrap_or(""), restart.report))
}

/// Returns each restart as `prefix`, its number and its label. `prefix` contains the line break.
pub(super) fn numbered_list(restarts: &[Restart], prefix: &str) -> String {
    let mut text = String::new();
    for (index, restart) in restarts.iter().enumerate() {
        let takes = if restart.arguments { " (takes an argument)" } else { "" };
        let _ = write!(text, "{prefix}{index}: {}{takes}", restart_label(restart));
    }
    text
}
