//! The question whether to trust the workspace with the settings of its consort.toml. It is a
//! message with two buttons.

use serde_json::json;

use super::notifier::Notifier;
use crate::session::Level;
use crate::session::trust::{TrustAnswer, TrustPrompt};

const TRUST: &str = "Trust";
const NOT_NOW: &str = "Not now";

/// Asks the user. A later failure is shown in a message.
pub(super) fn ask(notifier: &Notifier, asked: TrustPrompt) {
    let (peer, session, client) = (notifier.peer.clone(), notifier.session.clone(), notifier.client);
    let notifier = notifier.clone();
    tokio::spawn(async move {
        // Type 2 of the protocol: a warning.
        let params = json!({"type": 2, "message": asked.message, "actions": [{"title": TRUST}, {"title": NOT_NOW}]});
        let answer = match peer.request("window/showMessageRequest", params).await {
            Ok(answer) if answer["title"] == TRUST => TrustAnswer::Trust,
            Ok(_) => TrustAnswer::NotNow,
            Err(error) => {
                tracing::info!("the editor could not ask: {error}");
                TrustAnswer::Cannot
            }
        };
        if let Err(why) = session.answer_trust(client, asked.digest, answer).await {
            notifier.say("window/showMessage", Level::Error, &why);
        }
    });
}
