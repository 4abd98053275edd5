//! Evaluations that stop at unhandled errors (`debug.on_error`), for editors that have a debugger.

use serde_json::json;

use super::ext;
use super::notifier::Notifier;
use crate::config::OnError;
use crate::session::debug::{Stopped, StopsOf};
use crate::shown;

const STOP: &str = "Debug";
const REPORT: &str = "Report";

/// Reports the stops of the editor's evaluations to it, until it disconnects.
pub(super) async fn forward(notifier: Notifier, mut stops: StopsOf) {
    // The person's answer, which holds as long as the editor is connected.
    let mut answered = None;
    loop {
        let next = tokio::select! {
            next = stops.next() => next,
            () = notifier.peer.closed() => None,
        };
        let Some(stop) = next else { return };
        if !notifier.session.is_of_image(&stop) {
            continue;
        }
        let setting = notifier.session.settings(notifier.client).await.on_error;
        let wanted = answered.filter(|_| setting == OnError::Ask).unwrap_or(setting);
        let wanted = match wanted {
            // A break, a pause or a breakpoint was requested, so that the program stops in any
            // case.
            _ if stop.reason != "error" => OnError::Stop,
            OnError::Ask => {
                answered = ask(&notifier, &stop).await;
                // Without an answer, this error is reported, and at the next one the person is
                // asked again.
                answered.unwrap_or(OnError::Report)
            }
            wanted => wanted,
        };
        // The image may have ended while the question was open.
        if !notifier.session.is_of_image(&stop) {
            continue;
        }
        if wanted == OnError::Stop {
            let text = shown::line(&stop.text);
            let params = json!({"stop": stop.stop, "thread": stop.thread, "reason": stop.reason, "text": text});
            notifier.peer.notify(ext::STOPPED, params);
        } else if let Err(error) = notifier.session.report_stop(&stop).await {
            // The stop may have been left by another client meanwhile.
            tracing::info!("a stop was not aborted: {error}");
        }
    }
}

/// Asks whether evaluations are to stop at errors. Returns `None` without an answer.
async fn ask(notifier: &Notifier, stop: &Stopped) -> Option<OnError> {
    let message = format!(
        "{} Stop at errors to debug them, or only report them? The answer holds until you close the editor; the setting \
         debug.on_error holds always.",
        sentence(&shown::line(&stop.text))
    );
    // Type 1 of the protocol: an error. VS Code hides a warning after some seconds, and the
    // evaluation waits for the answer.
    let actions = [json!({"title": STOP}), json!({"title": REPORT})];
    let params = json!({"type": 1, "message": shown::notification(&message), "actions": actions});
    let answer = tokio::select! {
        answer = notifier.peer.request("window/showMessageRequest", params) => answer,
        () = notifier.session.stop_left(stop) => return None,
    };
    match answer {
        Ok(answer) if answer["title"] == STOP => Some(OnError::Stop),
        Ok(answer) if answer["title"] == REPORT => Some(OnError::Report),
        Ok(_) => None,
        Err(error) => {
            tracing::info!("the editor could not ask: {error}");
            None
        }
    }
}

/// Returns a text with the full stop of a sentence, unless it ends one already.
fn sentence(text: &str) -> String {
    if text.ends_with(['.', '?', '!']) { text.to_owned() } else { format!("{text}.") }
}
