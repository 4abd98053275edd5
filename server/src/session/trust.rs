//! Trust in a workspace's own settings, as clients experience it: the question to an editor, and
//! the effect of the answer.

use super::event::Event;
pub use super::trust_prompt::{TrustAnswer, TrustPrompt};
use super::{ClientId, Session, settle};
use crate::config::Config;
use crate::config::trust::TrustStore;
use crate::model::image::ImageError;

impl Session {
    /// Handles an editor's answer to [`super::Feedback::AskTrust`]. The settings that were shown
    /// are recorded and put in force. The file is not read again.
    ///
    /// # Errors
    ///
    /// The settings could not be recorded, or the image does not start with them.
    pub async fn answer_trust(&self, client: ClientId, digest: String, answer: TrustAnswer) -> Result<(), String> {
        let untrusted = self.ask(|reply| Event::TrustAnswered { client, digest, answer, reply }).await;
        let Ok(Some(untrusted)) = untrusted else { return Ok(()) };
        let recorded = {
            let untrusted = untrusted.clone();
            tokio::task::spawn_blocking(move || TrustStore::of_user().trust(&untrusted)).await
        };
        match recorded {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(format!("The trust in the workspace could not be recorded: {error}")),
            Err(error) => return Err(error.to_string()),
        }
        self.put_trusted(client, untrusted.granted).await.map_err(|error| error.to_string())
    }

    /// Handles a change of trust from a terminal. Reads the settings again, and puts those that
    /// need trust in force.
    ///
    /// # Errors
    ///
    /// The image does not start with the settings.
    pub async fn trust_changed(&self, client: ClientId) -> Result<(), ImageError> {
        let workspace = self.workspace().to_owned();
        let config = tokio::task::spawn_blocking(move || Config::load(&workspace)).await;
        let config = config.map_err(|error| ImageError::Unavailable(error.to_string()))?;
        self.put_trusted(client, Box::new(config)).await
    }

    async fn put_trusted(&self, client: ClientId, config: Box<Config>) -> Result<(), ImageError> {
        settle(self.ask(|reply| Event::ApplyTrustedSettings { client, config, reply })).await
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::config::trust::UntrustedSettings;
    use crate::image::Image;
    use crate::session::{ClientInfo, Feedback, Frontend};

    fn config(digest: &str) -> Config {
        let untrusted = UntrustedSettings {
            workspace: "/some/workspace".into(),
            keys: vec![("lisp.init_file".into(), digest.into())],
            digest: digest.into(),
            granted: Box::default(),
        };
        Config { untrusted: Some(untrusted), ..Config::default() }
    }

    #[tokio::test]
    async fn settings_that_changed_under_the_question_are_asked_about_anew() {
        let directory = tempfile::tempdir().unwrap();
        let (image, events) = Image::prepare_in(directory.path(), &Config::default());
        let session = Session::start(config("first"), directory.path().to_owned(), image, events);
        let (editor, mut feedback) = session.attach(ClientInfo { frontend: Frontend::Lsp, name: "test".into() });
        session.note_shows_questions(editor);
        let mut asked = async || loop {
            if let Feedback::AskTrust(prompt) = feedback.recv().await.unwrap() {
                return prompt.digest;
            }
        };
        assert_eq!(asked().await, "first");
        session.put_trusted(editor, Box::new(config("second"))).await.unwrap();
        session.answer_trust(editor, "first".into(), TrustAnswer::Trust).await.unwrap();
        assert_eq!(asked().await, "second");
        session.answer_trust(editor, "second".into(), TrustAnswer::NotNow).await.unwrap();
    }
}
