//! Renewed compilation of the forms that use a definition. Each is compiled in a copy of the image
//! first. Those that compile there are loaded as one change.

use tokio::sync::mpsc;

use super::reload::Reload;
use super::{CheckRequest, ClientId, Session};
use crate::file_uri::path_of_uri;
use crate::ide::recompile::{User, Users};
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
    pub compiled: Vec<(User, Vec<Diagnostic>)>,
    /// The forms that were not compiled again, each with the reason.
    pub left: Vec<(User, String)>,
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
        users: Users,
        progress: mpsc::UnboundedSender<Progress>,
    ) -> Result<Recompiled, Failure> {
        let mut done = Recompiled { left: users.left, ..Recompiled::default() };
        let total = users.again.len() as u64 + 1;
        let mut texts = Vec::new();
        for (number, user) in users.again.into_iter().enumerate() {
            // The receiver of the progress may be gone.
            let _ = progress.send(Progress { message: user.name.clone(), done: number as u64, total: Some(total) });
            let text = text_of(&user);
            match self.findings(client, &text).await? {
                Ok(found) => {
                    let place = user.form.start - blanks(&user);
                    let found = found.into_iter().map(|one| shifted(one, place)).collect();
                    texts.push(text);
                    done.compiled.push((user, found));
                }
                Err(why) => done.left.push((user, why)),
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
fn blanks(user: &User) -> usize {
    line_column(user.text.document.text(), user.form.start).column - 1
}

/// Returns the text of a form to compile. Blanks replace the text before the form on its line, so
/// that columns are those of the document.
fn text_of(user: &User) -> CompileString {
    let text = user.text.document.text();
    CompileString {
        code: " ".repeat(blanks(user)) + &text.slice(user.form.start..user.form.end).to_string(),
        package: user.package.clone(),
        file: path_of_uri(&user.text.uri).or_else(|| Some(user.text.path.clone())),
        line: line_column(text, user.form.start).line,
        options: CompileOptions::default(),
    }
}

/// Returns a finding with its span moved by `by` characters, from the form's text to the document.
fn shifted(mut one: Diagnostic, by: usize) -> Diagnostic {
    one.span = Span { start: one.span.start + by, end: one.span.end + by };
    one
}
