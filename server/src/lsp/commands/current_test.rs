//! Evaluation of a test's definition as it is in the editor, before the test is run.
//!
//! Otherwise a test that was just corrected would run with its old text, and fail at its new line.

use tower_lsp::jsonrpc::Result;

use super::PositionArgument;
use crate::ide::evaluate::Evaluation;
use crate::ide::testing::{Definition, TestReport, suite_before};
use crate::lsp::connection::Connection;
use crate::lsp::to_proto;
use crate::model::evaluation::EvalStatus;
use crate::session::{EvalRequest, Part};
use crate::text::Span;
use crate::text::position::to_position;

/// Evaluates a test's definition, after the form that selects its suite. If the evaluation failed,
/// returns the reason why the test cannot be run.
///
/// # Errors
/// There is no image.
pub(super) async fn evaluate(
    connection: &Connection,
    uri: &str,
    place: &PositionArgument,
    test: &Definition,
) -> Result<Option<TestReport>> {
    let encoding = connection.negotiated().encoding;
    let text = place.document.text();
    let spans: [Option<Span>; 2] = [suite_before(&place.document, test.form), Some(test.form)];
    for span in spans.into_iter().flatten() {
        let part = Part::Region(to_position(text, span.start, encoding), to_position(text, span.end, encoding));
        let request = EvalRequest::default();
        let answer = connection.session.evaluate_part(connection.client, request, uri, part).await;
        let Some((_, answer)) = answer else { continue };
        let outcome = Evaluation::from(answer.map_err(|error| to_proto::error(&error))?).outcome;
        if outcome.status != EvalStatus::Ok {
            let (kind, message) = match &outcome.error {
                Some(error) => (error.kind.clone(), error.message.clone()),
                None => ("interrupted".to_owned(), "its definition was not evaluated to its end".to_owned()),
            };
            return Ok(Some(TestReport::failed(outcome.status, kind, format!("{}: {message}", test.name))));
        }
    }
    Ok(None)
}
