//! The open questions and the permissions, which the actor owns, and the verdicts on requests: by
//! a rule, by an earlier permission for the session, or by a person.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::audit::Audit;
use super::messages;
use super::question::{Question, Verdict};
use super::request::{Answer, ApprovalRequest};
use crate::config::approval::{ApprovalConfig, Class, Setting, SettingSource};
use crate::session::event::Event;
use crate::session::jobs::{Job, Jobs, Kind};
use crate::session::log::{Log, LogContext, Status};
use crate::session::{ClientId, Feedback};

/// The maximum number of an agent's open questions. A person does not read more.
const MAX_OPEN_QUESTIONS: usize = 16;

/// The open questions and the permissions.
#[derive(Debug)]
pub(in crate::session) struct ApprovalState {
    audit: Audit,
    log: Log,
    /// The time limit for an answer.
    pub(super) deadline: Duration,
    events: mpsc::WeakUnboundedSender<Event>,
    /// Editors that can show questions.
    pub(super) editors: BTreeMap<ClientId, mpsc::UnboundedSender<Feedback>>,
    /// Each editor's program and process id, as far as they are known.
    pub(super) processes: HashMap<ClientId, String>,
    /// Questions to the editors, by their numbers.
    pub(super) open: BTreeMap<u64, OpenQuestion>,
    /// The number of the next question.
    pub(super) next: u64,
    /// Questions that wait for a retried call, by the state sent with them.
    pending: HashMap<String, Question>,
    /// Permissions for the session, which is the connection.
    granted: HashSet<(ClientId, Class, &'static str)>,
}

/// A question to the editors.
#[derive(Debug)]
pub(super) struct OpenQuestion {
    pub(super) request: Arc<ApprovalRequest>,
    pub(super) asked: BTreeSet<ClientId>,
    pub(super) dismissed: bool,
    pub(super) until: Instant,
    /// The channel for the answer and the name of who gave it.
    pub(super) answer: Option<oneshot::Sender<(Answer, String)>>,
    /// True once the waiting job has the answer, or the time is over.
    pub(super) taken: Arc<AtomicBool>,
}

pub(super) fn give(reply: oneshot::Sender<Verdict>, verdict: Verdict) {
    // The caller may have gone, and needs no verdict then.
    let _ = reply.send(verdict);
}

impl ApprovalState {
    pub(in crate::session) fn new(
        config: &ApprovalConfig,
        log: Log,
        events: mpsc::WeakUnboundedSender<Event>,
    ) -> ApprovalState {
        ApprovalState {
            audit: Audit::start(config.audit.clone()),
            log,
            deadline: config.deadline,
            events,
            editors: BTreeMap::new(),
            processes: HashMap::new(),
            open: BTreeMap::new(),
            next: 1,
            pending: HashMap::new(),
            granted: HashSet::new(),
        }
    }

    /// Returns true if the agent has a permission for the session.
    pub(in crate::session) fn is_granted(&self, client: ClientId, class: Class, tool: &'static str) -> bool {
        self.granted.contains(&(client, class, tool))
    }

    /// Decides a request by the rule, by an earlier permission, or by asking a person. `retry`
    /// holds the state and the answer of a call that was answered with a question before.
    pub(in crate::session) fn decide(
        &mut self,
        jobs: &mut Jobs,
        request: Box<ApprovalRequest>,
        (setting, source): (Setting, SettingSource),
        retry: Option<(String, Answer)>,
        reply: oneshot::Sender<Verdict>,
    ) {
        if let Some(why) = &request.impossible {
            return self.refuse(&request, "the path", why, reply);
        }
        if setting == Setting::Deny {
            self.note(&request, false, source.name(), Some("denied"));
            return give(reply, Verdict::Refused(messages::denied(&request, source)));
        }
        if setting == Setting::Copy {
            self.note(&request, false, source.name(), Some("only in a copy"));
            return give(reply, Verdict::Refused(messages::only_in_copy(&request, source)));
        }
        if let Some((state, answer)) = retry {
            return self.apply_retry(jobs, request, &state, answer, reply);
        }
        if setting == Setting::Allow {
            self.note(&request, true, source.name(), None);
            return give(reply, Verdict::Allowed(request.grant(false)));
        }
        if request.classes().all(|class| self.is_granted(request.client, class, request.tool)) {
            return self.conclude(jobs, request, Answer::Allow, "a person, for this session".into(), reply);
        }
        if let Some(why) = request.unreadable() {
            return self.refuse(&request, "its length", &why, reply);
        }
        let of_agent = |other: &ApprovalRequest| other.client == request.client;
        let waiting = self.open.values().filter(|open| of_agent(&open.request)).count()
            + self.pending.values().filter_map(Question::request).filter(|other| of_agent(other)).count();
        if waiting >= MAX_OPEN_QUESTIONS {
            let why =
                format!("{MAX_OPEN_QUESTIONS} questions of this agent wait for an answer; wait until they have one");
            return self.refuse(&request, "their number", &why, reply);
        }
        if self.editors.is_empty() {
            return give(reply, Verdict::ThroughAgent(self.question()(request)));
        }
        self.ask_editors(jobs, request, reply);
    }

    fn refuse(&self, request: &ApprovalRequest, by: &str, why: &str, reply: oneshot::Sender<Verdict>) {
        self.note(request, false, by, Some(why));
        give(reply, Verdict::Refused(format!("Refused: {why}.")));
    }

    /// Returns a function that makes a question to the person behind the agent's client. If the
    /// question is dropped without an answer, the session is told.
    pub(super) fn question(&self) -> impl Fn(Box<ApprovalRequest>) -> Question + Send + use<> {
        let (events, deadline) = (self.events.clone(), self.deadline);
        move |request| {
            let events = events.clone();
            let withdraw = move |request: Box<ApprovalRequest>| {
                if let Some(events) = events.upgrade() {
                    // Fails only when the session has ended.
                    let _ = events.send(Event::Withdrawn { request });
                }
            };
            Question::new(request, deadline, Box::new(withdraw))
        }
    }

    /// Sends the verdict for an answer, once it is in the audit log.
    fn conclude(
        &self,
        jobs: &mut Jobs,
        request: Box<ApprovalRequest>,
        answer: Answer,
        by: String,
        reply: oneshot::Sender<Verdict>,
    ) {
        let job = Job::new(request.client, Kind::Other, "writing the audit log");
        jobs.start(job, reply, verdict(self.logs(), request, answer, by));
    }

    /// Returns the audit log, the session's log, and the time limit for an answer.
    pub(super) fn logs(&self) -> (Audit, Log, Duration) {
        (self.audit.clone(), self.log.clone(), self.deadline)
    }

    /// Records a permission for the session, if the answer is one.
    pub(super) fn remember(&mut self, request: &ApprovalRequest, answer: Answer) {
        if request.is_granted_for_session(answer) {
            self.granted.extend(request.classes().map(|class| (request.client, class, request.tool)));
        }
    }

    /// Handles an answer that came through the agent's client.
    pub(in crate::session) fn settle(
        &mut self,
        jobs: &mut Jobs,
        request: Box<ApprovalRequest>,
        answer: Answer,
        reply: oneshot::Sender<Verdict>,
    ) {
        self.remember(&request, answer);
        let by = match answer {
            Answer::Cannot | Answer::Late => "nobody",
            _ => "a person, through the agent's client",
        };
        self.conclude(jobs, request, answer, by.into(), reply);
    }

    /// Keeps a question until the call is retried with its answer.
    pub(in crate::session) fn await_retry(&mut self, state: String, question: Question) {
        self.pending.insert(state, question);
    }

    /// Handles the retry of a call that was answered with a question. The permission holds once, in
    /// time, and only for that call of that client.
    fn apply_retry(
        &mut self,
        jobs: &mut Jobs,
        request: Box<ApprovalRequest>,
        state: &str,
        answer: Answer,
        reply: oneshot::Sender<Verdict>,
    ) {
        let asked = |question: &Question| question.request().is_some_and(|asked| asked.client == request.client);
        let known = self.pending.get(state).is_some_and(asked);
        let question = if known { self.pending.remove(state) } else { None };
        let until = question.as_ref().map(|question| question.until);
        let asked = question.and_then(|mut question| question.take());
        let why = match (asked, until) {
            (Some(_), Some(until)) if until <= Instant::now() => "the question is too old",
            (Some(asked), Some(_)) => match difference(&asked, &request) {
                Some(why) => why,
                // The files are as they were when the question was asked.
                None => return self.settle(jobs, asked, answer, reply),
            },
            _ => "there is no such question, or it was answered before",
        };
        self.note(&request, false, "the binding", Some(why));
        let text = format!("Refused: {why}. Call again without `requestState` for a new decision.");
        give(reply, Verdict::Refused(text));
    }

    /// Removes a client's questions, answers and permissions when the client has left.
    pub(in crate::session) fn leave(&mut self, client: ClientId) {
        self.granted.retain(|(granted, _, _)| *granted != client);
        self.leave_editor(client);
        self.end_pending(|question| question.request().is_some_and(|request| request.client == client), WITHDRAWN);
    }

    /// Expires questions that wait for a retried call.
    pub(in crate::session) fn tick(&mut self, now: Instant) {
        self.end_pending(|question| question.until <= now, "no answer in time");
    }

    fn end_pending(&mut self, mut ends: impl FnMut(&Question) -> bool, why: &str) {
        for (_, mut question) in self.pending.extract_if(|_, question| ends(question)) {
            if let Some(request) = question.take() {
                self.audit.note(&request, false, "nobody", Some(why));
            }
        }
    }

    /// Returns the time at which the next question that waits for a retried call expires.
    pub(in crate::session) fn next_tick(&self) -> Option<Instant> {
        self.pending.values().map(|question| question.until).min()
    }

    /// Handles the withdrawal of a question by its agent.
    pub(in crate::session) fn withdrawn(&self, request: &ApprovalRequest) {
        self.note(request, false, "nobody", Some(WITHDRAWN));
    }

    /// Writes a decision that was made without a question to the audit log.
    pub(in crate::session) fn note(&self, request: &ApprovalRequest, allowed: bool, by: &str, why: Option<&str>) {
        self.audit.note(request, allowed, by, why);
    }
}

/// The reason in the audit log for a question that ended with its agent's call.
const WITHDRAWN: &str = "withdrawn: the agent cancelled it or went away";

/// Returns the verdict for an answer, once it is in the audit log.
pub(super) async fn verdict(
    (audit, log, deadline): (Audit, Log, Duration),
    request: Box<ApprovalRequest>,
    answer: Answer,
    by: String,
) -> Verdict {
    let (refusal, why) = match answer {
        Answer::Allow => (None, None),
        Answer::AllowSession => (None, Some("for this session")),
        Answer::Deny => (Some(messages::said_no(&request, &by)), None),
        Answer::Dismissed => (Some(messages::said_no(&request, &by)), Some("the question was dismissed")),
        Answer::Late => (Some(messages::too_late(&request, deadline)), Some("no answer in time")),
        Answer::Cannot => (Some(messages::nobody_to_ask(&request)), Some("nobody can be asked")),
    };
    let operation = LogContext {
        tool: format!("approval of {}", request.tool),
        code: request.subject.code.clone(),
        file: request.file().map(ToOwned::to_owned),
        package: None,
        about: None,
    };
    let (status, said) = match refusal {
        None => (Status::Ok, "allowed"),
        Some(_) => (Status::Error, "refused"),
    };
    log.begin(request.client, operation).end(status, &format!("{said} by {by}"));
    match (audit.write(&request, refusal.is_none(), &by, why).await, refusal) {
        (Err(why), _) => Verdict::Refused(messages::audit_unwritable(&request, &why)),
        (Ok(()), Some(refusal)) => Verdict::Refused(refusal),
        (Ok(()), None) => Verdict::Allowed(request.grant(true)),
    }
}

/// Returns the difference between the request of a question and that of the retried call, if there
/// is one.
fn difference(asked: &ApprovalRequest, retried: &ApprovalRequest) -> Option<&'static str> {
    if asked.digest != retried.digest {
        Some("the arguments are not those that were asked about")
    } else if asked.subject.what != retried.subject.what {
        Some("what it would do is not what was asked about")
    } else if asked.file != retried.file {
        Some("the file is not the one that was asked about, or it was changed")
    } else if asked.subject.sources != retried.subject.sources {
        Some("the files are not those that were asked about, or one was changed")
    } else {
        None
    }
}
