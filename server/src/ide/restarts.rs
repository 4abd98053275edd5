//! The restarts of a condition, in words.

use std::fmt::Write as _;

use crate::model::frozen::Restart;
use crate::shown::line;

/// Returns a restart's name and report in a line.
pub(super) fn of_restart(restart: &Restart) -> String {
    line(&format!("[{}] {}", restart.name.as_deref().unwrap_or(""), restart.report))
}

/// Returns a line for each restart, with its number; `before` begins each.
pub(super) fn numbered(restarts: &[Restart], before: &str) -> String {
    let mut text = String::new();
    for (index, restart) in restarts.iter().enumerate() {
        let takes = if restart.arguments { " (takes an argument)" } else { "" };
        let _ = write!(text, "{before}{index}: {}{takes}", of_restart(restart));
    }
    text
}
