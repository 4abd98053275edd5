//! A rule of a person or a workspace about code (`lint.rule`).

use crate::text::pattern::{Pattern, Template};

/// A rule: the lists that it tells of, and what they are rewritten to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintRule {
    /// The name, by which a comment silences it.
    pub name: String,
    /// The lists that it tells of.
    pub pattern: Pattern,
    /// The message.
    pub message: String,
    /// What such a list is rewritten to.
    pub rewrite: Option<Template>,
}
