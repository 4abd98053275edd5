//! The approval rules that are in force for a request, according to the clients' settings, and the
//! clients' names.

use tokio::sync::oneshot;

use super::Actor;
use crate::config::approval::{Class, Setting, SettingSource};
use crate::session::approval::{Answer, ApprovalRequest, Question, Verdict};
use crate::session::{ClientId, Frontend};

impl Actor {
    fn name_of(&self, client: ClientId) -> String {
        self.clients.get(&client).map_or_else(|| "a client that left".into(), |client| client.info.name.clone())
    }

    /// Returns the setting of a class that is in force, and its source.
    pub(super) fn setting(&self, class: Class) -> (Setting, SettingSource) {
        let editors = self.clients.values().filter(|client| client.info.frontend == Frontend::Lsp);
        self.config.approval.in_force(class, editors.map(|editor| &editor.config.approval))
    }

    /// Returns true if a person would be asked before an agent may use a tool.
    pub(super) fn would_ask(&self, client: ClientId, class: Class, tool: &'static str) -> bool {
        self.setting(class).0 == Setting::Ask && !self.approvals.is_granted(client, class, tool)
    }

    pub(super) fn permit(
        &mut self,
        mut request: Box<ApprovalRequest>,
        retry: Option<(String, Answer)>,
        reply: oneshot::Sender<Verdict>,
    ) {
        request.agent = self.name_of(request.client);
        // A question may cover two classes. The stricter rule applies to both.
        let also = request.subject.also.map(|also| self.setting(also));
        let rule = self.setting(request.class);
        let rule = also.filter(|also| also.0 > rule.0).unwrap_or(rule);
        self.approvals.decide(&mut self.jobs, request, rule, retry, reply);
    }

    pub(super) fn log_refusal(&self, mut request: ApprovalRequest, why: &str) {
        request.agent = self.name_of(request.client);
        self.approvals.note(&request, false, "the file", Some(why));
    }

    pub(super) fn answered(&mut self, editor: ClientId, question: u64, answer: Answer) {
        let name = self.name_of(editor);
        self.approvals.answered(editor, &name, question, answer);
    }

    pub(super) fn await_retry(&mut self, state: String, question: Question) {
        if question.request().is_some_and(|request| self.clients.contains_key(&request.client)) {
            self.approvals.await_retry(state, question);
        }
    }

    pub(super) fn note_shows_questions(&mut self, editor: ClientId) {
        if let Some(client) = self.clients.get(&editor).filter(|client| client.info.frontend == Frontend::Lsp) {
            self.approvals.note_shows_questions(editor, client.feedback.clone());
        }
    }
}
