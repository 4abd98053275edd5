//! Lint rules (`lint.rules`), in addition to the compiler's checks. They report code that compiles
//! but is rarely intended. A rule reports only forms that are known to be evaluated, never data.
//!
//! A comment `consort: ignore` on the line of a finding, or on the line above, silences all rules
//! there. If names of rules follow, only these rules are silenced.

mod cases;
mod definitions;
mod own;
mod packages;
mod silence;
mod strings;
mod workspace;

use std::path::Path;

use self::silence::Silence;
use self::workspace::{Whole, WorkspaceFinding};
use super::index::Snapshot;
use super::predicates::is_predicate;
use super::refactor::names::{first_other, has_labels};
use super::refactor::readtables::first_reader;
use super::refactor::{EvaluationSites, MAX_FORM_BYTES, OwnMacros};
use crate::model::diagnostic::{Diagnostic, Severity, Tag};
use crate::model::lint_rule::LintRule;
use crate::text::Span;
use crate::text::datum::{Form, Kind, Node, Prefix};
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::names::is_number;

/// The prefix of the codes of all findings of lint rules.
const CODE: &str = Diagnostic::RULE;

/// A rule.
struct Rule {
    /// The code of the rule's findings: [`CODE`] and the rule's name in the settings.
    code: &'static str,
    check: Check,
}

impl Rule {
    /// Returns the rule's name in the settings.
    fn name(&self) -> &'static str {
        self.code.strip_prefix(CODE).unwrap_or(self.code)
    }
}

/// The function by which a rule finds violations.
enum Check {
    /// Returns the places at which a list violates the rule, with messages.
    Form(fn(&Form, &Node) -> Vec<(Span, String)>),
    /// Returns the violations in a text, considering the other texts of the workspace.
    Workspace(fn(&Whole) -> Vec<WorkspaceFinding>),
}

const fn form_rule(code: &'static str, check: fn(&Form, &Node) -> Vec<(Span, String)>) -> Rule {
    Rule { code, check: Check::Form(check) }
}

const fn workspace_rule(code: &'static str, check: fn(&Whole) -> Vec<WorkspaceFinding>) -> Rule {
    Rule { code, check: Check::Workspace(check) }
}

const RULES: [Rule; 14] = [
    form_rule("lint-eq-literal", eq_literal),
    form_rule("lint-unused-string", strings::unused_string),
    form_rule("lint-misplaced-docstring", strings::misplaced_docstring),
    form_rule("lint-boolean-if", boolean_if),
    form_rule("lint-negated-when", negated_when),
    form_rule("lint-quoted-key", cases::quoted_key),
    form_rule("lint-nil-key", cases::nil_key),
    form_rule("lint-missing-otherwise", cases::missing_otherwise),
    workspace_rule("lint-unused-definition", definitions::unused_definitions),
    workspace_rule("lint-shadowed-function", definitions::shadowed_functions),
    workspace_rule("lint-unused-export", packages::unused_exports),
    workspace_rule("lint-unused-import", packages::unused_imports),
    workspace_rule("lint-unsorted-names", packages::unsorted_names),
    workspace_rule("lint-package-cycle", packages::package_cycles),
];

/// The enabled rules.
#[derive(Debug, Clone, Default)]
pub struct EnabledRules {
    /// The names of rules, or `all`. A `-` before a name disables the rule.
    pub names: Vec<String>,
    /// The rules that the settings define.
    pub own: Vec<LintRule>,
}

impl EnabledRules {
    /// Returns true if there is nothing to check.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.own.is_empty()
    }

    fn rules(&self) -> Vec<&'static Rule> {
        let mut rules: Vec<&Rule> = Vec::new();
        for name in &self.names {
            let (bare, off) = name.strip_prefix('-').map_or((name.as_str(), false), |bare| (bare, true));
            rules.retain(|rule| !(bare == "all" || rule.name() == bare));
            rules.extend(RULES.iter().filter(|rule| !off && (bare == "all" || rule.name() == bare)));
        }
        rules
    }

    /// Returns the rules that the settings define, except those that are disabled by name.
    fn own_rules(&self) -> Vec<&LintRule> {
        let off = |rule: &&LintRule| self.names.iter().any(|name| name.strip_prefix('-') == Some(&rule.name));
        self.own.iter().filter(|rule| !off(rule)).collect()
    }
}

/// A list that a rule may report.
struct Candidate<'a, 'r> {
    /// The name of the rule.
    rule: &'r str,
    /// The list, after the lists around it, outermost first.
    path: Vec<&'a Node>,
    found: Diagnostic,
}

/// The rules that check single forms.
struct Rules<'r> {
    given: Vec<&'static Rule>,
    own: Vec<&'r LintRule>,
}

/// Returns the findings of the rules that the settings name, in the order of the text. `index`
/// contains the workspace's texts, which define packages and macros. `path` is the path of the
/// text's file in the index.
pub fn check(document: &Document, path: Option<&Path>, wanted: &EnabledRules, index: &Snapshot) -> Vec<Diagnostic> {
    let rules = Rules { given: wanted.rules(), own: wanted.own_rules() };
    let mut found = Vec::new();
    if rules.given.is_empty() && rules.own.is_empty() {
        return found;
    }
    let mut silence = Silence::of(document, &wanted.own);
    let packages = index.packages();
    // The start of the first form that changes how text is read. Forms from there on are skipped.
    let reader = first_reader(document, document.text().len_chars()).map(|(start, _)| start);
    let mut macros: Option<OwnMacros> = None;
    let mut left = own::MAX_FINDINGS;
    for top in document.scan().forms().iter().filter(|top| top.fault.is_none()) {
        let changed = reader.is_some_and(|reader| reader <= top.span.start);
        if changed || top.bytes.end - top.bytes.start > MAX_FORM_BYTES || crate::text::cancellation::should_stop() {
            continue;
        }
        let form = Form::of(document, top.span);
        let package = package_at(document, top.span.start);
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut matcher = own::Matcher::new(&packages, package.as_deref(), &form, &mut left);
        for node in &form.nodes {
            add_candidates(&mut matcher, node, &mut Vec::new(), &rules, &mut candidates);
        }
        if candidates.is_empty() || has_labels(&form) {
            continue;
        }
        let macros = macros.get_or_insert_with(|| OwnMacros::from_workspace(document, index));
        let evaluated = EvaluationSites::new(document, &form, macros);
        // Returns true if the operators of the lists in a path, and the names in the last of these
        // lists, are the standard's.
        let is_standard = |path: &[&Node]| {
            let inner = path.last().into_iter().flat_map(|list| list.children.iter());
            first_other(&packages, &form, path.iter().copied().chain(inner), package.as_deref()).is_none()
        };
        for one in candidates {
            if is_standard(&one.path) && evaluated.is_evaluated(&one.path) && !silence.holds(one.found.span, one.rule) {
                found.push(Diagnostic { toplevel: Some(top.span), ..one.found });
            }
        }
    }
    let whole = Whole { document, index, packages: &packages, path };
    for rule in &rules.given {
        let Check::Workspace(check) = rule.check else { continue };
        for WorkspaceFinding { span, message } in check(&whole) {
            if !silence.holds(span, rule.name()) {
                found.push(Diagnostic {
                    toplevel: document.scan().form_at(span.start).map(|top| top.span),
                    tags: if rule.name().starts_with("unused") { vec![Tag::Unnecessary] } else { Vec::new() },
                    ..Diagnostic::new(span, Severity::StyleWarning, rule.code, message)
                });
            }
        }
    }
    found.sort_by_key(|one| one.span);
    found
}

/// Collects the lists that rules may report. Each is preceded by the lists around it.
fn add_candidates<'a, 'r>(
    matcher: &mut own::Matcher<'_, 'a>,
    node: &'a Node,
    around: &mut Vec<&'a Node>,
    rules: &Rules<'r>,
    found: &mut Vec<Candidate<'a, 'r>>,
) {
    // The parts of a template after commas are code.
    let entered = match node.prefix {
        Prefix::None | Prefix::Function | Prefix::Backquote => true,
        Prefix::Comma => around.iter().any(|one| one.prefix == Prefix::Backquote),
        Prefix::Quote | Prefix::Other => false,
    };
    if node.kind != Kind::List || node.guarded || !entered {
        return;
    }
    around.push(node);
    if matches!(node.prefix, Prefix::None | Prefix::Comma) && node.children.iter().all(|child| !child.guarded) {
        for rule in &rules.given {
            let Check::Form(check) = rule.check else { continue };
            for (span, message) in check(matcher.form, node) {
                let tags = if rule.code == "lint-unused-string" { vec![Tag::Unnecessary] } else { Vec::new() };
                let one = Diagnostic::new(span, Severity::StyleWarning, rule.code, message);
                found.push(Candidate { rule: rule.name(), path: around.clone(), found: Diagnostic { tags, ..one } });
            }
        }
        for rule in &rules.own {
            if let Some(one) = matcher.finding(rule, node) {
                found.push(Candidate { rule: &rule.name, path: around.clone(), found: one });
            }
        }
    }
    for child in &node.children {
        add_candidates(matcher, child, around, rules, found);
    }
    around.pop();
}

fn is_literal(form: &Form, node: &Node) -> bool {
    let written = form.written(node);
    node.is_plain()
        && match node.kind {
            Kind::Atom => written.starts_with("#\\") || is_number(written),
            Kind::String => true,
            _ => false,
        }
}

/// Finds `eq` of a literal, such as `(eq x 1)`. Equal numbers, characters or strings need not be
/// EQ.
fn eq_literal(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let [head, one, other] = list.children.as_slice() else { return Vec::new() };
    if form.operator(list).as_deref() != Some("eq") {
        return Vec::new();
    }
    let Some(literal) = [one, other].into_iter().find(|node| is_literal(form, node)) else { return Vec::new() };
    let (kind, instead) = match literal.kind {
        Kind::String => ("strings", "STRING= or EQUAL"),
        _ if form.written(literal).starts_with('#') => ("characters", "EQL or CHAR="),
        _ => ("numbers", "EQL or ="),
    };
    vec![(head.span, format!("EQ may be false for equal {kind}; use {instead}."))]
}

/// Finds `(if x t nil)` and `(if x nil t)`.
fn boolean_if(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let [head, condition, yes, no] = list.children.as_slice() else { return Vec::new() };
    let is = |node: &Node, word: &str| node.is_plain() && form.text(node).eq_ignore_ascii_case(word);
    if form.operator(list).as_deref() != Some("if") {
        return Vec::new();
    }
    if is(yes, "nil") && is(no, "t") {
        vec![(head.span, "This form is equivalent to NOT of the condition.".into())]
    } else if is(yes, "t") && is(no, "nil") && is_predicate(form, condition) {
        vec![(head.span, "This form is equivalent to its condition.".into())]
    } else if is(yes, "t") && is(no, "nil") {
        vec![(
            head.span,
            "This form is equivalent to its condition, or to (AND condition T) where T itself is needed.".into(),
        )]
    } else {
        Vec::new()
    }
}

/// Finds `(when (not x) ...)`, `(unless (not x) ...)` and `(unless (null x) ...)`.
fn negated_when(form: &Form, list: &Node) -> Vec<(Span, String)> {
    let [head, condition, _, ..] = list.children.as_slice() else { return Vec::new() };
    let other = match form.operator(list).as_deref() {
        Some("when") => "UNLESS",
        Some("unless") => "WHEN",
        _ => return Vec::new(),
    };
    let negated = condition.is_list()
        && condition.children.len() == 2
        && !condition.children[1].guarded
        && match form.operator(condition).as_deref() {
            Some("not") => true,
            // `(when (null list) ...)` is not reported, because it tests for an empty list.
            Some("null") => other == "WHEN",
            _ => false,
        };
    if negated {
        let negation = form.operator(condition).unwrap_or_default().to_uppercase();
        vec![(head.span, format!("{other} expresses this without {negation}."))]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
