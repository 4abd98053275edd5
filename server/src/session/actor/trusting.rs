//! What the workspace wants and needs trust for: told, asked in one editor, and put in force.

use super::Actor;
use crate::config::LispConfig;
use crate::config::trust::Wish;
use crate::session::event::Reply;
use crate::session::jobs::{Job, Kind};
use crate::session::trust::{TrustAnswer, TrustPrompt};
use crate::session::{ClientId, Feedback, Frontend, Level};

/// Who was asked.
#[derive(Debug, Default)]
pub(super) struct TrustState {
    asked: Option<ClientId>,
    /// Somebody has answered; a terminal can still change it.
    answered: bool,
}

impl Actor {
    /// What a client that came is told: an agent and a terminal as a fact, an editor by a question.
    pub(super) fn trust_notice(&self, frontend: Frontend) -> Option<Feedback> {
        let wish = self.config.untrusted.as_ref().filter(|_| frontend == Frontend::Mcp)?;
        Some(Feedback::Message { level: Level::Warning, text: wish.notice() })
    }

    /// Ask an editor that shows what it is told, unless one is asked or has answered.
    pub(super) fn ask_for_trust(&mut self, editor: ClientId) {
        let Some(wish) = self.config.untrusted.as_ref().filter(|_| !self.trust.answered) else { return };
        if self.trust.asked.is_none() {
            self.trust.asked = Some(editor);
            self.tell(editor, Feedback::AskTrust(Box::new(TrustPrompt::new(wish))));
        }
    }

    /// An editor has left; the next one is asked.
    pub(super) fn leave_trust(&mut self, client: ClientId) {
        if self.trust.asked == Some(client) && !self.trust.answered {
            self.trust.asked = None;
            if let Some(next) = self.approvals.first_editor() {
                self.ask_for_trust(next);
            }
        }
    }

    /// An editor's answer; what is to be put on record, when it was asked about that.
    pub(super) fn trust_answered(&mut self, client: ClientId, digest: &str, answer: TrustAnswer) -> Option<Wish> {
        if self.trust.asked != Some(client) || self.trust.answered {
            return None;
        }
        match answer {
            TrustAnswer::Trust => {
                self.trust.answered = true;
                self.config.untrusted.clone().filter(|wish| wish.digest == digest)
            }
            TrustAnswer::NotNow => {
                self.trust.answered = true;
                None
            }
            TrustAnswer::Cannot => {
                self.trust.asked = None;
                if let Some(wish) = &self.config.untrusted {
                    let text = crate::shown::notification(&wish.notice());
                    self.tell(client, Feedback::Message { level: Level::Warning, text });
                }
                None
            }
        }
    }

    /// Put in force how Lisp is to be started, now that the person trusts it, or does not any more.
    pub(super) fn put_lisp(&mut self, client: ClientId, lisp: LispConfig, untrusted: Option<Wish>, reply: Reply<()>) {
        let changed = self.config.lisp != lisp;
        self.config.untrusted.clone_from(&untrusted);
        self.config.lisp.clone_from(&lisp);
        for client in self.clients.values_mut() {
            client.config.untrusted.clone_from(&untrusted);
            client.config.lisp.clone_from(&lisp);
        }
        // Whatever was answered was about something else when there is a wish now.
        self.trust.answered |= untrusted.is_none();
        self.image.configure(lisp);
        let started = self.state != crate::model::image::ImageState::Idle;
        let image = self.image.clone();
        let (kind, what) = match changed && started {
            true => (Kind::WorldChange, "restarting the image: its settings have changed"),
            false => (Kind::Other, "putting settings in force"),
        };
        self.jobs.start(Job::new(client, kind, what), reply, async move {
            if changed && started { image.restart().await } else { Ok(()) }
        });
    }
}
