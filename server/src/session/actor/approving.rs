//! Verdicts on agents' requests: by a rule, by an earlier permission for the session, or by a
//! person, in the editor that answers first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::sync::oneshot;

use super::Actor;
use crate::config::approval::{Class, Rule, Setting};
use crate::session::approval::{
    self, Answer, ApprovalPrompt, Audit, BoundRequest, Decision, Entry, Open, PendingApproval, Question, Retry, Verdict,
};
use crate::session::jobs::{Job, Kind};
use crate::session::log::{Log, LogContext, Status};
use crate::session::{ClientId, Feedback, Frontend};

/// The limit of an agent's open questions. A person does not read more.
const OPEN: usize = 16;

fn give(reply: oneshot::Sender<Verdict>, verdict: Verdict) {
    // The caller may have gone; then nothing is done.
    let _ = reply.send(verdict);
}

/// Returns the verdict for an answer, once it is in the audit log.
async fn rule(
    (audit, log): (Audit, Log),
    client: (ClientId, String),
    bound: Box<BoundRequest>,
    answer: Answer,
    by: String,
    seconds: u64,
) -> Verdict {
    let refusal = match answer {
        Answer::Decided(Decision::Allow | Decision::AllowSession) => None,
        Answer::Decided(Decision::Deny) | Answer::Dismissed => Some(approval::said_no(&bound, &by)),
        Answer::Late => Some(approval::too_late(&bound, seconds)),
        Answer::Cannot => Some(approval::nobody(&bound)),
    };
    let why = match answer {
        Answer::Decided(Decision::AllowSession) => Some("for this session"),
        Answer::Decided(_) => None,
        Answer::Dismissed => Some("the question was dismissed"),
        Answer::Late => Some("no answer in time"),
        Answer::Cannot => Some("nobody can be asked"),
    };
    let entry = Entry::new((client.0, &client.1), &bound, refusal.is_none(), &by, why);
    let doing = LogContext {
        tool: format!("approval of {}", bound.wish.tool),
        code: bound.wish.subject.code.clone(),
        file: bound.file.as_ref().map(|file| file.path.clone()),
        package: None,
    };
    let (ended, said) = if refusal.is_none() { (Status::Ok, "allowed") } else { (Status::Error, "refused") };
    log.begin(client.0, doing).end(ended, &format!("{said} by {by}"));
    match (audit.write(entry).await, refusal) {
        (Err(why), _) => Verdict::Refused(approval::unwritten(&bound, &why)),
        (Ok(()), Some(refusal)) => Verdict::Refused(refusal),
        (Ok(()), None) => Verdict::Allowed(bound.permit(true)),
    }
}

impl Actor {
    fn named(&self, client: ClientId) -> (ClientId, String) {
        (
            client,
            self.clients.get(&client).map_or_else(|| "a client that left".into(), |client| client.info.name.clone()),
        )
    }

    pub(super) fn note(&self, client: ClientId, bound: &BoundRequest, allowed: bool, by: &str, why: Option<&str>) {
        let (client, name) = self.named(client);
        self.approvals.audit.note(&Entry::new((client, &name), bound, allowed, by, why));
    }

    fn setting(&self, class: Class) -> (Setting, Rule) {
        let editors = self.clients.values().filter(|client| client.info.frontend == Frontend::Lsp);
        self.config.approval.in_force(class, editors.map(|editor| &editor.config.approval))
    }

    /// Returns true if a person would be asked before an agent may use a tool.
    pub(super) fn would_ask(&self, client: ClientId, class: Class, tool: &'static str) -> bool {
        self.setting(class).0 == Setting::Ask && !self.approvals.granted.contains(&(client, class, tool))
    }

    pub(super) fn permit(
        &mut self,
        client: ClientId,
        bound: Box<BoundRequest>,
        retry: Option<Retry>,
        reply: oneshot::Sender<Verdict>,
    ) {
        let (class, tool) = (bound.wish.class, bound.wish.tool);
        let also = bound.wish.subject.also;
        // A question may cover two classes; the stricter rule applies to both.
        let (setting, rule) = also
            .map(|also| self.setting(also))
            .into_iter()
            .fold(self.setting(class), |one, other| if other.0 > one.0 { other } else { one });
        let session_wide = |class| self.approvals.granted.contains(&(client, class, tool));
        let granted = session_wide(class) && also.is_none_or(session_wide);
        if let Some(why) = &bound.impossible {
            self.note(client, &bound, false, "the path", Some(why));
            return give(reply, Verdict::Refused(format!("Refused: {why}.")));
        }
        if setting == Setting::Deny {
            self.note(client, &bound, false, rule.name(), Some("denied"));
            return give(reply, Verdict::Refused(approval::denied(&bound, rule)));
        }
        if setting == Setting::Copy {
            self.note(client, &bound, false, rule.name(), Some("only in a copy"));
            return give(reply, Verdict::Refused(approval::only_in_copy(&bound, rule)));
        }
        if let Some(retry) = retry {
            return self.redeem(client, bound, retry, reply);
        }
        if setting == Setting::Allow {
            self.note(client, &bound, true, rule.name(), None);
            return give(reply, Verdict::Allowed(bound.permit(false)));
        }
        if granted {
            let said = Answer::Decided(Decision::Allow);
            return self.ruled(client, bound, said, "a person, for this session".into(), reply);
        }
        if let Some(why) = bound.unreadable() {
            self.note(client, &bound, false, "its length", Some(&why));
            return give(reply, Verdict::Refused(format!("Refused: {why}.")));
        }
        let waiting = self.approvals.open.values().filter(|open| open.client == client).count()
            + self.approvals.pending.values().filter(|pending| pending.client == client).count();
        if waiting >= OPEN {
            let why = format!("{OPEN} questions of this agent wait for an answer; wait until they have one");
            self.note(client, &bound, false, "their number", Some(&why));
            return give(reply, Verdict::Refused(format!("Refused: {why}.")));
        }
        if self.approvals.editors.is_empty() {
            return give(reply, Verdict::ThroughAgent(self.question(client, *bound)));
        }
        self.ask_editors(client, bound, reply);
    }

    fn question(&self, client: ClientId, bound: BoundRequest) -> Question {
        let deadline = self.config.approval.deadline;
        let name = self.named(client).1;
        let message = approval::message(&name, &bound, deadline.as_secs());
        approval::question((client, name), bound, message, deadline, self.approvals.events.clone())
    }

    /// Sends the verdict for an answer.
    fn ruled(
        &mut self,
        client: ClientId,
        bound: Box<BoundRequest>,
        said: Answer,
        by: String,
        reply: oneshot::Sender<Verdict>,
    ) {
        let (audit, seconds) =
            ((self.approvals.audit.clone(), self.log.clone()), self.config.approval.deadline.as_secs());
        let job = Job::new(client, Kind::Other, "writing the audit log");
        let name = self.named(client);
        self.jobs.start(job, reply, rule(audit, name, bound, said, by, seconds));
    }

    fn ask_editors(&mut self, client: ClientId, bound: Box<BoundRequest>, reply: oneshot::Sender<Verdict>) {
        let id = self.approvals.next;
        self.approvals.next += 1;
        let (_, name) = self.named(client);
        let deadline = self.config.approval.deadline;
        let subject = &bound.wish.subject;
        let asked = ApprovalPrompt {
            id,
            client: name.clone(),
            tool: bound.wish.tool,
            class: bound.wish.class,
            what: subject.what.clone(),
            file: bound.file.as_ref().map(|file| file.path.clone()),
            code: approval::whole(&bound),
            arguments: bound.wish.arguments.clone(),
            message: approval::message(&name, &bound, deadline.as_secs()),
            deadline,
        };
        let editors = self.approvals.editors.clone();
        for editor in &editors {
            self.tell(*editor, Feedback::Ask(Box::new(asked.clone())));
        }
        let (verdict, said) = oneshot::channel();
        let ruled = Arc::new(AtomicBool::new(false));
        let audit = (self.approvals.audit.clone(), self.log.clone());
        let question = (bound.clone(), ruled.clone(), (client, name.clone()));
        let (events, message) = (self.approvals.events.clone(), asked.message.clone());
        let what = format!("waiting for a person to allow {} for {name}", bound.wish.tool);
        let open = Open {
            client,
            name,
            bound,
            asked: editors,
            dismissed: false,
            until: Instant::now() + deadline,
            verdict: Some(verdict),
            ruled,
        };
        self.approvals.open.insert(id, open);
        let job = Job::new(client, Kind::Approval(id), what);
        let seconds = deadline.as_secs();
        self.jobs.start(job, reply, async move {
            let (bound, ruled, client) = question;
            let (answer, by) = match crate::steady::timeout(deadline, said).await {
                Ok(Ok(said)) => said,
                Ok(Err(_)) | Err(_) => (Answer::Late, "nobody".into()),
            };
            // The question is withdrawn with this future, unless somebody has decided.
            ruled.store(true, Ordering::Relaxed);
            if answer == Answer::Cannot {
                return Verdict::ThroughAgent(approval::question(client, *bound, message, deadline, events));
            }
            rule(audit, client, bound, answer, by, seconds).await
        });
    }

    /// Handles an editor's answer. The first decision counts; the other editors are told whose it
    /// is. An editor that connected after the question was not asked, and its answer is ignored.
    pub(super) fn answered(&mut self, editor: ClientId, id: u64, answer: Answer) {
        let mut by = self.named(editor).1;
        if let Some(process) = self.approvals.processes.get(&editor) {
            by.push_str(&format!(", {process}"));
        }
        let Some(open) = self.approvals.open.get_mut(&id) else { return };
        if !open.asked.remove(&editor) || open.until <= Instant::now() {
            return;
        }
        open.dismissed |= answer == Answer::Dismissed;
        let verdict = match answer {
            Answer::Decided(_) => answer,
            _ if !open.asked.is_empty() => return,
            _ if open.dismissed => Answer::Dismissed,
            _ => answer,
        };
        let Some(mut open) = self.approvals.open.remove(&id) else { return };
        let told = match verdict {
            Answer::Decided(Decision::Deny) => format!("{by} refused it"),
            Answer::Decided(_) => format!("{by} allowed it"),
            _ => "it was dismissed".into(),
        };
        self.over(id, &open, &told);
        let Some(to) = open.verdict.take() else { return };
        if to.send((verdict, by)).is_ok() {
            if verdict == Answer::Decided(Decision::AllowSession) && open.bound.wish.lasting {
                let wish = &open.bound.wish;
                for class in [Some(wish.class), wish.subject.also].into_iter().flatten() {
                    self.approvals.granted.insert((open.client, class, wish.tool));
                }
            }
        } else if !open.ruled.load(Ordering::Relaxed) {
            // The agent went away at this moment.
            self.withdrawn(open.client, &open.name, &open.bound);
        }
    }

    fn over(&self, id: u64, open: &Open, why: &str) {
        let what = format!("{} for {}", open.bound.wish.tool, open.name);
        for editor in &open.asked {
            self.tell(*editor, Feedback::AskOver { id, what: what.clone(), why: why.into() });
        }
    }

    /// Handles the end of a question's job: the question was answered, expired, or was cancelled
    /// by its agent.
    pub(super) fn question_ended(&mut self, id: u64) {
        let Some(open) = self.approvals.open.remove(&id) else { return };
        let late = open.ruled.load(Ordering::Relaxed);
        self.over(id, &open, if late { "nobody answered in time" } else { "it was withdrawn" });
        if !late {
            self.withdrawn(open.client, &open.name, &open.bound);
        }
    }

    pub(super) fn withdrawn(&self, client: ClientId, name: &str, bound: &BoundRequest) {
        let why = Some("withdrawn: the agent cancelled it or went away");
        self.approvals.audit.note(&Entry::new((client, name), bound, false, "nobody", why));
    }

    pub(super) fn settle(
        &mut self,
        client: ClientId,
        bound: Box<BoundRequest>,
        answer: Answer,
        reply: oneshot::Sender<Verdict>,
    ) {
        if answer == Answer::Decided(Decision::AllowSession) && bound.wish.lasting {
            for class in [Some(bound.wish.class), bound.wish.subject.also].into_iter().flatten() {
                self.approvals.granted.insert((client, class, bound.wish.tool));
            }
        }
        let by = match answer {
            Answer::Cannot | Answer::Late => "nobody",
            _ => "a person, through the agent's client",
        };
        self.ruled(client, bound, answer, by.into(), reply);
    }

    pub(super) fn await_retry(&mut self, state: String, pending: PendingApproval) {
        if self.clients.contains_key(&pending.client) {
            self.approvals.pending.insert(state, pending);
        }
    }

    /// Handles a retried call that was answered with a question. The permission holds for that
    /// call of that client alone, in time, and once.
    fn redeem(&mut self, client: ClientId, bound: Box<BoundRequest>, retry: Retry, reply: oneshot::Sender<Verdict>) {
        let known = self.approvals.pending.get(&retry.state).is_some_and(|pending| pending.client == client);
        let pending = if known { self.approvals.pending.remove(&retry.state) } else { None };
        let wrong = match &pending {
            None => Some("there is no such question, or it was answered before"),
            Some(pending) if pending.until <= Instant::now() => Some("the question is too old"),
            Some(pending) if pending.bound.digest != bound.digest => {
                Some("the arguments are not those that were asked about")
            }
            Some(pending) if pending.bound.wish.subject.what != bound.wish.subject.what => {
                Some("what it would do is not what was asked about")
            }
            Some(pending) if pending.bound.file != bound.file => {
                Some("the file is not the one that was asked about, or it was changed")
            }
            Some(pending) if pending.bound.wish.subject.sources != bound.wish.subject.sources => {
                Some("the files are not those that were asked about, or one was changed")
            }
            Some(_) => None,
        };
        match (wrong, pending) {
            (Some(why), _) => {
                self.note(client, &bound, false, "the binding", Some(why));
                let text = format!("Refused: {why}. Make the call again without `requestState` to have it decided.");
                give(reply, Verdict::Refused(text));
            }
            // The files are as they were when the question was asked.
            (None, pending) => {
                let bound = pending.map_or(bound, |pending| pending.bound);
                self.settle(client, bound, retry.answer, reply);
            }
        }
    }

    pub(super) fn can_be_asked(&mut self, editor: ClientId) {
        if self.clients.get(&editor).is_some_and(|client| client.info.frontend == Frontend::Lsp) {
            self.approvals.editors.insert(editor);
        }
    }

    /// Removes a client's questions, answers and permissions when the client has left.
    pub(super) fn leave_approvals(&mut self, client: ClientId, name: &str) {
        self.approvals.editors.remove(&client);
        self.approvals.processes.remove(&client);
        self.approvals.granted.retain(|(granted, _, _)| *granted != client);
        let asked: Vec<u64> =
            self.approvals.open.iter().filter(|(_, open)| open.asked.contains(&client)).map(|(id, _)| *id).collect();
        for id in asked {
            self.answered(client, id, Answer::Dismissed);
        }
        let gone: Vec<String> = self
            .approvals
            .pending
            .iter()
            .filter(|(_, pending)| pending.client == client)
            .map(|(state, _)| state.clone())
            .collect();
        for state in gone {
            if let Some(pending) = self.approvals.pending.remove(&state) {
                self.withdrawn(client, name, &pending.bound);
            }
        }
    }

    /// Expires questions that wait for a retried call.
    pub(super) fn approvals_tick(&mut self, now: Instant) {
        let old: Vec<String> = self
            .approvals
            .pending
            .iter()
            .filter(|(_, pending)| pending.until <= now)
            .map(|(state, _)| state.clone())
            .collect();
        for state in old {
            if let Some(pending) = self.approvals.pending.remove(&state) {
                self.note(pending.client, &pending.bound, false, "nobody", Some("no answer in time"));
            }
        }
    }
}
