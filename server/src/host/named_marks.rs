//! Abstract Unix socket names (unix(7)) that editors' bridges bind while they may have documents.
//! The names replace the locked file of [`super::reopening`] if the runtime directory was removed.
//! Only Linux has such names.

use std::io;

use super::runtime_dir::RuntimeDir;

/// A bound name, released when dropped and at the end of the process.
#[derive(Debug)]
pub(super) struct NamedMark {
    #[cfg(target_os = "linux")]
    #[allow(dead_code, reason = "it holds the name")]
    listener: std::os::unix::net::UnixListener,
}

#[cfg(not(target_os = "linux"))]
mod other {
    use super::*;

    impl NamedMark {
        pub(in crate::host) fn bind(_: &RuntimeDir) -> io::Result<NamedMark> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    pub(in crate::host) fn bound_names(_: &RuntimeDir) -> Vec<String> {
        Vec::new()
    }

    pub(in crate::host) fn any_bound(_: &[String]) -> bool {
        false
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
        /// Binds a name that is unique to this call, for the workspace of `runtime`.
        ///
        /// # Errors
        /// The error of `socket` or `bind`.
        pub(in crate::host) fn bind(runtime: &RuntimeDir) -> io::Result<NamedMark> {
            static NEXT: AtomicU64 = AtomicU64::new(0);
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}{}-{number}", prefix(runtime), std::process::id());
            let address = SocketAddr::from_abstract_name(name)?;
            fault::point(Call::Bind)?;
            Ok(NamedMark { listener: UnixListener::bind_addr(&address)? })
        }
    }

    /// Returns the prefix of the names of all bridges of the workspace.
    fn prefix(runtime: &RuntimeDir) -> String {
        format!("{}-documents-", claim::name(runtime))
    }

    /// Returns the names of the workspace's bridges that processes of this user have bound, sorted.
    pub(in crate::host) fn bound_names(runtime: &RuntimeDir) -> Vec<String> {
        let prefix = prefix(runtime);
        let mut names: Vec<String> = abstract_names().into_iter().filter(|name| name.starts_with(&prefix)).collect();
        // The system lists a name once more for each connection that was not accepted.
        names.sort_unstable();
        names.dedup();
        names.retain(|name| claim::may_be_held(name));
        names
    }

    /// Returns true if one of the names is bound.
    pub(in crate::host) fn any_bound(names: &[String]) -> bool {
        !names.is_empty() && abstract_names().iter().any(|name| names.contains(name))
    }

    /// Returns the abstract names that are bound on this system, or none if the system's list
    /// cannot be read, so that no host waits for bridges that it cannot see.
    fn abstract_names() -> Vec<String> {
        let table = std::fs::read("/proc/net/unix").unwrap_or_default();
        let name = |line: &str| Some(line.rsplit(' ').next()?.strip_prefix('@')?.to_owned());
        String::from_utf8_lossy(&table).lines().filter_map(name).collect()
    }
}

#[cfg(target_os = "linux")]
pub(super) use linux::{any_bound, bound_names};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{any_bound, bound_names};
