//! The command line's door: one request a connection, JSON lines; output and progress while it runs, then a result or an error.
//! Hanging up cancels it.

use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use super::election::{self, Connected};
use super::hello;
use super::serve::{Connection, Lifetime};
use crate::session::{CheckRequest, CheckSystemRequest, ClientInfo, EvalRequest, Frontend, Session};

/// The longest request: a check carries a whole file.
const MAX_REQUEST: u64 = 64 << 20;

/// After so long without a word the command line looks whether the host answers at all.
const QUIET: Duration = Duration::from_secs(3);

/// What the command line asks.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum Request {
    /// [`crate::session::Status`], with `log` added.
    Status,
    /// The number of clients; the end of file comes when the host and its image have gone.
    Stop,
    /// `EvalOutcome`.
    Eval {
        /// What to read and evaluate.
        code: String,
        /// The package; `None`: CL-USER.
        package: Option<String>,
        /// Seconds; `None`: the configured default.
        timeout: Option<f64>,
    },
    /// `CheckReport` of one text.
    Check {
        /// The text.
        text: String,
        /// The real file, canonical.
        path: PathBuf,
        /// Seconds; `None`: the configured default.
        timeout: Option<f64>,
    },
    /// `SystemReport` of a system, which is loaded in a throw-away copy and never in the image itself.
    CheckSystem(CheckSystemRequest),
    /// The person changed what this workspace is trusted with. Nothing; the image is restarted where that changes it.
    TrustChanged,
    /// `LoadSystemOutcome`.
    LoadSystem {
        /// ASDF's name of it.
        system: String,
        /// Reload everything in it.
        force: bool,
    },
}

/// A line of the answer; `result` or `error` is the last.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// What the evaluation printed.
    Output {
        /// The text.
        text: String,
        /// On `*error-output*`.
        stderr: bool,
    },
    /// How far a long operation is.
    Progress {
        /// What it does now.
        message: String,
        /// Steps done.
        done: u64,
        /// Steps in all, when known.
        total: Option<u64>,
    },
    /// The answer.
    Result(Value),
    /// Why there is none, for a person.
    Error(String),
}

/// Ask a host: `on_reply` is given what comes before the answer.
///
/// # Errors
/// The system's; `UnexpectedEof` when the host ended first; `Other` with the host's own words.
#[allow(clippy::print_stderr)] // the command line's
pub fn ask(
    connected: Connected,
    request: &Request,
    mut on_reply: impl FnMut(Reply) -> io::Result<()>,
) -> io::Result<Value> {
    let mut stream = connected.stream;
    stream.write_all(&hello::line(request)?).map_err(ended)?;
    stream.set_read_timeout(Some(QUIET))?;
    let mut lines = io::BufReader::new(stream);
    let mut answer = None;
    let mut line = Vec::new();
    let mut told = false;
    loop {
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            // What came of a line so far stays in `line`.
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                if !told && !election::answers(&connected.socket) {
                    let text = election::not_answering(Some(connected.ack.host_pid));
                    if matches!(request, Request::Status) {
                        return Err(io::Error::new(io::ErrorKind::TimedOut, text));
                    }
                    eprintln!("consort: {text}; waiting for it");
                    told = true;
                }
                continue;
            }
            Err(error) if answer.is_some() && error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => return Err(ended(error)),
        }
        match serde_json::from_slice(&std::mem::take(&mut line))? {
            Reply::Result(value) => {
                answer = Some(value);
                // Stopped means gone: the end of file is the host's own end.
                if !matches!(request, Request::Stop) {
                    break;
                }
            }
            Reply::Error(message) => return Err(io::Error::other(message)),
            other => on_reply(other)?,
        }
    }
    answer.ok_or_else(|| ended(io::ErrorKind::UnexpectedEof.into()))
}

/// A connection that broke means that the host was stopped or killed.
fn ended(error: io::Error) -> io::Error {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    if matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof) {
        return io::Error::new(
            UnexpectedEof,
            "the Consort host ended before it answered; run the command again, which starts a new one",
        );
    }
    error
}

/// Serve one connection.
pub async fn serve(session: Session, connection: Connection, lifetime: Arc<Lifetime>) {
    let mut stream = BufReader::new(connection.stream);
    let request = match read_request(&mut stream).await {
        Ok(Some(request)) => request,
        Ok(None) => return,
        Err(error) => {
            // The client is told if it still listens.
            let _ = send(&mut stream, &Reply::Error(format!("the request cannot be understood: {error}"))).await;
            return;
        }
    };
    if matches!(request, Request::Stop) {
        let clients = lifetime.clients();
        if send(&mut stream, &Reply::Result(serde_json::json!({ "clients": clients }))).await.is_ok() {
            lifetime.hold(stream.into_inner());
        }
        return lifetime.stop();
    }
    let (mut read, mut write) = tokio::io::split(stream);
    let (replies, mut outgoing) = mpsc::unbounded_channel();
    let mut work = std::pin::pin!(perform(&session, request, replies));
    let mut rest = [0; 64];
    let last = loop {
        tokio::select! {
            biased;
            Some(reply) = outgoing.recv() => if send(&mut write, &reply).await.is_err() { return },
            reply = &mut work => break reply,
            // The end of file, or anything else that comes now, is the client's leaving; what it asked for is dropped and so cancelled.
            _ = read.read(&mut rest) => return,
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
        Request::Stop => Reply::Error("stop is not work".into()),
        work => {
            let (client, feedback) = session.attach(ClientInfo { frontend: Frontend::Cli, name: "consort".into() });
            // Nobody here would take it, and a long evaluation would keep all of it.
            drop(feedback);
            let _attached = Attached { session, client };
            match work {
                Request::Eval { code, package, timeout } => {
                    let (output, sent) = forward(replies, |chunk: crate::model::image::OutputChunk| Reply::Output {
                        text: chunk.text,
                        stderr: chunk.stderr,
                    });
                    let request =
                        EvalRequest { code, package, capture_time: false, timeout, origin: None, output: Some(output) };
                    let answer = session.evaluate(client, request).await;
                    sent.all().await;
                    result(answer)
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
                    let answer = session.load_system(client, system, force, Some(progress)).await;
                    sent.all().await;
                    result(answer)
                }
                Request::TrustChanged => result(session.trust_changed(client).await),
                Request::Status | Request::Stop => Reply::Error("not work".into()),
            }
        }
    }
}

fn step(progress: crate::model::image::Progress) -> Reply {
    Reply::Progress { message: progress.message, done: progress.done, total: progress.total }
}

/// A client that leaves the session with this value.
struct Attached<'a> {
    session: &'a Session,
    client: crate::session::ClientId,
}

impl Drop for Attached<'_> {
    fn drop(&mut self) {
        self.session.detach(self.client);
    }
}

/// A sender whose items become replies.
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

/// The task behind [`forward`].
struct Forwarding(tokio::task::JoinHandle<()>);

impl Forwarding {
    /// Wait until everything sent has become a reply, so that no output comes after the answer.
    async fn all(self) {
        // Ends when the work dropped its sender; the bound is for work that leaves something behind that holds one.
        if tokio::time::timeout(Duration::from_secs(1), self.0).await.is_err() {
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

async fn read_request(read: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Request>> {
    let mut line = Vec::new();
    (&mut *read).take(MAX_REQUEST).read_until(b'\n', &mut line).await?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(serde_json::from_slice(&line)?)),
        Some(_) if line.len() as u64 == MAX_REQUEST => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "it is longer than 64 MiB"))
        }
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

async fn send(write: &mut (impl AsyncWrite + Unpin), reply: &Reply) -> io::Result<()> {
    write.write_all(&hello::line(reply)?).await
}
