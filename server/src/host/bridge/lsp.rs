//! `consort lsp`: learns the workspace from the client's `initialize`, then copies bytes.
//!
//! When the host is killed, every unanswered request is answered with an error, the person is told, and the exit code is 1, so that the
//! editor starts the server anew and opens its documents there: only the editor knows them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::frames::{Frames, framed};
use super::pending::{Peek, Pending};
use crate::host::election::Place;
use crate::host::hello::{DoorKind, Hello};
use crate::host::workspace;

/// After the client has left, the host has this long to say its last.
const FAREWELL: Duration = Duration::from_secs(2);
/// One read of either side, bytes.
const PIECE: usize = 1 << 16;

/// What both copies know of the conversation.
#[derive(Debug, Default)]
struct Talk {
    pending: Pending,
    shutdown: bool,
    /// The client said `exit` or closed its end.
    over: bool,
}

/// Run until the client or the host leaves.
///
/// # Errors
/// The system's, on standard input and output; a broken pipe means that the client left.
#[allow(clippy::print_stderr)] // the editor's log of the server
pub fn run() -> io::Result<ExitCode> {
    super::greet_a_person("the Language Server Protocol", "lsp");
    let (mut stdin, mut stdout) = (super::stdin()?, super::stdout()?);
    let Some(opening) = await_initialize(&mut stdin, &mut stdout)? else { return Ok(ExitCode::FAILURE) };
    let connected = root(&opening.params).and_then(|root| {
        let place = Place::of(&root).map_err(|error| error.to_string())?;
        place.connect_or_start(&Hello::new(DoorKind::Lsp)).map_err(|error| error.to_string())
    });
    let stream = match connected {
        Ok(connected) => connected.stream,
        Err(message) => {
            eprintln!("consort lsp: {message}");
            stdout.write_all(&framed(&error_answer(&opening.id, -32603, &message)))?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let talk = Arc::new(Mutex::new(Talk::default()));
    let upstream = stream.try_clone()?;
    std::thread::spawn({
        let talk = talk.clone();
        move || copy_up(stdin, upstream, &opening.bytes, &talk)
    });
    copy_down(stream, stdout, &talk)
}

/// What the client said up to and including `initialize`, to be passed on.
struct Opening {
    bytes: Vec<u8>,
    id: Value,
    params: Value,
}

/// Read until `initialize` is there; answer what comes before it as LSP 3.17 says. `None`: the client left or said `exit`, or does not speak LSP.
#[allow(clippy::print_stderr)] // the editor's log of the server
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
    let mut piece = vec![0; PIECE];
    loop {
        let read = match stdin.read(&mut piece) {
            Ok(0) => return Ok(None),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let (mut answers, mut exit) = (Vec::new(), false);
        let framing = frames.push(&piece[..read], |message| match serde_json::from_slice::<Message>(message) {
            _ if exit => {}
            // What follows `initialize` in the same piece is passed on as it is.
            _ if opening.as_ref().is_some_and(|opening| !opening.id.is_null()) => {
                if let Some(opening) = &mut opening {
                    opening.bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", message.len()).as_bytes());
                    opening.bytes.extend_from_slice(message);
                }
            }
            Ok(Message { id: Some(id), method: Some(method), params }) if method == "initialize" && !id.is_null() => {
                let mut bytes = format!("Content-Length: {}\r\n\r\n", message.len()).into_bytes();
                bytes.extend_from_slice(message);
                opening = Some(Opening { bytes, id, params });
            }
            Ok(Message { id: Some(id), method: Some(_), .. }) => {
                answers.push(error_answer(&id, -32002, "the first request must be initialize"));
            }
            Ok(Message { method: Some(method), .. }) => exit = method == "exit",
            Ok(_) => {}
            Err(error) => answers.push(error_answer(&Value::Null, -32700, &format!("not JSON-RPC: {error}"))),
        });
        for answer in answers {
            stdout.write_all(&framed(&answer))?;
        }
        if let Err(error) = framing {
            eprintln!("consort lsp: this is not the Language Server Protocol: {error}");
            return Ok(None);
        }
        if exit {
            return Ok(None);
        }
        if let Some(mut opening) = opening.take() {
            opening.bytes.extend_from_slice(&frames.unfinished());
            return Ok(Some(opening));
        }
    }
}

/// The workspace: the root that the client gives, exactly; without any, from the current directory.
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

fn copy_up(mut stdin: File, mut stream: UnixStream, first: &[u8], talk: &Mutex<Talk>) {
    let mut frames = Some(Frames::default());
    let mut piece = vec![0; PIECE];
    let mut copy = |bytes: &[u8]| {
        // Known before it is passed on, so that no answer comes first.
        note(
            &mut frames,
            bytes,
            |talk, peek| {
                if let Some((id, method)) = peek.request() {
                    talk.shutdown |= method == "shutdown";
                    talk.pending.insert(id, method);
                } else if peek.method.as_deref() == Some("exit") {
                    talk.over = true;
                }
            },
            talk,
        );
        stream.write_all(bytes)
    };
    let mut result = copy(first);
    while result.is_ok() {
        result = match stdin.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => copy(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        };
    }
    // An error means that the host has gone, which the other copy sees; or that the client has, as has its end of file.
    if result.is_ok() {
        talk.lock().unwrap_or_else(PoisonError::into_inner).over = true;
        // The timeout is the whole socket's, so it bounds the other copy's wait.
        let _ = stream.set_read_timeout(Some(FAREWELL));
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
}

fn copy_down(mut stream: UnixStream, mut stdout: File, talk: &Mutex<Talk>) -> io::Result<ExitCode> {
    let mut frames = Some(Frames::default());
    let mut piece = vec![0; PIECE];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => {
                stdout.write_all(&piece[..read])?;
                note(
                    &mut frames,
                    &piece[..read],
                    |talk, peek| {
                        if let Some(id) = peek.answer() {
                            talk.pending.remove(id);
                        }
                    },
                    talk,
                );
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    let mut talk = talk.lock().unwrap_or_else(PoisonError::into_inner);
    if talk.over {
        // LSP 3.17, "Exit Notification".
        return Ok(if talk.shutdown { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    report_loss(&mut stdout, &mut talk.pending)?;
    Ok(ExitCode::FAILURE)
}

/// Answer everything unanswered and tell the person.
#[allow(clippy::print_stderr)] // the editor's log of the server
fn report_loss(stdout: &mut File, pending: &mut Pending) -> io::Result<()> {
    let text = "The Consort host ended, and the Lisp image with it. What was defined only in the image is lost. Your editor starts Consort again; \
                if it does not, restart its language server.";
    eprintln!("consort lsp: {text}");
    for (id, _) in pending.take() {
        stdout.write_all(&framed(&error_answer(&id, -32603, text)))?;
    }
    stdout.write_all(&framed(
        &json!({"jsonrpc": "2.0", "method": "window/showMessage", "params": {"type": 2, "message": text}}),
    ))
}

/// Look at the messages that `bytes` completes. Bytes that are no messages are the other side's to complain of; they are only copied from then on.
fn note(frames: &mut Option<Frames>, bytes: &[u8], mut see: impl FnMut(&mut Talk, &Peek<'_>), talk: &Mutex<Talk>) {
    let Some(found) = frames else { return };
    let mut talk = talk.lock().unwrap_or_else(PoisonError::into_inner);
    let framing = found.push(bytes, |message| {
        if let Some(peek) = Peek::of(message) {
            see(&mut talk, &peek);
        }
    });
    if framing.is_err() {
        *frames = None;
    }
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
