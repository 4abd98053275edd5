//! Readers of files: no code but [`crate::bounded_file`] reads a file that a workspace can choose.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The calls that read a file to its end, or wait at a FIFO.
const READERS: &[&str] = &["fs::read(", "read_to_string(", "read_to_end(", "File::open(", "read(true)", "openat("];

/// The lines that may have one, each by its file and a part of the line, with the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("checker/chain/memory.rs", "/proc/{pid}/task/{pid}/children", "the kernel's file"),
    ("checker/chain/memory.rs", "Path::new(path)", "a file of /proc"),
    ("checker/ending.rs", "/proc/{pid}/limits", "the kernel's file"),
    ("checker/memory.rs", "/proc/{}/status", "the kernel's file"),
    ("checker/memory.rs", "/proc/{}/smaps_rollup", "the kernel's file"),
    ("checker/scratch_use.rs", "place.join(\"maps\")", "the kernel's file"),
    ("checker/scratch.rs", "/dev/urandom", "the kernel's device; so many bytes are taken"),
    ("cli/eval.rs", "read_to_string(&mut code)", "the person's own standard input"),
    ("cli/serve.rs", "/dev/null", "the kernel's device"),
    ("host/election.rs", "stream.read_to_end", "a connection, with a deadline"),
    ("host/memory.rs", "/proc/self/statm", "the kernel's file"),
    ("host/peer_process.rs", "/proc/{process}/status", "the kernel's file"),
    ("image/programs.rs", "/proc/{pid}/", "the kernel's file"),
    ("mcp/http.rs", "/dev/urandom", "the kernel's device; so many bytes are taken"),
    ("session/approval/question.rs", "/dev/urandom", "the kernel's device; so many bytes are taken"),
    ("session/saved.rs", "read(true)", "NONBLOCK, a regular file, and up to what the text may take"),
    ("session/saved.rs", "longest + 1", "up to what the text may take"),
    ("session/source_files.rs", "openat(", "NONBLOCK and below an open directory"),
    ("session/source_files.rs", "LARGEST + 1", "up to a limit"),
    ("session/status.rs", "/proc/self/status", "the kernel's file"),
];

fn sources(below: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(below).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            sources(&path, found);
        } else if name.ends_with(".rs") && !name.ends_with("tests.rs") && name != "bounded_file.rs" {
            found.push(path);
        }
    }
}

#[test]
fn no_file_of_a_workspace_is_read_without_a_bound() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut files, mut used, mut wrong) = (Vec::new(), BTreeSet::new(), Vec::new());
    sources(&root, &mut files);
    assert!(files.len() > 300, "{}", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        // Tests come last in a file.
        let code = text.split_once("\nmod tests {\n").map_or(&text[..], |(code, _)| code);
        let lines: Vec<&str> = code.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let is_comment = line.trim_start().starts_with("//");
            if is_comment || !READERS.iter().any(|reader| line.contains(reader)) {
                continue;
            }
            // A call may go on in the next line.
            let call = [*line, lines.get(number + 1).unwrap_or(&"")].concat();
            match ALLOWED.iter().position(|(file, part, _)| *file == name && call.contains(part)) {
                Some(entry) => drop(used.insert(entry)),
                None => wrong.push(format!("{name}:{}: {}", number + 1, line.trim())),
            }
        }
    }
    assert!(wrong.is_empty(), "use bounded_file, or say here why not:\n{}", wrong.join("\n"));
    let unused: Vec<_> = ALLOWED.iter().enumerate().filter(|(index, _)| !used.contains(index)).collect();
    assert!(unused.is_empty(), "allowed and not there: {unused:?}");
}
