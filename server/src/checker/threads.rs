//! Limits on the threads and sockets of a copy that runs code under test (`eval.in_copy`). The
//! memory of its sockets is counted here, because the kernel counts it to no process.

use std::os::unix::fs::MetadataExt;

use rustix::process::Pid;

/// The limit of the number of threads of one copy.
const THREADS: u64 = 512;
/// The limit of the bytes that the buffers of a socket take, in both directions together. The copy
/// sets this limit for its network (lisp/src/confine/threads.lisp).
const SOCKET: u64 = 512 << 10;

/// Returns the limit that a copy exceeds, as words to follow "it was stopped:".
pub(super) fn exceeded_limit(pid: Pid) -> Option<String> {
    // A directory has a link for each directory in it, and two of its own.
    let threads = std::fs::metadata(format!("/proc/{}/task", pid.as_raw_nonzero())).ok()?.nlink().saturating_sub(2);
    (threads > THREADS).then(|| format!("it started more than {THREADS} threads"))
}

/// Returns the bytes that the sockets of a copy may take, or 0 while the copy uses the host's
/// network.
pub(super) fn memory(pid: Pid) -> u64 {
    let network = |process: &str| std::fs::read_link(format!("/proc/{process}/ns/net")).ok();
    let process = pid.as_raw_nonzero().to_string();
    let (Some(theirs), Some(ours)) = (network(&process), network("self")) else { return 0 };
    if theirs == ours {
        return 0;
    }
    let tables = ["sockstat", "sockstat6"].map(|name| std::fs::read_to_string(format!("/proc/{process}/net/{name}")));
    let sockets = tables.iter().flatten().map(|table| in_use(table)).fold(0, u64::saturating_add);
    sockets.saturating_mul(SOCKET)
}

/// Returns the number of TCP and UDP sockets in a table of /proc/PID/net, including those to which
/// no descriptor is left.
fn in_use(table: &str) -> u64 {
    let count = |line: &str| {
        let mut words = line.split_whitespace();
        words.next().filter(|kind| kind.starts_with("TCP") || kind.starts_with("UDP"))?;
        words.skip_while(|word| *word != "inuse").nth(1)?.parse().ok()
    };
    table.lines().filter_map(count).fold(0, u64::saturating_add)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_sockets_of_a_table_are_counted() {
        let table = "sockets: used 12\nTCP: inuse 7 orphan 3 tw 2 alloc 9 mem 1\nUDP: inuse 2 mem 0\nUDPLITE: inuse 1\nRAW: inuse 40\n";
        assert_eq!(in_use(table), 10);
        assert_eq!(in_use("TCP6: inuse 4\nUDP6: inuse 1\nFRAG6: inuse 8 memory 0\n"), 5);
        assert_eq!(in_use(""), 0);
    }

    #[test]
    fn a_process_in_our_own_network_is_not_counted() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let pid = rustix::process::getpid();
        assert_eq!(memory(pid), 0);
        assert_eq!(exceeded_limit(pid), None);
        drop(listener);
    }
}
