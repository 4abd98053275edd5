//! The rules that the user defines in the settings (`lint.rule`). They report lists that match a
//! pattern.

use crate::ide::fixes::rewritten;
use crate::ide::index::Packages;
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::model::lint_rule::LintRule;
use crate::text::datum::{Form, Node};
use crate::text::names::Symbol;

/// The maximum number of findings of these rules in a text.
pub(super) const MAX_FINDINGS: usize = 1_000;

/// A form that is compared with the rules.
pub(super) struct Matcher<'p, 'a> {
    pub(super) form: &'a Form,
    packages: &'p Packages<'p>,
    /// The package in which the form is read, or CL-USER if it is not known.
    package: &'p str,
    /// The number of findings that are still allowed in the text.
    findings_left: &'p mut usize,
}

impl<'p, 'a> Matcher<'p, 'a> {
    pub(super) fn new(
        packages: &'p Packages<'p>,
        package: Option<&'p str>,
        form: &'a Form,
        findings_left: &'p mut usize,
    ) -> Matcher<'p, 'a> {
        Matcher { form, packages, package: package.unwrap_or("COMMON-LISP-USER"), findings_left }
    }

    /// Returns the finding of a rule at a list, if the list matches.
    pub(super) fn finding(&mut self, rule: &LintRule, list: &Node) -> Option<Diagnostic> {
        let head = list.children.first().filter(|_| *self.findings_left > 0)?;
        let same = |wanted: &Symbol, symbol: &Symbol| self.home(wanted) == self.home(symbol);
        let bound = rule.pattern.matched(self.form, list, &same)?;
        *self.findings_left -= 1;
        let text = rule.rewrite.as_ref().and_then(|rewrite| rewrite.fill(self.form, list, &bound));
        let data = text.and_then(|text| rewritten::data(self.form, list, &text)).unwrap_or_default();
        let one = Diagnostic::new(head.span, Severity::StyleWarning, "lint-own", rule.message.clone());
        Some(Diagnostic { data, ..one })
    }

    /// Returns the home package of a symbol, according to the package definitions in the texts.
    fn home(&self, symbol: &Symbol) -> String {
        let prefix = symbol.package.as_deref();
        let package =
            prefix.map_or_else(|| self.package.to_owned(), |prefix| self.packages.package_name(prefix, self.package));
        self.packages.home(&package, &symbol.name)
    }
}
