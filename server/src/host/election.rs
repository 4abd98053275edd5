//! Finds the workspace's host, or starts it. Any number of simultaneous starts results in one
//! host, to which all connect.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::hello::{self, Ack, Hello};
use super::host_location;
use super::runtime_base::with_path;
use super::runtime_dir::RuntimeDir;
use crate::fault::{self, Call};
use crate::framing::{self, first_line};
use crate::limits;
use crate::search_paths;

/// The time limit for the answer to a hello. A host answers at once, whatever its image does. A
/// later answer means that the host is stuck.
const ACK_WAIT: Duration = Duration::from_secs(10);
/// The time limit of a client that needs the host. It is longer since a suspended host may
/// continue.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// The time after which a person is informed that the host does not answer.
const NOTE_WAIT: Duration = Duration::from_secs(4);
/// The number of new hosts in a row that may end without a message before this counts as a fault.
const ENDED_AT_ONCE: u32 = 4;
/// The time limit for the start of a host, which reports that it is ready before it starts its
/// image. The limit is reached only on a very busy machine.
const READY_WAIT: Duration = Duration::from_secs(30);
/// The time limit for a host that leaves. It is longer than the end of the host's image may take.
const LEAVE_WAIT: Duration = Duration::from_secs(30);
/// The time limit for repeated attempts. A host may leave or be killed between two steps, but not
/// all the time.
const ELECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after the first failed attempt. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause between two failed attempts.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// An accepted connection to a host.
#[derive(Debug)]
pub struct Connected {
    /// The connection, for the front end's own protocol from here on.
    pub stream: UnixStream,
    /// The host's answer.
    pub ack: Ack,
    /// The path of the host's socket.
    pub socket: PathBuf,
}

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No host listens.
    #[error("no Consort host runs for this workspace")]
    Absent,
    /// The host refused, with its own message.
    #[error("{0}")]
    Refused(String),
    /// The host listens and does not answer.
    #[error("{0}")]
    Stuck(String),
    /// A host could not be started.
    #[error("the Consort host could not be started: {0}")]
    Start(String),
    /// An I/O error.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The location of a workspace's host, and the program that starts it.
#[derive(Debug, Clone)]
pub struct Place {
    /// The workspace, canonical.
    pub workspace: PathBuf,
    /// The workspace's runtime directory.
    pub runtime: RuntimeDir,
    /// The program, started with `serve` as the host.
    pub program: PathBuf,
}

impl Place {
    /// Returns the place of `workspace` (canonical), with this program as the host.
    ///
    /// # Errors
    /// Fails when no private runtime directory can be named, or this program's own path is not
    /// known.
    pub fn of(workspace: &Path) -> io::Result<Place> {
        Ok(Place { workspace: workspace.into(), runtime: host_location::of(workspace)?, program: this_program()? })
    }

    /// Connects to the running host.
    ///
    /// # Errors
    /// [`ConnectError::Absent`] when none runs.
    pub fn connect(&self, hello: &Hello) -> Result<Connected, ConnectError> {
        let mut backoff = RetryBackoff::new();
        loop {
            if let Some(connected) = self.try_connect(hello, &mut |_| {}, ACK_WAIT)? {
                return Ok(connected);
            }
            if !backoff.pause() {
                return Err(ConnectError::Absent);
            }
        }
    }

    /// Connects to the host, after starting one if none runs. Prints a message on standard error
    /// when the host does not answer.
    ///
    /// # Errors
    /// See [`ConnectError`].
    #[allow(clippy::print_stderr)] // for the command line, and the client's log of the server
    pub fn connect_or_start(&self, hello: &Hello) -> Result<Connected, ConnectError> {
        self.connect_or_start_reporting(hello, |text| eprintln!("consort: {}", crate::shown::terminal(text)))
    }

    /// Connects as [`Place::connect_or_start`] does. `report` receives messages for a person during
    /// the wait.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_or_start_reporting(
        &self,
        hello: &Hello,
        mut report: impl FnMut(&str),
    ) -> Result<Connected, ConnectError> {
        let (mut backoff, mut ended) = (RetryBackoff::new(), 0);
        loop {
            match self.try_connect(hello, &mut report, ANSWER_WAIT) {
                Ok(Some(connected)) => return Ok(connected),
                Ok(None) | Err(ConnectError::Absent) => {}
                Err(error) => return Err(error),
            }
            match self.start()? {
                Started::Met => ended = 0,
                Started::Ended => ended += 1,
            }
            if ended == ENDED_AT_ONCE {
                let text = "it ended at once; `consort serve` in the workspace shows why";
                return Err(ConnectError::Start(text.into()));
            }
            match self.try_connect(hello, &mut report, ANSWER_WAIT) {
                Ok(Some(connected)) => return Ok(connected),
                Ok(None) | Err(ConnectError::Absent) if backoff.pause() => {}
                Ok(None) | Err(ConnectError::Absent) => {
                    let log = super::log::path_for(&self.workspace)
                        .map_or_else(String::new, |log| format!("; see {}", log.display()));
                    return Err(ConnectError::Start(format!("it ended again and again before it answered{log}")));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Connects once. Returns `None` if the host that listened left before it answered.
    fn try_connect(
        &self,
        hello: &Hello,
        report: &mut dyn FnMut(&str),
        within: Duration,
    ) -> Result<Option<Connected>, ConnectError> {
        match self.runtime.check() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ConnectError::Absent),
            other => other?,
        }
        let connect = || {
            fault::point(Call::Connect)?;
            UnixStream::connect(self.runtime.socket())
        };
        let mut stream = match connect() {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Err(ConnectError::Absent);
            }
            Err(error) => return Err(with_path(error, &self.runtime.socket()).into()),
        };
        let line = hello::line(hello)?;
        let said = fault::point(Call::Write).and_then(|()| stream.write_all(&line)).and_then(|()| {
            if !framing::is_readable_by(&stream, Instant::now() + NOTE_WAIT)? {
                report(&format!("{}; waiting for it", not_answering(self.pid())));
                if !framing::is_readable_by(&stream, Instant::now() + within.saturating_sub(NOTE_WAIT))? {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            stream.set_read_timeout(Some(ACK_WAIT))?;
            first_line::read_blocking(&mut stream, hello::MAX_LINE)
        });
        let line = match said {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(None),
            Err(error) if framing::is_disconnect(&error) => return Ok(None),
            Err(error) if is_timeout(&error) => return Err(ConnectError::Stuck(not_answering(self.pid()))),
            Err(error) => return Err(error.into()),
        };
        let ack: Ack = serde_json::from_slice(&line).map_err(io::Error::from)?;
        if ack.leaving {
            stream.set_read_timeout(Some(LEAVE_WAIT))?;
            return match stream.read_to_end(&mut Vec::new()) {
                Ok(_) => Ok(None),
                Err(error) if framing::is_disconnect(&error) => Ok(None),
                Err(error) if is_timeout(&error) => Err(ConnectError::Stuck(not_answering(self.pid()))),
                Err(error) => Err(error.into()),
            };
        }
        if !ack.ok {
            return Err(ConnectError::Refused(
                ack.error.unwrap_or_else(|| "the Consort host refused, without a reason".into()),
            ));
        }
        stream.set_read_timeout(None)?;
        Ok(Some(Connected { stream, ack, socket: self.runtime.socket() }))
    }

    /// Starts a host and waits until it, or another, listens.
    fn start(&self) -> Result<Started, ConnectError> {
        let mut command = Command::new(&self.program);
        command
            .args(["serve", "--background", "--workspace"])
            .arg(&self.workspace)
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        search_paths::keep_absolute(&mut command);
        let mut child = fault::point(Call::Spawn).and_then(|()| command.spawn()).map_err(|error| {
            ConnectError::Start(format!("{}: {}", self.program.display(), limits::explained(&error)))
        })?;
        let (sender, receiver) = mpsc::channel();
        let stdout = child.stdout.take();
        // The thread also waits for the end of the host, so that no zombie remains while this
        // process lives.
        std::thread::spawn(move || {
            let line = stdout.map(|mut stdout| first_line::read_blocking(&mut stdout, hello::MAX_LINE));
            if sender.send(line.unwrap_or(Ok(None))).is_err() {
                // The start took too long, and the caller has given up.
                let _ = child.kill();
            }
            let _ = child.wait();
        });
        let line = match receiver.recv_timeout(READY_WAIT) {
            Ok(Ok(Some(line))) => String::from_utf8_lossy(&line).into_owned(),
            // The new host was probably killed before it could write a line, like the one before.
            Ok(Ok(None)) => return Ok(Started::Ended),
            Ok(Err(error)) if framing::is_disconnect(&error) => return Ok(Started::Ended),
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => return Err(ConnectError::Start(format!("it was not ready within {} s", READY_WAIT.as_secs()))),
        };
        match line.trim_end() {
            READY | TAKEN => Ok(Started::Met),
            error => Err(ConnectError::Start(error.into())),
        }
    }

    /// Returns true if the process `pid` is still the host and answers, so that only a connection
    /// to it has ended.
    pub(super) fn is_host(&self, pid: u32) -> bool {
        let hello = Hello { any_version: true, ..Hello::new(super::hello::Protocol::Control) };
        let met = self.try_connect(&hello, &mut |_| {}, NOTE_WAIT);
        matches!(met, Ok(Some(connected)) if connected.ack.host_pid == pid)
    }

    fn pid(&self) -> Option<u32> {
        self.runtime.read_host_file().map(|host| host.pid)
    }
}

/// The result of a host's start.
enum Started {
    /// A host listens, the new one or another.
    Met,
    /// The new host ended without a message.
    Ended,
}

/// The time limit and the pauses of repeated attempts.
struct RetryBackoff {
    until: Instant,
    pause: Duration,
}

impl RetryBackoff {
    fn new() -> RetryBackoff {
        RetryBackoff { until: Instant::now() + ELECTION_TIMEOUT, pause: FIRST_PAUSE }
    }

    /// Waits, longer each time. Returns false when the time limit has passed.
    fn pause(&mut self) -> bool {
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        Instant::now() < self.until
    }
}

/// The line that a new host writes to standard output when it listens.
pub const READY: &str = "ready";
/// The line that a new host writes when the workspace has a host already.
pub const TAKEN: &str = "taken";

/// Returns true when the host at this socket answers a hello, which does not depend on its image.
pub fn answers(socket: &Path) -> bool {
    let ask = || {
        fault::point(Call::Connect)?;
        let mut stream = UnixStream::connect(socket)?;
        let hello = Hello { any_version: true, ..Hello::new(super::hello::Protocol::Control) };
        stream.write_all(&hello::line(&hello)?)?;
        framing::is_readable_by(&stream, Instant::now() + NOTE_WAIT)
    };
    // A host that has ended has closed its connections, which the caller notices.
    ask().unwrap_or(true)
}

/// Returns the message for a person or an agent about a host that does not answer.
pub fn not_answering(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!(
            "the Consort host (process {pid}) does not answer; it may have been stopped: `kill -CONT {pid}` resumes it; `kill -9 {pid}` ends it, and the next use starts another"
        ),
        None => "the Consort host does not answer; end it with `kill -9` and try again".into(),
    }
}

/// Closes both directions of a connection.
pub fn shut_down_connection(stream: &UnixStream) {
    // Fails when the other side closed first.
    let _ = stream.shutdown(Shutdown::Both);
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Returns this program's path, also after an upgrade replaced the file (Linux then reports "PATH
/// (deleted)").
fn this_program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    if path.exists() {
        return Ok(path);
    }
    let replaced = path.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.filter(|path| path.exists()).unwrap_or(path))
}
