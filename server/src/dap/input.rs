//! Lines of input that running code requests from a client, if the client supports it:
//! `consort/input`, `consort/inputOver`, `consort/answerInput`.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::answers::Answer;
use super::connection::Connection;
use super::protocol::{Initialize, InputAnswered};
use crate::model::input::InputAnswer;
use crate::session::Feedback;

/// Lets a client's code request input from the client from now on, if the client supports it.
pub(super) fn accept(connection: &Connection, client: Initialize) {
    if !client.supports_consort_input {
        return;
    }
    connection.takes_input.store(true, Ordering::SeqCst);
    connection.session.note_takes_input(connection.client);
    if let Some(name) = client.client_name {
        connection.session.name_client(connection.client, name);
    }
}

/// Forwards a question or its end to the client, and shows messages to a person.
pub(super) async fn forward(connection: &Connection, feedback: Feedback) {
    if !connection.takes_input.load(Ordering::SeqCst) {
        return;
    }
    match feedback {
        Feedback::Input(wanted) => {
            // The output before the question is sent first, because it ends with the prompt.
            connection.flush().await;
            connection.event("consort/input", json!({"id": wanted.question, "prompt": wanted.prompt}));
        }
        Feedback::InputOver { question } => connection.event("consort/inputOver", json!({"id": question})),
        Feedback::Message { text, .. } | Feedback::ImageLost { text, .. } => {
            connection.print_in_console(&format!("{text}\n"))
        }
        _ => {}
    }
}

/// Handles `consort/answerInput`. An answer without a text is the end of the file.
pub(super) fn answer(connection: &Connection, answered: InputAnswered) -> Answer {
    let end = || InputAnswer::End("ended by the person".into());
    connection.session.answer_input(answered.id, &answered.text.map_or_else(end, InputAnswer::Line));
    Ok(json!({}))
}
