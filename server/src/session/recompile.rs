//! Renewed compilation of the forms that use a definition. Each is compiled in a copy of the image
//! first. Those that compile there are loaded as one change.

use tokio::sync::mpsc;

use super::reload::Reload;
use super::{CheckRequest, ClientId, Session};
use crate::file_uri::path_of_uri;
use crate::ide::recompile::{DependentForm, DependentForms};
use crate::ide::reload::{Failure, fatal};
use crate::image::api::reload::{CompileString, ReloadOutcome};
use crate::model::check::CheckMode;
use crate::model::compile_options::CompileOptions;
use crate::model::diagnostic::Diagnostic;
use crate::model::image::Progress;
use crate::text::Span;
use crate::text::position::line_column;

/// The outcome of a renewed compilation of the users of a definition.
#[derive(Debug, Default)]
pub struct Recompiled {
    /// The forms that were compiled and loaded, each with the compiler's findings.
    pub compiled: Vec<(DependentForm, Vec<Diagnostic>)>,
    /// The forms that were not compiled again, each with the reason.
    pub not_recompiled: Vec<(DependentForm, String)>,
    /// The report of the change, if there was anything to load.
    pub outcome: Option<ReloadOutcome>,
}

impl Session {
    /// Compiles and loads forms again. `name` is the definition that they use.
    ///
    /// # Errors
    /// The contract's error object. In this case nothing has changed, or the changes were rolled
    /// back.
    pub async fn recompile(
        &self,
        client: ClientId,
        name: &str,
        dependents: DependentForms,
        progress: mpsc::UnboundedSender<Progress>,
    ) -> Result<Recompiled, Failure> {
        let mut done = Recompiled { not_recompiled: dependents.not_recompiled, ..Recompiled::default() };
        let total = dependents.again.len() as u64 + 1;
        let mut texts = Vec::new();
        for (number, dependent) in dependents.again.into_iter().enumerate() {
            // The receiver of the progress may be gone.
            let _ =
                progress.send(Progress { message: dependent.name.clone(), done: number as u64, total: Some(total) });
            let text = text_of(&dependent);
            match self.findings(client, &text).await? {
                Ok(found) => {
                    let place = dependent.form.start - blanks(&dependent);
                    let found = found.into_iter().map(|one| shifted(one, place)).collect();
                    texts.push(text);
                    done.compiled.push((dependent, found));
                }
                Err(why) => done.not_recompiled.push((dependent, why)),
            }
        }
        if texts.is_empty() {
            return Ok(done);
        }
        let what = Reload::Texts { what: format!("the users of {name}"), texts };
        // A person sees the progress and can stop the reload.
        done.outcome = Some(self.reload(client, what, Some(86_400.0), Some(progress)).await?);
        Ok(done)
    }

    /// Returns the findings of a text in a copy of the image. The inner `Err` is the reason why the
    /// text does not compile there.
    async fn findings(
        &self,
        client: ClientId,
        text: &CompileString,
    ) -> Result<Result<Vec<Diagnostic>, String>, Failure> {
        let request = CheckRequest {
            text: text.code.clone(),
            path: text.file.clone(),
            mode: CheckMode::File,
            package: text.package.clone(),
            timeout: None,
        };
        let report = self.check(client, request).await;
        let report = report.map_err(|error| Failure::new(error.kind(), error.to_string()))?;
        Ok(match fatal(&text.code, &report.diagnostics, None, text.line) {
            Some(failure) => Err(format!("it does not compile: {}", failure.message)),
            None => Ok(report.diagnostics),
        })
    }
}

/// Returns the column of a form in its line, 0-based.
fn blanks(dependent: &DependentForm) -> usize {
    line_column(dependent.text.document.text(), dependent.form.start).column - 1
}

/// Returns the text of a form to compile. Blanks replace the text before the form on its line, so
/// that columns are those of the document.
fn text_of(dependent: &DependentForm) -> CompileString {
    let text = dependent.text.document.text();
    CompileString {
        code: " ".repeat(blanks(dependent)) + &text.slice(dependent.form.start..dependent.form.end).to_string(),
        package: dependent.package.clone(),
        file: path_of_uri(&dependent.text.uri).or_else(|| Some(dependent.text.path.clone())),
        line: line_column(text, dependent.form.start).line,
        options: CompileOptions::default(),
    }
}

/// Returns a finding with its span moved by `by` characters, from the form's text to the document.
fn shifted(mut one: Diagnostic, by: usize) -> Diagnostic {
    one.span = Span { start: one.span.start + by, end: one.span.end + by };
    one
}
