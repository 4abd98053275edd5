//! `consort lsp`: determines the workspace from the client's `initialize`, then copies messages.
//!
//! When the host is killed, every unanswered request is answered with an error, a message is shown,
//! and another host is started. The new host gets the remembered state: `initialize`, the settings,
//! and the current documents. If this fails, the exit code is 1, and the editor decides whether to
//! start the server again. If the host was stopped on request, the exit code is 0, and the editor
//! decides, too.

mod replay_state;
mod state;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::state::{BridgeState, Passed};
use super::frames::{Frames, framed};
use super::pending::Peek;
use super::protocol::LSP;
use crate::fault::{self, Call};
use crate::framing::content_length;
use crate::framing::json::may_be_about_text;
use crate::host::departure::Departure;
use crate::host::election::{self, Place};
use crate::host::hello::{Hello, Protocol};
use crate::host::reopening::{self, Holds};
use crate::host::workspace;
use crate::locked::lock;

/// The time that the host has to finish after the client has left.
const LEAVE_TIME: Duration = Duration::from_secs(2);
/// The size of one read from either side, in bytes.
const READ_SIZE: usize = 1 << 16;

/// The interval between checks that the host answers.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(1);
/// The silence after which these checks begin.
const LIVENESS_DELAY: Duration = Duration::from_secs(3);
/// The interval after an answer in which the host is not checked again.
const RECHECK_DELAY: Duration = Duration::from_secs(4);

/// The number of hosts that may be replaced within [`RESTART_PERIOD`] before the bridge ends, and
/// the editor decides whether to start the server again.
const MAX_RESTARTS: usize = 3;
const RESTART_PERIOD: Duration = Duration::from_secs(60);

const HOST_ENDED: &str =
    "The Consort host ended, and the Lisp image with it. Definitions that existed only in the image are lost.";
const CONNECTION_BROKE: &str = "The connection to the Consort host broke; the host and the image still run. Your request may have been carried out: check before you repeat it.";
const EDITOR_RESTARTS: &str = "Your editor starts Consort again; if it does not, restart its language server.";
const HOST_STOPPED: &str = "The Consort host was stopped, and the Lisp image with it. Your editor starts Consort again; if it does not, restart its language server.";

/// The state of both copying threads. A thread that takes both locks takes `host` first.
struct Shared {
    host: Mutex<Host>,
    state: Mutex<BridgeState>,
    stdout: Mutex<File>,
    /// The marks at the current host. While that host does not have all documents, also the marks
    /// at earlier hosts. Locked after `host` and `state`.
    marks: Mutex<Vec<Holds>>,
}

/// The current host.
struct Host {
    stream: UnixStream,
}

impl Host {
    /// Writes to the host. After a failed write the connection is closed, which the other thread
    /// notices. The usual cause is that the host has ended.
    fn write(&mut self, bytes: &[u8]) {
        if fault::point(Call::Write).and_then(|()| self.stream.write_all(bytes)).is_err() {
            election::shut_down_connection(&self.stream);
        }
    }
}

impl Shared {
    fn host(&self) -> MutexGuard<'_, Host> {
        lock(&self.host)
    }

    /// Writes to the client. `bytes` consists of whole messages.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        lock(&self.stdout).write_all(bytes)
    }

    fn marks(&self) -> MutexGuard<'_, Vec<Holds>> {
        lock(&self.marks)
    }

    /// Drops the marks at earlier hosts, because the current host has all documents.
    fn reopened(&self) {
        let mut marks = self.marks();
        let before = marks.len().saturating_sub(1);
        marks.drain(..before);
    }

    fn state(&self) -> MutexGuard<'_, BridgeState> {
        lock(&self.state)
    }

    /// Passes a message of the client on, and remembers its contents.
    fn pass_up(&self, message: &[u8]) {
        let mut host = self.host();
        let Some(peek) = Peek::of(message) else {
            if may_be_about_text(message) {
                self.state().replay_state.give_up();
            }
            return host.write(&content_length::framed(message));
        };
        // Recorded before the host gets it, so that no answer arrives earlier.
        let changed = self.state().outgoing(&peek, message);
        match changed {
            Some(changed) if changed.is_empty() => {}
            Some(changed) => host.write(&content_length::framed(&changed)),
            None => host.write(&content_length::framed(message)),
        }
        if let Some(method) = &peek.method {
            self.state().replay_state.note(method, message);
        }
    }
}

/// Runs until the client or the host leaves.
///
/// # Errors
/// I/O errors on standard input and output; a broken pipe means that the client left.
#[allow(clippy::print_stderr)] // printed to the editor's log of the server
pub fn run() -> io::Result<ExitCode> {
    LSP.greet_a_person();
    let (mut stdin, mut stdout) = (super::stdin()?, super::stdout()?);
    let Some(opening) = await_initialize(&mut stdin, &mut stdout)? else { return Ok(ExitCode::FAILURE) };
    let connected = root(&opening.params).and_then(|root| {
        let place = Place::of(&root).map_err(|error| error.to_string())?;
        let connected = place
            .connect_or_start_reporting(&Hello::new(Protocol::Lsp), |text| {
                eprintln!("consort lsp: {}", crate::shown::terminal(text));
                // A client that has left is noticed below.
                let _ = stdout.write_all(&framed(&shown(&as_sentence(text))));
            })
            .map_err(|error| error.to_string())?;
        Ok((place, connected))
    });
    let (place, connected) = match connected {
        Ok(connected) => connected,
        Err(message) => {
            eprintln!("consort lsp: {}", crate::shown::terminal(&message));
            stdout.write_all(&framed(&error_answer(&opening.id, -32603, &message)))?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let host = Mutex::new(Host { stream: connected.stream.try_clone()? });
    let marks = Mutex::new(vec![reopening::hold(&place.runtime)]);
    let shared = Arc::new(Shared { host, state: Mutex::default(), stdout: Mutex::new(stdout), marks });
    shared.state().pid = connected.ack.host_pid;
    std::thread::spawn({
        let shared = shared.clone();
        move || copy_up(stdin, &opening.bytes, &shared)
    });
    std::thread::spawn({
        let (shared, socket) = (shared.clone(), place.runtime.socket());
        move || watch(&shared, &socket)
    });
    copy_down(connected.stream, &place, &shared)
}

/// Shows a message when the host does not answer pending requests, and another one when it answers
/// again.
fn watch(shared: &Shared, socket: &Path) {
    let mut told = None;
    loop {
        std::thread::sleep(LIVENESS_INTERVAL);
        let (waits, pid) = {
            let state = shared.state();
            (state.is_waiting_for(LIVENESS_DELAY), state.pid)
        };
        if told.is_none() && !waits {
            continue;
        }
        let text = match (told, election::answers(socket)) {
            (Some(of), _) if of != pid => {
                // Another host replaced it, which was reported already.
                told = None;
                continue;
            }
            (None, false) => {
                told = Some(pid);
                as_sentence(&election::not_answering(Some(pid)))
            }
            (Some(_), true) => {
                told = None;
                format!("The Consort host (process {pid}) answers again.")
            }
            (None, true) => {
                std::thread::sleep(RECHECK_DELAY);
                continue;
            }
            (Some(_), false) => continue,
        };
        if shared.write(&framed(&shown(&text))).is_err() {
            return;
        }
    }
}

/// Returns the text as a sentence, with a capital first letter and a full stop.
fn as_sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect::<String>() + ".")
}

/// The client's bytes up to and including `initialize`, to be passed on.
struct Opening {
    bytes: Vec<u8>,
    id: Value,
    params: Value,
}

/// Reads until `initialize` arrives. Answers earlier messages as LSP 3.17 specifies. Returns `None`
/// if the client left, sent `exit`, or does not speak LSP.
fn await_initialize(stdin: &mut File, stdout: &mut File) -> io::Result<Option<Opening>> {
    #[derive(serde::Deserialize)]
    struct Message {
        #[serde(default)]
        id: Option<Value>,
        #[serde(default)]
        method: Option<String>,
        #[serde(default)]
        params: Value,
    }
    let mut frames = Frames::default();
    let mut opening: Option<Opening> = None;
    let mut piece = vec![0; READ_SIZE];
    loop {
        let read = match stdin.read(&mut piece) {
            Ok(0) => {
                LSP.refuse_end("the request initialize", frames.unfinished());
                return Ok(None);
            }
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let (mut answers, mut exit) = (Vec::new(), false);
        let framing = frames.push(&piece[..read], |message| match serde_json::from_slice::<Message>(message) {
            _ if exit => {}
            // Bytes after `initialize` in the same piece are passed on unchanged.
            _ if opening.as_ref().is_some_and(|opening| !opening.id.is_null()) => {
                if let Some(opening) = &mut opening {
                    opening.bytes.extend(content_length::framed(message));
                }
            }
            Ok(Message { id: Some(id), method: Some(method), params }) if method == "initialize" && !id.is_null() => {
                opening = Some(Opening { bytes: content_length::framed(message), id, params });
            }
            Ok(Message { id: Some(id), method: Some(_), .. }) => {
                answers.push(error_answer(&id, -32002, "the first request must be initialize"));
            }
            Ok(Message { method: Some(method), .. }) => exit = method == "exit",
            Ok(Message { id: None, .. }) => {
                answers.push(error_answer(&Value::Null, -32600, "not JSON-RPC: a message has a method or an id"));
            }
            // An answer, although nothing was asked.
            Ok(_) => {}
            Err(error) => answers.push(error_answer(&Value::Null, -32700, &format!("not JSON-RPC: {error}"))),
        });
        for answer in answers {
            stdout.write_all(&framed(&answer))?;
        }
        if let Err(error) = framing {
            LSP.refuse(&error.to_string());
            return Ok(None);
        }
        if exit {
            return Ok(None);
        }
        if let Some(mut opening) = opening.take() {
            opening.bytes.extend_from_slice(frames.unfinished());
            return Ok(Some(opening));
        }
    }
}

/// Returns the workspace: the client's root, or without a root, the one found from the current
/// directory.
fn root(params: &Value) -> Result<PathBuf, String> {
    let folder = params["workspaceFolders"][0]["uri"].as_str().or_else(|| params["rootUri"].as_str());
    let given = match (folder, params["rootPath"].as_str()) {
        (Some(uri), _) => Some(
            workspace::path_of_uri(uri).ok_or_else(|| format!("the root {uri} is not a directory of this machine"))?,
        ),
        (None, Some(path)) if !path.is_empty() => Some(PathBuf::from(path)),
        _ => None,
    };
    match given {
        Some(path) => {
            workspace::directory(&path).map_err(|error| format!("the root {} cannot be used: {error}", path.display()))
        }
        None => workspace::find_running(Path::new("."))
            .map_err(|error| format!("the current directory cannot be used: {error}")),
    }
}

/// Copies the client's messages to the current host.
fn copy_up(mut stdin: File, first: &[u8], shared: &Shared) {
    let mut frames = Frames::default();
    let mut piece = vec![0; READ_SIZE];
    let mut bytes = first.to_vec();
    loop {
        let framing = frames.push(&bytes, |message| shared.pass_up(message));
        if framing.is_err() {
            // Malformed bytes are passed on, for the host to report.
            shared.state().replay_state.give_up();
            shared.host().write(frames.unfinished());
            frames = Frames::default();
        }
        match stdin.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => bytes = piece[..read].to_vec(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => bytes.clear(),
            Err(_) => break,
        }
    }
    let host = shared.host();
    shared.state().over = true;
    let _ = host.stream.shutdown(std::net::Shutdown::Write);
    let stream = host.stream.try_clone();
    drop(host);
    std::thread::sleep(LEAVE_TIME);
    // Ends the wait of the other thread, also for a host that is suspended.
    let _ = stream.map(|stream| stream.shutdown(std::net::Shutdown::Both));
}

/// Copies the messages of the hosts, one host after another, to the client.
fn copy_down(mut stream: UnixStream, place: &Place, shared: &Shared) -> io::Result<ExitCode> {
    // Held until a new host has the remembered state. The client's messages wait until then.
    let mut held_host: Option<MutexGuard<'_, Host>> = None;
    let mut restarts: VecDeque<Instant> = VecDeque::new();
    let mut departure = Departure::of(&place.runtime);
    loop {
        listen(&mut stream, shared, &mut held_host)?;
        // From here on no message of the client is passed on, or changes the remembered state.
        let mut host = held_host.take().unwrap_or_else(|| shared.host());
        let mut state = shared.state();
        if state.over {
            // LSP 3.17, "Exit Notification".
            return Ok(if state.shutdown { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        restarts.retain(|at| at.elapsed() < RESTART_PERIOD);
        let killed = match &departure {
            Some(departure) => !departure.is_recorded(),
            // The directory was removed. Another host has written the file, if there is one.
            None => place.runtime.read_host_file().is_some(),
        };
        let often = restarts.len() >= MAX_RESTARTS;
        if let Some(initialize) = state.replay_state.unanswered().map(<[u8]>::to_vec).filter(|_| killed && !often)
            && let Ok(connected) = place.connect_or_start(&Hello::new(Protocol::Lsp))
        {
            // The client does not know that the host was replaced.
            restarts.push_back(Instant::now());
            state.pid = connected.ack.host_pid;
            stream = connected.stream;
            *host = Host { stream: stream.try_clone()? };
            departure = Departure::of(&place.runtime);
            shared.marks().push(reopening::hold(&place.runtime));
            // There are no documents before `initialize` is answered.
            shared.reopened();
            host.write(&content_length::framed(&initialize));
            continue;
        }
        let lost = if place.is_host(state.pid) { CONNECTION_BROKE } else { HOST_ENDED };
        for message in state.settle(lost) {
            shared.write(&framed(&message))?;
        }
        let opening = state.replay_state.opening().map(<[u8]>::to_vec).filter(|_| killed && !often);
        let Some(opening) = opening else {
            if killed {
                return give_up(shared, &format!("{lost} {EDITOR_RESTARTS}"));
            }
            // Neovim reports every exit code other than 0 as a failure of the server.
            return give_up(shared, HOST_STOPPED).map(|_| ExitCode::SUCCESS);
        };
        let connected = match place.connect_or_start(&Hello::new(Protocol::Lsp)) {
            Ok(connected) => connected,
            Err(error) => {
                return give_up(shared, &format!("{lost} No new one could be started: {error}. {EDITOR_RESTARTS}"));
            }
        };
        restarts.push_back(Instant::now());
        if let Some(message) = state.next_host(&opening) {
            shared.write(&framed(&message))?;
        }
        let now = if lost == CONNECTION_BROKE { "It was made again" } else { "A new one is running" };
        shared.write(&framed(&shown(&format!("{lost} {now}, and has your open documents."))))?;
        stream = connected.stream;
        *host = Host { stream: stream.try_clone()? };
        departure = Departure::of(&place.runtime);
        shared.marks().push(reopening::hold(&place.runtime));
        state.pid = connected.ack.host_pid;
        host.write(&content_length::framed(&opening));
        drop(state);
        held_host = Some(host);
    }
}

/// Passes a host's messages on until it ends.
fn listen(stream: &mut UnixStream, shared: &Shared, held_host: &mut Option<MutexGuard<'_, Host>>) -> io::Result<()> {
    let mut frames = Frames::default();
    let mut piece = vec![0; READ_SIZE];
    loop {
        let read = match stream.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return Ok(()),
        };
        shared.state().note_activity();
        let (mut out, mut refused, mut reopened) = (Vec::with_capacity(read + 64), false, false);
        let framing = frames.push(&piece[..read], |message| {
            let Some(peek) = Peek::of(message) else { return out.extend(content_length::framed(message)) };
            let mut state = shared.state();
            match state.incoming(&peek, message) {
                Passed::AsItIs => out.extend(content_length::framed(message)),
                Passed::Instead(message) => out.extend(framed(&message)),
                Passed::Greeted(false) => refused = true,
                Passed::Reopened => reopened = true,
                Passed::Greeted(true) => {
                    if let Some(mut host) = held_host.take() {
                        for message in state.replay_state.replay() {
                            host.write(&content_length::framed(&message));
                        }
                        host.write(&framed(&state.after_documents()));
                    }
                }
            }
        });
        shared.write(&out)?;
        if reopened {
            shared.reopened();
        }
        if framing.is_err() || refused {
            return Ok(());
        }
    }
}

/// Ends the bridge, after which the editor must start the server again.
#[allow(clippy::print_stderr)] // printed to the editor's log of the server
fn give_up(shared: &Shared, text: &str) -> io::Result<ExitCode> {
    eprintln!("consort lsp: {}", crate::shown::terminal(text));
    shared.write(&framed(&shown(text)))?;
    Ok(ExitCode::FAILURE)
}

fn shown(text: &str) -> Value {
    let text = crate::shown::notification(text);
    json!({"jsonrpc": "2.0", "method": "window/showMessage", "params": {"type": 2, "message": text}})
}

fn error_answer(id: &Value, code: i32, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_the_clients() {
        let dir = tempfile::tempdir().unwrap();
        let canonical = dir.path().canonicalize().unwrap();
        let uri = lsp_types::Url::from_directory_path(&canonical).unwrap();
        for params in [
            json!({"workspaceFolders": [{"uri": uri, "name": "x"}], "rootUri": "file:///"}),
            json!({"workspaceFolders": null, "rootUri": uri}),
            json!({"workspaceFolders": [], "rootUri": null, "rootPath": canonical}),
        ] {
            assert_eq!(root(&params), Ok(canonical.clone()), "{params}");
        }
        assert!(root(&json!({"rootUri": "file:///no/such/dir"})).unwrap_err().contains("/no/such/dir cannot be used"));
        assert!(root(&json!({"rootUri": "http://x/"})).unwrap_err().contains("not a directory of this machine"));
        assert!(root(&Value::Null).is_ok());
    }
}
