//! The code or test that `attach` or `launch` names. It is run once the configuration is done, and
//! the debugger stops at its errors and failed checks. Then the debug session ends.

use std::path::{Path, PathBuf};

use serde_json::json;
use tokio::sync::watch;

use super::connection::Connection;
use super::evaluating::{NewEvaluation, begin, values};
use super::new_image;
use super::protocol::Begin;
use crate::ide::context::Context;
use crate::ide::testing::{self, Definition};
use crate::ide::texts::Text;
use crate::locked::lock;
use crate::model::evaluation::{EvalOutcome, EvalStatus};
use crate::model::stack_frame;
use crate::model::testing::TestToDebug;
use crate::session::Session;
use crate::shown;
use crate::text::Span;
use crate::text::forms::package_at;
use crate::text::position::{Position, PositionEncoding, to_position};

/// Evaluates the code or runs the test that `attach` or `launch` named, then ends the debug
/// session. Does nothing if they named none. `terminations` counts the `terminate` requests since
/// the configuration was done.
pub(super) async fn launch(connection: &Connection, mut terminations: watch::Receiver<u64>) {
    let Begin { code, package, test, framework, file, line, .. } = std::mem::take(&mut *lock(&connection.begin));
    let evaluations = terminations.clone();
    let defining = async {
        match (&test, file.as_deref().zip(line)) {
            (None, Some(place)) => defined_at(connection, &evaluations, place).await,
            (Some(name), _) => {
                define_with_breakpoints(connection, &evaluations, (name, package.as_deref())).await.map(|()| None)
            }
            (None, None) => Ok(None),
        }
    };
    let found = tokio::select! {
        biased;
        // The definition is dropped, which interrupts it. An error is impossible, because the
        // sender lives as long as the connection.
        _ = terminations.changed() => return,
        found = defining => match found {
            Ok(found) => found,
            Err(message) => return end(connection, "stderr", &message),
        },
    };
    let test = match (test, found) {
        (Some(name), _) => Some(TestToDebug { name, package: package.clone(), framework }),
        (None, Some(found)) => Some(TestToDebug { framework, ..found }),
        (None, None) => None,
    };
    let half_a_place = file.is_some() != line.is_some();
    let evaluation = match (test, code, file.zip(line)) {
        // The code is a comment, which logs and lists of evaluations show.
        (Some(test), ..) => {
            let code = format!("; the test {}", shown::line(&test.name));
            NewEvaluation { code, package: test.package.clone(), test: Some(test), ..NewEvaluation::default() }
        }
        (None, Some(code), place) => {
            let place = match &place {
                Some((file, line)) => form_on_line(connection, &code, file, *line).await,
                None => None,
            };
            NewEvaluation { code, package, place, ..NewEvaluation::default() }
        }
        (None, None, Some((file, line))) => {
            let message = format!(
                "There is no test at {}:{line}: no form (test NAME ...), (def-test ...), (deftest ...) or (define-test ...).",
                file.display()
            );
            return end(connection, "stderr", &message);
        }
        (None, None, None) if half_a_place => {
            let message = "`file` and `line` are given together: the line, from 1, on which the test's form is.";
            return end(connection, "stderr", message);
        }
        (None, None, None) => return,
    };
    let is_test = evaluation.test.is_some();
    let evaluation = NewEvaluation { stops: true, threads: true, ..evaluation };
    match begin(connection, terminations, None, evaluation).await {
        Ok(outcome) if outcome.error.is_some() => end(connection, "stderr", &failure(&outcome)),
        // The outcome of a test was printed already.
        Ok(_) if is_test => connection.terminated(),
        Ok(outcome) => end(connection, "console", &values(&outcome)),
        Err(error) => end(connection, "stderr", &error.to_string()),
    }
}

/// Shows a last line, and ends the debug session.
fn end(connection: &Connection, category: &str, shown: &str) {
    connection.event("output", json!({"category": category, "output": format!("{shown}\n")}));
    connection.terminated();
}

/// Returns the error of an evaluation, with its frames.
fn failure(outcome: &EvalOutcome) -> String {
    let Some(error) = &outcome.error else { return "It did not end.".into() };
    let frames = stack_frame::texts(error.backtrace.clone());
    format!("{}: {}\n{}", error.kind, error.message, frames.join("\n"))
}

/// Returns the URI of a file, and the start of the top-level form there, on that line or nearest to
/// it, whose text is the code. A stop in the code is then shown in the file.
async fn form_on_line(connection: &Connection, code: &str, file: &Path, line: usize) -> Option<(String, Position)> {
    let context: Context<Session> = connection.session.context(connection.client).await;
    let text = context.texts().get(file).await?;
    let rope = text.document.text();
    let forms = text.document.scan().forms().iter().map(|form| form.span);
    let same = forms.filter(|span| rope.slice(span.start..span.end) == code);
    let found = same.min_by_key(|span| rope.char_to_line(span.end).abs_diff(line.saturating_sub(1)))?;
    Some((text.uri.clone(), to_position(rope, found.start, PositionEncoding::Utf32)))
}

/// Finds the test whose form is on a line of a file, as an editor or the disk has it, and evaluates
/// its definition as it is there.
///
/// # Errors
/// The file cannot be read, or the definition cannot be evaluated to its end.
async fn defined_at(
    connection: &Connection,
    terminations: &watch::Receiver<u64>,
    (file, line): (&Path, usize),
) -> Result<Option<TestToDebug>, String> {
    let context: Context<Session> = connection.session.context(connection.client).await;
    let Some(text) = context.texts().get(file).await else {
        return Err(format!("The file {} cannot be read.", file.display()));
    };
    let Some(definition) = testing::test_on_line(&text.document, line) else { return Ok(None) };
    let package = package_at(&text.document, definition.form.start);
    evaluate(connection, terminations, &text, &definition, package.as_deref()).await?;
    Ok(Some(TestToDebug { name: definition.name, package, framework: None }))
}

/// Evaluates the definition of a test again if it has breakpoints that are not in force.
/// Breakpoints in a test take effect only when its definition is evaluated. The test is given by
/// its name, and possibly by its package.
///
/// # Errors
/// The definition cannot be evaluated to its end.
async fn define_with_breakpoints(
    connection: &Connection,
    terminations: &watch::Receiver<u64>,
    asked: (&str, Option<&str>),
) -> Result<(), String> {
    // The breakpoints that are not in force are known only after all have been set.
    new_image::wait_until_set(connection).await.map_err(|error| error.to_string())?;
    let waiting = lock(&connection.requested_breakpoints).waiting();
    if waiting.is_empty() {
        return Ok(());
    }
    let mut texts = connection.session.context(connection.client).await.texts();
    let mut evaluated: Vec<(PathBuf, usize)> = Vec::new();
    for (file, line) in waiting {
        let Some(text) = texts.get(&file).await else { continue };
        let Some(definition) = testing::test_of_breakpoint(&text.document, line) else { continue };
        let package = package_at(&text.document, definition.form.start);
        let place = (file, definition.form.start);
        if testing::is_test_called(asked, &definition.name, package.as_deref()) && !evaluated.contains(&place) {
            evaluate(connection, terminations, &text, &definition, package.as_deref()).await?;
            evaluated.push(place);
        }
    }
    Ok(())
}

/// Evaluates the definition of a test, after the form that chooses its suite. The definition stops
/// at breakpoints, and so does the code that it defines.
async fn evaluate(
    connection: &Connection,
    terminations: &watch::Receiver<u64>,
    text: &Text,
    test: &Definition,
    package: Option<&str>,
) -> Result<(), String> {
    let rope = text.document.text();
    let spans: [Option<Span>; 2] = [testing::suite_before(&text.document, test.form), Some(test.form)];
    for span in spans.into_iter().flatten() {
        let evaluation = NewEvaluation {
            code: rope.slice(span.start..span.end).to_string(),
            package: package.map(str::to_owned),
            place: Some((text.uri.clone(), to_position(rope, span.start, PositionEncoding::Utf32))),
            stops: true,
            ..NewEvaluation::default()
        };
        let outcome = begin(connection, terminations.clone(), None, evaluation).await;
        let outcome = outcome.map_err(|error| error.to_string())?;
        if outcome.status != EvalStatus::Ok {
            return Err(format!("The definition of the test {} fails. {}", test.name, failure(&outcome)));
        }
    }
    Ok(())
}
