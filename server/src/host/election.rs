//! Find the workspace's host, or start it: however many start one at the same moment, one comes to be, and all meet there.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::hello::{self, Ack, Hello};
use super::runtime_dir::RuntimeDir;

/// A host answers a hello at once, whatever its image does; one that does not within this time is stuck.
const ACK_WAIT: Duration = Duration::from_secs(10);
/// A new host says that it is ready before it starts its image, so this is only for a machine that is very busy.
const READY_WAIT: Duration = Duration::from_secs(30);
/// A host that leaves ends its image first; this is longer than that may take.
const LEAVE_WAIT: Duration = Duration::from_secs(30);
/// A host may leave between its answer and our next step; meeting that often in a row is not chance.
const TRIES: usize = 5;

/// An open door of a host.
#[derive(Debug)]
pub struct Connected {
    /// What follows is the door's own protocol.
    pub stream: UnixStream,
    /// What the host said.
    pub ack: Ack,
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
    #[error("the Consort host{0} does not answer; end it with `kill -9` and try again")]
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
        for _ in 0..TRIES {
            if let Some(connected) = self.try_connect(hello)? {
                return Ok(connected);
            }
        }
        Err(ConnectError::Absent)
    }

    /// Open a door of the host, after starting one if none runs.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect_or_start(&self, hello: &Hello) -> Result<Connected, ConnectError> {
        for _ in 0..TRIES {
            match self.try_connect(hello) {
                Ok(Some(connected)) => return Ok(connected),
                Ok(None) | Err(ConnectError::Absent) => self.start()?,
                Err(error) => return Err(error),
            }
        }
        let log =
            super::log::path_for(&self.workspace).map_or_else(String::new, |log| format!("; see {}", log.display()));
        Err(ConnectError::Start(format!("it ended again and again before it answered{log}")))
    }

    /// `None`: the host that listened left before it answered.
    fn try_connect(&self, hello: &Hello) -> Result<Option<Connected>, ConnectError> {
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
        stream.set_read_timeout(Some(ACK_WAIT))?;
        let line = match stream.write_all(&hello::line(hello)?).and_then(|()| hello::read_line(&mut stream)) {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(None),
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) if is_timeout(&error) => return Err(ConnectError::Stuck(self.pid_note())),
            Err(error) => return Err(error.into()),
        };
        let ack: Ack = serde_json::from_slice(&line).map_err(io::Error::from)?;
        if ack.leaving {
            stream.set_read_timeout(Some(LEAVE_WAIT))?;
            return match stream.read_to_end(&mut Vec::new()) {
                Ok(_) => Ok(None),
                Err(error) if is_gone(&error) => Ok(None),
                Err(error) if is_timeout(&error) => Err(ConnectError::Stuck(self.pid_note())),
                Err(error) => Err(error.into()),
            };
        }
        if !ack.ok {
            return Err(ConnectError::Refused(
                ack.error.unwrap_or_else(|| "the Consort host refused, without a reason".into()),
            ));
        }
        stream.set_read_timeout(None)?;
        Ok(Some(Connected { stream, ack }))
    }

    /// Start a host and wait until it listens, or another does.
    fn start(&self) -> Result<(), ConnectError> {
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
            READY | TAKEN => Ok(()),
            "" => Err(ConnectError::Start("it ended at once; `consort serve` in the workspace shows why".into())),
            error => Err(ConnectError::Start(error.into())),
        }
    }

    fn pid_note(&self) -> String {
        self.runtime.read_host_file().map_or_else(String::new, |host| format!(" (process {})", host.pid))
    }
}

/// What a new host writes on its standard output when it listens.
pub const READY: &str = "ready";
/// What it writes when the workspace has a host already.
pub const TAKEN: &str = "taken";

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
