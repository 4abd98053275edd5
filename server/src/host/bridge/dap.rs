//! `consort dap`: waits for the client's first request, connects to the workspace's host, then
//! copies bytes.
//!
//! A debugger's connection is about one image. When the host ends, this process ends, too, and the
//! editor reports the end of the session.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use super::frames::Frames;
use super::lines;
use super::protocol::{DAP, quoted};
use crate::framing::json::from_client;
use crate::host::election::{self, Place};
use crate::host::hello::{Hello, Protocol};

/// The size of one read from either side, in bytes.
const READ_SIZE: usize = 1 << 16;

/// Runs until the client or the host leaves.
///
/// # Errors
/// I/O errors on standard input and output, or no host can be reached or started.
pub fn run(workspace: &Path) -> io::Result<ExitCode> {
    DAP.greet_a_person();
    let mut stdin = super::stdin()?;
    let Some(first) = await_first_request(&mut stdin)? else { return Ok(ExitCode::FAILURE) };
    let place = Place::of(workspace)?;
    let connected = place.connect_or_start(&Hello::new(Protocol::Dap)).map_err(io::Error::other)?;
    let mut host = connected.stream;
    let mut up = host.try_clone()?;
    std::thread::spawn(move || {
        // A failure of either end appears as the end of the host's answers.
        let _ = up.write_all(&first).and_then(|()| copy(&mut stdin, &mut up));
        let _ = up.shutdown(std::net::Shutdown::Write);
    });
    let mut stdout = super::stdout()?;
    let (watched, hung) = (stdout.try_clone()?, host.try_clone()?);
    std::thread::spawn(move || {
        if lines::wait_for_reader_to_leave(&watched).is_ok() {
            election::shut_down_connection(&hung);
        }
    });
    copy(&mut host, &mut stdout)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads until the first request is complete. Returns the bytes so far. If the client left or does
/// not speak the protocol, says so and returns `None`: no host is started for such a client.
fn await_first_request(stdin: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let (mut frames, mut bytes, mut piece) = (Frames::default(), Vec::new(), vec![0; READ_SIZE]);
    loop {
        let read = match stdin.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            DAP.refuse_end("the first request", frames.unfinished());
            return Ok(None);
        }
        bytes.extend_from_slice(&piece[..read]);
        let mut first = None;
        let framing = frames.push(&piece[..read], |message| {
            first.get_or_insert_with(|| why_no_request(message));
        });
        match (first, framing) {
            // The host reports errors in the bytes after the first message.
            (Some(None), _) => return Ok(Some(bytes)),
            (Some(Some(why)), _) => DAP.refuse(&why),
            (None, Err(error)) => DAP.refuse(&error.to_string()),
            (None, Ok(())) => continue,
        }
        return Ok(None);
    }
}

/// Returns the reason why a message is no request, if it is none.
fn why_no_request(message: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Request {
        #[serde(rename = "command")]
        _command: String,
    }
    match from_client::<Request>(message) {
        Ok(_) => None,
        Err(error) => Some(format!("the first message is no request ({error}): {}", quoted(message))),
    }
}

/// Copies until the end of file.
fn copy(from: &mut impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut piece = vec![0; READ_SIZE];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(read) => to.write_all(&piece[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
