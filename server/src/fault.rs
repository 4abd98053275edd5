//! Failures of system calls on request, for tests. In debug builds `CONSORT_FAULT=open:7:EMFILE`
//! has the seventh open of each process fail; `serve/open:7` only those of `consort serve`. In
//! release builds [`point`] does nothing.
//!
//! `CONSORT_FAULT_RECORD` names a file that is created when the failure is made, and says the
//! subcommand, the call, its number and its place in the source. Nothing fails while it exists, so
//! that one process of a scenario fails, and not the next one in its place.

#[cfg(not(debug_assertions))]
use std::io;

/// The kinds of calls that are counted, each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// A file is opened, or a directory, pipe or socket pair created.
    Open,
    /// A file or a connection is written.
    Write,
    /// A socket is connected.
    Connect,
    /// A socket is bound.
    Bind,
    /// A process is started.
    Spawn,
    /// The image is asked for a copy.
    Fork,
}

/// Fails when this call is the one that `CONSORT_FAULT` names.
///
/// # Errors
/// The error that `CONSORT_FAULT` names, or the usual one of such a call.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub(crate) fn point(_: Call) -> io::Result<()> {
    Ok(())
}

#[cfg(debug_assertions)]
pub(crate) use wanted::point;

#[cfg(debug_assertions)]
mod wanted {
    use std::io::{self, Write};
    use std::panic::Location;
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use rustix::io::Errno;

    use crate::fault::Call;

    /// The failure that the environment asks for.
    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct Fault {
        /// The subcommand whose process fails; `None`: every process.
        pub(super) role: Option<String>,
        pub(super) call: Call,
        /// The number of the call, from 1.
        pub(super) number: u64,
        pub(super) error: Errno,
    }

    static FAULT: LazyLock<Option<Fault>> = LazyLock::new(|| {
        let text = std::env::var("CONSORT_FAULT").ok()?;
        let fault = parse(&text);
        if fault.is_none() {
            tracing::error!("CONSORT_FAULT={text} is not of the form [SUBCOMMAND/]CALL:NUMBER[:ERRNO]");
        }
        fault.filter(|fault| fault.role.is_none() || fault.role == role())
    });
    static CALLS: AtomicU64 = AtomicU64::new(0);

    /// Returns the subcommand of this process.
    fn role() -> Option<String> {
        std::env::args().nth(1)
    }

    /// See the release build's function of this name.
    #[track_caller]
    pub(crate) fn point(call: Call) -> io::Result<()> {
        let Some(fault) = FAULT.as_ref().filter(|fault| fault.call == call) else { return Ok(()) };
        if CALLS.fetch_add(1, Ordering::Relaxed) + 1 != fault.number {
            return Ok(());
        }
        match record(fault, Location::caller()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(fault.error.into()),
        }
    }

    /// Writes the file that the test reads, unless it is there.
    fn record(fault: &Fault, place: &Location<'_>) -> io::Result<()> {
        let Some(path) = std::env::var_os("CONSORT_FAULT_RECORD") else { return Ok(()) };
        let mut file = std::fs::File::options().create_new(true).write(true).open(path)?;
        writeln!(file, "{} {:?}:{} {place}", role().unwrap_or_default(), fault.call, fault.number)
    }

    /// Reads `[SUBCOMMAND/]CALL:NUMBER[:ERRNO]`.
    pub(super) fn parse(text: &str) -> Option<Fault> {
        let (role, rest) = match text.split_once('/') {
            Some((role, rest)) => (Some(role.to_owned()), rest),
            None => (None, text),
        };
        let mut parts = rest.split(':');
        let (call, usual) = match parts.next()? {
            "open" => (Call::Open, Errno::MFILE),
            "write" => (Call::Write, Errno::NOSPC),
            "connect" => (Call::Connect, Errno::MFILE),
            "bind" => (Call::Bind, Errno::NOSPC),
            "spawn" => (Call::Spawn, Errno::AGAIN),
            "fork" => (Call::Fork, Errno::AGAIN),
            _ => return None,
        };
        let number = parts.next()?.parse().ok().filter(|number| *number > 0)?;
        let error = match parts.next() {
            None => usual,
            Some("EMFILE") => Errno::MFILE,
            Some("ENOSPC") => Errno::NOSPC,
            Some("EACCES") => Errno::ACCESS,
            Some("EAGAIN") => Errno::AGAIN,
            Some("ENOMEM") => Errno::NOMEM,
            Some("EIO") => Errno::IO,
            Some("EPIPE") => Errno::PIPE,
            Some("ECONNREFUSED") => Errno::CONNREFUSED,
            Some(_) => return None,
        };
        parts.next().is_none().then_some(Fault { role, call, number, error })
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use rustix::io::Errno;

    use super::wanted::{Fault, parse};
    use super::*;

    #[test]
    fn a_fault_is_named_by_process_call_number_and_error() {
        let fault = |role: Option<&str>, call, number, error| {
            Some(Fault { role: role.map(str::to_owned), call, number, error })
        };
        assert_eq!(parse("open:7"), fault(None, Call::Open, 7, Errno::MFILE));
        assert_eq!(parse("serve/write:1:EIO"), fault(Some("serve"), Call::Write, 1, Errno::IO));
        assert_eq!(parse("lsp/spawn:12"), fault(Some("lsp"), Call::Spawn, 12, Errno::AGAIN));
        for wrong in ["", "open", "open:0", "open:x", "close:1", "open:1:EWHAT", "open:1:EIO:2"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nothing_fails_that_was_not_asked_for() {
        assert!((0..100).all(|_| point(Call::Open).is_ok()));
    }
}
