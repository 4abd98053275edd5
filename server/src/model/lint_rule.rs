//! Rules of a person or a workspace about code (`lint.rule`).

use crate::text::pattern::{Pattern, Template};

/// A rule: a pattern of the lists that it reports, with a message and perhaps a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintRule {
    /// The name, with which a comment can silence the rule.
    pub name: String,
    /// The lists that the rule reports.
    pub pattern: Pattern,
    /// The message.
    pub message: String,
    /// The form that replaces a reported list, if the rule has one.
    pub rewrite: Option<Template>,
}
