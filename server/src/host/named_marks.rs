//! Names that editors' bridges hold while they may have documents, independent of files: the mark
//! of a bridge when the runtime directory was removed (see [`super::reopening`]).
//!
//! Linux has such names (unix(7), "abstract"). On other systems there are none.

use std::io;

use super::runtime_dir::RuntimeDir;

/// A held name, freed when dropped and at the end of the process.
#[derive(Debug)]
pub(super) struct NamedMark {
    #[cfg(target_os = "linux")]
    #[allow(dead_code, reason = "it holds the name")]
    name: std::os::unix::net::UnixListener,
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::*;

    impl NamedMark {
        pub(in crate::host) fn make(_: &RuntimeDir) -> io::Result<NamedMark> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    pub(in crate::host) fn held(_: &RuntimeDir) -> Vec<String> {
        Vec::new()
    }

    pub(in crate::host) fn are_free(_: &[String]) -> bool {
        true
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::fault::{self, Call};
    use crate::host::claim;

    impl NamedMark {
        /// Takes a name of this process for the workspace.
        ///
        /// # Errors
        /// The system permits no name.
        pub(in crate::host) fn make(runtime: &RuntimeDir) -> io::Result<NamedMark> {
            static LAST: AtomicU64 = AtomicU64::new(0);
            let number = LAST.fetch_add(1, Ordering::Relaxed);
            let address = SocketAddr::from_abstract_name(format!("{}{}-{number}", start(runtime), std::process::id()))?;
            fault::point(Call::Bind)?;
            Ok(NamedMark { name: UnixListener::bind_addr(&address)? })
        }
    }

    /// Returns what all names of bridges of the workspace start with.
    fn start(runtime: &RuntimeDir) -> String {
        format!("{}-documents-", claim::name(runtime))
    }

    /// Returns the names that processes of this user hold.
    pub(in crate::host) fn held(runtime: &RuntimeDir) -> Vec<String> {
        let start = start(runtime);
        let mut names: Vec<String> = all().into_iter().filter(|name| name.starts_with(&start)).collect();
        // A name of which a connection was not accepted is listed twice.
        names.sort_unstable();
        names.dedup();
        names.retain(|name| claim::may_be_held(name));
        names
    }

    /// Returns true if none of the names is held.
    pub(in crate::host) fn are_free(names: &[String]) -> bool {
        names.is_empty() || !all().iter().any(|name| names.contains(name))
    }

    /// Returns the names that there are.
    fn all() -> Vec<String> {
        // Where the system does not tell, nobody is waited for.
        let table = std::fs::read("/proc/net/unix").unwrap_or_default();
        let name = |line: &str| Some(line.rsplit(' ').next()?.strip_prefix('@')?.to_owned());
        String::from_utf8_lossy(&table).lines().filter_map(name).collect()
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::{are_free, held};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{are_free, held};
