//! Events of the image, forwarded to the clients concerned.

use std::time::Instant;

use super::Actor;
use crate::model::evaluation::EvalError;
use crate::model::image::{ImageEvent, ImageState};
use crate::model::input::InputAnswer;
use crate::model::stack_frame;
use crate::session::own_sessions::is_session_of;
use crate::session::{Feedback, Level};

impl Actor {
    pub(super) fn image_event(&mut self, event: ImageEvent) {
        match event {
            ImageEvent::State(state) => {
                let before = std::mem::replace(&mut self.state, state.clone());
                if before == state {
                    return;
                }
                self.chains.end_all();
                // The previous image may have reported a stop after its end was known.
                self.clients.values_mut().for_each(|client| client.sessions.image_ended());
                match &state {
                    ImageState::Dead { reason, is_final } => {
                        let again = if *is_final { "" } else { " A new one is being started." };
                        let text = format!("{reason}{again}");
                        self.notify_all(&Feedback::ImageLost { level: Level::Error, text });
                        if *is_final {
                            self.nothing_is_checked(reason);
                        }
                    }
                    ImageState::Ready { image, .. } => {
                        self.provenance.image_is(image);
                        self.had_image = true;
                        self.names.changed();
                        self.workspace_checks.all_changed();
                        self.log.note_image_change();
                        let (image, systems) = (self.image.clone(), self.systems.clone());
                        tokio::spawn(async move { systems.register(&image, "").await });
                        self.busy_until = None;
                        self.checks_failing_since = None;
                        self.documents.all_due(Instant::now());
                        self.forget_failure_without_documents();
                    }
                    ImageState::Idle | ImageState::Starting { .. } => {}
                }
                if !matches!(state, ImageState::Ready { .. }) {
                    self.notify_all(&Feedback::InputOver { question: None });
                }
                self.notify_all(&Feedback::Image(state));
            }
            ImageEvent::Restored { reason, restored, failed } => {
                let text = restored_text(&reason, &restored, &failed);
                self.notify_all(&match failed.is_empty() {
                    true => Feedback::ImageLost { level: Level::Info, text },
                    false => Feedback::Message { level: Level::Warning, text },
                });
                self.documents.all_due(Instant::now());
            }
            ImageEvent::Printed { text, stderr } => {
                let level = if stderr { Level::Warning } else { Level::Info };
                self.notify_all(&Feedback::Log { level, text });
            }
            ImageEvent::Unresponsive { text } => {
                self.notify_all(&Feedback::Message { level: Level::Warning, text });
            }
            ImageEvent::Stopped { session, stop } => {
                let clients = self.clients.iter_mut();
                let of =
                    clients.filter_map(|(id, client)| client.sessions.stopped(&session, stop).then_some(*id)).next();
                if let Some(id) = of {
                    self.next_evaluation(id);
                }
            }
            ImageEvent::StopLeft { stop } => {
                self.clients.values_mut().for_each(|client| client.sessions.stop_left(stop));
            }
            ImageEvent::Trace { session, text } => {
                if let Some(client) = self.clients.values().find(|client| is_session_of(&client.session, &session)) {
                    client.notify(Feedback::Log { level: Level::Info, text });
                }
            }
            ImageEvent::Input { session, wanted } => {
                match self.clients.values().find(|client| client.session == session) {
                    Some(client) => client.notify(Feedback::Input(wanted)),
                    None => {
                        let why = InputAnswer::End("its client has left".into());
                        self.image.answer_input(wanted.question, &why);
                    }
                }
            }
            ImageEvent::InputOver { question } => self.notify_all(&Feedback::InputOver { question }),
            ImageEvent::ThreadError { thread, kind, message, backtrace, frozen } => {
                let mut text = format!("An error ended the Lisp thread {thread:?}: {kind}: {message}");
                if let Some(frozen) = frozen {
                    let error = EvalError::new(&kind, message);
                    let memory = self.config.check.memory;
                    let whose = format!("the thread {thread:?}");
                    let number = self.checker.keep_failure(&frozen, &whose, Some(&error), memory);
                    if number > 0 {
                        text.push_str(&format!(" (its stack is kept as failure {number})"));
                    }
                }
                self.notify_all(&Feedback::Message { level: Level::Warning, text: text.clone() });
                let text = format!("{text}\n{}", stack_frame::texts(backtrace).join("\n"));
                self.notify_all(&Feedback::Log { level: Level::Warning, text });
            }
        }
    }
}

fn restored_text(reason: &str, restored: &[String], failed: &[(String, String)]) -> String {
    let mut text = format!("{reason} A new image is running.");
    if restored.is_empty() && failed.is_empty() {
        text.push_str(" Nothing had been loaded through Consort.");
    }
    if !restored.is_empty() {
        text.push_str(&format!(" Loaded again: {}.", restored.join(", ")));
    }
    for (what, why) in failed {
        text.push_str(&format!(" {what} could not be loaded again: {why}"));
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::image::Image;
    use crate::session::{ClientInfo, Frontend, Session};

    /// The actor takes the events of clients and of the image from two queues, in any order.
    #[tokio::test]
    async fn a_client_is_answered_in_the_state_that_the_image_had_before() {
        let directory = tempfile::tempdir().unwrap();
        let config = Config::default();
        let (image, _events) = Image::prepare_in(directory.path(), &config);
        let (events, receiver) = tokio::sync::mpsc::unbounded_channel();
        let session = Session::start(config, directory.path().to_owned(), image, receiver);
        for round in 0..64 {
            let state = ImageState::Starting { what: round.to_string() };
            events.send(ImageEvent::State(state.clone())).unwrap();
            let (client, mut feedback) = session.attach(ClientInfo { frontend: Frontend::Lsp, name: "test".into() });
            let Some(Feedback::Image(received)) = feedback.recv().await else { panic!("no state") };
            assert_eq!(received, state);
            session.detach(client);
        }
    }

    #[test]
    fn a_restoration_is_told_in_words() {
        let failed = [("b".to_string(), "System b not found.".to_string())];
        assert_eq!(
            restored_text("The image was killed.", &["a".into()], &failed),
            "The image was killed. A new image is running. Loaded again: a. b could not be loaded again: System b not found."
        );
    }
}
