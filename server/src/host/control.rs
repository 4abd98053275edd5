//! The protocol of the command line, in JSON lines. A connection has one request. The host sends
//! output and progress while the request runs, then a result or an error. Closing the connection
//! cancels the request. The client sends nothing else, except the lines of input that an evaluation
//! asks for.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::election::{self, Connected};
use super::hello;
use super::serve::{Connection, Lifetime};
use crate::fault::{self, Call};
use crate::framing::{
    self,
    lines::{BlockingLines, Line, Lines},
};
use crate::model::diagnostic::Diagnostic;
use crate::model::evaluation::EvalOutcome;
use crate::model::image::{ImageError, ImageState};
use crate::model::input::{InputAnswer, InputWanted};
use crate::session::{
    CheckRequest, CheckSystemRequest, ClientInfo, EvalRequest, Feedback, Frontend, LoadRequest, Session,
};

/// The size limit of a request, in bytes. It is large since a check contains a whole file.
const MAX_REQUEST: usize = 64 << 20;

/// The silence after which the command line checks whether the host answers at all.
const LIVENESS_DELAY: Duration = Duration::from_secs(3);

/// The interval at which a client is told that its request waits for the image.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// The interval at which a waiting request's reason to wait is determined.
const OBSTACLE_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The number of these intervals between two looks at the image's process.
const LOOKS_FOR_SUSPENSION: u32 = 5;

/// A request of the command line.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Request {
    /// Returns [`crate::session::Status`]. The command line adds `log`.
    Status,
    /// Stops the host and returns the number of clients. The end of file follows when the host and
    /// its image have ended.
    Stop,
    /// Returns `EvalOutcome`. If the code itself cannot be read, `unread` in its error is the
    /// offset of the character at which it becomes unreadable.
    Eval {
        /// The code to read and evaluate.
        code: String,
        /// The package; `None`: CL-USER.
        package: Option<String>,
        /// The time limit in seconds; `None`: the configured default.
        timeout: Option<f64>,
        /// True if the code may read input. [`Reply::Input`] asks for a line, and an [`InputLine`]
        /// answers.
        #[serde(default)]
        input: bool,
        /// True to have the values printed unabbreviated, each on its own line, for a program.
        #[serde(default)]
        whole: bool,
    },
    /// Returns the `CheckReport` of a text.
    Check {
        /// The text.
        text: String,
        /// The canonical path of the file.
        path: PathBuf,
        /// The time limit in seconds; `None`: the configured default.
        timeout: Option<f64>,
    },
    /// Returns the `SystemReport` of a system, which is loaded in a throw-away copy and never in
    /// the image itself.
    CheckSystem(CheckSystemRequest),
    /// Returns, for each diagnostic of a text, the known names that may be meant in place of an
    /// unknown one.
    Meant {
        /// The text.
        text: String,
        /// The canonical path of the file.
        path: PathBuf,
        /// The diagnostics.
        items: Vec<Diagnostic>,
    },
    /// Reports a change in the workspace's trust records. Returns nothing. The image is restarted
    /// if its settings change.
    TrustChanged,
    /// Returns `LoadSystemOutcome`.
    LoadSystem {
        /// The ASDF name of the system.
        system: String,
        /// True to reload all parts of the system.
        force: bool,
    },
}

/// A line of the answer. The last line is `result` or `error`.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Output of the evaluation.
    Output {
        /// The text.
        text: String,
        /// True for `*error-output*`.
        stderr: bool,
    },
    /// A request of the code for a line of input.
    Input {
        /// The question's number.
        question: u64,
    },
    /// The progress of a long operation.
    Progress {
        /// The current step.
        message: String,
        /// The number of steps done.
        done: u64,
        /// The number of all steps, when known.
        total: Option<u64>,
    },
    /// The reason why the request waits: what the user's code does in the image, or that the
    /// image's process is suspended.
    Waiting {
        /// A sentence for a person.
        why: String,
    },
    /// The answer.
    Result(Value),
    /// The reason for the failure, for a person.
    Error(String),
}

/// The answer to [`Reply::Input`], a line of JSON.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct InputLine {
    /// The question's number.
    pub question: u64,
    /// The line without its end; `None`: end of file.
    pub text: Option<String>,
}

/// Sends a request to a host. `on_reply` receives the lines before the answer, and the connection.
///
/// # Errors
/// An I/O error, which is `UnexpectedEof` if the host ended first, and `Other` with the host's own
/// message.
#[allow(clippy::print_stderr)] // printed by the command line
pub fn ask(
    connected: Connected,
    request: &Request,
    mut on_reply: impl FnMut(Reply, &std::os::unix::net::UnixStream) -> io::Result<()>,
) -> io::Result<Value> {
    let mut stream = connected.stream;
    let line = hello::line(request)?;
    fault::point(Call::Write).and_then(|()| stream.write_all(&line)).map_err(ended)?;
    stream.set_read_timeout(Some(LIVENESS_DELAY))?;
    let mut lines = BlockingLines::new(stream);
    let mut answer = None;
    let mut told = false;
    loop {
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if !told && !election::answers(&connected.socket) {
                    let text = election::not_answering(Some(connected.ack.host_pid));
                    if matches!(request, Request::Status) {
                        return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                    }
                    eprintln!("consort: {}; waiting for it", crate::shown::terminal(&text));
                    told = true;
                }
                continue;
            }
            Err(error) if answer.is_some() && error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => return Err(ended(error)),
        };
        match serde_json::from_slice(&line)? {
            Reply::Result(value) => {
                answer = Some(value);
                // The end of file after the answer to a stop shows that the host has ended.
                if !matches!(request, Request::Stop) {
                    break;
                }
            }
            Reply::Error(message) => return Err(io::Error::other(message)),
            other => on_reply(other, lines.get_ref())?,
        }
    }
    answer.ok_or_else(|| ended(io::ErrorKind::UnexpectedEof.into()))
}

/// Maps a broken connection to the message that the host was stopped or killed.
fn ended(error: io::Error) -> io::Error {
    if framing::is_disconnect(&error) {
        return io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the Consort host ended, or its connection broke, before it answered; run the command again, which starts a host if there is none",
        );
    }
    error
}

/// Serves one connection.
pub async fn serve(session: Session, connection: Connection, lifetime: Arc<Lifetime>) {
    let (read, mut write) = connection.stream.into_split();
    let mut lines = Lines::new(read, MAX_REQUEST);
    let request = match read_request(&mut lines).await {
        Ok(Some(request)) => request,
        Ok(None) => return,
        Err(error) => {
            // Fails when the client does not listen any more.
            let _ = send(&mut write, &Reply::Error(format!("the request cannot be understood: {error}"))).await;
            return;
        }
    };
    if matches!(request, Request::Stop) {
        let clients = lifetime.clients();
        if send(&mut write, &Reply::Result(serde_json::json!({ "clients": clients }))).await.is_ok()
            && let Ok(stream) = lines.into_inner().reunite(write)
        {
            lifetime.hold(stream);
        }
        return lifetime.stop();
    }
    let answers = matches!(request, Request::Eval { input: true, .. });
    let is_check = matches!(request, Request::Check { .. } | Request::CheckSystem(_));
    let (replies, mut outgoing) = mpsc::unbounded_channel();
    let mut work = std::pin::pin!(perform(&session, request, replies));
    let last = loop {
        tokio::select! {
            biased;
            Some(reply) = outgoing.recv() => if send(&mut write, &reply).await.is_err() { return },
            reply = &mut work => break reply,
            reply = while_waiting(&session, is_check) => if send(&mut write, &reply).await.is_err() { return },
            // The end of file, or input that is no answer, means that the client has left; its
            // request is dropped and so cancelled.
            line = lines.next() => match line.ok().flatten().and_then(input_line) {
                Some(InputLine { question, text }) if answers => {
                    let end = || InputAnswer::End("standard input has ended".into());
                    session.answer_input(question, &text.map_or_else(end, InputAnswer::Line));
                }
                _ => return,
            },
        }
    };
    while let Ok(reply) = outgoing.try_recv() {
        if send(&mut write, &reply).await.is_err() {
            return;
        }
    }
    let _ = send(&mut write, &last).await;
}

async fn perform(session: &Session, request: Request, replies: mpsc::UnboundedSender<Reply>) -> Reply {
    match request {
        Request::Status => result(Ok::<_, String>(session.status().await)),
        Request::Stop => Reply::Error("a stop request is not served here".into()),
        work => {
            let (client, feedback) = session.attach(ClientInfo { frontend: Frontend::Cli, name: "consort".into() });
            // Other feedback is not used here, and would accumulate during a long evaluation.
            if matches!(work, Request::Eval { input: true, .. }) {
                session.note_takes_input(client);
                tokio::spawn(ask_for_input(feedback, replies.clone()));
            } else {
                drop(feedback);
            }
            let _attached = Attached { session, client };
            match work {
                Request::Eval { code, package, timeout, whole, .. } => {
                    let (output, sent) = forward(replies, |chunk: crate::model::image::OutputChunk| Reply::Output {
                        text: chunk.text,
                        stderr: chunk.stderr,
                    });
                    let request =
                        EvalRequest { code, package, timeout, output: Some(output), whole, ..EvalRequest::default() };
                    let answer = session.evaluate(client, request).await;
                    sent.all().await;
                    evaluated(answer)
                }
                Request::Check { text, path, timeout } => {
                    let mode = crate::model::check::CheckMode::File;
                    let request = CheckRequest { text, path: Some(path), mode, package: None, timeout };
                    result(session.check(client, request).await)
                }
                Request::CheckSystem(request) => {
                    let (progress, sent) = forward(replies, step);
                    let answer = session.check_system(client, request, Some(progress)).await;
                    sent.all().await;
                    result(answer)
                }
                Request::LoadSystem { system, force } => {
                    let (progress, sent) = forward(replies, step);
                    let answer =
                        session.load_system(client, LoadRequest { system, force, allowed: None }, Some(progress)).await;
                    sent.all().await;
                    result(answer)
                }
                Request::Meant { text, path, items } => {
                    result(Ok::<_, ImageError>(session.meant(text, &path, items).await))
                }
                Request::TrustChanged => result(session.trust_changed(client).await),
                Request::Status | Request::Stop => Reply::Error("not work".into()),
            }
        }
    }
}

/// Resolves with the progress of the image's start, with the fact that the image's process is
/// suspended, or for a check with what keeps the image from being copied, when the request may have
/// waited for it for some seconds.
async fn while_waiting(session: &Session, is_check: bool) -> Reply {
    crate::steady::sleep(PROGRESS_INTERVAL).await;
    let mut looks = 0_u32;
    loop {
        if looks.is_multiple_of(LOOKS_FOR_SUSPENSION)
            && let Some(why) = session.suspended_image().await
        {
            return Reply::Waiting { why };
        }
        looks = looks.wrapping_add(1);
        if let Some(why) = session.copy_obstacle().filter(|_| is_check) {
            return Reply::Waiting { why };
        }
        if let ImageState::Starting { what } = session.image_state() {
            return Reply::Progress { message: format!("waiting for the image: {what}"), done: 0, total: None };
        }
        crate::steady::sleep(OBSTACLE_POLL_INTERVAL).await;
    }
}

/// Forwards questions for input until the client is detached.
async fn ask_for_input(mut feedback: mpsc::UnboundedReceiver<Feedback>, replies: mpsc::UnboundedSender<Reply>) {
    while let Some(feedback) = feedback.recv().await {
        if let Feedback::Input(InputWanted { question, .. }) = feedback
            && replies.send(Reply::Input { question }).is_err()
        {
            break;
        }
    }
}

fn step(progress: crate::model::image::Progress) -> Reply {
    Reply::Progress { message: progress.message, done: progress.done, total: progress.total }
}

/// A client that detaches from the session when dropped.
struct Attached<'a> {
    session: &'a Session,
    client: crate::session::ClientId,
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        self.session.detach(self.client);
    }
}

/// Returns a sender whose items are forwarded as replies.
fn forward<T: Send + 'static>(
    replies: mpsc::UnboundedSender<Reply>,
    turn: fn(T) -> Reply,
) -> (mpsc::UnboundedSender<T>, Forwarding) {
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let task = tokio::spawn(async move {
        while let Some(item) = receiver.recv().await {
            if replies.send(turn(item)).is_err() {
                break;
            }
        }
    });
    (sender, Forwarding(task))
}

/// The task of [`forward`].
struct Forwarding(tokio::task::JoinHandle<()>);

impl Forwarding {
    /// Waits until everything sent has become a reply, so that no output follows the answer.
    async fn all(self) {
        // Ends when the work drops its sender. The time limit covers work after which another
        // holder of the sender remains.
        if crate::steady::timeout(Duration::from_secs(1), self.0).await.is_err() {
            tracing::warn!("output may come late: its sender is still held");
        }
    }
}

fn result<T: serde::Serialize, E: std::fmt::Display>(answer: Result<T, E>) -> Reply {
    match answer.map(serde_json::to_value) {
        Ok(Ok(value)) => Reply::Result(value),
        Ok(Err(error)) => Reply::Error(format!("the answer cannot be written: {error}")),
        Err(error) => Reply::Error(error.to_string()),
    }
}

/// Returns the reply to an evaluation, with the place at which the code cannot be read, if any.
fn evaluated(answer: Result<EvalOutcome, ImageError>) -> Reply {
    let unread = answer.as_ref().ok().and_then(|outcome| outcome.error.as_ref()?.unread);
    let mut reply = result(answer);
    if let (Reply::Result(value), Some(at)) = (&mut reply, unread) {
        value["error"]["unread"] = at.into();
    }
    reply
}

/// Reads the request. Returns `None` if the client left without one.
async fn read_request(lines: &mut Lines<impl AsyncRead + Unpin>) -> io::Result<Option<Request>> {
    let Some(line) = lines.next().await? else {
        return if lines.unfinished().is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
    };
    match line {
        Line::Whole(line) => Ok(Some(serde_json::from_slice(line)?)),
        Line::Piece { .. } => Err(io::Error::new(io::ErrorKind::InvalidData, "it is longer than 64 MiB")),
    }
}

/// Parses the answer to a question for input.
fn input_line(line: Line<'_>) -> Option<InputLine> {
    let Line::Whole(line) = line else { return None };
    serde_json::from_slice(line).ok()
}

async fn send(write: &mut (impl AsyncWrite + Unpin), reply: &Reply) -> io::Result<()> {
    fault::point(Call::Write)?;
    write.write_all(&hello::line(reply)?).await
}
