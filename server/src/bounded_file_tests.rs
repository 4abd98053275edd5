//! Readers of files: no code but [`crate::bounded_file`] reads a file that a workspace can choose.

use crate::source_tests::{Allowed, assert_only_allowed};

/// The calls that read a file to its end, or wait at a FIFO.
const READERS: &[&str] = &["fs::read(", "read_to_string(", "read_to_end(", "File::open(", "read(true)", "openat("];

/// The lines that may contain such a call, each given by its file and a part of the line, with the
/// reason.
const ALLOWED: &Allowed = &[
    ("checker/changed_process.rs", "/proc/{pid}/status", "the kernel's file"),
    ("checker/chain/memory.rs", "/proc/{pid}/task/{pid}/children", "the kernel's file"),
    ("checker/chain/memory.rs", "root.join(name)", "a file of /proc"),
    ("checker/ending.rs", "/proc/{pid}/limits", "the kernel's file"),
    ("checker/memory.rs", "/proc/{}/status", "the kernel's file"),
    ("checker/memory.rs", "/proc/{}/smaps_rollup", "the kernel's file"),
    ("checker/scratch_use.rs", "place.join(\"maps\")", "the kernel's file"),
    ("checker/scratch.rs", "/dev/urandom", "the kernel's device; so many bytes are taken"),
    ("checker/threads.rs", "/proc/{process}/net", "the kernel's files"),
    ("cli/eval.rs", "read_to_string(&mut code)", "the person's own standard input"),
    ("cli/serve.rs", "/dev/null", "the kernel's device"),
    ("host/claim.rs", "take(MAX_ANSWER_BYTES)", "a connection, up to a limit and with a deadline"),
    ("host/election.rs", "stream.read_to_end", "a connection, with a deadline"),
    ("host/memory.rs", "/proc/self/statm", "the kernel's file"),
    ("host/named_marks.rs", "/proc/net/unix", "the kernel's file"),
    ("host/peer_process.rs", "/proc/{process}/status", "the kernel's file"),
    ("image/process_table.rs", "/proc/{pid}/stat", "the kernel's file"),
    ("image/programs.rs", "/proc/{pid}/cmdline", "the kernel's file"),
    ("mcp/http.rs", "/dev/urandom", "the kernel's device; so many bytes are taken"),
    ("session/approval/audit.rs", "append(true)", "the user's own file, of which the last byte is read"),
    ("session/approval/question.rs", "/dev/urandom", "the kernel's device; so many bytes are taken"),
    ("session/saved.rs", "read(true)", "NONBLOCK, a regular file, and up to what the text may take"),
    ("session/saved.rs", "longest + 1", "up to what the text may take"),
    ("session/source_files.rs", "openat(", "NONBLOCK and below an open directory"),
    ("session/source_files.rs", "MAX_FILE_BYTES + 1", "up to a limit"),
    ("session/source_files/replacing.rs", "openat(", "NONBLOCK and below an open directory"),
    ("session/source_files/replacing.rs", "MAX_FILE_BYTES + 1", "up to a limit"),
    ("session/status.rs", "/proc/self/status", "the kernel's file"),
];

#[test]
fn no_file_of_a_workspace_is_read_without_a_bound() {
    let reads =
        |file: &str, line: &str| file != "bounded_file.rs" && READERS.iter().any(|reader| line.contains(reader));
    assert_only_allowed(reads, 2, ALLOWED, "use bounded_file");
}
