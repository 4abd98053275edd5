//! The question whether the workspace is trusted with what its consort.toml wants: a message with two buttons.

use serde_json::json;

use super::feedback::Notifier;
use crate::session::Level;
use crate::session::trust::{TrustAnswer, TrustPrompt};

const TRUST: &str = "Trust";
const NOT_NOW: &str = "Not now";

/// Ask; whatever goes wrong afterwards is said in a message.
pub(super) fn ask(notifier: &Notifier, asked: TrustPrompt) {
    let (peer, session, client) = (notifier.peer.clone(), notifier.session.clone(), notifier.client);
    let notifier = notifier.clone();
    tokio::spawn(async move {
        // The protocol's type 2: a warning.
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
