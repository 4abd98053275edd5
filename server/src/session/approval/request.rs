//! An agent's request for an approval, and its outcome. The approval is bound to the arguments, by
//! their digest, and to the file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::blocking;
use crate::config::approval::Class;
use crate::image::api::reading::Reading;
use crate::session::bound_file::BoundFile;
use crate::session::requests;
use crate::session::sources::Sources;
use crate::session::{ClientId, outside_workspace};

/// The maximum length of arguments that a person can review, in characters.
const MAX_READABLE_CHARS: usize = 100_000;
/// The maximum length of arguments in the audit log, in characters. The digest covers all of them.
const MAX_LOGGED_CHARS: usize = 4_000;

/// The content that a person is asked about. The approval is bound to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subject {
    /// The operation in a few words: "Replace the function CL-PPCRE:SCAN".
    pub what: String,
    /// The file concerned.
    pub file: Option<PathBuf>,
    /// The complete code concerned.
    pub code: Option<String>,
    /// The files that would be loaded, with digests of their content.
    pub sources: Sources,
    /// The changes in these files since they were loaded.
    pub changes: Option<String>,
    /// The package and the syntax in which the code is read.
    pub reading: Option<Reading>,
    /// The result of a trial in a copy of the image.
    pub tried: Option<String>,
    /// A second class that the same answer covers.
    pub also: Option<Class>,
}

/// An agent's request for an approval, and the state to which the approval is bound.
#[derive(Debug, Clone)]
pub struct ApprovalRequest {
    /// The agent's connection.
    pub(in crate::session) client: ClientId,
    /// The agent's name when the session received the request.
    pub(in crate::session) agent: String,
    /// The class of the operation.
    pub class: Class,
    /// The tool's own name, regardless of the name in the call.
    pub tool: &'static str,
    /// The content shown to a person.
    pub subject: Subject,
    /// All arguments.
    pub arguments: Value,
    /// True if the agent has its own connection. A permission "for this session" ends with that
    /// connection.
    lasting: bool,
    /// The digest of tool, class and arguments.
    pub(super) digest: String,
    /// The arguments as JSON, clipped, and their full length in characters.
    pub(super) written: (String, usize),
    pub(super) file: Option<BoundFile>,
    /// The reason to refuse the operation regardless of any answer.
    pub(super) impossible: Option<String>,
}

impl ApprovalRequest {
    /// Acts as [`ApprovalRequest::new`] on a thread that may wait for the disk. A request with
    /// short code and no file is created on the current thread.
    pub async fn new_off_thread(
        workspace: &Path,
        client: ClientId,
        tool: &'static str,
        operation: (Class, Subject),
        arguments: Value,
        lasting: bool,
    ) -> ApprovalRequest {
        let is_short = operation.1.code.as_deref().is_some_and(|code| code.len() <= requests::SMALL);
        if is_short && operation.1.file.is_none() {
            return ApprovalRequest::new(workspace, client, tool, operation, arguments, lasting);
        }
        let workspace = workspace.to_owned();
        blocking::run(move || ApprovalRequest::new(&workspace, client, tool, operation, arguments, lasting)).await
    }

    /// Creates a request, and resolves its file, which is shown to a person under the resolved
    /// path. `lasting` is true if the agent has its own connection, so that a permission "for this
    /// session" has an end. Blocks on disk access.
    pub fn new(
        workspace: &Path,
        client: ClientId,
        tool: &'static str,
        (class, subject): (Class, Subject),
        arguments: Value,
        lasting: bool,
    ) -> ApprovalRequest {
        let text = arguments.to_string();
        let written = (text.chars().take(MAX_LOGGED_CHARS).collect(), text.chars().count());
        let file = subject.file.as_deref().map(|file| BoundFile::of(workspace, file));
        let (file, mut impossible) = match file.transpose() {
            Ok(file) => (file, None),
            Err(why) => (None, Some(why)),
        };
        if let Some(outside) = file.as_ref().filter(|file| class == Class::EditFile && !file.is_within(workspace)) {
            let why = outside_workspace::message(&outside.named, &outside.path, workspace);
            impossible = Some(format!("{why} It cannot be written"));
        }
        // A file that will not be touched is not read.
        let file = if impossible.is_none() { file.map(BoundFile::with_content) } else { file };
        let digest = digest(tool, class, &text);
        let agent = String::new();
        ApprovalRequest { client, agent, class, tool, subject, arguments, lasting, digest, written, file, impossible }
    }

    /// Returns the agent's name.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// Returns the path of the file concerned, links resolved.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(BoundFile::path)
    }

    /// Returns the reason why no person can be asked, if the request is too long to review.
    pub(super) fn unreadable(&self) -> Option<String> {
        let characters = self.written.1;
        let why = "its arguments have {n} characters, too many for a person to judge; send at most {most}, or save the code to a file and load that";
        (characters > MAX_READABLE_CHARS)
            .then(|| why.replace("{n}", &characters.to_string()).replace("{most}", &MAX_READABLE_CHARS.to_string()))
    }

    /// Returns the classes that an answer covers.
    pub(in crate::session) fn classes(&self) -> impl Iterator<Item = Class> + use<> {
        [Some(self.class), self.subject.also].into_iter().flatten()
    }

    /// Returns true if `answer` permits the tool until the agent's connection ends.
    pub(super) fn is_granted_for_session(&self, answer: Answer) -> bool {
        answer == Answer::AllowSession && self.lasting
    }

    /// Returns the permission. `decided` is true if a person decided, and not a rule.
    pub(super) fn grant(self: Box<Self>, decided: bool) -> Grant {
        Grant { request: Arc::from(self), decided }
    }
}

/// Returns the SHA-256, in hex, of the tool, the class and the arguments. The keys of the arguments
/// are sorted, because `serde_json`'s maps are ordered.
fn digest(tool: &str, class: Class, arguments: &str) -> String {
    let mut hash = Sha256::new();
    for part in [tool, class.key(), arguments] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The permission for exactly the approved operation. See
/// [`Session::recheck`](crate::session::Session::recheck).
#[derive(Debug, Clone)]
pub struct Grant {
    pub(super) request: Arc<ApprovalRequest>,
    /// True if a person decided, for this call or for the session. False if a rule did.
    decided: bool,
}

impl Grant {
    /// Returns the permitted operation in a few words, as it was shown to a person.
    pub fn description(&self) -> &str {
        &self.request.subject.what
    }

    /// Returns the SHA-256 of the file's content at the time of the decision.
    pub fn content(&self) -> Option<&str> {
        self.request.file.as_ref().and_then(BoundFile::content)
    }

    /// Returns true if a person decided, for this call or for the session, and not a rule.
    pub fn is_decided(&self) -> bool {
        self.decided
    }
}

/// The outcome of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The permission for this call.
    Allow,
    /// Permission for this class and tool until the agent's connection ends.
    AllowSession,
    /// The refusal of this call.
    Deny,
    /// The question was dismissed without a decision.
    Dismissed,
    /// The client cannot ask a person.
    Cannot,
    /// No answer in time.
    Late,
}

impl Answer {
    /// Parses a person's decision: `allow`, `allow-session` or `deny`. Any other text, or none,
    /// dismisses the question.
    pub fn of(decision: Option<&str>) -> Answer {
        match decision {
            Some("allow") => Answer::Allow,
            Some("allow-session") => Answer::AllowSession,
            Some("deny") => Answer::Deny,
            _ => Answer::Dismissed,
        }
    }

    /// Returns true if a person decided.
    pub(super) fn is_decision(self) -> bool {
        matches!(self, Answer::Allow | Answer::AllowSession | Answer::Deny)
    }
}
