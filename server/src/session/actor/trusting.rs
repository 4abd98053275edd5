//! The settings of the workspace that need trust. They are reported, asked about in one editor, and
//! put in force.

use super::Actor;
use crate::config::Config;
use crate::config::trust::UntrustedSettings;
use crate::session::event::Reply;
use crate::session::jobs::{Job, Kind};
use crate::session::trust_prompt::{TrustAnswer, TrustPrompt};
use crate::session::{ClientId, Feedback, Frontend, Level};

impl Actor {
    /// Returns the notice for a new agent. An editor is asked a question instead.
    pub(super) fn trust_notice(&self, frontend: Frontend) -> Option<Feedback> {
        let untrusted = self.config.untrusted.as_ref().filter(|_| frontend == Frontend::Mcp)?;
        Some(Feedback::Message { level: Level::Warning, text: untrusted.notice() })
    }

    /// Asks an editor that can show questions, unless an editor is being asked or the question
    /// has been answered.
    pub(super) fn ask_for_trust(&mut self, editor: ClientId) {
        let Some(untrusted) = self.config.untrusted.as_ref().filter(|_| !self.trust.answered) else { return };
        if self.trust.asked.is_none() {
            self.trust.asked = Some(editor);
            self.notify(editor, Feedback::AskTrust(Box::new(TrustPrompt::new(untrusted))));
        }
    }

    /// Handles the departure of an editor. If it was being asked, the next editor is asked.
    pub(super) fn leave_trust(&mut self, client: ClientId) {
        if self.trust.asked == Some(client) && !self.trust.answered {
            self.trust.asked = None;
            if let Some(next) = self.approvals.first_editor() {
                self.ask_for_trust(next);
            }
        }
    }

    /// Handles an editor's answer. Returns the settings to be recorded, if the answer is about
    /// them.
    pub(super) fn trust_answered(
        &mut self,
        client: ClientId,
        digest: &str,
        answer: TrustAnswer,
    ) -> Option<UntrustedSettings> {
        if self.trust.asked != Some(client) || self.trust.answered {
            return None;
        }
        let changed = self.config.untrusted.as_ref().is_some_and(|untrusted| untrusted.digest != digest);
        if changed && answer != TrustAnswer::Cannot {
            // The settings have changed since they were shown.
            self.trust.asked = None;
            self.ask_for_trust(client);
            return None;
        }
        match answer {
            TrustAnswer::Trust => {
                self.trust.answered = true;
                self.config.untrusted.clone()
            }
            TrustAnswer::NotNow => {
                self.trust.answered = true;
                None
            }
            TrustAnswer::Cannot => {
                self.trust.asked = None;
                if let Some(untrusted) = &self.config.untrusted {
                    let text = crate::shown::notification(&untrusted.notice());
                    self.notify(client, Feedback::Message { level: Level::Warning, text });
                }
                None
            }
        }
    }

    /// Puts the settings that need trust in force, as they are in `new`, after a change of the
    /// person's trust.
    pub(super) fn put_trusted(&mut self, client: ClientId, new: &Config, reply: Reply<()>) {
        let old = self.config.clone();
        let changed = old.lisp != new.lisp;
        self.config.take_trusted(&old, new);
        for client in self.clients.values_mut() {
            client.config.take_trusted(&old, new);
        }
        // If there still are untrusted settings, an earlier answer was about other settings.
        self.trust.answered |= new.untrusted.is_none();
        self.image.configure(new.lisp.clone());
        let started = self.state != crate::model::image::ImageState::Idle;
        let image = self.image.clone();
        let (kind, what) = match changed && started {
            true => (Kind::LoadOrRestart, "restarting the image: its settings have changed"),
            false => (Kind::Other, "putting settings in force"),
        };
        self.jobs.start(Job::new(client, kind, what), reply, async move {
            if changed && started { image.restart().await } else { Ok(()) }
        });
    }
}
