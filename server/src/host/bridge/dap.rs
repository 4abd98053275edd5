//! `consort dap`: connects to the workspace's host, then copies bytes.
//!
//! A debugger's connection is about one image. When the host ends, this process ends, too, and the
//! editor reports the end of the session.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use super::lines;
use crate::host::election::{self, Place};
use crate::host::hello::{Hello, Protocol};

/// The size of one read from either side, in bytes.
const READ_SIZE: usize = 1 << 16;

/// Runs until the client or the host leaves.
///
/// # Errors
/// I/O errors on standard input and output, or no host can be reached or started.
pub fn run(workspace: &Path) -> io::Result<ExitCode> {
    super::greet_a_person("the Debug Adapter Protocol", "dap");
    let place = Place::of(workspace)?;
    let connected = place.connect_or_start(&Hello::new(Protocol::Dap)).map_err(io::Error::other)?;
    let mut host = connected.stream;
    let (mut up, mut stdin) = (host.try_clone()?, super::stdin()?);
    std::thread::spawn(move || {
        // A failure of either end appears as the end of the host's answers.
        let _ = copy(&mut stdin, &mut up);
        let _ = up.shutdown(std::net::Shutdown::Write);
    });
    let mut stdout = super::stdout()?;
    let (watched, hung) = (stdout.try_clone()?, host.try_clone()?);
    std::thread::spawn(move || {
        if lines::wait_for_reader_to_leave(&watched).is_ok() {
            election::hang_up(&hung);
        }
    });
    copy(&mut host, &mut stdout)?;
    Ok(ExitCode::SUCCESS)
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
