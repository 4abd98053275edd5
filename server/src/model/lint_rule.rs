//! A rule of a person or a workspace about code (`lint.rule`).

use crate::text::pattern::{Pattern, Template};

/// A rule: the lists that it reports, and the form that replaces them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintRule {
    /// The name, by which a comment silences it.
    pub name: String,
    /// The lists that the rule reports.
    pub pattern: Pattern,
    /// The message.
    pub message: String,
    /// The form that replaces such a list.
    pub rewrite: Option<Template>,
}
