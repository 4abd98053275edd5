//! Evaluation of a part of an open document. The part is determined in the actor, which has the
//! document with all changes that the editor has sent before.

use std::future::Future;

use tokio::sync::oneshot;

use super::event::{Event, Place, Reply};
use super::requested_part::{Part, RequestedPart, Selected};
use super::requests::in_place;
use super::{ClientId, EvalRequest, Session, actor::Actor, unreadable_code};
use crate::ide::evaluate_part;
use crate::model::evaluation::EvalOutcome;
use crate::model::image::ImageError;
use crate::text::Span;
use crate::text::document::Document;
use crate::text::forms::{package_at, possible_packages_at, toplevel_form};
use crate::text::position::{to_offset, to_position};
use crate::text::tree::Tree;

impl Session {
    /// Evaluates a part of an open document, with the document as the source location of its
    /// definitions. The request's code is taken from the document. Returns `None` if the document
    /// is not open, or if the part is empty.
    pub fn evaluate_part(
        &self,
        client: ClientId,
        request: EvalRequest,
        uri: &str,
        part: Part,
    ) -> impl Future<Output = Option<(Selected, Result<EvalOutcome, ImageError>)>> + Send + use<> {
        let (selected, found) = oneshot::channel();
        let uri = uri.to_owned();
        let how = super::log::current().map_or_else(|| "evaluate".into(), |doing| doing.tool.clone());
        let asked = self.ask_job(|reply| Event::EvaluatePart {
            client,
            request,
            part: RequestedPart { uri, part, how },
            selected,
            reply,
        });
        let (session, outcome) = (self.clone(), super::settle_keeping_result(asked));
        async move {
            let found = found.await.ok().flatten()?;
            let code = found.text.slice(found.span.start..found.span.end).to_string();
            let outcome = session.logged(client, "evaluate", Some(&code), outcome, super::record::outcome_line);
            let mut outcome = outcome.await;
            if let Ok(outcome) = &mut outcome {
                unreadable_code::explain(
                    || found.text.slice(..found.span.end).to_string(),
                    found.span.start,
                    None,
                    outcome,
                );
            }
            Some((found, outcome))
        }
    }
}

impl Actor {
    pub(super) fn evaluate_part(
        &mut self,
        client: ClientId,
        mut request: EvalRequest,
        RequestedPart { uri, part, how }: RequestedPart,
        selected: oneshot::Sender<Option<Selected>>,
        reply: Reply<EvalOutcome>,
    ) {
        let Some((document, encoding)) = self.open_document(&(client, uri.clone())) else {
            drop(selected.send(None));
            return;
        };
        let text = document.text();
        let offset = |position| to_offset(text, position, encoding);
        let span = match part {
            Part::Form(at) => in_place(text.len_bytes(), || form_at(&document, offset(at))),
            Part::TopLevel(at) => evaluate_part::top_level(&document, offset(at)),
            Part::UpTo(at) => evaluate_part::up_to(&document, offset(at)),
            Part::Region(start, end) => Some(Span { start: offset(start), end: offset(end).max(offset(start)) }),
            Part::Buffer => Some(Span { start: 0, end: text.len_chars() }),
        };
        let found = span.map(|span| Selected { span, text: text.clone(), version: document.version() });
        if let Some(Selected { span, .. }) = &found {
            request.code = text.slice(span.start..span.end).to_string();
            request.requires = package_named_by(&document, part, *span);
            let position = Some(to_position(text, span.start, encoding));
            self.evaluate(client, request, Some(Place::new(uri, position)), how, reply);
        }
        drop(selected.send(found));
    }
}

/// Returns the package that a form names if the form is an `in-package`.
fn package_named_by(document: &Document, part: Part, span: Span) -> Option<String> {
    if !matches!(part, Part::Form(_) | Part::TopLevel(_)) {
        return None;
    }
    // The reader may skip a form behind `#+` or `#-`.
    if possible_packages_at(document, span.end).len() > 1 {
        return None;
    }
    package_at(document, span.end).filter(|after| package_at(document, span.start).as_ref() != Some(after))
}

/// Returns the form that is meant at a position ([`evaluate_part::form`]). Examines only the
/// top-level forms nearby.
fn form_at(document: &Document, at: usize) -> Option<Span> {
    const MAX_BYTES: usize = 4 << 20;
    let forms = document.scan().forms();
    let after = forms.partition_point(|form| form.span.start <= at);
    let near = &forms[after.saturating_sub(2)..(after + 1).min(forms.len())];
    let (first, last) = (near.first()?, near.last()?);
    if last.bytes.end - first.bytes.start > MAX_BYTES {
        return toplevel_form(document, at);
    }
    // White space around the forms is included, for a position in it.
    let text = document.text();
    let end = last.span.end.max(at).min(text.len_chars());
    let string = text.slice(first.span.start..end).to_string();
    let byte = text.char_to_byte(at.min(end)).checked_sub(first.bytes.start)?;
    let mut found = evaluate_part::form(&Tree::parse(&string), byte)?;
    found.start += evaluate_part::disabling_prefix_length(&string[found.clone()]);
    let char = |byte: usize| text.byte_to_char(first.bytes.start + byte);
    Some(Span { start: char(found.start), end: char(found.end) })
}
