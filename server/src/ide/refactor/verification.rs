//! The verification that the result of a refactoring compiles without new findings, in a copy of
//! the image, before the client gets the edits.

use std::path::PathBuf;

use crate::blocking;
use crate::ide::package_uses::Definition;
use crate::model::check::{CheckEnd, CheckReport};
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::model::image::ImageError;
use crate::text::document::Document;
use crate::text::forms::package_at;
use crate::text::names;
use crate::text::toplevel::TopForm;

/// The part of a session that compiles texts in a copy of the image.
pub trait Compiler: Send + Sync {
    /// Returns the findings of an open text in its current version, if they are known.
    fn findings(&self, uri: &str, text: &Document) -> impl Future<Output = Option<Vec<Diagnostic>>> + Send;

    /// Compiles a text.
    ///
    /// # Errors
    /// There is no image, or it cannot be copied.
    fn compile(
        &self,
        path: Option<PathBuf>,
        text: String,
    ) -> impl Future<Output = Result<CheckReport, ImageError>> + Send;
}

/// The result of compiling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verification {
    /// There is no new finding.
    Unchanged,
    /// There is a new finding. This is the message of the first one.
    NewFinding(String),
    /// Nothing was compiled, for this reason.
    NotCompiled(String),
}

/// A finding that a refactoring causes, and that is no reason to refuse its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Accepted {
    /// The new definition of a function that a loaded structure made.
    StructureFunction(String),
    /// `&optional` and `&key` in one lambda list, which another definition also has.
    OptionalAndKey,
}

impl Accepted {
    /// Returns true if a message of the compiler reports this finding.
    fn is_told_by(&self, message: &str) -> bool {
        match self {
            Accepted::StructureFunction(function) => {
                let rest = message.strip_prefix("redefinition of ");
                let printed = rest.and_then(|rest| rest.split_once(" clobbers structure ")).map(|(name, _)| name);
                printed.and_then(names::symbol).is_some_and(|printed| {
                    names::symbol(function).is_some_and(|function| function.name == printed.name)
                })
            }
            Accepted::OptionalAndKey => message.starts_with("&OPTIONAL and &KEY found in the same lambda list"),
        }
    }
}

/// A new text to compile.
#[derive(Debug)]
pub(super) struct NewText {
    /// Forms that are evaluated before the text, on lines of their own.
    pub(super) before: String,
    pub(super) text: String,
}

/// The definition of a package that a refactoring changed.
#[derive(Debug)]
pub(super) struct ChangedPackage {
    name: String,
    /// The package in which the definition is read.
    inside: Option<String>,
    /// The new definition.
    written: String,
}

/// Returns the package definitions of a new text that are not in the old text in the same form.
pub(super) fn changed_packages(old: &Document, new: &str) -> Vec<ChangedPackage> {
    let old = old.text().to_string();
    let new = Document::new(new, 0);
    let changed = |top: &TopForm| {
        let Definition { name, form } = Definition::of(&new, top)?;
        let written = form.source;
        let inside = package_at(&new, top.span.start);
        (!old.contains(&written)).then_some(ChangedPackage { name, inside, written })
    };
    new.scan().forms().iter().filter_map(changed).collect()
}

/// Returns the forms to evaluate before the text with this index. They unlock changed packages,
/// since a person's image asks before it changes a locked one, and they define the changed packages
/// of the other texts.
pub(super) fn forms_before(changed: &[Vec<ChangedPackage>], index: usize) -> String {
    let string = |name: &str| format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""));
    let mut forms = String::new();
    for package in changed.iter().flatten() {
        let name = string(&package.name);
        forms.push_str(&format!(
            "(cl:eval-when (:compile-toplevel) (cl:when (cl:find-package {name}) (sb-ext:unlock-package {name})))\n"
        ));
    }
    let others = changed.iter().enumerate().filter(|(other, _)| *other != index).flat_map(|(_, packages)| packages);
    for package in others {
        let inside = string(package.inside.as_deref().unwrap_or("COMMON-LISP-USER"));
        forms.push_str(&format!(
            "(cl:in-package {inside})\n{}\n(cl:in-package \"COMMON-LISP-USER\")\n",
            package.written
        ));
    }
    forms
}

/// Compiles the new text, and the old one if its findings are not known. Findings in the forms
/// before the new text are ignored.
pub(super) async fn verify(
    compiler: &impl Compiler,
    (uri, path): (&str, Option<PathBuf>),
    old: &Document,
    new: NewText,
    accepted: &[Accepted],
) -> Verification {
    let before = match compiler.findings(uri, old).await {
        Some(findings) => findings,
        None => match compiler.compile(path.clone(), old.text().to_string()).await.map(complete) {
            Ok(Ok(findings)) => findings,
            Ok(Err(why)) => return Verification::NotCompiled(why),
            Err(error) => return Verification::NotCompiled(error.to_string()),
        },
    };
    let from = new.before.chars().count();
    let text = new.before + &new.text;
    match compiler.compile(path, text.clone()).await.map(complete) {
        Ok(Ok(mut after)) => {
            after.retain(|one| one.span.start >= from);
            let (old, accepted) = (old.clone(), accepted.to_vec());
            let found = blocking::run(move || {
                let old = old.text().to_string();
                first_new((&old, &before), (&text, &after), &accepted)
            });
            found.await.map_or(Verification::Unchanged, Verification::NewFinding)
        }
        Ok(Err(why)) => Verification::NotCompiled(why),
        Err(error) => Verification::NotCompiled(error.to_string()),
    }
}

/// Returns the findings of a completed check, or the reason why the check was stopped.
fn complete(report: CheckReport) -> Result<Vec<Diagnostic>, String> {
    match report.end {
        CheckEnd::Complete => Ok(report.diagnostics),
        CheckEnd::Stopped { reason } => Err(reason),
    }
}

/// Returns the message of the first finding of the compiler that occurs more often than before, is
/// at least a style warning and is not accepted. Findings of lint rules are ignored, because they
/// are about style. Two messages about a changed top-level form are the same if they differ only in
/// the forms that they quote.
fn first_new(
    (old, before): (&str, &[Diagnostic]),
    (text, after): (&str, &[Diagnostic]),
    accepted: &[Accepted],
) -> Option<String> {
    let counts = |one: &&Diagnostic| {
        let accepted = accepted.iter().any(|accepted| accepted.is_told_by(&one.message));
        one.severity <= Severity::StyleWarning && !one.is_of_rule() && !accepted
    };
    let mut known: Vec<&Diagnostic> = before.iter().filter(counts).collect();
    let mut new: Vec<&Diagnostic> = after.iter().filter(counts).collect();
    let mut without = |same: &dyn Fn(&Diagnostic, &Diagnostic) -> bool| {
        new.retain(|one| match known.iter().position(|other| other.code == one.code && same(one, other)) {
            Some(at) => {
                known.swap_remove(at);
                false
            }
            None => true,
        });
    };
    without(&|one, other| one.message == other.message);
    without(&|one, other| {
        one.message.contains('(')
            && without_forms(&one.message) == without_forms(&other.message)
            && form_of(one, text).is_some_and(|form| !old.contains(&form))
            && form_of(other, old).is_some_and(|form| !text.contains(&form))
    });
    new.first().map(|one| one.message.clone())
}

/// Returns the text of the top-level form of a finding.
fn form_of(finding: &Diagnostic, text: &str) -> Option<String> {
    let span = finding.toplevel?;
    Some(text.chars().skip(span.start).take(span.end.saturating_sub(span.start)).collect())
}

/// Returns a message without its text in parentheses.
fn without_forms(message: &str) -> String {
    let mut depth = 0usize;
    let outside = message.chars().filter(|char| {
        let before = depth;
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        before == 0 && depth == 0
    });
    outside.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Span;

    #[test]
    fn a_finding_that_shows_the_changed_code_is_not_new() {
        let finding = |message: &str, toplevel: Span| Diagnostic {
            toplevel: Some(toplevel),
            ..Diagnostic::new(toplevel, Severity::StyleWarning, "duplicate-case-key", message)
        };
        let shown = |operator: &str, code: &str| {
            format!("Duplicate key {operator} in the first clause: (({operator} :A) {code}), and another")
        };
        let old = "(f) (case x ((or :a) (if x 1 2)))";
        let new = "(f) (case x ((or :a) (cond (x 1) (t 2))))";
        let (same, changed) = (Span { start: 0, end: 3 }, |text: &str| Span { start: 4, end: text.len() });
        let before = [finding(&shown("OR", "(IF X 1 2)"), changed(old))];
        let after = [finding(&shown("OR", "(COND (X 1) (T 2))"), changed(new))];
        let compared = |after: &[Diagnostic]| first_new((old, &before), (new, after), &[]);
        assert_eq!(compared(&after), None);
        let message = Some(after[0].message.clone());
        assert_eq!(compared(&[after[0].clone(), after[0].clone()]), message);
        let other = [finding(&shown("AND", "(IF X 1 2)"), changed(new))];
        assert_eq!(compared(&other), Some(other[0].message.clone()));
        // A finding in a form that did not change.
        assert_eq!(compared(&[finding(&after[0].message, same)]), message);
        let elsewhere = [finding(&before[0].message, same)];
        assert_eq!(first_new((old, &elsewhere), (new, &after), &[]), message);
    }
}
