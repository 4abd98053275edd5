//! Evaluations that stop at unhandled errors (`debug.on_error`), for editors that have a debugger.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;

use super::connection::Connection;
use super::ext;
use super::feedback::Notifier;
use crate::config::OnError;
use crate::session::debug::{Stopped, StopsOf};
use crate::shown;

const STOP: &str = "Debug";
const REPORT: &str = "Report";

/// What the person answered, for as long as the editor is connected.
#[derive(Debug, Clone, Default)]
pub(super) struct Stopping {
    answered: Arc<Mutex<Option<OnError>>>,
}

impl Stopping {
    /// Returns true if an evaluation of the editor is to stop at errors.
    pub(super) async fn wanted(&self, connection: &Connection) -> bool {
        connection.negotiated().stops
            && self.in_force(connection.session.settings(connection.client).await.on_error) != OnError::Report
    }

    /// Returns the setting, or the person's answer where the setting is to ask.
    fn in_force(&self, setting: OnError) -> OnError {
        let answered = *self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.filter(|_| setting == OnError::Ask).unwrap_or(setting)
    }

    fn answer(&self, answer: OnError) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }
}

/// Tells the editor of the stops of its evaluations, until it disconnects.
pub(super) async fn tell(notifier: Notifier, stopping: Stopping, mut stops: StopsOf) {
    loop {
        let next = tokio::select! {
            next = stops.next() => next,
            () = notifier.peer.closed() => None,
        };
        let Some(stop) = next else { return };
        let setting = notifier.session.settings(notifier.client).await.on_error;
        // A break, a pause and a breakpoint were asked for.
        let shows = match stopping.in_force(setting) {
            OnError::Ask if stop.reason == "error" => ask(&notifier, &stopping, &stop).await,
            _ => true,
        };
        if shows {
            let text = shown::line(&stop.text);
            let params = json!({"stop": stop.stop, "thread": stop.thread, "reason": stop.reason, "text": text});
            notifier.peer.notify(ext::STOPPED, params);
        } else if let Err(error) = notifier.session.report_stop(stop.stop).await {
            // Somebody else has left the stop.
            tracing::info!("a stop was not aborted: {error}");
        }
    }
}

/// Asks whether evaluations are to stop at errors; false: this one is reported.
async fn ask(notifier: &Notifier, stopping: &Stopping, stop: &Stopped) -> bool {
    let message = format!(
        "{}. Stop at errors, with their restarts and frames, or report them? The answer counts until this editor leaves; \
         the setting `debug.on_error` (\"stop\" or \"report\") counts always.",
        shown::line(&stop.text).trim_end_matches('.')
    );
    // Type 2 of the protocol: a warning.
    let actions = [json!({"title": STOP}), json!({"title": REPORT})];
    let params = json!({"type": 2, "message": shown::notification(&message), "actions": actions});
    let answer = tokio::select! {
        answer = notifier.peer.request("window/showMessageRequest", params) => answer,
        () = notifier.session.stop_left(stop.stop) => return false,
    };
    match answer {
        Ok(answer) if answer["title"] == STOP => stopping.answer(OnError::Stop),
        Ok(answer) if answer["title"] == REPORT => {
            stopping.answer(OnError::Report);
            return false;
        }
        // No answer: this error is reported, and the question comes again.
        Ok(_) => return false,
        Err(error) => {
            tracing::info!("the editor could not ask: {error}");
            return false;
        }
    }
    true
}
