//! Comments that silence rules: `consort: ignore` on the line of a finding or on the line above.

use std::collections::{HashMap, HashSet};

use super::RULES;
use crate::model::lint_rule::LintRule;
use crate::text::Span;
use crate::text::document::Document;

/// The comments of a text that silence rules.
pub(super) struct Silence<'a> {
    document: &'a Document,
    /// The names of the user's own rules.
    own: HashSet<&'a str>,
    /// The rules that the comment on a line silences, by line. `None` means that there is no such
    /// comment. Lines are read only when they are needed.
    lines: HashMap<usize, Option<Silenced>>,
}

enum Silenced {
    All,
    Rules(Vec<String>),
}

impl<'a> Silence<'a> {
    pub(super) fn of(document: &'a Document, own: &'a [LintRule]) -> Silence<'a> {
        Silence { document, own: own.iter().map(|rule| rule.name.as_str()).collect(), lines: HashMap::new() }
    }

    /// Returns true if a comment silences a rule at a span.
    pub(super) fn holds(&mut self, span: Span, rule: &str) -> bool {
        let line = self.document.text().char_to_line(span.start);
        self.line(line, rule) || line > 0 && self.line(line - 1, rule)
    }

    fn line(&mut self, line: usize, rule: &str) -> bool {
        let (document, own) = (self.document, &self.own);
        let silenced = self.lines.entry(line).or_insert_with(|| {
            let line = document.text().line(line).to_string();
            let (_, names) = line.split_once(';').and_then(|(_, comment)| comment.split_once("consort: ignore"))?;
            let is_rule =
                |name: &&str| *name == "all" || RULES.iter().any(|rule| rule.name() == *name) || own.contains(name);
            let names: Vec<String> =
                names.split([' ', ',', '\t', '\r', '\n']).filter(is_rule).map(str::to_owned).collect();
            Some(if names.is_empty() { Silenced::All } else { Silenced::Rules(names) })
        });
        match silenced {
            None => false,
            Some(Silenced::All) => true,
            Some(Silenced::Rules(names)) => names.iter().any(|name| name == rule || name == "all"),
        }
    }
}
