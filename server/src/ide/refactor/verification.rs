//! The verification that the result of a refactoring compiles without new findings, in a copy of
//! the image, before the client gets the edits.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::model::check::{CheckEnd, CheckReport};
use crate::model::diagnostic::{Diagnostic, Severity};
use crate::model::image::ImageError;
use crate::text::document::Document;
use crate::text::names;

/// The part of a session that compiles texts in a copy of the image.
pub trait Compiler: Send + Sync {
    /// The findings of an open text in its current version, if they are known.
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
    /// Nothing is found that was not found before.
    Unchanged,
    /// The first new finding.
    NewFinding(String),
    /// The reason why nothing was compiled.
    NotCompiled(String),
}

/// A finding that a refactoring makes and that does not speak against its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Accepted {
    /// The new definition of a function that a loaded structure made.
    StructureFunction(String),
    /// `&optional` and `&key` in one lambda list, which another definition has too.
    OptionalAndKey,
}

impl Accepted {
    /// Returns true if a message tells of this finding.
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

/// Compiles the new text, and the old one where its findings are not known.
pub(super) async fn verify(
    compiler: &impl Compiler,
    (uri, path): (&str, Option<PathBuf>),
    old: &Document,
    new: String,
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
    match compiler.compile(path, new).await.map(complete) {
        Ok(Ok(after)) => first_new(&before, &after, accepted).map_or(Verification::Unchanged, Verification::NewFinding),
        Ok(Err(why)) => Verification::NotCompiled(why),
        Err(error) => Verification::NotCompiled(error.to_string()),
    }
}

/// The findings of a completed check; else the reason why it was stopped.
fn complete(report: CheckReport) -> Result<Vec<Diagnostic>, String> {
    match report.end {
        CheckEnd::Complete => Ok(report.diagnostics),
        CheckEnd::Stopped { reason } => Err(reason),
    }
}

/// The message of the compiler's first finding, of at least the severity of a style warning, that
/// occurs more often than before and is not accepted. Findings of lint rules do not count: they
/// tell of style.
fn first_new(before: &[Diagnostic], after: &[Diagnostic], accepted: &[Accepted]) -> Option<String> {
    let counts = |one: &&Diagnostic| {
        let accepted = accepted.iter().any(|accepted| accepted.is_told_by(&one.message));
        one.severity <= Severity::StyleWarning && !one.is_of_rule() && !accepted
    };
    let mut known: HashMap<(&str, &str), usize> = HashMap::new();
    for one in before.iter().filter(counts) {
        *known.entry((&one.code, &one.message)).or_default() += 1;
    }
    after.iter().filter(counts).find_map(|one| match known.get_mut(&(one.code.as_str(), one.message.as_str())) {
        Some(count) if *count > 0 => {
            *count -= 1;
            None
        }
        _ => Some(one.message.clone()),
    })
}
