//! The answer of `macroexpand-form`, as data and as the text of the contract.

use serde::Serialize;

use super::compile_form::Refusal;
use super::context::Backend;
use super::format_directives;
use crate::image::api::find_name::FindName;
use crate::model::error_kind::ErrorKind;
use crate::model::expansion::{ExpandAnswer, ExpandError, Stage};
use crate::text::datum::{Form, Kind};
use crate::text::document::Document;
use crate::text::forms::{operator_at, package_at};

/// The result of one expansion.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// True if a macro was expanded.
    pub expanded: bool,
    /// The form, abbreviated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// The expansion, if it succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expansion: Option<String>,
    /// The reason, if there is no expansion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Refusal>,
    /// True if further forms follow that were not expanded.
    #[serde(skip)]
    more: bool,
    /// The stage that failed.
    #[serde(skip)]
    stage: Option<Stage>,
}

impl Facts {
    /// Creates the result of a call that expanded nothing.
    pub fn failed(kind: ErrorKind, message: String) -> Facts {
        Facts { error: Some(Refusal { kind: kind.into(), message }), ..Facts::default() }
    }
}

impl From<ExpandAnswer> for Facts {
    fn from(answer: ExpandAnswer) -> Facts {
        match answer {
            ExpandAnswer::Failed { error: ExpandError { stage, kind, message } } => {
                Facts { stage: Some(stage), error: Some(Refusal { kind, message }), ..Facts::default() }
            }
            ExpandAnswer::Done(done) => Facts {
                expanded: done.expanded,
                form: Some(done.form),
                expansion: Some(done.expansion),
                more: done.more,
                ..Facts::default()
            },
        }
    }
}

/// The expansion that is offered for a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offered {
    /// The expansion of the form's macro.
    Macro,
    /// The expansion of the form's compiler macro.
    CompilerMacro,
    /// The expansion of the form's format control.
    Control,
    /// None, because the form calls a function.
    Nothing,
}

/// Returns the expansion to offer for the form at `offset`, or `None` if there is no form.
///
/// The form may be a macro call, unless the image knows its operator as a function or a special
/// operator. An operator that the image does not know may be a local macro, or a macro that is not
/// loaded yet. Without an image, every operator may be a macro.
pub async fn offered<B: Backend>(backend: &B, document: &Document, offset: usize) -> Option<Offered> {
    let operator = operator_at(document, offset)?;
    let name = operator.name.rsplit(':').next().unwrap_or_default().to_uppercase();
    let package = match operator.name.split_once(':') {
        Some((package, _)) => package.to_uppercase(),
        None => package_at(document, offset).unwrap_or_else(|| "COMMON-LISP-USER".into()),
    };
    let mut found = backend.query(FindName { name: name.clone(), package }).await.unwrap_or_default();
    if !found.known_package {
        // A package that is not loaded most likely uses COMMON-LISP. The name is therefore looked
        // up in COMMON-LISP-USER.
        let package = "COMMON-LISP-USER".into();
        found = backend.query(FindName { name, package }).await.unwrap_or_default();
    }
    let is = |kind: &str| found.here.iter().any(|one| one == kind);
    Some(match () {
        () if !(is("function") || is("special-operator")) => Offered::Macro,
        () if has_control(document, offset) => Offered::Control,
        () if is("compiler-macro") => Offered::CompilerMacro,
        () => Offered::Nothing,
    })
}

/// Returns true if the innermost list around `offset` is a call with a string as its format
/// control.
fn has_control(document: &Document, offset: usize) -> bool {
    let Some(form) = Form::at(document, offset) else { return false };
    let path = form.path(offset);
    let Some(list) = path.iter().rev().find(|node| node.kind == Kind::List) else { return false };
    let Some(operator) = form.operator(list) else { return false };
    let control = format_directives::printed_control(&operator).and_then(|at| list.children.get(at));
    control.is_some_and(|control| control.kind == Kind::String)
}

/// Returns the text that the contract specifies.
pub fn render(facts: &Facts) -> String {
    if let Some(Refusal { kind, message }) = &facts.error {
        return match facts.stage {
            Some(Stage::Read) => format!("Error reading form: {message}"),
            Some(Stage::Expand | Stage::Confine) => format!("[ERROR] {kind}\n{message}"),
            Some(Stage::Package | Stage::Place) | None => message.clone(),
        };
    }
    let (form, expansion) = (facts.form.as_deref().unwrap_or_default(), facts.expansion.as_deref().unwrap_or_default());
    let mut text = format!("Expansion of {form}:\n\n{expansion}");
    if !facts.expanded {
        text.push_str("\n\n(Form is not a macro call)");
    }
    if facts.more {
        text.push_str("\n\n(Only the first form was expanded)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::expansion::Expansion;

    fn done(expanded: bool, more: bool) -> String {
        render(&Facts::from(ExpandAnswer::Done(Expansion {
            form: "(WHEN A B)".into(),
            expansion: "(if a\n    b)".into(),
            omitted: 0,
            expanded,
            writable: true,
            span: (0, 10).into(),
            calls: Vec::new(),
            more,
        })))
    }

    fn failed(stage: Stage, kind: &str, message: &str) -> String {
        let error = ExpandError { stage, kind: kind.into(), message: message.into() };
        render(&Facts::from(ExpandAnswer::Failed { error }))
    }

    #[test]
    fn the_texts_are_the_contracts() {
        assert_eq!(done(true, false), "Expansion of (WHEN A B):\n\n(if a\n    b)");
        assert_eq!(done(false, false), "Expansion of (WHEN A B):\n\n(if a\n    b)\n\n(Form is not a macro call)");
        assert!(done(true, true).ends_with("b)\n\n(Only the first form was expanded)"));
        let eof = "end of file on #<STRING-INPUT-STREAM>";
        assert_eq!(failed(Stage::Read, "END-OF-FILE", eof), format!("Error reading form: {eof}"));
        assert_eq!(failed(Stage::Package, "PACKAGE-ERROR", "Package X not found"), "Package X not found");
        assert_eq!(
            failed(Stage::Expand, "SB-INT:SIMPLE-PROGRAM-ERROR", "LOOP requires a form after FOR."),
            "[ERROR] SB-INT:SIMPLE-PROGRAM-ERROR\nLOOP requires a form after FOR."
        );
        assert_eq!(render(&Facts::failed("busy".into(), "Try again.".into())), "Try again.");
    }
}
