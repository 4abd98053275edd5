//! Find the workspace's host, or start it: however many start one at the same moment, one comes to be, and all meet there.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::hello::{self, Ack, Hello};
use super::runtime_dir::RuntimeDir;

/// A host answers a hello at once, whatever its image does; one that does not within this time is stuck.
const ACK_WAIT: Duration = Duration::from_secs(10);
/// Whoever needs the host waits longer for one that is stuck: it may have been stopped and go on.
const ANSWER_WAIT: Duration = Duration::from_secs(60);
/// How long until a person is told that the host does not answer.
const NOTE_WAIT: Duration = Duration::from_secs(4);
/// New hosts that end without a word, one after another, before that is taken for a fault.
const ENDED_AT_ONCE: u32 = 4;
/// A new host says that it is ready before it starts its image, so this is only for a machine that is very busy.
const READY_WAIT: Duration = Duration::from_secs(30);
/// A host that leaves ends its image first; this is longer than that may take.
const LEAVE_WAIT: Duration = Duration::from_secs(30);
/// A host may leave or be killed between its answer and our next step. After so long it is not chance.
const MEET_WAIT: Duration = Duration::from_secs(30);
/// Between two tries that failed, at first and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));

/// An open door of a host.
#[derive(Debug)]
pub struct Connected {
    /// What follows is the door's own protocol.
    pub stream: UnixStream,
    /// What the host said.
    pub ack: Ack,
    /// Where the host listens.
    pub socket: PathBuf,
}

/// Why there is no open door.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No host listens.
    #[error("no Consort host runs for this workspace")]
    Absent,
    /// The host refused, in its own words.
    #[error("{0}")]
    Refused(String),
    /// The host listens and does not answer.
    #[error("{0}")]
    Stuck(String),
    /// A host could not be started.
    #[error("the Consort host could not be started: {0}")]
    Start(String),
    /// The system's.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Where a workspace's host is, and how it would be started.
#[derive(Debug, Clone)]
pub struct Place {
    /// The workspace, canonical.
    pub workspace: PathBuf,
    /// Its runtime directory.
    pub runtime: RuntimeDir,
    /// The program whose `serve` is the host.
    pub program: PathBuf,
}

impl Place {
    /// The place of `workspace` (canonical), whose host is this program.
    ///
    /// # Errors
    /// When no private runtime directory can be named, or this program's own path is not known.
    pub fn of(workspace: &Path) -> io::Result<Place> {
        Ok(Place { workspace: workspace.into(), runtime: RuntimeDir::of(workspace)?, program: this_program()? })
    }

    /// Open a door of the host that runs.
    ///
    /// # Errors
    /// [`ConnectError::Absent`] when none runs.
    pub fn connect(&self, hello: &Hello) -> Result<Connected, ConnectError> {
        let mut patience = Patience::new();
        loop {
            if let Some(connected) = self.try_connect(hello, &mut |_| {}, ACK_WAIT)? {
                return Ok(connected);
            }
            if !patience.pause() {
                return Err(ConnectError::Absent);
            }
        }
    }

    /// Open a door of the host, after starting one if none runs. A person is told on standard error when the host does not answer.
    ///
    /// # Errors
    /// See [`ConnectError`].
    #[allow(clippy::print_stderr)] // the command line's, and the client's log of the server
    pub fn connect_or_start(&self, hello: &Hello) -> Result<Connected, ConnectError> {
        self.connect_or_start_telling(hello, |text| eprintln!("consort: {text}"))
    }

    /// [`Place::connect_or_start`]; `tell` is given what a person should know while it is waited for.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_or_start_telling(
        &self,
        hello: &Hello,
        mut tell: impl FnMut(&str),
    ) -> Result<Connected, ConnectError> {
        let (mut patience, mut ended) = (Patience::new(), 0);
        loop {
            match self.try_connect(hello, &mut tell, ANSWER_WAIT) {
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
            match self.try_connect(hello, &mut tell, ANSWER_WAIT) {
                Ok(Some(connected)) => return Ok(connected),
                Ok(None) | Err(ConnectError::Absent) if patience.pause() => {}
                Ok(None) | Err(ConnectError::Absent) => {
                    let log = super::log::path_for(&self.workspace)
                        .map_or_else(String::new, |log| format!("; see {}", log.display()));
                    return Err(ConnectError::Start(format!("it ended again and again before it answered{log}")));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// `None`: the host that listened left before it answered.
    fn try_connect(
        &self,
        hello: &Hello,
        tell: &mut dyn FnMut(&str),
        within: Duration,
    ) -> Result<Option<Connected>, ConnectError> {
        match self.runtime.check() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ConnectError::Absent),
            other => other?,
        }
        let mut stream = match UnixStream::connect(self.runtime.socket()) {
            Ok(stream) => stream,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                return Err(ConnectError::Absent);
            }
            Err(error) => return Err(error.into()),
        };
        let said = stream.write_all(&hello::line(hello)?).and_then(|()| {
            if !is_readable_within(&stream, NOTE_WAIT)? {
                tell(&format!("{}; waiting for it", not_answering(self.pid())));
                if !is_readable_within(&stream, within.saturating_sub(NOTE_WAIT))? {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            stream.set_read_timeout(Some(ACK_WAIT))?;
            hello::read_line(&mut stream)
        });
        let line = match said {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(None),
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) if is_timeout(&error) => return Err(ConnectError::Stuck(not_answering(self.pid()))),
            Err(error) => return Err(error.into()),
        };
        let ack: Ack = serde_json::from_slice(&line).map_err(io::Error::from)?;
        if ack.leaving {
            stream.set_read_timeout(Some(LEAVE_WAIT))?;
            return match stream.read_to_end(&mut Vec::new()) {
                Ok(_) => Ok(None),
                Err(error) if is_gone(&error) => Ok(None),
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

    /// Start a host and wait until it listens, or another does.
    fn start(&self) -> Result<Started, ConnectError> {
        let mut child = Command::new(&self.program)
            .args(["serve", "--background", "--workspace"])
            .arg(&self.workspace)
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| ConnectError::Start(format!("{}: {error}", self.program.display())))?;
        let (sender, receiver) = mpsc::channel();
        let stdout = child.stdout.take();
        // Waits for the host's end too, so that a host which this process outlives does not stay as a zombie.
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = stdout.map(|stdout| BufReader::new(stdout).read_line(&mut line));
            if sender.send(read.unwrap_or(Ok(0)).map(|_| line)).is_err() {
                // Nobody waits any more: it took too long.
                let _ = child.kill();
            }
            let _ = child.wait();
        });
        let line = match receiver.recv_timeout(READY_WAIT) {
            Ok(line) => line?,
            Err(_) => return Err(ConnectError::Start(format!("it was not ready within {} s", READY_WAIT.as_secs()))),
        };
        match line.trim_end() {
            READY | TAKEN => Ok(Started::Met),
            // Killed before it could say anything, perhaps, as the one before it was.
            "" => Ok(Started::Ended),
            error => Err(ConnectError::Start(error.into())),
        }
    }

    fn pid(&self) -> Option<u32> {
        self.runtime.read_host_file().map(|host| host.pid)
    }
}

/// How the start of a host went.
enum Started {
    /// There was one that listened, the new one or another.
    Met,
    /// It ended without a word.
    Ended,
}

/// Tries that are made until it is no chance any more that they fail.
struct Patience {
    until: Instant,
    pause: Duration,
}

impl Patience {
    fn new() -> Patience {
        Patience { until: Instant::now() + MEET_WAIT, pause: PAUSE.0 }
    }

    /// Wait a little, longer each time; whether another try is worth it.
    fn pause(&mut self) -> bool {
        std::thread::sleep(self.pause);
        self.pause = (self.pause * 2).min(PAUSE.1);
        Instant::now() < self.until
    }
}

/// What a new host writes on its standard output when it listens.
pub const READY: &str = "ready";
/// What it writes when the workspace has a host already.
pub const TAKEN: &str = "taken";

/// Whether the host at this socket answers a hello, which it does whatever its image is doing.
pub fn answers(socket: &Path) -> bool {
    let ask = || {
        let mut stream = UnixStream::connect(socket)?;
        let hello = Hello { any_version: true, ..Hello::new(super::hello::Protocol::Control) };
        stream.write_all(&hello::line(&hello)?)?;
        is_readable_within(&stream, NOTE_WAIT)
    };
    // One that is gone has closed its connections: that is seen there.
    ask().unwrap_or(true)
}

/// What a person or an agent is told of a host that does not answer.
pub fn not_answering(pid: Option<u32>) -> String {
    match pid {
        Some(pid) => format!(
            "the Consort host (process {pid}) does not answer; it may have been stopped: `kill -CONT {pid}` has it go on, `kill -9 {pid}` ends it, and the next use starts another"
        ),
        None => "the Consort host does not answer; end it with `kill -9` and try again".into(),
    }
}

fn is_readable_within(stream: &UnixStream, wait: Duration) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let deadline = Instant::now() + wait;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(stream, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// End the other side's reading and ours.
pub fn hang_up(stream: &UnixStream) {
    // It may have hung up first.
    let _ = stream.shutdown(Shutdown::Both);
}

fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// This program's path, also after it was replaced by an upgrade (Linux then says "PATH (deleted)").
fn this_program() -> io::Result<PathBuf> {
    let path = std::env::current_exe()?;
    if path.exists() {
        return Ok(path);
    }
    let replaced = path.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.filter(|path| path.exists()).unwrap_or(path))
}
