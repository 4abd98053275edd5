//! `consort mcp`: chooses the workspace, then copies lines.
//!
//! Clients do not restart an MCP server that ends, so this process outlives hosts. When a host
//! ends, every unanswered request is answered with an error. The client's next message starts
//! another host, which gets the client's `initialize` again.

mod asked;
mod roots;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::asked::HostRequests;
use super::lines::{self, Line, Lines};
use super::pending::{Peek, Pending};
use super::protocol::{MCP, quoted};
use crate::fault::{self, Call};
use crate::framing::{self, lines::BlockingLines};
use crate::host::election::{self, Place};
use crate::host::folders::Served;
use crate::host::hello::{Hello, Protocol};
use crate::host::workspace;
use crate::locked::lock;

/// The time limit for the answer to a repeated `initialize`.
const REPEAT_WAIT: Duration = Duration::from_secs(10);
/// The number of hosts that may be killed one after another while the handshake is repeated.
const HANDSHAKES: u32 = 5;
/// The interval between checks that the host answers.
const LIVENESS_INTERVAL: Duration = Duration::from_secs(1);
/// The silence after which these checks begin.
const LIVENESS_DELAY: Duration = Duration::from_secs(3);
/// The interval after an answer in which the host is not checked again.
const RECHECK_DELAY: Duration = Duration::from_secs(4);

/// The state shared by both directions.
#[derive(Debug, Default)]
struct Shared {
    link: Mutex<Link>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Link {
    /// The number of the current connection, which distinguishes its end from the end of an earlier
    /// one.
    number: u64,
    connected: bool,
    pending: Pending,
    /// The host's requests to the client.
    asked: HostRequests,
    /// The requests that the bridge answered for the host. The host's own answers to them are
    /// dropped.
    answered: HashSet<String>,
    /// The time of the last message in either direction.
    last_activity: Option<Instant>,
    /// The current host: its process, its socket, and the connection.
    host: Option<(u32, PathBuf, UnixStream)>,
    /// True once the client has closed its input.
    finishing: bool,
}

impl Link {
    /// Returns the client's answer in the form that the current host expects. Returns `None` if the
    /// host did not ask, or has ended.
    fn answer(&mut self, id: &Value, line: &[u8]) -> Option<Vec<u8>> {
        if self.connected { self.asked.line_for_host(self.number, id, line) } else { None }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Link> {
        lock(&self.link)
    }
}

/// The direction from the client to the host, which also starts hosts.
#[derive(Debug)]
struct Bridge {
    workspace: Option<PathBuf>,
    shared: Arc<Shared>,
    stdout: Arc<Mutex<File>>,
    host: Option<UnixStream>,
    /// The client's `initialize` and `notifications/initialized`, once a host has received them
    /// or the bridge has answered.
    handshake: Handshake,
}

#[derive(Debug, Default)]
struct Handshake {
    initialize: Option<Vec<u8>>,
    initialized: Option<Vec<u8>>,
}

/// Runs until the client leaves. `workspace` is the one given on the command line, canonical.
///
/// # Errors
/// I/O errors on standard input and output; a broken pipe means that the client left.
pub fn run(workspace: Option<PathBuf>) -> io::Result<ExitCode> {
    MCP.greet_a_person();
    let mut lines = Lines::new(super::stdin()?);
    if !begins_with_json(&mut lines)? {
        return Ok(ExitCode::FAILURE);
    }
    let mut bridge = Bridge {
        workspace,
        shared: Arc::default(),
        stdout: Arc::new(Mutex::new(super::stdout()?)),
        host: None,
        handshake: Handshake::default(),
    };
    std::thread::spawn({
        let (shared, stdout) = (bridge.shared.clone(), bridge.stdout.clone());
        move || watch(&shared, &stdout)
    });
    while let Line::Some(line) = lines.next(None)? {
        if bridge.workspace.is_none() {
            for line in roots::choose(&mut bridge, &mut lines, line)? {
                bridge.pass(&line)?;
            }
        } else {
            bridge.pass(&line)?;
        }
    }
    bridge.finish()?;
    Ok(ExitCode::SUCCESS)
}

/// Returns true if the input begins as a JSON-RPC message. Otherwise the input is refused before a
/// host is started, at its first bytes: there may be no line break.
fn begins_with_json(lines: &mut Lines) -> io::Result<bool> {
    let first = lines.first_bytes()?;
    match first.first() {
        Some(b'{' | b'[') => return Ok(true),
        Some(_) => MCP.refuse(&format!("expected a JSON object on each line; got {}", quoted(first))),
        None => MCP.refuse_end("the first message", &[]),
    }
    Ok(false)
}

impl Bridge {
    /// Passes a line of the client on to the host.
    fn pass(&mut self, line: &[u8]) -> io::Result<()> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let peek = Peek::of(line).unwrap_or_default();
        if peek.answer().is_some_and(|id| id == roots::REQUEST_ID) {
            // The answer arrived after the time limit.
            return Ok(());
        }
        let (answer, connected) = {
            let mut link = self.shared.lock();
            match peek.answer() {
                // An answer to a host that is gone does not start another host.
                Some(id) => match link.answer(id, line) {
                    Some(answer) => (Some(answer), true),
                    None => return Ok(()),
                },
                None => (None, link.connected),
            }
        };
        let line = answer.as_deref().unwrap_or(line);
        if !connected && let Err(message) = self.connect() {
            return self.refuse(&peek, &message);
        }
        // A notification is not sent again by itself. So it is repeated at the next host if this
        // host has not received it.
        if peek.method.as_deref() == Some("notifications/initialized") {
            self.handshake.initialized = Some(line.to_vec());
        }
        if !self.expect_answer(&peek) {
            return self.refuse(&peek, &host_lost_message());
        }
        if peek.method.as_deref() == Some("notifications/cancelled")
            && let Some(id) = cancelled(line)
        {
            // Not answered, by the specification.
            self.shared.lock().pending.remove(&id);
        }
        let whole = if line.ends_with(b"\n") { line.to_vec() } else { [line, b"\n"].concat() };
        let write = |host: &mut UnixStream| fault::point(Call::Write).and_then(|()| host.write_all(&whole));
        let failed = self.host.as_mut().is_some_and(|host| write(host).is_err());
        if !failed {
            self.note_initialize(&peek, line);
            return Ok(());
        }
        // The host has ended without this message. The next host gets a request, unless the request
        // has been answered already.
        let mine = match peek.request() {
            Some((id, _)) => self.shared.lock().pending.remove(id).is_some(),
            None => false,
        };
        self.host.as_ref().inspect(|host| election::shut_down_connection(host));
        self.await_end();
        if !mine {
            return Ok(());
        }
        if let Err(message) = self.connect() {
            return self.refuse(&peek, &message);
        }
        if !self.expect_answer(&peek) {
            return self.refuse(&peek, &host_lost_message());
        }
        // A second failure in a row is answered by the other direction.
        let _ = self.host.as_mut().map(|host| host.write_all(&whole));
        self.note_initialize(&peek, line);
        Ok(())
    }

    /// Keeps an `initialize` that was sent to a host, to repeat it at the next host. If it was kept
    /// earlier, a host that takes the place of one that ended would get it twice.
    fn note_initialize(&mut self, peek: &Peek<'_>, line: &[u8]) {
        if peek.method.as_deref() == Some("initialize") {
            self.handshake.initialize = Some(line.to_vec());
        }
    }

    /// Records a request that the host is to answer. Returns false if `peek` is a request and the
    /// host has ended.
    fn expect_answer(&self, peek: &Peek) -> bool {
        let Some((id, method)) = peek.request() else { return true };
        let mut link = self.shared.lock();
        if link.connected {
            link.pending.insert(id, method);
            link.last_activity = Some(Instant::now());
        }
        link.connected
    }

    /// Waits until the other direction has noticed the host's end.
    fn await_end(&self) {
        let mut link = self.shared.lock();
        while link.connected {
            link = self.shared.changed.wait(link).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Connects to the workspace's host, repeats the client's handshake there, and starts to copy
    /// the host's lines.
    fn connect(&mut self) -> Result<(), String> {
        let workspace = self.workspace.as_ref().ok_or("no workspace was chosen")?;
        // Determined at each connection, since an editor's host that has this directory among its
        // folders may start or end meanwhile.
        let (workspace, folder) = match workspace::host_serving_folder(workspace) {
            Some(Served { workspace, folder }) => (workspace, Some(folder)),
            None => (workspace.clone(), None),
        };
        let place = Place::of(&workspace).map_err(|error| error.to_string())?;
        let hello = Hello { folder, ..Hello::new(Protocol::Mcp) };
        let mut tries = 0;
        let (host, from_host, pid, number) = loop {
            let connected = place.connect_or_start(&hello).map_err(|error| error.to_string())?;
            let mut host = connected.stream;
            let mut from_host = BlockingLines::new(host.try_clone().map_err(|error| error.to_string())?);
            tries += 1;
            let number = self.next_number();
            let repeated = self.repeat_handshake(number, &mut host, &mut from_host);
            if repeated.is_err() {
                withdraw(&mut self.shared.lock(), number, &self.stdout);
            }
            match repeated {
                Ok(()) => break (host, from_host, connected.ack.host_pid, number),
                // The new host was killed too, just after it accepted the connection.
                Err(_) if tries < HANDSHAKES => {}
                Err(error) => return Err(not_taken_up(connected.ack.host_pid, &place, &error)),
            }
        };
        {
            let mut link = self.shared.lock();
            link.connected = true;
            link.answered.clear();
            link.host = host.try_clone().ok().map(|stream| (pid, place.runtime.socket(), stream));
        }
        let (shared, stdout) = (self.shared.clone(), self.stdout.clone());
        std::thread::spawn(move || copy_down(from_host, number, &shared, &stdout, || place.is_host(pid)));
        self.host = Some(host);
        Ok(())
    }

    fn next_number(&self) -> u64 {
        let mut link = self.shared.lock();
        link.number += 1;
        link.number
    }

    /// Repeats the handshake on a connection. The answer is not passed on, since the client already
    /// has one.
    fn repeat_handshake(
        &self,
        number: u64,
        host: &mut UnixStream,
        from_host: &mut BlockingLines<UnixStream>,
    ) -> io::Result<()> {
        let Some(initialize) = &self.handshake.initialize else { return Ok(()) };
        let id = Peek::of(initialize).and_then(|peek| peek.id);
        fault::point(Call::Write)?;
        host.write_all(initialize)?;
        host.set_read_timeout(Some(REPEAT_WAIT))?;
        loop {
            let line = from_host.next()?.ok_or(io::ErrorKind::UnexpectedEof)?;
            if Peek::of(&line).is_some_and(|peek| peek.answer().is_some() && peek.answer() == id.as_ref()) {
                break;
            }
            let changed = self.shared.lock().asked.line_for_client(number, &line);
            write_line(&self.stdout, changed.as_deref().unwrap_or(&line))?;
        }
        host.set_read_timeout(None)?;
        match &self.handshake.initialized {
            Some(initialized) => host.write_all(initialized),
            None => Ok(()),
        }
    }

    /// Answers a request for the host, with an error.
    fn refuse(&self, peek: &Peek<'_>, message: &str) -> io::Result<()> {
        match peek.request() {
            Some((id, method)) => self.answer(&failure(id, method, message)),
            None => Ok(()),
        }
    }

    fn answer(&self, answer: &Value) -> io::Result<()> {
        write_line(&self.stdout, format!("{answer}\n").as_bytes())
    }

    /// Lets the host finish its pending requests after the client's input has ended, unless the
    /// client no longer reads.
    fn finish(mut self) -> io::Result<()> {
        let Some(host) = self.host.take() else { return Ok(()) };
        // Fails if the host has ended, and nothing needs to be done then.
        let _ = host.shutdown(std::net::Shutdown::Write);
        let stdout = lock(&self.stdout).try_clone()?;
        std::thread::spawn(move || {
            if lines::wait_for_reader_to_leave(&stdout).is_ok() {
                election::shut_down_connection(&host);
            }
        });
        self.shared.lock().finishing = true;
        self.await_end();
        Ok(())
    }
}

/// Answers the pending requests when the host does not answer at all. An agent has no other way to
/// notice this, and may have other work.
#[allow(clippy::print_stderr)] // printed to the client's log of the server
fn watch(shared: &Shared, stdout: &Mutex<File>) {
    loop {
        std::thread::sleep(LIVENESS_INTERVAL);
        let host = {
            let link = shared.lock();
            let waits = link.connected
                && (link.finishing || !link.pending.is_empty())
                && link.last_activity.is_some_and(|at| at.elapsed() >= LIVENESS_DELAY);
            if waits { link.host.as_ref().map(|(pid, socket, _)| (*pid, socket.clone(), link.number)) } else { None }
        };
        let Some((pid, socket, number)) = host else { continue };
        if election::answers(&socket) {
            std::thread::sleep(RECHECK_DELAY);
            continue;
        }
        let mut link = shared.lock();
        if link.number != number || !link.connected {
            continue;
        }
        let why = format!(
            "{}. This call may still be carried out when the host answers again: check before you repeat it.",
            election::not_answering(Some(pid))
        );
        eprintln!("consort mcp: {}", crate::shown::terminal(&why));
        for (id, method) in link.pending.take() {
            link.answered.insert(id.to_string());
            // Fails when the client has left.
            let _ = write_line(stdout, format!("{}\n", failure(&id, &method, &why)).as_bytes());
        }
        if link.finishing
            && let Some((_, _, stream)) = &link.host
        {
            election::shut_down_connection(stream);
        }
    }
}

/// Copies the host's lines until the connection ends. Then answers the pending requests, with
/// another message if the host has not ended.
fn copy_down(
    mut from_host: BlockingLines<UnixStream>,
    number: u64,
    shared: &Shared,
    stdout: &Mutex<File>,
    is_host: impl Fn() -> bool,
) {
    // An incomplete line comes from a host that was killed while writing and is dropped.
    while let Ok(Some(line)) = from_host.next() {
        let late = {
            let mut link = shared.lock();
            link.last_activity = Some(Instant::now());
            let answered = Peek::of(&line).as_ref().and_then(Peek::answer).map(ToString::to_string);
            answered.is_some_and(|id| link.answered.remove(&id))
        };
        if late {
            continue;
        }
        let changed = shared.lock().asked.line_for_client(number, &line);
        if write_line(stdout, changed.as_deref().unwrap_or(&line)).is_err() {
            // The client does not read any more, so all pending work is useless. Closing the
            // connection interrupts it.
            std::process::exit(0);
        }
        if let Some(id) = Peek::of(&line).as_ref().and_then(Peek::answer) {
            shared.lock().pending.remove(id);
        }
    }
    let why = if is_host() { CONNECTION_BROKE.into() } else { host_lost_message() };
    let mut link = shared.lock();
    withdraw(&mut link, number, stdout);
    if link.number != number {
        return;
    }
    for (id, method) in link.pending.take() {
        // Fails when the client has left.
        let _ = write_line(stdout, format!("{}\n", failure(&id, &method, &why)).as_bytes());
    }
    link.connected = false;
    link.host = None;
    shared.changed.notify_all();
}

/// Cancels, at the client, the requests of a connection that has ended.
fn withdraw(link: &mut Link, number: u64, stdout: &Mutex<File>) {
    for withdrawn in link.asked.withdraw(number, CONNECTION_ENDED) {
        // Fails when the client has left.
        let _ = write_line(stdout, &withdrawn);
    }
}

fn write_line(stdout: &Mutex<File>, line: &[u8]) -> io::Result<()> {
    lock(stdout).write_all(line)
}

fn cancelled(line: &[u8]) -> Option<Value> {
    let message: Value = serde_json::from_slice(line).ok()?;
    message.get("params")?.get("requestId").cloned()
}

/// The reason given when a host's request is cancelled.
const CONNECTION_ENDED: &str = "the connection to the Consort host ended";
/// The message about a connection that has ended although the host runs.
const CONNECTION_BROKE: &str = "The connection to the Consort host broke during this call; the host and the image still run. The call may have been carried out: \
                   check before you repeat it. The next call connects again.";

fn host_lost_message() -> String {
    "The Consort host ended while it worked on this, and the Lisp image with it. Definitions and values that exist only in the image are lost; files \
     are as they were. The next call starts a new host and image: load what you need again, then repeat the call."
        .into()
}

/// Returns a failure: for a tool a result, which agents read, and for any other request an error.
fn failure(id: &Value, method: &str, message: &str) -> Value {
    if method == "tools/call" {
        let content = json!([{"type": "text", "text": message}]);
        json!({"jsonrpc": "2.0", "id": id, "result": {"content": content, "isError": true}})
    } else {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": message}})
    }
}

/// Returns a message about a host that accepted a connection and then did not serve it.
fn not_taken_up(pid: u32, place: &Place, error: &io::Error) -> String {
    let why = if framing::is_disconnect(error) { "it closed the connection".to_owned() } else { error.to_string() };
    let log = place.runtime.read_host_file().and_then(|host| host.log);
    let log = log.map_or_else(String::new, |log| format!("; its log, {}, may say why", log.display()));
    format!("the Consort host (process {pid}) did not take the session up again: {why}{log}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const QUESTION: &str = r#"{"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": {}}"#;

    #[test]
    fn an_answer_goes_to_no_host_when_the_one_that_asked_has_ended() {
        let mut link = Link { number: 1, connected: true, ..Link::default() };
        let asked: Value =
            serde_json::from_slice(&link.asked.line_for_client(1, QUESTION.as_bytes()).unwrap()).unwrap();
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}).to_string();
        link.connected = false;
        assert_eq!(link.answer(&asked["id"], answer.as_bytes()), None, "between two hosts");
        (link.number, link.connected) = (2, true);
        assert_eq!(link.answer(&asked["id"], answer.as_bytes()), None, "the next host");
        link.number = 1;
        assert!(link.answer(&asked["id"], answer.as_bytes()).is_some());
    }

    /// Returns a bridge without a host that writes to a file.
    fn bridge(written: &tempfile::NamedTempFile) -> Bridge {
        Bridge {
            workspace: None,
            shared: Arc::default(),
            stdout: Arc::new(Mutex::new(written.reopen().unwrap())),
            host: None,
            handshake: Handshake::default(),
        }
    }

    /// A host that takes the place of one that ended gets an `initialize` as a part of the repeated
    /// handshake, or by itself, but not both.
    #[test]
    fn an_initialize_that_no_host_received_is_not_repeated() {
        const INITIALIZE: &[u8] = b"{\"id\": 5, \"method\": \"initialize\"}\n";
        let written = tempfile::NamedTempFile::new().unwrap();
        let mut bridge = bridge(&written);
        let (host, end) = UnixStream::pair().unwrap();
        let mut copy = host.try_clone().unwrap();
        bridge.host = Some(host);
        bridge.shared.lock().connected = true;
        // Fails writes to the connection.
        end.shutdown(std::net::Shutdown::Read).unwrap();
        let shared = bridge.shared.clone();
        let noticed = std::thread::spawn(move || {
            let ended = std::io::Read::read(&mut copy, &mut [0]);
            shared.lock().connected = false;
            shared.changed.notify_all();
            ended
        });
        // There is no workspace, so no other host is started.
        bridge.pass(INITIALIZE).unwrap();
        assert_eq!(noticed.join().unwrap().unwrap(), 0);
        assert_eq!(bridge.handshake.initialize, None);
        assert!(std::fs::read_to_string(written.path()).unwrap().contains("no workspace was chosen"));

        let (host, _end) = UnixStream::pair().unwrap();
        bridge.host = Some(host);
        bridge.shared.lock().connected = true;
        bridge.pass(INITIALIZE).unwrap();
        assert_eq!(bridge.handshake.initialize.as_deref(), Some(INITIALIZE));
    }

    #[test]
    fn a_question_beside_the_repeated_handshake_has_an_id_of_the_bridge() {
        let written = tempfile::NamedTempFile::new().unwrap();
        let initialize = Some(b"{\"id\": 5, \"method\": \"initialize\"}\n".to_vec());
        let bridge = Bridge { handshake: Handshake { initialize, initialized: None }, ..bridge(&written) };
        let (mut host, mut end) = UnixStream::pair().unwrap();
        end.write_all(format!("{QUESTION}\n{{\"id\": 5, \"result\": {{}}}}\n").as_bytes()).unwrap();
        let mut from_host = BlockingLines::new(host.try_clone().unwrap());
        bridge.repeat_handshake(3, &mut host, &mut from_host).unwrap();
        withdraw(&mut bridge.shared.lock(), 3, &bridge.stdout);
        let told = std::fs::read_to_string(written.path()).unwrap();
        let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!((&told[0]["method"], &told[0]["id"]), (&json!("elicitation/create"), &json!("3-0")));
        assert_eq!(told[1]["params"]["requestId"], "3-0");
    }
}
