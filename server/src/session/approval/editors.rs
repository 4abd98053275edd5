//! Questions that the editors show. The first decision counts, and the other editors are told who
//! decided.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};

use super::question::Verdict;
use super::request::{Answer, ApprovalRequest};
use super::state::{ApprovalState, OpenQuestion, verdict};
use crate::session::jobs::{Job, Jobs, Kind};
use crate::session::{ClientId, Feedback};

impl ApprovalState {
    /// Records that an editor shows questions. `feedback` is the channel to the editor.
    pub(in crate::session) fn note_shows_questions(
        &mut self,
        editor: ClientId,
        feedback: mpsc::UnboundedSender<Feedback>,
    ) {
        self.editors.insert(editor, feedback);
    }

    /// Records the program and process id of an editor.
    pub(in crate::session) fn note_program(&mut self, editor: ClientId, program: String) {
        self.processes.insert(editor, program);
    }

    /// Returns the first connected editor that can show questions.
    pub(in crate::session) fn first_editor(&self) -> Option<ClientId> {
        self.editors.keys().next().copied()
    }

    fn notify(&self, editor: ClientId, feedback: Feedback) {
        if let Some(sender) = self.editors.get(&editor) {
            // An editor that is gone is removed soon.
            let _ = sender.send(feedback);
        }
    }

    pub(super) fn ask_editors(
        &mut self,
        jobs: &mut Jobs,
        request: Box<ApprovalRequest>,
        reply: oneshot::Sender<Verdict>,
    ) {
        let (id, deadline) = (self.next, self.deadline);
        self.next += 1;
        let shared = Arc::new((*request).clone());
        for editor in self.editors.keys() {
            self.notify(*editor, Feedback::Ask { id, request: shared.clone(), deadline });
        }
        let (sender, answer) = oneshot::channel();
        let taken = Arc::new(AtomicBool::new(false));
        let what = format!("waiting for a person to allow {} for {}", request.tool, request.agent);
        let job = Job::new(request.client, Kind::Approval(id), what);
        let open = OpenQuestion {
            request: shared,
            asked: self.editors.keys().copied().collect(),
            dismissed: false,
            until: Instant::now() + deadline,
            answer: Some(sender),
            taken: taken.clone(),
        };
        self.open.insert(id, open);
        let (question, logs) = (self.question(), self.logs());
        jobs.start(job, reply, async move {
            let (answer, by) = match crate::steady::timeout(deadline, answer).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) | Err(_) => (Answer::Late, "nobody".into()),
            };
            // A future that is dropped before this point withdraws the question.
            taken.store(true, Ordering::Relaxed);
            match answer {
                Answer::Cannot => Verdict::ThroughAgent(question(request)),
                answer => verdict(logs, request, answer, by).await,
            }
        });
    }

    /// Handles the answer of an editor with this `name`. Ignores an editor that was not asked,
    /// because it connected after the question.
    pub(in crate::session) fn answered(&mut self, editor: ClientId, name: &str, id: u64, answer: Answer) {
        let by = match self.processes.get(&editor) {
            Some(process) => format!("{name}, {process}"),
            None => name.to_owned(),
        };
        let Some(open) = self.open.get_mut(&id) else { return };
        if !open.asked.remove(&editor) || open.until <= Instant::now() {
            return;
        }
        open.dismissed |= answer == Answer::Dismissed;
        let answer = match answer {
            decision if decision.is_decision() => decision,
            _ if !open.asked.is_empty() => return,
            _ if open.dismissed => Answer::Dismissed,
            other => other,
        };
        let Some(mut open) = self.open.remove(&id) else { return };
        let why = match answer {
            Answer::Deny => format!("{by} refused it"),
            Answer::Allow | Answer::AllowSession => format!("{by} allowed it"),
            _ => "it was dismissed".into(),
        };
        self.withdraw_from_editors(id, &open, &why);
        let Some(sender) = open.answer.take() else { return };
        if sender.send((answer, by)).is_ok() {
            self.remember(&open.request, answer);
        } else if !open.taken.load(Ordering::Relaxed) {
            // The agent has left in the meantime.
            self.withdrawn(&open.request);
        }
    }

    fn withdraw_from_editors(&self, id: u64, open: &OpenQuestion, why: &str) {
        let what = format!("{} for {}", open.request.tool, open.request.agent);
        for editor in &open.asked {
            self.notify(*editor, Feedback::AskOver { id, what: what.clone(), why: why.into() });
        }
    }

    /// Handles the end of a question's job. The question was answered, has expired, or was
    /// cancelled by the agent.
    pub(in crate::session) fn question_ended(&mut self, id: u64) {
        let Some(open) = self.open.remove(&id) else { return };
        let late = open.taken.load(Ordering::Relaxed);
        self.withdraw_from_editors(id, &open, if late { "nobody answered in time" } else { "it was withdrawn" });
        if !late {
            self.withdrawn(&open.request);
        }
    }

    /// Handles the departure of an editor. The editor counts as having dismissed the questions that
    /// it was asked.
    pub(super) fn leave_editor(&mut self, editor: ClientId) {
        let asked: Vec<u64> =
            self.open.iter().filter(|(_, open)| open.asked.contains(&editor)).map(|(id, _)| *id).collect();
        self.editors.remove(&editor);
        self.processes.remove(&editor);
        for id in asked {
            self.answered(editor, "a client that left", id, Answer::Dismissed);
        }
    }
}
