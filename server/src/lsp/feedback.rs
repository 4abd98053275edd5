//! The session's events, sent to the client as notifications and requests.

use std::collections::HashMap;
use std::time::Duration;

use lsp_types::{PublishDiagnosticsParams, TextEdit, Url};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::approve::Questions;
use super::edits::{self, EditedText};
use super::ext;
use super::input::Lines;
use super::notifier::Notifier;
use super::progress::Bar;
use super::to_proto::{self, Diagnostics};
use super::trust;
use crate::model::image::ImageState;
use crate::session::{Feedback, describe_image};
use crate::shown;

/// The time after which the start of an image gets a progress bar. With a cached core, the start
/// takes a fraction of this.
const PROGRESS_BAR_DELAY: Duration = Duration::from_millis(500);

/// Sends events until the client is detached or disconnects.
pub(super) async fn forward(notifier: Notifier, mut feedback: mpsc::UnboundedReceiver<Feedback>) {
    let mut checks: HashMap<String, Bar> = HashMap::new();
    let mut start: Option<Bar> = None;
    let mut questions = Questions::default();
    let mut lines = Lines::default();
    let mut starting: Option<(Instant, String)> = None;
    loop {
        let overdue = starting.as_ref().map(|(since, _)| *since + PROGRESS_BAR_DELAY);
        let next = tokio::select! {
            next = feedback.recv() => next,
            () = notifier.peer.closed() => None,
            () = at(overdue) => {
                if let Some((_, what)) = starting.take() {
                    let bar = notifier.bars.begin(None, notifier.negotiated.progress, "Starting Lisp", false);
                    bar.report(&what, None);
                    start = Some(bar);
                }
                continue;
            }
        };
        match next {
            None => return,
            Some(Feedback::Diagnostics { uri, version, text, items }) => {
                let Ok(uri) = Url::parse(&uri) else { continue };
                if notifier.negotiated.pull {
                    notifier.refresh();
                } else {
                    let diagnostics = Diagnostics::new(&notifier.negotiated, &uri, &text).all(items).await;
                    let params = PublishDiagnosticsParams { uri, diagnostics, version };
                    let about = params.uri.to_string();
                    notifier.peer.notify_newest("textDocument/publishDiagnostics", &about, params);
                }
            }
            Some(Feedback::Ask { id, request, deadline }) => questions.ask(&notifier, id, request, deadline),
            Some(Feedback::Input(wanted)) => lines.ask(&notifier, wanted),
            Some(Feedback::InputOver { question }) => lines.withdraw(&notifier, question),
            Some(Feedback::AskTrust(asked)) => trust::ask(&notifier, *asked),
            Some(Feedback::AskOver { id, what, why }) => questions.withdraw(&notifier, id, &what, &why),
            Some(Feedback::Message { level, text } | Feedback::ImageLost { level, text }) => {
                notifier.say("window/showMessage", level, &text)
            }
            Some(Feedback::ApplyEdit { uri, version, text, edits, reply }) => {
                let edited = EditedText { uri, text: text.clone() };
                let Ok(uri) = Url::parse(&edited.uri) else { continue };
                let edits = edits
                    .into_iter()
                    .map(|(span, new_text)| TextEdit {
                        range: to_proto::range(&text, span, notifier.negotiated.encoding),
                        new_text,
                    })
                    .collect();
                let edit = to_proto::edit(&uri, Some(version), notifier.negotiated.document_changes, edits);
                let Notifier { peer, session, client, .. } = notifier.clone();
                tokio::spawn(async move {
                    let applied = edits::apply(
                        (&session, client),
                        &peer,
                        "Edit by an agent",
                        edit,
                        &[edited],
                        Some(edits::APPLY_TIMEOUT),
                    )
                    .await;
                    drop(reply.send(applied));
                });
            }
            Some(Feedback::Log { level, text }) => notifier.say("window/logMessage", level, &text),
            Some(Feedback::Checking { uri, running }) => {
                if running {
                    let name = uri.rsplit('/').next().unwrap_or(&uri);
                    let title = format!("Checking {}", shown::line(name));
                    let bar = notifier.bars.begin(None, notifier.negotiated.progress, &title, false);
                    checks.insert(uri, bar);
                } else {
                    checks.remove(&uri);
                }
            }
            Some(Feedback::Image(state)) => {
                match (&state, &start) {
                    (ImageState::Starting { what }, Some(bar)) => bar.report(what, None),
                    (ImageState::Starting { what }, None) => {
                        let since = starting.take().map_or_else(Instant::now, |(since, _)| since);
                        starting = Some((since, what.clone()));
                    }
                    _ => {
                        starting = None;
                        start = None;
                    }
                }
                notifier.peer.notify_newest(ext::IMAGE_STATE, "", describe_image(&state));
            }
        }
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}
